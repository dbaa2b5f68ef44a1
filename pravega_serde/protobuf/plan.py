"""Plans: message types compiled once from their descriptors for readers and writers, with their Arrow types.

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

Spark's ``from_protobuf`` uses the same types with ``upcast.unsigned.ints`` and ``unwrap.primitive.wrapper.types``,
except for JSON. It spells enum numbers without a name as protobuf-java does (``UNKNOWN_ENUM_VALUE_Level_7``). A field
with presence (optional, member of a oneof, message, any of proto2) is null if it is absent. Other fields have their
default value. Any is a struct of ``type_url`` and ``value``. Fields are in the order of their declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from pravega_serde.columnar.limits import ColumnCount
from pravega_serde.errors import SchemaError
from pravega_serde.protobuf.declared import declared_in

#: Cardinality of a field. ``implicit``: its default value is not written (proto3 without ``optional``).
Label = Literal["implicit", "explicit", "required", "repeated", "map"]

#: Form of a message: its fields, or one of Google's types with its own natural value.
Shape = Literal["message", "timestamp", "duration", "wrapper", "json"]

_JSON: Final[Mapping[str, list[str]]] = {
    "google.protobuf.Struct": ["fields"],
    "google.protobuf.Value": ["null_value", "number_value", "string_value", "bool_value", "struct_value", "list_value"],
    "google.protobuf.ListValue": ["values"],
}

_SHAPES: Final[Mapping[str, Shape]] = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    **dict.fromkeys(_JSON, "json"),
    **{
        f"google.protobuf.{name}Value": "wrapper"
        for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
    },
}

#: Numbers, as ``.proto`` files spell them.
NUMBER_KINDS: Final = (
    *("bool", "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64"),
)

_KINDS: Final[Mapping[int, str]] = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in (*NUMBER_KINDS, "bytes", "enum", "group", "message", "string")
}


@dataclass(frozen=True, slots=True, eq=False)
class EnumPlan:
    """Plan of an enum. If a number has several names, the first one is read."""

    name: str
    names: Mapping[int, str]
    numbers: Mapping[str, int]
    closed: bool
    """Whether other numbers than these are unknown fields, not values (proto2)."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldPlan:
    """Plan of one field."""

    name: str
    number: int
    kind: str
    """Its type as ``.proto`` files spell it; "enum", "message" or "group" for the named ones."""
    label: Label
    packed: bool
    """Whether it is written packed; both forms can be read."""
    oneof: str | None
    message: MessagePlan | None
    """Its message; of a map, the message of its entries."""
    enum: EnumPlan | None
    declared: pa.DataType | None = None
    """Arrow type of the column from which the field was derived, if Protobuf's own is another."""


@dataclass(slots=True, eq=False)
class MessagePlan:
    """Plan of one message type. A recursive one holds itself, so it is filled after its creation."""

    name: str
    shape: Shape
    unknown_matter: bool
    """Whether unknown fields do: they may be extensions, and Google's parser puts an entry of a map with any aside."""
    fields: tuple[FieldPlan, ...] = ()
    """In the order of their numbers, which is the order of writing."""
    by_number: dict[int, FieldPlan] = field(default_factory=dict)
    order: tuple[int, ...] = ()
    """Indices of ``fields`` in the order of their declaration, which is the order of columns."""


def plan(descriptor: Descriptor) -> MessagePlan:
    """Return the plan of a message type, and of all types in it."""
    return _Planner().message(descriptor)


def text_fault(message: MessagePlan, path: Sequence[str]) -> str | None:
    """Return the reason why the field at a path cannot hold every text, or all bytes; None if it can."""
    inside = next((each for each in message.fields if each.name == path[0]), None)
    if inside is None or message.shape != "message":
        return "does not exist" if message.shape == "message" else f"is in a {message.name}"
    if inside.label == "map" and inside.message is not None:
        inside = inside.message.by_number[2]
    if inside.message is None:
        return None if inside.kind in ("string", "bytes") else f"is of the Protobuf type {inside.kind}"
    return text_fault(inside.message, path[1:]) if len(path) > 1 else f"is a {inside.message.name}"


def reachable(plan: MessagePlan) -> list[MessagePlan]:
    """Return the plans of a message type and of all types in it."""
    found: dict[str, MessagePlan] = {}
    left = [plan]
    while left:
        one = left.pop()
        if one.name not in found:
            found[one.name] = one
            left += [f.message for f in one.fields if f.message is not None]
    return list(found.values())


