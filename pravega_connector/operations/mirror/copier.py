"""Mirror in steps: events of the source in transactions of the destination, and barriers between them.

The protocol is in :mod:`pravega_connector.exactly_once.steps`, and the run in its ``leader``. A source segment is an
item, and its position an offset. So the positions of the log are a stream cut of the source. The log gets the
successors of a segment when the destination has passed the barrier before them, see :mod:`~.order`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from pravega_connector import metrics
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.controller.targets import is_deleted
from pravega_connector.errors import ConfigError, ConnectorError, DataLossError, StreamNotFoundError
from pravega_connector.exactly_once.steps import Step, StepLog
from pravega_connector.exactly_once.steps.leader import POLL, Leader
from pravega_connector.exactly_once.steps.takeover import Owner
from pravega_connector.operations.mirror.destination import Destination
from pravega_connector.operations.mirror.event_time import EventTime
from pravega_connector.operations.mirror.order import point
from pravega_connector.operations.mirror.source import GONE, Frames, Source, View
from pravega_connector.reader.positions import EndCut
from pravega_connector.wire import (
    MAX_READABLE_EVENT,
    SegmentRange,
    StreamCut,
    StreamName,
    parse_segment_name,
    segment_name,
)
from pravega_connector.writer.transactions import TransactionalWriter

_log: Final = logging.getLogger(__name__)
# Seconds before the first poll of an idle source.
_SHORT_POLL: Final = 0.05
# Seconds between two comparisons of the tags.
_TAGS_EVERY: Final = 60.0
# Item with the position of the first run. The log never drops it, so no other run restarts from the first segments.
_START: Final = "start"
# Offset that no segment reaches.
_NEVER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """Settings of a mirror. Raises ConfigError for ``transaction_bytes`` below 1."""

    follow: bool = False
    """If True, wait for new events. Otherwise, end at the position that was the tail at the start."""
    skip_lost: bool = False
    """If True, continue after events that were truncated before they were mirrored. Otherwise, they are an error."""
    seal: bool = False
    """If True, seal the destination when the source is sealed and mirrored."""
    transaction_bytes: int = 16 << 20
    """Approximate bytes of a transaction, which are kept in memory."""
    lease: float = 30.0
    """Seconds that a transaction stays open after its mirror has ended."""

    def __post_init__(self) -> None:
        if self.transaction_bytes < 1:
            raise ConfigError("the bytes of a transaction must be at least 1")


@dataclass(slots=True)
class MirrorCounts:
    """Totals of one run so far."""

    events: int = 0
    bytes: int = 0
    """Bytes of the events, 8 for each event included."""
    transactions: int = 0
    barriers: int = 0
    """Scalings of the source that the destination has followed."""
    skipped_bytes: int = 0
    """Bytes that were truncated before they were mirrored, as far as their number is known."""
    redone: int = 0
    """Steps that were repeated, because their transaction was aborted."""
    recovered: int = 0
    """Steps of other runs that were decided."""
    lag_bytes: int = 0
    """Unread bytes in the current segments at the last poll."""


def positions_of(known: dict[str, Any]) -> dict[int, int]:
    """Return the positions of a log by segment."""
    return {parse_segment_name(item)[1]: int(offset) for item, offset in known.items() if item != _START}


class Copier(Leader):
    """One run of a mirror. Not thread safe."""

    final = (DataLossError,)

    def __init__(
        self,
        clients: tuple[PravegaClient, PravegaClient],
        source: Source,
        target: StreamName,
        start: StreamCut,
        *,
        steps: StepLog,
        me: Owner,
        settings: MirrorSettings,
        takeover_after: float | None = None,
        resolution: Mapping[UUID, bool] | None = None,
        on_progress: Callable[[str, MirrorCounts], None] = lambda _what, _counts: None,
    ) -> None:
        """``clients`` are of the source and of the destination. ``start`` is the position of the first run."""
        origin, client = clients
        super().__init__(
            client.stores,
            target,
            steps,
            me,
            label=f"mirror of {source.stream} to {target}",
            log=_log,
            lease=settings.lease,
            takeover_after=takeover_after,
            resolution=resolution,
        )
        self.counts = MirrorCounts()
        self.sealed = False
        """True if the source is sealed, and all its events are mirrored."""
        self._source, self._start, self._settings, self._on_progress = source, start, settings, on_progress
        self._destination = Destination(client.stores, target)
        self._transactions: TransactionalWriter[bytes] = client.transactions(
            target, lease=settings.lease, max_event_size=MAX_READABLE_EVENT
        )
        self._time = EventTime(origin.watermark_log(source.stream), client.stores, target, str(steps.name))
        self._end = None if settings.follow else EndCut(origin.tail(source.stream))
        self._tags_at = -_TAGS_EVERY

    # ---------------------------------------------------------------- the program

    def _report(self, what: str) -> None:
        self._on_progress(what, self.counts)

    def _count_step(self, outcome: str) -> None:
        setattr(self.counts, outcome, getattr(self.counts, outcome) + 1)

    def _content_of(self, step: Step) -> str:
        return ", ".join(f"the events of {item} from offset {at} to {end}" for item, (at, end) in step.moves.items())

    def _may_pass(self, error: ConnectorError) -> bool:
        source = self._source
        if isinstance(error, StreamNotFoundError) and is_deleted(source.stores.controller, source.identity):
            raise StreamNotFoundError.deleted(source.stream) from None
        return super()._may_pass(error)

    def _lead(self) -> bool:
        if not self._begin():
            return False
        pause = _SHORT_POLL
        while True:
            positions = self._present()
            self._time.poll()
            if self._time.due(positions):
                if not self._note_time(positions):
                    return False
                continue
            view = self._view(positions)
            if not view.skipped and (group := self._next_group(positions, view)):
                if not self._pass_barrier(positions, *group):
                    return False
            elif view.pieces or view.skipped:
                if not self._step(view):
                    return False
                pause = _SHORT_POLL
            elif self._is_done(positions, view):
                return self._finish()
            else:
                if not self._wait(pause):
                    return False
                pause = min(2 * pause, POLL)

    def _begin(self) -> bool:
        """Begin the first run at its start, or continue. Return False if another run is in the way."""
        known, sealed = self._present(), self._destination.is_sealed
        if not sealed:
            self._destination.allow_merges()
        if not known:
            start = self._start.positions
            self._destination.pass_barrier((), self._ranges(start))
            begun = {self._item(i): (None, at) for i, at in start.items()}
            return self._settle(settled={_START: (None, self._start.to_text()), **begun})
        if not sealed:
            self._align(known)
        return True

    def _align(self, positions: dict[int, int]) -> None:
        """Repair the ranges of the destination if others have scaled it. The order does not depend on it."""
        ranges = self._ranges(positions)
        self._destination.pass_barrier(ranges, ranges)

    def _present(self) -> dict[int, int]:
        """Return the positions after the last step."""
        last = {} if self._last is None else {item: after for item, (_, after) in self._last.moves.items()}
        return positions_of(self._steps.state.positions | last)

    def _item(self, segment_id: int) -> str:
        return segment_name(self._source.stream, segment_id)

    def _ranges(self, segment_ids: Any) -> list[SegmentRange]:
        return [self._source.lineage.range_of(segment_id) for segment_id in segment_ids]

    def _view(self, positions: dict[int, int]) -> View:
        limits = self._time.limits(positions, self._settings.transaction_bytes)
        if self._end is not None:
            limits = {i: min(limits.get(i, _NEVER), self._end.offset(i)) for i in positions}
        view = self._source.view(positions, limits)
        self.counts.lag_bytes = view.lag
        metrics.LAG.set(view.lag, str(self._source.stream), str(self._target))
        return view

    # ---------------------------------------------------------------- one step

    def _step(self, view: View) -> bool:
        """Mirror the next events. Return False if the step failed, or if another run is in the way."""
        settled = {self._item(i): move for i, move in view.skipped.items()}
        if not view.pieces:
            done = self._settle(settled=settled)
        else:
            try:
                batch = self._source.read(view.pieces, self._settings.transaction_bytes)
            except DataLossError:
                if not self._settings.skip_lost:
                    raise
                return True  # the next view is after the lost events
            done = self._copy(batch, settled)
        if done:
            self._count_skipped(view)
        return done

    def _copy(self, batch: list[Frames], settled: dict[str, tuple[Any, Any]]) -> bool:
        transaction = self._transactions.begin()
        moves = {self._item(frames.segment_id): (frames.start, frames.end) for frames in batch}
        update = self._update(settled=settled, step=self._new_step(transaction, moves))

        def write() -> None:
            self._keeper.add(transaction)
            for frames in batch:
                (owner,) = self._ranges([frames.segment_id])
                transaction.write_frames(frames.data, frames.ends, point(owner))

        if not self._make(transaction, update, write):
            return False
        self._count(batch)
        return True

    def _count(self, batch: list[Frames]) -> None:
        events, size = sum(len(each.ends) for each in batch), sum(len(each.data) for each in batch)
        metrics.CONSUMED_EVENTS.add(events, str(self._source.stream))
        metrics.CONSUMED_BYTES.add(size, str(self._source.stream))
        self.counts.events += events
        self.counts.bytes += size
        self.counts.transactions += 1
        self.counts.lag_bytes = max(0, self.counts.lag_bytes - size)
        self._report("copying")

    def _count_skipped(self, view: View) -> None:
        for segment_id, (before, after) in view.skipped.items():
            what = "offset " + str(after) if after != GONE else "its unknown end"
            _log.warning("%s: skipped %s from offset %d to %s", self._label, self._item(segment_id), before, what)
            self.counts.skipped_bytes += after - before if after != GONE else 0

    # ---------------------------------------------------------------- between steps

    def _next_group(self, positions: dict[int, int], view: View) -> tuple[list[int], list[int]] | None:
        """Return the predecessors and successors of a scaling that can be followed, or None."""
        finished = view.finished if self._end is None else view.finished - self._end.positions.keys()
        return self._source.group(positions, finished)

    def _pass_barrier(self, positions: dict[int, int], before: list[int], after: list[int]) -> bool:
        """Begin the successors of finished segments. Return False if another run is in the way."""
        if not self._settle_last():  # their events must be visible
            return False
        self._destination.pass_barrier(self._ranges(before), self._ranges(after))
        # The update is refused if another run has passed the barrier and dropped these segments.
        ended = {self._item(i): (positions[i], positions[i]) for i in before}
        begun = {self._item(segment_id): (None, 0) for segment_id in after}
        if not self._settle(settled=ended | begun, forget=tuple(ended)):
            return False
        self.counts.barriers += 1
        return True

    def _settle_last(self) -> bool:
        """Record the outcome of the last step, when it is visible. Return False if another run has taken over."""
        return self._last is None or self._settle()

    def _note_time(self, positions: dict[int, int]) -> bool:
        if not self._settle_last():  # the noted position must be after their events
            return False
        self._time.note(positions, sealed=self._destination.is_sealed)
        return True

    def _is_done(self, positions: dict[int, int], view: View) -> bool:
        self.sealed = positions.keys() == view.finished and self._source.is_sealed(view.finished)
        at_end = self._end is not None and self._end.is_reached(positions)
        return self.sealed or at_end

    def _finish(self) -> bool:
        """Record the outcome of the last step, and seal the destination if that is wanted."""
        if not self._settle_last():
            return False
        self._carry_tags()
        if self.sealed and self._settings.seal:
            self._destination.seal()
        self._report("done")
        return True

    def _wait(self, pause: float) -> bool:
        """Wait for new events. Return False if another run has changed the log."""
        if pause >= POLL and not self._settle_last():
            return False
        self._carry_tags()
        self._report("waiting for new events")
        time.sleep(pause)
        revision = self._steps.revision
        self._steps.read()
        self._trouble.is_over()
        return bool(self._steps.revision == revision)

    def _carry_tags(self) -> None:
        """Give the destination the tags of the source, and remove tags that the source does not have any more."""
        now = time.monotonic()
        if now - self._tags_at < _TAGS_EVERY or self._destination.is_sealed:
            return
        self._tags_at = now
        tags = sorted(self._source.stores.controller.stream_config(self._source.stream).tags)
        carried = self._steps.state.note.get("tags", [])
        if self._destination.change_tags([tag for tag in carried if tag not in tags], tags):
            self._align(self._present())
        if tags != carried:
            self._settle(note={"tags": tags})
