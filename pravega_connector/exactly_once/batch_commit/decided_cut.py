"""Stream cuts that divide no batch: readers of several streams that read to them see whole batches only.

A batch is committed stream by stream, so the tails of its streams may have a part of it. The ledger and the pilots show
when they have not: each recorded batch is visible, and the pilot of a prepared batch is not committed. If both hold
before and after the tails are read, and the ledger has no new entry in between, no batch is on both sides of the tails.
Entries about other streams count, too: an application's batch in other streams hides its batch before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

from pravega_connector.controller.targets import name_of
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.io import side_by_side
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import DeadlineExceededError
from pravega_connector.exactly_once.batch_commit.entries import AppState, TransactionId
from pravega_connector.exactly_once.batch_commit.servers import MAX_CALLS, stream_of
from pravega_connector.exactly_once.batch_commit.state import Ledger, LedgerState
from pravega_connector.single_segment.revisioned import Revision
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import StreamCut, StreamName

if TYPE_CHECKING:
    from pravega_connector.stores.segment_stores import SegmentStores

#: Seconds until the second attempt, and until each later one at most. A commit takes about 40 ms.
_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_HIDDEN: Final = frozenset({TransactionStatus.OPEN, TransactionStatus.ABORTING, TransactionStatus.ABORTED})
_Statuses = Mapping[TransactionId, TransactionStatus]


def decided_cuts(
    stores: SegmentStores, ledger: Ledger, streams: Sequence[StreamName], timeout: float
) -> list[StreamCut]:
    """Return a cut near the tail of each stream. No batch of the ledger is on both sides of the cuts.

    Waits while a batch is partially visible. Raises DeadlineExceededError after ``timeout`` seconds.
    """
    polls, batches = Polls(Deadline(timeout), _PAUSE, _LONGEST_PAUSE), _Batches(stores, ledger, streams)
    while True:
        before = batches.whole_at()
        if not isinstance(before, str):
            # At the same time: the ledger must have no new entry until the last tail is known.
            cuts = side_by_side(lambda stream: tail_cut(stores, stream), streams, MAX_CALLS)
            after = batches.whole_at()
            if after == before:
                return cuts
            before = after if isinstance(after, str) else "batches follow each other too fast"
        if not polls.again():
            raise DeadlineExceededError(
                f"no cut of {', '.join(map(str, streams))} divides no batch of ledger {ledger.name} within "
                f"{timeout:.3g} s: {before}. Wait longer. If a crash has left the batch, restart its query, or run "
                f"pravega-serde recover {streams[0]} --ledger {ledger.name} --finish"
            )


def deciding(state: LedgerState, streams: Set[str]) -> list[TransactionId]:
    """Return the transactions whose statuses show if batches are whole in ``streams``, as ``scope/stream``."""
    return [app.open.parts[0].transaction for app in _open_in(state, streams) if app.open] + _last_in(state, streams)


def divided(state: LedgerState, streams: Set[str], statuses: _Statuses) -> str | None:
    """Return the reason why a batch may be partially visible; None if each is visible or hidden."""
    for app in _open_in(state, streams):
        if app.open and statuses[app.open.parts[0].transaction] not in _HIDDEN:
            return f"a batch of {app.app} may be partially visible"
    late = [id_ for id_ in _last_in(state, streams) if statuses[id_] is TransactionStatus.COMMITTING]
    return f"transaction {late[0]} is not visible yet" if late else None


def _open_in(state: LedgerState, streams: Set[str]) -> Iterator[AppState]:
    for app in state.values():
        if app.open and any(name_of(part.transaction.stream) in streams for part in app.open.parts):
            yield app


def _last_in(state: LedgerState, streams: Set[str]) -> list[TransactionId]:
    return [id_ for app in state.values() for id_ in app.last_set if name_of(id_.stream) in streams]


class _Batches:
    """Batches of a ledger that have rows in some streams."""

    def __init__(self, stores: SegmentStores, ledger: Ledger, streams: Sequence[StreamName]) -> None:
        self._stores, self._ledger, self._streams = stores, ledger, frozenset(map(str, streams))
        self._committed = set[TransactionId]()  # which is permanent

    def whole_at(self) -> Revision | str:
        """Return the revision at which each batch is visible or hidden, otherwise the reason."""
        revision, state = self._ledger.read()
        return divided(state, self._streams, self._statuses(deciding(state, self._streams))) or revision

    def _statuses(self, ids: Iterable[TransactionId]) -> _Statuses:
        asked = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._committed]
        found = dict(zip(asked, side_by_side(self._status, asked, MAX_CALLS), strict=True))
        self._committed.update(id_ for id_, status in found.items() if status is TransactionStatus.COMMITTED)
        return found | dict.fromkeys(self._committed, TransactionStatus.COMMITTED)

    def _status(self, id_: TransactionId) -> TransactionStatus:
        return self._stores.controller.transaction_status(stream_of(id_), id_.id)
