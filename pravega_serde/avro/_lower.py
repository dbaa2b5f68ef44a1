"""Bringing a column into the one form that is written: storage arrays.

Columns come in many Arrow types that mean the same. Storage has one for each Avro type: numbers for dates, times and
timestamps (microseconds), ``string`` and ``binary``, decimals of the schema's precision and scale, structs with the
schema's fields in their order. Which types fit is decided here, before any data is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro._model import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    kind_of,
)
from pravega_serde.avro._storage import members_of, storage_type, storage_value
from pravega_serde.avro._values import UUID_PATTERN
from pravega_serde.columnar import (
    Lower,
    at_path,
    days_of,
    is_text,
    list_items,
    list_offsets,
    map_entries,
    time_of_day,
    to_micros,
)
from pravega_serde.columnar.arrays import holds_bytes
from pravega_serde.errors import SchemaError, SerializationError

__all__ = ["lowering"]


def lowering(schema: Type, kind: pa.DataType, path: str = "$") -> Lower:
    """What brings columns of a type into storage form; :class:`SchemaError` if the type does not fit."""
    if pa.types.is_dictionary(kind):
        inner = lowering(schema, kind.value_type, path)
        return lambda column: inner(column.dictionary_decode())
    if isinstance(schema, Union) and len(members_of(schema)) > 1:
        return _members(schema, kind, path)
    if isinstance(schema, Union):
        others = members_of(schema)
        return lowering(others[0] if others else Primitive("null"), kind, path)
    if pa.types.is_null(kind):
        # Nothing but nulls: whether they may stand here is seen when they are written.
        target = storage_type(schema)
        return lambda column: pa.nulls(len(column), target)
    lower = _BUILDERS[type(schema)](schema, kind, path)
    return at_path(lower, path) if isinstance(schema, Primitive | Fixed | Enum) and lower is not _itself else lower


def _misfit(schema: Type, kind: pa.DataType, path: str, hint: str = "") -> SchemaError:
    logical = f" ({schema.logical.name})" if isinstance(schema, Primitive | Fixed) and schema.logical else ""
    return SchemaError(f"a column of type {kind} does not fit Avro's {kind_of(schema)}{logical} at {path}{hint}")


def _leaf(schema: Primitive | Fixed, kind: pa.DataType, path: str) -> Lower:
    target = storage_type(schema)
    logical = schema.logical.name if schema.logical else ""
    special = _SPECIAL.get(logical)
    if special is not None and isinstance(schema, Primitive) and (lower := special(kind)) is not None:
        return lower
    if pa.types.is_decimal(target):
        if not pa.types.is_decimal(kind) or kind.precision - kind.scale > 38:
            raise _misfit(schema, kind, path, "; cast it to decimal")
        return lambda column: _exactly(column, target)
    if not _TAKES[schema.name if isinstance(schema, Primitive) else "bytes"](kind):
        raise _misfit(schema, kind, path, _HINTS.get(logical, "; cast the column"))
    return _itself if kind == target else lambda column: column.cast(target)


_HINTS: Final = {
    "timestamp-millis": "; a timestamp column needs a time zone",
    "timestamp-micros": "; a timestamp column needs a time zone",
    "local-timestamp-millis": "; a timestamp column must have no time zone",
    "local-timestamp-micros": "; a timestamp column must have no time zone",
}


def _itself(column: pa.Array) -> pa.Array:
    return column


def _exactly(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Decimals in the schema's scale; left as they are if some do not fit, for the plain path to name them."""
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        return column


def _is_small_int(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) and kind not in (pa.int64(), pa.uint64(), pa.uint32())


def _is_bytes(kind: pa.DataType) -> bool:
    return holds_bytes(kind) and not is_text(kind)


def _is_long(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


_TAKES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "null": pa.types.is_null,
    "boolean": pa.types.is_boolean,
    "int": _is_small_int,
    "long": _is_long,
    "float": lambda kind: kind in (pa.float16(), pa.float32()),
    "double": lambda kind: pa.types.is_floating(kind) or _is_small_int(kind) or kind == pa.uint32(),
    "bytes": _is_bytes,
    "string": is_text,
}


def _timestamp(kind: pa.DataType, *, local: bool) -> Lower | None:
    if pa.types.is_timestamp(kind) and (kind.tz is None) == local:
        return lambda column: to_micros(column, kind.unit, what="timestamp")
    return None


def _timestamp_millis(kind: pa.DataType, *, local: bool) -> Lower | None:
    if _is_long(kind):
        # Numbers are what is written: milliseconds.
        return lambda column: to_micros(column, "ms", what="timestamp")
    return _timestamp(kind, local=local)


def _date(kind: pa.DataType) -> Lower | None:
    return (lambda column: days_of(column).cast(pa.int32())) if pa.types.is_date(kind) else None


def _time(kind: pa.DataType, unit: str, target: pa.DataType) -> Lower | None:
    if pa.types.is_time(kind):
        return lambda column: time_of_day(column, unit).cast(target)
    if _is_small_int(kind) or (_is_long(kind) and target == pa.int64()):
        # Numbers are what is written; those that are no time of a day cannot be read.
        as_time = pa.time32(unit) if target == pa.int32() else pa.time64(unit)
        return lambda column: time_of_day(column.cast(target).cast(as_time), unit).cast(target)
    return None


