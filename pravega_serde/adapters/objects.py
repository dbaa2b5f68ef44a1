"""Wrapper of any serializer, which reads and writes objects of a class."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar, overload, runtime_checkable

from pravega_serde.adapters.checks import AVRO, CBOR, JAVA, JSON, PROTOBUF, Format, check_keys, check_unions
from pravega_serde.adapters.classes import (
    arrow_type_of,
    class_of,
    classes_in,
    has_serializer,
    is_model,
    members_of,
    name_of,
)
from pravega_serde.adapters.conversion import Conversion, conversion_of
from pravega_serde.adapters.exact_classes import exact_classes, is_exactly
from pravega_serde.adapters.java_objects import JavaConversion
from pravega_serde.adapters.shapes import SAME, Both, avro_shape, protobuf_shape
from pravega_serde.cbor import CborSerializer
from pravega_serde.cbor.scan import ALLOWED
from pravega_serde.columnar.limits import ObjectLimit
from pravega_serde.errors import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.java import ClassDescriptor, JavaSerializer
from pravega_serde.json import JsonSerializer
from pravega_serde.json.rows import strip
from pravega_serde.json.write_rows import TOO_DEEP
from pravega_serde.serializer_interface import HasDicts, OnError, Serializer, SerializerCalls

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")

#: Bytes of an object with its own dict, and of a field in it.
_OBJECT: Final = 200
_FIELD: Final = 32

#: Handling of events of a registered type without a class.
Others = Literal["error", "generic"]


@runtime_checkable
class _HasTypes(Protocol):
    """Serializer of a registry: each event names its type."""

    def with_objects(self, adapt: Callable[[str, Serializer[Any]], Any], *, others: Others) -> Serializer[Any]:
        """Return a serializer of objects. ``adapt`` returns the serializer of a type's payloads, or None."""


