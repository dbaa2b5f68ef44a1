"""Any serializer, made to give and take objects of a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, runtime_checkable

from pravega_serde.adapters._convert import Conversion, conversion_of
from pravega_serde.adapters._java import JavaConversion
from pravega_serde.adapters._members import classes_in, members_of, name_of
from pravega_serde.errors import SchemaError, SerializationError
from pravega_serde.java import ClassDescriptor, JavaSerializer
from pravega_serde.json import JsonSerializer
from pravega_serde.json.rows import ObjectLimit, strip
from pravega_serde.serializer import OnError, Serializer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TypedSerializer", "typed"]

T = TypeVar("T")

#: Memory of an object with a dict of its own, and of a field in it.
_OBJECT: Final = 200
_FIELD: Final = 32


class TypedSerializer(Generic[T]):
    """A serializer whose single values are objects of a class; made by :func:`typed`.

    Columns are the wrapped serializer's: they hold no objects.
    """

    def __init__(
        self, inner: Serializer[Any], kind: type[T], *, java_classes: Mapping[type, ClassDescriptor] | None = None
    ) -> None:
        self._inner, self._kind, self._java_classes = inner, kind, java_classes
        self._class = kind if members_of(kind) is not None and not hasattr(kind, "__total__") else None
        self._dump, self._load = _halves(inner, kind, java_classes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._inner, self._kind, self._java_classes)

    def __repr__(self) -> str:
        return f"typed({self._inner!r}, {name_of(self._kind)})"

    @property
    def arrow_type(self) -> pa.DataType:
        """The wrapped serializer's."""
        return self._inner.arrow_type

    def serialize(self, value: T) -> bytes:
        """The event of an object of the class; :class:`SerializationError` for any other."""
        if self._class is not None and not isinstance(value, self._class):
            raise SerializationError(f"a {name_of(type(value))} where a {name_of(self._kind)} is expected")
        return self._inner.serialize(self._dump(value))

    def deserialize(self, data: bytes) -> T:
        """The object of an event; :class:`DeserializationError` names the field that does not fit the class."""
        made: T = self._load(data)
        return made

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """As the wrapped serializer's."""
        self._inner.check_encodable(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """As the wrapped serializer's."""
        return self._inner.encode_column(column)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """As the wrapped serializer's."""
        return self._inner.decode_column(column, on_error=on_error)


def typed(
    serializer: Serializer[Any], kind: type[T], *, java_classes: Mapping[type, ClassDescriptor] | None = None
) -> TypedSerializer[T]:
    """The serializer with objects of ``kind`` instead of plain values: ``typed(JsonSerializer(), Order)``.

    ``kind`` is a dataclass, msgspec Struct, attrs class, TypedDict or pydantic model, or a type made of those, such as
    ``list[Order]``. Fields are found by their names, enums are written by their values; numbers and texts become
    datetimes, decimals, UUIDs where the class says so.

    Java objects know their classes: ``java_classes`` gives each class's descriptor, ``{Order: ORDER, Line: LINE}``,
    enums among them. That of ``kind`` itself can be left to a JavaSerializer that has one.

    Raises :class:`SchemaError` for a type that cannot be converted.
    """
    return TypedSerializer(serializer, kind, java_classes=java_classes)


def _halves(
    inner: Serializer[Any], kind: Any, java_classes: Mapping[type, ClassDescriptor] | None
) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """How an object becomes the wrapped serializer's value, and how an event becomes an object."""
    conversion = conversion_of(kind)
    if isinstance(inner, JavaSerializer):
        java = JavaConversion(inner, kind, java_classes or {}, conversion)
        return java.dump, java.load
    if java_classes is not None:
        raise SchemaError(f"java_classes are for the Java format, not for {inner!r}")
    if isinstance(inner, JsonSerializer):
        return conversion.dump, _json_reader(inner, conversion, ObjectLimit(_heaviest(kind)))
    if isinstance(inner, _HasDicts):
        as_dict = inner.as_dict
        return conversion.dump_with_durations, lambda data: conversion.load(as_dict(inner.deserialize(data)))
    return conversion.dump, lambda data: conversion.load(inner.deserialize(data))


@runtime_checkable
class _HasDicts(Protocol):
    """A serializer whose values are objects of their own, as those of Protobuf are messages."""

    def as_dict(self, value: Any) -> Any:
        """The object as natural values."""


def _json_reader(inner: JsonSerializer, conversion: Conversion, limit: ObjectLimit) -> Callable[[bytes], Any]:
    """Text is decoded into the class itself, which keeps the digits of decimals and makes no values in between."""

    def read(data: bytes) -> Any:
        if inner.schema is not None:
            inner.deserialize(data)
        if limit.may_be_exceeded(data):
            limit.check(data, inner.deserialize(data))
        return conversion.load_json(strip(data))

    return read


def _heaviest(kind: Any) -> int:
    """Bytes that an object of the largest class in a type takes, all its fields being defaults."""
    widths = [len(members) for members in map(members_of, classes_in(kind)) if members is not None]
    return max((_OBJECT + _FIELD * width for width in widths), default=0)


def _rebuild(inner: Any, kind: Any, java_classes: Any) -> TypedSerializer[Any]:
    return TypedSerializer(inner, kind, java_classes=java_classes)
