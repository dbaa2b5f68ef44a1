"""Plain values of objects in the form of all formats, and in the form that msgspec and pydantic read.

msgspec and pydantic write an enum as its value, while Java writes a constant's name. msgspec skips private attributes
of attrs classes, and does not read JSON's texts of NaN. This module has what differs.
"""

from __future__ import annotations

import binascii
import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping, MutableSet, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from pravega_serde.adapters.classes import (
    Member,
    class_of,
    is_enum,
    is_named_tuple,
    members_of,
    name_of,
    root_of,
    struct_config,
    types_in,
    unwrapped,
)
from pravega_serde.adapters.defaults import required_names
from pravega_serde.columnar import MalformedError
from pravega_serde.errors import SchemaError

#: Types that the formats convert. UUIDs become text, which every format with UUIDs accepts.
NATURAL: Final = (bytes, bytearray, memoryview, datetime, date, time, Decimal)

_SCALARS: Final = frozenset({type(None), bool, int, float, str, *NATURAL})


def plain(value: Any, natural: tuple[type, ...] = NATURAL) -> Any:
    """Return the dicts, lists and scalars of an object. An enum becomes its name, and UNSET is left out."""
    kind: Any = type(value)
    if kind in _SCALARS or isinstance(value, natural):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    members = _members(kind)
    if members is not None:
        return _object(value, members, natural)
    if isinstance(value, Mapping):
        return {_key(key, natural): plain(inner, natural) for key, inner in value.items()}
    if isinstance(value, list | tuple | Set):
        return [plain(inner, natural) for inner in value]
    return msgspec.to_builtins(value, builtin_types=natural)


_members: Final = lru_cache(maxsize=256)(members_of)
_required: Final = lru_cache(maxsize=256)(required_names)


def _key(key: Any, natural: tuple[type, ...]) -> Any:
    return plain(key, natural) if isinstance(key, enum.Enum | UUID) else key


def _object(value: Any, members: tuple[Member, ...], natural: tuple[type, ...]) -> Any:
    config = getattr(value, "__struct_config__", None)
    if config is not None and config.array_like:  # a position names the field, so none is left out
        items = [plain(getattr(value, attribute), natural) for attribute, _, _ in members]
        return items if config.tag is None else [config.tag, *items]
    made = {name: plain(found, natural) for name, found in _fields(value, members)}
    return made if config is None or config.tag is None else {config.tag_field: config.tag, **made}


def _fields(value: Any, members: tuple[Member, ...]) -> Iterable[tuple[str, Any]]:
    config = getattr(value, "__struct_config__", None)
    defaults = _defaults(value.__class__) if config is not None and config.omit_defaults else {}
    for attribute, name, _ in members:
        found = getattr(value, attribute)
        if found is not msgspec.UNSET and not (attribute in defaults and _is_default(found, defaults[attribute])):
            yield name, found


def _is_default(value: Any, field: msgspec.structs.FieldInfo) -> bool:
    """Return True for a default as msgspec omits it. An equal value may be another one: -0.0, or 1.00 as a decimal."""
    return value is field.default or (type(value) is field.default_factory and not value)


@lru_cache(maxsize=256)
def _defaults(kind: Any) -> dict[str, msgspec.structs.FieldInfo]:
    return {each.name: each for each in msgspec.structs.fields(kind)}


# ---- what differs ----


def differs(kind: Any) -> bool:
    """Return True if msgspec would write objects of a type in another form."""
    return any(_differs(inner) for inner in types_in(kind))


def _differs(kind: Any) -> bool:
    return (
        is_open(kind)
        or is_named_tuple(kind)
        or has_values(kind)
        or any(each.attribute.startswith("_") for each in members_of(kind) or ())
    )


def is_open(kind: Any) -> bool:
    """Return True for a type that does not tell the type of its values, or of the values in it."""
    return kind in (Any, object, list, dict, set, frozenset, tuple) or isinstance(kind, typing.TypeVar)


def has_values(kind: Any) -> bool:
    """Return True for an enum with values other than its names."""
    return is_enum(kind) and any(member.value != name for name, member in kind.__members__.items())


# ---- reading ----

#: Function that returns a plain value as msgspec or pydantic reads it; raises :class:`MalformedError`.
Revise = Callable[[Any], Any]

#: Types that some formats write as text.
_FROM_TEXT: Final = (UUID, timedelta, time, date, datetime)
#: Types that all formats write as lists.
_COLLECTIONS: Final[dict[Any, Callable[[Any], Any]]] = {
    **{each: each for each in (set, frozenset, tuple)},
    MutableSet: set,
    Set: frozenset,
}

_NOT_FINITE: Final = {text: float(text) for text in ("NaN", "Infinity", "-Infinity")}


class Revision(NamedTuple):
    """Preparation of plain values for msgspec or pydantic."""

    revise: Revise
    always: bool
    """False if msgspec reads the values without it, or raises an error."""


