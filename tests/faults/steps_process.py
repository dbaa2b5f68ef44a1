"""Runs of ``ingest`` and ``mirror``, which may kill or stop themselves at a point of a step.

Each is a forked process with everything imported.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final

import pyarrow.csv

import pravega_connector.operations.cli.ingest
import pravega_connector.operations.cli.mirror  # noqa: F401 - a forked process need not import them
from pravega_connector.client import TransactionalWriter
from pravega_connector.exactly_once.steps import Outcome, StepLog
from pravega_connector.exactly_once.steps.leader import Leader
from pravega_connector.operations.cli import main
from pravega_connector.operations.ingest.ingester import Ingester
from pravega_connector.operations.mirror.copier import Copier
from pravega_connector.operations.mirror.destination import Destination
from pravega_connector.writer.transactions import OpenTransaction
from tests.faults.inject import after, arm, during
from tests.faults.processes import await_that
from tests.support.processes import stat_of

#: Points in the order in which a step reaches them.
POINTS: Final = (
    "after decide",
    "after begin",
    "during record",
    "after record",
    "while writing",
    "after flush",
    "after visible",
    "during commit",
    "after commit",
)
#: Points between the steps of a mirror: a barrier, which scales the destination.
BARRIER_POINTS: Final = ("during scale", "after scale", "after barrier")
_LEADERS: Final[dict[str, type[Leader]]] = {"ingest": Ingester, "mirror": Copier}
_END_SECONDS: Final = 300.0
_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])
pyarrow.csv.ReadOptions()


def _main(command: str, arguments: list[str], folder: Path, fault: Mapping[str, Any]) -> None:
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(log, number)
    arm(folder, fault)
    leader = _LEADERS[command]
    after(leader, "_take_over", "after decide")
    after(TransactionalWriter, "begin", "after begin")
    _during(leader, "_record", "during record")
    after(leader, "_record", "after record", only=lambda turn: turn.outcome is Outcome.WRITTEN)
    after(OpenTransaction, "write_column", "while writing")
    after(OpenTransaction, "write_frames", "while writing")
    after(leader, "_flush", "after flush")
    after(leader, "_await_before", "after visible")
    _during(StepLog, "_commit", "during commit")
    after(StepLog, "_commit", "after commit")
    _during(Destination, "_scale", "during scale")
    after(Destination, "_scale", "after scale")
    after(Copier, "_pass_barrier", "after barrier")
    main([command, *arguments])


def _during(cls: type, name: str, point: str) -> None:
    method: Callable[..., Any] = getattr(cls, name)

    @wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return during(point, lambda: method(*args, **kwargs))

    setattr(cls, name, wrapper)


class StepsProcess:
    """One process of ``pravega-serde`` with a command. ``folder`` holds its log and the report of its fault."""

    def __init__(self, command: str, arguments: Iterable[object], folder: Path, **fault: Any) -> None:
        folder.mkdir()
        self._folder = folder
        self._process = _FORKS.Process(target=_main, args=(command, [*map(str, arguments)], folder, fault))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def code(self) -> int | None:
        """Exit code, minus the signal's number after a signal, or None while it runs."""
        return self._process.exitcode

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def stopped(self) -> bool:
        """True while a signal has stopped it."""
        return stat_of(self.pid)[:1] == ["T"]

    @property
    def fired(self) -> bool:
        """True if it has reported that it causes its fault."""
        return (self._folder / "fired").exists()

    def kill(self) -> None:
        self._process.kill()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def await_end(self, seconds: float = _END_SECONDS) -> None:
        await_that(f"process {self.pid} ends", lambda: self.code is not None, seconds, poll=0.01)

    def ends_within(self, seconds: float) -> bool:
        """Wait until it has ended, but no longer; return True if it has."""
        with suppress(AssertionError):
            self.await_end(seconds)
        return self.code is not None

    def succeeds(self, seconds: float = _END_SECONDS) -> None:
        self.await_end(seconds)
        assert self.code == 0, f"process {self.pid} ended with {self.code}: {self.text()}"

    def text(self) -> str:
        log = self._folder / "log"
        return log.read_text() if log.exists() else ""

    def peak_memory(self) -> int:
        """Return the peak of its memory in bytes; 0 after its end."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)

    def close(self) -> None:
        """Kill it if it runs."""
        self._process.kill()
        self._process.join()
        self._process.close()
