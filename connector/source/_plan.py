"""From the end of one micro-batch to the end of the next, over all streams of a query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from connector.client import PravegaClient, SegmentSlice, StreamCut, StreamName
from connector.errors import ConfigError, DataLossError, StreamNotFoundError
from connector.source._admission import Admission, Backlog, Limits
from connector.source._boundaries import Boundaries
from connector.source._data_loss import DataLoss
from connector.source._offsets import Offset, slices_of
from connector.source._options import SourceOptions
from connector.source._planner import StreamPlanner
from connector.source._positions import Positions
from connector.source._streams import Streams

__all__ = ["QueryPlan", "divide"]

# Spark asks every 10 ms for new data. After a look that found none the next one waits so many seconds, or this many
# times as long as the look took: looking costs little, and what comes is seen soon.
_LEAST_PAUSE: Final = 0.05
_PAUSE_PER_LOOK: Final = 4.0
_LONGEST_PAUSE: Final = 1.0
# A stream that is truncated while a batch is planned is looked at again, so often and after so many seconds.
_ATTEMPTS: Final = 10
_SETTLING: Final = 0.2


class QueryPlan:
    """Plans a streaming query's batches. What it remembers is never needed after a restart."""

    def __init__(
        self, client: PravegaClient, options: SourceOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._options, self._clock = client, options, clock
        self._streams = Streams(client, options, clock)
        self._ends = Positions(client, "end_stream_cut", options.end_stream_cut, "unbounded", end=True)
        self._boundaries = Boundaries(client.stores)
        limits = Limits(options.max_bytes_per_trigger, options.max_rows_per_trigger)
        self._admission = Admission(self._boundaries, limits)
        self._planners: dict[StreamName, StreamPlanner] = {}
        self._available: dict[StreamName, StreamCut] | None = None
        self._next_look = 0.0
        self.losses = DataLoss(client, fail=options.fail_on_data_loss)

    def first(self) -> Offset:
        """Where the query begins: at the start of each stream that is there."""
        starts = Positions(self._client, "start_stream_cut", self._options.start_stream_cut, "latest")
        streams = self._streams.now()
        if self._options.stream_pattern is None:
            starts.check(streams)
            self._ends.check(streams)
        return Offset({stream: _bounded(starts.cut(stream)) for stream in streams})

    def end_here(self) -> None:
        """Fix the streams and their tails of this moment as the end of the run."""
        self._streams.freeze()
        self._available = {}
        for stream in self._streams.now():
            with suppress(StreamNotFoundError):  # it is missed when the batch is planned
                self._available[stream] = self._client.tail(stream)

    def next(self, start: Offset) -> Offset:
        """The end of the batch that begins at ``start``; ``start`` itself if there is nothing to read.

        What is gone before it was read is an error or passed over, see ``_data_loss``. Raises DataLossError,
        StreamNotFoundError, ConfigError for a checkpoint of other streams.
        """
        self._await_look()
        began = self._clock()
        found = [self._remaining(stream, start.cuts.get(stream)) for stream in self._known(start)]
        begins = {backlog.stream: begin for begin, backlog in filter(None, found)}
        end = self._end(start, begins, [backlog for _, backlog in filter(None, found)])
        if end is start:
            took = self._clock() - began
            self._next_look = self._clock() + min(max(_LEAST_PAUSE, _PAUSE_PER_LOOK * took), _LONGEST_PAUSE)
        return end

    def _await_look(self) -> None:
        pause = self._next_look - self._clock()
        if pause > 0:
            time.sleep(pause)

    def _known(self, start: Offset) -> Sequence[StreamName]:
        """The streams to read now. Those that the query does not read any more keep their positions."""
        streams = self._streams.now()
        if start.cuts and streams and not start.cuts.keys() & set(streams):
            raise ConfigError(
                f"the checkpoint is of stream {', '.join(map(str, start.cuts))}, the query reads "
                f"{', '.join(map(str, streams))}: a query that reads another stream needs a checkpoint of its own"
            )
        return streams

    def _remaining(self, stream: StreamName, begin: StreamCut | None) -> tuple[StreamCut, Backlog] | None:
        """Where a stream goes on, and what it has from there on; None for one that is gone, or never was.

        ``begin`` is None for a stream that the query has not read yet.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                at = begin or self._client.head(stream)
                return at, self._backlog(stream, at)
            except (DataLossError, StreamNotFoundError):
                if begin is None or attempt == _ATTEMPTS:
                    raise
            # The stream may be another one by now, with the same name.
            self._planners.pop(stream, None)
            begin = self.losses.resume(begin)
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

    def _new_planner(self, stream: StreamName, begin: StreamCut) -> StreamPlanner:
        planner = StreamPlanner(self._client, stream, self._clock)
        for end in (self._ends.cut(stream), None if self._available is None else self._available.get(stream, begin)):
            if end is not None:
                planner.end_at(begin, end)
        return planner

    def _end(self, start: Offset, begins: Mapping[StreamName, StreamCut], backlogs: Sequence[Backlog]) -> Offset:
        self._boundaries.keep_only({(b.stream, segment_id) for b in backlogs for segment_id in b.ends})
        admitted = self._admission.admit(backlogs)
        ends = {stream: StreamCut(stream, positions) for stream, positions in admitted.items()}
        moved = {stream: begin for stream, begin in begins.items() if start.cuts.get(stream) != begin}
        if not moved and all(start.cuts[stream] == end for stream, end in ends.items()):
            return start
        return Offset({**start.cuts, **ends}, moved, self._parts(begins, ends))

    def _parts(
        self, begins: Mapping[StreamName, StreamCut], ends: Mapping[StreamName, StreamCut]
    ) -> dict[StreamName, dict[int, tuple[int, ...]]]:
        slices = [piece for stream, end in ends.items() for piece in slices_of(begins[stream], end)]
        parts: dict[StreamName, dict[int, tuple[int, ...]]] = {}
        for piece, places in divide(self._boundaries, slices, self._options.min_partitions):
            parts.setdefault(piece.stream, {})[piece.segment_id] = places
        return parts


def divide(
    boundaries: Boundaries, slices: Sequence[SegmentSlice], least: int | None
) -> Iterable[tuple[SegmentSlice, tuple[int, ...]]]:
    """Where to divide slices between events to have at least so many, of about equal size; not all of them need be."""
    if least is None or len(slices) >= least:
        return
    size = sum(piece.end - piece.start for piece in slices) / least
    for piece in slices:
        count = -(-(piece.end - piece.start) // max(size, 1))
        goals = [piece.start + int((piece.end - piece.start) * i / count) for i in range(1, int(count))]
        if places := boundaries.ends_near(piece, goals):
            yield piece, tuple(places)


def _bounded(cut: StreamCut | None) -> StreamCut:
    assert cut is not None
    return cut
