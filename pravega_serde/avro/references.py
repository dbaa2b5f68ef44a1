"""Avro schemas of a registry that refer to named types in other schemas, as one schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pravega_serde.avro.schema import MAX_NESTING, definition_of, namespace_of, parse_json
from pravega_serde.errors import SchemaError
from pravega_serde.registry.interface import SchemaText

_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})


def with_definitions(schema: SchemaText) -> Any:
    """Return a parsed schema with the definition of each type that it refers to, at its first use.

    Raises :class:`SchemaError` for text that is not JSON, or is nested too deeply.
    """
    try:
        if not schema.references:
            return parse_json(schema.text, "schema")
        return _Definitions(_definitions(schema)).of(parse_json(schema.text, "schema"), "", 0)
    except RecursionError as error:
        raise SchemaError("the Avro schema is nested too deeply") from error


def referring(schema: Any, others: Iterable[Any]) -> SchemaText:
    """Return the text of a schema with those of ``others`` that it refers to, by the names of their types.

    Schemas are JSON text, parsed JSON or paths. Raises :class:`SchemaError` for one that defines no named type.
    """
    parsed: dict[str, Any] = {}
    for each in others:
        definition = definition_of(each)
        if not isinstance(definition, Mapping) or not _is_named(definition):
            raise SchemaError(f"a reference must be a schema of a named type, not {definition!r:.80}")
        parsed[full_name(definition, "")] = definition
    made: dict[str, SchemaText] = {}

    def text(definition: Any, inside: tuple[str, ...]) -> SchemaText:
        names = [name for name in _names_in(definition, "") if name in parsed and name not in inside]
        for name in names:
            if name not in made:
                made[name] = text(parsed[name], (*inside, name))
        return SchemaText(json.dumps(definition, separators=(",", ":")), {name: made[name] for name in names})

    return text(definition_of(schema), ())


def _is_named(definition: Mapping[str, Any]) -> bool:
    kind = definition.get("type")
    return isinstance(kind, str) and kind in _NAMED


def _names_in(schema: Any, space: str) -> list[str]:
    """Return the full names of types that a schema uses, each once."""
    if isinstance(schema, str):
        return [schema if "." in schema or not space else f"{space}.{schema}"]
    if isinstance(schema, list):
        found = [name for each in schema for name in _names_in(each, space)]
    elif isinstance(schema, Mapping):
        if _is_named(schema):
            space = full_name(schema, space).rpartition(".")[0]
        inner = [schema[key] for key in ("type", "items", "values", "fields") if key in schema]
        found = [name for each in inner for name in _names_in(each, space)]
    else:
        found = []
    return list(dict.fromkeys(found))


def _definitions(schema: SchemaText) -> dict[str, Any]:
    """Return the definitions that a schema refers to, by full name."""
    known: dict[str, Any] = {}
    for reference in schema.all_references().values():
        definition = parse_json(reference.text, "schema")
        if isinstance(definition, Mapping) and isinstance(definition.get("name"), str):
            known.setdefault(full_name(definition, ""), definition)
    return known


def full_name(definition: Mapping[str, Any], space: str) -> str:
    """Return the full name of a named type that is defined in a namespace."""
    name = str(definition.get("name", ""))
    inside = namespace_of(definition, space)
    return name if "." in name or not inside else f"{inside}.{name}"


class _Definitions:
    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known, self._defined = known, set[str]()

    def of(self, schema: Any, space: str, depth: int) -> Any:
        """Return a schema of a namespace with the definitions that it lacks."""
        if depth > MAX_NESTING:
            raise SchemaError(f"the Avro schema is nested more than {MAX_NESTING} levels deep")
        if isinstance(schema, str):
            return self._named(schema, space, depth)
        if isinstance(schema, list):
            return [self.of(each, space, depth + 1) for each in schema]
        if not isinstance(schema, Mapping):
            return schema
        found = dict(schema)
        if _is_named(found):
            name = full_name(found, space)
            self._defined.add(name)
            space = name.rpartition(".")[0]
            if isinstance(found.get("fields"), list):
                found["fields"] = [self._field(each, space, depth) for each in found["fields"]]
            return found
        return {
            key: self.of(value, space, depth + 1) if key in ("type", "items", "values") else value
            for key, value in found.items()
        }

    def _field(self, field: Any, space: str, depth: int) -> Any:
        if not isinstance(field, Mapping) or "type" not in field:
            return field
        return {**field, "type": self.of(field["type"], space, depth + 1)}

    def _named(self, name: str, space: str, depth: int) -> Any:
        full = name if "." in name or not space else f"{space}.{name}"
        full = full if full in self._known else name
        if full not in self._known or full in self._defined:
            return name
        definition = {**self._known[full], "name": full.rpartition(".")[2], "namespace": full.rpartition(".")[0]}
        return self.of(definition, "", depth + 1)
