"""Writing columns by pyruhvro, three times as fast as numpy, where it is installed and writes the schema.

It panics on several types (bytes, fixed, decimals, times), so it is only given what is listed here: records of types
that the tests check against the other paths. It keeps threads, which a forked child does not have: there it would wait
for them for ever, so in a child of a process that used it, it is not used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro._model import Array, Enum, Map, Primitive, Record, Type, Union
from pravega_serde.avro._storage import members_of
from pravega_serde.columnar import bounds_of, expand, floor_divide, list_items, map_entries, unless_refused

try:
    import pyruhvro
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

__all__ = ["compiled_writer"]

#: Events of a column in storage form, or None if they have to be written otherwise.
Write = Callable[[pa.Array], pa.BinaryArray | None]

_PRIMITIVES: Final = frozenset({"boolean", "int", "long", "float", "double", "string"})
_LOGICAL: Final = frozenset({"date", "timestamp-micros", "timestamp-millis"})


class _Unfit(Exception):  # noqa: N818 -- never leaves this module
    """The column holds what pyruhvro would write wrongly, because it does not look: a null, a symbol that is none."""


class _Threads:
    """Whether pyruhvro's threads, if it has any, are in this process."""

    used = False
    lost = False

    @classmethod
    def after_fork(cls) -> None:
        cls.lost = cls.used


os.register_at_fork(after_in_child=_Threads.after_fork)


def compiled_writer(schema: Type, text: str) -> Write | None:
    """The writer for a schema, whose JSON is ``text``; None if pyruhvro is missing or does not write it."""
    if not _INSTALLED or not isinstance(schema, Record) or not _is_written(schema):
        return None
    wanted = unless_refused(lambda: pyruhvro.avro_to_arrow_schema(text))
    return None if wanted is None else _Writer(schema, text, wanted)


class _Writer:
    __slots__ = ("_schema", "_text", "_wanted")

    def __init__(self, schema: Record, text: str, wanted: pa.Schema) -> None:
        self._schema, self._text, self._wanted = schema, text, wanted

    def __call__(self, stored: pa.Array) -> pa.BinaryArray | None:
        if _Threads.lost:
            return None
        try:
            shaped = _shaped(self._schema, stored, pa.struct(list(self._wanted)))
        except _Unfit:
            return None
        _Threads.used = True
        batch = pa.RecordBatch.from_arrays(shaped.flatten(), schema=self._wanted)
        chunks = unless_refused(lambda: pyruhvro.serialize_record_batch(batch, self._text, 1))
        if chunks is None:
            return None
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _leaf_of(schema: Type) -> Type:
    """What is in an optional type; the type itself of others."""
    optional = isinstance(schema, Union) and len(schema.branches) == 2 and len(members_of(schema)) == 1
    return members_of(schema)[0] if optional else schema  # type: ignore[arg-type]


def _is_written(schema: Type) -> bool:
    leaf = _leaf_of(schema)
    if isinstance(leaf, Record):
        return bool(leaf.fields) and all(_is_written(entry.type) for entry in leaf.fields)
    if isinstance(leaf, Array | Map):
        return _is_written(leaf.items if isinstance(leaf, Array) else leaf.values)
    if isinstance(leaf, Enum):
        return True
    if not isinstance(leaf, Primitive) or leaf.name not in _PRIMITIVES:
        return False
    return leaf.logical is None or leaf.logical.name in _LOGICAL


def _shaped(schema: Type, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A stored column in pyruhvro's type."""
    leaf = _leaf_of(schema)
    shape = _SHAPES[type(leaf)]
    if column.null_count and not isinstance(schema, Union):
        raise _Unfit
    if column.null_count == 0 or isinstance(leaf, Primitive | Enum):
        return shape(leaf, column, wanted)
    # What stands in the columns under a null is nobody's.
    there = column.is_valid().to_numpy(zero_copy_only=False)
    return expand(shape(leaf, column.drop_null(), wanted), there)


def _record(schema: Record, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    parts = zip(schema.fields, column.flatten(), wanted, strict=True)
    return pa.StructArray.from_arrays(
        [_shaped(entry.type, part, field.type) for entry, part, field in parts], fields=list(wanted)
    )


def _array(schema: Array, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    lengths, items = list_items(column)
    items = _shaped(schema.items, items, wanted.value_type)
    return pa.ListArray.from_arrays(pa.array(bounds_of(lengths), pa.int32()), items, type=wanted)


def _map(schema: Map, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    lengths, keys, values = map_entries(column)
    values = _shaped(schema.values, values, wanted.item_type)
    return pa.MapArray.from_arrays(pa.array(bounds_of(lengths), pa.int32()), keys, values, type=wanted)


def _enum(schema: Enum, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if not pc.all(pc.is_in(column.drop_null(), value_set=pa.array(schema.symbols, wanted)), min_count=0).as_py():
        raise _Unfit
    return column


def _primitive(schema: Primitive, column: pa.Array, wanted: pa.DataType) -> pa.Array:  # noqa: ARG001
    """Dates and timestamps as such again."""
    logical = schema.logical.name if schema.logical else ""
    if logical == "timestamp-millis":
        return floor_divide(column, 1000).view(pa.timestamp("ms"))
    return column.view(_TYPES[logical]) if logical in _TYPES else column


_SHAPES: Final[Mapping[type, Callable[[Any, pa.Array, pa.DataType], pa.Array]]] = {
    Array: _array,
    Enum: _enum,
    Map: _map,
    Primitive: _primitive,
    Record: _record,
}
_TYPES: Final = {"date": pa.date32(), "timestamp-micros": pa.timestamp("us")}
