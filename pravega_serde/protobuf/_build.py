"""From the parts of a field's values to an Arrow array. Which values are bad is told, not raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import bounds_of, cut
from pravega_serde.columnar.arrays import Int64s, cut_text
from pravega_serde.protobuf._cursor import Bools, Cursor
from pravega_serde.protobuf._gather import Parts
from pravega_serde.protobuf._numbers import NUMBERS
from pravega_serde.protobuf._plan import EnumPlan

__all__ = ["Build", "by_key", "leaf_builder", "list_of", "map_of", "nulled", "shaped"]

#: Values without nulls, and which of them are bad (None: none). The cursor knows the bytes.
Build = Callable[[Parts, Cursor], tuple[pa.Array, Bools | None]]


def leaf_builder(kind: str, enum: EnumPlan | None) -> Build:
    """The builder of values that are no messages."""
    if enum is not None:
        return _Enum(enum)
    if kind == "string":
        return _strings
    if kind == "bytes":
        return lambda parts, cursor: (cut(cursor.data, *parts), None)
    to_arrow = NUMBERS[kind].to_arrow
    return lambda parts, cursor: (to_arrow(parts[0]), None)  # noqa: ARG005


def _strings(parts: Parts, cursor: Cursor) -> tuple[pa.Array, Bools | None]:
    return cut_text(cursor.data, *parts)


class _Enum:
    """Names of numbers. A number without one is its own text, or is bad, if the enum is closed."""

    __slots__ = ("_closed", "_names", "_numbers")

    def __init__(self, enum: EnumPlan) -> None:
        self._numbers = np.array(sorted(enum.names), np.int32)
        self._names = pa.array([enum.names[number] for number in sorted(enum.names)], pa.string())
        self._closed = enum.closed

    def __call__(self, parts: Parts, cursor: Cursor) -> tuple[pa.Array, Bools | None]:  # noqa: ARG002
        numbers = parts[0]
        index = np.searchsorted(self._numbers, numbers)
        index[index == len(self._numbers)] = 0
        unknown = self._numbers[index] != numbers
        if not unknown.any():
            return self._names.take(pa.array(index)), None
        if self._closed:
            return self._names.take(pa.array(index)), unknown
        others, places = np.unique(numbers[unknown], return_inverse=True)
        index[unknown] = len(self._numbers) + places
        names = pa.concat_arrays([self._names, pa.array(map(str, others.tolist()), pa.string())])
        return names.take(pa.array(index)), None


def nulled(values: pa.Array, there: Bools) -> pa.Array:
    """The values where they are there, null elsewhere."""
    return values if there.all() else pc.if_else(pa.array(there), values, pa.scalar(None, values.type))


def list_of(owners: Int64s, items: pa.Array, count: int, kind: pa.DataType) -> pa.Array:
    """Lists of all rows from their items; ``owners`` are the items' rows, ascending."""
    return pa.ListArray.from_arrays(_offsets(owners, count), items, type=kind)


def _offsets(owners: Int64s, count: int) -> pa.Array:
    return pa.array(bounds_of(np.bincount(owners, minlength=count)), pa.int32())


def map_of(owners: Int64s, keys: pa.Array, values: pa.Array, count: int, kind: pa.DataType) -> pa.Array:
    """Maps of all rows from their entries, in the order of their keys."""
    owners, keys, values = by_key(owners, keys, values)
    return pa.MapArray.from_arrays(_offsets(owners, count), keys, values, type=kind)


def by_key(owners: Int64s, keys: pa.Array, values: pa.Array) -> tuple[Int64s, pa.Array, pa.Array]:
    """Entries in the order of each row's keys. Of entries with the same key the last one counts."""
    if len(keys) < 2 or _ascending(owners, keys):
        return owners, keys, values
    entries = pa.table({"row": owners, "key": keys, "place": np.arange(len(keys))})
    order = entries.sort_by([("row", "ascending"), ("key", "ascending"), ("place", "ascending")])
    row, key, place = (column.combine_chunks() for column in order.columns)
    same = pc.and_(pc.equal(row[:-1], row[1:]), pc.equal(key[:-1], key[1:]))
    last = np.append(~same.to_numpy(zero_copy_only=False), True)
    chosen = place.filter(pa.array(last))
    return owners[chosen.to_numpy()], keys.take(chosen), values.take(chosen)


def _ascending(owners: Int64s, keys: pa.Array) -> bool:
    """Whether the keys of each row are, each above the one before."""
    if pa.types.is_boolean(keys.type):
        keys = keys.cast(pa.int8())
    above = pc.less(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    return bool((above | (owners[:-1] < owners[1:])).all())


_MICROS: Final = 1_000_000
#: Seconds whose microseconds surely fit 64 bits.
_MOST_SECONDS: Final = (1 << 63) // _MICROS - 3000


def _instants(cursor: Cursor, columns: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Timestamps and durations: seconds and nanoseconds as microseconds, the rest dropped, as Java divides."""
    seconds, nanos = (column.to_numpy() for column in columns)
    cursor.fail((seconds > _MOST_SECONDS) | (seconds < -_MOST_SECONDS))
    micros = np.where(nanos < 0, -(-nanos.astype(np.int64) // 1000), nanos // 1000)
    seconds = np.where(cursor.bad, 0, seconds)
    return pa.array(seconds * _MICROS + micros).view(kind)


def _struct(cursor: Cursor, columns: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if not columns:
        return pa.array([{}] * len(cursor), kind)
    return pa.StructArray.from_arrays(columns, fields=list(kind))


_SHAPES: Final[Mapping[str, Callable[[Cursor, list[pa.Array], pa.DataType], pa.Array]]] = {
    "duration": _instants,
    "message": _struct,
    "timestamp": _instants,
    "wrapper": lambda cursor, columns, kind: columns[0],  # noqa: ARG005
}


def shaped(shape: str, cursor: Cursor, columns: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """A message's columns as what the message is seen as."""
    return _SHAPES[shape](cursor, columns, kind)
