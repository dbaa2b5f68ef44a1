"""Deadlines: the time limit of a call, the time limit of one attempt without an answer, and pauses of polls.

Retries are in ``retry``, which also reports outages.
"""

from __future__ import annotations

import time
from typing import Final

from pravega_connector.core import io
from pravega_connector.errors import DeadlineExceededError

# Seconds without a byte before an attempt is given up. The next attempt asks the controller again: a longer wait is in
# vain if a server is frozen and another one has replaced it.
QUIET: Final = 5.0
_SHORTEST_QUIET: Final = 1.0
_LONGER: Final = 1.5  # ratio of a pause between two polls to the previous pause


class Deadline:
    """Time by which an operation must be done."""

    __slots__ = ("_at", "_end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = self._end = time.monotonic() + seconds

    def remaining(self, what: str) -> float:
        """Return the seconds left, more than 0. Raises DeadlineExceededError, which names ``what``."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError(f"{what} was not complete within {self.seconds:g} s")
        return left

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(self._at - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """True if the deadline has passed."""
        return time.monotonic() >= self._at

    def share(self, troubled: float = 0.0, quiet: float = QUIET) -> Deadline:
        """Return the deadline of one attempt: some seconds without an answer, and never later than this one.

        ``quiet`` is the time for which a healthy server may be silent. ``troubled`` is the number of seconds that
        failed attempts have lasted. An attempt gets a tenth of them if that is more. So a slow answer gets its time,
        and a recovery is noticed at most a tenth later.
        """
        quiet = max(min(quiet, self.seconds / 3), _SHORTEST_QUIET, troubled / 10)
        part = Deadline(min(quiet, self.left))
        part._end = self._at
        return part

    def progress(self) -> None:
        """Note a sign of life: the seconds of the attempt restart, up to the end of the whole deadline."""
        self._at = min(self._end, time.monotonic() + self.seconds)

    def pause(self, seconds: float, keep: float = 0.0) -> bool:
        """Sleep for ``seconds``, or until ``keep`` seconds are left. Return False at once if no more are left."""
        left = self.left - keep
        if left <= 0:
            return False
        io.sleep(min(seconds, left))
        return True


class Polls:
    """Polls of the progress of others, up to a deadline. Each pause is longer than the last one."""

    def __init__(
        self, deadline: Deadline, first: float = 0.02, longest: float = 0.25, *, to_the_end: bool = False
    ) -> None:
        """Poll with pauses of ``first`` to ``longest`` seconds.

        A poll that must be done by the deadline needs some time, so none starts in the last pause. With ``to_the_end``,
        a poll has its own deadline, and the last poll starts when this deadline has passed.
        """
        self._deadline, self._next, self._longest, self._to_the_end = deadline, first, longest, to_the_end

    def again(self) -> bool:
        """Pause before another poll. Return False at once if there is no time for one."""
        pause = self._next
        self._next = min(_LONGER * pause, self._longest)
        return (self._to_the_end or self._deadline.left > pause) and self._deadline.pause(pause)
