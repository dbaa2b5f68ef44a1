"""Progress of a download: one changing line on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self, TextIO

_LINE_SECONDS: Final = 3.0
_REDRAW_SECONDS: Final = 0.1
_CLEAR: Final = "\r\x1b[K"  # return to the start of the line, and erase it


class JarProgress:
    """Bytes, rate and remaining time of a download, as a context manager.

    Nothing is shown before :meth:`begin`. On a terminal, one line is rewritten. Otherwise, a line is written every few
    seconds. ``file`` is standard error if None. ``clock`` returns seconds.
    """

    def __init__(self, title: str, *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._clock = title, clock
        self._file = sys.stderr if file is None else file
        self._terminal = self._file.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}
        self._done = self._total = self._received = 0
        self._began = self._shown = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._terminal:
            self._write(_CLEAR)

    @property
    def state(self) -> str:
        """Number of bytes that have arrived, and of all bytes."""
        return f"{decimal(self._done)} of {decimal(self._total)}"

    def begin(self, total: int, arrived: int, source: str) -> None:
        """Start a download of ``total`` bytes from ``source``.

        ``arrived`` is the number of bytes from an earlier download.
        """
        self._total, self._done, self._received = total, arrived, 0
        self._began = self._shown = self._clock()
        self.say(f"{self._title}: {self.state} here, the rest from {source}")

    def advance(self, count: int) -> None:
        """Add bytes that have arrived; a negative number removes bytes that were dropped."""
        self._done += count
        self._received += max(count, 0)
        now = self._clock()
        if now - self._shown >= (_REDRAW_SECONDS if self._terminal else _LINE_SECONDS):
            self._shown = now
            self._write(f"{_CLEAR}{self._line(now)}" if self._terminal else f"{self._line(now)}\n")

    def _line(self, now: float) -> str:
        """Return the bytes so far, the mean rate of the received bytes, and the remaining time at that rate."""
        rate = self._received / (now - self._began) if now > self._began else 0.0
        if not rate:
            return f"{self._title}: {self.state}"
        left = timedelta(seconds=math.ceil((self._total - self._done) / rate))
        return f"{self._title}: {self.state}, {decimal(int(rate))}/s, {left} left"

    def end(self) -> None:
        """Report that everything has arrived."""
        self.say(f"{self._title}: complete after {self._clock() - self._began:.1f} s")

    def say(self, text: str) -> None:
        """Write a separate line."""
        self._write(f"{_CLEAR if self._terminal else ''}{text}\n")

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


def decimal(size: int) -> str:
    """Return a number of bytes in a readable unit: ``107.4 MB``."""
    if size < 1000:
        return f"{size} byte{'' if size == 1 else 's'}"
    value, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:,.1f} {unit}"
