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
from pravega_serde.cbor.write_rows import prepared, written
from pravega_serde.columnar import (
    at_path,
    bounds_of,
    days_of,
    list_items,
    map_entries,
    time_of_day,
    to_micros,
)
from pravega_serde.columnar.arrays import dictionary_values
from pravega_serde.columnar.base import Write
from pravega_serde.columnar.lowering import check_between
from pravega_serde.columnar.types import NESTED, Walk, family
from pravega_serde.columnar.variant import decoded

#: Returns the values of a column as cbor2 writes them, None for null.
Values = Callable[[pa.Array], Sequence[Any]]

#: Rows whose values still fit the processor's cache.
_ROWS_AT_ONCE: Final = 4096


def column_writer(kind: pa.DataType, *, deterministic: bool = False) -> Write:
    """Return a writer of columns of a type. Raise :class:`SchemaError` for a type without a form in CBOR."""
    values_of = _Values().of(kind)

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


def _tagged(texts: pa.StringArray, tag: int) -> list[Any]:
    return [None if text is None else cbor2.CBORTag(tag, text) for text in texts.to_pylist()]


def _short(texts: pa.StringArray) -> pa.StringArray:
    """Return times without microseconds if they are zero, as Python writes them."""
    return pc.replace_substring_regex(texts, r"\.000000$", "")


#: First and last day of the years 1 to 9999, counted from 1970.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY: Final = 86_400_000_000


class _Values(Walk[Values]):
    language = "CBOR"

    def of(self, kind: pa.DataType, path: str = "$") -> Values:
        values = super().of(kind, path)
        return values if family(kind) in NESTED else at_path(values, path)

    def null(self, kind: pa.DataType) -> Values:  # noqa: ARG002
        return lambda column: column.to_pylist()

    boolean = integer = decimal = text = binary = null

    def floating(self, kind: pa.DataType) -> Values:  # noqa: ARG002
        return lambda column: column.cast(pa.float64()).to_pylist()

    def date(self, kind: pa.DataType) -> Values:  # noqa: ARG002
        def values(column: pa.Array) -> list[Any]:
            days = days_of(column)
            check_between(days.cast(pa.int32()), _FIRST_DAY, _LAST_DAY, "a date beyond the years 1 to 9999")
            return _tagged(days.cast(pa.string()), DATE_TEXT)

        return values

    def time(self, kind: pa.DataType) -> Values:  # noqa: ARG002
        return lambda column: time_of_day(column).cast(pa.string()).to_pylist()

    def timestamp(self, kind: pa.DataType) -> Values:
        first, last = _FIRST_DAY * _DAY, _LAST_DAY * _DAY + _DAY - 1

        def values(column: pa.Array) -> list[Any]:
            micros = to_micros(column, kind.unit, what="timestamp")
            check_between(micros, first, last, "a timestamp beyond the years 1 to 9999")
            texts = pc.replace_substring(_short(micros.cast(pa.timestamp("us")).cast(pa.string())), " ", "T")
            if kind.tz is None:
                local: list[Any] = texts.to_pylist()
                return local
            # The text is in UTC for any zone of the column.
            return _tagged(pc.binary_join_element_wise(texts, "Z", ""), DATE_TIME)

        return values

    def items(self, kind: pa.ListType, path: str) -> Values:
        inner = self.item(kind, path)

        def values(column: pa.Array) -> list[Any]:
            lengths, items = list_items(column)
            made, ends = inner(items), bounds_of(lengths).tolist()
            return [
                made[start:end] if valid else None
                for (start, end), valid in zip(itertools.pairwise(ends), column.is_valid().to_pylist(), strict=True)
            ]

        return values

    def entries(self, kind: pa.MapType, path: str) -> Values:
        self.check_keys(kind, path, "text", "binary", "integer")
        key_of, value_of = self.of(kind.key_type, f"{path}{{}}"), self.value(kind, path)

        def values(column: pa.Array) -> list[Any]:
            lengths, keys, items = map_entries(column)
            names, made, ends = key_of(keys), value_of(items), bounds_of(lengths).tolist()
            return [
                # The last of several entries with one key counts.
                dict(zip(names[start:end], made[start:end], strict=True)) if valid else None
                for (start, end), valid in zip(itertools.pairwise(ends), column.is_valid().to_pylist(), strict=True)
            ]

        return values

    def fields(self, kind: pa.StructType, path: str) -> Values:
        members = self.members(kind, path)

        def values(column: pa.Array) -> list[Any]:
            if not members:
                rows: list[dict[str, Any]] = [{} for _ in range(len(column))]
            else:
                parts = [inner(part) for inner, part in zip(members.values(), column.flatten(), strict=True)]
                rows = [dict(zip(members, row, strict=True)) for row in zip(*parts, strict=True)]
            if column.null_count == 0:
                return rows
            return [row if valid else None for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)]

        return values

    def variant(self, kind: pa.DataType) -> Values:  # noqa: ARG002
        return lambda column: list(map(prepared, decoded(column)))

    def dictionary(self, kind: pa.DictionaryType, path: str) -> Values:
        inner = super().dictionary(kind, path)
        return lambda column: inner(dictionary_values(column))
