"""Arrow types of Java types, and the conversion of single values between them."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.errors import SchemaError, SerializationError
from pravega_serde.java import _boxes as box
from pravega_serde.java import _temporal as temporal
from pravega_serde.java._coerce import coerce, is_coerced
from pravega_serde.java._containers import JavaArray, JavaList, JavaMap, JavaSet
from pravega_serde.java._limits import MAX_SHARED
from pravega_serde.java._model import ClassDescriptor, JavaEnum, JavaObject, signature
from pravega_serde.java._samples import Shape

__all__ = ["ColumnType", "column_type", "is_any_list"]

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
    """Value of ``to_pylist`` -> what the writer takes; only of a type that was made for a column to write."""

    def check_encodable(self, given: pa.DataType) -> None:
        """Raise SchemaError unless columns of that type can become this one."""
        if isinstance(self.java_type, ClassDescriptor):
            if not pa.types.is_struct(given):
                msg = f"objects of {self.java_type.name} are written from a struct, not from {given}"
                raise SchemaError(msg)
            for each in given:
                if self.arrow_type.get_field_index(each.name) < 0:
                    raise _no_field(self.java_type, each.name)
        elif self.java_type is None:
            msg = (
                f"a column of type {given} needs java_type=ClassDescriptor(...): Python cannot compute the "
                "serialVersionUID of a class; take it from `serialver <class>`, or from an event with sample="
            )
            raise SchemaError(msg)
        _check_cast(given, self.arrow_type)


def _no_field(descriptor: ClassDescriptor, name: str) -> SchemaError:
    known = ", ".join(descriptor.field_names)
    return SchemaError(f"{descriptor.name} has no field {name!r}: it has {known}")


def _check_cast(given: pa.DataType, wanted: pa.DataType) -> None:
    t = pa.types
    if t.is_struct(given) and t.is_struct(wanted):
        for each in given:
            place = wanted.get_field_index(each.name)
            if place < 0:
                msg = f"a struct with a field {each.name!r} does not become {wanted}"
                raise SchemaError(msg)
            _check_cast(each.type, wanted.field(place).type)
        return
    if is_any_list(given) and is_any_list(wanted):
        _check_cast(given.value_type, wanted.value_type)
        return
    if t.is_map(given) and t.is_map(wanted):
        _check_cast(given.key_type, wanted.key_type)
        _check_cast(given.item_type, wanted.item_type)
        return
    try:
        pa.nulls(0, given).cast(wanted)
    except pa.ArrowException as error:
        msg = f"a column of type {given} does not become {wanted}: {error}"
        raise SchemaError(msg) from error


def is_any_list(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's lists."""
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def column_type(
    java_type: str | ClassDescriptor | None,
    arrow_type: pa.DataType | None,
    shape: Shape | None = None,
    *,
    written: pa.DataType | None = None,
) -> ColumnType | None:
    """The column type of what the user said; None if that was nothing.

    ``shape`` is what a sample tells. ``written`` is the type of a column to write: of a class, only its fields matter.
    """
    if java_type is None:
        if arrow_type is None:
            return None
        return _make(_natural(arrow_type), arrow_type, None, written)
    if isinstance(java_type, ClassDescriptor):
        wanted = None if written is None or not pa.types.is_struct(written) else [each.name for each in written]
        return _make(java_type, arrow_type or _struct(java_type, shape, wanted), shape, written)
    known = signature(java_type) if not java_type.startswith("[") else java_type
    found = arrow_type or _field_type(known)
    if found is None:
        msg = f"no Arrow type is known for {java_type}; give a ClassDescriptor, a sample= event, or arrow_type="
        raise SchemaError(msg)
    return _make(known, found, None, written)


def _make(
    java_type: str | ClassDescriptor | None, arrow_type: pa.DataType, shape: Shape | None, written: pa.DataType | None
) -> ColumnType:
    read = _reader(arrow_type)

    def from_java(value: Any, size: int) -> Any:
        if isinstance(java_type, ClassDescriptor) and value is not None:
            _check_class(value, java_type)
        return read(value, _Budget(size))

    made = ColumnType(java_type=java_type, arrow_type=arrow_type, from_java=from_java, to_java=_only_read)
    if written is None:
        return made
    made.check_encodable(written)
    if isinstance(java_type, ClassDescriptor):
        arrow_type = pa.struct([each for each in arrow_type if written.get_field_index(each.name) >= 0])
    return replace(made, to_java=_writer(java_type, arrow_type, shape))


def _only_read(value: Any) -> Any:
    raise AssertionError(value)


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