class TypedSerializer(SerializerCalls, Generic[T]):
    """Serializer with objects of a class, or of several, as single values. Create one with :func:`typed`.

    Columns are those of the wrapped serializer, or of the class if it has none. They do not hold objects.
    """

    def __init__(
        self,
        inner: Serializer[Any],
        kind: type[T] | Mapping[str, type[T]],
        *,
        java_classes: Mapping[type, ClassDescriptor] | None = None,
        others: Others = "error",
    ) -> None:
        self._inner, self._kind, self._java_classes, self._others = inner, kind, java_classes, others
        #: Class of the objects. None for several classes and for plain values.
        self.value_class: type | None = _value_class(kind)
        self._write, self._read = _halves(inner, kind, java_classes, others)
        names_types = isinstance(inner, _HasTypes | JavaSerializer)  # by one serializer each, or in the event
        self._check = None if names_types or isinstance(kind, Mapping) else exact_classes(kind)
        #: True if a read or a write may wait for a registry.
        self.read_may_block: bool = getattr(inner, "read_may_block", False)
        self.write_may_block: bool = getattr(inner, "write_may_block", False)
        #: True if equal values have equal events.
        self.is_deterministic: bool = getattr(inner, "is_deterministic", True)
        #: Content type of the events in an envelope.
        self.content_type: str = getattr(inner, "content_type", "application/octet-stream")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._inner, self._kind, self._java_classes, self._others)

    def __repr__(self) -> str:
        return f"typed({self._inner!r}, {_shown(self._kind)})"

    @cached_property
    def _columns(self) -> Serializer[Any]:
        """Serializer of columns: the wrapped one, or one with the columns of the class if it defines none."""
        inner = self._inner
        if isinstance(inner, JsonSerializer | CborSerializer) and not inner.has_columns:
            return inner.with_columns(arrow_type_of(self._kind))
        return inner

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of the wrapped serializer, or of the class if the format defines no columns.

        Raises :class:`SchemaError` for a class without columns: see :func:`arrow_type_of`.
        """
        return self._columns.arrow_type

    def serialize(self, value: T) -> bytes:
        """Return the event of an object of the class. Raises :class:`SerializationError` for any other value."""
        if self.value_class is not None and not is_exactly(value, self.value_class):
            raise SerializationError(f"expected a {name_of(self.value_class)}, not a {name_of(type(value))}")
        if self._check is not None:
            self._check(value)
        return self._write(value)

    def deserialize(self, data: bytes) -> T:
        """Return the object of an event.

        Raises :class:`DeserializationError`, which names the field that does not fit the class.
        """
        made: T = self._read(data)
        return made

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise the wrapped serializer's :class:`SchemaError` if columns do not fit."""
        self._inner.check_encodable(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the wrapped serializer's events of a column."""
        return self._inner.encode_column(column)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of a column of events, in :attr:`arrow_type`."""
        return self._columns.decode_column(column, on_error=on_error)


@overload
def typed(
    serializer: Serializer[Any],
    kind: type[T] | Mapping[str, type[T]],
    *,
    java_classes: Mapping[type, ClassDescriptor] | None = None,
    others: Literal["error"] = "error",
) -> TypedSerializer[T]: ...


@overload
def typed(
    serializer: type[T] | Mapping[str, type[T]],
    kind: Serializer[Any],
    *,
    java_classes: Mapping[type, ClassDescriptor] | None = None,
    others: Literal["error"] = "error",
) -> TypedSerializer[T]: ...


@overload
def typed(
    serializer: Serializer[Any] | types.UnionType,
    kind: Mapping[str, type] | types.UnionType | Serializer[Any],
    *,
    java_classes: Mapping[type, ClassDescriptor] | None = None,
    others: Others = "error",
) -> TypedSerializer[Any]: ...


def typed(
    serializer: Any,
    kind: Any,
    *,
    java_classes: Mapping[type, ClassDescriptor] | None = None,
    others: Others = "error",
) -> TypedSerializer[Any]:
    """Return a serializer of objects of ``kind`` instead of plain values: ``typed(JsonSerializer(), Order)``.

    The two arguments may be in either order. ``kind`` is a dataclass, msgspec Struct, attrs class, TypedDict or
    pydantic model, or a type that contains them, such as ``list[Order]``. Fields are matched by name, and enums are
    written as their names, as in Java. Numbers and texts become datetimes, decimals and UUIDs if the class has them.

    With a registry's serializer or deserializer, ``kind`` may be several classes. Pass a mapping from the names of the
    registered types, such as ``{"shop.Order": Order, "shop.Refund": Refund}``. Or pass the union ``Order | Refund``, if
    each class is named like the last part of its type. The class of each value tells its type. An event of another type
    raises :class:`DeserializationError`. With ``others="generic"``, it becomes a :class:`WithSchema` with the plain
    value and its schema, as in Java's ``avroTypedOrGenericDeserializer`` and similar.

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
    return TypedSerializer(serializer, kind, java_classes=java_classes, others=others)


def _is_serializer(value: object) -> bool:
    return not isinstance(value, type) and hasattr(value, "deserialize")


def _halves(
    inner: Serializer[Any], kind: Any, java_classes: Mapping[type, ClassDescriptor] | None, others: Others
) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return the functions that write and read the event of an object."""
    if java_classes is not None and not isinstance(inner, JavaSerializer):
        raise SchemaError(f"java_classes are for the Java format, not for {inner!r}")
    if isinstance(inner, _HasTypes):
        objects = inner.with_objects(_of_registered_types(kind, others), others=others)
        return objects.serialize, objects.deserialize
    if isinstance(kind, Mapping) or others != "error":
        raise SchemaError(
            f"several classes require a registry's serializer, whose events name their type, not {inner!r}; pass one "
            "class"
        )
    dump, load = _conversions(inner, kind, java_classes)
    if not (any(map(is_model, classes_in(kind))) and has_serializer(kind)):
        return lambda value: inner.serialize(dump(value)), load

    def checked(value: Any) -> bytes:
        event = inner.serialize(dump(value))
        try:
            found = load(event)
        except DeserializationError as error:
            raise SerializationError(f"{name_of(kind)} has a serializer whose event is not read: {error}") from error
        if found != value:
            raise SerializationError(
                f"{name_of(kind)} has a serializer whose event is read as another value; correct it, or add a validator"
            )
        return event

    return checked, load


def _of_registered_types(kind: Any, others: Others) -> Callable[[str, Serializer[Any]], TypedSerializer[Any] | None]:
    """Return the function that wraps the serializer of a registered type's payloads.

    Raises :class:`SchemaError` for classes that cannot be converted.
    """
    by_name = _classes_by_name(kind)
    if by_name is None and others != "error":
        raise SchemaError(f"others='generic' requires the names of the types: pass {{'type name': {_shown(kind)}}}")
    for each in [kind] if by_name is None else by_name.values():
        conversion_of(each)

    def wrap(name: str, payloads: Serializer[Any]) -> TypedSerializer[Any] | None:
        if by_name is None:
            return TypedSerializer(payloads, kind)
        last = _NAME_PARTS.split(name)[-1]
        chosen = by_name.get(name if isinstance(kind, Mapping) else last)
        return None if chosen is None else TypedSerializer(payloads, chosen)

    return wrap


def _classes_by_name(kind: Any) -> Mapping[str, Any] | None:
    """Return the classes of a mapping or of a union by the names of their types. None for a single type."""
    if isinstance(kind, Mapping):
        if not kind:
            raise SchemaError("typed requires at least one class")
        return dict(kind)
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return None
    classes = [each for each in typing.get_args(kind) if members_of(each) is not None]
    if len(classes) < 2:
        return None
    by_name = {class_of(each).__name__: each for each in classes}
    if len(by_name) != len(typing.get_args(kind)):
        raise SchemaError(f"{kind} must consist of classes with different names: pass {{'type name': class}} instead")
    return by_name


#: Separators in the names of registered types, as for the columns of several types.
_NAME_PARTS: Final = re.compile(r"[.$/]")


def _value_class(kind: Any) -> type | None:
    if isinstance(kind, Mapping) or members_of(kind) is None:
        return None
    found: type = class_of(kind)
    return None if typing.is_typeddict(found) else found


def _shown(kind: Any) -> str:
    if isinstance(kind, Mapping):
        return f"{{{', '.join(f'{name!r}: {name_of(each)}' for name, each in kind.items())}}}"
    return name_of(kind)


def _conversions(
    inner: Serializer[Any], kind: Any, java_classes: Mapping[type, ClassDescriptor] | None
) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """Return the conversions from an object to the wrapped serializer's value, and from an event to an object."""
    form = _format_of(inner)
    if form is not None:
        check_keys(kind, form)
        if form is not JAVA:  # whose values name their classes
            check_unions(kind, form)
    conversion = conversion_of(kind)
    conversion.check(json=isinstance(inner, JsonSerializer))
    if isinstance(inner, JavaSerializer):
        java = JavaConversion(inner, kind, java_classes or {}, conversion)
        return java.dump, java.load
    if isinstance(inner, JsonSerializer):
        return conversion.dump, _json_reader(inner, conversion, ObjectLimit(_heaviest(kind)))
    if isinstance(inner, CborSerializer):
        return conversion.dump, _cbor_reader(inner, conversion, ObjectLimit(_heaviest(kind), ALLOWED))
    if isinstance(inner, HasDicts):
        as_dict, message = inner.as_dict, getattr(inner, "message_class", None)
        shape = SAME if message is None else protobuf_shape(kind, message.DESCRIPTOR)
        return _shaped(shape, conversion.dump_with_durations, lambda data: as_dict(inner.deserialize(data)), conversion)
    schema = getattr(inner, "read_schema", None)
    shape = SAME if schema is None else avro_shape(kind, schema)
    return _shaped(shape, conversion.dump, inner.deserialize, conversion)


def _format_of(inner: Serializer[Any]) -> Format | None:
    """Return the limits of a serializer's format. None for a format of any values, such as functions."""
    if isinstance(inner, JavaSerializer):
        return JAVA
    if isinstance(inner, JsonSerializer):
        return JSON
    if isinstance(inner, CborSerializer):
        return CBOR
    if isinstance(inner, HasDicts):
        return PROTOBUF
    return AVRO if hasattr(inner, "read_schema") else None


def _shaped(
    shape: Both, dump: Callable[[Any], Any], read: Callable[[bytes], Any], conversion: Conversion
) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """Return the conversions of objects, with the shape of the values that the wrapped serializer writes and reads."""
    load = conversion.load
    if shape is SAME:
        return dump, lambda data: load(read(data))
    out, back = shape

    def shaped_dump(value: Any) -> Any:
        try:
            return out(dump(value))
        except RecursionError as error:
            raise SerializationError(TOO_DEEP) from error

    def shaped_load(data: bytes) -> Any:
        value = read(data)
        try:
            shaped = back(value)
        except RecursionError as error:
            raise LimitExceededError("objects nested beyond the interpreter's recursion limit") from error
        return load(shaped)

    return shaped_dump, shaped_load


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


def _rebuild(inner: Any, kind: Any, java_classes: Any, others: Others) -> TypedSerializer[Any]:
    return TypedSerializer(inner, kind, java_classes=java_classes, others=others)
