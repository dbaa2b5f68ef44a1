"""Arrow types of Java types, and the conversion of single values between them."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.errors import SchemaError, SerializationError
from pravega_serde.java import _boxes as box
from pravega_serde.java._coerce import coerce
from pravega_serde.java._limits import MAX_SHARED
from pravega_serde.java._model import ClassDescriptor, JavaEnum, JavaObject, signature

__all__ = ["ColumnType", "column_type"]

_UTC: Final = pa.timestamp("us", "UTC")
_ARROW: Final = {
    "Z": pa.bool_(),
    "B": pa.int8(),
    "S": pa.int16(),
    "I": pa.int32(),
    "J": pa.int64(),
    "F": pa.float32(),
    "D": pa.float64(),
    "C": pa.string(),
    "Ljava/lang/Boolean;": pa.bool_(),
    "Ljava/lang/Byte;": pa.int8(),
    "Ljava/lang/Short;": pa.int16(),
    "Ljava/lang/Integer;": pa.int32(),
    "Ljava/lang/Long;": pa.int64(),
    "Ljava/lang/Float;": pa.float32(),
    "Ljava/lang/Double;": pa.float64(),
    "Ljava/lang/Character;": pa.string(),
    "Ljava/lang/String;": pa.string(),
    "[B": pa.binary(),
    # The same types as Spark's own encoders have for them.
    "Ljava/math/BigDecimal;": pa.decimal128(38, 18),
    "Ljava/math/BigInteger;": pa.decimal128(38, 0),
    "Ljava/util/Date;": _UTC,
    "Ljava/sql/Timestamp;": _UTC,
    "Ljava/time/Instant;": _UTC,
    "Ljava/time/LocalDateTime;": pa.timestamp("us"),
    "Ljava/time/LocalDate;": pa.date32(),
    "Ljava/time/LocalTime;": pa.time64("us"),
    "Ljava/time/Duration;": pa.duration("us"),
    "Ljava/util/UUID;": pa.string(),
}
_NATURAL: Final = {
    pa.bool_(): "Ljava/lang/Boolean;",
    pa.int8(): "Ljava/lang/Byte;",
    pa.int16(): "Ljava/lang/Short;",
    pa.int32(): "Ljava/lang/Integer;",
    pa.int64(): "Ljava/lang/Long;",
    pa.float32(): "Ljava/lang/Float;",
    pa.float64(): "Ljava/lang/Double;",
    pa.string(): "Ljava/lang/String;",
    pa.large_string(): "Ljava/lang/String;",
    pa.binary(): "[B",
    pa.large_binary(): "[B",
    pa.date32(): "Ljava/time/LocalDate;",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """What the events of a column are, in Java and in Arrow."""

    java_type: str | ClassDescriptor | None
    """Signature of the type, or the class; None: only reading, objects of any class with such fields."""
    arrow_type: pa.DataType
    from_java: Callable[[Any, int], Any]
    """Decoded value, size of its event -> what ``pa.array`` takes; SerializationError for a value of another type."""
    to_java: Callable[[Any], Any]
    """Value of ``to_pylist`` -> what the writer takes."""

    def check_encodable(self, given: pa.DataType) -> None:
        """Raise SchemaError unless columns of that type can become this one."""
        if isinstance(self.java_type, ClassDescriptor):
            if not pa.types.is_struct(given):
                msg = f"objects of {self.java_type.name} are written from a struct, not from {given}"
                raise SchemaError(msg)
            for each in given:
                if self.arrow_type.get_field_index(each.name) < 0:
                    known = ", ".join(self.java_type.field_names)
                    msg = f"{self.java_type.name} has no field {each.name!r}: it has {known}"
                    raise SchemaError(msg)
                _check_cast(each.type, self.arrow_type.field(each.name).type)
        elif self.java_type is None:
            msg = "a struct needs java_type=ClassDescriptor(...) to be written"
            raise SchemaError(msg)
        else:
            _check_cast(given, self.arrow_type)


def _check_cast(given: pa.DataType, wanted: pa.DataType) -> None:
    try:
        pa.nulls(0, given).cast(wanted)
    except pa.ArrowException as error:
        msg = f"a column of type {given} does not become {wanted}: {error}"
        raise SchemaError(msg) from error


def column_type(java_type: str | ClassDescriptor | None, arrow_type: pa.DataType | None) -> ColumnType | None:
    """The column type of what the user said; None if that was nothing."""
    if java_type is None:
        if arrow_type is None:
            return None
        return _make(_natural(arrow_type), arrow_type)
    if isinstance(java_type, ClassDescriptor):
        return _make(java_type, arrow_type or _struct(java_type))
    known = signature(java_type) if not java_type.startswith("[") else java_type
    found = arrow_type or _field_type(known)
    if found is None:
        msg = f"no Arrow type is known for {java_type}; give a ClassDescriptor, a sample= event, or arrow_type="
        raise SchemaError(msg)
    return _make(known, found)


def _make(java_type: str | ClassDescriptor | None, arrow_type: pa.DataType) -> ColumnType:
    read = _reader(arrow_type)

    def from_java(value: Any, size: int) -> Any:
        if isinstance(java_type, ClassDescriptor) and value is not None:
            _check_class(value, java_type)
        return read(value, _Budget(size))

    return ColumnType(
        java_type=java_type, arrow_type=arrow_type, from_java=from_java, to_java=_writer(java_type, arrow_type)
    )


def _check_class(value: Any, wanted: ClassDescriptor) -> None:
    at = value.descriptor if isinstance(value, JavaObject) else None
    while at is not None and at.name != wanted.name:
        at = at.super_class
    if at is None:
        found = value.class_name if isinstance(value, JavaObject) else f"a {type(value).__name__}"
        msg = f"the event holds {found}, not {wanted.name}"
        raise SerializationError(msg)


def _natural(arrow_type: pa.DataType) -> str | None:
    if pa.types.is_timestamp(arrow_type):
        return "Ljava/time/Instant;" if arrow_type.tz else "Ljava/time/LocalDateTime;"
    if pa.types.is_decimal(arrow_type):
        return "Ljava/math/BigDecimal;"
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return "Ljava/util/List;" if _natural(arrow_type.value_type) else None
    if pa.types.is_map(arrow_type):
        return "Ljava/util/Map;" if _natural(arrow_type.key_type) and _natural(arrow_type.item_type) else None
    return _NATURAL.get(arrow_type)


def _field_type(java_type: str) -> pa.DataType | None:
    known = _ARROW.get(java_type)
    if known is None and java_type.startswith("["):
        element = _field_type(java_type[1:])
        return None if element is None else pa.list_(pa.field("element", element))
    return known


def _struct(descriptor: ClassDescriptor) -> pa.DataType:
    fields = []
    for name, (_, each) in zip(descriptor.field_names, descriptor.all_fields, strict=True):
        found = _field_type(each.type)
        if found is None:
            msg = (
                f"no Arrow type follows from the type {each.type} of {descriptor.name}.{each.name}; give arrow_type=, "
                "a struct of the fields that you need"
            )
            raise SchemaError(msg)
        fields.append(pa.field(name, found))
    return pa.struct(fields)


class _Budget:
    """Elements that the conversion of one event may still make."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size + MAX_SHARED

    def take(self, count: int) -> None:
        """Raise SerializationError when too many have been made."""
        self.left -= count
        if self.left < 0:
            msg = f"more list elements than bytes, and {MAX_SHARED} more: lists that others share"
            raise SerializationError(msg)


