"""Full disks, simulated with a limit on the size of files: for a checkpoint, dead letters and an export."""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pravega_connector.client import PravegaClient, StreamName
from tests.faults.cluster.clients import Clients
from tests.faults.processes import await_that
from tests.support.processes import stat_of

#: Bytes. Less than an entry of Spark's offset log.
_CHECKPOINT: Final = 64
_OUTPUT: Final = 4096
_SECONDS: Final = 300.0
_GOOD, _BAD = 600, 200


@contextmanager
def _limited(pids: list[int]) -> Iterator[None]:
    """Limit running processes to the first bytes of each file."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE, (_CHECKPOINT, resource.RLIM_INFINITY)) for pid in pids}
    try:
        yield
    finally:
        for pid, limits in before.items():
            if stat_of(pid):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def full_under_checkpoint(clients: Clients, jvms: list[int]) -> str:
    """The query fails while its checkpoint cannot be written, and continues from it afterwards."""
    timeline, since = clients.timeline(), time.monotonic()
    with _limited(jvms):
        error = await_that("the query fails", lambda: timeline.refresh().errors["query1"], _SECONDS, poll=0.1)[0][1]
        before = len(timeline.refresh().done["query1"])
        time.sleep(10.0)
        assert len(timeline.refresh().done["query1"]) <= before + 1, "the query continues without its checkpoint"
    return f"no file beyond {_CHECKPOINT} bytes for {time.monotonic() - since:.0f} s: {error[:80]}"


def _cli(clients: Clients, *words: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    def prepare() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    command = [
        sys.executable,
        "-c",
        "import sys; from pravega_connector.operations.cli import main; main(sys.argv[1:])",
        *map(str, words),
    ]
    environment = {**os.environ, **clients.environment()}
    if limit is not None:
        # Python truncates compiled modules at the limit without an error, and later processes cannot load them.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False, preexec_fn=prepare
    )


def _failed(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a command that failed."""
    lines = done.stderr.strip().splitlines()
    assert done.returncode not in (0, 2), f"it ended with {done.returncode}: {lines}"
    assert lines, "it said nothing"
    assert lines[-1].startswith("[PRAVEGA-"), f"no line with a code: {lines[-1]}"
    assert "Traceback" not in done.stderr
    return lines[-1]


def _code(error: str) -> str:
    return error.partition("]")[0].removeprefix("[")


def full_under_export(clients: Clients) -> str:
    """An export on a full disk leaves no file, reports an error, and can be repeated."""
    with PravegaClient(clients.config, timeout=60.0) as client:
        end = client.tail(clients.streams["events"])
        expected = sorted(event.decode() for event in client.read(clients.streams["events"], end=end))
    file = clients.folder / f"export-{time.monotonic_ns()}.jsonl"
    words = ("export", clients.streams["events"], file, "--end", end.to_text(), "--format", "string", "--quiet")
    error = _failed(_cli(clients, *words, limit=_OUTPUT))
    assert list(file.parent.glob(f"*{file.name}*")) == [], "something is left of the file"
    done = _cli(clients, *words)
    assert done.returncode == 0, done.stderr
    rows = sorted(_only_value(line) for line in file.read_text().splitlines())
    assert rows == expected, f"{len(rows)} rows instead of {len(expected)}"
    return f"no file beyond {_OUTPUT} bytes: {_code(error)}"


def _only_value(line: str) -> str:
    (value,) = [value for value in json.loads(line).values() if isinstance(value, str) and "|" in value]
    return str(value)


def full_under_letters(clients: Clients) -> str:
    """An ingestion that cannot write dead letters ends; a later one loses and repeats no record and no letter."""
    mark = time.monotonic_ns()
    folder, stream = clients.folder / f"bad-{mark}", StreamName(clients.streams["files"].scope, f"letters-{mark}")
    (folder / "letters").mkdir(parents=True)
    with (folder / "data.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["n", "value"])
        for n in range(_GOOD + _BAD):
            rows.writerow([n, "not a number, and long enough to fill a disk" * 4 if n % 4 == 3 else n])
    words = ("ingest", folder / "data.csv", stream, "--create", 2, "--type", "value=double", "--quiet")
    words += ("--dead-letters", folder / "letters")
    error = _failed(_cli(clients, *words, limit=_OUTPUT))
    done = _cli(clients, *words)
    assert done.returncode == 0, done.stderr
    with PravegaClient(clients.config, timeout=60.0) as client:
        numbers = sorted(json.loads(event)["n"] for event in client.read(stream))
    assert numbers == [n for n in range(_GOOD + _BAD) if n % 4 != 3], f"{len(numbers)} records of {_GOOD}"
    letters = [json.loads(line) for path in _files(folder / "letters") for line in path.read_text().splitlines()]
    assert len(letters) == len({letter["record"] for letter in letters}) == _BAD, f"{len(letters)} letters of {_BAD}"
    return f"no file beyond {_OUTPUT} bytes: {_code(error)}"


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
