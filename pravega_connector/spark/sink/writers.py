"""Writers that Spark calls: of batch queries and of streaming queries.

Spark makes writers in two driver-side processes for each batch and copies one to every task, so making one has no
effect beyond checking, and nothing but the commit messages goes from the tasks to the driver.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import (
    AuthenticationError,
    ConnectorError,
    EventError,
    ScopeNotFoundError,
    StreamNotFoundError,
)
from pravega_connector.exactly_once.batch_commit import note_batch, writer_of
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.known_clusters import note_answer
from pravega_connector.spark.options.sink import SinkOptions
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.sink.encoding import EventEncoder
from pravega_connector.spark.sink.targets import TargetWriters, Written, parts_of
from pravega_connector.spark.sink.transactions import ExactlyOnce
from pravega_connector.wire import StreamName
from pravega_connector.writer.event_writer import EventWriter
from pravega_serde.per_process import PerProcess

_log: Final = logging.getLogger(__name__)

_Messages = Sequence[WriterCommitMessage | None]
# Streams that are ready to be written to: Spark makes writers anew for every micro-batch.
_ready: Final[PerProcess[tuple[PravegaClient, StreamName | None], None]] = PerProcess()


@dataclass(frozen=True)
class TaskWritten(Exchanged, WriterCommitMessage):  # type: ignore[misc]
    """Message of one task; ``dropped`` counts the events that ``best_effort`` gave up.

    ``event_times`` is what is to be noted for the rows of each stream (milliseconds), ``query`` the streaming query
    that it works for.
    """

    rows: int
    bytes: int
    dropped: int = 0
    event_times: tuple[tuple[StreamName, int], ...] = ()
    query: str = ""


@called_by_spark("write")
class _Writer(Exchanged):
    """Base of both writers: rows in, durable events out."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder, *, streaming: bool) -> None:
        self.options, self.encoder = options, encoder
        self.mode = options.mode(streaming=streaming)
        self._exactly_once: ExactlyOnce | None = None
        client = options.client()
        if encoder.target is None and streaming:
            self._prepare(client, options.stream_name())
        elif encoder.target is None:  # looked at each time: it may have been deleted since this process wrote to it
            prepare_stream(client, options.stream_name(), options)
        else:
            _ready.get((client, None), lambda: _reach(client))
        if self.mode == "exactly_once":
            self._exactly_once = ExactlyOnce(options, encoder, streaming=streaming)
            self._exactly_once.prepare(client)
        note_answer(client.config)  # the next batch may be planned in another process

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; on return they are durable (``best_effort``: or counted as dropped).

        With ``exactly_once`` they are durable in a transaction that only the commit of the batch makes visible.
        """
        if self._exactly_once is not None:
            return self._exactly_once.write(self._client(), iterator)
        if self.mode == "best_effort":
            return self._write_best_effort(iterator)
        return self._write_at_least_once(iterator)

    def _write_at_least_once(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        rows = size = 0
        with closing(TargetWriters(self._event_writer, self.encoder)) as writers:
            for part in self._parts(iterator):
                rows, size = rows + len(part.events), size + writers.write(part)
                writers.note(part)
            writers.flush()
            return TaskWritten(rows, size, event_times=writers.times(), query=_query())

    def _write_best_effort(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        rows = size = dropped = 0
        with closing(TargetWriters(self._event_writer, self.encoder)) as writers:
            for part in self._parts(iterator):
                try:
                    size += writers.write(part)
                    writers.flush()
                    rows += len(part.events)
                    writers.note(part)
                except EventError:
                    raise  # a row that can never be written is the query's fault, not the servers'
                except ConnectorError as error:
                    if self.encoder.target is not None and isinstance(error, StreamNotFoundError | ScopeNotFoundError):
                        raise  # and so is one that names what is not there
                    _log.warning("%d events for stream %s were dropped: %s", len(part.events), part.stream, error)
                    dropped += len(part.events)
                    writers.drop(part.stream)
            return TaskWritten(rows, size, dropped, writers.times(), _query())

    def _parts(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[Written]:
        return (part for batch in iterator for part in parts_of(batch, self.encoder, self.options.stream_named))

    def _prepare(self, client: PravegaClient, stream: StreamName) -> None:
        _ready.get((client, stream), lambda: prepare_stream(client, stream, self.options))

    def _event_writer(self, stream: StreamName) -> EventWriter[bytes]:
        client = self._client()
        if self.encoder.target is not None:  # else the driver has prepared it
            self._prepare(client, stream)
        return client.writer(
            stream,
            max_event_size=self.options.max_event_size,
            timeout=self.options.write_timeout,
        )

    def _client(self) -> PravegaClient:
        """The client of tasks, which run because the driver has reached the servers."""
        return self.options.client(service=True)

    def _committing(self) -> PravegaClient:
        """The client of commits: none of its calls takes longer than a commit may."""
        return self.options.client(service=True, failover_timeout=self.options.commit_timeout)

    def _giving_up(self) -> PravegaClient:
        """The client of aborts, which are not worth a long wait: what is not aborted ends with its lease."""
        return self.options.client(service=True, failover_timeout=self.options.timeout_ms / 1000)

    def _commit(self, messages: _Messages, batch: int) -> None:
        if self._exactly_once is not None:
            self._exactly_once.commit(self._committing(), messages, batch)
        written = [message for message in messages if isinstance(message, TaskWritten)]
        self._note_time(written)
        if dropped := sum(message.dropped for message in written):
            _log.warning("%d events were dropped (best_effort)", dropped)

    def _note_time(self, written: Sequence[TaskWritten]) -> None:
        """Note the time of rows that can be read already."""
        latest: dict[StreamName, int] = {}
        for message in written:
            for stream, millis in message.event_times:
                latest[stream] = max(millis, latest.get(stream, millis))
        if not latest:
            return
        client, query = self._committing(), written[0].query
        writer = writer_of(query or str(uuid.uuid4()))
        for stream, millis in latest.items():
            note_batch(client.stores, stream, writer, millis)
            if not query:
                with contextlib.suppress(ConnectorError):  # this writer never comes again
                    client.controller.remove_writer(stream, writer)

    def _abort(self, messages: _Messages, batch: int) -> None:
        if self._exactly_once is not None:
            self._exactly_once.abort(self._giving_up(), messages, batch)


def _query() -> str:
    """Id of the streaming query that a task works for, in ``foreachBatch`` too; empty outside of one."""
    context = TaskContext.get()
    return "" if context is None else context.getLocalProperty("sql.streaming.queryId") or ""


@called_by_spark("commit", "abort")
class PravegaBatchWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """Appends the rows of a DataFrame to a stream."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder) -> None:
        super().__init__(options, encoder, streaming=False)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Exactly once: make all rows visible, unless this ``txn_version`` is. Else they are durable already."""
        self._commit(messages, self.options.txn_version or 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Exactly once: drop the rows. Else there is nothing to undo: what tasks wrote before the failure stays."""
        self._abort(messages, self.options.txn_version or 0)


