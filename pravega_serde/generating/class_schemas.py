"""JSON schemas of Python classes: the input of datamodel-code-generator, which writes the classes.

A :class:`ClassSchemas` holds the schema of each class by name. ``avro_classes``, ``protobuf_classes`` and
``json_classes`` create them so that the classes accept the values that the format's serializer returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pravega_serde.errors import SchemaError
from pravega_serde.generating.identifiers import python_identifier

JsonSchema = dict[str, Any]

#: Reference to the schema of a class, before its name.
REFERENCE: Final = "#/components/schemas/"
#: Names that a generated module defines or imports in addition to the classes.
_TAKEN: Final = frozenset({"SCHEMA", "base64"})

BYTES: Final[JsonSchema] = {"type": "string", "format": "binary"}
DATE: Final[JsonSchema] = {"type": "string", "format": "date"}
DATETIME: Final[JsonSchema] = {"type": "string", "format": "date-time"}
DECIMAL: Final[JsonSchema] = {"type": "number", "format": "decimal"}
DURATION: Final[JsonSchema] = {"type": "string", "format": "duration"}
TIME: Final[JsonSchema] = {"type": "string", "format": "time"}
UUID: Final[JsonSchema] = {"type": "string", "format": "uuid"}


@dataclass(slots=True)
class ClassSchemas:
    """Schemas of classes, and notes on differences between the source and the classes."""

    schemas: dict[str, JsonSchema] = field(default_factory=dict)
    """Name of a class -> its schema."""
    notes: tuple[str, ...] = ()
    all_needed: bool = True
    """True if no class can be left out: the others are parts of the first one."""


def class_names(full_names: Iterable[str]) -> dict[str, str]:
    """Return the class name of each full name: its last part, with as many parts before it as make it unique."""
    names = list(dict.fromkeys(full_names))
    made: dict[str, str] = {}
    taken = set(_TAKEN)
    for full in names:
        parts = full.split(".")
        ends = (tuple(parts[-count:]) for count in range(1, len(parts) + 1))
        last = next(end for end in ends if sum(tuple(each.split(".")[-len(end) :]) == end for each in names) == 1)
        made[full] = python_identifier("".join(map(_camel, last)), taken)
        taken.add(made[full])
    return made


def _camel(name: str) -> str:
    """Return a name with an upper first letter, and without underscores between words."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or name


def refers_to(name: str) -> JsonSchema:
    """Return a reference to the schema of a class."""
    return {"$ref": f"{REFERENCE}{name}"}


def optional(schema: JsonSchema) -> JsonSchema:
    """Return the schema of a value that can be null."""
    return schema if schema in ({"type": "null"}, {}) else {"anyOf": [schema, {"type": "null"}]}


def class_of(properties: dict[str, JsonSchema], doc: str = "") -> JsonSchema:
    """Return the schema of a class whose events have all fields. Python can omit a field with a default."""
    described = {"description": doc} if doc.strip() else {}
    return {"type": "object", **described, "properties": properties, "required": list(properties)}


#: Kinds of values that cannot be told apart in a union -> JSON type.
_KINDS: Final = {"object": "objects", "array": "arrays", "string": "texts", "integer": "numbers", "number": "numbers"}


def union(branches: list[JsonSchema], kinds: list[str], where: str) -> JsonSchema:
    """Return the schema of a value of several types, whose JSON types are ``kinds``.

    Raises :class:`SchemaError` if the classes could not tell two of them apart.
    """
    seen: set[str] = set()
    for kind in kinds:
        name = _KINDS.get(kind, kind)
        if name in seen:
            raise SchemaError(
                f"{where} is a union of several {name}, which a Python class cannot tell apart; read the events "
                "without a class"
            )
        seen.add(name)
    return {"anyOf": branches}
