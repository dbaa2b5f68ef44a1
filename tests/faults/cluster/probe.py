"""New clients, one per second, each in a new process: their success shows that the servers work. ``probe SPEC.json``.

Each writes to every segment of a stream, reads it back, and commits a transaction. Everything is imported before the
processes are forked, and nothing is connected. The program runs until standard input ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Final

import pyarrow as pa

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_serde.errors import PravegaError
from tests.faults.cluster.timeline import Notes

_EVERY: Final = 1.0
#: Timeout of a probe: longer than a healthy server needs on a busy machine, shorter than a failover.
SECONDS: Final = 12.0
_MOST: Final = 4
EVENTS: Final = 32


def main(file: str) -> None:
    spec = json.loads(Path(file).read_text())
    notes, running = Notes(Path(spec["notes"])), dict[int, float]()
    ready: list[int] = []
    pa.array([b""])  # the first array imports pandas, half a second of a core in each of the processes
    while not ready:
        if len(running) < _MOST:
            if (pid := os.fork()) == 0:
                _probe(spec, notes)
            running[pid] = time.monotonic()
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], _EVERY)
        for pid, started in list(running.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del running[pid]
            elif time.monotonic() - started > 2 * SECONDS:
                os.kill(pid, signal.SIGKILL)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _probe(spec: dict[str, object], notes: Notes) -> None:
    start = time.monotonic()
    try:
        _work(PravegaConfig.from_env(), StreamName.parse(str(spec["stream"])))
        notes.add("probe", "probe", start=start)
    except (PravegaError, AssertionError) as error:
        notes.add("probe", "failed probe", start=start, text=str(error).splitlines()[0][:300])
    finally:
        os._exit(0)


def _work(config: PravegaConfig, stream: StreamName) -> None:
    with PravegaClient(config, timeout=SECONDS, failover_timeout=SECONDS) as client:
        before = client.tail(stream)
        events = {f"{os.getpid()}|{n}".encode() for n in range(EVENTS)}
        writer = client.writer(stream, timeout=SECONDS)
        for event in events:
            writer.write(event, routing_key=event.decode())
        writer.flush()
        writer.close()
        with client.transactions(stream, lease=30.0, timeout=SECONDS).begin() as transaction:
            transaction.write(b"transaction", routing_key="transaction")
            transaction.commit(timeout=SECONDS)
        missing = events - set(client.read(stream, start=before))
        assert not missing, f"{len(missing)} events that the probe has written are not there"


if __name__ == "__main__":
    main(sys.argv[1])
