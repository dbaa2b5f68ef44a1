"""The formats of exported files: record batches in, bytes out, never more than a row group in memory."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connector.errors import ColumnTypeError, ConfigError
from connector.export._columns import EXPORTED
from pravega_serde import MissingExtraError, SchemaError
from pravega_serde.avro import AvroSerializer
from pravega_serde.json import JsonSerializer

__all__ = ["FILE_FORMATS", "FileWriter", "file_format", "open_writer"]

# Bytes of columns that become one row group: large enough for readers to skip by, small enough to be held.
_ROW_GROUP_BYTES: Final = 16 << 20
_NO_CODEC: Final = "none"
_AVRO_MAGIC: Final = b"Obj\x01"


class FileWriter(Protocol):
    """Writes one file."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""

    def finish(self) -> None:
        """Write what the format has at its end."""

    def abandon(self) -> None:
        """Let go of what is held; the file is no file."""


class ParquetFile:
    """Row groups of some 16 MiB."""

    def __init__(self, sink: BinaryIO, schema: pa.Schema, codec: str, notes: Mapping[str, str]) -> None:
        self._writer = pq.ParquetWriter(sink, schema.with_metadata(dict(notes)), compression=codec)
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
        """Close Arrow's writer, which would write its footer later otherwise."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()

    def _write_group(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held).replace_schema_metadata())
        self._held, self._size = [], 0


class JsonLinesFile:
    """An object for each row, as the JSON serializer writes it; binary columns are Base64.

    With a codec the pieces are compressed one by one: gzip and zstd files may have many members.
    """

    def __init__(self, sink: BinaryIO, schema: pa.Schema, codec: str, notes: Mapping[str, str]) -> None:  # noqa: ARG002
        self._sink = sink
        self._json = JsonSerializer()
        _check(self._json, schema, "JSON")
        self._codec = None if codec == _NO_CODEC else pa.Codec(codec)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""
        lines = _data(pc.binary_join_element_wise(self._json.encode_column(batch), b"", b"\n"))
        self._sink.write(lines if self._codec is None else self._codec.compress(lines))

    def finish(self) -> None:
        """Nothing: the last line is whole."""

    def abandon(self) -> None:
        """Nothing is held."""


class AvroFile:
    """An object container file, a block for each batch."""

    def __init__(
        self, sink: BinaryIO, schema: pa.Schema, codec: str, notes: Mapping[str, str], text: str | None = None
    ) -> None:
        """``text`` is the Avro schema of the rows, where they have one; else one follows from the columns."""
        self._sink, self._deflate, self._sync = sink, codec == "deflate", os.urandom(16)
        text = _avro_schema(schema) if text is None else text
        self._avro = AvroSerializer(text)
        _check(self._avro, schema, "Avro")
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
        """Nothing: the last block is whole."""

    def abandon(self) -> None:
        """Nothing is held."""


# What an Avro file has around its data is Avro itself.
_FILE_HEADER: Final = AvroSerializer('{"type": "map", "values": "bytes"}')
_LONG: Final = AvroSerializer('"long"')


def _deflated(data: memoryview) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def _avro_schema(schema: pa.Schema) -> str:
    try:
        from pravega_serde.registry import avro_schema_of  # noqa: PLC0415 - half a second that only Avro files need
    except ModuleNotFoundError as error:
        raise MissingExtraError("httpx", "registry", purpose="writing Avro files") from error
    try:
        return avro_schema_of(schema, EXPORTED)
    except SchemaError as error:
        raise ColumnTypeError(f"the columns cannot be written as Avro: {error.message}") from error


def _check(serializer: Any, schema: pa.Schema, name: str) -> None:
    try:
        serializer.check_encodable(pa.struct(list(schema)))
    except SchemaError as error:
        raise ColumnTypeError(f"the columns cannot be written as {name}: {error.message}") from error


def _data(column: pa.Array) -> memoryview:
    """The bytes of a binary column without nulls, one value after the other."""
    _, offsets, data = column.buffers()
    if data is None:
        return memoryview(b"")
    bounds = np.frombuffer(offsets, np.int64 if pa.types.is_large_binary(column.type) else np.int32)
    return memoryview(data)[int(bounds[column.offset]) : int(bounds[column.offset + len(column)])]


_Open = Callable[[BinaryIO, pa.Schema, str, Mapping[str, str]], FileWriter]
# Name -> what writes it, the codecs that it has (the first is the default).
_FORMATS: Final[dict[str, tuple[_Open, tuple[str, ...]]]] = {
    "parquet": (ParquetFile, ("snappy", "zstd", "gzip", _NO_CODEC)),
    "jsonl": (JsonLinesFile, (_NO_CODEC, "gzip", "zstd")),
    "avro": (AvroFile, ("deflate", _NO_CODEC)),
}
FILE_FORMATS: Final = tuple(_FORMATS)
_SUFFIXES: Final = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".avro": "avro"}
_PACKED: Final = {".gz": "gzip", ".zst": "zstd"}


def file_format(path: Path, format: str | None = None, compression: str | None = None) -> tuple[str, str]:  # noqa: A002
    """Format and codec of a file, from its name where they are not given.

    ``.jsonl.gz`` and ``.jsonl.zst`` are compressed. Raises ConfigError for a name that tells no format, and for a codec
    that the format does not have.
    """
    packed = _PACKED.get(path.suffix.lower())
    name = path.with_suffix("") if packed else path
    found = format or _SUFFIXES.get(name.suffix.lower())
    if found not in _FORMATS:
        raise ConfigError(
            f"the name {path.name!r} tells no format that events are exported to: let it end in "
            f"{', '.join(_SUFFIXES)}, or name one of {', '.join(FILE_FORMATS)}"
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
    format: str,  # noqa: A002 - what it is called everywhere
    codec: str,
    notes: Mapping[str, str],
    *,
    avro_schema: str | None = None,
) -> FileWriter:
    """The writer of a file of a format; ``notes`` go into the file where the format has a place for them.

    ``avro_schema`` is the schema of an Avro file, where the rows have one.

    Raises ColumnTypeError for columns that the format cannot hold.
    """
    if format == "avro":
        return AvroFile(sink, schema, codec, notes, avro_schema)
    return _FORMATS[format][0](sink, schema, codec, notes)
