"""Defaults of fields, for every supported library."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Final

import msgspec

from pravega_serde.adapters.classes import class_of, is_model, members_of

#: In place of a default that a function creates: it may return another value each time.
MISSING: Final = object()

#: Functions of defaults that always return the same.
_EMPTY: Final = (list, dict, set, frozenset, tuple)


def defaults_of(kind: Any) -> dict[str, Any]:
    """Return the defaults of a class by attribute. Required fields have none."""
    if is_model(kind):
        fields = kind.__pydantic_fields__.items()
        return {name: _default(info.default, info.default_factory) for name, info in fields if not info.is_required()}
    origin = class_of(kind)
    found: dict[str, Any] = {}
    if hasattr(origin, "__struct_fields__"):
        for entry in msgspec.structs.fields(origin):
            if not entry.required:
                factory = None if entry.default_factory is msgspec.NODEFAULT else entry.default_factory
                found[entry.name] = _default(entry.default, factory)
    elif dataclasses.is_dataclass(origin):
        for each in dataclasses.fields(origin):
            if each.default is not dataclasses.MISSING:
                found[each.name] = each.default
            elif each.default_factory is not dataclasses.MISSING:
                found[each.name] = _default(None, each.default_factory)
    elif hasattr(origin, "__attrs_attrs__"):
        for each in origin.__attrs_attrs__:
            factory = getattr(each.default, "factory", None)
            if factory is not None or type(each.default).__name__ != "_Nothing":
                # A converter makes another value of the default.
                found[each.name] = _default(each.default, factory) if each.converter is None else MISSING
    else:
        found = getattr(origin, "_field_defaults", {})
    return found


def _default(value: Any, factory: Any) -> Any:
    if factory is None:
        return value
    return factory() if factory in _EMPTY else MISSING


def required_names(kind: Any) -> frozenset[str]:
    """Return the fields that each event of a class has."""
    absent = defaults_of(kind).keys() | optional_keys(kind)
    return frozenset(each.name for each in members_of(kind) or () if each.attribute not in absent)


def optional_keys(kind: Any) -> frozenset[str]:
    """Return the keys that a TypedDict need not have."""
    origin = class_of(kind)
    if not typing.is_typeddict(origin):
        return frozenset()
    hints = typing.get_type_hints(origin, include_extras=True)
    # With "from __future__ import annotations", __optional_keys__ does not know the markers of single keys.
    marked = {name for name, hint in hints.items() if typing.get_origin(hint) is typing.NotRequired}
    return frozenset(origin.__optional_keys__ | marked)
