"""Transactions: events that become visible together or never, and keep-alive pings in the background.

A transaction's events are in separate segments, next to those of the stream, until a commit merges them. Another
process needs only the id to commit or abort it. (Java: ``TransactionalEventStreamWriter``.)
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
import uuid
import weakref
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector import metrics
from pravega_connector.core import arguments, io
from pravega_connector.core.connection import ProcessBound
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.events import SupportsSerialize
from pravega_connector.core.values import CreatedTransaction, TransactionStatus, status_error
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    SegmentStoreError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionError,
    TransactionExpiredError,
    WrongHostError,
)
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import SegmentRange, StreamName, segment_epoch, segment_id, segment_number
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.routing import TransactionDestination
from pravega_serde import after_fork
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient

T = TypeVar("T")
# Seconds: the longest that a server allows unless told otherwise (controller.transaction.lease.count.max).
DEFAULT_LEASE: Final = 600.0
# For aborting what has failed: not worth a wait, since its lease ends it as well.
_GIVE_UP_SECONDS: Final = 5.0
# More than any application keeps open at once; a list that grows beyond was never cleared.
MAX_TRANSACTIONS: Final = 10_000
# Seconds until the next round after one without an answer of a controller: leases continue to run.
_RETRY: Final = 1.0
_SHORTEST_INTERVAL: Final = 0.1
# Seconds for one ping, of all its attempts: the others are due as well.
_PING_SECONDS: Final = 5.0
_logger: Final = logging.getLogger(__name__)


def lease_ms(lease: float) -> int:
    """Return a lease in seconds as the controller's milliseconds. Raises ConfigError."""
    arguments.seconds("lease", lease, optional=False)
    return max(1, round(lease * 1000))


@dataclass(slots=True)
class _Lease:
    """Lease of a transaction, as far as this process knows it, and the errors that follow from its end."""

    stream: StreamName
    transaction: uuid.UUID
    seconds: float
    end: float = math.inf  # monotonic seconds before which it cannot have ended; unknown for another object's

    def explained(self, error: TransactionError) -> TransactionError:
        """Return the error with the reason that only this process knows: if the lease can have expired."""
        if not isinstance(error, TransactionAbortedError) or time.monotonic() < self.end:
            return error
        return TransactionExpiredError(
            f"transaction {self.transaction} of stream {self.stream} was aborted when its lease of {self.seconds:g} s "
            "ended, and its events were deleted: ping it in time (LeaseKeeper), or use a longer lease"
        )

    def ended(self, controller: ControllerClient, error: SegmentStoreError, deadline: Deadline) -> ConnectorError:
        """Return the error for a segment of the transaction that a store reports as sealed or missing."""
        status = controller.transaction_status(self.stream, self.transaction, deadline=deadline)
        if status is TransactionStatus.OPEN:
            return WrongHostError(f"{error.message}, reports a segment store, but the transaction is open")
        return self.explained(status_error(status, "write to", self.stream, self.transaction))


