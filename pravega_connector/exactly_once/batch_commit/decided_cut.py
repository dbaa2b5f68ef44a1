"""Stream cuts that divide no batch: readers of several streams that read to them see whole batches only.

A batch is committed stream by stream, so the tails of its streams may have a part of it. The ledger and the pilots show
when they have not: each recorded batch is visible, and the pilot of a prepared batch is not committed. If both hold
before and after the tails are read, and no batch was recorded in between, no batch is on both sides of the tails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pravega_connector.core.deadline import Deadline, Looks
from pravega_connector.core.io import side_by_side
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import DeadlineExceededError
from pravega_connector.exactly_once.batch_commit.entries import Key, TransactionId, name_of
from pravega_connector.exactly_once.batch_commit.servers import MAX_CALLS, stream_of
from pravega_connector.exactly_once.batch_commit.state import Ledger
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import StreamCut, StreamName

if TYPE_CHECKING:
    from pravega_connector.stores.segment_stores import SegmentStores

#: Seconds until the second attempt, and until each later one at most. A commit takes about 40 ms.
_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_Visible = Mapping[Key, tuple[TransactionId, ...]]
_HIDDEN: Final = frozenset({TransactionStatus.OPEN, TransactionStatus.ABORTING, TransactionStatus.ABORTED})


def decided_cuts(
    stores: SegmentStores, ledger: Ledger, streams: Sequence[StreamName], timeout: float
) -> list[StreamCut]:
    """Return a cut near the tail of each stream. No batch of the ledger is on both sides of the cuts.

    Waits while a batch is partially visible. Raises DeadlineExceededError after ``timeout`` seconds.
    """
    looks, batches = Looks(Deadline(timeout), _PAUSE, _LONGEST_PAUSE), _Batches(stores, ledger, streams)
    while True:
        before = batches.visible()
        if not isinstance(before, str):
            cuts = [tail_cut(stores, stream) for stream in streams]
            after = batches.visible()
            if after == before:
                return cuts
            before = after if isinstance(after, str) else "batches follow each other too fast"
        if not looks.again():
            raise DeadlineExceededError(
                f"no cut of {', '.join(map(str, streams))} divides no batch of ledger {ledger.name} within "
                f"{timeout:.3g} s: {before}. Wait longer. If a crash has left the batch, restart its query, or run "
                f"pravega-serde recover {streams[0]} --ledger {ledger.name} --finish"
            )


class _Batches:
    """Batches of a ledger that have rows in some streams."""

    def __init__(self, stores: SegmentStores, ledger: Ledger, streams: Sequence[StreamName]) -> None:
        self._stores, self._ledger, self._streams = stores, ledger, frozenset(map(str, streams))
        self._committed = set[TransactionId]()  # which is permanent

    def visible(self) -> _Visible | str:
        """Return the last batch of each application if all batches are visible or hidden, otherwise the reason."""
        _, state = self._ledger.read()
        last = {key: self._here(app.last_set) for key, app in state.items()}
        apps = [app for app in state.values() if app.open and self._here(part.transaction for part in app.open.parts)]
        pilots = {app.open.parts[0].transaction: app for app in apps if app.open is not None}
        statuses = self._statuses([*pilots, *(id_ for ids in last.values() for id_ in ids)])
        for id_, app in pilots.items():
            if statuses[id_] not in _HIDDEN:
                return f"a batch of {app.app} may be partially visible"
        late = [id_ for ids in last.values() for id_ in ids if statuses[id_] is TransactionStatus.COMMITTING]
        return f"transaction {late[0]} is not visible yet" if late else last

    def _here(self, ids: Iterable[TransactionId]) -> tuple[TransactionId, ...]:
        return tuple(id_ for id_ in ids if name_of(id_.stream) in self._streams)

    def _statuses(self, ids: Iterable[TransactionId]) -> dict[TransactionId, TransactionStatus]:
        asked = [id_ for id_ in dict.fromkeys(ids) if id_ not in self._committed]
        found = dict(zip(asked, side_by_side(self._status, asked, MAX_CALLS), strict=True))
        self._committed.update(id_ for id_, status in found.items() if status is TransactionStatus.COMMITTED)
        return found | dict.fromkeys(self._committed, TransactionStatus.COMMITTED)

    def _status(self, id_: TransactionId) -> TransactionStatus:
        return self._stores.controller.transaction_status(stream_of(id_), id_.id)
