"""Shows how far a download is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["JarProgress"]

_LINE_SECONDS: Final = 10.0


class JarProgress:
    """Context manager that is told of each module found and each jar that arrived. Writes to standard error."""

    def __init__(self, title: str, expected: int, *, file: TextIO | None = None) -> None:
        self._title, self._expected = title, expected
        self._file = file or sys.stderr
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._found = self._arrived = 0
        self._last_line = float("-inf")

    def __enter__(self) -> Self:
        if self._file.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(file=self._file), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._expected)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def found(self) -> None:
        """One more module is known."""
        self._found += 1
        self._show(f"{self._title}: looking them up, {self._found} found", 0)

    def arrived(self) -> None:
        """One more jar is here."""
        self._arrived += 1
        self._show(f"{self._title}: {self._arrived} of {self._expected}", self._arrived)

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self._file, flush=True)

    def _show(self, text: str, completed: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=completed)
        elif time.monotonic() - self._last_line >= _LINE_SECONDS:
            self._last_line = time.monotonic()
            self.say(text)
