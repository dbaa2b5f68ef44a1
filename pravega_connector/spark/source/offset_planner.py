"""Plan of a streaming query: from the end of one micro-batch to the end of the next, over all its streams.

Theory of operation
-------------------

A position is a stream cut: an offset for each segment. To plan the next batch, the planner first replaces segments that
are sealed and read to their end with their successors. A successor starts when *all* its predecessors are finished.
Then each segment is read up to its current length. So a batch has, for each routing key, bytes of only one segment.
Spark may read the segments in parallel, and the events of one key still stay in order from batch to batch.

The range of a batch depends only on the offsets at its two ends; see ``offsets``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.io import of_each
from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    DataLossError,
    MalformedStreamCutError,
    StreamNotFoundError,
)
from pravega_connector.lag import Loss
from pravega_connector.reader.boundaries import Boundaries, divide
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.reader.tail_notifications import Arrivals
from pravega_connector.rows.bounds import Positions
from pravega_connector.rows.offsets import Offset, slices_of
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.admission import Admission, Backlog, Limits
from pravega_connector.spark.source.data_loss import DataLoss
from pravega_connector.spark.source.streams import Streams
from pravega_connector.spark.source.tasks import TASK_BYTES
from pravega_connector.stores.segment_stores import SegmentInfo, SegmentStores
from pravega_connector.stores.segments import Lineage
from pravega_connector.wire import StreamCut, StreamName

#: End of a slice that has no end: the largest offset.
OPEN_END: Final = 2**63 - 1
# Seconds between two requests for the successors of a sealed segment that had none (the last one of its stream).
_LAST_LOOK: Final = 1.0
# Spark polls every 10 ms for new data. After a poll that found none, the segment stores report new data. The next poll
# starts after this many seconds at the latest: for new streams, and for changes that the stores do not report.
_TOLD_PAUSE: Final = 0.5
# If they cannot report it, the next poll waits at least this many seconds, or a multiple of the duration of the last
# poll: so polling costs little, and new data is found soon.
_LEAST_PAUSE: Final = 0.05
_PAUSE_PER_LOOK: Final = 4.0
_LONGEST_PAUSE: Final = 1.0
# Attempts to plan a batch of a stream that is being truncated, and seconds between them.
_ATTEMPTS: Final = 10
_SETTLING: Final = 0.2


@dataclass(frozen=True, slots=True)
class Ceiling:
    """End of reading: the segments that may be read at all, and an end offset for the segments in the end cut."""

    segments: frozenset[int]
    ends: Mapping[int, int]


_NO_CEILING: Final = Ceiling(frozenset(), {})


class _PatientLineage(Lineage):
    """Lineage that requests the successors of a sealed stream's last segments once a second, for one of them only."""

    def __init__(
        self, stores: SegmentStores, stream: StreamName, clock: Callable[[], float], key: float | None
    ) -> None:
        super().__init__(stores, stream, key)
        self._clock = clock
        self._last: set[int] = set()
        self._next_look = 0.0

    def successors(self, segment_id: int) -> dict[int, tuple[int, ...]]:
        if segment_id in self._last and self._clock() < self._next_look:
            return {}
        found = super().successors(segment_id)
        if not found:
            self._last.add(segment_id)
            self._next_look = self._clock() + _LAST_LOOK
        elif segment_id in self._last:
            self._last.clear()
        return found


