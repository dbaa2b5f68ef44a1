"""Schemas of the Python classes of a JSON schema, in the form that every generator understands.

References are inside the schema only, so that generation reads no other file and no address. Keywords that would make
a class refuse values that :func:`typed` reads, such as formats of texts, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pravega_serde.errors import SchemaError
from pravega_serde.generating import class_schemas as schemas
from pravega_serde.generating.class_schemas import ClassSchemas, JsonSchema
from pravega_serde.json.derive import MAX_NESTING

#: Type and format -> schema of the values.
_FORMATS: Final[Mapping[tuple[object, object], JsonSchema]] = {
    ("string", "byte"): schemas.BYTES,
    ("string", "date"): schemas.DATE,
    ("string", "date-time"): schemas.DATETIME,
    ("string", "local-date-time"): schemas.DATETIME,
    ("string", "uuid"): schemas.UUID,
}
#: Keywords with one schema, with a list, and with schemas by name.
_ONE: Final = ("additionalProperties", "items")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties")
_KEPT: Final = ("type", "required", "description")


def json_classes(text: str, name: str, *, bytes_as_text: bool) -> ClassSchemas:
    """Return the schemas of the objects of a JSON schema, the outermost under ``name``.

    ``bytes_as_text`` keeps Base64 as text. Raises :class:`SchemaError` for a schema that is not an object, and for a
    reference to another file.
    """
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the JSON schema is not JSON: {error}") from error
    if not isinstance(root, Mapping):
        raise SchemaError("the JSON schema is not an object")
    return _Classes(root, bytes_as_text=bytes_as_text).build(name)


class _Classes:
    def __init__(self, root: Mapping[str, Any], *, bytes_as_text: bool) -> None:
        self._root = root
        self._bytes_as_text = bytes_as_text
        self._by_id = {value: path for path, value in _ids(root, "#", 0)}
        self._named: dict[str, str] = {}
        self._taken = set(schemas.TAKEN)
        self._made: dict[str, JsonSchema] = {}

    def build(self, name: str) -> ClassSchemas:
        self._named["#"] = root = schemas.next_class_name(name, self._taken)
        self._taken.add(root)
        made = self._of(self._root, "$", 0)
        if "properties" not in made and "$ref" not in made and "allOf" not in made:
            raise SchemaError("the JSON schema defines no object with properties, so it has no class")
        return ClassSchemas({root: made, **self._made})

    def _of(self, schema: Any, where: str, depth: int) -> JsonSchema:
        if depth > MAX_NESTING:
            raise SchemaError(f"the JSON schema is nested more than {MAX_NESTING} levels deep")
        if isinstance(schema, bool):
            return {}
        if not isinstance(schema, Mapping):
            raise SchemaError(f"invalid JSON schema at {where}: {schema!r:.60}")
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema["$ref"], where, depth)
        if isinstance(schema.get("enum"), list):
            return _enum(schema)
        made: JsonSchema = {key: schema[key] for key in _KEPT if key in schema and schema[key] != "any"}
        if not isinstance(made.get("required", []), list):  # draft 3 has it inside the property
            made.pop("required")
        for key in _ONE:
            if key in schema and not isinstance(schema[key], list):
                made[key] = self._of(schema[key], f"{where}.{key}", depth + 1)
        for key in _LISTS:
            if isinstance(schema.get(key), list):
                made[key] = [self._of(each, f"{where}.{key}", depth + 1) for each in schema[key]]
        made |= self._format(schema)
        if "properties" in schema:
            made |= self._properties(schema, made, where, depth)
        if isinstance(schema.get("default"), bool | int | float | str) and "type" in made and "format" not in made:
            made["default"] = schema["default"]
        return made

    def _format(self, schema: Mapping[str, Any]) -> JsonSchema:
        """Return the format of a schema, if values of the format have their own class in Python."""
        kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
        kind = next((each for each in kinds if isinstance(each, str) and each != "null"), None)
        form = str(schema.get("format"))
        known = schemas.DECIMAL if kind == "number" and form.startswith("decimal(") else _FORMATS.get((kind, form))
        return {} if known is None or (self._bytes_as_text and known is schemas.BYTES) else {"format": known["format"]}

    def _properties(self, schema: Mapping[str, Any], made: JsonSchema, where: str, depth: int) -> JsonSchema:
        given = schema["properties"]
        if not isinstance(given, Mapping):
            raise SchemaError(f"invalid properties in the JSON schema at {where}")
        draft3 = [name for name, each in given.items() if isinstance(each, Mapping) and each.get("required") is True]
        required = {*made.get("required", ()), *draft3}
        properties = {}
        for name, each in given.items():
            inner = self._of(each, f"{where}.{name}", depth + 1)
            # Jackson and this package write null for a property that has no value.
            properties[name] = inner if name in required or "default" in inner else schemas.optional(inner)
        return {"type": "object", "properties": properties, "required": [each for each in given if each in required]}

    def _reference(self, reference: str, where: str, depth: int) -> JsonSchema:
        path = reference if reference.startswith("#") else self._by_id.get(reference)
        if path is None:
            raise SchemaError(f"the JSON schema refers to {reference!r:.100} at {where}, which it does not contain")
        if path not in self._named:
            target: Any = self._root
            for step in path.removeprefix("#").split("/")[1:]:
                key = step.replace("~1", "/").replace("~0", "~")
                target = target.get(key) if isinstance(target, Mapping) else None
            if not isinstance(target, Mapping):
                raise SchemaError(f"the JSON schema refers to {reference!r:.100} at {where}, which it does not contain")
            last = path.rpartition("/")[2]
            self._named[path] = name = schemas.next_class_name(last, self._taken)
            self._taken.add(name)
            self._made[name] = self._of(target, where, depth + 1)
        return schemas.refers_to(self._named[path])


def _ids(schema: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the path and the id of each schema that has one."""
    if not isinstance(schema, Mapping) or depth > MAX_NESTING:
        return
    for key in ("id", "$id"):
        if isinstance(schema.get(key), str):
            yield path, schema[key]
    for key in _NAMED:
        if isinstance(schema.get(key), Mapping):
            for name, each in schema[key].items():
                yield from _ids(each, f"{path}/{key}/{str(name).replace('~', '~0').replace('/', '~1')}", depth + 1)
    for key in _ONE:
        yield from _ids(schema.get(key), f"{path}/{key}", depth + 1)


def _enum(schema: Mapping[str, Any]) -> JsonSchema:
    """Return an enum of texts. Other values keep only their type, because a StrEnum cannot have them."""
    values = schema["enum"]
    texts = [each for each in values if isinstance(each, str)]
    if texts and all(isinstance(each, str) or each is None for each in values):
        made: JsonSchema = {"type": "string", "enum": list(dict.fromkeys(texts))}
        return schemas.optional(made) if None in values else made
    return {"type": schema["type"]} if "type" in schema else {}
