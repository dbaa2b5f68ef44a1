"""Checks of classes when ``typed`` is called: types whose values a format cannot write, or cannot tell apart."""

from __future__ import annotations

import enum
import itertools
import types
import typing
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from pravega_serde.adapters.classes import (
    class_of,
    classes_in,
    is_enum,
    is_model,
    members_of,
    name_of,
    places_in,
    root_of,
    struct_config,
    types_in,
    unwrapped,
)
from pravega_serde.adapters.defaults import optional_keys, required_names
from pravega_serde.adapters.forms import alternatives_of, options_of
from pravega_serde.adapters.plain import has_values, is_open, plain
from pravega_serde.errors import SchemaError


class Format(NamedTuple):
    """Types that a format cannot tell apart, and those of the keys of its maps."""

    name: str
    texts: frozenset[type]
    """Types whose values are text. Enums are, too."""
    numbers: frozenset[type]
    """Types whose values are the same numbers as integers and floats, in a format that writes numbers as text."""
    keys: frozenset[type]
    """Types of keys, in addition to enums."""
    mixed_keys: bool = False
    """True if keys keep their types, so that a map may have several."""
    has_schema: bool = False
    """True if events name the type of a union, which is checked with the schema."""


_TEXTS: Final = frozenset({str, UUID, timedelta})
_TIMES: Final = frozenset({date, datetime, time})
_KEYS: Final = frozenset({str, UUID})

JSON: Final = Format("JSON", _TEXTS | _TIMES | {bytes}, frozenset({Decimal}), _KEYS | {int, float})
CBOR: Final = Format("CBOR", _TEXTS | {time, datetime}, frozenset(), _KEYS | {int, bytes}, mixed_keys=True)
AVRO: Final = Format("Avro", _TEXTS, frozenset(), _KEYS, has_schema=True)
_JAVA_KEYS: Final = _TEXTS | _TIMES | {bool, bytes, int, float, Decimal, type(None)}
JAVA: Final = Format("Java", frozenset(), frozenset(), _JAVA_KEYS, mixed_keys=True)
PROTOBUF: Final = Format("Protobuf", _TEXTS - {timedelta}, frozenset(), _KEYS | {int, bool}, has_schema=True)


def check_unions(kind: Any, form: Format) -> None:
    """Raise :class:`SchemaError` for a union whose values become the same events."""
    events = _Events(form, by_pydantic=any(map(is_model, classes_in(kind))))
    for path, inner in places_in(kind):
        if typing.get_origin(inner) is typing.Literal:
            names = [plain(each) for each in typing.get_args(inner) if isinstance(each, str | enum.Enum)]
            if len({*names}) != len(names):
                raise SchemaError(f"two constants of {name_of(inner)} (at {path}) are the same text; use one of them")
        if typing.get_origin(inner) not in (typing.Union, types.UnionType):
            continue
        for pair in itertools.combinations(map(unwrapped, typing.get_args(inner)), 2):
            if _is_one_form(*pair):
                raise SchemaError(
                    f"{name_of(pair[0])} and {name_of(pair[1])} (at {path}) are the same in events; use one of them"
                )
        for pair in itertools.combinations(alternatives_of(inner), 2):
            if events.confuse(*pair) and not (_has_tags(inner) and all(map(members_of, pair))):
                first, second = sorted(pair, key=_is_mapping)
                raise SchemaError(
                    f"{name_of(first)} and {name_of(second)} (at {path}) are the same in {form.name}, so a union "
                    "cannot tell them apart; use one of them"
                )


def _is_one_form(one: Any, other: Any) -> bool:
    """Return True for a RootModel and a type of its value, which is written without its class."""
    roots = root_of(one) is not one or root_of(other) is not other
    return roots and any(each in alternatives_of(other) for each in alternatives_of(one) if each is not type(None))


def _has_tags(kind: Any) -> bool:
    """Return True for a union with a Tag of pydantic in each type, which a function of the class chooses."""
    metadata = [getattr(each, "__metadata__", ()) for each in typing.get_args(kind) if each is not type(None)]
    return all(any(type(each).__name__ == "Tag" for each in annotations) for annotations in metadata)


