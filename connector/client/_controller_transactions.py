"""The controller's calls about transactions, and what their answers mean.

The controller answers a refusal, an id that it never had and trouble of its own with the same bare FAILURE, and an
answer can get lost. Neither is read as a decision: the state is asked until it tells, or the time is up.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from connector.client import _controller_calls as calls
from connector.client._controller_channel import Rpc
from connector.client._controller_event_time import check_millis
from connector.client._controller_messages import (
    decode_ranges,
    decode_transaction,
    stream_message,
    transaction_message,
)
from connector.client._deadline import Deadline
from connector.client._health import ClusterHealth
from connector.client._proto import controller_pb2 as pb
from connector.client._transaction_status import CreatedTransaction, TransactionStatus, status_error
from connector.errors import (
    AuthenticationError,
    ConfigError,
    ControllerError,
    ControllerFailureError,
    ControllerUnavailableError,
    LeaseRangeError,
    OutcomeUnknownError,
    StreamSealedError,
    TransactionCommittedError,
    TransactionError,
)
from connector.wire import SegmentRange, StreamName

__all__ = ["TransactionCalls"]

_logger: Final = logging.getLogger(__name__)
FIRST_POLL: Final = 0.02  # seconds between two looks at a state, doubled up to
LONGEST_POLL: Final = 0.25
MAX_LEASE_MS: Final = 2**63 - 1  # a Java long; the server's own bound is far below

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


_STATES: Final = {getattr(pb.TxnState, status.name): status for status in TransactionStatus}


class _Caller(Protocol):
    health: ClusterHealth

    def _call(
        self, rpc: Rpc[Q, R], request: Q, target: StreamName | str | None, deadline: Deadline | None = None
    ) -> R: ...

    def _current(self, stream: StreamName, deadline: Deadline | None) -> list[SegmentRange]: ...


class TransactionCalls:
    """The part of :class:`ControllerClient` that is about transactions."""

    def create_transaction(self: _Caller, stream: StreamName, lease_ms: int) -> CreatedTransaction:
        """Begin a transaction that stays open for ``lease_ms`` milliseconds, and longer with pings.

        Raises LeaseRangeError, StreamNotFoundError, StreamSealedError.
        """
        _check_lease(lease_ms)
        deadline = self.health.deadline()
        attempts = self.health.attempts(_logger, f"begin a transaction on stream {stream}", deadline)
        request = pb.CreateTxnRequest(streamInfo=stream_message(stream), lease=lease_ms)
        try:
            while True:
                try:
                    response = self._call(calls.CREATE_TRANSACTION, request, stream, deadline)
                    break
                except ControllerFailureError as error:
                    # For a sealed stream it answers INTERNAL, as for any trouble of its own.
                    if not self._current(stream, deadline):
                        raise StreamSealedError(
                            f"stream {stream} is sealed; no transaction can be begun on it"
                        ) from None
                    if not attempts.again(error):
                        raise
        finally:
            attempts.close()
        return CreatedTransaction(decode_transaction(response.txnId), decode_ranges(response.activeSegments))

    def transaction_status(
        self: _Caller, stream: StreamName, transaction: uuid.UUID, *, deadline: Deadline | None = None
    ) -> TransactionStatus:
        """What became of a transaction; UNKNOWN also for a stream that does not exist."""
        request = transaction_message(stream, transaction)
        return _status(self._call(calls.TRANSACTION_STATE, request, stream, deadline))

    def ping_transaction(
        self: _Caller, stream: StreamName, transaction: uuid.UUID, lease_ms: int, *, timeout: float | None = None
    ) -> None:
        """Let an open transaction stay so for ``lease_ms`` milliseconds from now; a lease can grow by this.

        Raises TransactionCommittedError, TransactionAbortedError, TransactionUnknownError, and LeaseRangeError: the
        lease it had before goes on then.
        """
        _check_lease(lease_ms)
        deadline = self.health.deadline(timeout)
        request = pb.PingTxnRequest(
            streamInfo=stream_message(stream), txnId=transaction_message(stream, transaction).txnId, lease=lease_ms
        )
        attempts = self.health.attempts(_logger, f"ping transaction {transaction} of stream {stream}", deadline)
        try:
            while (
                status := self._call(calls.PING_TRANSACTION, request, stream, deadline).status
            ) != pb.PingTxnStatus.OK:
                if status != pb.PingTxnStatus.DISCONNECTED:
                    raise _ping_error(status, stream, transaction, lease_ms)
                # A controller that starts or stops; another one may have the transaction soon.
                error = ControllerUnavailableError(
                    f"no controller kept transaction {transaction} of stream {stream} alive within "
                    f"{deadline.seconds:g} s"
                )
                if not attempts.again(error):
                    raise error
        finally:
            attempts.close()

    def commit_transaction(
        self: _Caller,
        stream: StreamName,
        transaction: uuid.UUID,
        noted: tuple[str, int] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> TransactionStatus:
        """Commit a transaction, from whichever process. Committing it again changes nothing.

        ``noted`` is the id of a writer and the event time that it has reached with this transaction (milliseconds).
        What was flushed into it by its writers is included. On return it is decided: COMMITTING, or COMMITTED once
        readers see the events, which ``wait`` waits for as long as there is time. Transactions that are COMMITTING at
        the same time become visible in any order, see :meth:`Transaction.commit`. Raises TransactionAbortedError,
        TransactionUnknownError, and OutcomeUnknownError when nothing could be learned within ``timeout`` seconds.
        """
        deadline = self.health.deadline(timeout)
        wish = _COMMIT if noted is None else replace(_COMMIT, noted=(noted[0], check_millis(noted[1])))
        status = _settle(self, wish, stream, transaction, deadline)
        if not status.is_committed:
            raise status_error(status, "commit", stream, transaction)
        pause = FIRST_POLL
        while wait and status is not TransactionStatus.COMMITTED and deadline.left > pause:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_POLL)
            status = _ask_status(self, stream, transaction, deadline) or status
        return status

    def abort_transaction(
        self: _Caller, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        """Abort a transaction, from whichever process. Aborting it again changes nothing.

        On return it is decided: ABORTING or ABORTED. Raises TransactionCommittedError, TransactionUnknownError, and
        OutcomeUnknownError when nothing could be learned within ``timeout`` seconds.
        """
        deadline = self.health.deadline(timeout)
        status = _settle(self, _ABORT, stream, transaction, deadline)
        if not status.is_aborted:
            raise status_error(status, "abort", stream, transaction)
        return status


def _check_lease(lease_ms: int) -> None:
    if not 0 < lease_ms <= MAX_LEASE_MS:
        raise ConfigError(f"a lease must be a positive number of milliseconds, not {lease_ms}")


def _status(answer: pb.TxnState) -> TransactionStatus:
    try:
        return _STATES[answer.state]
    except KeyError:  # of a newer server
        raise ControllerError(f"the controller answered the unknown transaction state {answer.state}") from None


def _ping_error(
    status: int, stream: StreamName, transaction: uuid.UUID, lease_ms: int
) -> TransactionError | ControllerError:
    statuses = pb.PingTxnStatus
    where = f"transaction {transaction} of stream {stream}"
    match status:
        case statuses.COMMITTED:
            return TransactionCommittedError(f"cannot ping {where}: it is committed, or about to be")
        case statuses.ABORTED:
            return status_error(TransactionStatus.ABORTED, "ping", stream, transaction)
        case statuses.UNKNOWN:
            return status_error(TransactionStatus.UNKNOWN, "ping", stream, transaction)
        case statuses.LEASE_TOO_LARGE:
            return LeaseRangeError(
                f"cannot ping {where}: a lease of {lease_ms / 1000:g} s is longer than the server allows "
                "(controller.transaction.lease.count.max, 600 s unless set otherwise)"
            )
        case statuses.MAX_EXECUTION_TIME_EXCEEDED | statuses.SCALE_GRACE_TIME_EXCEEDED:
            return LeaseRangeError(
                f"cannot ping {where}: another {lease_ms / 1000:g} s would be more than its whole life may last "
                "(1,000 times its first lease, and a day at most); commit it before its present lease ends"
            )
        case _:
            return ControllerError(f"cannot ping {where}: the controller answered status {status}")


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is wanted of a transaction, and the status that it has as soon as that is decided."""

    rpc: Rpc[pb.TxnRequest, pb.TxnStatus]
    action: str
    done: str
    decided: TransactionStatus
    noted: tuple[str, int] | None = None  # a writer, and the event time that a commit brings it to


