"""Parquet files: their columns, and their rows."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from pravega_connector.errors import BadRecordError, SourceUnreadableError
from pravega_connector.operations.ingest.file_kinds import ROWS_AT_ONCE, conform, reading
from pravega_connector.operations.ingest.lines import reason_of
from pravega_connector.operations.ingest.replayable import Chunk
from pravega_serde.columnar import list_items, list_offsets, map_entries
from pravega_serde.columnar.types import is_any_list, is_family, stored, with_leaves


@dataclass(frozen=True, kw_only=True)
class ParquetFiles:
    """Parquet files; the records of a row group are read in parts."""

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Return the columns of the file's own schema, with the types of events."""
        with reading(path), self._open(path) as file:
            schema = _schema(file)
        names = schema.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SourceUnreadableError(f"{path} has two columns called {twice!r}: rename one of them")
        return pa.schema(list(with_leaves(pa.struct(list(schema)), _plain_type)))

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield rows; whole row groups before ``offset`` are not read."""
        with reading(path), self._open(path) as file:
            first, group, groups = 0, 0, file.metadata.num_row_groups
            while group < groups and first + file.metadata.row_group(group).num_rows <= offset:
                first += file.metadata.row_group(group).num_rows
                group += 1
            size = sum(file.metadata.row_group(each).total_byte_size for each in range(groups))
            per_row = size / max(1, file.metadata.num_rows)
            own = _schema(file)
            for read in file.iter_batches(ROWS_AT_ONCE, row_groups=range(group, groups), use_threads=False):
                batch = read if read.schema.equals(own) else read.cast(own)
                end = first + batch.num_rows
                if end > offset:
                    rows = conform(_without_extensions(batch.slice(max(0, offset - first))), schema, path)
                    _check_text(rows, path)
                    yield Chunk(rows, max(first, offset), rows.num_rows, bytes=int(per_row * rows.num_rows))
                first = end

    @staticmethod
    def _open(path: str) -> Any:
        file = pa.OSFile(os.fsencode(path))  # a name that is not UTF-8 must be bytes
        # Nanoseconds hold only the years 1677 to 2262, and INT96 any year.
        return parquet.ParquetFile(
            file,
            pre_buffer=False,
            buffer_size=1 << 20,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )


#: Metadata of files that Spark wrote: the DataFrame's columns.
_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def _schema(file: Any) -> pa.Schema:
    """Return the columns of a file. INT96 has no zone, but Spark writes only TIMESTAMP as INT96, which is in UTC."""
    schema: pa.Schema = file.schema_arrow
    if _SPARK not in (schema.metadata or {}):
        return schema
    leaves = iter(range(len(file.schema)))

    def leaf(kind: pa.DataType) -> pa.DataType:
        is_int96 = file.schema.column(next(leaves)).physical_type == "INT96"
        return pa.timestamp(kind.unit, "UTC") if is_int96 else kind

    return pa.schema(list(with_leaves(pa.struct(list(schema)), leaf)), schema.metadata)


def _check_text(rows: pa.RecordBatch, path: str) -> None:
    """Raise BadRecordError for text that is not UTF-8, which writers of Parquet do not check."""
    for entry, column in zip(rows.schema, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            fix = "write the file with binary columns"
            if not pa.types.is_nested(entry.type):
                fix = f"set the type of the column to keep its bytes (--type {entry.name}=binary)"
            raise BadRecordError(
                f"{path} has a value in column {entry.name!r} that is not UTF-8 ({reason_of(error)}); {fix}"
            ) from error


_UUID = "arrow.uuid"


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values become events: a UUID is text, and times have microseconds."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.string() if kind.extension_name == _UUID else with_leaves(kind.storage_type, _plain_type)
    return stored(kind) if is_family(kind, "time", "timestamp", "duration") and kind.unit == "ns" else kind


def _without_extensions(batch: pa.RecordBatch) -> pa.RecordBatch:
    if not any(map(_has_extension, batch.schema.types)):
        return batch
    columns = [_storage(column) if _has_extension(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _has_extension(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return True
    return any(_has_extension(kind.field(at).type) for at in range(kind.num_fields))


def _storage(column: pa.Array) -> pa.Array:
    """Return a column without extension types."""
    kind, t = column.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name != _UUID:
            return _storage(column.storage)
        values = column.storage.to_pylist()
        return pa.array([None if value is None else str(uuid.UUID(bytes=value)) for value in values], pa.string())
    if t.is_struct(kind):
        inside = [_storage(inner) for inner in column.flatten()]
        return pa.StructArray.from_arrays(inside, [entry.name for entry in kind], mask=column.is_null())
    if t.is_map(kind):
        lengths, keys, items = map_entries(column)
        return pa.MapArray.from_arrays(list_offsets(lengths), _storage(keys), _storage(items), mask=column.is_null())
    if is_any_list(kind):
        lengths, items = list_items(column)
        return pa.ListArray.from_arrays(list_offsets(lengths), _storage(items), mask=column.is_null())
    return column
