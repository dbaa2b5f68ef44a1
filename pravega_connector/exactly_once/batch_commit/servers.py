"""Calls that the machine asks for, side by side where they may be, and the event time that is noted after a batch."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pravega_connector.core.deadline import Deadline, Looks
from pravega_connector.core.io import in_background, side_by_side
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import (
    ConnectorError,
    DeadlineExceededError,
    LeaseRangeError,
    OutcomeUnknownError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionUnknownError,
)
from pravega_connector.exactly_once.batch_commit.entries import Part
from pravega_connector.exactly_once.batch_commit.machine import Ask, Commit, Request
from pravega_connector.exactly_once.batch_commit.state import Ledger
from pravega_connector.exactly_once.batch_commit.table import Phase
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import StreamName

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient
    from pravega_connector.stores.segment_stores import SegmentStores

_log: Final = logging.getLogger(__name__)
#: Calls that are under way at once: a controller works on one transaction of a stream after the other anyway.
MAX_CALLS: Final = 16
#: A ping that was answered this part of a lease ago is not repeated: the machine pings before and after it records.
_FRESH: Final = 0.1
#: Phases in which something is awaited, and what is done before the next look.
_LOOKS: Final = {Phase.AWAIT: Phase.PING_OWN, Phase.AWAIT_COMMIT: Phase.PING_RECORDED}
#: Seconds between two looks at transactions that are being committed: mostly that takes some 40 ms.
_FIRST_PAUSE: Final = 0.005
#: Seconds in which a commit that is decided is carried out, unless the servers have other trouble.
_VISIBLE_SECONDS: Final = 15.0


class Servers:
    """The servers as the machine sees them: transactions of one stream, and its ledger."""

    def __init__(
        self, controller: ControllerClient, stream: StreamName, ledger: Ledger, *, lease: float, timeout: float
    ) -> None:
        """``lease`` and ``timeout`` in seconds; a call that is not answered in time is of unknown outcome."""
        from pravega_connector.controller.service import SOON, CommitWatch  # noqa: PLC0415 - loads gRPC, which not every write needs

        self.stream, self.ledger, self.lease = stream, ledger, lease
        self.deadline = Deadline(timeout)
        self._controller = controller
        self._commits = CommitWatch(controller, stream)
        self._settling = CommitWatch(controller, stream, ask_again=SOON)
        self._pinged: dict[UUID, float] = {}  # monotonic seconds of the last ping that prolonged a lease
        self._ahead: dict[Ask, tuple[tuple[UUID, ...], Future[dict[UUID, TransactionStatus]]]] = {}

    def ask_ahead(self, ask: Ask, ids: tuple[UUID, ...]) -> None:
        """Begin a ping, or a look at statuses, before the first request of its kind, if that is for these transactions.

        For what is asked in nearly every commit, and does no harm where it is not: of the own transactions, and of
        those of the last batch, while the ledger is read. A status that was COMMITTED is so for good. A ping counts as
        long as others do, and is made again after that.
        """
        if ids:
            self._ahead[ask] = ids, in_background(lambda: self._each(self._call_of(ask), ids), "pravega-ahead")

    def answer(self, request: Request) -> Any:
        """The answer to a request; see :class:`Ask` for its type. Raises OutcomeUnknownError at the deadline."""
        if self.deadline.passed:
            raise OutcomeUnknownError(
                f"the batch for stream {self.stream} could not be finished within {self.deadline.seconds:g} s: the "
                f"ledger {self.ledger.name} tells how far it came, and the next run of the query goes on from there"
            )
        if request.ask is Ask.READ:
            return self.ledger.read()
        if request.ask is Ask.APPEND:
            assert request.entry is not None
            return self.ledger.append(request.entry, request.revision, deadline=self.deadline)
        if request.ask is Ask.COMMIT:
            return self._commit_all(request.transactions)
        if request.ask is Ask.SETTLE:
            return self._settle(request.transactions)
        ids, ahead = self._ahead.pop(request.ask, ((), None))
        if ahead is None or ids != request.transactions:
            return self._each(self._call_of(request.ask), request.transactions)
        statuses = ahead.result()
        if request.ask is Ask.PING:
            statuses |= self._each(self._ping, tuple(self.stale(ids)))
        return statuses

    def stale(self, transactions: Iterable[UUID]) -> list[UUID]:
        """Transactions whose last ping was asked for too long ago to count, or prolonged nothing."""
        since = time.monotonic() - _FRESH * self.lease
        return [id_ for id_ in transactions if self._pinged.get(id_, -math.inf) < since]

    def _call_of(self, ask: Ask) -> Callable[[UUID], TransactionStatus]:
        return {Ask.STATUS: self._status, Ask.PING: self._ping, Ask.ABORT: self._abort}[ask]

    def _each(self, call: Callable[[UUID], TransactionStatus], ids: tuple[UUID, ...]) -> dict[UUID, TransactionStatus]:
        return dict(zip(ids, side_by_side(call, ids, MAX_CALLS), strict=True))

    def _status(self, id_: UUID) -> TransactionStatus:
        return self._commits.status(id_)

    def _settle(self, ids: tuple[UUID, ...]) -> dict[UUID, TransactionStatus]:
        if self._controller.commits_in_order(self.stream):
            return dict.fromkeys(ids, TransactionStatus.COMMITTED)
        statuses = self._each(self._settling.status, ids)
        if all(status is TransactionStatus.COMMITTED for status in statuses.values()):
            self._controller.note_order(self.stream)
        return statuses

    def _ping(self, id_: UUID) -> TransactionStatus:
        asked = time.monotonic()
        try:
            self._controller.ping_transaction(self.stream, id_, round(self.lease * 1000))
        except LeaseRangeError:
            return TransactionStatus.OPEN  # it cannot live longer than it does, but live it does
        except (TransactionCommittedError, TransactionAbortedError, TransactionUnknownError) as error:
            return _status_of(error)
        self._pinged[id_] = asked
        return TransactionStatus.OPEN

    def _commit_all(self, ids: tuple[UUID, ...]) -> dict[UUID, TransactionStatus]:
        """Commit all side by side where that is harmless, else only the first one, which the others wait for."""
        if self._controller.commits_in_order(self.stream):
            return self._each(self._commit, ids)
        return dict.fromkeys(ids, TransactionStatus.OPEN) | self._each(self._commit, ids[:1])

    def _commit(self, id_: UUID) -> TransactionStatus:
        try:
            return self._controller.commit_transaction(self.stream, id_, timeout=self._left())
        except (TransactionAbortedError, TransactionUnknownError) as error:
            return _status_of(error)

    def _abort(self, id_: UUID) -> TransactionStatus:
        try:
            return self._controller.abort_transaction(self.stream, id_, timeout=self._left())
        except (TransactionCommittedError, TransactionUnknownError) as error:
            return _status_of(error)

    def _left(self) -> float:
        return max(0.1, self.deadline.left)


def _status_of(
    error: TransactionCommittedError | TransactionAbortedError | TransactionUnknownError,
) -> TransactionStatus:
    if isinstance(error, TransactionCommittedError):
        return TransactionStatus.COMMITTING  # or beyond that
    return TransactionStatus.ABORTED if isinstance(error, TransactionAbortedError) else TransactionStatus.UNKNOWN


def carry_out(machine: Commit, servers: Servers) -> Commit:
    """Work through the table to the end. Raises OutcomeUnknownError when time is up; ControllerUnavailableError."""
    looks = Looks(servers.deadline, _FIRST_PAUSE, to_the_end=True)
    while not machine.ended:
        phase, answer = machine.phase, _answer(machine, servers)
        machine = machine.aged(servers.stale(machine.fresh)).answered(answer)
        if phase in _LOOKS and machine.phase in (phase, _LOOKS[phase]):
            looks.again()  # when time is up, the next answer tells
    return machine


def _answer(machine: Commit, servers: Servers) -> Any:
    try:
        return servers.answer(machine.request())
    except ConnectorError as error:
        if machine.phase is not Phase.ABORT_OWN:
            raise
        # The outcome is decided; transactions that are not needed end with their lease.
        _log.info("transactions that are not needed were left to their lease: %s", error)
        return {}


def await_visible(
    controller: ControllerClient, stream: StreamName, transactions: Iterable[UUID], timeout: float = _VISIBLE_SECONDS
) -> None:
    """Return when transactions whose commits are decided can be read.

    It only asks: whether one is to be committed is not for this to say. Raises DeadlineExceededError after ``timeout``
    seconds.
    """
    from pravega_connector.controller.service import CommitWatch  # noqa: PLC0415

    pending, commits = list(transactions), CommitWatch(controller, stream)
    looks = Looks(Deadline(timeout), _FIRST_PAUSE)
    while True:
        statuses = side_by_side(commits.status, pending, MAX_CALLS)
        seen = list(zip(pending, statuses, strict=True))
        pending = [id_ for id_, status in seen if status is TransactionStatus.COMMITTING]
        if not pending:
            return
        if not looks.again():
            raise DeadlineExceededError(
                f"{len(pending)} transactions of stream {stream} were not visible within {timeout:.3g} s, "
                f"{pending[0]} for one; their commits are decided"
            )


# ---- event time: advice to readers, on which the batch itself does not depend ----------------------------------------


def writer_of(app: str) -> str:
    """The id under which an application's times are noted: one writer, whatever tasks and runs it has."""
    return f"spark-{app}"


def latest_of(parts: Iterable[Part]) -> int | None:
    """The time that the parts of a batch amount to, milliseconds; None if it has none."""
    return max((part.event_time for part in parts if part.event_time is not None), default=None)


def note_batch(
    stores: SegmentStores, stream: StreamName, writer: str, millis: int | None, transactions: Iterable[UUID] = ()
) -> None:
    """Note a batch's time, as soon as its transactions are visible; without a time nothing is done.

    The position is the tail after them, so the time of a batch never stands before a part of it. It is done once more
    when the batch is replayed, which changes nothing. What cannot be noted is logged: the next batch's time covers it.
    """
    if millis is None:
        return
    try:
        await_visible(stores.controller, stream, transactions)
        stores.controller.note_time(writer, tail_cut(stores, stream), millis)
    except ConnectorError as error:
        _log.warning("the event time %d of a batch for stream %s was not noted: %s", millis, stream, error)
