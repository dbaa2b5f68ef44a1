"""Storage: the one Arrow type that values of each Avro type are written from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro._arrow import list_type
from pravega_serde.avro._model import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union, kind_of
from pravega_serde.avro._plan import plan
from pravega_serde.avro._read_rows import row_reader
from pravega_serde.avro._values import is_decimal
from pravega_serde.avro._write_rows import encode_default

__all__ = ["members_of", "storage_type", "storage_value"]

_PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}


def storage_type(schema: Type) -> pa.DataType:
    """The one Arrow type that values of a schema are written from."""
    return _STORAGE[type(schema)](schema)


def _leaf_storage(schema: Primitive | Fixed) -> pa.DataType:
    if schema.logical is not None and is_decimal(schema.logical):
        return pa.decimal128(schema.logical.precision, schema.logical.scale)
    return pa.binary() if isinstance(schema, Fixed) else _PRIMITIVES[schema.name]


def _union_storage(schema: Union) -> pa.DataType:
    others = members_of(schema)
    if len(others) < 2:
        return storage_type(others[0]) if others else pa.null()
    return pa.struct([pa.field(f"member{index}", storage_type(other)) for index, other in enumerate(others)])


_STORAGE: Final[Mapping[type, Callable[[Any], pa.DataType]]] = {
    Array: lambda schema: list_type(storage_type(schema.items)),
    Enum: lambda schema: pa.string(),  # noqa: ARG005
    Fixed: _leaf_storage,
    Map: lambda schema: pa.map_(pa.string(), storage_type(schema.values)),
    Primitive: _leaf_storage,
    Record: lambda schema: pa.struct([pa.field(entry.name, storage_type(entry.type)) for entry in schema.fields]),
    Union: _union_storage,
}


def members_of(schema: Union) -> list[Type]:
    """A union's branches other than null."""
    return [branch for branch in schema.branches if kind_of(branch) != "null"]


def storage_value(entry: Field, target: pa.DataType) -> pa.Array:
    """A field's default in storage form, as an array of one."""
    decoded = row_reader(plan(entry.type), arrow=True)(encode_default(entry))
    return pa.array([decoded], target)
