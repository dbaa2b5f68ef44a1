"""Filters on metadata columns, applied to whole parts of segments before any task is started.

Spark hands them to batch queries when ``spark.sql.python.filterPushdown.enabled`` is set. It evaluates all of them
itself as well, but for those of which nothing is left to do: so what is read is less, and never another result.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from pyspark.sql import datasource as spark

from connector.client import EventBatch, SegmentSlice
from connector.source._options import SourceOptions

__all__ = ["Pushed", "filters_are_pushed", "until"]

# Spark refuses readers that take filters where its setting is off. Where it is on, this module of Spark's takes them.
_PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
# Columns that are the same for all events of a slice.
_CONSTANTS: Final[dict[str, Callable[[SegmentSlice], Any]]] = {
    "scope": lambda piece: piece.stream.scope,
    "stream": lambda piece: piece.stream.stream,
    "segment_id": lambda piece: piece.segment_id,
}
_OFFSET: Final = "offset"
_EXACT: Final[dict[type, Callable[[Any, Any], bool]]] = {
    spark.EqualTo: operator.eq,
    spark.EqualNullSafe: operator.eq,
    spark.In: lambda value, wanted: value in wanted,
    spark.GreaterThan: operator.gt,
    spark.GreaterThanOrEqual: operator.ge,
    spark.LessThan: operator.lt,
    spark.LessThanOrEqual: operator.le,
}
# Whether an offset in [first, last] can pass.
_RANGES: Final[dict[type, Callable[[int, int, Any], bool]]] = {
    spark.EqualTo: lambda first, last, wanted: first <= wanted <= last,
    spark.EqualNullSafe: lambda first, last, wanted: first <= wanted <= last,
    spark.In: lambda first, last, wanted: any(first <= value <= last for value in wanted),
    spark.GreaterThan: lambda _first, last, wanted: last > wanted,
    spark.GreaterThanOrEqual: lambda _first, last, wanted: last >= wanted,
    spark.LessThan: lambda first, _last, wanted: first < wanted,
    spark.LessThanOrEqual: lambda first, _last, wanted: first <= wanted,
}
# The first offset that cannot pass any more.
_STOPS: Final[dict[type, Callable[[Any], int]]] = {
    spark.EqualTo: lambda wanted: wanted + 1,
    spark.EqualNullSafe: lambda wanted: wanted + 1,
    spark.In: lambda wanted: max(wanted) + 1,
    spark.LessThan: lambda wanted: wanted,
    spark.LessThanOrEqual: lambda wanted: wanted + 1,
}


def filters_are_pushed() -> bool:
    """Whether this process is the one in which Spark hands filters to a reader."""
    return _PUSHING in sys.modules


class Pushed:
    """The filters of one query, as far as they are of use here."""

    def __init__(self, options: SourceOptions, filters: Iterable[spark.Filter]) -> None:
        self._on_slices: list[spark.Filter] = []
        self._on_offsets: list[spark.Filter] = []
        self.left: list[spark.Filter] = []
        """Those that Spark has to evaluate for each row."""
        # A format's field may have the name of a metadata column that is not read.
        columns = set(options.metadata_columns)
        for each in filters:
            if not self._take(each, columns):
                self.left.append(each)

    def _take(self, each: spark.Filter, columns: set[str]) -> bool:
        """Keep a filter that is of use; whether nothing is left to do of it."""
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
        """The slices that may have rows that pass."""
        return [
            piece
            for piece in slices
            if all(_passes(each, piece) for each in self._on_slices)
            and all(_RANGES[type(each)](piece.start, piece.end - 1, each.value) for each in self._on_offsets)
        ]

    @property
    def stop(self) -> int | None:
        """The offset from which on no event of any segment passes, if there is one."""
        return min((_STOPS[type(each)](each.value) for each in self._on_offsets if type(each) in _STOPS), default=None)


def _is_known(each: spark.Filter) -> bool:
    if type(each) not in _EXACT:
        return False
    values: Sequence[Any] = each.value if isinstance(each, spark.In) else (each.value,)
    wanted = str if each.attribute[0] in ("scope", "stream") else int
    return bool(values) and all(type(value) is wanted for value in values)


def _passes(each: spark.Filter, piece: SegmentSlice) -> bool:
    if isinstance(each, spark.Not):
        return not _passes(each.child, piece)
    return _EXACT[type(each)](_CONSTANTS[each.attribute[0]](piece), each.value)


def until(events: Iterator[EventBatch], stop: int | None) -> Iterator[EventBatch]:
    """The batches of one segment that begin before an offset; what follows is not read."""
    with closing(events) as found:  # type: ignore[type-var]
        for batch in found:
            if stop is not None and len(batch.offsets) and batch.offsets[0] >= stop:
                return
            yield batch
