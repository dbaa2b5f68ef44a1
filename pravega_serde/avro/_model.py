"""Avro schemas as checked objects, which everything else works on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "MISSING",
    "PRIMITIVES",
    "Array",
    "Enum",
    "Field",
    "Fixed",
    "Logical",
    "Map",
    "Primitive",
    "Record",
    "Type",
    "Union",
    "kind_of",
    "label_of",
]

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

#: The value of a default that is not there (None is a default, too).
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Logical:
    """What a primitive or fixed stands for."""

    name: str
    precision: int = 0
    """Of decimals: digits in all, and behind the point."""
    scale: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One of the eight primitive types."""

    name: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A fixed number of bytes."""

    name: str
    aliases: frozenset[str]
    size: int
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """One of several symbols."""

    name: str
    aliases: frozenset[str]
    symbols: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Items of one type."""

    items: Type


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """Values of one type under string keys."""

    values: Type


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a record."""

    name: str
    aliases: tuple[str, ...]
    type: Type
    default: Any
    """JSON, or MISSING. Checked only where it is used: a writer's defaults concern nobody."""


@dataclass(slots=True, eq=False)
class Record:
    """Named fields in order. Its fields are set after it is made: one of them may contain the record itself."""

    name: str
    aliases: frozenset[str]
    fields: tuple[Field, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """One of several types."""

    branches: tuple[Type, ...]


Type = Primitive | Fixed | Enum | Array | Map | Record | Union


def kind_of(schema: Type) -> str:
    """A type's name in a schema: the primitive's, or the class's."""
    return schema.name if isinstance(schema, Primitive) else type(schema).__name__.lower()


def label_of(schema: Type) -> str:
    """What tells the branches of a union apart: a named type's full name, otherwise the kind."""
    return schema.name if isinstance(schema, Fixed | Enum | Record) else kind_of(schema)
