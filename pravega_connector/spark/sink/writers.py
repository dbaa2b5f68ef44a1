"""Writers that Spark calls: of batch queries and of streaming queries.

Spark creates writers in two driver-side processes for each batch, and copies one to every task. So creating a writer
only runs checks, and tasks send only commit messages to the driver.
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

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import (
    AuthenticationError,
    ConnectorError,
    EventError,
    ScopeNotFoundError,
    StreamNotFoundError,
)
from pravega_connector.exactly_once.batch_commit import note_batch, writer_of
from pravega_connector.rows.encoding import EventEncoder
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.target_streams import Written, check_target, checked, parts_of
from pravega_connector.spark.boundary import called_by_spark
from pravega_connector.spark.commit_messages import Messages, check_tasks_ran
from pravega_connector.spark.known_clusters import client_of, note_answer
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.sink.kept_writers import Target, TaskWriter, kept_writers
from pravega_connector.spark.sink.transactions import ExactlyOnce
from pravega_connector.spark.sink.writers_by_stream import TargetWriters
from pravega_connector.spark.versions import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pravega_connector.wire import StreamName
from pravega_serde.per_process import PerProcess

_log: Final = logging.getLogger(__name__)

# Streams that were checked or created: Spark creates writers for every micro-batch.
_ready: Final[PerProcess[tuple[PravegaClient, StreamName | None], None]] = PerProcess()


@dataclass(frozen=True)
class TaskWritten(Exchanged, WriterCommitMessage):  # type: ignore[misc]
    """Message of one task; ``dropped`` is the number of events that ``best_effort`` dropped.

    ``event_times`` are the times to note for the rows of each stream, in milliseconds. ``query`` is the streaming query
    that the task works for.
    """

    rows: int
    bytes: int
    dropped: int = 0
    event_times: tuple[tuple[StreamName, int], ...] = ()
    query: str = ""


@called_by_spark("write")
class _Writer(Exchanged):
    """Base class of both writers: rows in, durable events out."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder, *, streaming: bool) -> None:
        self.options, self.encoder = options, encoder
        self.mode = options.mode(streaming=streaming)
        self._exactly_once: ExactlyOnce | None = None
        client = client_of(options)
        if encoder.target is None and streaming:
            self._prepare(client, options.stream_name())
        elif encoder.target is None:  # check each time: it may have been deleted after an earlier write
            prepare_stream(client, options.stream_name(), options)
        else:
            _ready.get((client, None), lambda: _reach(client))
        if self.mode == "exactly_once":
            self._exactly_once = ExactlyOnce(options, encoder, streaming=streaming)
            self._exactly_once.prepare(client)
        note_answer(client.config)  # for the process that plans the next batch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; on return they are durable (``best_effort``: or counted as dropped).

        With ``exactly_once`` they are durable in a transaction that only the commit of the batch makes visible.
        """
        if self._exactly_once is not None:
            client = self.task_client()
            return self._exactly_once.write(client, iterator, lambda stream: self._prepare(client, stream))
        if self.mode == "best_effort":
            return self._write_best_effort(iterator)
        return self._write_at_least_once(iterator)

    def _write_at_least_once(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        rows = size = 0
        with closing(TargetWriters(self.task_writer, kept_writers(), self.encoder)) as writers:
            for part in self._parts(iterator):
                rows, size = rows + len(part.events), size + writers.write(part)
                writers.note(part)
            writers.flush()
            writers.keep()
            return TaskWritten(rows, size, event_times=writers.times(), query=_query())

    def _write_best_effort(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        rows = size = dropped = 0
        with closing(TargetWriters(self.task_writer, kept_writers(), self.encoder)) as writers:
            for part in self._parts(iterator):
                try:
                    size += writers.write(part)
                    writers.flush()
                    rows += len(part.events)
                    writers.note(part)
                except EventError:
                    raise  # the row can never be written, in any state of the servers
                except ConnectorError as error:
                    if self.encoder.target is not None and isinstance(error, StreamNotFoundError | ScopeNotFoundError):
                        raise  # the row names a stream that does not exist
                    _log.warning("%d events for stream %s were dropped: %s", len(part.events), part.stream, error)
                    dropped += len(part.events)
                    writers.drop(part.stream)
            writers.keep()
            return TaskWritten(rows, size, dropped, writers.times(), _query())

    def _parts(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[Written]:
        named = checked(self.task_client(), self.options.stream_named)
        return (part for batch in iterator for part in parts_of(batch, self.encoder, named))

    def _prepare(self, client: PravegaClient, stream: StreamName) -> None:
        _ready.get((client, stream), lambda: prepare_stream(client, stream, self.options))

    @property
    def exactly_once(self) -> ExactlyOnce | None:
        """Transactions of the tasks; None in other modes."""
        return self._exactly_once

    def task_writer(self, stream: StreamName) -> TaskWriter:
        """Return a writer for a task. Raises StreamNotFoundError, StreamSealedError."""
        client = self.task_client()
        if self.encoder.target is not None:  # otherwise the driver has prepared it
            self._prepare(client, stream)
        return kept_writers().take(Target(client, stream, self.options.max_event_size, self.options.write_timeout))

    def task_client(self) -> PravegaClient:
        """Return the client of tasks, which run only after the driver has reached the servers."""
        return client_of(self.options, service=True)

    def _committing(self) -> PravegaClient:
        """Return the client of commits: each of its calls is limited to the commit timeout."""
        return client_of(self.options, service=True, failover_timeout=self.options.commit_timeout)

    def _giving_up(self) -> PravegaClient:
        """Return the client of aborts, with a short timeout: an open transaction ends when its lease expires."""
        return client_of(self.options, service=True, failover_timeout=self.options.timeout_ms / 1000)

    def _commit(self, messages: Messages, batch: int) -> None:
        check_tasks_ran(messages)
        if self._exactly_once is not None:
            self._exactly_once.commit(self._committing(), messages, batch)
        written = [message for message in messages if isinstance(message, TaskWritten)]
        self._note_time(written)
        if dropped := sum(message.dropped for message in written):
            _log.warning("%d events were dropped (best_effort)", dropped)

    def _note_time(self, written: Sequence[TaskWritten]) -> None:
        """Note the event time of rows that are already readable."""
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
                with contextlib.suppress(ConnectorError):  # this writer id is not used again
                    client.controller.remove_writer(stream, writer)

    def _abort(self, messages: Messages, batch: int) -> None:
        if self._exactly_once is not None:
            self._exactly_once.abort(self._giving_up(), messages, batch)


def _query() -> str:
    """Return the id of the streaming query of a task, also in ``foreachBatch``; empty outside a query."""
    context = TaskContext.get()
    return "" if context is None else context.getLocalProperty("sql.streaming.queryId") or ""


@called_by_spark("commit", "abort")
class PravegaBatchWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """Writer that appends the rows of a DataFrame to a stream."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder) -> None:
        super().__init__(options, encoder, streaming=False)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Exactly once: make all rows visible, unless this ``txn_version`` is.

        Other modes: the rows are already durable.
        """
        self._commit(messages, self.options.txn_version or 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Exactly once: drop the rows. Other modes: do nothing; rows written before the failure stay."""
        self._abort(messages, self.options.txn_version or 0)


