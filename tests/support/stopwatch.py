"""Stopwatch for calls that must end in time, also on a machine with other work."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Final

_STEP: Final = 0.01


class Stopwatch:
    """Duration since the creation, by two clocks.

    The clock for lower bounds is the monotonic one. The clock for upper bounds counts the pauses of a thread of this
    process. It competes with the test for the processors and the interpreter, so it slows down as the test does.
    """

    def __init__(self) -> None:
        self._began, self._steps = time.monotonic(), 0
        threading.Thread(target=_count, args=(weakref.ref(self),), name="stopwatch", daemon=True).start()

    def lasted(self, least: float) -> bool:
        """Return True if at least this many seconds have passed."""
        return time.monotonic() - self._began >= least

    def within(self, most: float) -> bool:
        """Return True if at most this many seconds have passed."""
        return self._steps * _STEP <= most


def _count(watch: weakref.ref[Stopwatch]) -> None:
    """Count the pauses while the stopwatch exists."""
    while (found := watch()) is not None:
        found._steps += 1
        del found
        time.sleep(_STEP)
