"""Calls that the state machine requests, concurrent where allowed, and the event time noted after a batch."""

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
#: Maximum concurrent calls. A controller processes the transactions of a stream one by one anyway.
MAX_CALLS: Final = 16
#: Part of a lease in which a ping is not repeated: the machine pings before and after it records.
_FRESH: Final = 0.1
#: Phases that wait, and the phase before the next poll.
_LOOKS: Final = {Phase.AWAIT: Phase.PING_OWN, Phase.AWAIT_COMMIT: Phase.PING_RECORDED}
#: Seconds between two polls of transactions that are being committed, which usually takes about 40 ms.
_FIRST_PAUSE: Final = 0.005
#: Seconds in which a decided commit becomes visible, except during an outage.
_VISIBLE_SECONDS: Final = 15.0


class Servers:
    """Servers from the machine's point of view: transactions of one stream, and its ledger."""

    def __init__(
        self, controller: ControllerClient, stream: StreamName, ledger: Ledger, *, lease: float, timeout: float
    ) -> None:
        """Connect a commit to its servers. ``lease`` and ``timeout`` are in seconds.

        A call without an answer in time has an unknown outcome.
        """
        from pravega_connector.controller.service import SOON, CommitWatch  # noqa: PLC0415 - loads gRPC, which not every write needs

        self.stream, self.ledger, self.lease = stream, ledger, lease
        self.deadline = Deadline(timeout)
        self._controller = controller
        self._commits = CommitWatch(controller, stream)
        self._settling = CommitWatch(controller, stream, ask_again=SOON)
        self._pinged: dict[UUID, float] = {}  # monotonic seconds of the last ping that prolonged a lease
        self._ahead: dict[Ask, tuple[tuple[UUID, ...], Future[dict[UUID, TransactionStatus]]]] = {}

    def ask_ahead(self, ask: Ask, ids: tuple[UUID, ...]) -> None:
        """Begin a ping or status request early, for the first request of its kind if it names these transactions.

        Use it for requests that nearly every commit sends and that are harmless otherwise. While the ledger is read,
        these are requests about the own transactions and the last batch's. A COMMITTED status is permanent. A ping
        counts as long as other pings do, and is repeated after that.
        """
        if ids:
            self._ahead[ask] = ids, in_background(lambda: self._each(self._call_of(ask), ids), "pravega-ahead")

    def answer(self, request: Request) -> Any:
        """Return the answer to a request; see :class:`Ask` for its type. Raises OutcomeUnknownError at the deadline."""
        if self.deadline.passed:
            raise OutcomeUnknownError(
                f"the batch for stream {self.stream} could not be finished within {self.deadline.seconds:g} s: its "
                f"state is in the ledger {self.ledger.name}, and the next run of the query continues from there"
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
        """Return the transactions with a ping that is too old to count or did not prolong the lease."""
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
            return TransactionStatus.OPEN  # the lease cannot be prolonged, but the transaction is open
        except (TransactionCommittedError, TransactionAbortedError, TransactionUnknownError) as error:
            return _status_of(error)
        self._pinged[id_] = asked
        return TransactionStatus.OPEN

    def _commit_all(self, ids: tuple[UUID, ...]) -> dict[UUID, TransactionStatus]:
        """Commit all concurrently if that is harmless, otherwise only the first, for which the others wait."""
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
        return TransactionStatus.COMMITTING  # or COMMITTED
    return TransactionStatus.ABORTED if isinstance(error, TransactionAbortedError) else TransactionStatus.UNKNOWN


def carry_out(machine: Commit, servers: Servers) -> Commit:
    """Execute the table to its end.

    Raises OutcomeUnknownError after the deadline, and ControllerUnavailableError.
    """
    looks = Looks(servers.deadline, _FIRST_PAUSE, to_the_end=True)
    while not machine.ended:
        phase, answer = machine.phase, _answer(machine, servers)
        machine = machine.aged(servers.stale(machine.fresh)).answered(answer)
        if phase in _LOOKS and machine.phase in (phase, _LOOKS[phase]):
            looks.again()  # after the deadline, the next answer raises
    return machine


def _answer(machine: Commit, servers: Servers) -> Any:
    try:
        return servers.answer(machine.request())
    except ConnectorError as error:
        if machine.phase is not Phase.ABORT_OWN:
            raise
        # The outcome is decided. The lease of unneeded transactions expires.
        _log.info("unneeded transactions were not aborted and end with their lease: %s", error)
        return {}


def await_visible(
    controller: ControllerClient, stream: StreamName, transactions: Iterable[UUID], timeout: float = _VISIBLE_SECONDS
) -> None:
    """Return when transactions with decided commits can be read.

    The function only polls and does not commit. Raises DeadlineExceededError after ``timeout`` seconds.
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
                f"{len(pending)} transactions of stream {stream} were not visible within {timeout:.3g} s, such as "
                f"{pending[0]}; they will be committed"
            )


# ---- event time: a hint to readers; the batch does not depend on it --------------------------------------------------


def writer_of(app: str) -> str:
    """Return the writer id for an application's times. All its tasks and runs share the id."""
    return f"spark-{app}"


def latest_of(parts: Iterable[Part]) -> int | None:
    """Return the event time of a batch in milliseconds; None if no part has one."""
    return max((part.event_time for part in parts if part.event_time is not None), default=None)


def note_batch(
    stores: SegmentStores, stream: StreamName, writer: str, millis: int | None, transactions: Iterable[UUID] = ()
) -> None:
    """Note the event time of a batch once its transactions are visible. Without a time, do nothing.

    The position is the tail after them, so the time of a batch is never before a part of it. A replayed batch notes it
    again, which changes nothing. A failure is logged, because the next batch's time covers it.
    """
    if millis is None:
        return
    try:
        await_visible(stores.controller, stream, transactions)
        stores.controller.note_time(writer, tail_cut(stores, stream), millis)
    except ConnectorError as error:
        _log.warning("the event time %d of a batch for stream %s was not noted: %s", millis, stream, error)