def _struct(descriptor: ClassDescriptor, shape: Shape | None, wanted: list[str] | None = None) -> pa.DataType:
    """A struct of a class's fields, or of those that are wanted."""
    for name in wanted or ():
        if name not in descriptor.field_names:
            raise _no_field(descriptor, name)
    fields = []
    for name, (_, each) in zip(descriptor.field_names, descriptor.all_fields, strict=True):
        if wanted is not None and name not in wanted:
            continue
        found = _value_type(each.type, shape.fields.get(name) if shape else None)
        if found is None:
            msg = (
                f"no Arrow type follows from the type {each.type} of {descriptor.name}.{each.name}; give arrow_type=, "
                "a struct of the fields that you need, or a sample= in which that field is neither null nor empty"
            )
            raise SchemaError(msg)
        fields.append(pa.field(name, found))
    return pa.struct(fields)


def _value_type(declared: str, shape: Shape | None) -> pa.DataType | None:
    """Arrow type of values of a declared type, of which a sample may tell more."""
    known = _field_type(declared)
    if known is not None or shape is None:
        return known
    if shape.scalar:
        return _ARROW.get(shape.scalar)
    if shape.descriptor is not None:
        return pa.string() if shape.is_enum else _struct(shape.descriptor, shape)
    element = _value_type("", shape.element)
    if element is None:
        return None
    if shape.container in (dict, JavaMap):
        key = _value_type("", shape.key)
        return None if key is None else pa.map_(key, element)
    return pa.list_(pa.field("element", element))


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
    if is_any_list(arrow_type):
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
            msg = f"a {value.class_name if isinstance(value, JavaObject) else type(value).__name__} is no {arrow_type}"
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
    if t.is_timestamp(arrow_type):
        return lambda value: _moment(value, arrow_type.unit) if isinstance(value, dt.datetime) else None
    if t.is_duration(arrow_type):
        return lambda value: _amount(value, arrow_type.unit) if isinstance(value, dt.timedelta) else None
    for kind, python in _TEMPORAL:
        if kind(arrow_type):
            return lambda value: value if isinstance(value, python) else None
    msg = f"the Java format has no {arrow_type}"
    raise SchemaError(msg)


_TEMPORAL: Final = (
    (pa.types.is_date, dt.date),
    (pa.types.is_time, dt.time),
    (pa.types.is_null, type(None)),
)
_NANOS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_LOCAL_EPOCH: Final = dt.datetime(1970, 1, 1)


def _moment(value: dt.datetime, unit: str) -> int:
    """Units since 1970: as numbers no nanosecond is lost, nor a date that Arrow cannot take from Python."""
    since = value - (_LOCAL_EPOCH if value.tzinfo is None else temporal.EPOCH)
    return _amount(since, unit, getattr(value, "nanos_beyond", 0))


def _amount(value: dt.timedelta, unit: str, nanos: int = 0) -> int:
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    made = (micros * 1000 + (nanos or getattr(value, "nanos_beyond", 0))) // _NANOS[unit]
    if not -(1 << 63) <= made < 1 << 63:
        msg = "it is too large"
        raise ValueError(msg)
    return made


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
        made = {}
        for name, child in children:
            try:
                made[name] = child(fields.get(name), budget)
            except SerializationError as error:
                raise _within(f".{name}", error) from error
        return made

    return read


def _within(step: str, error: SerializationError) -> SerializationError:
    """The error, seen from one level further out; the path begins with ``$`` when it is complete."""
    return SerializationError(error.reason, field_path=step + (error.field_path or ""))


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
        made: list[Any] = []
        try:
            for item in items:
                made.append(child(item, budget))  # noqa: PERF401 - its length is the place of an error
        except SerializationError as error:
            raise _within(f"[{len(made)}]", error) from error
        return made

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
        made = []
        for each in value:
            try:
                made.append((key(each, budget), item(value[each], budget)))
            except SerializationError as error:
                raise _within(f"[{str(each)[:40]!r}]", error) from error
        return made

    return read


def _writer(
    java_type: str | ClassDescriptor | None, arrow_type: pa.DataType, shape: Shape | None
) -> Callable[[Any], Any]:
    """How a value of ``to_pylist`` becomes one that the writer takes; compiled once."""
    if isinstance(java_type, ClassDescriptor):
        return _object_writer(java_type, arrow_type, shape)
    if java_type is None:
        return lambda value: value
    return _value_writer(java_type, arrow_type, None)


