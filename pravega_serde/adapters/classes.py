"""Inspection of application classes: their fields, for every supported library, and their Arrow type."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Generic, NamedTuple, Protocol
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


def is_enum(kind: Any) -> bool:
    """Return True for an enum."""
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def class_of(kind: Any) -> Any:
    """Return the class of a generic type with arguments, such as Box of ``Box[int]``. Other types are returned."""
    return typing.get_origin(kind) or kind


def struct_config(kind: Any) -> Any:
    """Return the configuration of a Struct, also with type arguments. None for other types."""
    return getattr(class_of(kind), "__struct_config__", None)


def unwrapped(kind: Any) -> Any:
    """Return the type inside ``Annotated``, ``NewType``, a type alias, ``Final`` and markers of TypedDict's keys.

    A TypeVar with constraints, such as AnyStr, is their union.
    """
    while True:
        if typing.get_origin(kind) in _WRAPPERS:
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif type(alias := typing.get_origin(kind)).__name__ == "TypeAliasType":  # with type arguments
            kind = _with_arguments(
                alias.__value__, dict(zip(alias.__type_params__, typing.get_args(kind), strict=True))
            )
        elif isinstance(kind, typing.TypeVar) and kind.__constraints__:
            kind = typing.Union[kind.__constraints__]  # noqa: UP007 -- a variable number
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
    origin = class_of(kind)
    names = _names(origin)
    if names is None:
        return None
    hints, given = _hints(origin), _arguments_of(kind)
    for attribute, _ in names:
        if attribute not in hints:
            raise SchemaError(f"{origin.__name__}.{attribute} has no annotation: add its type")
    return tuple(
        Member(attribute, name, _with_arguments(hints[attribute], given.get(_declaring(origin, attribute), {})))
        for attribute, name in names
    )


def written_members(kind: Any) -> tuple[Member, ...]:
    """Return the fields that objects of a class are written with: with pydantic's computed fields, without excluded.

    Raises :class:`SchemaError` for a field that a function of the class writes, whose type is unknown.
    """
    members = members_of(kind) or ()
    if not is_model(kind):
        return members
    for member in members:
        if _has_serializer(kind, member.attribute):
            raise SchemaError(
                f"{name_of(kind)}.{member.attribute} has its own serializer, so the type of its events is unknown; "
                "remove the serializer, or set the schema or columns yourself"
            )
    computed = kind.__pydantic_decorators__.computed_fields
    return (
        *(each for each in members if kind.__pydantic_fields__[each.attribute].exclude is not True),
        *(Member(name, each.info.alias or name, each.info.return_type) for name, each in computed.items()),
    )


def _has_serializer(kind: Any, name: str) -> bool:
    """Return True for a field that a function of a model writes, or an annotation of the field."""
    info, decorators = kind.__pydantic_fields__[name], kind.__pydantic_decorators__
    functions = [each.info for each in decorators.field_serializers.values() if {name, "*"} & {*each.info.fields}]
    functions += [each.info for each in decorators.model_serializers.values()]
    return any(map(_is_serializer, [*functions, *info.metadata, *annotations_in(info.annotation)]))


def has_serializer(kind: Any) -> bool:
    """Return True for a type with models, or types of their fields, that functions of an application write."""
    return any(
        _is_serializer(each)
        or (hasattr(each, "__get_pydantic_core_schema__") and isinstance(each, type) and not is_model(each))
        for each in annotations_in(kind)
        if getattr(each, "__module__", "").partition(".")[0] != "pydantic" or hasattr(each, "when_used")
    )


def _is_serializer(annotation: Any) -> bool:
    """Return True for a function of pydantic that writes a value. ``dump_python`` does not use those for JSON."""
    used = getattr(annotation, "when_used", "json")
    return isinstance(used, str) and not used.startswith("json")


def annotations_in(kind: Any) -> Iterator[Any]:
    """Yield the types inside a type with the metadata of Annotated, and the functions that write its models."""
    waiting: list[Any] = [kind]
    seen: dict[int, Any] = {}
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        yield each
        waiting += typing.get_args(each)
        waiting += [getattr(each, name) for name in ("__value__", "__supertype__") if hasattr(each, name)]
        if type(each).__name__ == "FieldInfo":
            waiting += [*each.metadata, each.annotation]
        elif is_model(each):
            decorators = each.__pydantic_decorators__
            written = [*decorators.field_serializers.values(), *decorators.model_serializers.values()]
            waiting += [*each.__pydantic_fields__.values(), *(one.info for one in written)]
        elif members_of(each) is not None:
            waiting += typing.get_type_hints(class_of(each), include_extras=True).values()


def root_of(kind: Any) -> Any:
    """Return the type of the value of a pydantic RootModel, which is written without its class. Others are returned."""
    while is_model(kind) and getattr(kind, "__pydantic_root_model__", False):
        kind = unwrapped(kind.__pydantic_fields__["root"].annotation)
    return kind


def _with_arguments(kind: Any, given: Mapping[Any, Any]) -> Any:
    """Return a type with the arguments of a generic class in place of its parameters."""
    if isinstance(kind, typing.TypeVar):
        return given.get(kind, kind)
    parameters = getattr(kind, "__parameters__", ())
    return kind[tuple(given.get(each, each) for each in parameters)] if given and parameters else kind


def _arguments_of(kind: Any) -> dict[Any, dict[Any, Any]]:
    """Return the arguments of a class and of its generic bases: for each of them, parameter -> type."""
    found: dict[Any, dict[Any, Any]] = {}
    waiting = [kind]
    while waiting:
        each = waiting.pop(0)
        origin = class_of(each)
        if origin in found:
            continue
        given = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(each), strict=False))
        found[origin] = given
        # Without arguments, the parameters of a base are its own.
        waiting += [base if isinstance(base, type) else _with_arguments(base, given) for base in _bases(origin)]
    return found


def _bases(kind: Any) -> tuple[Any, ...]:
    """Return the bases of a class with their arguments."""
    bases: tuple[Any, ...] = vars(kind).get("__orig_bases__", kind.__bases__)
    return tuple(each for each in bases if isinstance(class_of(each), type) and class_of(each) not in _MARKERS)


_MARKERS: Final = (Generic, Protocol)


def _declaring(kind: Any, attribute: str) -> Any:
    """Return the class that declares a field: a class itself, or one of its bases."""
    return next((each for each in kind.__mro__ if attribute in inspect.get_annotations(each)), kind)


def inherits_generic_keys(kind: Any) -> bool:
    """Return True for a TypedDict with keys of a generic base, whose arguments the libraries do not know."""
    origin = class_of(kind)
    if not typing.is_typeddict(origin):
        return False
    own = {*getattr(origin, "__parameters__", ())}
    hints = _hints(origin).values()
    used = {each for hint in hints for each in (hint, *getattr(hint, "__parameters__", ()))}
    unknown = any(isinstance(each, typing.TypeVar) and each not in own for each in used)
    return unknown or any(typing.is_typeddict(class_of(each)) and typing.get_args(each) for each in _bases(origin))


def is_named_tuple(kind: Any) -> bool:
    """Return True for a NamedTuple with types, or a class that inherits from it."""
    kind = class_of(kind)
    names = getattr(kind, "_fields", ()) if isinstance(kind, type) and issubclass(kind, tuple) else ()
    return bool(names) and all(name in inspect.get_annotations(_declaring(kind, name)) for name in names)


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
        return [(name, name) for name in getattr(kind, "_fields", kind.__annotations__)]
    return None


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except NameError as error:
        raise SchemaError(f"the annotations of {name_of(kind)} cannot be resolved: {error}") from error


def places_in(kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield a type and all types inside it, each once with its path: arguments of generic types, fields of classes.

    Raises :class:`SchemaError` for a type alias that contains itself, whose types would have no end.
    """
    seen: list[Any] = []
    waiting: list[tuple[str, Any, tuple[Any, ...]]] = [("$", kind, ())]
    while waiting:
        path, kind, around = waiting.pop()
        kind = unwrapped(kind)
        # Compared with equality, because the metadata of an Annotated may not be hashable.
        if kind in around:
            raise SchemaError(f"the type at {path} is an alias that contains itself; declare a class in its place")
        if kind in seen:
            continue
        seen.append(kind)
        yield path, kind
        members = members_of(kind)
        if members is not None:  # a class may contain itself
            waiting += [(f"{path}.{member.name}", member.type, ()) for member in members]
        arguments = typing.get_args(kind)
        if typing.get_origin(kind) is typing.Literal:
            continue
        step = _step(kind) if members is None else ""
        waiting += [(f"{path}{step}", argument, (*around, kind)) for argument in arguments]


