"""What Spark calls to write: the batch writer and the stream writer.

Spark makes writers in two driver-side processes for each batch and copies one to every task, so making one has no
effect beyond checking, and nothing but the commit messages goes from the tasks to the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from connector.client import EventWriter, PravegaClient, shared_client
from connector.errors import ConnectorError, EventError, ScopeNotFoundError, StreamNotFoundError
from connector.sink._encoding import EventEncoder
from connector.sink._options import SinkOptions

__all__ = ["PravegaBatchWriter", "PravegaStreamWriter"]

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskWritten(WriterCommitMessage):  # type: ignore[misc]
    """What one task wrote; ``dropped`` counts the events that ``best_effort`` gave up."""

    rows: int
    bytes: int
    dropped: int = 0


class _Writer:
    """What both writers share: rows in, durable events out."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder) -> None:
        self.options, self.encoder = options, encoder
        self.mode = options.mode()
        prepare_stream(self._client(), options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task; on return they are durable (``best_effort``: or counted as dropped)."""
        if self.mode == "best_effort":
            return self._write_best_effort(iterator)
        writer = self._event_writer()
        rows = size = 0
        with writer:
            for batch in iterator:
                rows, size = rows + batch.num_rows, size + self._write_batch(writer, batch)
            writer.flush()
        return TaskWritten(rows, size)

    def _write_best_effort(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        rows = size = dropped = 0
        writer = self._event_writer()
        try:
            for batch in iterator:
                try:
                    size += self._write_batch(writer, batch)
                    writer.flush()
                    rows += batch.num_rows
                except EventError:
                    raise  # a row that can never be written is the query's fault, not the servers'
                except ConnectorError as error:
                    _log.warning("%d events for stream %s were dropped: %s", batch.num_rows, writer.stream, error)
                    dropped += batch.num_rows
                    writer.abandon()
                    writer = self._event_writer()
        finally:
            writer.abandon()
        return TaskWritten(rows, size, dropped)

    def _write_batch(self, writer: EventWriter[bytes], batch: pa.RecordBatch) -> int:
        events, keys = self.encoder.encode(batch)
        writer.write_column(events, keys)
        return int(events.nbytes)

    def _event_writer(self) -> EventWriter[bytes]:
        return self._client().writer(
            self.options.stream_name(),
            max_event_size=self.options.max_event_size,
            timeout=self.options.write_timeout_ms / 1000,
        )

    def _client(self) -> PravegaClient:
        return shared_client(self.options.config(), self.options.timeout_ms / 1000)

    def _report(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        dropped = sum(m.dropped for m in messages if isinstance(m, TaskWritten))
        if dropped:
            _log.warning("%d events for stream %s were dropped (best_effort)", dropped, self.options.stream_name())


class PravegaBatchWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """Appends the rows of a DataFrame to a stream."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Every task has made its events durable; say what best_effort dropped."""
        self._report(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to undo: what tasks wrote before the failure stays (at least once)."""


class PravegaStreamWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Appends the rows of each micro-batch to a stream."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Every task has made its events durable; say what best_effort dropped."""
        self._report(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing to undo: what tasks wrote before the failure stays, and Spark repeats the batch (at least once)."""


# (process, stream) pairs that were seen to exist: Spark makes writers anew for every micro-batch.
_seen: Final[set[tuple[int, str, str]]] = set()


def prepare_stream(client: PravegaClient, options: SinkOptions) -> None:
    """Make sure that the stream exists, creating it only if that is allowed.

    Raises ScopeNotFoundError, StreamNotFoundError.
    """
    stream = options.stream_name()
    key = (id(client), str(stream), client.config.controller)
    if key in _seen:
        return
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
    _seen.add(key)
