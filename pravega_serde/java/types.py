"""Arrow types of Java types, and the additions of a sample event to the declared types of fields.

A class descriptor declares a field as a ``com.example.Color`` or a ``java.util.List``. It does not show that the first
is an enum, or the elements of the second. The value in a sample does, unless it is null or empty.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pravega_serde.columnar.types import ROWS, family, is_family, row_of
from pravega_serde.errors import SchemaError
from pravega_serde.java.model import ClassDescriptor, JavaEnum, JavaObject, signature
from pravega_serde.java.values import (
    BigDecimal,
    BigInteger,
    Boolean,
    Byte,
    ByteArray,
    Character,
    Date,
    Double,
    Float,
    Integer,
    JavaArray,
    JavaList,
    JavaMap,
    JavaSet,
    Long,
    NanoDatetime,
    NanoDuration,
    NanoTime,
    Short,
    String,
    Timestamp,
)

_DEEPEST: Final = 32
"""Maximum depth of nested objects in a sample. Deeper columns are not useful."""

_SCALARS: Final[dict[type[Any], str]] = {
    str: "Ljava/lang/String;",
    String: "Ljava/lang/String;",
    bool: "Ljava/lang/Boolean;",
    Boolean: "Ljava/lang/Boolean;",
    int: "Ljava/lang/Integer;",
    Integer: "Ljava/lang/Integer;",
    Long: "Ljava/lang/Long;",
    Short: "Ljava/lang/Short;",
    Byte: "Ljava/lang/Byte;",
    BigInteger: "Ljava/math/BigInteger;",
    float: "Ljava/lang/Double;",
    Double: "Ljava/lang/Double;",
    Float: "Ljava/lang/Float;",
    Character: "Ljava/lang/Character;",
    decimal.Decimal: "Ljava/math/BigDecimal;",
    BigDecimal: "Ljava/math/BigDecimal;",
    uuid.UUID: "Ljava/util/UUID;",
    bytes: "[B",
    ByteArray: "[B",
    Date: "Ljava/util/Date;",
    Timestamp: "Ljava/sql/Timestamp;",
    dt.date: "Ljava/time/LocalDate;",
    dt.time: "Ljava/time/LocalTime;",
    NanoTime: "Ljava/time/LocalTime;",
    dt.timedelta: "Ljava/time/Duration;",
    NanoDuration: "Ljava/time/Duration;",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Properties of a value that a sample shows and its declared type does not."""

    scalar: str = ""
    """Signature of a class that is one value in Python: a box, a date, ... Empty for others."""
    descriptor: ClassDescriptor | None = None
    """Class of an object or an enum's constant."""
    fields: Mapping[str, Shape | None] = field(default_factory=dict)
    """Shapes of an object's fields, by name."""
    container: type[Any] | None = None
    """``JavaList``, ``JavaSet``, ``JavaArray``, ``JavaMap``, or ``list`` and ``dict`` of other classes."""
    container_class: str | ClassDescriptor | None = None
    """Argument of the container for its Java class."""
    element: Shape | None = None
    """Shape of a collection's elements, or a map's values."""
    key: Shape | None = None
    """Shape of a map's keys."""

    @property
    def is_enum(self) -> bool:
        """True for the constant of an enum."""
        return self.descriptor is not None and self.descriptor.is_enum


def shape_of(value: Any, depth: int = 0) -> Shape | None:
    """Return the shape of a value, or None for null and for values without a form in columns."""
    if value is None or depth > _DEEPEST:
        return None
    if isinstance(value, JavaEnum):
        return Shape(descriptor=value.descriptor)
    if isinstance(value, JavaObject):
        if not isinstance(value.descriptor, ClassDescriptor):
            return None
        return Shape(
            descriptor=value.descriptor,
            fields={name: shape_of(inner, depth + 1) for name, inner in value.fields.items()},
        )
    scalar = scalar_signature(value)
    return Shape(scalar=scalar) if scalar else _container(value, depth)


def scalar_signature(value: Any) -> str:
    """Return the signature of a class that is one value in Python, or an empty string for other values."""
    if type(value) in (dt.datetime, NanoDatetime):
        if value.tzinfo is None:
            return "Ljava/time/LocalDateTime;"
        return "Ljava/time/Instant;" if value.tzinfo is dt.UTC else ""
    return _SCALARS.get(type(value), "")


def _container(value: Any, depth: int) -> Shape | None:
    if isinstance(value, Mapping):
        kind = JavaMap if isinstance(value, JavaMap) else dict
        return Shape(
            container=kind,
            container_class=value.java_class if isinstance(value, JavaMap) else None,
            key=_first(value.keys(), depth),
            element=_first(value.values(), depth),
        )
    if isinstance(value, (JavaList, JavaSet)):
        return Shape(container=type(value), container_class=value.java_class, element=_first(value, depth))
    if isinstance(value, JavaArray):
        return Shape(container=JavaArray, container_class=value.descriptor, element=_first(value, depth))
    if isinstance(value, (Sequence, Set)):
        return Shape(container=list, element=_first(value, depth))
    return None


