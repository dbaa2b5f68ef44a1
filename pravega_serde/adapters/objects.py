"""Wrapper of any serializer, which reads and writes objects of a class."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, overload, runtime_checkable
from uuid import UUID

import numpy as np

from pravega_serde.adapters.classes import Member, classes_in, members_of, name_of
from pravega_serde.adapters.conversion import Conversion, conversion_of
from pravega_serde.cbor import CborSerializer
from pravega_serde.cbor.scan import ALLOWED
from pravega_serde.columnar.limits import ObjectLimit
from pravega_serde.errors import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.java import Boolean, ClassDescriptor, JavaEnum, JavaKey, JavaObject, JavaSerializer
from pravega_serde.java.convert import MAX_SHARED
from pravega_serde.json import JsonSerializer
from pravega_serde.json.rows import strip
from pravega_serde.json.write_rows import TOO_DEEP
from pravega_serde.serializer_interface import OnError, Serializer

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

#: Bytes of an object with its own dict, and of a field in it.
_OBJECT: Final = 200
_FIELD: Final = 32


class TypedSerializer(Generic[T]):
    """Serializer with objects of a class as single values. Create one with :func:`typed`.

    Columns are those of the wrapped serializer. They do not hold objects.
    """

    def __init__(
        self, inner: Serializer[Any], kind: type[T], *, java_classes: Mapping[type, ClassDescriptor] | None = None
    ) -> None:
        self._inner, self._kind, self._java_classes = inner, kind, java_classes
        self._class = kind if members_of(kind) is not None and not hasattr(kind, "__total__") else None
        self._dump, self._load = _halves(inner, kind, java_classes)
        #: True if a read or a write may wait for a registry.
        self.read_may_block: bool = getattr(inner, "read_may_block", False)
        self.write_may_block: bool = getattr(inner, "write_may_block", False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._inner, self._kind, self._java_classes)

    def __repr__(self) -> str:
        return f"typed({self._inner!r}, {name_of(self._kind)})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of the wrapped serializer."""
        return self._inner.arrow_type

    def serialize(self, value: T) -> bytes:
        """Return the event of an object of the class. Raises :class:`SerializationError` for any other value."""
        if self._class is not None and not isinstance(value, self._class):
            raise SerializationError(f"expected a {name_of(self._kind)}, not a {name_of(type(value))}")
        return self._inner.serialize(self._dump(value))

    def deserialize(self, data: bytes) -> T:
        """Return the object of an event.

        Raises :class:`DeserializationError`, which names the field that does not fit the class.
        """
        made: T = self._load(data)
        return made

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise the wrapped serializer's :class:`SchemaError` if columns do not fit."""
        self._inner.check_encodable(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the wrapped serializer's events of a column."""
        return self._inner.encode_column(column)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the wrapped serializer's values of a column."""
        return self._inner.decode_column(column, on_error=on_error)


@overload
def typed(
    serializer: Serializer[Any], kind: type[T], *, java_classes: Mapping[type, ClassDescriptor] | None = None
) -> TypedSerializer[T]: ...


@overload
def typed(
    serializer: type[T], kind: Serializer[Any], *, java_classes: Mapping[type, ClassDescriptor] | None = None
) -> TypedSerializer[T]: ...


def typed(
    serializer: Any, kind: Any, *, java_classes: Mapping[type, ClassDescriptor] | None = None
) -> TypedSerializer[Any]:
    """Return a serializer of objects of ``kind`` instead of plain values: ``typed(JsonSerializer(), Order)``.

    The two arguments may be in either order. ``kind`` is a dataclass, msgspec Struct, attrs class, TypedDict or
    pydantic model, or a type that contains them, such as ``list[Order]``. Fields are matched by name, and enums are
    written as their values. Numbers and texts become datetimes, decimals and UUIDs if the class declares them.

    Java objects need their classes: ``java_classes`` maps each class to its descriptor, ``{Order: ORDER, Line: LINE}``,
    enums included. The descriptor of ``kind`` may be left out if the JavaSerializer has one. Raises
    :class:`SchemaError` for a type that cannot be converted.
    """
    if _is_serializer(kind) and not _is_serializer(serializer):
        serializer, kind = kind, serializer
    if not _is_serializer(serializer):
        raise SchemaError(
            f"typed requires a serializer and a class, such as typed(JsonSerializer(), Order), not {serializer!r} and "
            f"{kind!r}"
        )
    return TypedSerializer(serializer, kind, java_classes=java_classes)


def _is_serializer(value: object) -> bool:
    return not isinstance(value, type) and hasattr(value, "deserialize")


def _halves(
    inner: Serializer[Any], kind: Any, java_classes: Mapping[type, ClassDescriptor] | None
) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """Return the conversions from an object to the wrapped serializer's value, and from an event to an object."""
    conversion = conversion_of(kind)
    if isinstance(inner, JavaSerializer):
        java = _JavaConversion(inner, kind, java_classes or {}, conversion)
        return java.dump, java.load
    if java_classes is not None:
        raise SchemaError(f"java_classes are for the Java format, not for {inner!r}")
    if isinstance(inner, JsonSerializer):
        return conversion.dump, _json_reader(inner, conversion, ObjectLimit(_heaviest(kind)))
    if isinstance(inner, CborSerializer):
        return conversion.dump, _cbor_reader(inner, conversion, ObjectLimit(_heaviest(kind), ALLOWED))
    if isinstance(inner, _HasDicts):
        as_dict = inner.as_dict
        return conversion.dump_with_durations, lambda data: conversion.load(as_dict(inner.deserialize(data)))
    return conversion.dump, lambda data: conversion.load(inner.deserialize(data))


@runtime_checkable
class _HasDicts(Protocol):
    """Serializer with its own value objects, such as Protobuf's messages."""

    def as_dict(self, value: Any) -> Any:
        """Convert an object to plain values."""


def _json_reader(inner: JsonSerializer, conversion: Conversion, limit: ObjectLimit) -> Callable[[bytes], Any]:
    """Return a reader of text directly into the class. It keeps the digits of decimals."""

    def read(data: bytes) -> Any:
        if inner.schema is not None:
            inner.deserialize(data)
        if limit.may_be_exceeded(data):
            limit.check(len(data), inner.deserialize(data))
        return conversion.load_json(strip(data))

    return read


def _cbor_reader(inner: CborSerializer, conversion: Conversion, limit: ObjectLimit) -> Callable[[bytes], Any]:
    """Return a reader of events. It limits memory, because maps of one byte can become objects."""

    def read(data: bytes) -> Any:
        value = inner.deserialize(data)
        limit.check(len(data), value)
        return conversion.load(value)

    return read


def _heaviest(kind: Any) -> int:
    """Return the bytes of an object of the largest class in a type if all fields have defaults."""
    widths = [len(members) for members in map(members_of, classes_in(kind)) if members is not None]
    return max((_OBJECT + _FIELD * width for width in widths), default=0)


def _rebuild(inner: Any, kind: Any, java_classes: Any) -> TypedSerializer[Any]:
    return TypedSerializer(inner, kind, java_classes=java_classes)


# Java objects have classes


class _JavaConversion:
    """Conversion of objects of one class to Java objects and back, with the descriptors of their classes."""

    def __init__(
        self, serializer: JavaSerializer, kind: Any, classes: Mapping[type, ClassDescriptor], conversion: Conversion
    ) -> None:
        self._deserialize, self._load, self._kind = serializer.deserialize, conversion.load, kind
        described = dict(classes)
        if isinstance(serializer.java_type, ClassDescriptor):
            described.setdefault(kind, serializer.java_type)
        self._expected = described.get(kind) if isinstance(kind, type) else None
        self._makers: dict[type, Callable[[Any], Any]] = {list: self._list, tuple: self._list, dict: self._dict}
        self._makers |= dict.fromkeys((set, frozenset), self._set)
        self._makers |= {each: self._maker(each, descriptor) for each, descriptor in described.items()}

    def dump(self, value: Any) -> Any:
        """Convert an object to a value that the Java serializer writes."""
        try:
            return self._java(value)
        except RecursionError as error:
            raise SerializationError(TOO_DEEP) from error

    def load(self, data: bytes) -> Any:
        """Return the object of an event."""
        value = self._deserialize(data)
        if self._expected is not None and value is not None:
            _check_class(value, self._expected)
        try:
            plain = _Plain(len(data)).of(value)
        except RecursionError as error:
            raise LimitExceededError("objects nested beyond the interpreter's recursion limit") from error
        return self._load(plain)

    def _java(self, value: Any) -> Any:
        make = self._makers.get(type(value))
        if make is not None:
            return make(value)
        if isinstance(value, enum.Enum) or members_of(type(value)) is not None:
            raise SerializationError(
                f"the Java class of {name_of(type(value))} is unknown; pass its ClassDescriptor in java_classes= "
                "(Python cannot compute a class's serialVersionUID)"
            )
        return value

    def _list(self, value: Any) -> list[Any]:
        return [self._java(item) for item in value]

    def _set(self, value: Any) -> set[Any]:
        return {self._java(item) for item in value}

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {self._java(key): self._java(item) for key, item in value.items()}

    def _maker(self, kind: type, descriptor: ClassDescriptor) -> Callable[[Any], Any]:
        if issubclass(kind, enum.Enum):
            return {constant: JavaEnum(descriptor, constant.value) for constant in kind}.__getitem__
        members = members_of(kind)
        if members is None:
            raise SchemaError(f"{name_of(kind)} has no fields that a Java object can have")
        return self._object_maker(members, descriptor)

    def _object_maker(self, members: Sequence[Member], descriptor: ClassDescriptor) -> Callable[[Any], JavaObject]:
        positions = descriptor.positions
        unknown = [member.name for member in members if member.name not in positions]
        if unknown:
            known = ", ".join(descriptor.field_names)
            raise SchemaError(f"{descriptor.name} has no serializable field {unknown[0]!r}; it has {known}")
        parts = [(member.attribute, positions[member.name]) for member in members]
        defaults = descriptor.new().data

        def make(value: Any) -> JavaObject:
            made = JavaObject(descriptor, defaults)
            for attribute, at in parts:
                made.data[at] = self._java(getattr(value, attribute))
            return made

        return make


def _check_class(value: Any, wanted: ClassDescriptor) -> None:
    chain = value.descriptor.hierarchy if isinstance(value, JavaObject) else ()
    if all(each.name != wanted.name for each in chain):
        found = value.class_name if isinstance(value, JavaObject) else f"a {type(value).__name__}"
        raise DeserializationError(f"the event holds {found}, not {wanted.name}")


_AS_THEY_ARE: Final = frozenset(
    {type(None), bool, int, float, str, bytes, datetime, date, time, timedelta, Decimal, UUID}
)


class _Plain:
    """Converter of the Java objects of one event to plain values.

    It counts values, because shared objects become copies.
    """

    __slots__ = ("_left",)

    def __init__(self, size: int) -> None:
        self._left = size + MAX_SHARED

    def of(self, value: Any) -> Any:
        """Convert a value to dicts, lists and scalars."""
        if type(value) in _AS_THEY_ARE:
            return value
        for kind, read in _COMPOUNDS:
            if isinstance(value, kind):
                return read(self, value)
        return value

    def _object(self, value: JavaObject) -> dict[str, Any]:
        self._take(len(value.data))
        of = self.of
        return {name: of(inner) for name, inner in zip(value.descriptor.field_names, value.data, strict=True)}

    def _items(self, value: Any) -> list[Any]:
        self._take(len(value))
        return [self.of(item) for item in value]

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise LimitExceededError(f"shared objects unfold into more values than bytes and {MAX_SHARED} more")

    def _array(self, value: np.ndarray[Any, Any]) -> list[Any]:
        self._take(len(value))
        # char[] is an array of code units, and a char is a string.
        return list(map(chr, value.tolist())) if value.dtype == np.uint16 else value.tolist()

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        self._take(len(value))
        plain: dict[Any, Any] = {}
        for key in value:
            name = self.of(key)
            if isinstance(name, dict | list):
                raise DeserializationError(f"a {type(key).__name__} cannot be a key of a Python dict")
            plain[name] = self.of(value[key])
        return plain


#: Conversion of the values of a type. The first that fits is used.
_COMPOUNDS: Final[list[tuple[Any, Callable[[_Plain, Any], Any]]]] = [
    (JavaObject, _Plain._object),
    (JavaKey, lambda plain, key: plain.of(key.value)),
    (JavaEnum, lambda _, value: value.name),
    (Boolean, lambda _, value: bool(value)),
    (int, lambda _, value: int(value)),
    (float, lambda _, value: float(value)),
    (str, lambda _, value: str.__str__(value)),
    (bytes, lambda _, value: bytes(value)),
    (Decimal, lambda _, value: Decimal(value)),
    (datetime, lambda _, value: datetime.combine(value.date(), value.timetz(), value.tzinfo)),
    (time, lambda _, value: time(value.hour, value.minute, value.second, value.microsecond, value.tzinfo)),
    (timedelta, lambda _, value: timedelta(value.days, value.seconds, value.microseconds)),
    (np.ndarray, _Plain._array),
    (Mapping, _Plain._mapping),
    (Sequence | Set, _Plain._items),
]
