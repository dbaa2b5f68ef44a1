"""Writing by column: each field becomes a list of Python values at once, and cbor2 writes row by row.

The bytes equal those of :mod:`pravega_serde.cbor.write_rows`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import cbor2
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.cbor.convert import DATE_TEXT, DATE_TIME
from pravega_serde.cbor.write_rows import written
from pravega_serde.columnar import (
    at_path,
    bounds_of,
    days_of,
    holds_bytes,
    is_text,
    list_items,
    map_entries,
    no_form,
    time_of_day,
    to_micros,
)
from pravega_serde.columnar.base import Write
from pravega_serde.columnar.lowering import check_between
from pravega_serde.columnar.types import is_any_list
from pravega_serde.errors import SchemaError

#: Returns the values of a column as cbor2 writes them, None for null.
Values = Callable[[pa.Array], Sequence[Any]]

#: Rows whose values still fit the processor's cache.
_ROWS_AT_ONCE: Final = 4096


def column_writer(kind: pa.DataType, *, deterministic: bool = False) -> Write:
    """Return a writer of columns of a type. Raise :class:`SchemaError` for a type without a form in CBOR."""
    values_of = _values(kind)

    def write(column: pa.Array) -> pa.BinaryArray:
        events: list[bytes | None] = []
        for start in range(0, len(column), _ROWS_AT_ONCE):
            piece = column.slice(start, _ROWS_AT_ONCE)
            there = piece.is_valid().to_pylist()
            events += [
                written(value, deterministic=deterministic) if valid else None
                for value, valid in zip(values_of(piece), there, strict=True)
            ]
        return pa.array(events, pa.binary())

    return write


def _values(kind: pa.DataType, path: str = "$") -> Values:
    for fits, build in _BUILDERS:
        if fits(kind):
            values = build(kind, path)
            return values if pa.types.is_nested(kind) else at_path(values, path)
    raise no_form(kind, "CBOR", path)


def _as_they_are(kind: pa.DataType, path: str) -> Values:  # noqa: ARG001
    return lambda column: column.to_pylist()


def _float(kind: pa.DataType, path: str) -> Values:  # noqa: ARG001
    return lambda column: column.cast(pa.float64()).to_pylist()


def _tagged(texts: pa.StringArray, tag: int) -> list[Any]:
    return [None if text is None else cbor2.CBORTag(tag, text) for text in texts.to_pylist()]


def _date(kind: pa.DataType, path: str) -> Values:  # noqa: ARG001
    def values(column: pa.Array) -> list[Any]:
        days = days_of(column)
        check_between(days.cast(pa.int32()), _FIRST_DAY, _LAST_DAY, "a date beyond the years 1 to 9999")
        return _tagged(days.cast(pa.string()), DATE_TEXT)

    return values


def _time(kind: pa.DataType, path: str) -> Values:  # noqa: ARG001
    return lambda column: time_of_day(column).cast(pa.string()).to_pylist()


def _timestamp(kind: pa.DataType, path: str) -> Values:  # noqa: ARG001
    def values(column: pa.Array) -> list[Any]:
        micros = to_micros(column, kind.unit, what="timestamp")
        check_between(micros, _FIRST_DAY * _DAY, _LAST_DAY * _DAY + _DAY - 1, "a timestamp beyond the years 1 to 9999")
        texts = pc.replace_substring(_short(micros.cast(pa.timestamp("us")).cast(pa.string())), " ", "T")
        if kind.tz is None:
            local: list[Any] = texts.to_pylist()
            return local
        # The text is in UTC for any zone of the column.
        return _tagged(pc.binary_join_element_wise(texts, "Z", ""), DATE_TIME)

    return values


def _short(texts: pa.StringArray) -> pa.StringArray:
    """Return times without microseconds if they are zero, as Python writes them."""
    return pc.replace_substring_regex(texts, r"\.000000$", "")


#: First and last day of the years 1 to 9999, counted from 1970.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY: Final = 86_400_000_000


def _list(kind: pa.DataType, path: str) -> Values:
    inner = _values(kind.value_type, f"{path}[]")

    def values(column: pa.Array) -> list[Any]:
        lengths, items = list_items(column)
        made, ends = inner(items), bounds_of(lengths).tolist()
        return [
            made[start:end] if valid else None
            for (start, end), valid in zip(itertools.pairwise(ends), column.is_valid().to_pylist(), strict=True)
        ]

    return values


def _map(kind: pa.DataType, path: str) -> Values:
    key = kind.key_type.value_type if pa.types.is_dictionary(kind.key_type) else kind.key_type
    if not (is_text(key) or (holds_bytes(key) and not pa.types.is_null(key)) or pa.types.is_integer(key)):
        raise no_form(kind, "CBOR", path, "cast its keys to string")
    key_of, value_of = _values(key, f"{path}{{}}"), _values(kind.item_type, f"{path}{{}}")

    def values(column: pa.Array) -> list[Any]:
        lengths, keys, items = map_entries(column)
        names, made, ends = key_of(keys.cast(key)), value_of(items), bounds_of(lengths).tolist()
        return [
            # The last of several entries with one key counts.
            dict(zip(names[start:end], made[start:end], strict=True)) if valid else None
            for (start, end), valid in zip(itertools.pairwise(ends), column.is_valid().to_pylist(), strict=True)
        ]

    return values


def _struct(kind: pa.DataType, path: str) -> Values:
    names = [entry.name for entry in kind]
    if len(set(names)) < len(names):
        raise SchemaError(f"a struct has a field twice, which CBOR does not support (at {path}): {', '.join(names)}")
    fields = [_values(entry.type, f"{path}.{entry.name}") for entry in kind]

    def values(column: pa.Array) -> list[Any]:
        if not fields:
            rows: list[dict[str, Any]] = [{} for _ in range(len(column))]
        else:
            parts = [inner(part) for inner, part in zip(fields, column.flatten(), strict=True)]
            rows = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        if column.null_count == 0:
            return rows
        return [row if valid else None for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)]

    return values


def _dictionary(kind: pa.DataType, path: str) -> Values:
    inner = _values(kind.value_type, path)
    return lambda column: inner(column.dictionary_decode())


_BUILDERS: Final[list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], Values]]]] = [
    (pa.types.is_null, _as_they_are),
    (pa.types.is_boolean, _as_they_are),
    (pa.types.is_integer, _as_they_are),
    (pa.types.is_decimal, _as_they_are),
    (pa.types.is_floating, _float),
    (is_text, _as_they_are),
    (holds_bytes, _as_they_are),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
    (pa.types.is_timestamp, _timestamp),
    (is_any_list, _list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
    (pa.types.is_dictionary, _dictionary),
]