class _Events:
    """Comparison of the events that the values of two types become."""

    def __init__(self, form: Format, *, by_pydantic: bool) -> None:
        self._form, self._by_pydantic = form, by_pydantic
        self._inside: list[tuple[Any, Any]] = []

    def confuse(self, one: Any, other: Any) -> bool:
        """Return True if a reader of a union may return a value of one type as another value."""
        if self._form.has_schema:
            return self._is_read_by_value(one, other)
        if _is_any(one) or _is_any(other):
            return _has_renamed(one) or _has_renamed(other)
        if _is_mapping(one) and _is_mapping(other):
            return self._confuse_entries(one, other)
        if members_of(one) is not None and members_of(other) is not None:
            return self._confuse_records(one, other)
        return {one, other} != {int, float} and self._differ(one, other)

    def _differ(self, one: Any, other: Any) -> bool:
        """Return True if different values become the same event, except equal numbers in a format that keeps them."""
        if one == other or (not self._form.numbers and {one, other} <= _NUMBERS):
            return False
        literals, others = _parted(one, other)
        if literals:
            own = {each for each in literals[0] if others and self._keeps({_type_of(each), others[0]})}
            return bool(others) and self._is_literal(literals[0] - own, others[0])
        return self._same(one, other)

    def _keeps(self, pair: set[Any]) -> bool:
        """Return True for the types of a literal and of a value next to it, which is read as its own type."""
        return len(pair) == 1 or (pair == {int, float} and not self._by_pydantic)

    def _confuse_entries(self, one: Any, other: Any) -> bool:
        (key, value), (other_key, other_value) = (typing.get_args(each) or (Any, Any) for each in (one, other))
        if key != other_key and any(map(is_enum, (*alternatives_of(key), *alternatives_of(other_key)))):
            return True  # keys are read as names of constants before the type of the dict is known
        if self._form.mixed_keys and not self._overlap(key, other_key):
            return False
        pairs = itertools.product(alternatives_of(value), alternatives_of(other_value))
        return any(self._differ(*pair) or _renames(*pair) for pair in pairs)

    def _confuse_records(self, one: Any, other: Any) -> bool:
        if struct_config(one) is not None or struct_config(other) is not None:
            return False  # Structs have tags
        own, others = ({each.name: each.type for each in members_of(kind) or ()} for kind in (one, other))
        # Of classes with the same types of fields, pydantic returns the first.
        return self._reads(one, other) or (
            any(own[name] != others[name] for name in own.keys() & others) and self._reads(other, one)
        )

    def _reads(self, kind: Any, other: Any) -> bool:
        """Return True if events of a class may have fields of another one, and all that it needs."""
        own = {each.name: each.type for each in members_of(kind) or ()}
        others = {each.name: each.type for each in members_of(other) or () if _is_written(other, each.attribute)}
        needed = required_names(kind)
        if not needed <= others.keys() or (kind, other) in self._inside:
            return needed <= others.keys()
        self._inside.append((kind, other))
        found = all(
            name in own and self._overlap(own[name], each)
            for name, each in others.items()
            if name in needed or name not in optional_keys(other)
        )
        self._inside.pop()
        return found

    def _overlap(self, one: Any, other: Any) -> bool:
        pairs = itertools.product(alternatives_of(one), alternatives_of(other))
        return any(self._same(*pair) or _renames(*pair) for pair in pairs)

    def _same(self, one: Any, other: Any) -> bool:
        """Return True if values of two types may become the same event, also if they are equal."""
        if one == other or _is_any(one) or _is_any(other):
            return True
        literals, others = _parted(one, other)
        if literals:
            return self._is_literal(literals[0], others[0]) if others else bool(literals[0] & literals[1])
        if self._are_texts(one, other) or self._is_value(one, other) or self._is_value(other, one):
            return True
        if members_of(one) is not None and members_of(other) is not None:
            return self._reads(one, other) or self._reads(other, one)
        if _is_object(one) or _is_object(other):
            return _is_object(one) and _is_object(other)
        return (_is_list(one) and _is_list(other)) or self._is_number({one, other})

    def _is_literal(self, values: Iterable[Any], kind: Any) -> bool:
        """Return True if a literal may be a value of a type. Pydantic reads a number that is equal as the literal."""
        return any(self._same(_type_of(each), kind) or self._is_equal(each, kind) for each in values)

    def _is_equal(self, literal: Any, kind: Any) -> bool:
        if self._by_pydantic and is_enum(kind):
            return any(each == literal for each in kind)
        numbers = self._by_pydantic and kind in _LITERAL_NUMBERS and isinstance(literal, int)
        return numbers and bool(kind(literal) == literal)

    def _is_read_by_value(self, one: Any, other: Any) -> bool:
        """Return True if pydantic, which does not know the type of an event, may read a value as another one."""
        literals, others = _parted(one, other)
        if literals:
            return any(self._is_equal(each, kind) and type(each) is not kind for kind in others for each in literals[0])
        return self._is_value(one, other) or self._is_value(other, one)

    def _is_value(self, kind: Any, other: Any) -> bool:
        """Return True if pydantic may read a value of an enum as one of another type."""
        values = kind if self._by_pydantic and has_values(kind) and not is_enum(other) else ()
        kinds = {type(each.value) for each in values}
        return any(self._same(each, other) or {each, other} <= _NUMBERS for each in kinds) or any(
            self._is_equal(each.value, other) for each in values
        )

    def _are_texts(self, one: Any, other: Any) -> bool:
        if self._is_text(one) and self._is_text(other):
            return True
        if self._by_pydantic and {one, other} == {date, datetime}:
            return True
        # Pydantic reads text also as bytes, and returns the first type that accepts it.
        others = {one, other} - {bytes, str}
        return self._by_pydantic and bytes in (one, other) and any(map(self._is_text, others))

    def _is_text(self, kind: Any) -> bool:
        return kind in self._form.texts or is_enum(kind)

    def _is_number(self, pair: set[Any]) -> bool:
        """Return True for two numbers. Pydantic also reads some other types from the numbers of decimals."""
        if pair <= _NUMBERS:
            return float in pair or bool(self._form.numbers)
        return self._by_pydantic and bool(self._form.numbers & pair) and bool(pair & _FROM_NUMBERS)


