"""Storage form of columns: the one Arrow type from which each Avro type is written, and the conversion to it.

Dates, times and timestamps are numbers (microseconds). Texts and bytes are ``string`` and ``binary``. Decimals have the
schema's precision and scale. Structs have the schema's fields in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro.rows import default_array
from pravega_serde.avro.schema import (
    MISSING,
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    branches_of,
    kind_of,
)
from pravega_serde.avro.values import PRIMITIVE_TYPES, UUID_PATTERN, is_decimal, is_long_decimal, list_type
from pravega_serde.columnar import Lower, at_path, days_of, is_text, time_of_day, to_micros
from pravega_serde.columnar.lowering import (
    Absent,
    dictionary_lowering,
    itself,
    list_lowering,
    map_lowering,
    null_lowering,
    struct_lowering,
)
from pravega_serde.columnar.types import fits_bits, is_any_list, is_family, misfit, stored
from pravega_serde.errors import SchemaError, SerializationError


def storage_type(schema: Type) -> pa.DataType:
    """Return the Arrow type from which values of a schema are written."""
    return _STORAGE[type(schema)](schema)


def _leaf_storage(schema: Primitive | Fixed) -> pa.DataType:
    if schema.logical is not None and is_decimal(schema.logical):
        return pa.decimal128(schema.logical.precision, schema.logical.scale)
    if is_long_decimal(schema.logical):
        return pa.string()
    return pa.binary() if isinstance(schema, Fixed) else PRIMITIVE_TYPES[schema.name]


def _union_storage(schema: Union) -> pa.DataType:
    others = branches_of(schema)
    if len(others) < 2:
        return storage_type(others[0]) if others else pa.null()
    return pa.struct([pa.field(f"member{index}", storage_type(other)) for index, other in enumerate(others)])


_STORAGE: Final[Mapping[type, Callable[[Any], pa.DataType]]] = {
    Array: lambda schema: list_type(storage_type(schema.items)),
    Enum: lambda schema: pa.string(),
    Fixed: _leaf_storage,
    Map: lambda schema: pa.map_(pa.string(), storage_type(schema.values)),
    Primitive: _leaf_storage,
    Record: lambda schema: pa.struct([pa.field(entry.name, storage_type(entry.type)) for entry in schema.fields]),
    Union: _union_storage,
}


def lowering(schema: Type, kind: pa.DataType, path: str = "$") -> Lower:
    """Return the conversion of columns of a type. Raises :class:`SchemaError` if the type does not fit."""
    if is_family(kind, "dictionary"):
        return dictionary_lowering(lowering(schema, kind.value_type, path))
    if isinstance(schema, Union):
        return _union(schema, kind, path)
    if is_family(kind, "null"):
        return null_lowering(storage_type(schema))
    lower = _BUILDERS[type(schema)](schema, kind, path)
    return at_path(lower, path) if isinstance(schema, Primitive | Fixed | Enum) and lower is not itself else lower


def _misfit(schema: Type, kind: pa.DataType, path: str, advice: str = "cast the column") -> SchemaError:
    logical = f" ({schema.logical.name})" if isinstance(schema, Primitive | Fixed) and schema.logical else ""
    return misfit(kind, f"Avro's {kind_of(schema)}{logical}", path, advice)


def _leaf(schema: Primitive | Fixed, kind: pa.DataType, path: str) -> Lower:
    target = storage_type(schema)
    logical = schema.logical.name if schema.logical else ""
    special = _SPECIAL.get(logical)
    if special is not None and isinstance(schema, Primitive) and (lower := special(kind)) is not None:
        return lower
    if is_family(target, "decimal"):
        if not is_family(kind, "decimal") or kind.precision - kind.scale > 38:
            raise _misfit(schema, kind, path, "cast it to decimal")
        return lambda column: _exactly(column, target)
    if is_long_decimal(schema.logical):
        if not is_family(kind, "decimal", "text"):
            raise _misfit(schema, kind, path, "; cast it to string")
        return itself if kind == target else lambda column: column.cast(target)
    if not _TAKES[schema.name if isinstance(schema, Primitive) else "bytes"](kind):
        raise _misfit(schema, kind, path, _HINTS.get(logical, "cast the column"))
    return itself if kind == target else lambda column: column.cast(target)


_HINTS: Final = {
    "timestamp-millis": "a timestamp column needs a time zone",
    "timestamp-micros": "a timestamp column needs a time zone",
    "local-timestamp-millis": "a timestamp column must have no time zone",
    "local-timestamp-micros": "a timestamp column must have no time zone",
}


def _exactly(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert decimals to the schema's scale.

    If some do not fit, the column stays unchanged, and the plain path names them.
    """
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        return column


