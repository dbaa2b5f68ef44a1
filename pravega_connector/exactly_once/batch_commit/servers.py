"""Calls that the state machine requests, concurrent where allowed, and the event time noted after a batch."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from pravega_connector import controller
from pravega_connector.controller.targets import is_deleted, name_of
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.io import in_background, side_by_side
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import (
    ConnectorError,
    DeadlineExceededError,
    LeaseRangeError,
    OutcomeUnknownError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionError,
    TransactionUnknownError,
)
from pravega_connector.exactly_once.batch_commit.entries import Part, TransactionId
from pravega_connector.exactly_once.batch_commit.machine import Ask, Commit, Request
from pravega_connector.exactly_once.batch_commit.state import Ledger
from pravega_connector.exactly_once.batch_commit.table import Phase
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import StreamName

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient
    from pravega_connector.controller.transactions import CommitWatch
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
#: Errors of calls about a transaction that is not open.
_ENDED: Final = (TransactionCommittedError, TransactionAbortedError, TransactionUnknownError)

_Answer = dict[TransactionId, TransactionStatus]


class Servers:
    """Servers from the machine's point of view: transactions of one or more streams, and the ledger."""

    def __init__(self, controller: ControllerClient, ledger: Ledger, *, lease: float, timeout: float) -> None:
        """Connect a commit to its servers. ``lease`` and ``timeout`` are in seconds.

        A call without an answer in time has an unknown outcome.
        """
        self.ledger, self.lease = ledger, lease
        self.deadline = Deadline(timeout)
        self._controller = controller
        self._streams = _Streams(controller)
        self._pinged: dict[TransactionId, float] = {}  # monotonic seconds of the last ping that prolonged a lease
        self._ahead: dict[Ask, tuple[tuple[TransactionId, ...], Future[_Answer]]] = {}

    def ask_ahead(self, ask: Ask, ids: tuple[TransactionId, ...]) -> None:
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
                f"the batch could not be finished within {self.deadline.seconds:g} s: its state is in the ledger "
                f"{self.ledger.name}, and the next run of the query continues from there"
            )
        if request.ask is Ask.READ:
            return self.ledger.read()
        if request.ask is Ask.APPEND:
            assert request.entry is not None
            return self.ledger.append(request.entry, request.revision, deadline=self.deadline)
        if request.ask is Ask.EXIST:
            return frozenset(stream for stream in request.streams if is_deleted(self._controller, stream))
        if request.ask in (Ask.COMMIT, Ask.SETTLE):
            call = self._commit_all if request.ask is Ask.COMMIT else self._settle
            return call(request.transactions)
        return self._answer(request)

    def _answer(self, request: Request) -> _Answer:
        ids, ahead = self._ahead.pop(request.ask, ((), None))
        if ahead is None or ids != request.transactions:
            return self._each(self._call_of(request.ask), request.transactions)
        statuses = ahead.result()
        if request.ask is Ask.PING:
            statuses |= self._each(self._ping, tuple(self.stale(ids)))
        return statuses

    def stale(self, transactions: Iterable[TransactionId]) -> list[TransactionId]:
        """Return the transactions with a ping that is too old to count or did not prolong the lease."""
        since = time.monotonic() - _FRESH * self.lease
        return [id_ for id_ in transactions if self._pinged.get(id_, -math.inf) < since]

    def _call_of(self, ask: Ask) -> Callable[[TransactionId], TransactionStatus]:
        return {Ask.STATUS: self._streams.status, Ask.PING: self._ping, Ask.ABORT: self._abort}[ask]

    def _each(self, call: Callable[[TransactionId], TransactionStatus], ids: Iterable[TransactionId]) -> _Answer:
        turns = list(_in_turn(ids))
        return dict(zip(turns, side_by_side(call, turns, MAX_CALLS), strict=True))

    def _settle(self, ids: tuple[TransactionId, ...]) -> _Answer:
        ordered = [id_ for id_ in ids if self._controller.commits_in_order(stream_of(id_))]
        statuses = self._each(self._streams.settling, [id_ for id_ in ids if id_ not in ordered])
        for stream in {stream_of(id_) for id_ in statuses}:
            if all(s is TransactionStatus.COMMITTED for id_, s in statuses.items() if stream_of(id_) == stream):
                self._controller.note_order(stream)
        return statuses | dict.fromkeys(ordered, TransactionStatus.COMMITTED)

    def _ping(self, id_: TransactionId) -> TransactionStatus:
        asked = time.monotonic()
        try:
            self._controller.ping_transaction(stream_of(id_), id_.id, round(self.lease * 1000))
        except LeaseRangeError:
            return TransactionStatus.OPEN  # the lease cannot be prolonged, but the transaction is open
        except _ENDED as error:
            return _status_of(error)
        self._pinged[id_] = asked
        return TransactionStatus.OPEN

    def _commit_all(self, ids: tuple[TransactionId, ...]) -> _Answer:
        """Commit all concurrently if that is harmless, otherwise the first of each stream: its others wait for it."""
        now: list[TransactionId] = []
        for id_ in ids:
            first = all(id_.stream != other.stream for other in now)
            if first or self._controller.commits_in_order(stream_of(id_)):
                now.append(id_)
        return dict.fromkeys(ids, TransactionStatus.OPEN) | self._each(self._commit, now)

    def _commit(self, id_: TransactionId) -> TransactionStatus:
        try:
            return self._controller.commit_transaction(stream_of(id_), id_.id, timeout=self._left())
        except _ENDED as error:
            return _status_of(error)

    def _abort(self, id_: TransactionId) -> TransactionStatus:
        try:
            return self._controller.abort_transaction(stream_of(id_), id_.id, timeout=self._left())
        except _ENDED as error:
            return _status_of(error)

    def _left(self) -> float:
        return max(0.1, self.deadline.left)


