"""Readers that Spark calls: of batch queries and of streaming queries, and the rows of one partition.

Spark creates several instances of these in several processes, and the instance that plans is not the one that reads. So
a partition has everything that a read needs, and the state of the planning instance is not needed after a restart.

Filters on metadata columns are applied to whole parts of segments before any task starts. Spark passes them to batch
queries if ``spark.sql.python.filterPushdown.enabled`` is set. Spark also evaluates every filter itself, except those
that are fully applied here. So less is read, and the result is the same.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.io import in_background, of_each
from pravega_connector.errors import DataLossError, MalformedStreamCutError
from pravega_connector.lag import Loss
from pravega_connector.reader.boundaries import Boundaries, divide, divided
from pravega_connector.reader.rows import NO_TIMES
from pravega_connector.reader.slices import (
    EventBatch,
    SegmentSlice,
    Select,
    batch_part,
    joined,
    read_slice,
    slices_between,
)
from pravega_connector.reader.watermarks import SegmentTimes
from pravega_connector.rows.bounds import Positions
from pravega_connector.rows.columns import (
    Decoder,
    key_filter,
    marks_end,
    row_builder,
    times_along,
    wants_event_time,
)
from pravega_connector.rows.offsets import Offset
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.known_clusters import client_of, note_answer
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.source.data_loss import DataLoss, pass_over
from pravega_connector.spark.source.dead_letters import check_letter_box, task_letter_box
from pravega_connector.spark.source.offset_planner import QueryPlan, stream_planner
from pravega_connector.spark.source.progress import Progress, PublishedPosition
from pravega_connector.spark.source.streams import Streams
from pravega_connector.spark.source.tasks import TASK_BYTES, SlicesPartition, partitions_of
from pravega_connector.spark.versions import (
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    available_now_base,
)
from pravega_connector.wire import SegmentRange, StreamCut, StreamName
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.streaming.datasource import ReadLimit

    from pravega_connector.spark.source.pushdown import Pushed

# Seconds after which Spark gets an answer during an outage; the progress then shows the outage.
_ANSWER_WITHIN: Final = 5.0
# Longest trigger interval for that, in seconds. A query with a longer one would resume late by one interval.
_ASKED_AGAIN_WITHIN: Final = 10.0
_POLL: Final = 0.1
_POLLER: Final = "pravega-poll"  # name of the thread that polls
# Spark rejects readers that accept filters if its setting is off. If it is on, this Spark module is loaded.
_PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"


def read_rows(
    client: PravegaClient,
    options: SourceOptions,
    schema: pa.Schema,
    serializer: Decoder,
    piece: SegmentSlice,
    *,
    times: SegmentTimes = NO_TIMES,
    stop: int | None = None,
    select: Callable[[EventBatch], EventBatch] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the events in a slice, only those before offset ``stop`` and those of ``select`` if set.

    If the options name a dead-letter queue, malformed events are durable there before the rows of their batch are
    passed on. Lost data raises DataLossError or is skipped, as the options say.
    """
    with task_letter_box(client, options, schema, piece, stop) as letters:
        builder = row_builder(schema, options, serializer, None if letters is None else letters.write, times)
        at = piece.start
        while at < piece.end:
            try:
                with closing(read_slice(client.stores, replace(piece, start=at))) as events:
                    for batch in joined(events, builder.bytes_at_once):
                        kept = batch if stop is None else _before(batch, stop)
                        chosen = kept if select is None else select(kept)
                        if len(chosen.events):
                            yield from (rows for rows in builder.build_all(chosen) if rows.num_rows)
                        if kept is not batch:
                            return
                        at = batch.end
                return
            except DataLossError as error:
                at = pass_over(piece, at, error, fail=options.fail_on_data_loss)


def _within(keys: Select, owned: SegmentRange) -> Callable[[EventBatch], EventBatch]:
    """Return the filter of the events of a segment that owns these keys."""
    return lambda batch: keys(batch, owned)


def _before(batch: EventBatch, stop: int) -> EventBatch:
    """Return the events of a batch that begin before an offset; return the batch itself if all do."""
    count = int(batch.offsets.searchsorted(stop))
    return batch if count == len(batch.offsets) else batch_part(batch, 0, count)