_NUMBERS: Final = frozenset({int, float, Decimal})
_LITERAL_NUMBERS: Final = (bool, int, float, Decimal)
_FROM_NUMBERS: Final = frozenset({bool, timedelta, *_TIMES})


def _parted(one: Any, other: Any) -> tuple[list[set[Any]], list[Any]]:
    """Return the values of those of two types that are literals, and the other types."""
    both = (one, other)
    literals = [{*typing.get_args(each)} for each in both if typing.get_origin(each) is typing.Literal]
    return literals, [each for each in both if typing.get_origin(each) is not typing.Literal]


def _type_of(literal: Any) -> type:
    return str if isinstance(literal, enum.Enum) else type(literal)


def _is_any(kind: Any) -> bool:
    return kind in (Any, object) or isinstance(kind, typing.TypeVar)


def _has_renamed(kind: Any) -> bool:
    """Return True for a type with an enum whose values are not its names, so that a reader replaces the text."""
    return any(map(has_values, types_in(kind)))


def _renames(one: Any, other: Any) -> bool:
    """Return True if a reader, which does not know the type of a value, may take text for the name of a constant."""
    return one != other and type(None) not in (one, other) and (_has_renamed(one) or _has_renamed(other))


def _is_written(kind: Any, attribute: str) -> bool:
    return not is_model(kind) or kind.__pydantic_fields__[attribute].exclude is not True


def check_keys(kind: Any, form: Format) -> None:
    """Raise :class:`SchemaError` for a mapping whose keys the format cannot write, or not as one type."""
    for path, inner in places_in(kind):
        if not _is_mapping(inner) or len(typing.get_args(inner)) != 2:
            continue
        options, nullable = options_of(typing.get_args(inner)[0])
        options += [type(None)] * nullable
        unknown = [each for each in options if not (each in form.keys or is_enum(each) or is_open(each))]
        if unknown or (len(options) != 1 and not form.mixed_keys):
            raise SchemaError(
                f"the keys of {name_of(inner)} (at {path}) have no form in {form.name}, whose keys are one of "
                f"{', '.join(sorted(each.__name__ for each in form.keys))} or an enum; use str or a list of objects"
            )


def _is_mapping(kind: Any) -> bool:
    return _is_a(kind, Mapping)


def _is_object(kind: Any) -> bool:
    return members_of(kind) is not None or _is_mapping(kind)


def _is_list(kind: Any) -> bool:
    return _is_a(kind, Iterable) and not any(_is_a(kind, each) for each in _NO_LISTS)


_NO_LISTS: Final = (Mapping, str, bytes, bytearray, memoryview, enum.Enum)


def _is_a(kind: Any, parent: type) -> bool:
    origin = class_of(kind)
    return isinstance(origin, type) and members_of(kind) is None and issubclass(origin, parent)