Read = Callable[[Any, _Budget], Any]


def _reader(arrow_type: pa.DataType) -> Read:
    """How a decoded value becomes one that ``pa.array`` takes for this type; compiled once."""
    t = pa.types
    if t.is_struct(arrow_type):
        return _struct_reader(arrow_type)
    if t.is_list(arrow_type) or t.is_large_list(arrow_type):
        return _list_reader(arrow_type)
    if t.is_map(arrow_type):
        return _map_reader(arrow_type)
    check = _scalar_check(arrow_type)

    def read(value: Any, _: _Budget) -> Any:
        try:
            made = None if value is None else check(value)
        except (ArithmeticError, ValueError) as error:
            msg = f"{str(value)[:80]!r} does not fit into {arrow_type}: {error}"
            raise SerializationError(msg) from error
        if made is None and value is not None:
            msg = f"a {type(value).__name__} is no {arrow_type}"
            raise SerializationError(msg)
        return made

    return read


def _scalar_check(arrow_type: pa.DataType) -> Callable[[Any], Any]:  # noqa: PLR0911
    t = pa.types
    if t.is_boolean(arrow_type):
        return lambda value: bool(value) if isinstance(value, (bool, box.Boolean)) else None
    if t.is_integer(arrow_type):
        return lambda value: (
            _whole(value, arrow_type) if isinstance(value, int) and not isinstance(value, bool) else None
        )
    if t.is_floating(arrow_type):
        return lambda value: float(value) if isinstance(value, (int, float)) and type(value) is not bool else None
    if t.is_string(arrow_type) or t.is_large_string(arrow_type):
        return _text
    if t.is_binary(arrow_type) or t.is_large_binary(arrow_type):
        return lambda value: bytes(value) if isinstance(value, bytes) else None
    if t.is_decimal(arrow_type):
        return lambda value: _exact(value, arrow_type)
    for kind, python in _TEMPORAL:
        if kind(arrow_type):
            return lambda value: value if isinstance(value, python) else None
    msg = f"the Java format has no {arrow_type}"
    raise SchemaError(msg)


