"""Files of lines: CSV, JSON, text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from connector.errors import BadRecordError, SourceUnreadableError
from connector.ingest._kind import unified
from connector.ingest._lines import Lines, lines_of
from connector.ingest._opening import open_file
from connector.ingest._parsing import LineReader, NotRecordsError, conform
from connector.ingest._source import Chunk

__all__ = ["CsvFiles", "JsonLines", "TextFiles"]

_BOM: Final = "\ufeff"


@dataclass(frozen=True, kw_only=True)
class CsvFiles:
    """Delimited text with a line of names at its head."""

    delimiter: str = ","
    header: bool = True
    """Whether the first line has the names; without it columns are called ``f0``, ``f1``, …"""
    multiline: bool = False
    """Whether there are line ends inside quotes."""
    nulls: tuple[str, ...] = ("", "NA")
    """Texts that stand for no value, where they are not quoted."""
    sampled: bool = True

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Types that pyarrow finds in the first mebibyte, or in all of it."""
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
            bad = {each.record for each in chunk.rejected}
            good = "\n".join(block.text(row) for row in range(len(block)) if row not in bad).encode()
            return self._table(next(lines_of(io.BytesIO(good), path, quotes=self.multiline)), names, None).schema

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Rows, by the names in the file's own header."""
        with open_file(path) as file:
            names, blocks = self._head(file, path)
            _check_names(path, names, schema)
            reader = LineReader(path, lambda lines: self._batch(lines, names, schema), reject)
            yield from reader.chunks(blocks, offset)

    def _head(self, file: Any, path: str) -> tuple[list[str], Iterator[Lines]]:
        """The names of the columns, and what follows them."""
        blocks = lines_of(file, path, quotes=self.multiline)
        first = next(blocks, None)
        if first is None:
            return [], blocks
        text = first.text(0).removeprefix(_BOM)
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter))
        if not self.header:
            names = [f"f{number}" for number in range(len(names))]
        if len(set(names)) < len(names):
            raise SourceUnreadableError(f"{path}: two columns have one name in its first line: {text[:200]!r}")
        return names, _chained(first.tail(int(self.header)), blocks)

    def _batch(self, lines: Lines, names: list[str], schema: pa.Schema) -> pa.RecordBatch:
        if not len(lines):
            return pa.RecordBatch.from_pylist([], schema)
        table = self._table(lines, names, schema)
        # A quote that is still open at the end of a block, pyarrow takes for closed.
        if table.num_rows != len(lines) or _is_open(lines.text(len(lines) - 1), self.delimiter):
            raise NotRecordsError("a quote is missing, or a quoted field has a line end in it (option multiline)")
        return _one_batch(table)

    def _table(self, lines: Lines, names: list[str], schema: pa.Schema | None) -> pa.Table:
        from pyarrow import csv as arrow  # noqa: PLC0415 - of all kinds this one alone needs it

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


@dataclass(frozen=True, kw_only=True)
class JsonLines:
    """One JSON object in each line."""

    sampled: bool = True

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Types that pyarrow finds in the first mebibyte, or in all of it."""
        found: list[pa.Schema] = []
        with open_file(path) as file:
            blocks = lines_of(file, path)
            found += [self._sample(block, path) for block in (blocks if whole else islice(blocks, 1))]
        return unified(found or [pa.schema([])])

    def _sample(self, block: Lines, path: str) -> pa.Schema:
        try:
            return self._table(block, None).schema
        except pa.ArrowInvalid:
            reader = LineReader(path, lambda lines: _one_batch(self._table(lines, None)), reject=False)
            next(reader.chunks(iter([block]), 0))  # raises for the line
            raise

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Objects; a field that is missing is null, one that no column is for makes a bad record."""
        with open_file(path) as file:
            reader = LineReader(path, lambda lines: self._batch(lines, schema), reject)
            yield from reader.chunks(lines_of(file, path), offset)

    def _batch(self, lines: Lines, schema: pa.Schema) -> pa.RecordBatch:
        if not len(lines):
            return pa.RecordBatch.from_pylist([], schema)
        table = self._table(lines, schema)
        if table.num_rows != len(lines):
            raise NotRecordsError(f"{len(lines)} lines are {table.num_rows} objects; each line must hold one")
        return _one_batch(table)

    def _table(self, lines: Lines, schema: pa.Schema | None) -> pa.Table:
        from pyarrow import json as arrow  # noqa: PLC0415 - of all kinds this one alone needs it

        data = lines.joined()
        parse = arrow.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "error"
        )
        read = arrow.ReadOptions(use_threads=False, block_size=len(data) + 1)
        return arrow.read_json(pa.BufferReader(data), read, parse)


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Lines of UTF-8 text, each of them an event; blank lines too."""

    sampled: bool = False

    def columns(self, path: str, *, whole: bool) -> pa.Schema:  # noqa: ARG002 - of every text
        """The one column ``event``."""
        return pa.schema([("event", pa.string())])

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Lines without their ends."""
        with open_file(path) as file:
            reader = LineReader(path, lambda lines: conform(_text_batch(lines), schema, path), reject)
            yield from reader.chunks(lines_of(file, path, blanks=True), offset)


def _text_batch(lines: Lines) -> pa.RecordBatch:
    spans = zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
    column = pa.array([lines.data[start:end] for start, end in spans], pa.binary())
    return pa.RecordBatch.from_arrays([column.cast(pa.string())], ["event"])


def _is_open(text: str, delimiter: str) -> bool:
    """Whether a quote of a record is not closed."""
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
