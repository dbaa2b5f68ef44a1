"""Health of a cluster as a client knows it: timeouts, retries, outages and counters.

Until a server has answered, callers wait only a short time, so that a wrong address raises an error soon. After that,
the client retries by itself. Another server replaces a lost one in 25 to 30 s, and a call waits for it.

All retries use :class:`Attempts`: its pauses and timeouts, its log lines, and its outage if there is one.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
import weakref
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Final, TypeVar

from pravega_connector import metrics
from pravega_connector.config import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT
from pravega_connector.core import arguments
from pravega_connector.core.deadline import QUIET, Deadline
from pravega_connector.errors import ConfigError, ControllerUnavailableError, DeadlineExceededError
from pravega_serde import after_fork
from pravega_serde.errors import PravegaError

T = TypeVar("T")
# Seconds of failures before a warning, and between two warnings about the same operation.
OUTAGE_AFTER: Final = 10.0
WARN_EVERY: Final = 30.0
# Seconds between two log lines of a kind that is not an outage: moves, new connections, new tokens, retries.
NOTE_EVERY: Final = 10.0
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
# Seconds reserved for the last attempt: enough to connect to a running server and ask it.
_LAST_ATTEMPT: Final = 0.05
# Our threads must not use the random sequence that a program has seeded for itself.
_CHANCE: Final = random.SystemRandom()


# A client's counters of these names are also counted for the process.
_OF_PROCESS: Final = {
    "retries": metrics.RETRIES,
    "reconnects": metrics.RECONNECTS,
    "segment_moves": metrics.SEGMENT_MOVES,
    "token_refreshes": metrics.TOKEN_REFRESHES,
    "repeated_commits": metrics.REPEATED_COMMITS,
    "outages": metrics.OUTAGES,
}


class Counters:
    """Counters of one client. Thread safe."""

    NAMES: Final = tuple(_OF_PROCESS)

    def __init__(self, outages: Collection[object] = ()) -> None:
        """Start from 0. ``outages`` has the operations that are in an outage now, as long as they exist."""
        self._counts = dict.fromkeys(self.NAMES, 0)
        self._outages = outages
        self._outage_seconds = 0.0
        self._after_fork()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._outage_began: float | None = None

    def add(self, name: str) -> None:
        """Increase a counter by 1."""
        with self._lock:
            self._counts[name] += 1
        _OF_PROCESS[name].add(1)

    def outage_begins(self, began: float) -> None:
        """Count an outage that began at ``began`` (monotonic seconds)."""
        with self._lock:
            self._end()
            self._counts["outages"] += 1
            self._outage_began = began
        metrics.OUTAGES.add(1)
        metrics.OUTAGES_NOW.watch(self)

    @property
    def goes_on(self) -> bool:
        """True if there is an outage now."""
        self.settle()
        return self._outage_began is not None

    def settle(self) -> None:
        """End the outage if no operation is in it any more, because it has recovered or was dropped."""
        with self._lock:
            if not self._outages:
                self._end()

    def _end(self) -> None:
        if self._outage_began is None:
            return
        lasted, self._outage_began = time.monotonic() - self._outage_began, None
        self._outage_seconds += lasted
        metrics.OUTAGE_SECONDS.add(lasted)

    def as_dict(self) -> dict[str, int | float]:
        """Return the numbers by name.

        - ``retries``: attempts that failed and were repeated
        - ``reconnects``: connections to segment stores that replaced a lost one
        - ``segment_moves``: segments that were found at another segment store
        - ``token_refreshes``: tokens that were renewed
        - ``repeated_commits``: commits of transactions that were decided and did not become visible
        - ``outages``: outages of 10 s or more
        - ``outage_seconds``: the time spent in them
        """
        self.settle()
        with self._lock:
            running = 0.0 if self._outage_began is None else time.monotonic() - self._outage_began
            return {**self._counts, "outage_seconds": self._outage_seconds + running}


class ClusterHealth:
    """Timeouts, counters and outages of one client. Thread safe."""

    def __init__(
        self,
        timeout: float = DEFAULT_TIMEOUT,
        failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
        *,
        service: bool = False,
    ) -> None:
        """Set the timeouts of calls in seconds: ``timeout`` before the first contact, ``failover_timeout`` after it.

        With ``service``, ``failover_timeout`` applies from the start.
        """
        for name, seconds in (("timeout", timeout), ("failover_timeout", failover_timeout)):
            if not 0 < seconds <= arguments.LONGEST:
                raise ConfigError(f"the {name} must be above 0 s and at most {arguments.LONGEST:g} s, not {seconds!r}")
        self.timeout, self.failover_timeout, self.service = timeout, failover_timeout, service
        self._outages: weakref.WeakSet[Attempts] = weakref.WeakSet()  # attempts that have failed for long enough
        self.counters = Counters(self._outages)
        self._lines: dict[tuple[str, str], tuple[float, int]] = {}  # time of the last line, number of omitted lines
        self._after_fork()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._answered = False  # a forked child makes its own first contact
        self._lock = threading.Lock()
        self._outages.clear()

    # ---------------------------------------------------------------- timeouts

    @property
    def going_on(self) -> bool:
        """True if a server has answered in this process, or is known to exist."""
        return self.service or self._answered

    @property
    def seconds(self) -> float:
        """Seconds that a call which starts now may take."""
        return self.failover_timeout if self.going_on else self.timeout

    def deadline(self, seconds: float | None = None) -> Deadline:
        """Return the deadline of a call that starts now: after ``seconds``, by default after :attr:`seconds`.

        Raises ConfigError unless ``seconds`` is a number or None.
        """
        arguments.number("timeout", seconds)
        return Deadline(self.seconds if seconds is None else seconds)

    def answered(self) -> None:
        """Note that a server of the cluster has answered."""
        self._answered = True

    # ---------------------------------------------------------------- attempts

    def attempts(self, logger: logging.Logger, what: str, deadline: Deadline | None = None) -> Attempts:
        """Return attempts at an operation that log lines name ``what``.

        Without a deadline, each outage has its own: the seconds that a call may take, from the first failure. With a
        deadline of infinite seconds, the attempts never end.
        """
        return Attempts(self, logger, what, deadline)

    # ---------------------------------------------------------------- reports

    @property
    def trouble(self) -> str | None:
        """One line about the outage that has lasted longest; None if there is no outage."""
        with self._lock:
            oldest = min(self._outages, key=lambda attempts: attempts.began, default=None)
        return None if oldest is None else oldest.describe()

    def count(self, counter: str, logger: logging.Logger, text: str) -> None:
        """Increase a counter and log ``text``, unless a line of its kind was logged just before."""
        self.counters.add(counter)
        self._line(logger, logging.INFO, counter, NOTE_EVERY, text)

    def warn(self, logger: logging.Logger, kind: str, text: str) -> None:
        """Log a warning, unless one of its kind was logged just before."""
        self._line(logger, logging.WARNING, kind, WARN_EVERY, text)

    def _line(self, logger: logging.Logger, level: int, kind: str, every: float, text: str) -> None:
        if not logger.isEnabledFor(level):
            return
        key, now = (logger.name, kind), time.monotonic()
        with self._lock:
            last, left_out = self._lines.get(key, (float("-inf"), 0))
            due = now - last >= every
            if not due:
                self._lines[key] = last, left_out + 1
            else:
                if len(self._lines) > 1000:  # kinds that name a stream, in a client of very many streams
                    self._lines.clear()
                self._lines[key] = now, 0
        if due:
            logger.log(level, "%s%s", text, f" (and {left_out} similar messages left out before)" if left_out else "")

    def _enter_outage(self, attempts: Attempts) -> None:
        with self._lock:
            is_first = not self._outages
            self._outages.add(attempts)
            if is_first:
                self.counters.outage_begins(attempts.began)

    def _leave_outage(self, attempts: Attempts) -> bool:
        """Remove attempts from the current outages. Return True if they were an outage."""
        with self._lock:
            if attempts not in self._outages:
                return False
            self._outages.remove(attempts)
        self.counters.settle()
        return True


class Attempts:
    """Attempts at one operation, from the first failure to the success or the timeout. Not thread safe.

    :meth:`run` calls a function. A caller with its own loop gets the time for an attempt from :meth:`share`. It reports
    the result with :meth:`done`, with :meth:`again`, which waits, or with :meth:`failed`, which does not.
    """

    def __init__(self, health: ClusterHealth, logger: logging.Logger, what: str, deadline: Deadline | None) -> None:
        self._health, self._logger, self._what = health, logger, what
        self._given = deadline
        self._deadline = deadline
        self._failures = 0
        self._reason: PravegaError | None = None
        self.began = 0.0
        """Time of the first failure (monotonic seconds)."""
        self.due = 0.0
        """Time of the next attempt (monotonic seconds), after :meth:`failed`."""

    def __enter__(self) -> Attempts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def in_trouble(self) -> bool:
        """True if the last attempt failed."""
        return self._failures > 0

    @property
    def deadline(self) -> Deadline:
        """Deadline of the attempts."""
        return self._deadline or self._health.deadline()

    @property
    def _troubled(self) -> float:
        return time.monotonic() - self.began if self._failures else 0.0

    def share(self, quiet: float = QUIET) -> Deadline:
        """Return the deadline of the next attempt.

        ``quiet`` is the time for which a healthy server may be silent.
        """
        troubled = self._troubled
        if math.isinf(self.deadline.seconds):  # a tenth of the outage would grow without a bound
            troubled = min(troubled, self._health.failover_timeout)
        return self.deadline.share(troubled, quiet)

    def run(self, attempt: Callable[[Deadline], T], failed: Callable[[PravegaError], None]) -> T:
        """Call ``attempt`` with its share of the time, and retry transient failures.

        ``failed`` is called with each such error, including the last one. Raises the reason when the time is up.
        """
        with self:
            while True:
                try:
                    result = attempt(self.share())
                except PravegaError as error:
                    self.settle(error, failed)
                else:
                    self.done()
                    return result

    def failed(self, error: PravegaError) -> None:
        """Note a transient failure. Sets :attr:`due`, the time of the next attempt."""
        if not self._failures:
            self.began = time.monotonic()
            self._deadline = self._deadline or self._health.deadline()
        self._failures += 1
        # An attempt without enough time only hides why the others failed.
        late = isinstance(error, DeadlineExceededError) or (
            isinstance(error, ControllerUnavailableError) and self.deadline.passed
        )
        if self._reason is None or not late:
            self._reason = error
        self._health.count("retries", self._logger, f"{self._what}: trying again after: {error.message}")
        if self._troubled >= OUTAGE_AFTER:
            self._health._enter_outage(self)
            self._health.warn(self._logger, f"outage {self._what}", self.describe())
        longest: float = min(_FIRST_PAUSE * 2 ** min(self._failures - 1, 10), _LONGEST_PAUSE)
        self.due = time.monotonic() + longest * _CHANCE.uniform(0.5, 1.0)

    def again(self, error: PravegaError, instead: PravegaError | None = None) -> None:
        """Note a transient failure and pause. When the time is up, raise the reason or ``instead`` at once."""
        self.failed(error)
        if not self.deadline.pause(max(self.due - time.monotonic(), 0.0), keep=_LAST_ATTEMPT):
            end = instead or self.given_up()
            if end is error:
                raise error
            raise end from error

    def settle(self, error: PravegaError, failed: Callable[[PravegaError], None]) -> None:
        """Call ``failed`` with a transient failure and pause.

        Raises errors that are not retriable, and the errors of :meth:`again`.
        """
        if not error.retriable:
            raise error
        failed(error)
        self.again(error)

    def given_up(self) -> PravegaError:
        """Return the error for a timeout: the reason why the attempts failed."""
        reason = self._reason
        assert reason is not None
        if not isinstance(reason, DeadlineExceededError):
            return reason
        return DeadlineExceededError(
            f"{self._what} was not complete within {self.deadline.seconds:g} s ({reason.message})"
        )

    def done(self) -> None:
        """Note a success."""
        if not self._failures:
            return
        troubled = self._troubled
        if self._end():
            self._logger.warning("%s: recovered after %.0f s", self._what, troubled)

    def close(self) -> None:
        """End without a success. The next failure starts from the beginning."""
        if self._failures:
            self._end()

    def _end(self) -> bool:
        """Reset the attempts. Return True if there was an outage."""
        self._failures, self._reason, self._deadline = 0, None, self._given
        return self._health._leave_outage(self)

    def describe(self) -> str:
        """Return one line about the current outage."""
        reason = self._reason
        left = "without a time limit" if math.isinf(self.deadline.seconds) else f"for {self.deadline.left:.0f} s more"
        return (
            f"{self._what}: unreachable for {self._troubled:.0f} s, retrying {left}; last error: "
            f"{reason.message if reason else 'no answer'}"
        )
