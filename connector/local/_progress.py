"""Progress of a download: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self, TextIO

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

__all__ = ["JarProgress"]

_LINE_SECONDS: Final = 3.0


class JarProgress:
    """Bytes, rate and time left of a download, as a context manager; nothing is shown before :meth:`begin`.

    Writes to ``file``, standard error if None; ``clock`` tells seconds.
    """

    def __init__(self, title: str, *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._clock = title, clock
        console = Console(file=sys.stderr if file is None else file)
        self._terminal = console.file.isatty() and not console.is_dumb_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        rates = (TransferSpeedColumn(), TimeRemainingColumn())
        # It also keeps the rate where no bar is shown.
        self._bar = Progress(*columns, *rates, console=console, transient=True, get_time=clock)
        self._task = self._bar.add_task(title, start=False, total=0)
        self._began = self._last_line = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._terminal:
            self._bar.stop()

    @property
    def state(self) -> str:
        """Bytes that are there, of how many."""
        task = self._bar.tasks[0]
        return f"{decimal(int(task.completed))} of {decimal(int(task.total or 0))}"

    def begin(self, total: int, arrived: int, source: str) -> None:
        """Start with ``total`` bytes to come from ``source``, of which ``arrived`` are there from an earlier fetch."""
        self._began = self._clock()
        self._bar.reset(self._task, total=total, completed=arrived)
        if self._terminal:
            self._bar.start()
        self.say(f"{self._title}: {self.state} here, the rest from {source}")
        self._last_line = self._clock()

    def advance(self, count: int) -> None:
        """Add bytes that have arrived; a negative number takes away bytes that were dropped."""
        if count < 0:
            # The rate is that of what comes.
            self._bar.update(self._task, advance=count)
        else:
            self._bar.advance(self._task, count)
        if not self._terminal and self._clock() - self._last_line >= _LINE_SECONDS:
            self._last_line = self._clock()
            task = self._bar.tasks[0]
            rate = f", {decimal(int(task.speed))}/s" if task.speed else ""
            left = "" if task.time_remaining is None else f", {timedelta(seconds=task.time_remaining)} left"
            self.say(f"{self._title}: {self.state}{rate}{left}")

    def end(self) -> None:
        """Say that all is there."""
        self.say(f"{self._title}: complete after {self._clock() - self._began:.1f} s")

    def say(self, text: str) -> None:
        """Write a line of its own."""
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
