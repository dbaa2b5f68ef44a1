"""Forks ingesters: each is a process of its own, with everything imported and nothing else done.

One JSON request a line on standard input, one answer a line on standard output:

    {"do": "start", "args": [...], "fault": {...}, "log": PATH}   the process id
    {"do": "ended"}                                               {pid: wait status} of those that have ended since
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pyarrow.csv

import pravega_connector.cli.ingest  # noqa: F401 - so that no child has to
from pravega_connector.cli import main as command
from tools.faults.ingest import _faults


def main() -> None:
    _faults.install()
    pyarrow.csv.ReadOptions()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        value = _start(request) if request["do"] == "start" else _ended()
        answers.write(json.dumps(value) + "\n")
        answers.flush()


def _start(request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        _run(request)
    return pid


def _run(request: dict[str, Any]) -> None:
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(log, number)
    os.close(0)
    _faults.set_fault(request["fault"])
    code = 1
    try:
        command(["ingest", *request["args"]])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - what is not expected is told in the log
        print(repr(error), flush=True)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _ended() -> dict[int, int]:
    found = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not pid:
            return found
        found[pid] = status


if __name__ == "__main__":
    main()
