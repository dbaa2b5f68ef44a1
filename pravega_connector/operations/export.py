"""Export of events to a file: Parquet, JSON lines or Avro.

:func:`export_stream` fixes a range of the stream and finds the columns of its events. These are the columns of the
Spark source. For JSON without a schema, they are inferred from the events. It writes record batches to a file, with at
most one row group in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.reader.slices import EventBatch, ReadRange, range_between, read_ranges
from pravega_connector.rows.bounds import Positions
from pravega_connector.rows.columns import Decoder, decoded_fields, key_filter, row_builder, serializer_of
from pravega_connector.rows.inference import names_no_columns
from pravega_connector.rows.lossless import all_columns, decoder_of_all, is_plain_json
from pravega_connector.rows.options import parse_options, texts
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.pickled import Pickled
from pravega_connector.wire import StreamCut
from pravega_serde.atomic_file import WholeFile
from pravega_serde.avro import AvroSerializer, avro_schema_of
from pravega_serde.errors import SchemaError
from pravega_serde.json import JsonSerializer
from pravega_serde.json.exact import JsonTextSerializer

__all__ = ["FILE_FORMATS", "ExportSummary", "export_stream", "file_format"]

#: Callback for the exported and the total bytes of the stream.
Progress = Callable[[int, int], object]
# Name of the Avro record for single values, and for columns without a schema.
_RECORD_NAME: Final = "pravega.export.Event"
Events = Callable[[], Generator[EventBatch, None, None]]


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """Result of an export: the events between two cuts of a stream, and the rows of the file."""

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
        """Number of events without a row: malformed ones in mode DROPMALFORMED, other types of a registry."""
        return self.events - self.rows


def export_stream(
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

    ``to`` is ``parquet``, ``jsonl`` or ``avro``, by default from the suffix of the file. ``compression`` is a codec of
    the file format. ``options`` are those of the Spark source and return the same columns: ``format="avro"``,
    ``registry="…"``, ``start_stream_cut="…"``, ``columns="…"``, ``mode="PERMISSIVE"``. Without a format, the events
    stay bytes. ``schema`` has the decoded columns to export, like Spark's ``.schema(…)``. An Avro file of Avro events
    has the schema of the events, followed by the other columns. In mode PERMISSIVE, each field is nullable.

    On return the file is complete and durable. Before that, and after an error, an existing file with this name is
    unchanged. Rows are in the order of each segment, predecessors before successors. The same cuts return the same
    rows, so you can repeat a failed export.

    Raises ConfigError (also for an existing file, unless ``overwrite`` is set), ColumnTypeError, OutputFileError,
    StreamNotFoundError, DataLossError, DeserializationError, RegistryErrors.
    """
    chosen = parse_options(SourceOptions, {"path": stream, **texts(options)})
    if chosen.has_dead_letters:
        raise ConfigError(
            "dead-letter queues are for Spark queries: set option 'mode' for the malformed events of an export"
        )
    target = Path(path)
    name, codec = file_format(target, to, compression)
    if target.exists() and not overwrite:
        raise ConfigError(f"the file {target} exists already: choose another name, or set overwrite=True (--overwrite)")
    first, going_on = chosen.timeout_ms / 1000, chosen.failover_timeout_ms / 1000
    with PravegaClient(chosen.config, timeout=first, failover_timeout=going_on) as client:
        job = _Export(client, chosen, schema, target, format=name, codec=codec)
        return job.run(on_progress or (lambda _done, _total: None))


