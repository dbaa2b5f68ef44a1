"""Avro schemas of a registry that refer to named types in other schemas, as one schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pravega_serde.avro.schema import MAX_NESTING, namespace_of, parse_json
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
        if found.get("type") in _NAMED:
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