class StreamPlanner:
    """Planner of the batches of one stream. Its state is not needed after a restart.

    With ``key``, the position of a routing key on the key line, it plans only the segments that own the key.
    """

    def __init__(
        self,
        client: PravegaClient,
        stream: StreamName,
        clock: Callable[[], float] = time.monotonic,
        key: float | None = None,
    ) -> None:
        self._client = client
        self.stream = stream
        self.lineage: Lineage = _PatientLineage(client.stores, stream, clock, key)
        """Segments that are read."""
        self._ceilings: list[Ceiling] = []
        self.growing: dict[int, int] = {}
        """Ends of the segments that were read completely at the last backlog, but may get more."""

    def end_at(self, start: StreamCut, end: StreamCut) -> list[Loss]:
        """Read nothing past ``end``; reading resumes at ``start``.

        If truncation has passed the end, the start may be after it. Then nothing is left to read in these segments, and
        their losses are returned. Raises MalformedStreamCutError for another end before the start, DataLossError if the
        start is a cut of a deleted stream of this name.
        """
        controller = self._client.controller
        losses: list[Loss] = []
        try:
            segments = controller.segments_between(start, end)
        except MalformedStreamCutError:
            if not controller.is_cut_valid(start):
                raise DataLossError(f"stream {self.stream} was deleted and recreated") from None
            losses = self._truncated_before(end)
            if not losses:
                raise
            first = {segment.id: 0 for segment in controller.epoch_segments(self.stream, 0)}
            segments = controller.segments_between(StreamCut(self.stream, first), end)
        self._ceilings.append(Ceiling(frozenset(segments), end.positions))
        return losses

    def _truncated_before(self, end: StreamCut) -> list[Loss]:
        """Return the losses in the segments of ``end`` that truncation has moved past it."""
        infos = self._client.stores.segment_infos(self.stream, end.positions)
        passed = (i for i, info in infos.items() if not info.exists or info.start_offset > end.positions[i])
        return [Loss(self.stream, i, 0, end.positions[i]) for i in sorted(passed)]

    def wanted(self, loss: Loss) -> Loss | None:
        """Return the part of a loss that the query should read; None if there is none."""
        if not self._is_wanted(loss.segment_id, loss.offset):
            return None
        if not loss.deleted and not self.lineage.includes(loss.segment_id):
            return None
        end = min(ceiling.ends.get(loss.segment_id, OPEN_END) for ceiling in (*self._ceilings, _NO_CEILING))
        return loss if loss.bytes is None else replace(loss, bytes=min(loss.bytes, end - loss.offset))

    def _is_wanted(self, segment_id: int, at: int) -> bool:
        return self._below([segment_id]) and all(at < c.ends.get(segment_id, OPEN_END) for c in self._ceilings)

    def backlog(self, start: StreamCut) -> Backlog:
        """Return the readable part after ``start``, in the segments of ``start`` or, where they ended, in successors.

        Raises DataLossError if a segment was deleted or truncated before it was read, StreamNotFoundError.
        """
        positions = dict(start.positions)
        infos = self._enter_successors(positions, self.lineage.included(start))
        ends = dict(positions)
        for segment_id in infos.keys() & positions.keys():
            lengths = [infos[segment_id].write_offset, *(c.ends.get(segment_id, OPEN_END) for c in self._ceilings)]
            if self._below([segment_id]):
                ends[segment_id] = max(positions[segment_id], min(lengths))
        self.growing = {
            i: end for i, end in ends.items() if i in infos and _is_growing(infos[i]) and end == infos[i].write_offset
        }
        return Backlog(self.stream, positions, ends)

    def slices(self, start: StreamCut) -> Iterator[SegmentSlice]:
        """Yield everything readable after ``start``, predecessors before successors. Raises like :meth:`backlog`."""
        while True:
            backlog = self.backlog(start)
            end = StreamCut(self.stream, backlog.ends)
            found = list(slices_of(StreamCut(self.stream, backlog.starts), end))
            if not found:
                return
            yield from found
            start = end

    def to_follow(self, backlog: Backlog) -> list[SegmentSlice]:
        """Return the slices that a reader can follow from the start of a backlog: all but those that get no more bytes.

        A slice ends where reading ends. Without such an end, its end is :data:`OPEN_END`.
        """
        slices = (
            SegmentSlice(self.stream, i, at, min((c.ends.get(i, OPEN_END) for c in self._ceilings), default=OPEN_END))
            for i, at in backlog.starts.items()
            if at < backlog.ends[i] or i in self.growing
        )
        return [piece for piece in slices if piece.start < piece.end and self._below([piece.segment_id])]

    def _below(self, segment_ids: Iterable[int]) -> bool:
        return all(ceiling.segments.issuperset(segment_ids) for ceiling in self._ceilings)

    def _enter_successors(self, positions: dict[int, int], entered: Iterable[int]) -> dict[int, SegmentInfo]:
        """Replace finished segments with their successors. ``entered`` are the segments that are read.

        Each of these that remains has bytes, or may get more, or waits for another predecessor of its successor.
        """
        infos: dict[int, SegmentInfo] = {}
        finished: set[int] = set()
        while entered:
            infos |= self._client.stores.segment_infos(self.stream, entered)
            ended = {i for i in entered if self._is_finished(infos[i], positions[i])}
            finished |= ended
            entered = self.lineage.advance(positions, finished, ended)
        return infos

    def _is_finished(self, info: SegmentInfo, at: int) -> bool:
        """Return True if a segment is read to its end, and its successors may be read.

        Raises the errors of :meth:`backlog`.
        """
        if not self._is_wanted(info.id, at):
            return False
        self._check_present(info, at)
        return info.sealed and at >= info.write_offset and self._below(self.lineage.successors(info.id))

    def _check_present(self, info: SegmentInfo, at: int) -> None:
        if info.exists and at >= info.start_offset:
            return
        if not self._client.controller.stream_exists(self.stream):
            raise StreamNotFoundError(f"stream {self.stream} was deleted")
        lost = f"{info.start_offset - at} bytes before offset {info.start_offset}" if info.exists else "what followed"
        raise DataLossError(
            f"stream {self.stream}, segment {info.id}, offset {at}: {lost} was truncated before it was read; "
            "start at the head of the stream with a new checkpoint, or keep the data longer (retention)"
        )