class _Planner:
    def __init__(self) -> None:
        self._done: dict[str, MessagePlan] = {}

    def message(self, descriptor: Descriptor) -> MessagePlan:
        name = descriptor.full_name
        if name not in self._done:
            matter = descriptor.is_extendable or descriptor.GetOptions().map_entry
            made = MessagePlan(name, _SHAPES.get(name, "message"), matter)
            self._done[name] = made
            declared = list(descriptor.fields)
            made.fields = tuple(self._field(f) for f in sorted(declared, key=lambda f: f.number))
            made.by_number = {f.number: f for f in made.fields}
            numbers = [f.number for f in made.fields]
            made.order = tuple(numbers.index(f.number) for f in declared)
            if not _is_googles(made):
                made.shape = "message"
        return self._done[name]

    def _field(self, given: FieldDescriptor) -> FieldPlan:
        oneof = given.containing_oneof
        return FieldPlan(
            name=given.name,
            number=given.number,
            kind=_KINDS[given.type],
            label=_label(given),
            packed=bool(given.is_repeated and given.is_packed),
            oneof=oneof.name if oneof is not None and len(oneof.fields) > 1 else None,
            message=None if given.message_type is None else self.message(given.message_type),
            enum=None if given.enum_type is None else _enum(given.enum_type),
            declared=declared_in(given),
        )


def _is_googles(made: MessagePlan) -> bool:
    """True if a message with one of Google's names has Google's fields; a descriptor set may define others."""
    fields = [(f.name, f.kind, f.label) for f in made.fields]
    if made.shape in ("timestamp", "duration"):
        return fields == [("seconds", "int64", "implicit"), ("nanos", "int32", "implicit")]
    if made.shape == "wrapper":
        return [(name, label) for name, _, label in fields] == [("value", "implicit")]
    return made.shape == "message" or [f.name for f in made.fields] == _JSON[made.name]


def _label(given: FieldDescriptor) -> Label:
    if given.is_repeated:
        entry = given.message_type is not None and given.message_type.GetOptions().map_entry
        return "map" if entry else "repeated"
    if given.is_required:
        return "required"
    assert given.containing_type is not None
    if given.containing_type.GetOptions().map_entry and given.message_type is None:
        # Both parts of an entry always exist, written or not.
        return "explicit" if given.enum_type is not None and given.enum_type.is_closed else "implicit"
    return "explicit" if given.has_presence else "implicit"


def _enum(descriptor: EnumDescriptor) -> EnumPlan:
    numbers = {value.name: value.number for value in descriptor.values}
    names: dict[int, str] = {}
    for name, number in numbers.items():
        names.setdefault(number, name)
    return EnumPlan(descriptor.full_name, names, numbers, descriptor.is_closed)


#: Arrow type of unsigned numbers of 64 bits.
UINT64: Final = pa.decimal128(20, 0)

#: Arrow types of the kinds of fields.
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

_SHAPE_TYPES: Final[Mapping[str, pa.DataType]] = {
    "timestamp": pa.timestamp("us", "UTC"),
    "duration": pa.duration("us"),
    "json": pa.string(),
}


def arrow_type(message: MessagePlan) -> pa.DataType:
    """Return the Arrow type of a message, with the declared types of its fields.

    Raises :class:`SchemaError` if the message contains itself, or unfolds into too many columns.
    """
    return _Types(declared=True).message(message)


def wire_type(message: MessagePlan) -> pa.DataType:
    """Return the Arrow type of a message with Protobuf's own types. Raises as :func:`arrow_type`."""
    return _Types(declared=False).message(message)


class _Types:
    def __init__(self, *, declared: bool) -> None:
        self._declared = declared
        self._columns = ColumnCount()
        self._inside: list[str] = []

    def message(self, plan: MessagePlan) -> pa.DataType:
        if plan.shape in _SHAPE_TYPES:
            return _SHAPE_TYPES[plan.shape]
        if plan.shape == "wrapper":
            return LEAVES[plan.fields[0].kind]
        if plan.name in self._inside:
            raise SchemaError(f"the message {plan.name} contains itself, which Arrow does not support; read it by rows")
        self._inside.append(plan.name)
        fields = [plan.fields[index] for index in plan.order]
        kind = pa.struct([pa.field(f.name, self._field(f)) for f in fields])
        self._inside.pop()
        return kind

    def _field(self, f: FieldPlan) -> pa.DataType:
        self._columns.add()
        if f.label == "map":
            assert f.message is not None
            key, value = f.message.fields
            return pa.map_(LEAVES[key.kind], self._single(value))
        return pa.list_(pa.field("element", self._single(f))) if f.label == "repeated" else self._single(f)

    def _single(self, f: FieldPlan) -> pa.DataType:
        if self._declared and f.declared is not None:
            return f.declared
        return LEAVES[f.kind] if f.message is None else self.message(f.message)