class _Export:
    """Export of a range that is fixed at its creation."""

    def __init__(
        self,
        client: PravegaClient,
        options: SourceOptions,
        schema: pa.Schema | None,
        path: Path,
        *,
        format: str,
        codec: str,
    ) -> None:
        self._client, self._path, self._format, self._codec = client, path, format, codec
        self._range = _range(client, options)
        # The events are the lines of the file, unless other columns stand next to them.
        only_events = schema is None and not options.metadata_columns and options.routing_key_field is None
        self._text = format == "jsonl" and only_events and is_plain_json(options)
        if self._text:
            decoder: Decoder = Pickled(JsonTextSerializer())
            self._schema = pa.schema(decoded_fields(options, decoder))
        else:
            self._schema, decoder = columns_of(options, schema, self._events)
        self._select = key_filter(options, decoder)
        self._rows = row_builder(self._schema, options, decoder)
        nullable = decoder is not None and options.mode == "PERMISSIVE"
        self._avro = None if format != "avro" else avro_schema_of_rows(self._schema, decoder, nullable=nullable)

    def run(self, on_progress: Progress) -> ExportSummary:
        begun = time.monotonic()
        with WholeFile(self._path) as sink:
            writer: FileWriter
            if self._text:
                writer = JsonTextFile(sink, self._schema, self._codec, self._notes())
            else:
                writer = open_writer(
                    sink, self._schema, self._format, self._codec, self._notes(), avro_schema=self._avro
                )
            try:
                events, rows = self._copy(writer, on_progress)
                writer.finish()
            except BaseException:
                writer.abandon()
                raise
            size = sink.tell()
        seconds = time.monotonic() - begun
        start, end = self._range.start, self._range.end
        return ExportSummary(self._path, self._format, start, end, events, rows, size, seconds)

    def _copy(self, writer: FileWriter, on_progress: Progress) -> tuple[int, int]:
        events = rows = done = 0
        total = sum(piece.end - piece.start for piece in self._range.slices)
        on_progress(0, total)
        with closing(self._events()) as batches:
            for batch in batches:
                # Only events of the routing key that the options select.
                owned = self._range.owned
                kept = batch if self._select is None else self._select(batch, owned[batch.segment_id])
                for built in self._rows.build_all(kept) if len(kept.events) else ():
                    if built.num_rows:
                        writer.write(built)
                    rows += built.num_rows
                events += len(kept.events)
                done += batch.end - int(batch.offsets[0])
                on_progress(done, total)
        return events, rows

    def _events(self) -> Generator[EventBatch, None, None]:
        return read_ranges(self._client.stores, [self._range])

    def _notes(self) -> dict[str, str]:
        """Return the origin of the rows, for formats that can store it."""
        return {
            "pravega.stream": str(self._range.start.stream),
            "pravega.start": self._range.start.to_text(),
            "pravega.end": self._range.end.to_text(),
        }


def _range(client: PravegaClient, options: SourceOptions) -> ReadRange:
    """Return the range between the cuts at the start and the end, fixed now."""
    stream, key = options.stream_name(), options.routing_key
    start = Positions(client, "start_stream_cut", options.start_stream_cut, "earliest", key=key).bounded(stream)
    end = Positions(client, "end_stream_cut", options.end_stream_cut, "latest", end=True, key=key).bounded(stream)
    return range_between(client.stores, start, end, None if key is None else options.lineage(client.stores, stream))


# ---- columns ----


def columns_of(options: SourceOptions, wanted: pa.Schema | None, events: Events) -> tuple[pa.Schema, Decoder]:
    """Return the schema of the rows, and their decoder.

    ``wanted`` are the decoded columns, if set. Some formats do not name columns, but can infer them (JSON, CBOR). For
    these, without ``wanted`` and without a registry, all events of the range are read once to find them.

    Raises ConfigError, SchemaError, RegistryErrors, ColumnTypeError for events that have no columns in common.
    """
    if wanted is None and names_no_columns(options):
        otherwise = "pass the columns with schema=, or omit 'format' to export the bytes of the events"
        with closing(events()) as batches:
            found = all_columns(batches, options, otherwise)
            if not len(found):
                raise ColumnTypeError(f"there are no {options.format} events to infer columns from: {otherwise}")
        decoder = decoder_of_all(options, found)
    else:
        decoder = serializer_of(options, wanted)
    return pa.schema(decoded_fields(options, decoder)), decoder


def avro_schema_of_rows(schema: pa.Schema, decoder: Decoder, *, nullable: bool) -> str | None:
    """Return the Avro schema of a file of rows: the fields of the events, followed by the other columns.

    With ``nullable`` each field of the events may be null. Return None for events without an Avro schema, with several,
    or of a union with more than one type besides null: the columns then have its types.
    """
    serializer: Any = None if decoder is None else decoder.get()
    text: str | None = getattr(serializer, "read_schema", None)
    if text is None:
        return None
    whole = json.loads(text)
    definition, is_optional = _without_null(whole)
    is_record = isinstance(definition, dict) and definition["type"] in ("record", "error")
    if pa.types.is_struct(serializer.arrow_type) and not is_record:
        return None
    own = [field.name for field in serializer.arrow_type] if is_record else schema.names[:1]
    others = [field for field in schema if field.name not in own]
    if definition is whole and is_record and not others and not nullable:
        return text
    if not is_record:
        space, _, name = _RECORD_NAME.rpartition(".")
        fields = [{"name": schema.names[0], "type": whole}]
        definition = {"type": "record", "name": name, "namespace": space, "fields": fields}
    nullable = nullable or is_optional
    fields = [_optional(field) for field in definition["fields"]] if nullable else definition["fields"]
    return json.dumps({**definition, "fields": [*fields, *_derived_fields(others)]})