def stream_planner(
    client: PravegaClient,
    options: SourceOptions,
    stream: StreamName,
    clock: Callable[[], float] = time.monotonic,
) -> StreamPlanner:
    """Return the planner of a stream for the routing key that the options select, or for all keys."""
    return StreamPlanner(client, stream, clock, options.key_position)


class _Followed(NamedTuple):
    """Start of a batch in real-time mode. Its end is known when it is over."""

    start: Offset
    begins: Mapping[StreamName, StreamCut]
    backlogs: Sequence[Backlog]
    gone: frozenset[StreamName]


def _with(streams: tuple[StreamName, ...], more: tuple[StreamName, ...]) -> tuple[StreamName, ...]:
    return tuple(sorted((*streams, *more))) if more else streams


def _key_text(key: str | None) -> str:
    return "all routing keys" if key is None else f"routing key {key!r}"


def _is_growing(info: SegmentInfo) -> bool:
    return info.exists and not info.sealed


class QueryPlan:
    """Planner of the batches of a streaming query. Its state is not needed after a restart."""

    def __init__(
        self, client: PravegaClient, options: SourceOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._options, self._clock = client, options, clock
        self._streams = Streams(client, options, clock)
        self._ends = Positions(
            client, "end_stream_cut", options.end_stream_cut, "unbounded", end=True, key=options.routing_key
        )
        self._boundaries = Boundaries(client.stores)
        limits = Limits(options.max_bytes_per_trigger, options.max_rows_per_trigger)
        self._admission = Admission(self._boundaries, limits)
        self._planners: dict[StreamName, StreamPlanner] = {}
        self._available: dict[StreamName, StreamCut] | None = None
        self._next_look = 0.0
        self._followed: _Followed | None = None
        self._arrivals = Arrivals(client.stores)
        self._was_told = self._stopped = False
        self.is_idle = False
        """True while the plan waits for new data, so that no data to read is known."""
        self.losses = DataLoss(client, fail=options.fail_on_data_loss)

    def first(self) -> Offset:
        """Return the beginning of the query: the start position of each existing stream."""
        options = self._options
        starts = Positions(
            self._client, "start_stream_cut", options.start_stream_cut, "latest", key=options.routing_key
        )
        streams = self._streams.now()
        if self._options.stream_pattern is None:
            starts.check(streams)
            self._ends.check(streams)
        streams = _with(streams, self._streams.gone(starts.known()))
        cuts = dict(zip(streams, of_each(starts.bounded, streams), strict=True))
        if self._options.end_stream_cut is not None:
            of_each(self._check_end, cuts.values())
        return Offset(cuts, key=options.routing_key)

    def _check_end(self, begin: StreamCut) -> None:
        """Report the loss if the query begins after its end, because truncation has passed the end."""
        passed: list[Loss] = []
        with suppress(DataLossError, StreamNotFoundError):  # it is missed when the batch is planned
            end = self._ends.cut(begin.stream)
            passed = [] if end is None else self._planner_of(begin.stream).end_at(begin, end)
        self.losses.note(passed)

    def end_here(self) -> None:
        """Fix the current streams and their tails as the end of the run."""
        self._streams.freeze()
        streams = self._streams.now()
        tails = zip(streams, of_each(self._tail, streams), strict=True)
        self._available = {stream: tail for stream, tail in tails if tail is not None}

    def _tail(self, stream: StreamName) -> StreamCut | None:
        with suppress(StreamNotFoundError):  # it is missed when the batch is planned
            return self._client.tail(stream)
        return None

    def next(self, start: Offset) -> Offset:
        """Return the end of the batch that begins at ``start``, or ``start`` itself if there is nothing to read.

        Data that was deleted before it was read raises an error or is skipped, see ``data_loss``. Raises DataLossError,
        StreamNotFoundError, ConfigError for a checkpoint of other streams.
        """
        told = self._await_look()
        began = self._clock()
        begins, backlogs, gone = self._look(start)
        self._boundaries.keep_only({(b.stream, segment_id) for b in backlogs for segment_id in b.ends})
        end = self._offset(start, begins, self._admission.admit(backlogs), gone)
        if end is start:
            took = self._clock() - began
            self._next_look = self._clock() + min(max(_LEAST_PAUSE, _PAUSE_PER_LOOK * took), _LONGEST_PAUSE)
        self._was_told = told
        return end

    def follow(self, start: Offset) -> list[SegmentSlice]:
        """Return the slices to follow from ``start`` in a batch of Spark's real-time mode. Raises like :meth:`next`."""
        begins, backlogs, gone = self._look(start)
        self._followed = _Followed(start, begins, backlogs, gone)
        return [piece for backlog in backlogs for piece in self._planners[backlog.stream].to_follow(backlog)]

    def end_of_followed(self, positions: Mapping[StreamName, Mapping[int, int]]) -> Offset:
        """Return the end of the batch of :meth:`follow`, which has reached these positions in its segments."""
        assert self._followed is not None
        start, begins, backlogs, gone = self._followed
        ends = {backlog.stream: {**backlog.starts, **positions.get(backlog.stream, {})} for backlog in backlogs}
        return self._offset(start, begins, ends, gone, divided=False)

    def _look(self, start: Offset) -> tuple[dict[StreamName, StreamCut], list[Backlog], frozenset[StreamName]]:
        """Return the position at which each stream resumes, what is readable after it, and the deleted streams."""
        streams = self._known(start)
        found = of_each(lambda stream: self._remaining(stream, start.cuts.get(stream)), streams)
        begins = {backlog.stream: begin for begin, backlog in filter(None, found)}
        return begins, [backlog for _, backlog in filter(None, found)], frozenset(set(streams) - begins.keys())

    def _await_look(self) -> bool:
        """Wait until the next poll is due. Return True if a segment store reported new data."""
        pause = self._next_look - self._clock()
        if pause <= 0:
            return False
        self.is_idle = True
        try:
            # The last report led to no data. Ignore reports this time; otherwise polls could follow without a pause.
            told = None if self._was_told else self._arrivals.wait(self._growing(), _TOLD_PAUSE)
            if told is None and not self._stopped:
                time.sleep(pause)
        finally:
            self.is_idle = False
        if self._stopped:
            raise ConnectorError("the query was stopped while it polled for events")
        return told or False

    def stop(self) -> None:
        """End a wait in another thread; no poll follows it."""
        self._stopped = True
        self._arrivals.interrupt()

    def _growing(self) -> dict[StreamName, dict[int, int]]:
        return {stream: planner.growing for stream, planner in self._planners.items() if planner.growing}

    def _known(self, start: Offset) -> Sequence[StreamName]:
        """Return the streams to read now. Streams that the query no longer reads keep their positions."""
        if start.key != self._options.routing_key:
            raise ConfigError(
                f"the checkpoint is of a query that reads {_key_text(start.key)}, but this query reads "
                f"{_key_text(self._options.routing_key)}: use a separate checkpoint for each routing key"
            )
        streams = self._streams.now()
        streams = _with(streams, self._streams.gone(start.cuts))
        if start.cuts and streams and not any(map(self._streams.covers, start.cuts)):
            raise ConfigError(
                f"the checkpoint is for stream {', '.join(map(str, start.cuts))}, but the query reads "
                f"{', '.join(map(str, streams))}: use a separate checkpoint for a query that reads another stream"
            )
        return streams

    def _remaining(self, stream: StreamName, begin: StreamCut | None) -> tuple[StreamCut, Backlog] | None:
        """Return the position at which a stream resumes, and its readable part after it; None for a deleted stream.

        ``begin`` is None for a stream that the query has not read yet.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                at = begin or self._client.head(stream)
                return at, self._backlog(stream, at)
            except (DataLossError, StreamNotFoundError):
                if begin is None and self._options.stream_pattern is not None:
                    return None  # deleted after it was listed, before the query had a position in it
                if begin is None or attempt == _ATTEMPTS:
                    raise
            # The stream may have been created again with the same name.
            planner = self._planners.pop(stream, None)
            begin = self.losses.resume(begin, None if planner is None else planner.wanted)
            if begin is None:
                return None
            if attempt > 1:
                time.sleep(_SETTLING)  # the servers truncate one segment after the other
        raise AssertionError

    def _backlog(self, stream: StreamName, begin: StreamCut) -> Backlog:
        planner = self._planners.get(stream)
        if planner is None:
            planner = self._planners[stream] = self._new_planner(stream, begin)
        backlog = planner.backlog(begin)
        for segment_id, end in backlog.ends.items():
            self._boundaries.note(stream, segment_id, end)
        return backlog

    def _planner_of(self, stream: StreamName) -> StreamPlanner:
        return stream_planner(self._client, self._options, stream, self._clock)

    def _new_planner(self, stream: StreamName, begin: StreamCut) -> StreamPlanner:
        planner = self._planner_of(stream)
        for end in (self._ends.cut(stream), None if self._available is None else self._available.get(stream, begin)):
            if end is not None:
                planner.end_at(begin, end)
        return planner

    def _offset(
        self,
        start: Offset,
        begins: Mapping[StreamName, StreamCut],
        positions: Mapping[StreamName, Mapping[int, int]],
        gone: Collection[StreamName],
        *,
        divided: bool = True,
    ) -> Offset:
        """Return the offset at ``positions``, or ``start`` itself if that is the same position."""
        ends = {stream: StreamCut(stream, reached) for stream, reached in positions.items()}
        moved = {stream: begin for stream, begin in begins.items() if start.cuts.get(stream) != begin}
        if not moved and all(start.cuts[stream] == end for stream, end in ends.items()):
            return start
        shared = 0 if self._options.min_partitions else TASK_BYTES
        kept = start.cuts
        if self._options.stream_pattern is not None:  # a stream that is created again counts as new
            kept = {stream: cut for stream, cut in kept.items() if stream not in gone}
        parts = self._parts(begins, ends) if divided else {}
        return Offset({**kept, **ends}, moved, parts, task_bytes=shared, key=self._options.routing_key)

    def _parts(
        self, begins: Mapping[StreamName, StreamCut], ends: Mapping[StreamName, StreamCut]
    ) -> dict[StreamName, dict[int, tuple[int, ...]]]:
        slices = [piece for stream, end in ends.items() for piece in slices_of(begins[stream], end)]
        parts: dict[StreamName, dict[int, tuple[int, ...]]] = {}
        for piece, places in divide(self._boundaries, slices, self._options.min_partitions):
            parts.setdefault(piece.stream, {})[piece.segment_id] = places
        return parts
