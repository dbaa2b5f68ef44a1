"""Values of columns, row by row, for :func:`pravega_serde.cbor.write_rows.to_cbor`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

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
from pravega_serde.columnar.lowering import check_between
from pravega_serde.columnar.types import NESTED, Walk, family
from pravega_serde.columnar.variant import decoded

#: Returns the Python values of a column, None for null.
RowValues = Callable[[pa.Array], Sequence[Any]]


def row_values(kind: pa.DataType) -> RowValues:
    """Return the conversion of columns of a type. Raise :class:`SchemaError` for a type without a form in CBOR."""
    return _Values().of(kind)


#: First and last day of the years 1 to 9999, counted from 1970.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY: Final = 86_400_000_000


class _Values(Walk[RowValues]):
    language = "CBOR"

    def of(self, kind: pa.DataType, path: str = "$") -> RowValues:
        values = super().of(kind, path)
        return values if family(kind) in NESTED else at_path(values, path)

    def null(self, kind: pa.DataType) -> RowValues:
        return lambda column: column.to_pylist()

    boolean = integer = decimal = text = binary = null

    def floating(self, kind: pa.DataType) -> RowValues:
        return lambda column: column.cast(pa.float64()).to_pylist()

    def date(self, kind: pa.DataType) -> RowValues:
        def values(column: pa.Array) -> Any:
            days = days_of(column)
            check_between(days.cast(pa.int32()), _FIRST_DAY, _LAST_DAY, "a date beyond the years 1 to 9999")
            return days.to_pylist()

        return values

    def time(self, kind: pa.DataType) -> RowValues:
        return lambda column: time_of_day(column).to_pylist()

    def timestamp(self, kind: pa.DataType) -> RowValues:
        first, last = _FIRST_DAY * _DAY, _LAST_DAY * _DAY + _DAY - 1

        def values(column: pa.Array) -> Any:
            micros = to_micros(column, kind.unit, noun="timestamp")
            check_between(micros, first, last, "a timestamp beyond the years 1 to 9999")
            return micros.cast(pa.timestamp("us", kind.tz and "UTC")).to_pylist()

        return values

    def items(self, kind: pa.ListType, path: str) -> RowValues:
        inner = self.item(kind, path)

        def values(column: pa.Array) -> list[Any]:
            lengths, items = list_items(column)
            made, ends = inner(items), bounds_of(lengths).tolist()
            return [
                made[start:end] if valid else None
                for (start, end), valid in zip(itertools.pairwise(ends), column.is_valid().to_pylist(), strict=True)
            ]

        return values

    def entries(self, kind: pa.MapType, path: str) -> RowValues:
        self.check_keys(kind, path, "text", "binary", "integer")
        key_of, value_of = self.of(kind.key_type, f"{path}{{}}"), self.value(kind, path)

        def values(column: pa.Array) -> list[Any]:
            lengths, keys, items = map_entries(column)
            names, made, ends = key_of(keys), value_of(items), bounds_of(lengths).tolist()
            return [
                dict(zip(names[start:end], made[start:end], strict=True)) if valid else None
                for (start, end), valid in zip(itertools.pairwise(ends), column.is_valid().to_pylist(), strict=True)
            ]

        return values

    def fields(self, kind: pa.StructType, path: str) -> RowValues:
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

    def variant(self, kind: pa.DataType) -> RowValues:
        return lambda column: list(decoded(column))

    def dictionary(self, kind: pa.DictionaryType, path: str) -> RowValues:
        inner = super().dictionary(kind, path)
        return lambda column: inner(dictionary_values(column))