def _without_null(definition: Any) -> tuple[Any, bool]:
    """Return the only other type of a union with null, or with one type, and True if null is a type of it."""
    if not isinstance(definition, list):
        return definition, False
    kinds = [kind for kind in definition if kind != "null"]
    return (kinds[0], "null" in definition) if len(kinds) == 1 else (definition, False)


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    if "null" in kinds:
        return field
    # A default value belongs to the first branch.
    return {**field, "type": [*kinds, "null"] if "default" in field else ["null", *kinds]}


def _derived_fields(columns: list[pa.Field]) -> list[dict[str, Any]]:
    text = avro_schema_of(pa.schema(columns), _RECORD_NAME)
    fields: list[dict[str, Any]] = json.loads(text)["fields"]
    return fields


# ---- files ----

# Bytes of columns in one row group: large enough for skipping row groups, small enough for memory.
_ROW_GROUP_BYTES: Final = 16 << 20
_NO_CODEC: Final = "none"
_AVRO_MAGIC: Final = b"Obj\x01"


class FileWriter(Protocol):
    """Writer of one file."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""

    def finish(self) -> None:
        """Write the end of the file."""

    def abandon(self) -> None:
        """Release resources; the file is discarded."""


class ParquetFile:
    """Parquet file with row groups of about 16 MiB."""

    def __init__(self, sink: BinaryIO, schema: pa.Schema, codec: str, notes: Mapping[str, str]) -> None:
        try:
            self._writer = pq.ParquetWriter(sink, schema.with_metadata(dict(notes)), compression=codec)
        except pa.ArrowNotImplementedError as error:
            reason = str(error).partition(". ")[0]
            raise ColumnTypeError(f"the columns cannot be written as Parquet: {reason}; use .jsonl or .avro") from error
        self._held: list[pa.RecordBatch] = []
        self._size = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""
        self._held.append(batch)
        self._size += batch.nbytes
        if self._size >= _ROW_GROUP_BYTES:
            self._write_group()

    def finish(self) -> None:
        """Write the last row group and the footer."""
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        """Close Arrow's writer, which would otherwise write its footer later."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()

    def _write_group(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held).replace_schema_metadata())
        self._held, self._size = [], 0