def _value_writer(declared: str, arrow_type: pa.DataType, shape: Shape | None) -> Callable[[Any], Any]:
    """How values of a declared type are made, of which a sample may tell more."""
    t = pa.types
    if shape is not None and shape.descriptor is not None:
        if not shape.is_enum:
            return _object_writer(shape.descriptor, arrow_type, shape)
        constant = shape.descriptor
        return lambda name: JavaEnum(constant, name)
    if is_any_list(arrow_type) and _field_type(declared) is None:
        return _collection_writer(declared, arrow_type, shape)
    if t.is_map(arrow_type):
        return _entries_writer(arrow_type, shape)
    known = declared if shape is None or declared in _ARROW else shape.scalar or declared
    return _SPECIAL.get(known) or (lambda value: coerce(value, known))


def _collection_writer(declared: str, arrow_type: pa.DataType, shape: Shape | None) -> Callable[[Any], Any]:
    element = shape.element if shape else None
    item = _value_writer(_natural(arrow_type.value_type) or "", arrow_type.value_type, element)
    make = _container(declared, shape)

    def write(value: list[Any]) -> Any:
        return make([None if each is None else item(each) for each in value])

    return write


def _container(declared: str, shape: Shape | None) -> Callable[[list[Any]], Any]:
    if shape is not None and shape.container in (JavaList, JavaSet, JavaArray):
        kind, name = shape.container, shape.container_class
        return lambda items: kind(items, name)
    if declared == "Ljava/util/Set;":
        return JavaSet
    # A list in a field of another declared class is adapted when the object is written.
    return list


def _entries_writer(arrow_type: pa.DataType, shape: Shape | None) -> Callable[[Any], Any]:
    key = _value_writer(_natural(arrow_type.key_type) or "", arrow_type.key_type, shape.key if shape else None)
    item = _value_writer(_natural(arrow_type.item_type) or "", arrow_type.item_type, shape.element if shape else None)
    name = shape.container_class if shape is not None and shape.container is JavaMap else None

    def write(value: list[tuple[Any, Any]]) -> Any:
        made = {key(k): None if v is None else item(v) for k, v in value}
        return made if name is None else JavaMap(made, str(name))

    return write


def _uuid(value: str) -> uuid.UUID:
    try:
        return uuid.UUID(value)
    except ValueError as error:
        msg = f"{value!r} is no UUID"
        raise SerializationError(msg) from error


def _is_known(declared: str) -> bool:
    """Whether a value for a field of that type can be made without having seen one."""
    element = declared.lstrip("[")
    return not element.startswith("L") or element in _ARROW or is_coerced(element) or element in _ANYTHING


#: Types that the natural values of Arrow columns are values of.
_ANYTHING: Final = frozenset(
    f"Ljava/{name};"
    for name in (
        *("lang/Object", "lang/Number", "lang/Comparable", "lang/CharSequence", "lang/Iterable", "io/Serializable"),
        *("util/List", "util/Collection", "util/ArrayList", "util/AbstractList", "util/AbstractCollection", "util/Set"),
        *("util/Map", "util/HashMap", "util/AbstractMap", "util/RandomAccess"),
        *("time/temporal/Temporal", "time/temporal/TemporalAccessor"),
    )
)


def _date(value: dt.datetime) -> Any:
    if value.microsecond % 1000:
        msg = f"{value} has microseconds, java.util.Date has milliseconds: round it"
        raise SerializationError(msg)
    return coerce(value, "Ljava/util/Date;")


_SPECIAL: Final[dict[str, Callable[[Any], Any]]] = {"Ljava/util/Date;": _date, "Ljava/util/UUID;": _uuid}


def _object_writer(descriptor: ClassDescriptor, arrow_type: pa.DataType, shape: Shape | None) -> Callable[[Any], Any]:
    special: dict[str, Callable[[Any], Any]] = {}
    named = {each.name: each.type for each in arrow_type} if pa.types.is_struct(arrow_type) else {}
    for name, (_, each) in zip(descriptor.field_names, descriptor.all_fields, strict=True):
        # Primitives, and strings, are what they are.
        if name in named and not each.primitive and each.type != "Ljava/lang/String;":
            inside = shape.fields.get(name) if shape else None
            if inside is None and not _is_known(each.type):
                msg = (
                    f"values of {descriptor.name}.{name} are objects of {each.type}, a class that only an event tells: "
                    "give a sample= in which that field is neither null nor empty"
                )
                raise SchemaError(msg)
            special[name] = _value_writer(each.type, named[name], inside)

    def write(value: Mapping[str, Any]) -> JavaObject:
        # A null for a primitive field becomes Java's default; Java has no null there.
        given = {name: item for name, item in value.items() if item is not None}
        for name, convert in special.items():
            if name in given:
                try:
                    given[name] = convert(given[name])
                except SerializationError as error:
                    raise _within(f".{name}", error) from error
                except (ArithmeticError, TypeError, ValueError) as error:
                    raise SerializationError(str(error), field_path=f".{name}") from error
        return descriptor.new(**given)

    return write
