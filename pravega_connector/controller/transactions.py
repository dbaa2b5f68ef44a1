"""Calls about transactions, and the wait until a commit is visible."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from typing import Final

from pravega_connector import metrics
from pravega_connector.config import PravegaConfig
from pravega_connector.controller import methods
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.segments import SegmentCalls
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.core.values import CreatedTransaction, TransactionStatus, status_error
from pravega_connector.errors import (
    AuthenticationError,
    ConfigError,
    ConnectorError,
    ControllerError,
    ControllerFailureError,
    ControllerUnavailableError,
    OutcomeUnknownError,
    StreamSealedError,
)
from pravega_connector.wire import StreamName

_logger: Final = logging.getLogger(__name__)
# Seconds of COMMITTING after which a commit is requested again, and the timeout of that. Usually it takes 40 ms.
_ASK_AGAIN: Final = 5.0
_ASK_SECONDS: Final = 5.0
#: As _ASK_AGAIN if leftovers are likely: each request removes one of them.
SOON: Final = 1.0
# Seconds after which any client may have requested a commit twice. Usually it takes 10 ms.
_SLOW_COMMIT: Final = 1.0
# Seconds before the first poll of a commit, which is usually visible after about 40 ms.
_COMMIT_PAUSE: Final = 0.01

# Number of further polls after a commit without an answer, if the status is UNKNOWN, and seconds before each. During a
# failover, the controller may read the records from a segment store that has lost them.
_UNKNOWN_POLLS: Final = 3
_UNKNOWN_PAUSE: Final = 1.0


class TransactionCalls(SegmentCalls):
    """Calls about the transactions of a stream."""

    def __init__(self, config: PravegaConfig, health: ClusterHealth) -> None:
        super().__init__(config, health)
        self._orderly: set[StreamName] = set()

    def create_transaction(self, stream: StreamName, lease_ms: int) -> CreatedTransaction:
        """Begin a transaction that stays open for ``lease_ms`` milliseconds. Pings prolong it.

        Raises LeaseRangeError, StreamNotFoundError, StreamSealedError.
        """
        request = pb.CreateTxnRequest(streamInfo=methods.stream_message(stream), lease=methods.check_lease(lease_ms))
        deadline = self.health.deadline()
        with self.health.attempts(_logger, f"begin a transaction on stream {stream}", deadline) as attempts:
            while True:
                try:
                    response = self._call(methods.CREATE_TRANSACTION, request, stream, deadline)
                    break
                except ControllerFailureError as error:
                    # For a sealed stream it answers INTERNAL, as for any internal failure.
                    if not self.current_segments(stream, deadline=deadline):
                        raise StreamSealedError.of(stream) from None
                    attempts.again(error)
        metrics.TRANSACTIONS.add(1, "begun", str(stream))
        return CreatedTransaction(
            methods.decode_transaction(response.txnId), methods.decode_ranges(response.activeSegments)
        )

    def transaction_status(
        self, stream: StreamName, transaction: uuid.UUID, *, deadline: Deadline | None = None
    ) -> TransactionStatus:
        """Return the status of a transaction. It is UNKNOWN also for a stream that does not exist."""
        request = methods.transaction_message(stream, transaction)
        return methods.decode_status(self._call(methods.TRANSACTION_STATE, request, stream, deadline))

    def ping_transaction(
        self, stream: StreamName, transaction: uuid.UUID, lease_ms: int, *, timeout: float | None = None
    ) -> None:
        """Keep an open transaction open for ``lease_ms`` milliseconds from now. A ping can prolong the lease.

        Raises TransactionCommittedError, TransactionAbortedError, TransactionUnknownError, and LeaseRangeError. After a
        LeaseRangeError, the earlier lease stays in effect.
        """
        request = methods.ping_message(stream, transaction, lease_ms)
        deadline = self.health.deadline(timeout)
        with self.health.attempts(_logger, f"ping transaction {transaction} of stream {stream}", deadline) as attempts:
            while (
                status := self._call(methods.PING_TRANSACTION, request, stream, deadline).status
            ) != pb.PingTxnStatus.OK:
                if status != pb.PingTxnStatus.DISCONNECTED:
                    raise methods.ping_error(status, stream, transaction, lease_ms)
                # The controller starts or stops. Another one may take the transaction over soon.
                attempts.again(
                    ControllerUnavailableError(
                        f"no controller kept transaction {transaction} of stream {stream} alive within "
                        f"{deadline.seconds:g} s"
                    )
                )

    def commit_transaction(
        self,
        stream: StreamName,
        transaction: uuid.UUID,
        noted: tuple[str, int] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> TransactionStatus:
        """Commit a transaction from any process. Committing it again changes nothing.

        ``noted`` is the id of a writer and the event time, in milliseconds, that it has reached with this transaction.
        The commit includes all events that its writers have flushed. On return it is decided: COMMITTING, or COMMITTED
        once readers see the events. With ``wait``, the call waits for COMMITTED within its time. Transactions that are
        COMMITTING at the same time become visible in any order, see :meth:`Transaction.commit`. Raises
        TransactionAbortedError, TransactionUnknownError, and OutcomeUnknownError if the outcome is unknown after
        ``timeout`` seconds.
        """
        deadline, began = self.health.deadline(timeout), time.monotonic()
        status = self._commit(stream, transaction, noted, deadline)
        if wait:
            status = self._seen(status, CommitWatch(self, stream), transaction, deadline)
        metrics.TRANSACTIONS.add(1, "committed", str(stream))
        metrics.OPERATION_SECONDS.record(time.monotonic() - began, "commit", str(stream))
        return status

    def _commit(
        self, stream: StreamName, transaction: uuid.UUID, noted: tuple[str, int] | None, deadline: Deadline
    ) -> TransactionStatus:
        """Request a commit until it is decided, without counting it. Return COMMITTING or COMMITTED."""
        request, began = methods.transaction_message(stream, transaction, noted), time.monotonic()
        status = self._decide(TransactionStatus.COMMITTING, request, stream, transaction, deadline)
        if time.monotonic() - began > _SLOW_COMMIT:
            self._orderly.discard(stream)
        if not status.is_committed:
            raise status_error(status, "commit", stream, transaction)
        return status

    def repeat_commit(
        self, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        """Request a decided commit again, without counting another one.

        Otherwise as :meth:`commit_transaction`.
        """
        return self._commit(stream, transaction, None, self.health.deadline(timeout))

    @staticmethod
    def _seen(
        status: TransactionStatus, watch: CommitWatch, transaction: uuid.UUID, deadline: Deadline
    ) -> TransactionStatus:
        """Return the status of a decided transaction: COMMITTED if it is visible by the deadline."""
        polls = Polls(deadline, first=_COMMIT_PAUSE)
        while status is not TransactionStatus.COMMITTED and polls.again():
            try:
                status = watch.status(transaction, deadline)
            except AuthenticationError:
                raise
            except ControllerError:
                continue
        return status

    def commits_in_order(self, stream: StreamName) -> bool:
        """Return True if several transactions may be committed concurrently, as far as this client knows.

        A controller may have leftovers in its order of commits (see :class:`CommitWatch`). Then committing one
        transaction at a time is harmless and removes them. Of several concurrent commits it would drop some, which stay
        COMMITTING permanently. So the result is False at first, and after a slow commit, until :meth:`note_order` is
        called.
        """
        return stream in self._orderly

    def note_order(self, stream: StreamName) -> None:
        """Record that a transaction of the stream became visible while no other one was committed."""
        self._orderly.add(stream)

    def abort_transaction(
        self, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        """Abort a transaction from any process. Aborting it again changes nothing.

        On return it is decided: ABORTING or ABORTED. Raises TransactionCommittedError, TransactionUnknownError, and
        OutcomeUnknownError if the outcome is unknown after ``timeout`` seconds.
        """
        request, deadline = methods.transaction_message(stream, transaction), self.health.deadline(timeout)
        status = self._decide(TransactionStatus.ABORTING, request, stream, transaction, deadline)
        if not status.is_aborted:
            raise status_error(status, "abort", stream, transaction)
        metrics.TRANSACTIONS.add(1, "aborted", str(stream))
        return status

    def _decide(
        self,
        wish: TransactionStatus,
        request: pb.TxnRequest,
        stream: StreamName,
        transaction: uuid.UUID,
        deadline: Deadline,
    ) -> TransactionStatus:
        """Request COMMITTING or ABORTING until the transaction has left OPEN, and return its status.

        The controller answers a refusal, an unknown id and an internal failure with the same FAILURE, and an answer can
        be lost. Neither counts as a decision: the status is polled until it is known, or the deadline has passed. The
        request is repeated only while the status is OPEN. The reason is a commit that is sent while an earlier one is
        still running, for minutes during a segment store failover. Then the controller keeps two entries in its order
        of commits, and the second makes it drop a later commit.
        """
        commits = wish is TransactionStatus.COMMITTING
        rpc, action = (methods.COMMIT_TRANSACTION, "commit") if commits else (methods.ABORT_TRANSACTION, "abort")
        what = f"transaction {transaction} of stream {stream}"

        def unknown(trouble: ConnectorError) -> OutcomeUnknownError:
            after = "" if isinstance(trouble, ConfigError) else f" after {deadline.seconds:g} s"
            return OutcomeUnknownError(
                f"whether {what} is {'committed' if commits else 'aborted'} is unknown{after} ({trouble.message}); "
                f"query its status, or {action} it again"
            )

        self._channel.check_open()
        with self.health.attempts(_logger, f"{action} {what}", deadline) as attempts:
            while True:
                polls_left = 0  # number of UNKNOWN answers that are not trusted
                try:
                    # Half of the time left: an unresponsive controller must leave time to poll the status.
                    answer = self._call(rpc, request, stream, Deadline(deadline.left / 2))
                    if answer.status == pb.TxnStatus.SUCCESS:
                        return wish
                    trouble = ControllerFailureError("the controller answered with a failure")
                except AuthenticationError:
                    raise
                except ControllerError as error:
                    trouble = ControllerFailureError(error.message)
                    polls_left = _UNKNOWN_POLLS if commits else 0
                except ConfigError as closed:
                    raise unknown(closed) from None
                status = None
                while status is not TransactionStatus.OPEN:
                    try:
                        status = self.transaction_status(stream, transaction, deadline=deadline)
                    except AuthenticationError:
                        raise
                    except ControllerError as error:
                        trouble = ControllerFailureError(error.message)
                        attempts.again(trouble, unknown(trouble))
                        continue
                    except ConfigError as closed:
                        raise unknown(closed) from None
                    if status is TransactionStatus.UNKNOWN and polls_left:
                        polls_left -= 1
                        deadline.pause(_UNKNOWN_PAUSE)
                    elif status is not TransactionStatus.OPEN:
                        return status
                attempts.again(trouble, unknown(trouble))


class CommitWatch:
    """Poller of a stream's transactions until their commits are visible. Thread safe.

    A commit that was requested twice, in a failover, can leave an entry in the controller's order of commits that
    outlives the transaction. The next commit request then removes that entry and commits nothing
    (``PersistentStreamBase.processTransactionsInEpoch``). Its transaction stays COMMITTING until the commit is
    requested again, which changes nothing else. So the watch requests it again if the transaction was COMMITTING for
    ``ask_again`` seconds.
    """

    def __init__(self, controller: TransactionCalls, stream: StreamName, *, ask_again: float | None = None) -> None:
        self._controller, self._stream = controller, stream
        self._ask_again = _ASK_AGAIN if ask_again is None else ask_again
        self._asked: dict[uuid.UUID, float] = {}  # monotonic seconds

    def status(self, transaction: uuid.UUID, deadline: Deadline | None = None) -> TransactionStatus:
        """Return the status of a transaction as :meth:`TransactionCalls.transaction_status` does."""
        status = self._controller.transaction_status(self._stream, transaction, deadline=deadline)
        if status is not TransactionStatus.COMMITTING:
            self._asked.pop(transaction, None)
            return status
        now = time.monotonic()
        if now - self._asked.setdefault(transaction, now) < self._ask_again:
            return status
        self._asked[transaction] = now
        note = f"transaction {transaction} of stream {self._stream} is not visible yet: its commit is requested again"
        self._controller.health.count("repeated_commits", _logger, note)
        # The decision is known; the next poll shows the rest.
        with contextlib.suppress(ControllerError, OutcomeUnknownError):
            left = _ASK_SECONDS if deadline is None else min(_ASK_SECONDS, deadline.left)
            self._controller.repeat_commit(self._stream, transaction, timeout=left)
        return status