def revision_of(kind: Any, *, json: bool = False, python: bool = False) -> Revision:
    """Return the preparation of plain values of a type.

    It replaces names by values of enums, and JSON's texts of NaN and infinities by numbers. Null
    becomes UNSET if the type has no null. With ``json``, decimals become floats where no type is declared. With
    ``python``, values get the type that a strict model of pydantic requires: names become constants, lists sets and
    tuples, text UUIDs and times, and in JSON bytes. Other values remain, and msgspec or pydantic reports them.
    """
    made = _Reviser(json=json, python=python)
    return Revision(made.of(kind), made.always)


class _Reviser:
    def __init__(self, *, json: bool, python: bool) -> None:
        self.always = False
        self._json = json
        self._python = python
        self._classes: list[tuple[Any, list[Revise]]] = []

    def of(self, kind: Any) -> Revise:  # noqa: PLR0911
        kind = root_of(unwrapped(kind))
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if kind is float:
            return _number
        if self._json and is_open(kind):
            return _floats
        if self._python and self._json and kind in (bytes, Decimal):
            return _from_base64 if kind is bytes else _decimal
        if self._python and kind in _FROM_TEXT:
            return _from_text(kind)
        if is_enum(kind):
            self.always |= has_values(kind)
            return _constants(kind, python=self._python) if self._python or has_values(kind) else _itself
        if origin is typing.Literal and any(isinstance(each, enum.Enum) for each in arguments):
            return self._needed(_literals(arguments))
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if members_of(kind) is not None:
            return self._class(kind)
        if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
            key = unwrapped(arguments[0])
            number = self._python and self._json and key in (int, float)
            return _entries(_from_text(key, strict=False) if number else self.of(key), self.of(arguments[1]))
        revise = self._list(origin, arguments) if isinstance(origin, type) else _itself
        make = _COLLECTIONS.get(origin or kind) if self._python else None
        return revise if make is None else _collected(make, revise)

    def _list(self, origin: type, arguments: tuple[Any, ...]) -> Revise:
        if issubclass(origin, tuple) and arguments[-1:] != (Ellipsis,):
            return self._tuple([self.of(each) for each in arguments])
        return _items(self.of(arguments[0])) if arguments and issubclass(origin, Iterable) else _itself

    def _needed(self, revise: Revise) -> Revise:
        self.always = True
        return revise

    def _tuple(self, parts: list[Revise]) -> Revise:
        return lambda value: (
            [_at(index, revise, inner) for index, (revise, inner) in enumerate(zip(parts, value, strict=True))]
            if isinstance(value, list | tuple) and len(value) == len(parts)
            else value
        )

    def _union(self, arguments: tuple[Any, ...]) -> Revise:
        others = [root_of(unwrapped(each)) for each in arguments if each not in (type(None), msgspec.UnsetType)]
        if len(others) == 1:
            return _nullable(self.of(others[0]))
        texts = [each for each in others if each is str or is_enum(each)]
        if len(texts) > 1 and any(map(has_values, texts)):
            names = " and ".join(map(name_of, texts))
            raise SchemaError(
                f"{names} in one union are both written as text, which cannot be read back; use one of them"
            )
        records = [each for each in others if members_of(each) is not None]
        # The text of a NaN is a number only if it cannot be text. It is no Base64.
        others.sort(key=lambda each: (each is bytes or each in _FROM_TEXT, each is float))
        forms = [(each, self.of(each), None if len(records) == 1 else tags_of(each)) for each in others]

        def revise(value: Any) -> Any:
            for kind, revise_one, tags in forms:
                if _may_be(kind, value, tags):
                    return revise_one(value)
            return value

        return revise

    def _class(self, kind: Any) -> Revise:
        for known, compiled in self._classes:
            if known == kind:
                return _later(compiled)
        made: list[Revise] = []
        self._classes.append((kind, made))
        members = members_of(kind) or ()
        fields = [(each.name, self.of(each.type), self._skips_null(each)) for each in members]
        as_list = is_named_tuple(kind)
        config = struct_config(kind)
        if as_list:
            self.always = True
        defaults = getattr(class_of(kind), "_field_defaults", {})

        def revise(value: Any) -> Any:
            if isinstance(value, list) and config is not None:
                return _positions(value, config, fields)
            if not isinstance(value, Mapping):
                return value
            found = {**value}
            for name, revise_field, skips_null in fields:
                if name in found:
                    if found[name] is None and skips_null:
                        del found[name]
                    else:
                        found[name] = _within(f".{name}", revise_field, found[name])
            if as_list:
                missing = [name for name, _, _ in fields if name not in found and name not in defaults]
                if missing:
                    raise MalformedError(f"the required field {missing[0]!r} is missing")
                return [found.get(name, defaults.get(name)) for name, _, _ in fields]
            return found

        made.append(revise)
        return revise

    def _skips_null(self, member: Member) -> bool:
        arguments = typing.get_args(unwrapped(member.type))
        skips = msgspec.UnsetType in arguments and type(None) not in arguments
        self.always |= skips
        return skips


def _later(made: list[Revise]) -> Revise:
    """Return the function of a class inside itself, which is complete when it is called."""
    return lambda value: made[0](value)


def _itself(value: Any) -> Any:
    return value


