"""Keeping transactions open in the background, for as long as somebody works on them."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from types import TracebackType
from typing import Final

from connector.client._transactions import Transaction
from connector.errors import ConfigError, ConnectorError, TransactionCommittedError, TransactionError

__all__ = ["LeaseKeeper"]

# More than anybody keeps open at once; a list that grows beyond was never cleared.
MAX_TRANSACTIONS: Final = 10_000
# Seconds until the next round after one that no controller answered: leases go on meanwhile.
_RETRY: Final = 1.0
_SHORTEST_INTERVAL: Final = 0.1
# Seconds for one ping, of all its attempts: the others are due as well.
_PING_SECONDS: Final = 5.0
_logger: Final = logging.getLogger(__name__)


def ping_interval(lease: float) -> float:
    """Seconds between pings, as in Java's ``Pinger``: 3 of them in a lease of 10 s, 24 in one of 600 s."""
    return max(_SHORTEST_INTERVAL, lease / max(1.0, math.sqrt(lease)))


class LeaseKeeper:
    """Pings transactions until they are given back. Thread safe; one daemon thread while it has any.

    A transaction that can be pinged no more is dropped and its error kept, for :meth:`check` to raise: what is written
    to it is lost, so look before relying on it. A controller that does not answer is asked again, sooner.
    """

    def __init__(self, interval: float | None = None) -> None:
        """``interval`` is the seconds between two pings of a transaction; by default it follows from its lease."""
        if interval is not None and not interval > 0:
            raise ConfigError(f"the interval must be a positive number of seconds, not {interval!r}")
        self._interval = interval
        self._changed = threading.Condition()
        self._due: dict[uuid.UUID, tuple[float, Transaction]] = {}  # when (monotonic) to ping
        self._failures: dict[uuid.UUID, ConnectorError] = {}
        self._trouble: ConnectorError | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, transaction: Transaction) -> None:
        """Keep a transaction open by pings of its own lease; the first one comes at once.

        Raises ConfigError when there are too many, or after :meth:`close`.
        """
        with self._changed:
            if self._closed:
                raise ConfigError("this lease keeper is closed")
            if len(self._due) >= MAX_TRANSACTIONS:
                raise ConfigError(f"{MAX_TRANSACTIONS} transactions are kept open already: discard those that are done")
            self._due[transaction.id] = (time.monotonic(), transaction)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pravega-lease-keeper", daemon=True)
                self._thread.start()
            self._changed.notify()

    def discard(self, transaction: Transaction) -> None:
        """Ping a transaction no more; forget its failure, if it had one."""
        with self._changed:
            self._due.pop(transaction.id, None)
            self._failures.pop(transaction.id, None)

    @property
    def failures(self) -> dict[uuid.UUID, ConnectorError]:
        """The transactions that could be kept open no longer, and why."""
        with self._changed:
            return dict(self._failures)

    @property
    def trouble(self) -> ConnectorError | None:
        """The error of the last round, if no controller answered in it: leases are running out."""
        return self._trouble

    def check(self) -> None:
        """Raise the first failure, if there is one."""
        for error in self.failures.values():
            raise error

    def close(self) -> None:
        """Ping nothing more. The transactions stay open until their leases end."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def __enter__(self) -> LeaseKeeper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        while (transaction := self._next()) is not None:
            self._ping(transaction)

    def _next(self) -> Transaction | None:
        """Wait for the transaction that is due first; None when there is nothing to do any more."""
        with self._changed:
            while self._due:
                due, transaction = min(self._due.values(), key=lambda entry: entry[0])
                left = due - time.monotonic()
                if left <= 0:
                    return transaction
                self._changed.wait(left)
            self._thread = None
            return None

    def _ping(self, transaction: Transaction) -> None:
        pause = _RETRY
        failure: ConnectorError | None = None
        try:
            transaction.ping(timeout=_PING_SECONDS)
        except TransactionError as error:
            failure = error
        except ConnectorError as error:
            if self._trouble is None:
                _logger.warning(
                    "%r is not kept open, its lease of %g s runs: %s", transaction, transaction.lease, error
                )
            self._trouble = error
        except Exception as error:  # noqa: BLE001 - a bug must be reported, not end the thread in silence
            failure = ConnectorError(f"pinging {transaction} failed: {type(error).__name__}: {error}")
        else:
            if self._trouble is not None:
                _logger.warning("%r is kept open again", transaction)
            self._trouble = None
            pause = self._interval or ping_interval(transaction.lease)
        self._note(transaction, pause, failure)

    def _note(self, transaction: Transaction, pause: float, failure: ConnectorError | None) -> None:
        with self._changed:
            if transaction.id not in self._due:  # given back meanwhile
                return
            if failure is None:
                self._due[transaction.id] = (time.monotonic() + pause, transaction)
                return
            del self._due[transaction.id]
            if not isinstance(failure, TransactionCommittedError):  # then there is nothing left to keep
                self._failures[transaction.id] = failure