def _step(kind: Any) -> str:
    """Return the step of a path from a type to its arguments."""
    origin = typing.get_origin(kind)
    if not isinstance(origin, type) or origin is types.UnionType:
        return ""
    return "{}" if issubclass(origin, Mapping) else "[]"


def types_in(kind: Any) -> Iterator[Any]:
    """Yield a type and all types inside it, each once."""
    return (inner for _, inner in places_in(kind))


def classes_in(kind: Any) -> Iterator[type]:
    """Yield the classes among the types inside a type."""
    found = map(class_of, types_in(kind))
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
    and msgspec's ``UnsetType`` have no effect, because every column can be null. The columns are those that objects are
    written with: with a Struct's tag and pydantic's computed fields. Raises :class:`SchemaError` for a union of several
    types, a class that contains itself, and other types without columns.
    """
    return _type_of(kind, (), "$")


def _type_of(kind: Any, inside: tuple[Any, ...], path: str) -> pa.DataType:
    kind = root_of(unwrapped(kind))
    if kind in inside:
        raise SchemaError(f"{name_of(kind)} (at {path}) contains itself, which Arrow types do not support")
    inside = (*inside, kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(kind, inside, path)
    if members_of(kind) is not None:
        return _struct(kind, inside, path)
    if origin is typing.Literal:
        return _literal(kind, arguments, path)
    if isinstance(origin, type):
        # The items of a tuple have one type in a column.
        same = arguments[:1] if origin is tuple and len(set(arguments)) == 1 else arguments
        return _container(kind, origin, [each for each in same if each is not Ellipsis], inside, path)
    if is_enum(kind):
        return pa.string()
    if kind not in SCALARS:
        raise _no_column(kind, path)
    return SCALARS[kind]


def _no_column(kind: Any, path: str) -> SchemaError:
    return SchemaError(f"{name_of(kind)} (at {path}) has no single Arrow type; set the type of the columns yourself")


def _struct(kind: Any, inside: tuple[Any, ...], path: str) -> pa.DataType:
    config = struct_config(kind)
    if config is not None and config.array_like:
        raise SchemaError(f"{name_of(kind)} (at {path}) is array_like, but columns have names; remove array_like")
    fields = [(each.name, _type_of(each.type, inside, f"{path}.{each.name}")) for each in written_members(kind)]
    if config is not None and config.tag is not None:
        fields.insert(0, (config.tag_field, SCALARS[type(config.tag)]))
    return pa.struct(fields)


def _literal(kind: Any, values: tuple[Any, ...], path: str) -> pa.DataType:
    kinds = {str if isinstance(value, enum.Enum) else type(value) for value in values if value is not None}
    if len(kinds) != 1:
        raise _no_column(kind, path)
    return _type_of(kinds.pop(), (), path)


def _union(kind: Any, inside: tuple[Any, ...], path: str) -> pa.DataType:
    others = [each for each in typing.get_args(kind) if each not in (type(None), msgspec.UnsetType)]
    if len(others) != 1:
        raise _no_column(kind, path)
    return _type_of(others[0], inside, path)


def _container(kind: Any, origin: type, arguments: list[Any], inside: tuple[Any, ...], path: str) -> pa.DataType:
    if issubclass(origin, Mapping) and len(arguments) == 2:
        key, item = (_type_of(each, inside, f"{path}{{}}") for each in arguments)
        if pa.types.is_null(key):
            raise _no_column(kind, path)
        return pa.map_(key, item)
    if issubclass(origin, Iterable) and len(arguments) == 1:
        return pa.list_(pa.field("element", _type_of(arguments[0], inside, f"{path}[]")))
    raise _no_column(kind, path)
