"""The fast path: msgspec decodes each event into a struct made for the Arrow type, and columns are made of those.

It takes what the plain path takes, or less: whatever it refuses, the plain path looks at again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from pravega_serde.columnar import FastPath, MalformedError, bisecting, bounds_of, expand
from pravega_serde.json.convert import fitted_decimal, integer_bounds, millis, parse_times
from pravega_serde.json.rows import LONG_EVENT, ObjectLimit, is_slow

__all__ = ["column_reader"]

#: An Arrow array of decoded values (None: null).
Build = Callable[[Sequence[Any]], pa.Array]

#: Rows whose objects still fit the processor's cache.
_ROWS_AT_ONCE: Final = 4096

#: msgspec cannot rename a field to one with these; such types are read by rows.
_UNSPEAKABLE: Final = frozenset(map(chr, range(32))) | {'"', "\\"}


class _Unfit(Exception):  # noqa: N818 -- not an error: the rows will do
    """The type has a corner that msgspec does not take."""


def column_reader(kind: pa.DataType) -> FastPath | None:
    """The fast path for an Arrow type; None for types that msgspec does not take."""
    try:
        decode = msgspec.json.Decoder(_spec(kind)).decode
    except _Unfit:
        return None
    build = _builder(kind)
    budget = ObjectLimit.of(kind)

    def whole(column: pa.BinaryArray) -> pa.Array:
        # msgspec does not validate what it skips.
        column.cast(pa.string())
        events = column.to_pylist()
        longest = max(map(len, events), default=0)
        many = budget.concerns(longest) and any(map(budget.may_be_exceeded, events))
        if many or (longest > LONG_EVENT and any(map(is_slow, events))):
            raise MalformedError("numbers that take long, or many objects: by rows")
        starts = range(0, len(events), _ROWS_AT_ONCE)
        return pa.concat_arrays([build(list(map(decode, events[start : start + _ROWS_AT_ONCE]))) for start in starts])

    refusals = (msgspec.DecodeError, pa.ArrowInvalid, MalformedError, RecursionError, UnicodeError, OverflowError)
    return bisecting(whole, refusals=refusals)


def _spec(kind: pa.DataType) -> Any:
    """The Python type that msgspec decodes into."""
    return _required(kind) | None


def _required(kind: pa.DataType) -> Any:
    t = pa.types
    if t.is_integer(kind):
        low, high = integer_bounds(kind)
        # msgspec keeps bounds in 64 bits; pyarrow checks the rest.
        return Annotated[int, msgspec.Meta(ge=low, le=high)] if high < 1 << 63 else int
    if t.is_list(kind):
        return list[_spec(kind.value_type)]  # type: ignore[misc]
    if t.is_map(kind):
        return dict[str, _spec(kind.item_type)]  # type: ignore[misc]
    if t.is_struct(kind):
        return _struct(kind)
    for fits, python in _SCALARS:
        if fits(kind):
            return python
    raise _Unfit


_SCALARS: Final[list[tuple[Callable[[pa.DataType], bool], Any]]] = [
    (pa.types.is_boolean, bool),
    (pa.types.is_floating, float),
    (pa.types.is_string, str),
    (pa.types.is_binary, bytes),
    (pa.types.is_date, str),
    (pa.types.is_timestamp, str | int),
    (pa.types.is_decimal, Decimal),
]


def _struct(kind: pa.DataType) -> Any:
    names = [entry.name for entry in kind]
    if len(set(names)) < len(names) or any(_UNSPEAKABLE & set(name) for name in names):
        raise _Unfit
    fields = [(f"f{index}", _spec(entry.type), None) for index, entry in enumerate(kind)]
    rename = {f"f{index}": name for index, name in enumerate(names)}
    # They hold no cycles, and a hundred thousand of them would keep the collector busy.
    return msgspec.defstruct("Event", fields, rename=rename, gc=False)


def _builder(kind: pa.DataType) -> Build:
    for fits, make in _BUILDERS:
        if fits(kind):
            return make(kind)
    return lambda values: pa.array(values, kind)


def _build_struct(kind: pa.DataType) -> Build:
    fields = list(kind)
    parts = [(attrgetter(f"f{index}"), _builder(entry.type)) for index, entry in enumerate(fields)]

    def build(values: Sequence[Any]) -> pa.Array:
        if not fields:
            return pa.array([None if value is None else {} for value in values], kind)
        present = np.array([value is not None for value in values], np.bool_)
        if not present.all():
            return expand(build([value for value in values if value is not None]), present)
        return pa.StructArray.from_arrays([make(list(map(get, values))) for get, make in parts], fields=fields)

    return build


def _build_list(kind: pa.DataType) -> Build:
    make = _builder(kind.value_type)

    def build(values: Sequence[Any]) -> pa.Array:
        lengths = np.array([0 if value is None else len(value) for value in values], np.int64)
        items = make(list(itertools.chain.from_iterable(value for value in values if value)))
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(bounds_of(lengths), pa.int32()), items, type=kind, mask=mask)

    return build


def _build_map(kind: pa.DataType) -> Build:
    make = _builder(kind.item_type)

    def build(values: Sequence[Any]) -> pa.Array:
        lengths = np.array([0 if value is None else len(value) for value in values], np.int64)
        there = [value for value in values if value]
        keys = pa.array(list(itertools.chain.from_iterable(there)), pa.string())
        inner = make([item for value in there for item in value.values()])
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.MapArray.from_arrays(pa.array(bounds_of(lengths), pa.int32()), keys, inner, type=kind, mask=mask)

    return build


def _build_times(kind: pa.DataType) -> Build:
    def build(values: Sequence[Any]) -> pa.Array:
        if not any(isinstance(value, int) for value in values):
            return parse_times(pa.array(values, pa.string()), kind)
        if any(isinstance(value, str) for value in values):
            raise MalformedError("text and numbers in one column: by rows")
        return pa.array([None if value is None else millis(value) for value in values], kind)

    return build


def _build_decimals(kind: pa.DataType) -> Build:
    def some(values: Sequence[Any]) -> pa.Array:
        return pa.array([None if value is None else fitted_decimal(value, kind) for value in values], kind)

    def build(values: Sequence[Any]) -> pa.Array:
        # A Decimal takes a hundred bytes: of a long list, only a piece is there twice.
        starts = range(0, max(len(values), 1), _ROWS_AT_ONCE)
        return pa.concat_arrays([some(values[start : start + _ROWS_AT_ONCE]) for start in starts])

    return build


_BUILDERS: Final[list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Build]]]] = [
    (pa.types.is_struct, _build_struct),
    (pa.types.is_list, _build_list),
    (pa.types.is_map, _build_map),
    (pa.types.is_date, _build_times),
    (pa.types.is_timestamp, _build_times),
    (pa.types.is_decimal, _build_decimals),
]