@called_by_spark("commit", "abort")
class PravegaStreamWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Appends the rows of each micro-batch to a stream."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder) -> None:
        super().__init__(options, encoder, streaming=True)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Exactly once: make the batch visible, unless it is. Else its rows are durable already."""
        self._commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Exactly once: drop the rows, unless the batch is recorded. Else what tasks wrote stays, and is repeated."""
        self._abort(messages, batchId)


def _reach(client: PravegaClient) -> None:
    """Make sure that servers answer, where no stream is known yet. Raises ControllerUnavailableError."""
    with contextlib.suppress(AuthenticationError):  # an answer; what is permitted shows with the streams
        client.controller.scope_exists(client.config.scope or "_system")


def prepare_stream(client: PravegaClient, stream: StreamName, options: SinkOptions) -> None:
    """Make sure that the stream exists, creating it only if that is allowed.

    Raises ScopeNotFoundError, StreamNotFoundError.
    """
    controller = client.controller
    if options.allow_create_scope:
        controller.create_scope(stream.scope)
    elif not controller.scope_exists(stream.scope):
        raise ScopeNotFoundError(
            f"scope {stream.scope!r} does not exist; create it, or set allow_create_scope and allow_create_stream"
        )
    if options.allow_create_stream:
        controller.create_stream(stream, options.scaling(), options.retention())
    elif not controller.stream_exists(stream):
        raise StreamNotFoundError(f"stream {stream} does not exist; create it, or set allow_create_stream to true")
    check_aggregation(client, stream, options)


def check_aggregation(client: PravegaClient, stream: StreamName, options: SinkOptions) -> None:
    """Warn of a stream whose watermarks wait for no writer: of several writers the fastest alone makes them then."""
    if options.event_time_column is None:
        return
    try:
        config = client.controller.stream_config(stream)
    except ConnectorError as error:  # times are advice to readers: they are no reason not to write
        _log.info("whether the watermarks of stream %s wait for slow writers is not known: %s", stream, error)
        return
    if config.timestamp_aggregation_timeout_ms == 0:
        _log.warning(
            "the watermarks of stream %s wait for no writer: where several note event time, the lower bounds that "
            "readers see (event_time_low) can be later than the rows. Set a timeout, longer than the pauses between "
            "their batches: client.controller.update_stream(stream, dataclasses.replace(client.controller."
            "stream_config(stream), timestamp_aggregation_timeout_ms=60_000))",
            stream,
        )
