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

from pravega_serde.adapters.classes import class_of, members_of, name_of, places_in, struct_config
from pravega_serde.adapters.defaults import defaults_of
from pravega_serde.adapters.forms import options_of
from pravega_serde.adapters.plain import is_open
from pravega_serde.errors import SchemaError


class Format(NamedTuple):
    """Types that a format cannot tell apart, and those of the keys of its maps."""

    name: str
    texts: frozenset[type]
    """Types whose values are text. Enums are, too."""
    numbers: frozenset[type]
    """Types whose values are the same numbers as integers and floats."""
    keys: frozenset[type]
    """Types of keys, in addition to enums."""
    mixed_keys: bool = False
    """True if keys keep their types, so that a map may have several."""


_TEXTS: Final = frozenset({str, UUID, timedelta})
_TIMES: Final = frozenset({date, datetime, time})
_KEYS: Final = frozenset({str, UUID})

JSON: Final = Format("JSON", _TEXTS | _TIMES | {bytes}, frozenset({Decimal}), _KEYS | {int, float})
CBOR: Final = Format("CBOR", _TEXTS, frozenset(), _KEYS | {int, bytes}, mixed_keys=True)
AVRO: Final = Format("Avro", _TEXTS, frozenset(), _KEYS)
_JAVA_KEYS: Final = _TEXTS | _TIMES | {bool, bytes, int, float, Decimal, type(None)}
JAVA: Final = Format("Java", frozenset(), frozenset(), _JAVA_KEYS, mixed_keys=True)
PROTOBUF: Final = Format("Protobuf", _TEXTS - {timedelta}, frozenset(), _KEYS | {int, bool})


def check_unions(kind: Any, form: Format) -> None:
    """Raise :class:`SchemaError` for a union whose values become the same events."""
    for path, inner in places_in(kind):
        if typing.get_origin(inner) not in (typing.Union, types.UnionType):
            continue
        options, _ = options_of(inner)
        groups = (
            [each for each in options if each in form.texts or _is_enum(each)],
            [each for each in options if each in form.numbers or (form.numbers and each in (int, float))],
            [each for each in options if _is_list(each)],
            _records(options),
        )
        for group in groups:
            if len(group) > 1 and {*group} != {int, float}:
                raise SchemaError(
                    f"{' and '.join(map(name_of, group))} (at {path}) are the same in {form.name}, so a union cannot "
                    "tell them apart; use one of them"
                )


def _records(options: list[Any]) -> list[Any]:
    """Return two types of a union if the first reads the objects of the second."""
    records = [each for each in options if members_of(each) is not None]
    mappings = [each for each in options if _is_a(each, Mapping)]
    if records and mappings:
        return [records[0], mappings[0]]
    pairs = itertools.combinations([each for each in records if struct_config(each) is None], 2)  # Structs have tags
    return next(([first, second] for first, second in pairs if _reads(first, second)), [])


def _reads(kind: Any, other: Any) -> bool:
    """Return True if a class has all fields of another one with the same types, and needs no more."""
    own, others = ({each.name: each for each in members_of(one) or ()} for one in (kind, other))
    defaults = defaults_of(kind)
    needed = {name for name, each in own.items() if each.attribute not in defaults}
    return needed <= others.keys() and all(name in own and own[name].type == each.type for name, each in others.items())


def check_keys(kind: Any, form: Format) -> None:
    """Raise :class:`SchemaError` for a mapping whose keys the format cannot write, or not as one type."""
    for path, inner in places_in(kind):
        if not _is_a(inner, Mapping) or members_of(inner) is not None or len(typing.get_args(inner)) != 2:
            continue
        options, nullable = options_of(typing.get_args(inner)[0])
        options += [type(None)] * nullable
        unknown = [each for each in options if not (each in form.keys or _is_enum(each) or is_open(each))]
        if unknown or (len(options) != 1 and not form.mixed_keys):
            raise SchemaError(
                f"the keys of {name_of(inner)} (at {path}) have no form in {form.name}, whose keys are one of "
                f"{', '.join(sorted(each.__name__ for each in form.keys))} or an enum; use str or a list of objects"
            )


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _is_list(kind: Any) -> bool:
    return _is_a(kind, Iterable) and not any(_is_a(kind, each) for each in _NO_LISTS)


_NO_LISTS: Final = (Mapping, str, bytes, bytearray, memoryview, enum.Enum)


def _is_a(kind: Any, parent: type) -> bool:
    origin = class_of(kind)
    return isinstance(origin, type) and members_of(kind) is None and issubclass(origin, parent)
