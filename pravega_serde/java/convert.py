"""Column types: conversion of single values between Java's and Arrow's types, compiled once per column."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.types import NESTED, Walk, family, integer_bounds, is_any_list, is_family, no_form, stored
from pravega_serde.errors import SchemaError, SerializationError
from pravega_serde.java.model import ClassDescriptor, JavaEnum, JavaObject, signature
from pravega_serde.java.types import (
    ARROW,
    Shape,
    arrow_of,
    check_cast,
    no_such_field,
    signature_of,
    struct_of,
)
from pravega_serde.java.values import (
    EPOCH,
    Boolean,
    JavaArray,
    JavaKey,
    JavaList,
    JavaMap,
    JavaSet,
)
from pravega_serde.java.write_rows import coerce, is_coerced

MAX_SHARED: Final = 100_000
"""Maximum elements and fields of one event, in addition to its bytes, if values are copied.

Values are copied into Arrow columns and dataclasses. Each takes at least a byte, so only shared objects can exceed it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """Type of a column's events in Java and in Arrow, and the conversion of its values."""

    java_type: str | ClassDescriptor | None
    """Signature of the type, or the class. None for objects of any class with such fields, which can only be read."""
    arrow_type: pa.DataType
    from_java: Callable[[Any, int], Any]
    """(decoded value, size of its event) -> value for ``pa.array``; SerializationError for a value of another type."""
    to_java: Callable[[Any], Any]
    """Value of ``to_pylist`` -> value for the writer. Only in a type that was created for a column to write."""

    def check_encodable(self, given: pa.DataType) -> None:
        """Raise :class:`SchemaError` unless columns of that Arrow type can be written as this one."""
        if isinstance(self.java_type, ClassDescriptor):
            if not pa.types.is_struct(given):
                msg = f"objects of {self.java_type.name} are written from a struct, not from {given}"
                raise SchemaError(msg)
            for each in given:
                if self.arrow_type.get_field_index(each.name) < 0:
                    raise no_such_field(self.java_type, each.name)
        elif self.java_type is None and not pa.types.is_struct(given):
            raise no_form(given, "Java without a declared class", "$", "cast it, or set java_type=")
        elif self.java_type is None:
            msg = (
                f"a column of type {given} needs java_type=ClassDescriptor(...): Python cannot compute the "
                "serialVersionUID of a class; take it from `serialver <class>`, or from an event with sample="
            )
            raise SchemaError(msg)
        check_cast(given, self.arrow_type)


def column_type(
    java_type: str | ClassDescriptor | None,
    arrow_type: pa.DataType | None,
    shape: Shape | None = None,
    *,
    written: pa.DataType | None = None,
) -> ColumnType | None:
    """Return the column type for the arguments of a serializer, or None if there are none.

    ``shape`` is the shape of a sample. ``written`` is the Arrow type of a column to write. For a class, only its fields
    matter. Raises :class:`SchemaError`.
    """
    if java_type is None:
        if arrow_type is None:
            return None
        return _make(signature_of(arrow_type), arrow_type, None, written)
    if isinstance(java_type, ClassDescriptor):
        wanted = None if written is None or not pa.types.is_struct(written) else [each.name for each in written]
        return _make(java_type, arrow_type or struct_of(java_type, shape, wanted), shape, written)
    known = signature(java_type) if not java_type.startswith("[") else java_type
    found = arrow_type or arrow_of(known)
    if found is None:
        msg = f"{java_type} has no known Arrow type; pass a ClassDescriptor, a sample= event, or arrow_type="
        raise SchemaError(msg)
    return _make(known, found, None, written)


def _make(
    java_type: str | ClassDescriptor | None, arrow_type: pa.DataType, shape: Shape | None, written: pa.DataType | None
) -> ColumnType:
    read = _Readers().of(arrow_type)

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
        msg = f"the event holds {_class_of(value)}, not {wanted.name}"
        raise SerializationError(msg)


