"""Processes that ingest, the files that they ingest, and what readers see of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from tools.processes import stat_of

__all__ = ["Ingesters", "Run", "Verdict", "await_that", "judge", "write_samples"]

_ROOT: Final = Path(__file__).parents[3]
SECONDS: Final = 300.0
_END_SECONDS: Final = 60.0


def await_that(what: str, condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The first value of a condition that is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)
    return value


def write_samples(folder: Path, files: int, samples: int) -> None:
    """CSV files of numbered samples."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        lines = "".join(f"{file},{sample},{sample * 0.5}\n" for sample in range(samples))
        (folder / f"samples-{file:05}.csv").write_text("file,sample,value\n" + lines)


class Ingesters:
    """Starts ingesters. Context manager; kills what it started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.faults.ingest._zygote"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running: set[int] = set()
        self._ended: dict[int, int] = {}
        self._count = 0

    def start(self, args: Iterable[object], **fault: Any) -> Run:
        """Start one, with a fault if one is given."""
        self._count += 1
        log, fired = self._folder / f"run-{self._count}.log", self._folder / f"run-{self._count}.fired"
        if fault:
            fault["fired"] = str(fired)
        pid = self._ask(do="start", args=[str(arg) for arg in args], fault=fault, log=str(log))
        self._running.add(pid)
        return Run(self, pid, log, fired)

    def status(self, pid: int) -> int | None:
        """How a process has ended, as ``wait`` tells; None while it runs."""
        for ended, status in self._ask(do="ended").items():
            self._ended[int(ended)] = status
            self._running.discard(int(ended))
        return self._ended.get(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for pid in list(self._running):
            if self.status(pid) is None:
                os.kill(pid, signal.SIGKILL)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        self._process.stdout.close()

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@dataclass(frozen=True)
class Run:
    """One process."""

    all: Ingesters
    pid: int
    log: Path
    fired: Path

    @property
    def status(self) -> int | None:
        """How it has ended; None while it runs."""
        return self.all.status(self.pid)

    @property
    def killed(self) -> bool:
        """Whether SIGKILL has ended it."""
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it."""
        return stat_of(self.pid)[:1] == ["T"]

    def kill(self) -> None:
        """``kill -9``."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit code. Fails if a signal has ended it."""
        status = await_that(
            "an ingester ends", lambda: (self.status, True) if self.status is not None else None, seconds
        )
        assert os.WIFEXITED(status[0]), f"ended by signal {os.WTERMSIG(status[0])}: {self.text()}"
        return os.WEXITSTATUS(status[0])

    def text(self) -> str:
        """What it has said."""
        return self.log.read_text() if self.log.exists() else ""


@dataclass
class Verdict:
    """What readers see, against what is in the files."""

    scenario: str
    expected: int
    read: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    kills: int = 0
    runs: int = 0
    pauses: int = 0
    takeovers: int = 0
    scalings: int = 0
    transactions: int = 0
    seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether each event is there once, in its file's order."""
        return (self.read, self.lost, self.duplicated, self.out_of_order) == (self.expected, 0, 0, 0)


def judge(verdict: Verdict, events: Iterable[bytes], files: int, samples: int) -> None:
    """Compare events, in the order in which they were read, with what :func:`write_samples` has written."""
    seen: Counter[tuple[int, int]] = Counter()
    last: dict[int, int] = defaultdict(lambda: -1)
    for event in events:
        value = json.loads(event)
        file, sample = value["file"], value["sample"]
        seen[file, sample] += 1
        verdict.out_of_order += sample <= last[file]
        last[file] = sample
    verdict.read = seen.total()
    verdict.lost = sum((file, sample) not in seen for file in range(files) for sample in range(samples))
    verdict.duplicated = sum(count - 1 for count in seen.values())