@called_by_spark("commit", "abort")
class PravegaStreamWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writer that appends the rows of each micro-batch to a stream."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder) -> None:
        super().__init__(options, encoder, streaming=True)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Exactly once: make the batch visible, unless it is. Other modes: the rows are already durable."""
        self._commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Exactly once: drop the rows, unless the batch is recorded.

        Other modes: the rows of the tasks stay, and are written again with the next attempt.
        """
        self._abort(messages, batchId)


def _reach(client: PravegaClient) -> None:
    """Check that servers answer before a stream is known. Raises ControllerUnavailableError."""
    with contextlib.suppress(AuthenticationError):  # an answer; permissions are checked with the streams
        client.controller.scope_exists(client.config.scope or "_system")


def prepare_stream(client: PravegaClient, stream: StreamName, options: SinkOptions) -> None:
    """Check that the stream exists, and create it if the options allow it.

    Raises ScopeNotFoundError, StreamNotFoundError, and InvalidNameError for a stream without events.
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
    check_target(client, stream)
    check_aggregation(client, stream, options)


def check_aggregation(client: PravegaClient, stream: StreamName, options: SinkOptions) -> None:
    """Warn if the watermarks of a stream do not wait for slow writers.

    With several writers, only the fastest one determines the watermarks then.
    """
    if options.event_time_column is None:
        return
    try:
        config = client.controller.stream_config(stream)
    except ConnectorError as error:  # event times are advice to readers: do not fail the write
        _log.info("whether the watermarks of stream %s wait for slow writers is unknown: %s", stream, error)
        return
    if config.timestamp_aggregation_timeout_ms == 0:
        _log.warning(
            "the watermarks of stream %s do not wait for slow writers: if several writers note event time, the lower "
            "bounds that readers get (event_time_low) can be later than the rows. Set a timeout that is longer than "
            "the pauses between their batches: client.controller.update_stream(stream, "
            "dataclasses.replace(client.controller.stream_config(stream), timestamp_aggregation_timeout_ms=60_000))",
            stream,
        )