class _Streams:
    """Statuses of transactions, with a watch for each stream whose commits are under way."""

    def __init__(self, client: ControllerClient) -> None:
        self._commits = _Watches(lambda stream: controller.CommitWatch(client, stream))
        self._settling = _Watches(lambda stream: controller.CommitWatch(client, stream, ask_again=controller.SOON))

    def status(self, id_: TransactionId) -> TransactionStatus:
        return self._commits.of(id_).status(id_.id)

    def settling(self, id_: TransactionId) -> TransactionStatus:
        """Return the status of a transaction for which others of its stream wait."""
        return self._settling.of(id_).status(id_.id)


class _Watches:
    def __init__(self, create: Callable[[StreamName], CommitWatch]) -> None:
        self._create = create
        self._lock = threading.Lock()
        self._watches: dict[str, CommitWatch] = {}

    def of(self, id_: TransactionId) -> CommitWatch:
        with self._lock:
            if id_.stream not in self._watches:
                self._watches[id_.stream] = self._create(stream_of(id_))
            return self._watches[id_.stream]


def stream_of(transaction: TransactionId) -> StreamName:
    """Return the stream of a transaction."""
    return StreamName.parse(name_of(transaction.stream))


def _in_turn(ids: Iterable[TransactionId]) -> Iterator[TransactionId]:
    """Iterate over the transactions of all streams in turn: a controller processes those of one stream one by one."""
    streams: dict[str, list[TransactionId]] = {}
    for id_ in ids:
        streams.setdefault(id_.stream, []).append(id_)
    for turn in zip_longest(*streams.values()):
        yield from (id_ for id_ in turn if id_ is not None)


def _status_of(error: TransactionError) -> TransactionStatus:
    if isinstance(error, TransactionCommittedError):
        return TransactionStatus.COMMITTING  # or COMMITTED
    return TransactionStatus.ABORTED if isinstance(error, TransactionAbortedError) else TransactionStatus.UNKNOWN


def carry_out(machine: Commit, servers: Servers) -> Commit:
    """Execute the table to its end.

    Raises OutcomeUnknownError after the deadline, and ControllerUnavailableError.
    """
    polls = Polls(servers.deadline, _FIRST_PAUSE, to_the_end=True)
    while not machine.ended:
        phase, answer = machine.phase, _answer(machine, servers)
        machine = machine.aged(servers.stale(machine.fresh)).answered(answer)
        if phase in _LOOKS and machine.phase in (phase, _LOOKS[phase]):
            polls.again()  # after the deadline, the next answer raises
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
    controller: ControllerClient, transactions: Iterable[TransactionId], timeout: float = _VISIBLE_SECONDS
) -> None:
    """Return when transactions with decided commits can be read.

    The function only polls and does not commit. Raises DeadlineExceededError after ``timeout`` seconds.
    """
    pending, streams = list(transactions), _Streams(controller)
    polls = Polls(Deadline(timeout), _FIRST_PAUSE)
    while True:
        statuses = side_by_side(streams.status, pending, MAX_CALLS)
        seen = list(zip(pending, statuses, strict=True))
        pending = [id_ for id_, status in seen if status is TransactionStatus.COMMITTING]
        if not pending:
            return
        if not polls.again():
            raise DeadlineExceededError(
                f"{len(pending)} transactions were not visible within {timeout:.3g} s, such as {pending[0]}; they will "
                "be committed"
            )


# ---- event time: a hint to readers; the batch does not depend on it --------------------------------------------------


def writer_of(app: str) -> str:
    """Return the writer id for an application's times. All its tasks and runs share the id."""
    return f"spark-{app}"


def latest_of(parts: Iterable[Part]) -> int | None:
    """Return the event time of a batch in milliseconds; None if no part has one."""
    return max((part.event_time for part in parts if part.event_time is not None), default=None)


def note_parts(stores: SegmentStores, writer: str, parts: Iterable[Part], *, wait: bool) -> None:
    """Note the event time of a batch in each of its streams; see :func:`note_batch`.

    ``wait``: the transactions of the parts are committed and may not be visible yet.
    """
    streams: dict[StreamName, list[Part]] = {}
    for part in parts:
        streams.setdefault(stream_of(part.transaction), []).append(part)
    for stream, some in streams.items():
        ids = [part.transaction for part in some] if wait else []
        note_batch(stores, stream, writer, latest_of(some), ids)


def note_batch(
    stores: SegmentStores,
    stream: StreamName,
    writer: str,
    millis: int | None,
    transactions: Iterable[TransactionId] = (),
) -> None:
    """Note the event time of a batch in a stream, once its transactions are visible. Without a time, do nothing.

    The position is the tail after them, so the time of a batch is never before a part of it. A replayed batch notes it
    again, which changes nothing. A failure is logged, because the next batch's time covers it.
    """
    if millis is None:
        return
    try:
        await_visible(stores.controller, transactions)
        stores.controller.note_time(writer, tail_cut(stores, stream), millis)
    except ConnectorError as error:
        _log.warning("the event time %d of a batch for stream %s was not noted: %s", millis, stream, error)