@called_by_spark("read")
class _Reader(Exchanged):
    """Base class of both readers: options and schema in, record batches out.

    ``schema`` is the Arrow schema of the rows. ``serializer`` decodes the events, if the options require it.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> None:
        self.options, self.schema, self.serializer = options, schema, serializer
        # Raise for invalid settings and columns here, before any task. Tasks get the configuration in the pickle.
        _ = options.config
        row_builder(schema, options, serializer)
        key_filter(options, serializer)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition."""
        # If there are no partitions, Spark calls this once with None.
        if not isinstance(partition, SlicesPartition):
            return
        client, options = client_of(self.options, service=True), self.options
        for piece, place in zip(partition.slices, partition.places, strict=True):
            if place is not None:
                client.stores.take_place(piece.stream, piece.segment_id, place)
        keys = key_filter(options, self.serializer)
        for at, (piece, times) in enumerate(zip(partition.slices, partition.times, strict=True)):
            yield from read_rows(
                client,
                options,
                self.schema,
                self.serializer,
                piece,
                times=times,
                stop=partition.stop,
                select=None if keys is None else _within(keys, partition.owned[at]),
            )

    def _tasks(
        self,
        client: PravegaClient | None,
        slices: Sequence[SegmentSlice],
        times: Iterable[SegmentTimes],
        task_bytes: int,
        stop: int | None = None,
    ) -> list[InputPartition]:
        """Return the partitions of slices; see ``partitions_of``."""
        if key_filter(self.options, self.serializer) is None:
            return partitions_of(client, slices, times, task_bytes, stop=stop)
        stores = (client or client_of(self.options, service=True)).stores
        lineages = {piece.stream: self.options.lineage(stores, piece.stream) for piece in slices}

        def owned(piece: SegmentSlice) -> SegmentRange:
            return lineages[piece.stream].range_of(piece.segment_id)

        return partitions_of(client, slices, times, task_bytes, stop=stop, owned=owned)

    def _times(
        self, slices: Sequence[SegmentSlice], ends: Mapping[StreamName, int] | None = None
    ) -> Iterable[SegmentTimes]:
        """Return the event times along slices if columns need them."""
        if not wants_event_time(self.options):
            return itertools.repeat(NO_TIMES, len(slices))
        return times_along(client_of(self.options), slices, ends)


@called_by_spark("partitions")
class PravegaBatchReader(_Reader, DataSourceReader):  # type: ignore[misc]
    """Reader of streams between two cuts, with a partition for each part of a segment or for several small ones."""

    _pushed: Pushed | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks that read the segments between the start and the end cut of each stream."""
        client, options = client_of(self.options), self.options
        check_letter_box(client, options)
        key = options.routing_key
        starts = Positions(client, "start_stream_cut", options.start_stream_cut, "earliest", key=key)
        end = "latest" if (options.end_stream_cut or "").strip().lower() == "unbounded" else options.end_stream_cut
        ends = Positions(client, "end_stream_cut", end, "latest", end=True, key=key)
        streams = Streams(client, options).now()
        if options.stream_pattern is None:
            starts.check(streams)
            ends.check(streams)
        losses = DataLoss(client, fail=options.fail_on_data_loss)
        cuts = of_each(lambda stream: (starts.bounded(stream), ends.bounded(stream)), streams)
        slices = [piece for of in of_each(lambda cut: _slices(client, options, losses, *cut), cuts) for piece in of]
        places = dict(divide(Boundaries(client.stores), slices, options.min_partitions))
        parts = [part for piece in slices for part in divided(piece, places.get(piece, ()))]
        stop = None
        if self._pushed is not None:
            parts, stop = self._pushed.keep(parts), self._pushed.stop
        return self._tasks(client, parts, self._times(parts), 0 if options.min_partitions else TASK_BYTES, stop)


@called_by_spark("pushFilters")
class PravegaFilteringReader(PravegaBatchReader):
    """Batch reader for processes in which Spark pushes filters down."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Apply filters on metadata columns; yield those that Spark must evaluate."""
        from pravega_connector.spark.source.pushdown import Pushed  # noqa: PLC0415 - not every Spark has filters

        self._pushed = Pushed(self.options, filters)
        return self._pushed.left


