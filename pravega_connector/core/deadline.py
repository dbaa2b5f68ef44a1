"""Deadlines: how long a call may take, how long one attempt of it may wait for a sign of life, and when to look again.

Attempts at something that fails are in ``health``, which tells of their trouble.
"""

from __future__ import annotations

import time
from typing import Final

from pravega_connector.core import io
from pravega_connector.errors import DeadlineExceededError

# Seconds without a byte after which an attempt is given up for another one, and the controller is asked anew: waiting
# on is in vain where a server is frozen and another one has taken over.
QUIET: Final = 5.0
_SHORTEST_QUIET: Final = 1.0
_LONGER: Final = 1.5  # each pause between two looks than the one before


class Deadline:
    """A moment by which something must be done."""

    __slots__ = ("_at", "_end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = self._end = time.monotonic() + seconds

    def remaining(self, what: str) -> float:
        """Seconds left, more than 0. Raises DeadlineExceededError that names ``what`` was not done."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError(f"{what} was not done within {self.seconds:g} s")
        return left

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(self._at - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._at

    def share(self, troubled: float = 0.0, quiet: float = QUIET) -> Deadline:
        """The deadline of one attempt: seconds without a sign of life, and never later than this one.

        ``quiet`` is how long a healthy server may be silent, ``troubled`` how many seconds have gone by in attempts
        that failed. An attempt gets a tenth of them if that is more: so an answer that is slow gets its time, and a
        recovery is noticed at most a tenth later.
        """
        quiet = max(min(quiet, self.seconds / 3), _SHORTEST_QUIET, troubled / 10)
        part = Deadline(min(quiet, self.left))
        part._end = self._at
        return part

    def progress(self) -> None:
        """Note a sign of life: the attempt's seconds begin anew, up to the end of the whole."""
        self._at = min(self._end, time.monotonic() + self.seconds)

    def pause(self, seconds: float, keep: float = 0.0) -> bool:
        """Sleep for so long, or until ``keep`` seconds are left; False, at once, when no more than those are left."""
        left = self.left - keep
        if left <= 0:
            return False
        io.sleep(min(seconds, left))
        return True


class Looks:
    """Polls of the progress of others, up to a deadline; each pause between two of them is longer than the last."""

    def __init__(
        self, deadline: Deadline, first: float = 0.02, longest: float = 0.25, *, to_the_end: bool = False
    ) -> None:
        """``first`` and ``longest`` are pauses in seconds.

        A look that must itself be done by the deadline needs some time, so none comes in the last pause; with
        ``to_the_end`` it has a deadline of its own, and the last one comes when this one has passed.
        """
        self._deadline, self._next, self._longest, self._to_the_end = deadline, first, longest, to_the_end

    def again(self) -> bool:
        """Pause before another look; False, at once, when there is no time for one."""
        pause = self._next
        self._next = min(_LONGER * pause, self._longest)
        return (self._to_the_end or self._deadline.left > pause) and self._deadline.pause(pause)
