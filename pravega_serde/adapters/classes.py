"""Inspection of application classes: their fields, for every supported library, and their Arrow type."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import pyarrow as pa

from pravega_serde.errors import SchemaError


class Member(NamedTuple):
    """Field of a class."""

    attribute: str
    name: str
    """Name in events. The class may rename the field."""
    type: Any


def is_model(kind: Any) -> bool:
    """Return True for a pydantic model or a pydantic dataclass, without importing pydantic."""
    return isinstance(kind, type) and "__pydantic_fields__" in vars(kind)


def unwrapped(kind: Any) -> Any:
    """Return the type inside ``Annotated``, ``NewType``, a type alias, ``Final`` and markers of TypedDict's keys."""
    while True:
        if typing.get_origin(kind) in _WRAPPERS:
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        else:
            return kind


_WRAPPERS: Final = (typing.Annotated, typing.Final, typing.NotRequired, typing.Required)


def members_of(kind: Any) -> tuple[Member, ...] | None:
    """Return the fields of a class, or None for other types.

    A class is a dataclass, Struct, attrs class, TypedDict, NamedTuple or pydantic model, also with type arguments.
    """
    if is_model(kind):
        fields = kind.__pydantic_fields__.items()
        return tuple(Member(name, info.serialization_alias or name, info.annotation) for name, info in fields)
    origin = typing.get_origin(kind) or kind
    names = _names(origin)
    if names is None:
        return None
    hints = _hints(origin)
    given = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(kind), strict=False))
    return tuple(Member(attribute, name, _with_arguments(hints[attribute], given)) for attribute, name in names)


def _with_arguments(kind: Any, given: Mapping[Any, Any]) -> Any:
    """Return a type with the arguments of a generic class in place of its parameters."""
    if isinstance(kind, typing.TypeVar):
        return given.get(kind, kind)
    parameters = getattr(kind, "__parameters__", ())
    return kind[tuple(given.get(each, each) for each in parameters)] if given and parameters else kind


def is_named_tuple(kind: Any) -> bool:
    """Return True for a NamedTuple with types."""
    return (
        isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields") and bool(kind.__annotations__)
    )


def _names(kind: Any) -> list[tuple[str, str]] | None:
    if not isinstance(kind, type):
        return None
    renamed = getattr(kind, "__struct_encode_fields__", None)
    if renamed is not None:
        return list(zip(getattr(kind, "__struct_fields__", ()), renamed, strict=True))
    if dataclasses.is_dataclass(kind):
        return [(entry.name, entry.name) for entry in dataclasses.fields(kind)]
    if hasattr(kind, "__attrs_attrs__"):
        return [(entry.name, entry.name) for entry in kind.__attrs_attrs__]
    if typing.is_typeddict(kind) or is_named_tuple(kind):
        return [(name, name) for name in kind.__annotations__]
    return None


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except NameError as error:
        raise SchemaError(f"the annotations of {name_of(kind)} cannot be resolved: {error}") from error


def types_in(kind: Any) -> Iterator[Any]:
    """Yield a type and all types inside it, each once: arguments of generic types, fields of classes."""
    seen: list[Any] = []
    waiting = [kind]
    while waiting:
        kind = unwrapped(waiting.pop())
        # Compared with equality, because the metadata of an Annotated may not be hashable.
        if kind in seen:
            continue
        seen.append(kind)
        yield kind
        waiting += typing.get_args(kind)
        waiting += [member.type for member in members_of(kind) or ()]


def classes_in(kind: Any) -> Iterator[type]:
    """Yield the classes among the types inside a type."""
    found = (typing.get_origin(inner) or inner for inner in types_in(kind))
    return (each for each in found if isinstance(each, type))


def name_of(kind: Any) -> str:
    """Return a type's name as written in Python."""
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


#: Arrow types of single values.
SCALARS: Final[dict[Any, pa.DataType]] = {
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us", "UTC"),
    # Same precision and scale as in Spark's encoders.
    Decimal: pa.decimal128(38, 18),
    float: pa.float64(),
    int: pa.int64(),
    str: pa.string(),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
    type(None): pa.null(),
    UUID: pa.string(),
}


def arrow_type_of(kind: Any) -> pa.DataType:
    """Return the Arrow type of a class, for example for ``JsonSerializer(arrow_type=...)``.

    ``int`` becomes int64, ``datetime`` a timestamp in UTC, ``Decimal`` decimal128(38, 18), an enum a string. Optional
    and msgspec's ``UnsetType`` have no effect, because every column can be null. Raises :class:`SchemaError` for a
    union of several types, a class that contains itself, and other types without columns.
    """
    return _type_of(kind, ())


def _type_of(kind: Any, inside: tuple[Any, ...]) -> pa.DataType:
    kind = unwrapped(kind)
    if kind in inside:
        raise SchemaError(f"{name_of(kind)} contains itself, which Arrow types do not support")
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(kind, inside)
    members = members_of(kind)
    if members is not None:
        return pa.struct([(member.name, _type_of(member.type, (*inside, kind))) for member in members])
    if origin is typing.Literal:
        return _literal(kind, arguments)
    if isinstance(origin, type):
        # The items of a tuple have one type in a column.
        same = arguments[:1] if origin is tuple and len(set(arguments)) == 1 else arguments
        return _container(kind, origin, [each for each in same if each is not Ellipsis], inside)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return pa.string()
    if kind not in SCALARS:
        raise SchemaError(f"{name_of(kind)} has no Arrow type; set the type of the columns yourself")
    return SCALARS[kind]


def _literal(kind: Any, values: tuple[Any, ...]) -> pa.DataType:
    kinds = {str if isinstance(value, enum.Enum) else type(value) for value in values if value is not None}
    if len(kinds) != 1:
        raise SchemaError(f"{kind} has no single Arrow type")
    return _type_of(kinds.pop(), ())


def _union(kind: Any, inside: tuple[Any, ...]) -> pa.DataType:
    others = [each for each in typing.get_args(kind) if each not in (type(None), msgspec.UnsetType)]
    if len(others) != 1:
        raise SchemaError(f"{kind} has no single Arrow type")
    return _type_of(others[0], inside)


def _container(kind: Any, origin: type, arguments: list[Any], inside: tuple[Any, ...]) -> pa.DataType:
    if issubclass(origin, Mapping) and len(arguments) == 2:
        return pa.map_(_type_of(arguments[0], inside), _type_of(arguments[1], inside))
    if issubclass(origin, Iterable) and len(arguments) == 1:
        return pa.list_(pa.field("element", _type_of(arguments[0], inside)))
    raise SchemaError(f"{kind} has no Arrow type")
