"""Checked Avro schemas as JSON again, after some of their types were exchanged for others."""

from __future__ import annotations

import json
from typing import Any

from pravega_serde.avro.schema import MISSING, Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union

__all__ = ["print_schema"]


def print_schema(schema: Type) -> str:
    """The text of a schema; what does not count for readers (docs, orders) is left out.

    Two records of one name that are not the same one, because a type inside one of them was exchanged, get different
    names: resolution goes by their fields.
    """
    return json.dumps(_Printer().of(schema), separators=(",", ":"))


class _Printer:
    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def of(self, schema: Type) -> Any:
        if isinstance(schema, Primitive):
            return _with_logical(schema.name, schema)
        if isinstance(schema, Union):
            return [self.of(branch) for branch in schema.branches]
        if isinstance(schema, Array):
            return {"type": "array", "items": self.of(schema.items)}
        if isinstance(schema, Map):
            return {"type": "map", "values": self.of(schema.values)}
        return self._names.get(id(schema)) or self._named(schema)

    def _named(self, schema: Fixed | Enum | Record) -> dict[str, Any]:
        name, taken = schema.name, set(self._names.values())
        # Only the last part has to stay: an enum or a fixed is resolved by it.
        while name in taken:
            name = f"again.{name}"
        self._names[id(schema)] = name
        text = {"name": name, "aliases": sorted(schema.aliases)} if schema.aliases else {"name": name}
        if "." not in name:
            text["namespace"] = ""
        if isinstance(schema, Record):
            return {"type": "record", **text, "fields": [self._field(entry) for entry in schema.fields]}
        if isinstance(schema, Fixed):
            return {**_as_dict(_with_logical("fixed", schema)), **text, "size": schema.size}
        default = {} if schema.default is None else {"default": schema.default}
        return {"type": "enum", **text, "symbols": list(schema.symbols), **default}

    def _field(self, entry: Field) -> dict[str, Any]:
        text: dict[str, Any] = {"name": entry.name, "type": self.of(entry.type)}
        if entry.aliases:
            text["aliases"] = list(entry.aliases)
        return text if entry.default is MISSING else {**text, "default": entry.default}


def _with_logical(name: str, schema: Primitive | Fixed) -> Any:
    logical = schema.logical
    if logical is None:
        return name
    text: dict[str, Any] = {"type": name, "logicalType": logical.name}
    return {**text, "precision": logical.precision, "scale": logical.scale} if logical.name == "decimal" else text


def _as_dict(text: Any) -> dict[str, Any]:
    return text if isinstance(text, dict) else {"type": text}