class JsonLinesFile:
    """File with a JSON object for each row, as the JSON serializer writes it; binary columns are Base64.

    With a codec, the parts are compressed one by one: gzip and zstd files may have many members.
    """

    def __init__(self, sink: BinaryIO, schema: pa.Schema, codec: str, notes: Mapping[str, str]) -> None:
        self._sink = sink
        self._json = JsonSerializer()
        with _as_column_error("JSON"):
            self._json.check_encodable(pa.struct(list(schema)))
        self._codec = None if codec == _NO_CODEC else pa.Codec(codec)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""
        lines = _data(pc.binary_join_element_wise(self._lines(batch), b"", b"\n"))
        self._sink.write(lines if self._codec is None else self._codec.compress(lines))

    def _lines(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        return self._json.encode_column(batch)

    def finish(self) -> None:
        """Do nothing: the last line is complete."""

    def abandon(self) -> None:
        """Do nothing: no resources are held."""


class JsonTextFile(JsonLinesFile):
    """File of JSON events as they are. A malformed one is an object with the columns of malformed records."""

    def _lines(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        text = batch.column(0).view(pa.binary())
        if not text.null_count:
            return text
        return pc.coalesce(text, self._json.encode_column(batch.select(batch.schema.names[1:])))


class AvroFile:
    """Avro object container file with a block for each batch."""

    def __init__(
        self, sink: BinaryIO, schema: pa.Schema, codec: str, notes: Mapping[str, str], text: str | None = None
    ) -> None:
        """Write the header; ``text`` is the Avro schema of the rows, None derives one from the columns."""
        self._sink, self._deflate, self._sync = sink, codec == "deflate", os.urandom(16)
        with _as_column_error("Avro"):
            text = avro_schema_of(schema, _RECORD_NAME) if text is None else text
        self._avro = AvroSerializer(text)
        with _as_column_error("Avro"):
            self._avro.check_encodable(pa.struct(list(schema)))
        header = {"avro.schema": text, "avro.codec": "deflate" if self._deflate else "null", **notes}
        sink.write(_AVRO_MAGIC + _FILE_HEADER.serialize({key: value.encode() for key, value in header.items()}))
        sink.write(self._sync)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows as a block."""
        events = _data(self._avro.encode_column(batch))
        data = _deflated(events) if self._deflate else events
        self._sink.write(_LONG.serialize(batch.num_rows) + _LONG.serialize(len(data)))
        self._sink.write(data)
        self._sink.write(self._sync)

    def finish(self) -> None:
        """Do nothing: the last block is complete."""

    def abandon(self) -> None:
        """Do nothing: no resources are held."""


# The frame of the data in an Avro file is also encoded as Avro.
_FILE_HEADER: Final = AvroSerializer('{"type": "map", "values": "bytes"}')
_LONG: Final = AvroSerializer('"long"')


def _deflated(data: memoryview) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@contextmanager
def _as_column_error(name: str) -> Iterator[None]:
    """Raise a SchemaError in the block as a ColumnTypeError."""
    try:
        yield
    except SchemaError as error:
        raise ColumnTypeError(f"the columns cannot be written as {name}: {error.message}") from error


def _data(column: pa.Array) -> memoryview:
    """Return the bytes of a binary column without nulls, one value after the other."""
    _, offsets, data = column.buffers()
    if data is None:
        return memoryview(b"")
    bounds = np.frombuffer(offsets, np.int64 if pa.types.is_large_binary(column.type) else np.int32)
    return memoryview(data)[int(bounds[column.offset]) : int(bounds[column.offset + len(column)])]


_Open = Callable[[BinaryIO, pa.Schema, str, Mapping[str, str]], FileWriter]
# Name -> writer, codecs (the first is the default).
_FORMATS: Final[dict[str, tuple[_Open, tuple[str, ...]]]] = {
    "parquet": (ParquetFile, ("snappy", "zstd", "gzip", _NO_CODEC)),
    "jsonl": (JsonLinesFile, (_NO_CODEC, "gzip", "zstd")),
    "avro": (AvroFile, ("deflate", _NO_CODEC)),
}
FILE_FORMATS: Final = tuple(_FORMATS)
_SUFFIXES: Final = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".avro": "avro"}
_PACKED: Final = {".gz": "gzip", ".zst": "zstd"}


def file_format(path: Path, format: str | None = None, compression: str | None = None) -> tuple[str, str]:
    """Return format and codec of a file, by default from its name.

    ``.jsonl.gz`` and ``.jsonl.zst`` are compressed. Raises ConfigError for a name without a known format, and for a
    codec that the format does not support.
    """
    packed = _PACKED.get(path.suffix.lower())
    name = path.with_suffix("") if packed else path
    found = format or _SUFFIXES.get(name.suffix.lower())
    if found not in _FORMATS:
        raise ConfigError(
            f"unknown file format of {path.name!r}: use a name that ends in {', '.join(_SUFFIXES)}, or set one of "
            f"{', '.join(FILE_FORMATS)}"
        )
    codecs = _FORMATS[found][1]
    codec = compression or packed or codecs[0]
    if codec not in codecs or (packed and (found != "jsonl" or codec != packed)):
        raise ConfigError(
            f"the file {path.name!r} cannot be {found} compressed by {codec}: {found} has {', '.join(codecs)}"
            + (", and only JSON lines end in .gz or .zst" if packed else "")
        )
    return found, codec


def open_writer(
    sink: BinaryIO,
    schema: pa.Schema,
    format: str,
    codec: str,
    notes: Mapping[str, str],
    *,
    avro_schema: str | None = None,
) -> FileWriter:
    """Return the writer of a file of a format; ``notes`` are stored in the file if the format supports it.

    ``avro_schema`` is the schema of the rows of an Avro file; None derives one from the columns. Raises ColumnTypeError
    for columns that the format does not support.
    """
    if format == "avro":
        return AvroFile(sink, schema, codec, notes, avro_schema)
    return _FORMATS[format][0](sink, schema, codec, notes)
