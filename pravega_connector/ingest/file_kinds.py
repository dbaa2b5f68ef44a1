"""Kinds of files: how to open them, their columns, and their records in chunks from any record.

CSV and JSON columns are inferred from a sample of their values. Text has one column. Parquet and Avro files name their
columns.
"""

from __future__ import annotations

import csv
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any, Final, Protocol

import pyarrow as pa

from pravega_connector.errors import BadRecordError, SourceUnreadableError
from pravega_connector.ingest.lines import LineReader, Lines, NotRecordsError, lines_of, reason_of
from pravega_connector.ingest.replayable import Chunk

#: Suffix -> name of the compression in pyarrow; ``xz`` is the standard library's.
_COMPRESSIONS: Final = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".br": "brotli",
    ".xz": "xz",
}
_KINDS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".txt": "text",
    ".log": "text",
    ".text": "text",
    ".avro": "avro",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
}
_BOM: Final = "\ufeff"
#: Maximum records that are read at once from files with columns.
ROWS_AT_ONCE: Final = 16384


class FileKind(Protocol):
    """Reader of files of one kind."""

    @property
    def sampled(self) -> bool:
        """True if the columns are inferred from values, so that more values can change them."""

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Return the columns of a file, from its beginning or from all of it. Raises SourceError."""

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield the records of a file from number ``offset``, in these columns. Raises SourceError."""


def unified(schemas: list[pa.Schema]) -> pa.Schema:
    """Return columns for the values of all schemas; incompatible types become text."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            known = types.get(field.name)
            types[field.name] = field.type if known is None else _both(known, field.type)
    return pa.schema(list(types.items()))


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    try:
        merged = pa.unify_schemas([pa.schema([("x", one)]), pa.schema([("x", other)])], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.string()
    return merged.field(0).type


def kind_of(path: str) -> str | None:
    """Return the kind of a file from its name; None if the name has no known suffix."""
    return _KINDS.get(_without_compression(path).suffix.lower())


def _without_compression(path: str) -> PurePath:
    pure = PurePath(path)
    return pure.with_suffix("") if pure.suffix.lower() in _COMPRESSIONS else pure


@contextmanager
def open_file(path: str) -> Iterator[Any]:
    """Open a binary file, decompressed by its suffix. Raises SourceUnreadableError, also during reads."""
    with reading(path):
        compression = _COMPRESSIONS.get(PurePath(path).suffix.lower())
        if compression is None:
            with open(path, "rb", buffering=0) as plain:
                yield plain
        elif compression == "xz":
            with lzma.open(path, "rb") as unpacked:
                yield unpacked
        else:
            with pa.input_stream(path, compression=compression) as unpacked:
                yield unpacked


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise SourceUnreadableError for errors of a file that is read in the block."""
    try:
        yield
    except FileNotFoundError:
        raise SourceUnreadableError(f"{path} does not exist or was deleted") from None
    except PermissionError:
        raise SourceUnreadableError(
            f"{path} cannot be read: permission denied; grant the permission and restart"
        ) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException) as error:
        what = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error).partition("\n")[0]
        raise SourceUnreadableError(f"{path} cannot be read, it is damaged or truncated: {what}") from error


def conform(batch: Any, schema: pa.Schema, name: str) -> pa.RecordBatch:
    """Return a batch with these columns, matched by name.

    Raises BadRecordError for other columns, and for values that do not fit.
    """
    if batch.schema.equals(schema):
        return batch
    if unlike := sorted(set(batch.schema.names) ^ set(schema.names)):
        verb = "has" if unlike[0] in batch.schema.names else "lacks"
        raise BadRecordError(
            f"{name} {verb} the column {unlike[0]!r}; all sources must have the columns {', '.join(schema.names)}"
        )
    try:
        return pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in schema], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadRecordError(f"{name} has other types than earlier sources: {reason_of(error)}") from error


