"""Kinds of files: how to open them, their columns, and their records in chunks from any record.

CSV and JSON columns are inferred from a sample of their values. Text has one column. Parquet and Avro files name their
columns.
"""

from __future__ import annotations

import codecs
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from pravega_connector.errors import BadRecordError, SourceUnreadableError
from pravega_connector.operations.ingest.lines import LineReader, Lines, lines_of, reason_of
from pravega_connector.operations.ingest.replayable import Chunk, Rejected
from pravega_serde.columnar.arrays import cut_text, map_entries
from pravega_serde.columnar.found import Found
from pravega_serde.columnar.types import family, is_family

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
#: Maximum records that are read at once from files with columns.
ROWS_AT_ONCE: Final = 16384


class FileKind(Protocol):
    """Reader of files of one kind."""

    def columns(self, path: str, *, whole: bool) -> pa.Schema | Found:
        """Return the columns of a file, or the types of values in its beginning or in all of it. Raises SourceError."""

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield the records of a file from number ``offset``, in these columns. Raises SourceError."""


def unified(schemas: list[pa.Schema]) -> pa.Schema:
    """Return columns for the values of all schemas; incompatible types become text."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for each in schema:
            known = types.get(each.name)
            types[each.name] = each.type if known is None else _both(known, each.type)
    return pa.schema(list(types.items()))


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if _are_apart(one, other):
        return pa.string()
    try:
        merged = pa.unify_schemas([pa.schema([("x", one)]), pa.schema([("x", other)])], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.string()
    return merged.field(0).type


def _are_apart(one: pa.DataType, other: pa.DataType) -> bool:
    """Return True for types that Arrow unifies into one, or casts, with another meaning or a loss."""
    families = family(one), family(other)
    match families:
        case "dictionary", _:
            return _are_apart(one.value_type, other)
        case _, "dictionary":
            return _are_apart(one, other.value_type)
        case "fields", "fields":
            others = {entry.name: entry.type for entry in other}
            return any(entry.name in others and _are_apart(entry.type, others[entry.name]) for entry in one)
        case ("items", "items") | ("entries", "entries"):
            return any(_are_apart(one.field(at).type, other.field(at).type) for at in range(one.num_fields))
        case "timestamp", "timestamp":
            return (one.tz is None) != (other.tz is None)
    both = set(families)
    is_time = not (both.isdisjoint(_TIMES) or both & {"null", "text"})
    return len(both) > 1 and (both in _APART or "boolean" in both or is_time)


_APART: Final = ({"decimal", "floating"}, {"text", "binary"}, {"text", "null"})
_TIMES: Final = frozenset({"date", "time", "timestamp", "duration"})


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
        elif not os.path.getsize(path):  # pyarrow and lzma read it as a complete file
            raise SourceUnreadableError(f"{path} is empty, so it was not completely written: no compression does this")
        elif compression == "xz":
            with lzma.open(path, "rb") as unpacked:
                yield unpacked
        else:
            # pyarrow accepts a name that is not UTF-8 only as bytes.
            with pa.CompressedInputStream(pa.OSFile(os.fsencode(path)), compression) as unpacked:
                yield unpacked


@contextmanager
def open_text(path: str, encoding: str) -> Iterator[Any]:
    """Open a file as bytes of UTF-8. Raises SourceUnreadableError, also during reads."""
    with open_file(path) as file:
        yield file if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig") else _Recoded(file, path, encoding)


class _Recoded:
    """Text of another encoding, as bytes of UTF-8."""

    def __init__(self, file: Any, path: str, encoding: str) -> None:
        self._file, self._path, self._encoding = file, path, encoding
        self._decode = codecs.getincrementaldecoder(encoding)().decode

    def read(self, size: int) -> bytes:
        """Return the next bytes, about ``size``; none at the end."""
        text, data = "", b"more"
        try:
            while data and not text:
                data = self._file.read(size)
                text = self._decode(data, final=not data)
            return text.encode()
        except UnicodeError as error:
            raise SourceUnreadableError(
                f"{self._path} is not {self._encoding}: {error}; set another encoding (--encoding)"
            ) from error


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
    return pa.RecordBatch.from_arrays([_cast(batch.column(f.name), f, name) for f in schema], schema=schema)


def good_rows(
    values: pa.Array, reasons: dict[int, str], null: str | None, reject: Callable[[int, str], Rejected]
) -> tuple[pa.Array, tuple[Rejected, ...]]:
    """Return values without rejected rows, and these. ``null`` is the reason to reject null, if it is not a value."""
    if null is not None and values.null_count > len(reasons):
        nulls = (row for row, there in enumerate(values.is_valid().to_pylist()) if not there)
        reasons = {row: reasons.get(row, null) for row in nulls}
    bad = tuple(reject(row, reasons[row]) for row in sorted(reasons))
    return values.filter(pa.array([row not in reasons for row in range(len(values))])) if bad else values, bad


def _cast(column: pa.Array, to: pa.Field, name: str) -> pa.Array:
    if column.type == to.type:
        return column
    try:
        values = column.cast(to.type)
        if is_family(to.type, "text", "binary") or is_family(column.type, "null") or _is_same(column, values):
            return values
        reason = f"a {column.type} would change"
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = reason_of(error)
    raise BadRecordError(
        f"{name} has a value in column {to.name!r} that does not fit {to.type}: {reason}; set the type of the column "
        f"(--type {to.name}=string)"
    )


def _is_same(column: pa.Array, values: pa.Array) -> bool:
    """Return True if the values of another type are those of a column."""
    if _are_apart(column.type, values.type):
        return False
    return _are_equal(values.cast(column.type), column)


def _are_equal(one: pa.Array, other: pa.Array) -> bool:
    """Return True for equal values of one type, whose lists are as long; NaN is equal to itself."""
    match family(one.type):
        case "floating":
            left, right = (each.to_numpy(zero_copy_only=False) for each in (one, other))
            return one.null_count == other.null_count and np.array_equal(left, right, equal_nan=True)
        case "fields":
            return all(map(_are_equal, one.flatten(), other.flatten()))
        case "items":
            return _are_equal(one.flatten(), other.flatten())
        case "entries":
            return all(map(_are_equal, map_entries(one)[1:], map_entries(other)[1:]))
    return bool(one.equals(other))


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Lines of text; each line is an event, also a blank one."""

    encoding: str = "utf-8"

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """Return the only column, ``event``."""
        return pa.schema([("event", pa.string())])

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Yield lines without their line ends."""
        with open_text(path, self.encoding) as file:
            reader = LineReader(path, _text_rows, reject)
            for chunk in reader.chunks(lines_of(file, path, blanks=True), offset):
                yield replace(chunk, batch=conform(chunk.batch, schema, path))


def _text_rows(lines: Lines) -> tuple[pa.RecordBatch, dict[int, str]]:
    texts, wrong = cut_text(np.frombuffer(lines.data, np.uint8), lines.starts, lines.ends)
    reasons: dict[int, str] = {}
    if wrong is not None:
        reason = "it is not UTF-8; set the encoding of the file (--encoding)"
        reasons = dict.fromkeys(np.flatnonzero(wrong).tolist(), reason)
        texts = texts.filter(pa.array(~wrong))
    return pa.RecordBatch.from_arrays([texts], ["event"]), reasons
