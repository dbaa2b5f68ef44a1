"""What Spark calls: the batch reader and the stream reader.

Spark makes several instances of these in several processes (the instance that plans is not the one that reads), so
what a read needs travels in its partition, and what the planning instance remembers is never needed after a restart.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from connector.client import (
    PravegaClient,
    SegmentSlice,
    SegmentTimes,
    StreamCut,
    StreamName,
    note_answer,
    shared_client,
    slices_between,
)
from connector.exchange import Exchanged
from connector.source._boundaries import Boundaries
from connector.source._columns import Decoder, RowBuilder, batches
from connector.source._data_loss import DataLoss, read_remaining, remaining_slices
from connector.source._dead_letters import check_letter_box, rows_with_letters
from connector.source._event_time import NO_TIMES, marks_end, times_along, wants_event_time
from connector.source._offsets import Offset
from connector.source._options import SourceOptions
from connector.source._plan import QueryPlan, divide
from connector.source._positions import Positions
from connector.source._progress import Progress
from connector.source._published import PublishedPosition
from connector.source._pushdown import Pushed, filters_are_pushed, until
from connector.source._streams import Streams

__all__ = ["PravegaBatchReader", "PravegaStreamReader", "batch_reader", "require_streams"]

T = TypeVar("T")
# While servers are in trouble Spark gets its answer after so many seconds, and shows the trouble in the progress.
_ANSWER_WITHIN: Final = 5.0
# … if it asks again so soon. A query with a longer trigger would miss the end of the outage by as much.
_ASKED_AGAIN_WITHIN: Final = 10.0
_POLL: Final = 0.2


def require_streams(options: SourceOptions) -> None:
    """Raise StreamNotFoundError if a stream to read does not exist, ControllerUnavailableError if nobody knows."""
    # Somebody waits for it. Half the time: Spark repeats a failed look at the schema once, in a new process.
    client = shared_client(options.config(), options.timeout_ms / 2000, options.timeout_ms / 2000)
    Streams(client, options).require()
    note_answer(client.config)


@dataclass(frozen=True)
class SlicePartition(Exchanged, InputPartition):  # type: ignore[misc]
    """One range of a segment, read by one task, up to ``stop`` if a filter passes nothing from there on."""

    slice: SegmentSlice
    times: SegmentTimes = NO_TIMES
    stop: int | None = None


class _Reader(Exchanged):
    """What both readers share: options and schema in, record batches out.

    ``schema`` is the Arrow schema of the rows, ``serializer`` decodes them, if they are to be decoded.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> None:
        self.options, self.schema, self.serializer = options, schema, serializer
        RowBuilder(schema, options, serializer)  # columns that cannot be are said here, before any task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition."""
        # Spark asks once, for None, when there are no partitions.
        if not isinstance(partition, SlicePartition):
            return iter(())
        client = self.options.client(service=True)
        if self.options.has_dead_letters:
            return rows_with_letters(
                client, self.options, self.schema, self.serializer, partition.slice, times=partition.times
            )
        builder = RowBuilder(self.schema, self.options, self.serializer, times=partition.times)
        events = read_remaining(client.stores, [partition.slice], fail=self.options.fail_on_data_loss)
        return batches(builder, until(events, partition.stop))

    def _times(
        self, slices: Sequence[SegmentSlice], ends: Mapping[StreamName, int] | None = None
    ) -> Iterable[SegmentTimes]:
        """The event times along slices, where columns need them."""
        if not wants_event_time(self.options):
            return itertools.repeat(NO_TIMES, len(slices))
        return times_along(self.options.client(), slices, ends)


class PravegaBatchReader(_Reader, DataSourceReader):  # type: ignore[misc]
    """Reads streams between two cuts of each, one partition for each part of a segment."""

    _pushed: Pushed | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges of segments between the start and the end cut of each stream."""
        client, options = self.options.client(), self.options
        check_letter_box(client, options)
        starts = Positions(client, "start_stream_cut", options.start_stream_cut, "earliest")
        end = "latest" if (options.end_stream_cut or "").strip().lower() == "unbounded" else options.end_stream_cut
        ends = Positions(client, "end_stream_cut", end, "latest", end=True)
        streams = Streams(client, options).now()
        if options.stream_pattern is None:
            starts.check(streams)
            ends.check(streams)
        losses = DataLoss(client, fail=options.fail_on_data_loss)
        slices = [
            piece for stream in streams for piece in _slices(client, losses, starts.cut(stream), ends.cut(stream))
        ]
        places = dict(divide(Boundaries(client.stores), slices, options.min_partitions))
        parts = [part for piece in slices for part in _divided(piece, places.get(piece, ()))]
        stop = None
        if self._pushed is not None:
            parts, stop = self._pushed.keep(parts), self._pushed.stop
        return [SlicePartition(part, times, stop) for part, times in zip(parts, self._times(parts), strict=True)]


class PravegaFilteringReader(PravegaBatchReader):
    """The batch reader where Spark hands over filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take filters on metadata columns; those that are left for Spark."""
        self._pushed = Pushed(self.options, filters)
        return self._pushed.left


def batch_reader(options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> PravegaBatchReader:
    """The reader of a batch query; it takes filters where Spark would hand some over."""
    reader = PravegaFilteringReader if filters_are_pushed() else PravegaBatchReader
    return reader(options, schema, serializer)


def _slices(
    client: PravegaClient, losses: DataLoss, start: StreamCut | None, end: StreamCut | None
) -> list[SegmentSlice]:
    assert start is not None
    assert end is not None
    remaining = losses.resume(start)
    if remaining == start:
        return slices_between(client.stores, start, end)
    return [] if remaining is None else list(remaining_slices(client.stores, start, end))


def _divided(piece: SegmentSlice, places: Sequence[int]) -> list[SegmentSlice]:
    bounds = itertools.pairwise([piece.start, *places, piece.end])
    return [SegmentSlice(piece.stream, piece.segment_id, begin, end) for begin, end in bounds]


def _in_background(step: Callable[[], T]) -> Future[T]:
    """The outcome of a step in a thread that nobody waits for at the end of the process, also in an outage."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(step())
        except BaseException as error:  # noqa: BLE001 - raised to whoever wants the result
            outcome.set_exception(error)

    threading.Thread(target=run, name="pravega-look", daemon=True).start()
    return outcome


class PravegaStreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads streams from a cut of each on, in micro-batches that keep the order per routing key.

    A batch is a function of its two offsets alone; see ``connector.source._offsets``.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> None:
        super().__init__(options, schema, serializer)
        self._own_plan: QueryPlan | None = None
        self._own_progress: Progress | None = None
        self._own_position: PublishedPosition | None = None
        self._planned: Mapping[StreamName, StreamCut] = {}
        self._first: dict[str, Any] | None = None
        self._own_client: PravegaClient | None = None
        self._look: Future[Offset] | None = None
        self._looks_from: Offset | None = None
        self._ends_now = False
        self._asked = -math.inf
        self._interval = math.inf

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The start of each stream; Spark asks twice, so "latest" is resolved once."""
        if self._first is None:
            self._first = self._plan.first().to_json()
        return self._first

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """All there is: the limits of the options are applied in latestOffset, where both can hold at once."""
        return ReadAllAvailable()

    def latestOffset(  # noqa: N802
        self,
        start: dict[str, Any] | None = None,
        limit: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """The end of the next batch, which begins at ``start``; the same value if there is nothing to read.

        Servers that do not answer are waited for. Where Spark would ask again soon, it gets ``start`` meanwhile: that
        keeps the query responsive, and its progress tells of the outage. A run that ends with what is there waits.
        """
        value = self.initialOffset() if start is None else start
        if self._first is None:
            self.options.client(service=True)  # a checkpoint says where to go on: the query has run before
        self._interval = min(self._interval, time.monotonic() - self._asked)
        self._asked = time.monotonic()
        look = self._look_from(Offset.from_json(value))
        while not wait([look], _POLL).done:
            if self._may_answer_now():
                return value
        self._look = None
        end = look.result()
        self._planned = end.cuts
        note_answer(self._client.config)
        return value if end is self._looks_from else end.to_json()

    def _look_from(self, position: Offset) -> Future[Offset]:
        """The look that is under way, or a new one."""
        if self._look is not None and self._looks_from != position:
            wait([self._look])  # two at once would share the plan
            self._look = None
        if self._look is None:
            self._look, self._looks_from = _in_background(lambda: self._find_end(position)), position
        return self._look

    def _may_answer_now(self) -> bool:
        if self._ends_now or self._interval > _ASKED_AGAIN_WITHIN or self._client.trouble is None:
            return False
        return time.monotonic() > self._asked + _ANSWER_WITHIN

    def _find_end(self, position: Offset) -> Offset:
        """The end of the batch that begins at a position; ``position`` itself if there is nothing to read."""
        self._publish(position)  # Spark asks for the next batch when the one before is in its commit log
        end = self._plan.next(position)
        if end is not position and wants_event_time(self.options):
            moved = [stream for stream, cut in end.cuts.items() if cut != position.cuts.get(stream)]
            end = replace(end, marks=marks_end(self._client, moved))
        self._progress.measure(end.cuts)
        return end

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the tail of this moment as the end of the run."""
        self._ends_now = True
        self._plan.end_here()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges of segments between two offsets; depends on nothing else."""
        last = Offset.from_json(end)
        self._planned = last.cuts
        slices = list(last.slices_from(Offset.from_json(start)))
        return [SlicePartition(*both) for both in zip(slices, self._times(slices, last.marks), strict=True)]

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """What the query's progress tells of the streams' end; see ``connector.source._progress``."""
        return self._progress.report(self._planned, self._client.trouble if self._look is not None else None)

    def commit(self, end: dict[str, Any]) -> None:
        """Publish the position, if the options ask for it; it lives in Spark's checkpoint."""
        if self._look is None:  # it publishes as well
            self._publish(Offset.from_json(end))

    def _publish(self, committed: Offset) -> None:
        if self.options.publish_position is None:
            return
        if self._own_position is None:
            # Not worth a long wait: what is not published now is tried again soon.
            client = self.options.client(service=True, failover_timeout=self.options.timeout_ms / 1000)
            self._own_position = PublishedPosition(client, self.options.publish_position)
        self._own_position.publish(committed.cuts)

    @property
    def _client(self) -> PravegaClient:
        """The driver's client; what makes it one of a service holds for the process."""
        if self._own_client is None:
            self._own_client = self.options.client()
        return self._own_client

    @property
    def _progress(self) -> Progress:
        if self._own_progress is None:
            self._own_progress = Progress(self._client, self._plan.losses)
        return self._own_progress

    @property
    def _plan(self) -> QueryPlan:
        """The plan of this run, made when it is needed: Spark's tasks have copies of the reader and plan nothing."""
        if self._own_plan is None:
            check_letter_box(self._client, self.options)
            self._own_plan = QueryPlan(self._client, self.options)
        return self._own_plan