_TEMPORAL: Final = (
    (pa.types.is_timestamp, dt.datetime),
    (pa.types.is_date, dt.date),
    (pa.types.is_time, dt.time),
    (pa.types.is_duration, dt.timedelta),
    (pa.types.is_null, type(None)),
)


def _whole(value: Any, arrow_type: pa.DataType) -> int | None:
    if not isinstance(value, int) or isinstance(value, (bool, box.Boolean)):
        return None
    if not -(1 << arrow_type.bit_width - 1) <= value < 1 << arrow_type.bit_width - 1:
        msg = "it is too large"
        raise ValueError(msg)
    return int(value)


def _text(value: Any) -> str | None:
    if isinstance(value, JavaEnum):
        value = value.name
    elif isinstance(value, uuid.UUID):
        value = str(value)
    if not isinstance(value, str):
        return None
    # A lone surrogate has no UTF-8: this raises UnicodeEncodeError, which is a ValueError.
    value.encode()
    return str(value)


def _exact(value: Any, arrow_type: pa.DataType) -> decimal.Decimal | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = decimal.Decimal(value) if value.bit_length() < 512 else None
    if not isinstance(value, decimal.Decimal):
        return None
    with decimal.localcontext(
        decimal.Context(prec=arrow_type.precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    ):
        return value.quantize(decimal.Decimal(1).scaleb(-arrow_type.scale))


def _struct_reader(arrow_type: pa.DataType) -> Read:
    children = [(each.name, _reader(each.type)) for each in arrow_type]

    def read(value: Any, budget: _Budget) -> Any:
        if value is None:
            return None
        budget.take(1)
        fields = value.fields if isinstance(value, JavaObject) else value
        if not isinstance(fields, Mapping):
            msg = f"a {type(value).__name__} is no struct"
            raise SerializationError(msg)
        return {name: child(fields.get(name), budget) for name, child in children}

    return read


def _list_reader(arrow_type: pa.DataType) -> Read:
    child = _reader(arrow_type.value_type)

    def read(value: Any, budget: _Budget) -> Any:
        if value is None:
            return None
        if isinstance(value, str) or not isinstance(value, (Sequence, Set, np.ndarray)):
            msg = f"a {type(value).__name__} is no list"
            raise SerializationError(msg)
        budget.take(len(value))
        items = value.tolist() if isinstance(value, np.ndarray) else value
        # char[] is an array of code units, and a char is a string in Arrow.
        if isinstance(value, np.ndarray) and value.dtype == np.uint16:
            items = [chr(unit) for unit in items]
        return [child(item, budget) for item in items]

    return read


def _map_reader(arrow_type: pa.DataType) -> Read:
    key, item = _reader(arrow_type.key_type), _reader(arrow_type.item_type)

    def read(value: Any, budget: _Budget) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            msg = f"a {type(value).__name__} is no map"
            raise SerializationError(msg)
        budget.take(len(value))
        if None in value:
            msg = "an Arrow map has no null keys"
            raise SerializationError(msg)
        return [(key(each, budget), item(value[each], budget)) for each in value]

    return read


def _writer(java_type: str | ClassDescriptor | None, arrow_type: pa.DataType) -> Callable[[Any], Any]:
    """How a value of ``to_pylist`` becomes one that the writer takes; compiled once."""
    if isinstance(java_type, ClassDescriptor):
        return _object_writer(java_type)
    if java_type == "Ljava/util/List;":
        child = _writer(_natural(arrow_type.value_type), arrow_type.value_type)
        return lambda value: [None if item is None else child(item) for item in value]
    if java_type == "Ljava/util/Map;":
        key = _writer(_natural(arrow_type.key_type), arrow_type.key_type)
        item = _writer(_natural(arrow_type.item_type), arrow_type.item_type)
        return lambda value: {key(k): None if v is None else item(v) for k, v in value}
    if java_type == "Ljava/util/UUID;":
        return _uuid
    return lambda value: coerce(value, java_type or "")


def _uuid(value: str) -> uuid.UUID:
    try:
        return uuid.UUID(value)
    except ValueError as error:
        msg = f"{value!r} is no UUID"
        raise SerializationError(msg) from error


def _object_writer(descriptor: ClassDescriptor) -> Callable[[Any], Any]:
    special = {
        name: _uuid
        for name, (_, each) in zip(descriptor.field_names, descriptor.all_fields, strict=True)
        if each.type == "Ljava/util/UUID;"
    }

    def write(value: Mapping[str, Any]) -> JavaObject:
        # A null for a primitive field becomes Java's default; Java has no null there.
        made = descriptor.new(**{name: item for name, item in value.items() if item is not None})
        for name, convert in special.items():
            if made[name] is not None:
                made[name] = convert(made[name])
        return made

    return write