def _first(values: Iterable[Any], depth: int) -> Shape | None:
    """Return the shape of elements: that of the first one that has a shape."""
    return next((shape for shape in (shape_of(each, depth + 1) for each in values) if shape is not None), None)


_UTC: Final = pa.timestamp("us", "UTC")
#: Signature of a Java type with one value -> its Arrow type.
ARROW: Final[Mapping[str, pa.DataType]] = {
    "Z": pa.bool_(),
    "B": pa.int8(),
    "S": pa.int16(),
    "I": pa.int32(),
    "J": pa.int64(),
    "F": pa.float32(),
    "D": pa.float64(),
    "C": pa.string(),
    **{signature(row.java): row.stored for row in ROWS.values() if row.java and row.stored is not None},
    "Ljava/lang/Character;": pa.string(),
    # Same types as in Spark's encoders.
    "Ljava/math/BigDecimal;": pa.decimal128(38, 18),
    "Ljava/math/BigInteger;": pa.decimal128(38, 0),
    "Ljava/util/Date;": _UTC,
    "Ljava/sql/Timestamp;": _UTC,
    "Ljava/util/UUID;": pa.string(),
}


def no_such_field(descriptor: ClassDescriptor, name: str) -> SchemaError:
    """Return the error for a field that a class does not have."""
    known = ", ".join(descriptor.field_names)
    return SchemaError(f"{descriptor.name} has no field {name!r}: it has {known}")


def check_cast(given: pa.DataType, wanted: pa.DataType, path: str = "$") -> None:
    """Raise :class:`SchemaError` if columns of type ``given`` cannot be cast to ``wanted``."""
    if family(given) == family(wanted) == "fields":
        for each in given:
            place = wanted.get_field_index(each.name)
            if place < 0:
                msg = f"a struct with a field {each.name!r} cannot be converted to {wanted} (at {path})"
                raise SchemaError(msg)
            check_cast(each.type, wanted.field(place).type, f"{path}.{each.name}")
    elif family(given) == family(wanted) == "items":
        check_cast(given.value_type, wanted.value_type, f"{path}[]")
    elif family(given) == family(wanted) == "entries":
        check_cast(given.key_type, wanted.key_type, f"{path}{{}}")
        check_cast(given.item_type, wanted.item_type, f"{path}{{}}")
    else:
        try:
            pa.nulls(0, given).cast(wanted)
        except pa.ArrowException as error:
            msg = f"a column of type {given} cannot be converted to {wanted} (at {path}): {error}"
            raise SchemaError(msg) from error


def signature_of(kind: pa.DataType) -> str | None:
    """Return the signature of the default Java type for an Arrow type, or None if there is no default."""
    row = row_of(kind)
    if is_family(kind, "items"):
        inside = [kind.value_type]
    else:
        inside = [kind.key_type, kind.item_type] if is_family(kind, "entries") else []
    known = row is not None and row.java and all(map(signature_of, inside))
    return signature(row.java) if row is not None and known else None


def arrow_of(java_type: str) -> pa.DataType | None:
    """Return the Arrow type for a Java type's signature, or None if a class does not determine it."""
    known = ARROW.get(java_type)
    if known is None and java_type.startswith("["):
        element = arrow_of(java_type[1:])
        return None if element is None else pa.list_(pa.field("element", element))
    return known


def struct_of(descriptor: ClassDescriptor, shape: Shape | None, wanted: list[str] | None = None) -> pa.DataType:
    """Return the struct of a class's fields, or of the selected ones.

    Raises :class:`SchemaError` if a field has no Arrow type.
    """
    for name in wanted or ():
        if name not in descriptor.field_names:
            raise no_such_field(descriptor, name)
    fields = []
    for name, (_, each) in zip(descriptor.field_names, descriptor.all_fields, strict=True):
        if wanted is not None and name not in wanted:
            continue
        found = _value_type(each.type, shape.fields.get(name) if shape else None)
        if found is None:
            msg = (
                f"the type {each.source_type} of {descriptor.name}.{each.name} has no Arrow type; set arrow_type=, a "
                'struct of the fields that you need (in Spark .schema("…")), or a sample= (java_sample) in which '
                "that field is neither null nor empty"
            )
            raise SchemaError(msg)
        fields.append(pa.field(name, found))
    return pa.struct(fields)


def _value_type(declared: str, shape: Shape | None) -> pa.DataType | None:
    """Return the Arrow type of a declared type's values, with the shape of a sample if there is one."""
    known = arrow_of(declared)
    if known is not None or shape is None:
        return known
    if shape.scalar:
        return ARROW.get(shape.scalar)
    if shape.descriptor is not None:
        return pa.string() if shape.is_enum else struct_of(shape.descriptor, shape)
    element = _value_type("", shape.element)
    if element is None:
        return None
    if shape.container in (dict, JavaMap):
        key = _value_type("", shape.key)
        return None if key is None else pa.map_(key, element)
    return pa.list_(pa.field("element", element))
