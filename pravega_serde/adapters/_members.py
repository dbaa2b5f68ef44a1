"""What classes are made of: their fields by name and type, whichever library made the class."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

from pravega_serde.errors import SchemaError

__all__ = ["Member", "classes_in", "is_model", "members_of", "name_of", "types_in"]


class Member(NamedTuple):
    """A field of a class."""

    attribute: str
    name: str
    """Its name in events, where the class renames it."""
    type: Any


def is_model(kind: Any) -> bool:
    """Whether pydantic made the class (a model, or a dataclass of its own), without importing it."""
    return isinstance(kind, type) and "__pydantic_fields__" in vars(kind)


def members_of(kind: Any) -> tuple[Member, ...] | None:
    """Fields of a dataclass, Struct, attrs class, TypedDict or pydantic model; None for any other type."""
    if is_model(kind):
        fields = kind.__pydantic_fields__.items()
        return tuple(Member(name, info.serialization_alias or name, info.annotation) for name, info in fields)
    names = _names(kind)
    if names is None:
        return None
    hints = _hints(kind)
    return tuple(Member(attribute, name, hints[attribute]) for attribute, name in names)


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
    if typing.is_typeddict(kind):
        return [(name, name) for name in kind.__annotations__]
    return None


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except NameError as error:
        raise SchemaError(f"the annotations of {name_of(kind)} cannot be resolved: {error}") from error


def types_in(kind: Any) -> Iterator[Any]:
    """A type and all types inside it, each once: arguments of generic types, fields of classes."""
    seen: list[Any] = []
    waiting = [kind]
    while waiting:
        kind = waiting.pop()
        # By equality, not by hash: the metadata of an Annotated need not have one.
        if kind in seen:
            continue
        seen.append(kind)
        yield kind
        waiting += typing.get_args(kind)
        waiting += [member.type for member in members_of(kind) or ()]


def classes_in(kind: Any) -> Iterator[type]:
    """The classes among the types inside a type."""
    return (inner for inner in types_in(kind) if isinstance(inner, type))


def name_of(kind: Any) -> str:
    """A type as one writes it."""
    return kind.__qualname__ if isinstance(kind, type) else str(kind)
