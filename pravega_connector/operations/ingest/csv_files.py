"""Delimited text: its columns, and its rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow

from pravega_connector.errors import BadRecordError, SourceUnreadableError
from pravega_connector.operations.ingest.csv_lines import OPEN, broken, fault_of, has_plain_quotes
from pravega_connector.operations.ingest.csv_values import FALSE, TRUE, Texts, converted, found_in, read_as
from pravega_connector.operations.ingest.file_kinds import open_text
from pravega_connector.operations.ingest.lines import SHOWN, LineReader, Lines, lines_of
from pravega_connector.operations.ingest.replayable import Chunk
from pravega_serde.columnar.arrays import as_text, number_column
from pravega_serde.columnar.found import Found


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
    encoding: str = "utf-8"
    _first: list[tuple[Lines, dict[str, Texts]]] = field(default_factory=list, init=False, repr=False, compare=False)
    """The first block whose columns were inferred, until records are read."""

    def columns(self, path: str, *, whole: bool) -> Found:
        """Return the types of the values in the first mebibyte, or in the whole file."""
        with open_text(path, self.encoding) as file:
            names, blocks = self._head(file, path)
            found = Found(fields={name: Found() for name in names})
            for lines in blocks if whole else islice(blocks, 1):
                batch, reasons = self._texts(lines, names, names)
                columns = {name: Texts(column) for name, column in zip(names, batch.columns, strict=True)}
                for name, column in columns.items():
                    found.fields[name].merge(found_in(column))
                if not (self._first or reasons):
                    self._first.append((lines, columns))
        return found

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield rows, matched by the names in the file's own header."""
        with open_text(path, self.encoding) as file:
            names, blocks = self._head(file, path)
            _check_names(path, names, schema)
            reader = LineReader(path, lambda lines: self._rows(lines, names, schema), reject)
            yield from reader.chunks(blocks, offset)

    def _head(self, file: Any, path: str) -> tuple[list[str], Iterator[Lines]]:
        """Return the names of the columns, and the lines after them."""
        blocks = lines_of(file, path, quotes=self.multiline, returns=True)
        first = next(blocks, None)
        if first is None:
            return [], blocks
        data = first.data[int(first.starts[0]) : int(first.ends[0])]
        try:
            rows = list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=self.delimiter, strict=True))
        except UnicodeDecodeError:
            raise SourceUnreadableError(
                f"{path}, line 1: the names of the columns are not UTF-8; set the encoding of the file (--encoding)"
            ) from None
        except csv.Error:
            rows = []
        if len(rows) != 1:
            fault = fault_of(first.text(0), self.delimiter) or OPEN
            raise SourceUnreadableError(f"{path}, line 1: {fault}: {first.text(0)[:SHOWN]!r}")
        (names,) = rows
        if not self.header:
            names = [f"f{number}" for number in range(len(names))]
        if len(set(names)) < len(names):
            raise SourceUnreadableError(
                f"{path}: two columns have the same name in its first line: {first.text(0)[:SHOWN]!r}"
            )
        rest = first.tail(int(self.header))
        return names, chain([rest] if len(rest) else [], blocks)

    def _rows(self, lines: Lines, names: list[str], schema: pa.Schema) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return the valid rows, and the reasons to reject the others."""
        found, reasons = self._columns(lines, names, schema)
        misfits: dict[int, str] = {}
        columns = []
        for entry in schema:
            values, wrong = converted(found[entry.name], entry.type, entry.name)
            columns.append(values)
            misfits = wrong | misfits  # the reason of the first column
        return _good(pa.RecordBatch.from_arrays(columns, schema=schema), misfits, reasons, len(lines))

    def _columns(self, lines: Lines, names: list[str], schema: pa.Schema) -> tuple[dict[str, Texts], dict[int, str]]:
        """Return the columns of the valid records, and the reasons to reject the others."""
        if self._first:
            first, columns = self._first.pop()
            if lines.is_like(first) and names == list(columns):
                return columns, {}
        batch = self._parsed(lines, names, pa.schema([entry.with_type(read_as(entry.type)) for entry in schema]))
        reasons: dict[int, str] = {}
        if batch is None:
            batch, reasons = self._texts(lines, names, schema.names)
        return {name: Texts(batch.column(name)) for name in schema.names}, reasons

    def _texts(self, lines: Lines, names: list[str], wanted: list[str]) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Return the fields of the records as text, and the reasons to reject the others."""
        batch = self._parsed(lines, names, pa.schema([(name, pa.string()) for name in wanted]))
        if batch is not None:
            return batch, {}
        reasons = broken(lines, len(names), self.delimiter)
        texts = pa.schema([(name, pa.binary()) for name in wanted])
        whole = lines.without(reasons) if reasons else lines
        batch = self._read(whole, names, texts) if len(whole) else pa.RecordBatch.from_pylist([], texts)
        columns = []
        undecoded: dict[int, str] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            texts, wrong = as_text(column)
            columns.append(texts)
            if wrong is not None:
                why = f"column {name!r} is not UTF-8; set the encoding of the file (--encoding)"
                undecoded = dict.fromkeys(np.flatnonzero(wrong).tolist(), why) | undecoded
        return _good(pa.RecordBatch.from_arrays(columns, batch.schema.names), undecoded, reasons, len(lines))

    def _parsed(self, lines: Lines, names: list[str], schema: pa.Schema) -> pa.RecordBatch | None:
        """Return the fields of the records; None if one of them does not fit."""
        data = lines.joined()
        if len(lines) > 1 and not lines.returns and b"\r" in lines.data and _has_lone_return(bytes(data)):
            return None  # pyarrow takes it for a line end
        try:
            batch = self._read(lines, names, schema)
        except pa.ArrowInvalid:
            return None
        # pyarrow treats a quote that is still open at the end of a block as closed, and joins text after a closed one.
        if len(batch) != len(lines) or fault_of(lines.text(len(lines) - 1), self.delimiter):
            return None
        is_valid = has_plain_quotes(lines, self.delimiter) or not broken(lines, len(names), self.delimiter)
        return batch if is_valid else None

    def _read(self, lines: Lines, names: list[str], schema: pa.Schema) -> pa.RecordBatch:
        # Without a line end, pyarrow reads an empty last field after a quoted one as if it had quotes, too.
        data = b"".join([lines.joined(), b"\n"])
        table = arrow.read_csv(
            pa.BufferReader(data),
            arrow.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
            arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=self.multiline),
            arrow.ConvertOptions(
                column_types=schema,
                include_columns=schema.names,
                null_values=list(self.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=list(TRUE),
                false_values=list(FALSE),
            ),
        )
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema)


def _good(
    batch: pa.RecordBatch, wrong: dict[int, str], reasons: dict[int, str], count: int
) -> tuple[pa.RecordBatch, dict[int, str]]:
    """Return the good rows, and all reasons by record. The batch lacks the records that have ``reasons``."""
    if not wrong:
        return batch, reasons
    records = np.delete(np.arange(count), list(reasons))
    good = np.isin(np.arange(len(batch)), list(wrong), invert=True)
    return batch.filter(number_column(good)), reasons | {int(records[row]): why for row, why in wrong.items()}


def _has_lone_return(data: bytes) -> bool:
    return data.count(b"\r") > data.count(b"\r\n") + data.endswith(b"\r")


def _check_names(path: str, names: list[str], schema: pa.Schema) -> None:
    if names and (unlike := sorted(set(names) ^ set(schema.names))):
        verb = "has" if unlike[0] in names else "lacks"
        raise BadRecordError(
            f"{path}, line 1: it {verb} the column {unlike[0]!r}; all files must have the columns "
            f"{', '.join(schema.names)}"
        )