class Transaction(HintedNames):
    """A transaction of any process, known by its id. Thread safe; it holds no connection."""

    def __init__(
        self,
        controller: ControllerClient,
        stream: StreamName,
        transaction: uuid.UUID,
        lease: float = DEFAULT_LEASE,
        writer_id: str | None = None,
    ) -> None:
        """``writer_id`` is the name under which a commit notes event time."""
        self.id = transaction
        self.stream = stream
        self.lease = lease
        self.writer_id = writer_id
        self._controller = controller
        self._lease = _Lease(stream, transaction, lease)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stream}, {self.id})"

    @property
    def lease_left(self) -> float:
        """Lower bound of the seconds until its lease expires; 0 if another object began it."""
        return 0.0 if self._lease.end == math.inf else max(0.0, self._lease.end - time.monotonic())

    def status(self) -> TransactionStatus:
        """Return the status of the transaction."""
        return self._controller.transaction_status(self.stream, self.id)

    def ping(self, lease: float | None = None, *, timeout: float | None = None) -> None:
        """Keep it open for ``lease`` seconds from now, by default its own lease. ``timeout`` is in seconds.

        Raises TransactionCommittedError, TransactionAbortedError, TransactionUnknownError, LeaseRangeError.
        """
        seconds, asked = self.lease if lease is None else lease, time.monotonic()
        try:
            self._controller.ping_transaction(self.stream, self.id, lease_ms(seconds), timeout=timeout)
        except TransactionError as error:
            raise self._lease.explained(error) from None
        if self._lease.end < math.inf:
            self._lease.end = asked + seconds

    def commit(
        self, timestamp: int | None = None, *, wait: bool = True, timeout: float | None = None
    ) -> TransactionStatus:
        """Commit the transaction: its events become visible. Committing it again has no effect.

        ``timestamp`` notes an event time, as :meth:`EventWriter.note_time` does: the writer's events up to those of
        this transaction are of that time or before. It takes effect with the commit, unless an earlier time was noted
        later. It requires a ``writer_id``; otherwise it raises ConfigError.

        The result is COMMITTED, which is visible, or COMMITTING, if the server needs more than ``timeout`` seconds or
        ``wait`` is False. The outcome is decided in both cases. Readers see a COMMITTING transaction later, in any
        order with other such transactions. The order per segment is certain only between a transaction that was
        COMMITTED and one whose commit is requested after that. (The controller passes up to 100 COMMITTING transactions
        to the segment stores at once, which merge them in parallel: ``CommitRequestHandler``, ``mergeSegmentsBatch``.)

        Raises TransactionAbortedError, TransactionExpiredError, TransactionUnknownError, OutcomeUnknownError.
        """
        noted = None if timestamp is None else self._noted(timestamp)
        try:
            return self._controller.commit_transaction(self.stream, self.id, noted, wait=wait, timeout=timeout)
        except TransactionError as error:
            raise self._lease.explained(error) from None

    def _noted(self, timestamp: int) -> tuple[str, int]:
        arguments.millis("timestamp", timestamp)
        if self.writer_id is None:
            raise ConfigError(
                f"transaction {self.id} of stream {self.stream} cannot note a time without a writer_id: set writer_id"
            )
        return self.writer_id, timestamp

    def abort(self, *, timeout: float | None = None) -> TransactionStatus:
        """Abort the transaction: its events are deleted. Aborting it again has no effect.

        Raises TransactionCommittedError, TransactionUnknownError, OutcomeUnknownError.
        """
        return self._controller.abort_transaction(self.stream, self.id, timeout=timeout)