def batch_reader(options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> PravegaBatchReader:
    """Return the reader of a batch query. It accepts filters if Spark pushes them down in this process."""
    reader = PravegaFilteringReader if filters_are_pushed() else PravegaBatchReader
    return reader(options, schema, serializer)


def _slices(
    client: PravegaClient, options: SourceOptions, losses: DataLoss, start: StreamCut, end: StreamCut
) -> list[SegmentSlice]:
    planner = stream_planner(client, options, start.stream)

    def wanted(loss: Loss) -> Loss | None:
        if loss.deleted:
            return loss
        planner.end_at(start, end)
        return planner.wanted(loss)

    remaining = losses.resume(start, wanted)
    if remaining is None:
        return []
    try:
        return slices_between(client.stores, start, end, skip_lost=remaining != start, lineage=planner.lineage)
    except MalformedStreamCutError:
        losses.note(planner.end_at(remaining, end))
        return list(planner.slices(remaining))


@called_by_spark(
    "initialOffset", "latestOffset", "prepareForTriggerAvailableNow", "partitions", "reportLatestOffset", "commit"
)
class PravegaStreamReader(_Reader, DataSourceStreamReader, available_now_base()):  # type: ignore[misc]
    """Reader of streams that starts at a cut, in micro-batches that keep the order per routing key.

    A batch depends only on its two offsets; see ``pravega_connector.rows.offsets``.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> None:
        super().__init__(options, schema, serializer)
        self._own_plan: QueryPlan | None = None
        self._own_progress: Progress | None = None
        self._own_position: PublishedPosition | None = None
        self._planned: Mapping[StreamName, StreamCut] = {}
        self._first: dict[str, Any] | None = None
        self._last_end: dict[str, Any] | None = None
        self._own_client: PravegaClient | None = None
        self._look: Future[Offset] | None = None
        self._looks_from: Offset | None = None
        self._measures: Future[None] | None = None
        self._ends_now = False
        self._asked = -math.inf
        self._interval = math.inf

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of each stream. Spark calls it twice, so "latest" is resolved once."""
        if self._first is None:
            self._first = self._plan.first().to_json()
        return self._first

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit: latestOffset applies the limits of the options, where both can apply at once."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable  # noqa: PLC0415 - older versions do not call this

        return ReadAllAvailable()

    def latestOffset(
        self,
        start: dict[str, Any] | None = None,
        limit: Any = None,
    ) -> dict[str, Any]:
        """Return the end of the next batch, which begins at ``start``; return ``start`` if there is nothing to read.

        Before 4.2, Spark does not pass ``start``. It is then the end of the last batch: Spark runs each batch that it
        gets from here, and passes the end of the last one to :meth:`partitions` when a query resumes.

        The call waits for servers that do not answer. If Spark would call again soon, it returns ``start`` in the
        meantime. So the query stays responsive, and its progress reports the outage. A run with trigger AvailableNow
        waits.
        """
        value = start or self._last_end or self.initialOffset()
        if self._first is None:
            client_of(self.options, service=True)  # resumed from a checkpoint: the query has run before
        self._interval = min(self._interval, time.monotonic() - self._asked)
        self._asked = time.monotonic()
        look = self._look_from(Offset.from_json(value))
        while not wait([look], _POLL).done:
            if self._is_idle() or self._may_answer_now():
                return value
        self._look = None
        end = look.result()
        self._planned = end.cuts
        note_answer(self._client.config)
        self._last_end = value if end is self._looks_from else end.to_json()
        return self._last_end

    def _look_from(self, position: Offset) -> Future[Offset]:
        """Return the poll that is in progress, or a new one."""
        if self._look is not None and self._looks_from != position:
            wait([self._look])  # two polls at once would share the plan
            self._look = None
        if self._look is not None and self._has_found_nothing(self._look):
            self._look = None  # it ended earlier: newer data would wait for the next trigger
        if self._look is None:
            self._look, self._looks_from = in_background(lambda: self._find_end(position), _POLLER), position
        return self._look

    def _has_found_nothing(self, look: Future[Offset]) -> bool:
        return look.done() and look.exception() is None and look.result() is self._looks_from

    def _is_idle(self) -> bool:
        """Return True if the poll waits for new data: it continues, and Spark may stop the query in the meantime."""
        return self._own_plan is not None and self._own_plan.is_idle

    def _may_answer_now(self) -> bool:
        if self._ends_now or self._interval > _ASKED_AGAIN_WITHIN or self._client.trouble is None:
            return False
        return time.monotonic() > self._asked + _ANSWER_WITHIN

    def _find_end(self, position: Offset) -> Offset:
        """Return the end of the batch that begins at ``position``, or ``position`` if there is nothing to read."""
        self._publish(position)  # Spark requests the next batch when the one before is in its commit log
        end = self._plan.next(position)
        if end is not position and wants_event_time(self.options):
            moved = [stream for stream, cut in end.cuts.items() if cut != position.cuts.get(stream)]
            end = replace(end, marks=marks_end(self._client, moved))
        self._progress.measure(end.cuts)
        return end

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the current tail as the end of the run."""
        self._ends_now = True
        self._plan.end_here()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks that read the segments between two offsets; they depend on nothing else."""
        last = Offset.from_json(end)
        self._planned, self._last_end = last.cuts, end
        slices = list(last.slices_from(Offset.from_json(start)))
        # After a restart, a reader that has made no request knows no segment stores.
        return self._tasks(self._own_client, slices, self._times(slices, last.marks), last.task_bytes)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of the streams for the query progress; see ``pravega_connector.spark.source.progress``.

        Servers that do not answer delay the call by a few seconds. Then it returns the last report, with the outage.
        """
        if self._look is not None:  # the poll also measures
            return self._progress.report(self._client.trouble)
        if self._measures is None or self._measures.done():
            self._measures = in_background(lambda: self._progress.measure(self._planned), _POLLER)
        answered = wait([self._measures], _ANSWER_WITHIN).done
        return self._progress.report(None if answered else self._client.trouble)

    def commit(self, end: dict[str, Any]) -> None:
        """Publish the position if the options ask for it; the position itself is in Spark's checkpoint."""
        if self._look is None:  # the poll also publishes
            self._publish(Offset.from_json(end))

    def stop(self) -> None:
        """End the poll for new data that is in progress."""
        if self._own_plan is not None:
            self._own_plan.stop()

    def _publish(self, committed: Offset) -> None:
        if self.options.publish_position is None:
            return
        if self._own_position is None:
            # Use a short timeout: a failed publication is retried soon.
            client = client_of(self.options, service=True, failover_timeout=self.options.timeout_ms / 1000)
            self._own_position = PublishedPosition(client, self.options.publish_position)
        self._own_position.publish(committed.cuts)

    @property
    def _client(self) -> PravegaClient:
        """Client of the driver. If ``service`` was set once, it applies to the whole process."""
        if self._own_client is None:
            self._own_client = client_of(self.options)
        return self._own_client

    @property
    def _progress(self) -> Progress:
        if self._own_progress is None:
            self._own_progress = Progress(self._client, self._plan.losses, key=self.options.key_position)
        return self._own_progress

    @property
    def _plan(self) -> QueryPlan:
        """Plan of this run, created on first use: Spark's tasks have copies of the reader and plan nothing."""
        if self._own_plan is None:
            check_letter_box(self._client, self.options)
            self._own_plan = QueryPlan(self._client, self.options)
        return self._own_plan


class BrokenStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Placeholder for a reader that cannot be created: every method raises the error.

    If the error were raised earlier, Spark would add its own error about the missing reader.
    """

    def __init__(self, error: PravegaError) -> None:
        self._error = error

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise self._error.with_traceback(None)

    # A query that resumes from its checkpoint may call any of these first.
    initialOffset = latestOffset = partitions = read = _raise


# ---- filters on metadata columns -------------------------------------------------------------------------------------


def filters_are_pushed() -> bool:
    """Return True if Spark started this process to pass filters to a reader: its command line names the module."""
    return _PUSHING in sys.orig_argv
