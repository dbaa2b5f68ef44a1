"""Values of JSON payloads as the rules of a registered schema see them: parsed JSON, and properties with tags.

A schema with alternatives applies the one that a value is valid for, which needs the extra ``json-schema``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from pravega_serde.errors import DeserializationError, SchemaError
from pravega_serde.json.derive import References
from pravega_serde.json.rows import parse_plainly
from pravega_serde.json.serializer import json_schema
from pravega_serde.json.write_rows import to_json
from pravega_serde.registry.interface import ChangeOf, RuledField

_TAGS: Final = "confluent:tags"
#: JSON type -> Confluent's name. Numbers are doubles there.
_TYPES: Final = {"string": "STRING", "integer": "INT", "number": "DOUBLE", "boolean": "BOOLEAN", "null": "NULL"}
_CHOICES: Final = ("oneOf", "anyOf")
_MAX_LEVELS: Final = 256
_MAX_PLACES: Final = 10_000
_NONE: Final[frozenset[str]] = frozenset()


class JsonRuledValues:
    """Parsed JSON. Properties have the path from the root as their full name: ``$.card.number``."""

    def __init__(self, schema: Any, tags_of: Callable[[str], frozenset[str]]) -> None:
        self._root, self._tags_of = schema, tags_of

    def read(self, payload: bytes) -> Any:
        """Return the value with all digits of its numbers."""
        return parse_plainly(payload, decimals=True)

    def write(self, value: Any) -> bytes:
        """Return the text of a value."""
        return to_json(value)

    def plain(self, value: Any) -> Any:
        """Return a value with numbers instead of decimals."""
        if isinstance(value, Decimal):
            return float(value)
        if isinstance(value, dict):
            return {name: self.plain(each) for name, each in value.items()}
        return [self.plain(each) for each in value] if isinstance(value, list) else value

    def changed(self, change_of: ChangeOf) -> Callable[[Any], Any]:
        """Return a function that changes properties inside a value, and returns a new one."""
        walk = _Walk(self._root, self._tags_of, change_of)
        return lambda value: walk.value(self._root, value, _Place("$", "", frozenset(), value), 0)


class _Place(NamedTuple):
    """Property that has a value, and the object that has the property. The root has no name."""

    path: str
    name: str
    tags: frozenset[str]
    owner: Any


#: Name, schema, full name and tags of a property.
_Member = tuple[str, Any, str, frozenset[str]]


def _members_of(schema: Mapping[str, Any], path: str) -> list[_Member]:
    properties = schema.get("properties")
    found = properties.items() if isinstance(properties, Mapping) else ()
    return [
        (
            name,
            inner,
            f"{path}.{name}",
            frozenset(map(str, inner.get(_TAGS) or ())) if isinstance(inner, Mapping) else _NONE,
        )
        for name, inner in found
    ]


class _Walk:
    def __init__(self, root: Any, tags_of: Callable[[str], frozenset[str]], change_of: ChangeOf) -> None:
        self._root, self._tags_of, self._change_of = root, tags_of, change_of
        self._known: dict[int, Any] = {}
        self._references = References(root)
        # Schemas are referred to by their identity: the root holds them.
        self._members: dict[tuple[int, str], list[_Member]] = {}
        self._changes: dict[tuple[str, str, frozenset[str]], Callable[[Any, Any], Any] | None] = {}

    def value(self, schema: Any, value: Any, at: _Place, level: int) -> Any:
        """Return a value of a schema with changed fields."""
        if level > _MAX_LEVELS:
            raise SchemaError(f"the JSON schema refers to itself without end at {at.path}")
        if isinstance(schema, dict) and "$ref" in schema:
            schema = self._resolved(schema)
        if not isinstance(schema, dict) or value is None:
            return value
        choices = [name for name in _CHOICES if isinstance(schema.get(name), list)]
        for part in schema.get("allOf") or ():
            value = self.value(part, value, at, level + 1)
        for name in choices:
            fitting = self._fitting(schema[name], value)
            # A change applies once, also if several alternatives have the field.
            for each in fitting[:1]:
                value = self.value(each, value, at, level + 1)
        if isinstance(value, dict):
            return self._object(schema, value, at.path, level)
        if isinstance(value, list):
            items = schema.get("items")
            return [self.value(items, each, at, level + 1) for each in value]
        if not at.name or choices or "allOf" in schema:
            return value
        return self._leaf(schema, value, at)

    def _object(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, level: int) -> dict[str, Any]:
        key = id(schema), path
        members = self._members.get(key)
        if members is None:
            if len(self._members) >= _MAX_PLACES:
                self._members.clear()
            members = self._members[key] = _members_of(schema, path)
        made = dict(value)
        for name, inner, full, tags in members:
            if name in value:
                made[name] = self.value(inner, value[name], _Place(full, name, tags, value), level + 1)
        return made

    def _leaf(self, schema: Mapping[str, Any], value: Any, at: _Place) -> Any:
        declared = schema.get("type")
        own = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
        if own == "number" and isinstance(value, int) and declared != "number":
            own = "integer"
        kind = "ENUM" if "enum" in schema or "const" in schema else _TYPES[own]
        key = at.path, kind, at.tags
        if key not in self._changes:
            if len(self._changes) >= _MAX_PLACES:
                self._changes.clear()
            field = RuledField(at.path, at.name, kind, at.tags | self._tags_of(at.path))
            self._changes[key] = self._change_of(field)
        change = self._changes[key]
        return value if change is None else change(value, at.owner)

    def _fitting(self, schemas: list[Any], value: Any) -> list[Any]:
        """Return the alternatives that a value has. Only if its type leaves several, it is validated."""
        found = [each for each in map(self._resolved, schemas) if _has_type(each, value)]
        return found if len(found) < 2 else [each for each in found if self._is_valid(each, value)]

    def _resolved(self, schema: Any) -> Any:
        found = self._references.target(schema)
        if found is None and schema is not None:
            raise SchemaError(f"the JSON schema has no {schema.get('$ref')!r}, so the rules cannot be applied")
        return found

    def _is_valid(self, schema: Any, value: Any) -> bool:
        known = self._known.get(id(schema))
        if known is None:
            shared = {name: self._root[name] for name in ("definitions", "$defs") if name in self._root}
            known = self._known[id(schema)] = json_schema({**shared, **schema})
        try:
            known.check(value)
        except DeserializationError:
            return False
        return True


def _has_type(schema: Any, value: Any) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    own = next(name for kind, name in _KINDS if isinstance(value, kind))
    return declared is None or own in names or (own == "integer" and "number" in names)


_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (dict, "object"),
    (list, "array"),
    (object, "number"),
)