class OpenTransaction(Transaction, ProcessBound, Generic[T]):
    """A transaction that accepts events. As a context manager it commits at the end, or aborts on an error.

    An object from :meth:`TransactionalWriter.join` leaves it open at the end. After an error it has written an unknown
    part of its events, so do not commit the transaction then.

    Thread safe, with one background thread until it is committed, aborted or detached. Its events keep their order per
    routing key, and a lost connection neither loses nor repeats events, as with an EventWriter. If it is garbage
    collected before, it emits a ResourceWarning and stays open until its lease expires.
    """

    def __init__(
        self,
        stores: SegmentStores,
        stream: StreamName,
        created: CreatedTransaction,
        serializer: SupportsSerialize[T],
        *,
        lease: float,
        lease_end: float,
        writer_id: str,
        joined: bool = False,
        **options: Any,
    ) -> None:
        """With ``joined``, another object has begun it: the end of a ``with`` block leaves it open."""
        super().__init__(stores.controller, stream, created.id, lease, writer_id)
        self._joined = joined
        self._segment = min(segment_number(segment.id) for segment in created.segments)
        self._lease.end = lease_end
        self._finished = False  # nothing is left to flush
        self._aborted = False
        ended = partial(self._lease.ended, stores.controller)
        self.destination = TransactionDestination(stream, created.id, created.segments, ended)
        self._writer = EventWriter(stores, stream, serializer, destination=self.destination, **options)
        metrics.TRANSACTIONS_OPEN.add(1, str(stream))
        self._counted = weakref.finalize(self, metrics.TRANSACTIONS_OPEN.add, -1, str(stream))
        self._counted.atexit = False
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._counted.detach()
        self._finished = self._writer = self._controller = after_fork.inherited(repr(self))

    def write(self, value: T, routing_key: str | None = None, *, key: object = None) -> None:
        """Write one event, as :meth:`EventWriter.write` does. Raises also if the transaction has ended."""
        self._writer.write(value, routing_key, key=key)

    @property
    def segment_number(self) -> int:
        """Number of a segment of the stream. A stream that is recreated under this name has other numbers."""
        return self._segment

    @property
    def is_free(self) -> bool:
        """Return True if a write does not wait now."""
        return self._writer.is_free

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, as :meth:`EventWriter.write_batch` does.

        Raises also if the transaction has ended.
        """
        self._writer.write_batch(batch)

    def write_column(self, events: pa.Array, routing_keys: pa.Array | None = None) -> None:
        """Write a column of events, as :meth:`EventWriter.write_column` does.

        Raises also if the transaction has ended.
        """
        self._writer.write_column(events, routing_keys)

    def write_frames(self, data: memoryview, ends: npt.NDArray[np.int64], position: float) -> None:
        """Write events in the form that they have in a segment, as :meth:`EventWriter.write_frames` does.

        Raises also if the transaction has ended.
        """
        self._writer.write_frames(data, ends, position)

    def flush(self, timeout: float | None = None) -> None:
        """Return when all events written before are durable in the transaction: a later commit includes them.

        Raises TransactionAbortedError, TransactionExpiredError, TransactionCommittedError, DeadlineExceededError.
        """
        self._writer.flush(timeout)

    def detach(self) -> None:
        """Accept no more events, flush, and end the background thread.

        The transaction stays open for holders of its id.

        After a DeadlineExceededError you can retry. After any other error the transaction has ended.
        """
        if self._finished:
            self._writer.abandon()  # which an interrupt may have left
            return
        try:
            self._writer.finish()
        except TransactionError:
            self._end()
            raise
        self._end()

    def commit(
        self, timestamp: int | None = None, *, wait: bool = True, timeout: float | None = None
    ) -> TransactionStatus:
        """Flush, and commit the transaction; see :meth:`Transaction.commit`.

        If the flush fails, nothing is committed. After a DeadlineExceededError you can retry.
        """
        arguments.number("timeout", timeout)
        if timestamp is not None:
            self._noted(timestamp)  # raises before the transaction is detached
        self.detach()
        return super().commit(timestamp, wait=wait, timeout=timeout)

    def abort(self, *, timeout: float | None = None) -> TransactionStatus:
        """Abort the transaction; see :meth:`Transaction.abort`."""
        arguments.number("timeout", timeout)
        self._aborted = True
        self.destination.aborted = self.destination.aborted or not self._finished
        self._end()
        return super().abort(timeout=timeout)

    def __enter__(self) -> OpenTransaction[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._joined:
            if kind is None and not self._aborted:
                self.detach()
            else:
                self._end()
        elif kind is not None:
            self._give_up()
        elif not self._aborted:
            try:
                self.detach()
            except BaseException:
                self._give_up()
                raise
            self.commit()

    def _give_up(self) -> None:
        """Abort because of an error, which stays the one to raise.

        A transaction that cannot be aborted ends with its lease.
        """
        with contextlib.suppress(PravegaError):
            self.abort(timeout=_GIVE_UP_SECONDS)

    def _end(self) -> None:
        if not self._finished:
            self._finished = True
            self._counted()
        self._writer.abandon()


def _parents(stores: SegmentStores, stream: StreamName, transaction: uuid.UUID) -> list[SegmentRange]:
    """Return the parents of a transaction's segments.

    The first 32 bits of the id are the epoch in which it was begun (NameUtils.getEpoch). If it was begun in a copy of
    that epoch, which the commit of an older transaction creates, all names have the number of the epoch.
    """
    epoch = transaction.int >> 96
    ranges = stores.controller.epoch_segments(stream, epoch)
    kept = next((each for each in ranges if segment_epoch(each.id) != epoch), None)
    if kept is None or stores.has_transaction_segment(stream, kept.id, transaction):
        return ranges
    return [SegmentRange(segment_id(segment_number(each.id), epoch), each.low, each.high) for each in ranges]


class TransactionalWriter(HintedNames, Generic[T]):
    """Factory of transactions on one stream. Thread safe; it holds no connection."""

    def __init__(
        self,
        stores: SegmentStores,
        stream: StreamName,
        serializer: SupportsSerialize[T],
        *,
        lease: float = DEFAULT_LEASE,
        writer_id: str | None = None,
        **options: Any,
    ) -> None:
        """``writer_id`` is the name under which its commits note time; ``options`` are those of EventWriter."""
        self.stream = stream
        self.lease = lease
        self.writer_id = writer_id or str(uuid.uuid4())
        self._lease_ms = lease_ms(lease)
        self._stores, self._serializer, self._options = stores, serializer, options

    def begin(self) -> OpenTransaction[T]:
        """Begin a transaction. Raises LeaseRangeError, StreamNotFoundError, StreamSealedError."""
        # From before the call, so that it is not later than the server's.
        lease_end = time.monotonic() + self.lease
        created = self._stores.controller.create_transaction(self.stream, self._lease_ms)
        return OpenTransaction(
            self._stores,
            self.stream,
            created,
            self._serializer,
            lease=self.lease,
            lease_end=lease_end,
            writer_id=self.writer_id,
            **self._options,
        )

    def join(self, transaction: uuid.UUID) -> OpenTransaction[T]:
        """Return an open transaction that any process has begun, to write to it as well (Java's ``getTxn``).

        Several processes may write at the same time. Each must :meth:`OpenTransaction.flush` or leave its ``with``
        block before one of them commits, because a commit includes only durable events. Events of one routing key keep
        the order of each process. No pings are sent: see :class:`LeaseKeeper`.

        Raises TransactionCommittedError, TransactionAbortedError, TransactionUnknownError if it is not open.
        """
        arguments.instance("transaction", transaction, uuid.UUID, "transaction.id, uuid.UUID(text)", optional=False)
        controller = self._stores.controller
        status = controller.transaction_status(self.stream, transaction)
        if status is not TransactionStatus.OPEN:
            raise status_error(status, "write to", self.stream, transaction)
        return OpenTransaction(
            self._stores,
            self.stream,
            CreatedTransaction(transaction, _parents(self._stores, self.stream, transaction)),
            self._serializer,
            lease=self.lease,
            lease_end=math.inf,
            writer_id=self.writer_id,
            joined=True,
            **self._options,
        )

    def close(self) -> None:
        """Let watermarks no longer wait for this writer. Open transactions stay open."""
        self._stores.controller.remove_writer(self.stream, self.writer_id)

    def __enter__(self) -> TransactionalWriter[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
            return
        with contextlib.suppress(ConnectorError):  # the error is the one to be seen
            self.close()


def ping_interval(lease: float) -> float:
    """Return the seconds between pings, as in Java's ``Pinger``: 3 pings in a lease of 10 s, 24 in one of 600 s."""
    return max(_SHORTEST_INTERVAL, lease / max(1.0, math.sqrt(lease)))


_OF_A_TRANSACTION: Final = "client.transaction(stream, id)"


class LeaseKeeper(ProcessBound):
    """Keeps transactions open with pings. Thread safe; one daemon thread while it has any.

    A transaction that cannot be kept open is dropped, and :meth:`check` raises its error. Its events are lost, so check
    before you rely on it. If a controller does not answer, the keeper retries sooner.
    """

    def __init__(self, interval: float | None = None) -> None:
        """``interval`` is the number of seconds between two pings; the default depends on the transaction's lease."""
        if interval is not None and not interval > 0:
            raise ConfigError(f"the interval must be a positive number of seconds, not {interval!r}")
        self._interval = interval
        self._changed = io.condition()
        self._due: dict[uuid.UUID, tuple[float, Transaction]] = {}  # when (monotonic) to ping
        self._failures: dict[uuid.UUID, ConnectorError] = {}
        self._trouble: ConnectorError | None = None
        self._thread: io.Worker | None = None
        self._closed = False
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._changed = after_fork.inherited("LeaseKeeper")

    def add(self, transaction: Transaction) -> None:
        """Keep a transaction open for its lease with pings.

        The first ping follows an interval after the begin of the transaction, or at once if another object began it.
        Raises ConfigError for too many transactions, or after :meth:`close`.
        """
        arguments.instance("transaction", transaction, Transaction, _OF_A_TRANSACTION, optional=False)
        with self._changed:
            if self._closed:
                raise ConfigError("this lease keeper is closed")
            if len(self._due) >= MAX_TRANSACTIONS:
                raise ConfigError(
                    f"{MAX_TRANSACTIONS} transactions are already kept open: discard the finished transactions"
                )
            wait = self._pause(transaction) - max(0.0, transaction.lease - transaction.lease_left)
            self._due[transaction.id] = (time.monotonic() + max(0.0, wait), transaction)
            if self._thread is None:
                self._thread = io.start(self._run, "pravega-lease-keeper")
            self._changed.notify_all()

    def discard(self, transaction: Transaction) -> None:
        """Stop the pings of a transaction and drop its failure."""
        arguments.instance("transaction", transaction, Transaction, _OF_A_TRANSACTION, optional=False)
        with self._changed:
            self._due.pop(transaction.id, None)
            self._failures.pop(transaction.id, None)

    @property
    def failures(self) -> dict[uuid.UUID, ConnectorError]:
        """Transactions that could not be kept open, with their errors."""
        with self._changed:
            return dict(self._failures)

    @property
    def trouble(self) -> ConnectorError | None:
        """Error of the last round if no controller answered, so that leases may expire; otherwise None."""
        return self._trouble

    def check(self) -> None:
        """Raise the first failure, if any."""
        for error in self.failures.values():
            raise error

    def close(self) -> None:
        """Stop all pings. The transactions stay open until their leases expire."""
        if after_fork.is_inherited(self._changed):
            return
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify_all()
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
        """Wait for the transaction that is due first; None if no transaction is left."""
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
                    "keep-alive of %r fails, its lease of %g s is running: %s", transaction, transaction.lease, error
                )
            self._trouble = error
        except Exception as error:  # noqa: BLE001 - a bug must be reported, not end the thread in silence
            failure = ConnectorError(f"pinging {transaction} failed: {type(error).__name__}: {error}")
        else:
            if self._trouble is not None:
                _logger.warning("keep-alive of %r has recovered", transaction)
            self._trouble = None
            pause = self._pause(transaction)
        self._note(transaction, pause, failure)

    def _pause(self, transaction: Transaction) -> float:
        return self._interval or ping_interval(transaction.lease)

    def _note(self, transaction: Transaction, pause: float, failure: ConnectorError | None) -> None:
        with self._changed:
            if transaction.id not in self._due:  # discarded in the meantime
                return
            if failure is None:
                self._due[transaction.id] = (time.monotonic() + pause, transaction)
                return
            del self._due[transaction.id]
            if not isinstance(failure, TransactionCommittedError):  # then there is nothing left to keep
                self._failures[transaction.id] = failure