def _class_of(value: Any) -> str:
    return value.class_name if isinstance(value, JavaObject) else f"a {type(value).__name__}"


class _Budget:
    """Number of elements that the conversion of one event may still create."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size + MAX_SHARED

    def take(self, count: int) -> None:
        """Count elements. Raises :class:`SerializationError` if there are too many."""
        self.left -= count
        if self.left < 0:
            msg = f"shared lists unfold into more elements than bytes and {MAX_SHARED} more"
            raise SerializationError(msg)


_Read = Callable[[Any, _Budget], Any]


class _Readers(Walk[Any]):
    """Conversions of decoded values to values that ``pa.array`` accepts, or None for a value of another type."""

    language = "reads of Java objects"

    def of(self, kind: pa.DataType, path: str = "$") -> _Read:
        if kind in (pa.string_view(), pa.binary_view()) or is_family(kind, "dictionary"):
            raise no_form(kind, self.language, path, f"read it as {stored(kind)}")
        made = super().of(kind, path)
        return made if family(kind) in NESTED else _checked(kind, made)

    def null(self, kind: pa.DataType) -> Any:
        return lambda _: None

    def boolean(self, kind: pa.DataType) -> Any:
        return lambda value: bool(value) if isinstance(value, (bool, Boolean)) else None

    def integer(self, kind: pa.DataType) -> Any:
        low, high = integer_bounds(kind)
        return lambda value: _whole(value, low, high)

    def floating(self, kind: pa.DataType) -> Any:
        return lambda value: float(value) if isinstance(value, (int, float)) and type(value) is not bool else None

    def text(self, kind: pa.DataType) -> Any:
        return _text

    def binary(self, kind: pa.DataType) -> Any:
        width = kind.byte_width if pa.types.is_fixed_size_binary(kind) else None
        return lambda value: bytes(value) if isinstance(value, bytes) and width in (None, len(value)) else None

    def decimal(self, kind: pa.DataType) -> Any:
        return lambda value: _exact(value, kind)

    def date(self, kind: pa.DataType) -> Any:
        return lambda value: value if isinstance(value, dt.date) else None

    def time(self, kind: pa.DataType) -> Any:
        return lambda value: value if isinstance(value, dt.time) else None

    def timestamp(self, kind: pa.DataType) -> Any:
        return lambda value: _moment(value, kind.unit) if isinstance(value, dt.datetime) else None

    def duration(self, kind: pa.DataType) -> Any:
        return lambda value: _amount(value, kind.unit) if isinstance(value, dt.timedelta) else None

    def fields(self, kind: pa.StructType, path: str) -> _Read:
        return _struct_reader(self.members(kind, path))

    def items(self, kind: pa.ListType, path: str) -> _Read:
        return _list_reader(self.item(kind, path))

    def entries(self, kind: pa.MapType, path: str) -> _Read:
        if is_family(kind.key_type, *NESTED, "null"):  # Python has no keys with values inside
            raise no_form(kind, self.language, path, "cast its keys to string")
        return _map_reader(self.of(kind.key_type, f"{path}{{}}"), self.value(kind, path))


def _checked(arrow_type: pa.DataType, check: Callable[[Any], Any]) -> _Read:
    def read(value: Any, _: _Budget) -> Any:
        try:
            made = None if value is None else check(value)
        except (ArithmeticError, ValueError) as error:
            reason = "too many digits" if isinstance(error, decimal.DecimalException) else error
            msg = f"{str(value)[:80]!r} does not fit into {arrow_type}: {reason}"
            raise SerializationError(msg) from error
        if made is None and value is not None:
            msg = f"invalid {arrow_type}: the event has {_class_of(value)}"
            raise SerializationError(msg)
        return made

    return read


_NANOS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_LOCAL_EPOCH: Final = dt.datetime(1970, 1, 1)


def _moment(value: dt.datetime, unit: str) -> int:
    """Return the units since 1970.

    A number keeps all nanoseconds, and dates that Arrow cannot accept from Python.
    """
    since = value - (_LOCAL_EPOCH if value.tzinfo is None else EPOCH)
    return _amount(since, unit, getattr(value, "nanos_beyond", 0))


def _amount(value: dt.timedelta, unit: str, nanos: int = 0) -> int:
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    made = (micros * 1000 + (nanos or getattr(value, "nanos_beyond", 0))) // _NANOS[unit]
    if not -(1 << 63) <= made < 1 << 63:
        msg = "it is too large"
        raise ValueError(msg)
    return made


def _whole(value: Any, low: int, high: int) -> int | None:
    if not isinstance(value, int) or isinstance(value, (bool, Boolean)):
        return None
    if not low <= value <= high:
        msg = "it is too large" if value > high else "it is too small"
        raise ValueError(msg)
    return int(value)


def _text(value: Any) -> str | None:
    if isinstance(value, JavaEnum):
        value = value.name
    elif isinstance(value, uuid.UUID):
        value = str(value)
    if not isinstance(value, str):
        return None
    # A lone surrogate has no UTF-8. This raises UnicodeEncodeError, which is a ValueError.
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


def _struct_reader(children: Mapping[str, _Read]) -> _Read:
    def read(value: Any, budget: _Budget) -> Any:
        if value is None:
            return None
        budget.take(1)
        fields = value.fields if isinstance(value, JavaObject) else value
        if not isinstance(fields, Mapping):
            msg = f"invalid struct: the event has {_class_of(value)}"
            raise SerializationError(msg)
        made = {}
        for name, child in children.items():
            try:
                made[name] = child(fields.get(name), budget)
            except SerializationError as error:
                raise _within(f".{name}", error) from error
        return made

    return read


def _within(step: str, error: SerializationError) -> SerializationError:
    """Return the same error with one more level in its path. ``$`` is put before the path at the end."""
    return SerializationError(error.reason, field_path=step + (error.field_path or ""))


def _list_reader(child: _Read) -> _Read:
    def read(value: Any, budget: _Budget) -> Any:
        if value is None:
            return None
        if isinstance(value, str) or not isinstance(value, (Sequence, Set, np.ndarray)):
            msg = f"invalid list: the event has {_class_of(value)}"
            raise SerializationError(msg)
        budget.take(len(value))
        items = value.tolist() if isinstance(value, np.ndarray) else value
        # char[] is an array of code units, and a char is a string in Arrow.
        if isinstance(value, np.ndarray) and value.dtype == np.uint16:
            items = [chr(unit) for unit in items]
        made: list[Any] = []
        try:
            for item in items:
                made.append(child(item, budget))
        except SerializationError as error:
            raise _within(f"[{len(made)}]", error) from error
        return made

    return read


def _map_reader(key: _Read, item: _Read) -> _Read:
    def read(value: Any, budget: _Budget) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            msg = f"invalid map: the event has {_class_of(value)}"
            raise SerializationError(msg)
        budget.take(len(value))
        if None in value:
            msg = "invalid map: Arrow has no null keys"
            raise SerializationError(msg)
        made = []
        for each in value:
            try:
                plain = each.value if isinstance(each, JavaKey) else each
                made.append((key(plain, budget), item(value[each], budget)))
            except SerializationError as error:
                raise _within(f"[{str(each)[:40]!r}]", error) from error
        return made

    return read


def _writer(
    java_type: str | ClassDescriptor | None, arrow_type: pa.DataType, shape: Shape | None
) -> Callable[[Any], Any]:
    """Return the conversion of values of ``to_pylist`` to values for the writer. Compiled once."""
    if isinstance(java_type, ClassDescriptor):
        return _object_writer(java_type, arrow_type, shape)
    if java_type is None:
        return lambda value: value
    return _value_writer(java_type, arrow_type, None)


def _value_writer(declared: str, arrow_type: pa.DataType, shape: Shape | None) -> Callable[[Any], Any]:
    """Return the conversion to values of a declared type, with the shape of a sample if there is one."""
    t = pa.types
    if shape is not None and shape.descriptor is not None:
        if not shape.is_enum:
            return _object_writer(shape.descriptor, arrow_type, shape)
        constant = shape.descriptor
        return lambda name: JavaEnum(constant, name)
    if is_any_list(arrow_type) and arrow_of(declared) is None:
        return _collection_writer(declared, arrow_type, shape)
    if t.is_map(arrow_type):
        return _entries_writer(arrow_type, shape)
    known = declared if shape is None or declared in ARROW else shape.scalar or declared
    return _SPECIAL.get(known) or (lambda value: coerce(value, known))


def _collection_writer(declared: str, arrow_type: pa.DataType, shape: Shape | None) -> Callable[[Any], Any]:
    element = shape.element if shape else None
    item = _value_writer(signature_of(arrow_type.value_type) or "", arrow_type.value_type, element)
    make = _container(declared, shape)

    def write(value: list[Any]) -> Any:
        if isinstance(value, str | bytes | Mapping):  # also iterable, but with another meaning
            raise SerializationError(f"{value!r:.80} is not a list")
        return make([None if each is None else item(each) for each in value])

    return write


def _container(declared: str, shape: Shape | None) -> Callable[[list[Any]], Any]:
    if shape is not None and shape.container in (JavaList, JavaSet, JavaArray):
        kind, name = shape.container, shape.container_class
        return lambda items: kind(items, name)
    if declared == "Ljava/util/Set;":
        return JavaSet
    # A list in a field of another declared class is converted when the object is written.
    return list


def _entries_writer(arrow_type: pa.DataType, shape: Shape | None) -> Callable[[Any], Any]:
    key = _value_writer(signature_of(arrow_type.key_type) or "", arrow_type.key_type, shape.key if shape else None)
    item = _value_writer(
        signature_of(arrow_type.item_type) or "", arrow_type.item_type, shape.element if shape else None
    )
    name = shape.container_class if shape is not None and shape.container is JavaMap else None

    def write(value: Mapping[Any, Any] | list[tuple[Any, Any]]) -> Any:
        entries = list(value.items()) if isinstance(value, Mapping) else value  # from a row, or from a column
        if not isinstance(entries, list) or not all(isinstance(entry, tuple) for entry in entries):
            raise SerializationError(f"{value!r:.80} is not a map")
        made = {key(k): None if v is None else item(v) for k, v in entries}
        return made if name is None else JavaMap(made, str(name))

    return write


def _uuid(value: str | uuid.UUID) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(value)
    except (AttributeError, TypeError, ValueError) as error:
        msg = f"invalid UUID {value!r}"
        raise SerializationError(msg) from error


def _is_known(declared: str) -> bool:
    """Return True if a value for a field of that type can be created without a sample."""
    element = declared.lstrip("[")
    return not element.startswith("L") or element in ARROW or is_coerced(element) or element in _ANYTHING


#: Supertypes of the classes in which natural values of Arrow columns are written.
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
        # Primitives and strings need no conversion.
        if name in named and not each.primitive and each.type != "Ljava/lang/String;":
            inside = shape.fields.get(name) if shape else None
            if inside is None and not _is_known(each.type):
                msg = (
                    f"values of {descriptor.name}.{name} are objects of {each.type}, and only an event defines that "
                    "class: pass a sample= in which that field is neither null nor empty"
                )
                raise SchemaError(msg)
            special[name] = _value_writer(each.type, named[name], inside)

    def write(value: Mapping[str, Any]) -> JavaObject:
        if not isinstance(value, Mapping):
            raise SerializationError(f"{value!r:.80} is not an object of {descriptor.name}: pass a dict of its fields")
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
