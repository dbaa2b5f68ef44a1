"""From a stream to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from connector._whole_file import WholeFile
from connector.client import EventBatch, PravegaClient, StreamCut, read_slices, slices_between
from connector.errors import ConfigError
from connector.export._columns import avro_schema_of_rows, columns_of
from connector.export._files import FileWriter, file_format, open_writer
from connector.options import parse_options
from connector.source import Positions, RowBuilder, SourceOptions

__all__ = ["ExportSummary", "export"]

#: Told how many of how many bytes of the stream are done.
Progress = Callable[[int, int], object]
# Bytes that a segment holds around each event.
_FRAME = 8


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export did: the events between two cuts of a stream, and the rows of the file.

    ``left_out`` counts events that gave no row: bad ones in mode DROPMALFORMED, other types of a registry.
    """

    path: Path
    format: str
    start: StreamCut
    end: StreamCut
    events: int
    rows: int
    size: int
    seconds: float

    @property
    def left_out(self) -> int:
        """Events that gave no row."""
        return self.events - self.rows


def export(
    stream: str,
    path: Path | str,
    *,
    to: str | None = None,
    compression: str | None = None,
    schema: pa.Schema | None = None,
    overwrite: bool = False,
    on_progress: Progress | None = None,
    **options: Any,
) -> ExportSummary:
    """Write the events between two cuts of a stream to one file, in constant memory.

    ``to`` is ``parquet``, ``jsonl`` or ``avro`` if the file's name does not tell; ``compression`` a codec of it.
    ``options`` are those of the Spark source, with the same columns as a result: ``format="avro"``, ``registry="…"``,
    ``start_stream_cut="…"``, ``columns="…"``, ``mode="PERMISSIVE"``; without a format the events stay bytes. ``schema``
    are the decoded columns that are wanted, where Spark has ``.schema(…)``. An Avro file of Avro events has their
    schema, with the other columns behind its fields, and each field nullable in mode PERMISSIVE.

    On return the file is there as a whole, and durable; before, and after an error, there is nothing under its name
    that was not there before. The order is that of each segment, predecessors before successors. The same cuts give the
    same rows again: a failed export is repeated.

    Raises ConfigError (a file that is there, unless ``overwrite``), ColumnTypeError, OutputFileError,
    StreamNotFoundError, DataLossError, DeserializationError, RegistryErrors.
    """
    chosen = parse_options(
        SourceOptions, {"path": stream, **{k: _text(v) for k, v in options.items() if v is not None}}
    )
    if chosen.has_dead_letters:
        raise ConfigError("dead letters are for queries of Spark; bad events of an export are a matter of 'mode'")
    target = Path(path)
    name, codec = file_format(target, to, compression)
    if target.exists() and not overwrite:
        raise ConfigError(f"the file {target} is there already: choose another name, or say that it may be replaced")
    first, going_on = chosen.timeout_ms / 1000, chosen.failover_timeout_ms / 1000
    with PravegaClient(chosen.config(), timeout=first, failover_timeout=going_on) as client:
        job = _Export(client, chosen, schema, target, format=name, codec=codec)
        return job.run(on_progress or (lambda _done, _total: None))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Export:
    """One export; the range is fixed when it is made."""

    def __init__(
        self,
        client: PravegaClient,
        options: SourceOptions,
        schema: pa.Schema | None,
        path: Path,
        *,
        format: str,  # noqa: A002 - what it is called everywhere
        codec: str,
    ) -> None:
        self._client, self._path, self._format, self._codec = client, path, format, codec
        self._start, self._end = _range(client, options)
        self._slices = slices_between(client.stores, self._start, self._end)
        self._schema, decoder = columns_of(options, schema, self._events)
        self._rows = RowBuilder(self._schema, options, decoder)
        nullable = decoder is not None and options.mode == "PERMISSIVE"
        self._avro = None if format != "avro" else avro_schema_of_rows(self._schema, decoder, nullable=nullable)

    def run(self, on_progress: Progress) -> ExportSummary:
        begun = time.monotonic()
        with WholeFile(self._path) as sink:
            writer = open_writer(sink, self._schema, self._format, self._codec, self._notes(), avro_schema=self._avro)
            try:
                events, rows = self._copy(writer, on_progress)
                writer.finish()
            except BaseException:
                writer.abandon()
                raise
            size = sink.tell()
        seconds = time.monotonic() - begun
        return ExportSummary(self._path, self._format, self._start, self._end, events, rows, size, seconds)

    def _copy(self, writer: FileWriter, on_progress: Progress) -> tuple[int, int]:
        events = rows = done = 0
        total = sum(piece.end - piece.start for piece in self._slices)
        on_progress(0, total)
        with closing(self._events()) as batches:
            for batch in batches:
                built = self._rows.build(batch)
                if built.num_rows:
                    writer.write(built)
                events, rows = events + len(batch.events), rows + built.num_rows
                done += _bytes_of(batch)
                on_progress(done, total)
        return events, rows

    def _events(self) -> Generator[EventBatch, None, None]:
        return read_slices(self._client.stores, self._slices)

    def _notes(self) -> dict[str, str]:
        """Where the rows come from, for formats that have a place for it."""
        return {
            "pravega.stream": str(self._start.stream),
            "pravega.start": self._start.to_text(),
            "pravega.end": self._end.to_text(),
        }


def _range(client: PravegaClient, options: SourceOptions) -> tuple[StreamCut, StreamCut]:
    """The two cuts, fixed now."""
    stream = options.stream_name()
    start = Positions(client, "start_stream_cut", options.start_stream_cut, "earliest").cut(stream)
    end = Positions(client, "end_stream_cut", options.end_stream_cut, "latest", end=True).cut(stream)
    assert start is not None  # only what may be unbounded has no cut
    assert end is not None
    return start, end


def _bytes_of(batch: EventBatch) -> int:
    last = int(batch.offsets[-1]) + _FRAME + len(batch.events[-1].as_buffer())
    return last - int(batch.offsets[0])
