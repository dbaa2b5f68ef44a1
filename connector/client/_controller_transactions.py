"""The controller's calls about transactions, and what their answers mean.

The controller answers a refusal, an id that it never had and trouble of its own with the same bare FAILURE, and an
answer can get lost. Neither is read as a decision: the state is asked until it tells, or the time is up.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from connector.client import _controller_calls as calls
from connector.client._controller_channel import Budget, Rpc
from connector.client._controller_event_time import check_millis
from connector.client._controller_messages import (
    decode_ranges,
    decode_transaction,
    stream_message,
    transaction_message,
)
from connector.client._proto import controller_pb2 as pb
from connector.client._transaction_status import CreatedTransaction, TransactionStatus, status_error
from connector.errors import (
    AuthenticationError,
    ConfigError,
    ControllerError,
    ControllerUnavailableError,
    LeaseRangeError,
    OutcomeUnknownError,
    StreamSealedError,
    TransactionCommittedError,
    TransactionError,
)
from connector.wire import SegmentRange, StreamName

__all__ = ["TransactionCalls"]

FIRST_POLL: Final = 0.02  # seconds between two looks at a state, doubled up to
LONGEST_POLL: Final = 0.25
MAX_LEASE_MS: Final = 2**63 - 1  # a Java long; the server's own bound is far below

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


_STATES: Final = {getattr(pb.TxnState, status.name): status for status in TransactionStatus}


class _Caller(Protocol):
    _timeout: float

    def _call(self, rpc: Rpc[Q, R], request: Q, target: StreamName | str | None, budget: Budget | None = None) -> R: ...

    def _current(self, stream: StreamName, budget: Budget) -> list[SegmentRange]: ...


class TransactionCalls:
    """The part of :class:`ControllerClient` that is about transactions."""

    def create_transaction(self: _Caller, stream: StreamName, lease_ms: int) -> CreatedTransaction:
        """Begin a transaction that stays open for ``lease_ms`` milliseconds, and longer with pings.

        Raises LeaseRangeError, StreamNotFoundError, StreamSealedError.
        """
        _check_lease(lease_ms)
        budget = Budget(self._timeout)
        request = pb.CreateTxnRequest(streamInfo=stream_message(stream), lease=lease_ms)
        try:
            response = self._call(calls.CREATE_TRANSACTION, request, stream, budget)
        except (AuthenticationError, ControllerUnavailableError):
            raise
        except ControllerError:
            # For a sealed stream it answers INTERNAL, as for any trouble of its own.
            if not self._current(stream, budget):
                raise StreamSealedError(f"stream {stream} is sealed; no transaction can be begun on it") from None
            raise
        return CreatedTransaction(decode_transaction(response.txnId), decode_ranges(response.activeSegments))

    def transaction_status(self: _Caller, stream: StreamName, transaction: uuid.UUID) -> TransactionStatus:
        """What became of a transaction; UNKNOWN also for a stream that does not exist."""
        request = transaction_message(stream, transaction)
        return _status(self._call(calls.TRANSACTION_STATE, request, stream))

    def ping_transaction(self: _Caller, stream: StreamName, transaction: uuid.UUID, lease_ms: int) -> None:
        """Let an open transaction stay so for ``lease_ms`` milliseconds from now; a lease can grow by this.

        Raises TransactionCommittedError, TransactionAbortedError, TransactionUnknownError, and LeaseRangeError: the
        lease it had before goes on then.
        """
        _check_lease(lease_ms)
        budget = Budget(self._timeout)
        request = pb.PingTxnRequest(
            streamInfo=stream_message(stream), txnId=transaction_message(stream, transaction).txnId, lease=lease_ms
        )
        pauses = _Pauses(budget)
        while (status := self._call(calls.PING_TRANSACTION, request, stream, budget).status) != pb.PingTxnStatus.OK:
            if status != pb.PingTxnStatus.DISCONNECTED:
                raise _ping_error(status, stream, transaction, lease_ms)
            if not pauses.wait():  # a controller that starts or stops; another one may have the transaction soon
                raise ControllerUnavailableError(
                    f"no controller kept transaction {transaction} of stream {stream} alive within {budget.seconds:g} s"
                )

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
        readers see the events, which ``wait`` waits for as long as there is time. Raises TransactionAbortedError,
        TransactionUnknownError, and OutcomeUnknownError when nothing could be learned within ``timeout`` seconds.
        """
        budget = Budget(self._timeout if timeout is None else timeout)
        wish = _COMMIT if noted is None else replace(_COMMIT, noted=(noted[0], check_millis(noted[1])))
        status = _settle(self, wish, stream, transaction, budget)
        if not status.is_committed:
            raise status_error(status, "commit", stream, transaction)
        pauses = _Pauses(budget)
        while wait and status is not TransactionStatus.COMMITTED and pauses.wait():
            status = _ask_status(self, stream, transaction, budget) or status
        return status

    def abort_transaction(
        self: _Caller, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        """Abort a transaction, from whichever process. Aborting it again changes nothing.

        On return it is decided: ABORTING or ABORTED. Raises TransactionCommittedError, TransactionUnknownError, and
        OutcomeUnknownError when nothing could be learned within ``timeout`` seconds.
        """
        budget = Budget(self._timeout if timeout is None else timeout)
        status = _settle(self, _ABORT, stream, transaction, budget)
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


class _Pauses:
    """Growing pauses within a budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._next = FIRST_POLL

    def wait(self) -> bool:
        """Wait for a moment; False, at once, when the time is up."""
        if self._budget.left() <= self._next:
            return False
        time.sleep(self._next)
        self._next = min(2 * self._next, LONGEST_POLL)
        return True


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
    caller: _Caller, wish: _Wish, stream: StreamName, transaction: uuid.UUID, budget: Budget
) -> TransactionStatus:
    """Ask for a commit or an abort until the transaction is no longer OPEN; its status then."""
    request = transaction_message(stream, transaction)
    if wish.noted is not None:
        request.writerId, request.timestamp = wish.noted
    pauses = _Pauses(budget)
    while True:
        trouble = "the controller answered with a failure"
        try:
            # Half of what is left: a controller that does not answer must leave time to ask for the state.
            answer = caller._call(wish.rpc, request, stream, Budget(budget.left() / 2))
            if answer.status == pb.TxnStatus.SUCCESS:
                return wish.decided
        except AuthenticationError:
            raise
        except ControllerError as error:
            trouble = error.message
        status = _ask_status(caller, stream, transaction, budget)
        if status is not None and status is not TransactionStatus.OPEN:
            return status
        if not pauses.wait():
            raise OutcomeUnknownError(
                f"whether transaction {transaction} of stream {stream} is {wish.done} could not be learned within "
                f"{budget.seconds:g} s ({trouble}); ask for its status, or {wish.action} it again"
            )


def _ask_status(
    caller: _Caller, stream: StreamName, transaction: uuid.UUID, budget: Budget
) -> TransactionStatus | None:
    """The status, or None when the controller does not tell."""
    try:
        return _status(caller._call(calls.TRANSACTION_STATE, transaction_message(stream, transaction), stream, budget))
    except AuthenticationError:
        raise
    except ControllerError:
        return None
