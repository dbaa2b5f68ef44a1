"""Reading by column: cbor2 reads many events with one call, and columns are built from the values field by field.

This is the fast path of :func:`~pravega_serde.columnar.decode_rows`, and its values equal those of the plain path.
Events with values that do not obviously fit their column are left to the plain path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from pravega_serde.columnar import Attempt, FallbackError, FastPath
from pravega_serde.columnar.building import (
    Build,
    build_decimals,
    build_list,
    build_map,
    build_rows,
    build_struct,
    parse_times,
)
from pravega_serde.columnar.types import family, is_family
from pravega_serde.errors import DeserializationError

#: Rows, and bytes, whose objects still fit the processor's cache. Larger events are read one by one.
_ROWS_AT_ONCE: Final = 1024
_BYTES_AT_ONCE: Final = 256 * 1024

#: Maximum number of rows that are left to the plain path because the values of one of them do not fit.
_SMALLEST_PIECE: Final = 16

_NO_ROWS: Final = np.empty(0, np.int64)

#: Arrow's errors and MalformedError are ValueErrors.
_REFUSALS: Final = (FallbackError, ArithmeticError, TypeError, ValueError)


def column_reader(read: TypedReader, kind: pa.DataType) -> FastPath:
    """Return the fast path for an Arrow type; ``read`` is its plain path."""
    build = _builder(kind)

    def attempt(column: pa.BinaryArray) -> Attempt:
        arrays: list[pa.Array] = []
        suspects: list[int] = []
        start = 0
        for events in _pieces(column):
            values, refused = _values(events, read)
            suspects += [start + row for row in refused]
            suspects += build_rows(
                build, kind, values, start=start, smallest=_SMALLEST_PIECE, refusals=_REFUSALS, arrays=arrays
            )
            start += len(events)
        values = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return Attempt(values, np.unique(np.array(suspects, np.int64)) if suspects else _NO_ROWS)

    return attempt


def _pieces(column: pa.BinaryArray) -> Iterator[list[bytes]]:
    """Yield neighboring events, few and small enough to be read at once."""
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
    """Return the values of events, None for each refused one, and the rows of the refused ones."""
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


def _builder(kind: pa.DataType) -> Build:
    return _BUILDERS[family(kind)](kind)  # the plain path has refused other types


def _checked(build: Build, *kinds: type) -> Build:
    """Return a builder of values of some Python types."""

    def checked(values: Sequence[Any]) -> pa.Array:
        if not set(map(type, values)) <= {NoneType, *kinds}:
            raise FallbackError
        return build(values)

    return checked


def _of(*kinds: type) -> Callable[[pa.DataType], Build]:
    """Return a builder of values that Arrow accepts unchanged, once their Python types are known."""
    return lambda kind: _checked(lambda values: pa.array(values, kind), *kinds)


def _decimals(kind: pa.DataType) -> Build:
    return _checked(build_decimals(kind), int, Decimal)


def _times(kind: pa.DataType) -> Build:
    convert = converter(kind)
    tag = DATE_TEXT if is_family(kind, "date") else DATE_TIME

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
    builders, names = [_builder(entry.type) for entry in kind], [entry.name for entry in kind]
    pick = itemgetter(*names) if len(names) > 1 else None

    def columns(values: Sequence[Any]) -> list[pa.Array]:
        return [make(part) for make, part in zip(builders, _columns(names, pick, values), strict=True)]

    return _checked(lambda values: build_struct(values, kind, columns), dict)


def _columns(names: Sequence[str], pick: Callable[[Any], Any] | None, values: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the values of each field of maps; ``pick`` returns the values of a map that has all fields."""
    if pick is not None and values:
        try:
            return list(zip(*map(pick, values), strict=True))
        except KeyError:
            pass
    return [[value.get(name) for value in values] for name in names]


def _lists(kind: pa.DataType) -> Build:
    make = _builder(kind.value_type)
    return _checked(lambda values: build_list(values, kind, make), list)


def _maps(kind: pa.DataType) -> Build:
    keys, items = _builder(kind.key_type), _builder(kind.item_type)
    return _checked(lambda values: build_map(values, kind, keys, items), dict)


def _variants(kind: pa.DataType) -> Build:
    convert = converter(kind)
    return lambda values: pa.array(list(map(convert, values)), kind)


_BUILDERS: Final[Mapping[str, Callable[[pa.DataType], Build]]] = {
    "null": _of(),
    "boolean": _of(bool),
    "integer": _of(int),
    "floating": _of(float, int),
    "text": _of(str),
    "binary": _of(bytes),
    "date": _times,
    "timestamp": _times,
    "decimal": _decimals,
    "items": _lists,
    "entries": _maps,
    "fields": _structs,
    "variant": _variants,
}