@dataclass(frozen=True, kw_only=True)
class CsvFiles:
    """Delimited text with column names in the first line."""

    delimiter: str = ","
    header: bool = True
    """True if the first line has the names; otherwise columns are named ``f0``, ``f1``, …"""
    multiline: bool = False
    """True if quoted fields may contain line ends."""
    nulls: tuple[str, ...] = ("", "NA")
    """Unquoted texts that mean null."""
    sampled: bool = True

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Return the types that pyarrow infers from the first mebibyte, or from the whole file."""
        found: list[pa.Schema] = []
        with open_file(path) as file:
            names, blocks = self._head(file, path)
            found += [self._sample(names, block, path) for block in (blocks if whole else islice(blocks, 1))]
        return unified(found or [pa.schema([(name, pa.null()) for name in names])])

    def _sample(self, names: list[str], block: Lines, path: str) -> pa.Schema:
        try:
            return self._table(block, names, None).schema
        except pa.ArrowInvalid:  # one bad line: find it
            types = pa.schema([(name, pa.string()) for name in names])
            reader = LineReader(path, lambda lines: self._batch(lines, names, types), reject=True)
            (chunk,) = reader.chunks(iter([block]), 0)
            good = _without(block, chunk)
            if not good:
                return pa.schema([(name, pa.null()) for name in names])
            return self._table(next(lines_of(io.BytesIO(good), path, quotes=self.multiline)), names, None).schema

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield rows, matched by the names in the file's own header."""
        with open_file(path) as file:
            names, blocks = self._head(file, path)
            _check_names(path, names, schema)
            reader = LineReader(path, lambda lines: self._batch(lines, names, schema), reject)
            yield from reader.chunks(blocks, offset)

    def _head(self, file: Any, path: str) -> tuple[list[str], Iterator[Lines]]:
        """Return the names of the columns, and the lines after them."""
        blocks = lines_of(file, path, quotes=self.multiline)
        first = next(blocks, None)
        if first is None:
            return [], blocks
        text = first.text(0).removeprefix(_BOM)
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter))
        if not self.header:
            names = [f"f{number}" for number in range(len(names))]
        if len(set(names)) < len(names):
            raise SourceUnreadableError(f"{path}: two columns have the same name in its first line: {text[:200]!r}")
        return names, _chained(first.tail(int(self.header)), blocks)

    def _batch(self, lines: Lines, names: list[str], schema: pa.Schema) -> pa.RecordBatch:
        if not len(lines):
            return pa.RecordBatch.from_pylist([], schema)
        table = self._table(lines, names, schema)
        # pyarrow treats a quote that is still open at the end of a block as closed.
        if table.num_rows != len(lines) or _is_open(lines.text(len(lines) - 1), self.delimiter):
            raise NotRecordsError("a quote is missing, or a quoted field has a line end (set option multiline)")
        return _one_batch(table)

    def _table(self, lines: Lines, names: list[str], schema: pa.Schema | None) -> pa.Table:
        from pyarrow import csv as arrow  # noqa: PLC0415 - only this kind needs it

        data = lines.joined()
        convert = arrow.ConvertOptions(
            null_values=list(self.nulls), strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        if schema is not None:
            convert.column_types, convert.include_columns = schema, schema.names
        return arrow.read_csv(
            pa.BufferReader(data),
            arrow.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=self.multiline),
            convert,
        )


def _without(block: Lines, chunk: Chunk) -> bytes:
    """Return the lines of a block that its chunk does not reject."""
    bad = {each.record for each in chunk.rejected}
    return "".join(f"{block.text(row)}\n" for row in range(len(block)) if row not in bad).encode()