def _uuid(kind: pa.DataType) -> Lower | None:
    if not is_text(kind):
        return None

    def lower(column: pa.Array) -> pa.Array:
        text = column.cast(pa.string())
        if not pc.all(pc.match_substring_regex(text, UUID_PATTERN), min_count=0).as_py():
            raise SerializationError("a text that is not a UUID")
        return text

    return lower


_SPECIAL: Final[Mapping[str, Callable[[pa.DataType], Lower | None]]] = {
    "date": _date,
    "local-timestamp-micros": lambda kind: _timestamp(kind, local=True),
    "local-timestamp-millis": lambda kind: _timestamp_millis(kind, local=True),
    "time-micros": lambda kind: _time(kind, "us", pa.int64()),
    "time-millis": lambda kind: _time(kind, "ms", pa.int32()),
    "timestamp-micros": lambda kind: _timestamp(kind, local=False),
    "timestamp-millis": lambda kind: _timestamp_millis(kind, local=False),
    "uuid": _uuid,
}


def _enum(schema: Enum, kind: pa.DataType, path: str) -> Lower:
    if not is_text(kind):
        raise _misfit(schema, kind, path, "; it takes strings")
    return lambda column: column.cast(pa.string())


def _array(schema: Array, kind: pa.DataType, path: str) -> Lower:
    t = pa.types
    if not (t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)):
        raise _misfit(schema, kind, path)
    inner = lowering(schema.items, kind.value_type, f"{path}[]")
    target = storage_type(schema)

    def lower(column: pa.Array) -> pa.Array:
        lengths, items = list_items(column)
        return pa.ListArray.from_arrays(list_offsets(lengths), inner(items), type=target, mask=column.is_null())

    return lower


def _map(schema: Map, kind: pa.DataType, path: str) -> Lower:
    if not pa.types.is_map(kind) or not is_text(kind.key_type):
        raise _misfit(schema, kind, path, "; it takes maps with string keys")
    inner = lowering(schema.values, kind.item_type, f"{path}{{}}")
    target = storage_type(schema)

    def lower(column: pa.Array) -> pa.Array:
        lengths, keys, values = map_entries(column)
        text = keys.cast(pa.string())
        return pa.MapArray.from_arrays(list_offsets(lengths), text, inner(values), type=target, mask=column.is_null())

    return lower


def _record(schema: Record, kind: pa.DataType, path: str) -> Lower:
    if not pa.types.is_struct(kind):
        raise _misfit(schema, kind, path, f"; record {schema.name} takes a struct, or a record batch")
    columns = [entry.name for entry in kind]
    known = {entry.name for entry in schema.fields}
    for name in columns:
        if name not in known or columns.count(name) > 1:
            why = "twice" if name in known else f"and record {schema.name} has no such field; drop it"
            raise SchemaError(f"the column {path}.{name} is there {why}")
    parts = [_field(entry, kind, columns, path) for entry in schema.fields]
    fields = list(storage_type(schema))

    def lower(column: pa.Array) -> pa.Array:
        flat = column.flatten()
        inside = [part(column, flat) for part in parts]
        if not inside:
            return pa.array([{} if there else None for there in column.is_valid().to_pylist()], pa.struct([]))
        # A decimal that did not fit keeps its own type.
        kept = [pa.field(entry.name, values.type) for entry, values in zip(fields, inside, strict=True)]
        return pa.StructArray.from_arrays(inside, fields=kept, mask=column.is_null())

    return lower


def _field(
    entry: Field, kind: pa.DataType, columns: list[str], path: str
) -> Callable[[pa.Array, list[pa.Array]], pa.Array]:
    if entry.name in columns:
        index = columns.index(entry.name)
        lower = lowering(entry.type, kind.field(index).type, f"{path}.{entry.name}")
        return lambda column, flat: lower(flat[index])  # noqa: ARG005
    if entry.default is MISSING:
        raise SchemaError(f"there is no column for the field {path}.{entry.name}, which has no default")
    target = storage_type(entry.type)
    value = storage_value(entry, target)
    return lambda column, flat: value.take(pa.array(np.zeros(len(column), np.int64)))  # noqa: ARG005


def _members(schema: Union, kind: pa.DataType, path: str) -> Lower:
    """A struct of members, as such unions are read; a missing member is one that never occurs."""
    others = members_of(schema)
    names = [f"member{index}" for index in range(len(others))]
    if not pa.types.is_struct(kind) or not {entry.name for entry in kind} <= set(names):
        raise _misfit(schema, kind, path, f"; a union takes a struct of {', '.join(names)}")
    lowers = {
        entry.name: lowering(others[names.index(entry.name)], entry.type, f"{path}.{entry.name}") for entry in kind
    }
    fields = list(storage_type(schema))

    def lower(column: pa.Array) -> pa.Array:
        flat = dict(zip((entry.name for entry in kind), column.flatten(), strict=True))
        inside = [
            lowers[entry.name](flat[entry.name]) if entry.name in flat else pa.nulls(len(column), entry.type)
            for entry in fields
        ]
        return pa.StructArray.from_arrays(inside, fields=fields, mask=column.is_null())

    return lower


_BUILDERS: Final[Mapping[type, Callable[[Any, pa.DataType, str], Lower]]] = {
    Array: _array,
    Enum: _enum,
    Fixed: _leaf,
    Map: _map,
    Primitive: _leaf,
    Record: _record,
}
