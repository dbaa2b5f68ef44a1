"""Values of JSON payloads as the rules of a registered schema see them: parsed JSON, and properties with tags.

A schema with alternatives applies the one that a value is valid for, which needs the extra ``json-schema``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from pravega_serde.errors import DecryptionError, DeserializationError, SchemaError, UnsupportedRuleError
from pravega_serde.json.derive import References
from pravega_serde.json.rows import parse_plainly
from pravega_serde.json.serializer import json_schema
from pravega_serde.json.write_rows import to_json
from pravega_serde.registry.interface import ChangeOf, RuledField, UnfitValueError

_TAGS: Final = "confluent:tags"
#: JSON type -> Confluent's name. Numbers are doubles there.
_TYPES: Final = {"string": "STRING", "integer": "INT", "number": "DOUBLE", "boolean": "BOOLEAN", "null": "NULL"}
_CHOICES: Final = ("oneOf", "anyOf")
#: Keywords whose fields are changed, and keywords without fields.
_VISITED: Final = frozenset(
    {"properties", "allOf", *_CHOICES, "$ref", "definitions", "$defs", "default", "examples", "enum", "const", _TAGS}
)
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

    imported = write

    def plain(self, value: Any) -> Any:
        """Return a value with numbers instead of decimals."""
        if isinstance(value, Decimal):
            return float(value)
        if isinstance(value, dict):
            return {name: self.plain(each) for name, each in value.items()}
        return [self.plain(each) for each in value] if isinstance(value, list) else value

    exported = plain

    def changed(self, change_of: ChangeOf, *, decrypts: bool = False) -> Callable[[Any], Any]:
        """Return a function that changes properties inside a value, and returns a new one.

        Raises :class:`UnsupportedRuleError` for tags that select fields in a place that is not visited.
        """
        walk = _Walk(self._root, self._tags_of, change_of, decrypts=decrypts)
        return lambda value: walk.value((self._root,), value, _Place("$", "", _NONE, value), 0)


class _Place(NamedTuple):
    """Property that has a value, and the object that has the property. The root has no name."""

    path: str
    name: str
    tags: frozenset[str]
    owner: Any


#: Part of a schema: an object of the text.
_Part = Mapping[str, Any]
#: Name, full name and schemas of a property.
_Member = tuple[str, str, tuple[Any, ...]]


class _Walk:
    """Changes of values. All schemas of a value are collected first, so each place changes once."""

    def __init__(
        self, root: Any, tags_of: Callable[[str], frozenset[str]], change_of: ChangeOf, *, decrypts: bool
    ) -> None:
        self._root, self._tags_of, self._change_of, self._decrypts = root, tags_of, change_of, decrypts
        self._known: dict[int, Any] = {}
        self._encrypted: dict[tuple[int, str, frozenset[str]], Any] = {}
        self._selected: dict[tuple[int, str, frozenset[str]], bool] = {}
        self._references = References(root)
        # Schemas are referred to by their identity: the root holds them.
        self._fixed: dict[int, tuple[_Part, ...]] = {}
        self._members: dict[tuple[tuple[int, ...], str], list[_Member]] = {}
        self._changes: dict[tuple[str, str, frozenset[str]], Callable[[Any, Any], Any] | None] = {}
        self._check_places()

    def value(self, schemas: tuple[Any, ...], value: Any, at: _Place, level: int) -> Any:
        """Return a value, which has all these schemas, with changed fields."""
        if value is None:
            return value
        parts = [part for each in schemas for part in self._parts(each, value, at, level)]
        if isinstance(value, dict):
            return self._object(parts, value, at.path, level)
        at = at._replace(tags=at.tags.union(*map(_tags, parts)))
        if isinstance(value, list):
            items = tuple(each["items"] for each in parts if "items" in each)
            return [self.value(items, each, at, level + 1) for each in value]
        return self._leaf(parts, value, at) if at.name and parts else value

    def _parts(self, schema: Any, value: Any, at: _Place, level: int) -> Sequence[_Part]:
        """Return a schema and the schemas that it includes: by reference, all of a list, or the fitting alternative."""
        if not isinstance(schema, Mapping):
            return ()
        known = self._fixed.get(id(schema))
        if known is not None:
            return known
        if level > _MAX_LEVELS:
            raise SchemaError(f"the JSON schema refers to itself without end at {at.path}")
        made, choices = [schema], [name for name in _CHOICES if isinstance(schema.get(name), list)]
        included = [*([self._referred(schema)] if "$ref" in schema else ()), *(schema.get("allOf") or ())]
        for each in included:
            made += self._parts(each, value, at, level + 1)
        for name in choices:
            # A change applies once, also if several alternatives have the field.
            for each in self._fitting(schema, name, value, at, level)[:1]:
                made += self._parts(each, value, at, level + 1)
        if not choices and all(id(each) in self._fixed for each in included if isinstance(each, Mapping)):
            self._fixed[id(schema)] = tuple(made)
        return made

    def _object(self, parts: list[_Part], value: dict[str, Any], path: str, level: int) -> dict[str, Any]:
        key = tuple(map(id, parts)), path
        members = self._members.get(key)
        if members is None:
            if len(self._members) >= _MAX_PLACES:
                self._members.clear()
            members = self._members[key] = _members_of(parts, path)
        made = dict(value)
        for name, full, schemas in members:
            if name in value:
                made[name] = self.value(schemas, value[name], _Place(full, name, _NONE, value), level + 1)
        return made

    def _leaf(self, parts: list[_Part], value: Any, at: _Place) -> Any:
        own = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
        if own == "number" and isinstance(value, int) and all(each.get("type") != "number" for each in parts):
            own = "integer"
        kind = "ENUM" if any("enum" in each or "const" in each for each in parts) else _TYPES[own]
        key = at.path, kind, at.tags
        if key not in self._changes:
            if len(self._changes) >= _MAX_PLACES:
                self._changes.clear()
            self._changes[key] = self._change(at.path, at.name, kind, at.tags)
        change = self._changes[key]
        return value if change is None else change(value, at.owner)

    def _change(self, path: str, name: str, kind: str, tags: frozenset[str]) -> Callable[[Any, Any], Any] | None:
        return self._change_of(RuledField(path, name, kind, tags | self._tags_of(path)))

    def _fitting(self, schema: _Part, choice: str, value: Any, at: _Place, level: int) -> list[Any]:
        """Return the alternatives that a value has. Only if its type leaves several, it is validated."""
        found = [each for each in schema[choice] if _has_type(self._resolved(each), value)]
        if len(found) > 1 and not self._is_leaf_of_equal_tags(found, value):
            sealed = self._sealed(found, value, at, level) if self._decrypts else None
            if sealed is not None:
                return [sealed]
            found = [each for each in found if self._is_valid(self._resolved(each), value)]
        if not found and self._selects(schema, at):
            raise UnfitValueError(f"the value fits no alternative of {choice}, which have fields to change", at.path)
        return found

    def _sealed(self, schemas: list[Any], value: Any, at: _Place, level: int) -> Any:
        """Return the alternative with which a value was encrypted, or None.

        A looser alternative may accept encrypted fields, and the right one may not. So each is tried: only values that
        it has encrypted can be decrypted. Raises :class:`DecryptionError` if fields are encrypted, but by none.
        """
        best, most, failure = None, 0, None
        for each in schemas:
            if not self._selects_in(each, at) or not self._is_valid(
                self._as_encrypted(each, at.path, at.name, at.tags), value
            ):
                continue
            try:
                count = _differences(value, self.value((each,), value, at, level + 1))
            except UnfitValueError:
                continue
            except DecryptionError as error:
                failure = error
                continue
            if count > most:
                best, most = each, count
        if best is None and failure is not None:
            raise failure
        return best

    def _as_encrypted(
        self, schema: Any, path: str, name: str, tags: frozenset[str], outer: tuple[int, ...] = ()
    ) -> Any:
        """Return a schema that also accepts the encrypted form of the fields that change."""
        if not isinstance(schema, Mapping) or id(schema) in outer:
            return True
        tags = tags.union(*map(_tags, self._all_parts(schema)))
        key = id(schema), path, tags
        if key not in self._encrypted:
            if len(self._encrypted) >= _MAX_PLACES:
                self._encrypted.clear()
                self._known.clear()  # of schemas that no longer exist
            if name and self._change(path, name, "STRING", tags) is not None:
                made: Any = {"type": schema["type"]} if "type" in schema else True
            else:
                made = self._with_encrypted_parts(schema, path, name, tags, (*outer, id(schema)))
            self._encrypted[key] = made
        return self._encrypted[key]

    def _all_parts(self, schema: _Part) -> list[_Part]:
        """Return a schema and all that it includes for the same value, with all alternatives."""
        left: list[Any] = [schema]
        found = dict[int, _Part]()
        while left:
            each = left.pop()
            if isinstance(each, Mapping) and id(each) not in found:
                found[id(each)] = each
                left += self._included(each)
        return list(found.values())

    def _with_encrypted_parts(
        self, schema: _Part, path: str, name: str, tags: frozenset[str], outer: tuple[int, ...]
    ) -> _Part:
        made = dict(schema)

        def inner(each: Any) -> Any:
            return self._as_encrypted(each, path, name, tags, outer)

        if isinstance(schema.get("properties"), Mapping):
            made["properties"] = {
                each: self._as_encrypted(found, f"{path}.{each}", each, _NONE, outer)
                for each, found in _properties(schema)
            }
        if "items" in schema:
            made["items"] = inner(schema["items"])
        all_of = list(map(inner, schema.get("allOf") or ()))
        if isinstance(made.pop("$ref", None), str):
            all_of.append(inner(self._referred(schema)))
        # Encrypted values may fit several alternatives, but oneOf allows only one.
        choices = [found for name in _CHOICES if isinstance(found := made.pop(name, None), list)]
        all_of += [{"anyOf": list(map(inner, found))} for found in choices]
        return {**made, "allOf": all_of} if all_of else made

    def _is_leaf_of_equal_tags(self, schemas: list[Any], value: Any) -> bool:
        """Return True if it does not matter which alternative a value has. An encrypted one may be valid for none."""
        if isinstance(value, dict | list):
            return False
        tags = {(_tags(each), _tags(self._resolved(each))) for each in schemas}
        return len(tags) == 1 and not any(
            name in self._resolved(each) for each in schemas for name in (*_CHOICES, "allOf", "enum", "const")
        )

    def _selects_in(self, schema: Any, at: _Place) -> bool:
        """Return True if a change applies to an alternative. The answer is cached."""
        key = id(schema), at.path, at.tags
        if key not in self._selected:
            if len(self._selected) >= _MAX_PLACES:
                self._selected.clear()
            self._selected[key] = self._selects(schema, at)
        return self._selected[key]

    def _selects(self, schema: _Part, at: _Place) -> bool:
        """Return True if a change applies to a place, or to a field inside it."""
        left, seen = [(schema, at.path, at.name, at.tags)], set[int]()
        while left:
            each, path, name, tags = left.pop()
            if not isinstance(each, Mapping) or id(each) in seen:
                continue
            seen.add(id(each))
            tags |= _tags(each)
            if name and self._change(path, name, "STRING", tags) is not None:
                return True
            inner = [*self._included(each), each.get("items")]
            left += [(found, path, name, tags) for found in inner]
            left += [(found, f"{path}.{name}", name, _NONE) for name, found in _properties(each)]
        return False

    def _included(self, schema: _Part) -> list[Any]:
        found = [self._references.referred(schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
        for name in ("allOf", *_CHOICES):
            found += schema[name] if isinstance(schema.get(name), list) else ()
        return found

    def _check_places(self) -> None:
        """Raise :class:`UnsupportedRuleError` for a field to change that :meth:`value` does not visit."""
        left, seen = [self._root], set[int]()
        while left:
            each = left.pop()
            if not isinstance(each, Mapping) or id(each) in seen:
                continue
            seen.add(id(each))
            left += [*self._included(each), *(inner for _, inner in _properties(each))]
            for name, inner in each.items():
                if name == "items" and isinstance(inner, Mapping):
                    left.append(inner)
                elif name not in _VISITED:
                    self._check_unvisited(name, inner)

    def _check_unvisited(self, keyword: str, schema: Any) -> None:
        left, seen = [schema], set[int]()
        while left:
            each = left.pop()
            if isinstance(each, list):
                left += each
            if not isinstance(each, Mapping) or id(each) in seen:
                continue
            seen.add(id(each))
            tags = _tags(each)
            if tags and self._change_of(RuledField("$", keyword, "STRING", tags)) is not None:
                raise UnsupportedRuleError(
                    f"the JSON schema has the tags {', '.join(sorted(tags))} under {keyword!r}, where rules do not "
                    "change fields: declare these fields in 'properties' or in one schema of 'items'"
                )
            left += each.values()
            if isinstance(each.get("$ref"), str):
                left.append(self._references.referred(each["$ref"]))

    def _referred(self, schema: _Part) -> Any:
        found = self._references.referred(schema["$ref"]) if isinstance(schema["$ref"], str) else None
        if found is None:
            raise SchemaError(f"the JSON schema has no {schema['$ref']!r}, so the rules cannot be applied")
        return found

    def _resolved(self, schema: Any) -> Any:
        found = self._references.target(schema)
        if found is None and schema is not None:
            raise SchemaError(f"the JSON schema has no {schema.get('$ref')!r}, so the rules cannot be applied")
        return found

    def _is_valid(self, schema: Any, value: Any) -> bool:
        if not isinstance(schema, Mapping):
            return True
        known = self._known.get(id(schema))
        if known is None:
            shared = {name: self._root[name] for name in ("definitions", "$defs") if name in self._root}
            known = self._known[id(schema)] = json_schema({**shared, **schema})
        try:
            known.check(value)
        except DeserializationError:
            return False
        return True


def _differences(before: Any, after: Any) -> int:
    """Return the number of changed fields inside a value."""
    if isinstance(before, dict):
        return sum(_differences(each, after[name]) for name, each in before.items())
    if isinstance(before, list):
        return sum(map(_differences, before, after))
    return int(before != after)


def _tags(schema: Any) -> frozenset[str]:
    return frozenset(map(str, schema.get(_TAGS) or ())) if isinstance(schema, Mapping) else _NONE


def _properties(schema: _Part) -> Iterable[tuple[str, Any]]:
    found = schema.get("properties")
    return found.items() if isinstance(found, Mapping) else ()


def _members_of(parts: list[_Part], path: str) -> list[_Member]:
    """Return the properties of all schemas of an object."""
    found: dict[str, tuple[Any, ...]] = {}
    for part in parts:
        for name, inner in _properties(part):
            found[name] = (*found.get(name, ()), inner)
    return [(name, f"{path}.{name}", schemas) for name, schemas in found.items()]


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