_TAKES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "null": lambda kind: is_family(kind, "null"),
    "boolean": lambda kind: is_family(kind, "boolean"),
    "int": lambda kind: fits_bits(kind, 32),
    "long": lambda kind: fits_bits(kind, 64),
    "float": lambda kind: kind in (pa.float16(), pa.float32()),
    "double": lambda kind: is_family(kind, "floating") or fits_bits(kind, 33),
    "bytes": lambda kind: is_family(kind, "binary", "null"),
    "string": is_text,
}


def _timestamp(kind: pa.DataType, *, local: bool) -> Lower | None:
    if is_family(kind, "timestamp") and (kind.tz is None) == local:
        return lambda column: to_micros(column, kind.unit, noun="timestamp")
    return None


def _timestamp_millis(kind: pa.DataType, *, local: bool) -> Lower | None:
    if fits_bits(kind, 64):
        # Numbers are written unchanged: milliseconds.
        return lambda column: to_micros(column, "ms", noun="timestamp")
    return _timestamp(kind, local=local)


def _date(kind: pa.DataType) -> Lower | None:
    return (lambda column: days_of(column).cast(pa.int32())) if is_family(kind, "date") else None


def _time(kind: pa.DataType, unit: str, target: pa.DataType) -> Lower | None:
    if is_family(kind, "time"):
        return lambda column: time_of_day(column, unit).cast(target)
    if fits_bits(kind, target.bit_width):
        # Numbers are written unchanged. A number that is not a time of day cannot be read.
        as_time = pa.time32(unit) if target == pa.int32() else pa.time64(unit)
        return lambda column: time_of_day(column.cast(target).cast(as_time), unit).cast(target)
    return None


def _uuid(kind: pa.DataType) -> Lower | None:
    if not is_text(kind):
        return None

    def lower(column: pa.Array) -> pa.Array:
        text = column.cast(pa.string())
        if not pc.all(pc.match_substring_regex(text, UUID_PATTERN), min_count=0).as_py():
            raise SerializationError("invalid UUID")
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
        raise _misfit(schema, kind, path, "it requires strings")
    return lambda column: column.cast(pa.string())


def _array(schema: Array, kind: pa.DataType, path: str) -> Lower:
    if not is_any_list(kind):
        raise _misfit(schema, kind, path)
    return list_lowering(lowering(schema.items, kind.value_type, f"{path}[]"), storage_type(schema))


def _map(schema: Map, kind: pa.DataType, path: str) -> Lower:
    if not is_family(kind, "entries") or not is_text(stored(kind.key_type)):
        raise _misfit(schema, kind, path, "it requires maps with string keys")
    item = lowering(schema.values, kind.item_type, f"{path}{{}}")
    return map_lowering(lambda keys: keys.cast(pa.string()), item, storage_type(schema))


def _record(schema: Record, kind: pa.DataType, path: str) -> Lower:
    if not is_family(kind, "fields"):
        raise _misfit(schema, kind, path, f"record {schema.name} requires a struct, or a record batch")
    fields = schema.fields

    def absent(index: int, path: str) -> Absent:
        if fields[index].default is MISSING:
            raise SchemaError(f"the field {path} has no column and no default")
        value = default_array(fields[index], storage_type(fields[index].type))
        return lambda count: value.take(pa.array(np.zeros(count, np.int64)))

    return struct_lowering(
        kind,
        [entry.name for entry in fields],
        lower=lambda index, inner, path: lowering(fields[index].type, inner, path),
        absent=absent,
        path=path,
        owner=f"record {schema.name}",
    )


def _union(schema: Union, kind: pa.DataType, path: str) -> Lower:
    others = branches_of(schema)
    return (
        lowering(others[0] if others else Primitive("null"), kind, path)
        if len(others) < 2
        else _members(schema, others, kind, path)
    )


def _members(schema: Union, others: list[Type], kind: pa.DataType, path: str) -> Lower:
    """Convert a struct of members, the form of such unions. A missing member means that it never occurs."""
    names = [f"member{index}" for index in range(len(others))]
    if not is_family(kind, "fields") or not {entry.name for entry in kind} <= set(names):
        raise _misfit(schema, kind, path, f"a union requires a struct of {', '.join(names)}")
    return struct_lowering(
        kind,
        names,
        lower=lambda index, inner, path: lowering(others[index], inner, path),
        absent=lambda index, _: partial(pa.nulls, type=storage_type(others[index])),
        path=path,
        owner="the union",
    )


_BUILDERS: Final[Mapping[type, Callable[[Any, pa.DataType, str], Lower]]] = {
    Array: _array,
    Enum: _enum,
    Fixed: _leaf,
    Map: _map,
    Primitive: _leaf,
    Record: _record,
}
