"""The Arrow type of a message type's columns.

| Protobuf | Arrow | natural value |
|---|---|---|
| int32, sint32, sfixed32 | int32 | int |
| int64, sint64, sfixed64, uint32, fixed32 | int64 | int |
| uint64, fixed64 | decimal(20, 0) | int |
| float, double, bool, string, bytes | float32, float64, bool, string, binary | the same |
| enum | string: the value's name; a number without a name as text | str |
| message, group | struct, or null where there is none | dict |
| repeated, map | list, map; the entries of a map in the order of their keys | list, dict |
| Timestamp | timestamp[us, UTC] | datetime |
| Duration | duration[us] | timedelta |
| Int64Value and other wrappers | the wrapped type, or null | the value, or None |
| Struct, Value, ListValue | string: JSON | str |

So does Spark's ``from_protobuf`` with ``upcast.unsigned.ints`` and ``unwrap.primitive.wrapper.types``, except for JSON,
and for enum numbers without a name, which it spells as protobuf-java does (``UNKNOWN_ENUM_VALUE_Level_7``). A field
with presence (optional, member of a oneof, message, any of proto2) that is not there is null; others have their
default value. Any is a struct of ``type_url`` and ``value``. Fields stand in the order of their declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from pravega_serde.errors import SchemaError
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan

__all__ = ["LEAVES", "UINT64", "arrow_type"]

#: A small schema that names its messages often can unfold into an enormous type; so many columns are allowed.
MAX_ARROW_FIELDS: Final = 10_000

UINT64: Final = pa.decimal128(20, 0)

LEAVES: Final[Mapping[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "bytes": pa.binary(),
    "double": pa.float64(),
    "enum": pa.string(),
    "fixed32": pa.int64(),
    "fixed64": UINT64,
    "float": pa.float32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "sfixed32": pa.int32(),
    "sfixed64": pa.int64(),
    "sint32": pa.int32(),
    "sint64": pa.int64(),
    "string": pa.string(),
    "uint32": pa.int64(),
    "uint64": UINT64,
}

_SHAPES: Final[Mapping[str, pa.DataType]] = {
    "timestamp": pa.timestamp("us", "UTC"),
    "duration": pa.duration("us"),
    "json": pa.string(),
}


def arrow_type(message: MessagePlan) -> pa.DataType:
    """Arrow type of a message; :class:`SchemaError` if it contains itself, or unfolds into too many columns."""
    return _Types().message(message)


class _Types:
    def __init__(self) -> None:
        self._count = 0
        self._inside: list[str] = []

    def message(self, plan: MessagePlan) -> pa.DataType:
        if plan.shape in _SHAPES:
            return _SHAPES[plan.shape]
        if plan.shape == "wrapper":
            return LEAVES[plan.fields[0].kind]
        if plan.name in self._inside:
            raise SchemaError(f"the message {plan.name} contains itself; Arrow cannot hold that, read it by rows")
        self._inside.append(plan.name)
        fields = [plan.fields[index] for index in plan.order]
        kind = pa.struct([pa.field(f.name, self._field(f)) for f in fields])
        self._inside.pop()
        return kind

    def _field(self, f: FieldPlan) -> pa.DataType:
        self._count += 1
        if self._count > MAX_ARROW_FIELDS:
            raise SchemaError(f"the message unfolds into more than {MAX_ARROW_FIELDS} columns; read it by rows")
        if f.label == "map":
            assert f.message is not None
            key, value = f.message.fields
            return pa.map_(LEAVES[key.kind], self._single(value))
        return pa.list_(pa.field("element", self._single(f))) if f.label == "repeated" else self._single(f)

    def _single(self, f: FieldPlan) -> pa.DataType:
        return LEAVES[f.kind] if f.message is None else self.message(f.message)