_COMMIT: Final = _Wish(calls.COMMIT_TRANSACTION, "commit", "committed", TransactionStatus.COMMITTING)
_ABORT: Final = _Wish(calls.ABORT_TRANSACTION, "abort", "aborted", TransactionStatus.ABORTING)


def _settle(
    caller: _Caller, wish: _Wish, stream: StreamName, transaction: uuid.UUID, deadline: Deadline
) -> TransactionStatus:
    """Ask for a commit or an abort until the transaction is no longer OPEN; its status then."""
    request = transaction_message(stream, transaction)
    if wish.noted is not None:
        request.writerId, request.timestamp = wish.noted
    attempts = caller.health.attempts(_logger, f"{wish.action} transaction {transaction} of stream {stream}", deadline)
    try:
        while True:
            try:
                # Half of what is left: a controller that does not answer must leave time to ask for the state.
                answer = caller._call(wish.rpc, request, stream, Deadline(deadline.left / 2))
                if answer.status == pb.TxnStatus.SUCCESS:
                    return wish.decided
                trouble = ControllerFailureError("the controller answered with a failure")
            except AuthenticationError:
                raise
            except ControllerError as error:
                trouble = ControllerFailureError(error.message)
            status = _ask_status(caller, stream, transaction, deadline)
            if status is not None and status is not TransactionStatus.OPEN:
                return status
            if not attempts.again(trouble):
                raise OutcomeUnknownError(
                    f"whether transaction {transaction} of stream {stream} is {wish.done} could not be learned within "
                    f"{deadline.seconds:g} s ({trouble.message}); ask for its status, or {wish.action} it again"
                )
    finally:
        attempts.close()


def _ask_status(
    caller: _Caller, stream: StreamName, transaction: uuid.UUID, deadline: Deadline
) -> TransactionStatus | None:
    """The status, or None when the controller does not tell."""
    try:
        return _status(
            caller._call(calls.TRANSACTION_STATE, transaction_message(stream, transaction), stream, deadline)
        )
    except AuthenticationError:
        raise
    except ControllerError:
        return None
