"""Filters on metadata columns, by which parts of segments are left out before any task starts.

Spark has them from 4.1, and passes them to batch queries if ``spark.sql.python.filterPushdown.enabled`` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pyspark.sql import datasource as spark

from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.rows.options.source import SourceOptions

# Columns that are equal for all events of a slice.
_CONSTANTS: Final[dict[str, Callable[[SegmentSlice], Any]]] = {
    "scope": lambda piece: piece.stream.scope,
    "stream": lambda piece: piece.stream.stream,
    "segment_id": lambda piece: piece.segment_id,
}
_OFFSET: Final = "offset"
# Return True if a value in [first, last] can pass: an offset of a slice, or a constant, which is first and last.
_RANGES: Final[dict[type, Callable[[Any, Any, Any], bool]]] = {
    spark.EqualTo: lambda first, last, wanted: first <= wanted <= last,
    spark.EqualNullSafe: lambda first, last, wanted: first <= wanted <= last,
    spark.In: lambda first, last, wanted: any(first <= value <= last for value in wanted),
    spark.GreaterThan: lambda _first, last, wanted: last > wanted,
    spark.GreaterThanOrEqual: lambda _first, last, wanted: last >= wanted,
    spark.LessThan: lambda first, _last, wanted: first < wanted,
    spark.LessThanOrEqual: lambda first, _last, wanted: first <= wanted,
}
# First offset from which no offset passes.
_STOPS: Final[dict[type, Callable[[Any], int]]] = {
    spark.EqualTo: lambda wanted: wanted + 1,
    spark.EqualNullSafe: lambda wanted: wanted + 1,
    spark.In: lambda wanted: max(wanted) + 1,
    spark.LessThan: lambda wanted: wanted,
    spark.LessThanOrEqual: lambda wanted: wanted + 1,
}


class Pushed:
    """Filters of one query that the source can apply."""

    def __init__(self, options: SourceOptions, filters: Iterable[spark.Filter]) -> None:
        self._on_slices: list[spark.Filter] = []
        self._on_offsets: list[spark.Filter] = []
        self.left: list[spark.Filter] = []
        """Filters that Spark must evaluate for each row."""
        # A field of an event may have the name of a metadata column that is not read.
        columns = set(options.metadata_columns)
        for each in filters:
            if not self._take(each, columns):
                self.left.append(each)

    def _take(self, each: spark.Filter, columns: set[str]) -> bool:
        """Keep a filter if the source can apply it. Return True if Spark does not need to evaluate it."""
        negated = isinstance(each, spark.Not)
        inner = each.child if negated else each
        path: tuple[str, ...] = getattr(inner, "attribute", ())
        if len(path) != 1 or path[0] not in columns or not _is_known(inner):
            return False
        if path[0] in _CONSTANTS:
            self._on_slices.append(each)
            return True
        if path[0] == _OFFSET and not negated:
            self._on_offsets.append(inner)
        return False

    def keep(self, slices: Iterable[SegmentSlice]) -> list[SegmentSlice]:
        """Return the slices that may have rows that pass."""
        return [
            piece
            for piece in slices
            if all(_passes(each, piece) for each in self._on_slices)
            and all(_RANGES[type(each)](piece.start, piece.end - 1, each.value) for each in self._on_offsets)
        ]

    @property
    def stop(self) -> int | None:
        """Offset from which no event of any segment passes, or None."""
        return min((_STOPS[type(each)](each.value) for each in self._on_offsets if type(each) in _STOPS), default=None)


def _is_known(each: spark.Filter) -> bool:
    if type(each) not in _RANGES:
        return False
    values: Sequence[Any] = each.value if isinstance(each, spark.In) else (each.value,)
    wanted = str if each.attribute[0] in ("scope", "stream") else int
    return bool(values) and all(type(value) is wanted for value in values)


def _passes(each: spark.Filter, piece: SegmentSlice) -> bool:
    if isinstance(each, spark.Not):
        return not _passes(each.child, piece)
    value = _CONSTANTS[each.attribute[0]](piece)
    return _RANGES[type(each)](value, value, each.value)