@dataclass(frozen=True, kw_only=True)
class JsonLines:
    """One JSON object in each line."""

    sampled: bool = True

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Return the types that pyarrow infers from the first mebibyte, or from the whole file."""
        found: list[pa.Schema] = []
        with open_file(path) as file:
            blocks = lines_of(file, path)
            found += [self._sample(block, path) for block in (blocks if whole else islice(blocks, 1))]
        return unified(found or [pa.schema([])])

    def _sample(self, block: Lines, path: str) -> pa.Schema:
        try:
            return self._table(block, None).schema
        except pa.ArrowInvalid as error:
            (chunk,) = LineReader(path, self._checked, reject=True).chunks(iter([block]), 0)
            if not chunk.rejected:
                raise SourceUnreadableError(
                    f"{path}: the types of its lines differ: {reason_of(error)}; set the types (option types)"
                ) from None
            good = _without(block, chunk)
            if not good:
                return pa.schema([])
            return self._sample(next(lines_of(io.BytesIO(good), path)), path)

    def _checked(self, lines: Lines) -> pa.RecordBatch:
        """Return a row for each line, if each line is an object."""
        if len(lines) and self._table(lines, None).num_rows != len(lines):
            raise NotRecordsError("each line must be one object")
        return pa.record_batch([pa.nulls(len(lines))], ["object"])

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield objects. A missing field is null; a field without a column makes the record malformed."""
        with open_file(path) as file:
            reader = LineReader(path, lambda lines: self._batch(lines, schema), reject)
            yield from reader.chunks(lines_of(file, path), offset)

    def _batch(self, lines: Lines, schema: pa.Schema) -> pa.RecordBatch:
        if not len(lines):
            return pa.RecordBatch.from_pylist([], schema)
        table = self._table(lines, schema)
        if table.num_rows != len(lines):
            raise NotRecordsError(f"{len(lines)} lines are {table.num_rows} objects; each line must be one object")
        return _one_batch(table)

    def _table(self, lines: Lines, schema: pa.Schema | None) -> pa.Table:
        from pyarrow import json as arrow  # noqa: PLC0415 - only this kind needs it

        data = lines.joined()
        parse = arrow.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "error"
        )
        read = arrow.ReadOptions(use_threads=False, block_size=len(data) + 1)
        return arrow.read_json(pa.BufferReader(data), read, parse)


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Lines of UTF-8 text; each line is an event, also a blank one."""

    sampled: bool = False

    def columns(self, path: str, *, whole: bool) -> pa.Schema:  # noqa: ARG002 - the same for every text
        """Return the only column, ``event``."""
        return pa.schema([("event", pa.string())])

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield lines without their line ends."""
        with open_file(path) as file:
            reader = LineReader(path, lambda lines: conform(_text_batch(lines), schema, path), reject)
            yield from reader.chunks(lines_of(file, path, blanks=True), offset)


def _text_batch(lines: Lines) -> pa.RecordBatch:
    spans = zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
    column = pa.array([lines.data[start:end] for start, end in spans], pa.binary())
    return pa.RecordBatch.from_arrays([column.cast(pa.string())], ["event"])


def _is_open(text: str, delimiter: str) -> bool:
    """Return True if a record has an unclosed quote."""
    if '"' not in text:
        return False
    try:
        list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def _chained(first: Lines, blocks: Iterator[Lines]) -> Iterator[Lines]:
    if len(first):
        yield first
    yield from blocks


def _check_names(path: str, names: list[str], schema: pa.Schema) -> None:
    if names and (unlike := sorted(set(names) ^ set(schema.names))):
        verb = "has" if unlike[0] in names else "lacks"
        raise BadRecordError(
            f"{path}, line 1: it {verb} the column {unlike[0]!r}; all files must have the columns "
            f"{', '.join(schema.names)}"
        )


@dataclass(frozen=True, kw_only=True)
class ParquetFiles:
    """Parquet files; the records of a row group are read in parts."""

    sampled: bool = False

    def columns(self, path: str, *, whole: bool) -> pa.Schema:  # noqa: ARG002 - the file says it
        """Return the columns of the file's own schema."""
        with reading(path), self._open(path) as file:
            return file.schema_arrow.remove_metadata()

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:  # noqa: ARG002
        """Yield rows; whole row groups before ``offset`` are not read."""
        with reading(path), self._open(path) as file:
            first, group, groups = 0, 0, file.metadata.num_row_groups
            while group < groups and first + file.metadata.row_group(group).num_rows <= offset:
                first += file.metadata.row_group(group).num_rows
                group += 1
            size = sum(file.metadata.row_group(each).total_byte_size for each in range(groups))
            per_row = size / max(1, file.metadata.num_rows)
            for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=range(group, groups), use_threads=False):
                end = first + batch.num_rows
                if end > offset:
                    rows = conform(batch.slice(max(0, offset - first)), schema, path)
                    yield Chunk(rows, max(first, offset), rows.num_rows, bytes=int(per_row * rows.num_rows))
                first = end

    @staticmethod
    def _open(path: str) -> Any:
        from pyarrow import parquet  # noqa: PLC0415 - only this kind needs it

        return parquet.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=1 << 20)
