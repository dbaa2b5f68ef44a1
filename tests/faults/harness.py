"""The harness: plays the scenarios of a table on servers, several at a time, and records the verdicts."""

from __future__ import annotations

import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

from benchmarks._drive import PeerError
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega
from pravega_serde.errors import PravegaError
from tests.faults.record import Column, Record
from tests.faults.verdict import Verdict
from tests.support.jvm import SOON_READY


@dataclass(frozen=True)
class Scenario:
    """One way to fail."""

    name: str
    about: str
    """The fault, as tables of results show it."""
    play: Callable[..., Any]
    """Causes the fault, asserts that it happened, and asserts how the processes end."""
    servers: str = "server"
    """Kind of servers and clients that it needs."""
    by_name: bool = False
    """Whether it is played only if the command line names it."""

    def fits(self, settings: Any) -> bool:
        """Return whether the scenario can be played with these settings of its table."""
        return True


class Setup(ABC):
    """Servers and clients that runs of many scenarios share. Context manager."""

    usable = True
    """Whether another scenario may follow."""

    def __init__(self, servers: str, folder: Path, settings: Any, config: PravegaConfig | None = None) -> None:
        """``config``: servers that run already."""
        self.servers, self.folder, self.settings, self._given = servers, folder, settings, config
        self.stack = ExitStack()
        self._complete: list[Verdict] = []
        self._runs = 0

    @abstractmethod
    def open(self) -> None:
        """Start servers and clients on ``stack``."""

    @abstractmethod
    def play(self, scenario: Any, verdict: Verdict) -> None:
        """Play a scenario, and judge it. Raises AssertionError for a failure."""

    def server(self) -> PravegaConfig:
        """Return the address of the given server, or else start one."""
        if self._given is not None:
            return self._given
        return self.stack.enter_context(LocalPravega(heap_mb=1024, cache_mb=512, java_options=SOON_READY)).config

    def new_folder(self, name: str) -> Path:
        """Create the folder of a run."""
        self._runs += 1
        folder = self.folder / f"{self._runs}-{name}"
        folder.mkdir()
        return folder

    def run(self, scenario: Scenario, seed: int = 0) -> Verdict:
        """Play a scenario; every failure is in the verdict."""
        verdict, began = Verdict(scenario.name, seed), time.monotonic()
        try:
            self.play(scenario, verdict)
        except (AssertionError, PeerError, PravegaError, OSError) as error:
            verdict.failures.append(f"{type(error).__name__}: {error}"[:3000])
        verdict.seconds = round(time.monotonic() - began, 1)
        self._complete.append(verdict)
        return verdict

    def complete(self, *, last: bool = False) -> list[Verdict]:
        """Return the verdicts that are complete; ``last``: wait for all of them."""
        complete, self._complete = self._complete, []
        return complete

    def __enter__(self) -> Self:
        with self.stack:
            self.open()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stack.close()


@dataclass(frozen=True)
class Table:
    """The scenarios of one subject."""

    scenarios: Sequence[Any]
    setup: Callable[..., Setup]
    settings: Any
    """Default settings, a dataclass."""
    columns: Sequence[Column]
    page: str = ""
    """Page of benchmarks/results/ that shows the results, and their name there: ``cluster-faults.md cluster``."""
    by_seed: bool = False
    """Whether the results have a row for each seed instead of each scenario."""

    @property
    def named(self) -> dict[str, Any]:
        return {scenario.name: scenario for scenario in self.scenarios}


def play_all(
    table: Table, record: Record, runs: Sequence[tuple[str, int]], jobs: int, logs: Path | None, settings: Any
) -> None:
    """Play runs, `jobs` at a time. An interrupt lets those end that have begun.

    Runs that need the same kind of servers share them, one after another.
    """
    scenarios, waiting, lock = table.named, list(runs), threading.Lock()
    earlier = () if logs is None else logs.glob("[0-9]*-*")
    folders = count(1 + max((int(folder.name.split("-")[0]) for folder in earlier), default=0))

    def take(servers: str | None = None) -> tuple[Scenario, int] | None:
        with lock:
            for run in waiting:
                scenario = scenarios[run[0]]
                if servers in (None, scenario.servers):
                    waiting.remove(run)
                    return scenario, run[1]
        return None

    def lane() -> None:
        while (run := take()) is not None:
            with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as temporary:
                folder = Path(temporary) if logs is None else logs.absolute() / f"{next(folders)}-{run[0].servers}"
                folder.mkdir(parents=True, exist_ok=logs is None)
                with table.setup(run[0].servers, folder, settings) as setup:
                    while run is not None:
                        setup.run(*run)
                        for verdict in setup.complete():
                            record.add(verdict)
                        run = take(setup.servers) if setup.usable else None
                    for verdict in setup.complete(last=True):
                        record.add(verdict)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for future in [pool.submit(lane) for _ in range(jobs)]:
                future.result()
        except BaseException:
            with lock:
                waiting.clear()
            raise
