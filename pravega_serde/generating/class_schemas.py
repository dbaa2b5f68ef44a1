"""JSON schemas of Python classes: the input of datamodel-code-generator, which writes the classes.

A :class:`ClassSchemas` holds the schema of each class by name. ``avro_classes``, ``protobuf_classes`` and
``json_classes`` create them so that the classes accept the values that the format's serializer returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from pravega_serde.errors import SchemaError
from pravega_serde.generating.identifiers import python_identifier

JsonSchema = dict[str, Any]

#: Reference to the schema of a class, before its name.
REFERENCE: Final = "#/components/schemas/"
#: Names that a generated module defines or imports in addition to the classes.
TAKEN: Final = frozenset({"SCHEMA", "base64"})
#: Parts of a full name that a class name can have.
_MOST_PARTS: Final = 100

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
    parts = {full: full.split(".")[::-1] for full in full_names}
    shared = dict.fromkeys(parts, 0)
    # The names that share most parts with a name are its neighbors in this order.
    for first, second in pairwise(sorted(parts, key=parts.__getitem__)):
        same = _same_parts(parts[first], parts[second])
        shared[first], shared[second] = max(shared[first], same), max(shared[second], same)
    made: dict[str, str] = {}
    taken = set(TAKEN)
    for full, each in parts.items():
        made[full] = python_identifier(_joined(each[shared[full] :: -1]), taken)
        taken.add(made[full])
    return made


def next_class_name(full: str, taken: Collection[str]) -> str:
    """Return the class name of a full name: its last part, with as many parts before it as make it a new name."""
    parts = full.split(".")
    names = (_joined(parts[-count:]) for count in range(1, min(len(parts), _MOST_PARTS) + 1))
    return python_identifier(next((name for name in names if name not in taken), _joined(parts[-1:])), taken)


def _same_parts(first: list[str], second: list[str]) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def _joined(parts: Iterable[str]) -> str:
    return "".join(map(_camel, parts))


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
