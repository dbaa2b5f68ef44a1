"""Events read by column: cbor2 reads many with one call, and columns are made of the values field by field.

This is the fast path of :func:`~pravega_serde.columnar.decode_rows`: its values are those of the plain path, and events
whose values are not what their column wants at first sight are left to that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from operator import itemgetter
from types import NoneType
from typing import Any, Final

import cbor2
import numpy as np
import pyarrow as pa

from pravega_serde.cbor.convert import DATE_TEXT, DATE_TIME, converter
from pravega_serde.cbor.rows import TypedReader, parse_for_column, parse_together
from pravega_serde.cbor.scan import may_cost
from pravega_serde.columnar import Attempt, FallbackError, FastPath, expand, list_offsets
from pravega_serde.errors import DeserializationError
from pravega_serde.json.convert import fitted_decimal, parse_times

__all__ = ["column_reader"]

#: Makes an Arrow array of values (None: null). Raises one of ``_REFUSALS`` for values that do not fit.
Build = Callable[[Sequence[Any]], pa.Array]

#: Rows, and bytes, whose objects still fit the processor's cache. Larger events are read one by one.
_ROWS_AT_ONCE: Final = 1024
_BYTES_AT_ONCE: Final = 256 * 1024

#: Rows at most that are left to the plain path because the values of one of them do not fit.
_SMALLEST_PIECE: Final = 16

_NO_ROWS: Final = np.empty(0, np.int64)

#: Arrow's errors and MalformedError are ValueErrors.
_REFUSALS: Final = (FallbackError, ArithmeticError, TypeError, ValueError)


def column_reader(read: TypedReader, kind: pa.DataType) -> FastPath:
    """Fast path for an Arrow type; ``read`` is its plain path."""
    build = _builder(kind)

    def attempt(column: pa.BinaryArray) -> Attempt:
        arrays: list[pa.Array] = []
        suspects: list[int] = []
        start = 0
        for events in _pieces(column):
            values, refused = _values(events, read)
            suspects += [start + row for row in refused]
            suspects += _append(build, kind, values, start, arrays)
            start += len(events)
        values = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return Attempt(values, np.unique(np.array(suspects, np.int64)) if suspects else _NO_ROWS)

    return attempt


def _pieces(column: pa.BinaryArray) -> Iterator[list[bytes]]:
    """Neighbouring events, few and small enough to be read at once."""
    for start in range(0, len(column), _ROWS_AT_ONCE):
        piece: list[bytes] = []
        size = 0
        for event in column.slice(start, _ROWS_AT_ONCE).to_pylist():
            if piece and size + len(event) > _BYTES_AT_ONCE:
                yield piece
                piece, size = [], 0
            piece.append(event)
            size += len(event)
        yield piece


def _values(events: Sequence[bytes], read: TypedReader) -> tuple[list[Any], list[int]]:
    """The values of events, None for each refused one, and the rows of those."""
    longest = max(map(len, events))
    if longest <= _BYTES_AT_ONCE and not read.may_exceed(longest):
        together = parse_together(events)
        if together is not None:
            return together, []
    values: list[Any] = []
    refused: list[int] = []
    for row, event in enumerate(events):
        value = None
        if may_cost(event) or read.may_exceed(len(event)):  # the plain path would read it once more
            refused.append(row)
        else:
            try:
                value = parse_for_column(event)
            except DeserializationError:
                refused.append(row)
        values.append(value)
    return values, refused


def _append(build: Build, kind: pa.DataType, values: Sequence[Any], start: int, arrays: list[pa.Array]) -> list[int]:
    """Append arrays of the values of the rows from ``start`` on; returns the rows left to the plain path.

    Values that do not fit are looked for by halving, so a few of them cost a few passes.
    """
    try:
        arrays.append(build(values))
    except _REFUSALS:
        if len(values) <= _SMALLEST_PIECE:
            arrays.append(pa.nulls(len(values), kind))
            return list(range(start, start + len(values)))
        middle = len(values) // 2
        left = _append(build, kind, values[:middle], start, arrays)
        return left + _append(build, kind, values[middle:], start + middle, arrays)
    return []


def _builder(kind: pa.DataType) -> Build:
    for fits, make in _BUILDERS:
        if fits(kind):
            return make(kind)
    raise AssertionError(kind)  # the plain path has refused it


def _check(values: Sequence[Any], *kinds: type) -> None:
    """Raise :class:`FallbackError` if a value is of no such type and not None."""
    if not set(map(type, values)) <= {NoneType, *kinds}:
        raise FallbackError


def _of(*kinds: type) -> Callable[[pa.DataType], Build]:
    """Builder of values that Arrow takes as they are, once their Python types are known."""

    def make(kind: pa.DataType) -> Build:
        def build(values: Sequence[Any]) -> pa.Array:
            _check(values, *kinds)
            return pa.array(values, kind)

        return build

    return make


def _decimals(kind: pa.DataType) -> Build:
    def build(values: Sequence[Any]) -> pa.Array:
        _check(values, int, Decimal)
        return pa.array([None if value is None else fitted_decimal(Decimal(value), kind) for value in values], kind)

    return build


def _times(kind: pa.DataType) -> Build:
    convert = converter(kind)
    tag = DATE_TEXT if pa.types.is_date(kind) else DATE_TIME

    def build(values: Sequence[Any]) -> pa.Array:
        texts = [
            value.value if type(value) is cbor2.CBORTag and value.tag == tag and type(value.value) is str else value
            for value in values
        ]
        if set(map(type, texts)) <= {NoneType, str}:
            return parse_times(pa.array(texts, pa.string()), kind)
        return pa.array(list(map(convert, values)), kind)

    return build


def _structs(kind: pa.DataType) -> Build:
    fields = list(kind)
    builders = [_builder(entry.type) for entry in fields]
    names = [entry.name for entry in fields]
    pick = itemgetter(*names) if len(names) > 1 else None

    def build(values: Sequence[Any]) -> pa.Array:
        _check(values, dict)
        if not fields:
            return pa.array([None if value is None else {} for value in values], kind)
        there = [value for value in values if value is not None]
        if len(there) < len(values):
            return expand(build(there), np.array([value is not None for value in values], np.bool_))
        columns = zip(builders, _columns(names, pick, values), strict=True)
        return pa.StructArray.from_arrays([make(part) for make, part in columns], fields=fields)

    return build


def _columns(names: Sequence[str], pick: Callable[[Any], Any] | None, values: Sequence[Any]) -> list[Sequence[Any]]:
    """Values of each field of maps; ``pick`` gives those of a map that has them all."""
    if pick is not None and values:
        try:
            return list(zip(*map(pick, values), strict=True))
        except KeyError:
            pass
    return [[value.get(name) for value in values] for name in names]


def _lists(kind: pa.DataType) -> Build:
    make = _builder(kind.value_type)

    def build(values: Sequence[Any]) -> pa.Array:
        _check(values, list)
        items = make(list(itertools.chain.from_iterable(filter(None, values))))
        return pa.ListArray.from_arrays(_offsets(values), items, type=kind, mask=_nulls(values))

    return build


def _maps(kind: pa.DataType) -> Build:
    make_keys, make_items = _builder(kind.key_type), _builder(kind.item_type)

    def build(values: Sequence[Any]) -> pa.Array:
        _check(values, dict)
        there = list(filter(None, values))
        keys = make_keys(list(itertools.chain.from_iterable(there)))
        items = make_items([item for value in there for item in value.values()])
        return pa.MapArray.from_arrays(_offsets(values), keys, items, type=kind, mask=_nulls(values))

    return build


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Offsets of lists or maps, of which None has no items."""
    return list_offsets(np.array([len(value) if value else 0 for value in values], np.int64))


def _nulls(values: Sequence[Any]) -> pa.BooleanArray | None:
    return pa.array([value is None for value in values], pa.bool_()) if None in values else None


_BUILDERS: Final[list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Build]]]] = [
    (pa.types.is_null, _of()),
    (pa.types.is_boolean, _of(bool)),
    (pa.types.is_integer, _of(int)),
    (pa.types.is_floating, _of(float, int)),
    (pa.types.is_string, _of(str)),
    (pa.types.is_binary, _of(bytes)),
    (pa.types.is_date, _times),
    (pa.types.is_timestamp, _times),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_list, _lists),
    (pa.types.is_map, _maps),
    (pa.types.is_struct, _structs),
]