def _nullable(revise: Revise) -> Revise:
    return revise if revise in (_itself, _number) else lambda value: None if value is None else revise(value)


def _number(value: Any) -> Any:
    return _NOT_FINITE.get(value, value) if type(value) is str else value


def _floats(value: Any) -> Any:
    """Return a value of JSON with floats in place of decimals, as a reader without a class returns it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _floats(inner) for key, inner in value.items()}
    return [_floats(inner) for inner in value] if isinstance(value, list) else value


def _constants(kind: type[enum.Enum], *, python: bool) -> Revise:
    """Return the preparation of names. Pydantic has to read constants: other values may equal the value of one."""
    constants = {name: member if python else member.value for name, member in kind.__members__.items()}

    def revise(value: Any) -> Any:
        if type(value) is not str or value not in constants:
            raise MalformedError(f"{str(value)[:60]!r} is not the name of a constant of {name_of(kind)}")
        return constants[value]

    return revise


def _literals(values: tuple[Any, ...]) -> Revise:
    """Return the preparation of literals, where pydantic reads only the constant of an enum itself."""
    constants = {each.name: each for each in values if isinstance(each, enum.Enum)}
    return lambda value: constants.get(value, value) if type(value) is str else value


def _from_base64(value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError as error:
        raise MalformedError(f"invalid Base64: {error}") from None


def _decimal(value: Any) -> Any:
    return Decimal(value) if type(value) is int else value


def _from_text(kind: Any, *, strict: bool = True) -> Revise:
    def revise(value: Any) -> Any:
        try:
            return msgspec.convert(value, kind, strict=strict) if type(value) is str else value
        except msgspec.ValidationError:  # pydantic reads more forms of text, or reports it
            return value

    return revise


def _collected(make: Callable[[Any], Any], revise: Revise) -> Revise:
    def collect(value: Any) -> Any:
        value = revise(value)
        try:
            return make(value) if isinstance(value, list) else value
        except TypeError:  # a set of values that are not objects yet
            return value

    return collect


def _within(step: str, revise: Revise, value: Any) -> Any:
    try:
        return revise(value)
    except MalformedError as error:
        raise error.within(step) from error


def _at(index: int, revise: Revise, value: Any) -> Any:
    return _within(f"[{index}]", revise, value)


def _items(revise: Revise) -> Revise:
    if revise is _itself:
        return _itself
    return lambda value: (
        [_at(index, revise, inner) for index, inner in enumerate(value)] if isinstance(value, list | tuple) else value
    )


def _entries(key: Revise, item: Revise) -> Revise:
    if key is item is _itself:
        return _itself
    return lambda value: (
        {_within(f".{name}", key, name): _within(f".{name}", item, inner) for name, inner in value.items()}
        if isinstance(value, Mapping)
        else value
    )


def _positions(value: list[Any], config: Any, fields: list[tuple[str, Revise, bool]]) -> list[Any]:
    """Revise the values of a Struct that is written as a list, with its tag before them."""
    start = 0 if config.tag is None else 1
    made = [
        _at(start + index, each[1], inner)
        for index, (each, inner) in enumerate(zip(fields, value[start:], strict=False))
    ]
    return [*value[:start], *made, *value[start + len(fields) :]]


def _may_be(kind: Any, value: Any, tags: Mapping[str, tuple[Any, ...]] | None) -> bool:
    """Return True if a plain value may be one of a type of a union. ``tags`` are None for its only class."""
    origin = class_of(kind)
    if _members(kind) is not None:
        return isinstance(value, Mapping | list) and (tags is None or _names_class(kind, value, tags))
    if is_enum(kind):
        return isinstance(value, str) and value in kind.__members__
    if kind is Decimal or kind in (str, bytes, float, *_FROM_TEXT):
        return type(value) is (int if kind is Decimal else str) and (kind is not float or value in _NOT_FINITE)
    if origin is typing.Literal:
        return value in map(plain, typing.get_args(kind))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping)
    return isinstance(value, list) if isinstance(origin, type) and issubclass(origin, list | tuple | Set) else False


def _names_class(kind: Any, value: Any, tags: Mapping[str, tuple[Any, ...]]) -> bool:
    """Return True if a value has the tag of a Struct, or a model's required fields and literals, and no others."""
    config = struct_config(kind)
    if config is not None and config.tag is not None:
        tag = value[:1] == [config.tag] if isinstance(value, list) else value.get(config.tag_field) == config.tag
        return bool(tag)
    if not isinstance(value, Mapping):
        return False
    if not _required(kind) <= value.keys() <= {each.name for each in _members(kind) or ()}:
        return False
    return all(value[name] in values for name, values in tags.items() if name in value)


def tags_of(kind: Any) -> Mapping[str, tuple[Any, ...]]:
    """Return the fields of a class that always have certain values, such as the tag of a Struct, and those values."""
    config = struct_config(kind)
    found = {} if config is None or config.tag is None else {config.tag_field: (config.tag,)}
    for member in members_of(kind) or ():
        one = unwrapped(member.type)
        if typing.get_origin(one) is typing.Literal:
            found[member.name] = tuple(plain(value) for value in typing.get_args(one))
    return found
