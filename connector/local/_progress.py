"""Shows how far a download is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

__all__ = ["JarProgress"]

_LINE_SECONDS: Final = 3.0


class JarProgress:
    """Context manager that is told of each jar. Writes to ``file``, standard error if None.

    Nothing is shown before the first call.
    """

    def __init__(self, title: str, *, file: TextIO | None = None) -> None:
        self._title = title
        self._file = sys.stderr if file is None else file
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._expected = self._found = self._arrived = 0
        self._last_line = float("-inf")

    def __enter__(self) -> Self:
        if self._file.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(file=self._file), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, count: int) -> None:
        """Begin counting (again): so many jars are to come."""
        self._expected, self._found, self._arrived = count, 0, 0
        self._show()

    def found(self) -> None:
        """One more jar is known to be there; this takes most of the time."""
        self._found += 1
        self._show()

    def arrived(self) -> None:
        """One more jar is here."""
        self._arrived += 1
        self._show()

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self._file, flush=True)

    def _show(self) -> None:
        text = f"{self._title}: {self._found} of {self._expected} found, {self._arrived} fetched"
        if self._bar is not None:
            self._bar.update(
                self._task, description=text, completed=self._found + self._arrived, total=2 * self._expected
            )
        elif self._arrived == self._expected or time.monotonic() - self._last_line >= _LINE_SECONDS:
            self._last_line = time.monotonic()
            self.say(text)
