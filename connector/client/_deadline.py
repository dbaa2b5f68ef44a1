"""Deadlines and retries, one way for the whole client."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import tenacity

from connector.errors import DeadlineExceededError
from pravega_serde.errors import PravegaError

__all__ = ["DEFAULT_TIMEOUT", "Deadline", "retrying"]

# Seconds. Long enough for a segment container to move to another store (seen: 5 to 10 s), short enough for a person.
DEFAULT_TIMEOUT: Final = 15.0
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0


class Deadline:
    """A moment by which something must be done."""

    __slots__ = ("_at", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    def remaining(self, what: str) -> float:
        """Seconds left, more than 0. Raises DeadlineExceededError that names ``what`` was not done."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError(f"{what} was not done within {self.seconds:g} s")
        return left

    @property
    def passed(self) -> bool:
        """Whether the moment has come."""
        return time.monotonic() >= self._at


def _is_retriable(error: BaseException) -> bool:
    return isinstance(error, PravegaError) and error.retriable and not isinstance(error, DeadlineExceededError)


def retrying(timeout: float, before_retry: Callable[[BaseException], None] | None = None) -> tenacity.Retrying:
    """Run a callable again after retriable errors, with growing pauses, for at most ``timeout`` seconds.

    The last error is raised as it was. ``before_retry`` sees each error before the pause.
    """

    def notice(state: tenacity.RetryCallState) -> None:
        outcome = state.outcome
        if before_retry is not None and outcome is not None and (error := outcome.exception()) is not None:
            before_retry(error)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_is_retriable),
        # Not after: an attempt without time would replace the reason of the last one by its own lateness.
        stop=tenacity.stop_before_delay(timeout),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_PAUSE, max=_LONGEST_PAUSE),
        before_sleep=notice,
        reraise=True,
    )
