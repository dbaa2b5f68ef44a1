"""Conversion of objects of an application's classes to Java objects and back."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
from msgspec import UNSET

from pravega_serde.adapters.classes import Member, class_of, members_of, name_of
from pravega_serde.adapters.conversion import Conversion
from pravega_serde.errors import DeserializationError, LimitExceededError, SchemaError, SerializationError
from pravega_serde.java import Boolean, ClassDescriptor, JavaEnum, JavaKey, JavaObject, JavaSerializer
from pravega_serde.java.convert import MAX_SHARED
from pravega_serde.java.model import signature
from pravega_serde.java.values import JavaList, JavaMap, JavaSet
from pravega_serde.java.write_rows import coerce
from pravega_serde.json.write_rows import TOO_DEEP


@dataclass(frozen=True, slots=True)
class JavaType:
    """Java class of a value, for annotations: ``list[Annotated[int, JavaType("java.lang.Long")]]``.

    Without it, a value inside a collection or in a field of type ``Object`` is written in the default class of its
    Python type, such as ``Integer`` for a small ``int``. Only the Java format uses it.
    """

    name: str
    """Name in Java source syntax: ``java.lang.Long``, ``java.util.LinkedList``, ``java.lang.String[]``."""

    def of(self, value: Any) -> Any:
        """Convert a value to this class. Raises :class:`SerializationError` for a value that the class cannot hold."""
        made = coerce(value, signature(self.name))
        for kind, container in _CONTAINERS.items():
            if type(made) is kind and self.name != container.default:
                return container.make(made, self.name)
        return made


class _Container(NamedTuple):
    make: Callable[[Any, str], Any]
    default: str


_CONTAINERS: Final[dict[type, _Container]] = {
    list: _Container(JavaList, "java.util.ArrayList"),
    set: _Container(JavaSet, "java.util.HashSet"),
    dict: _Container(JavaMap, "java.util.HashMap"),
}


class JavaConversion:
    """Conversion of objects of one class to Java objects and back, with the descriptors of their classes."""

    def __init__(
        self, serializer: JavaSerializer, kind: Any, classes: Mapping[type, ClassDescriptor], conversion: Conversion
    ) -> None:
        self._deserialize, self._load, self._kind = serializer.deserialize, conversion.load, kind
        described = dict(classes)
        if isinstance(serializer.java_type, ClassDescriptor):
            described.setdefault(class_of(kind), serializer.java_type)
        self._expected = described.get(class_of(kind)) if isinstance(class_of(kind), type) else None
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
        try:
            return {self._java(item) for item in value}
        except TypeError as error:
            raise SerializationError(f"a set of these values has no form in Java: {error}; use a list") from error

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {self._java(key): self._java(item) for key, item in value.items()}

    def _maker(self, kind: type, descriptor: ClassDescriptor) -> Callable[[Any], Any]:
        if issubclass(kind, enum.Enum):
            return {constant: JavaEnum(descriptor, constant.name) for constant in kind}.__getitem__
        members = members_of(kind)
        if members is None:
            raise SchemaError(f"{name_of(kind)} has no fields that a Java object can have")
        return self._object_maker(members, typing.get_type_hints(kind, include_extras=True), descriptor)

    def _object_maker(
        self, members: Sequence[Member], hints: Mapping[str, Any], descriptor: ClassDescriptor
    ) -> Callable[[Any], JavaObject]:
        positions = descriptor.positions
        unknown = [member.name for member in members if member.name not in positions]
        if unknown:
            known = ", ".join(descriptor.field_names)
            raise SchemaError(f"{descriptor.name} has no serializable field {unknown[0]!r}; it has {known}")
        parts = [(each.attribute, positions[each.name], self._writer(hints[each.attribute])) for each in members]
        defaults = descriptor.new().data

        def make(value: Any) -> JavaObject:
            made = JavaObject(descriptor, defaults)
            for attribute, at, write in parts:
                found = getattr(value, attribute)
                made.data[at] = write(None if found is UNSET else found)
            return made

        return make

    def _writer(self, kind: Any) -> Callable[[Any], Any]:
        """Return the conversion of values of a declared type, which follows the :class:`JavaType` in it."""
        if not _names_java(kind):
            return self._java
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            inner = self._writer(arguments[0])
            named = next((each for each in arguments[1:] if isinstance(each, JavaType)), None)
            return inner if named is None else lambda value: named.of(inner(value))
        if origin in (typing.Union, types.UnionType):
            (one,) = [each for each in arguments if each is not type(None)][:1]
            inner = self._writer(one)
            return lambda value: None if value is None else inner(value)
        if origin is dict:
            key, item = map(self._writer, arguments)
            return lambda value: {key(each): item(inside) for each, inside in value.items()}
        if origin in (list, set):
            (element,) = map(self._writer, arguments)
            return lambda value: origin(element(each) for each in value)
        raise SchemaError(f"a JavaType can be in a list, a set, a dict and an optional value, not in {kind}")


def _names_java(kind: Any) -> bool:
    """Return True if a type or one of its arguments has a :class:`JavaType`."""
    return isinstance(kind, JavaType) or any(map(_names_java, typing.get_args(kind)))


def _check_class(value: Any, wanted: ClassDescriptor) -> None:
    chain = value.descriptor.hierarchy if isinstance(value, JavaObject | JavaEnum) else ()
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
