"""Avro schemas as the text that Java's ``Schema.toString()`` prints: what Java's serializers register.

Checked against Avro 1.11.1: attributes in a fixed order, names without a namespace that they inherit, unknown
attributes after the known ones. All of them are kept (``doc``, defaults, aliases): for the registry they count.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pravega_serde.avro.schema import PRIMITIVES, SchemaLike, load
from pravega_serde.errors import SchemaError
from pravega_serde.json.write_rows import NOT_FINITE, java_float

__all__ = ["avro_name", "avro_names", "avro_text"]

_NAMED: Final = frozenset({"enum", "error", "fixed", "record"})
_TYPE_NAMES: Final = PRIMITIVES | {"array", "enum", "fixed", "map", "record", "union"}
_RESERVED: Final = frozenset(
    {"aliases", "doc", "fields", "items", "name", "namespace", "size", "symbols", "type", "values"}
)
_FIELD_RESERVED: Final = frozenset({"aliases", "default", "doc", "name", "order", "type"})
_ESCAPE: Final = re.compile(r"\\u00([0-9a-f]{2})")

#: A full name: name and namespace, which is empty if there is none.
_Name = tuple[str, str]


def avro_text(schema: SchemaLike) -> str:
    """The text of a schema; :class:`SchemaError` if it is none."""
    _, text = load(schema)
    return _Printer().print(json.loads(text), "")


def avro_name(schema: SchemaLike) -> str:
    """The type under which a schema is registered: the full name of a record, enum or fixed, else the type's name.

    Raises :class:`SchemaError` for a union: a group holds one of its branches at a time.
    """
    _, text = load(schema)
    definition = json.loads(text)
    while isinstance(definition, Mapping) and not isinstance(definition["type"], str):
        definition = definition["type"]
    kind = definition["type"] if isinstance(definition, Mapping) else definition
    if not isinstance(kind, str):
        raise SchemaError("an Avro union has no name of its own; give the registry the schema of one of its branches")
    return _full(_name_of(definition, "")) if kind in _NAMED else kind


def avro_names(schema: SchemaLike) -> frozenset[str]:
    """The full names that a schema goes by: its own, and its aliases."""
    definition = json.loads(load(schema)[1])
    if not isinstance(definition, Mapping) or definition["type"] not in _NAMED:
        return frozenset({avro_name(schema)})
    name = _name_of(definition, "")
    return frozenset({_full(name), *(_full(_split(alias, name[1])) for alias in definition.get("aliases") or ())})


class _Printer:
    """Prints one schema; knows the names that have been printed, which are only referred to afterwards."""

    def __init__(self) -> None:
        self._known: set[_Name] = set()

    def print(self, schema: Any, space: str) -> str:
        if isinstance(schema, str):
            return _text(schema if schema in PRIMITIVES else _qualified(self._referred(schema, space), space))
        if isinstance(schema, list):
            return f"[{','.join(self.print(branch, space) for branch in schema)}]"
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.print(kind, space)
        if kind in _NAMED:
            return self._named(kind, schema, space)
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            return _object([("type", _text(kind)), (inner, self.print(schema[inner], space)), *_others(schema)])
        others = list(_others(schema))
        return _object([("type", _text(kind)), *others]) if others else self.print(kind, space)

    def _referred(self, name: str, space: str) -> _Name:
        own = _split(name, space)
        return own if own in self._known else (own[0], "")

    def _named(self, kind: str, schema: Mapping[str, Any], space: str) -> str:
        name = _name_of(schema, space)
        self._known.add(name)
        parts = [("type", _text(kind)), ("name", _text(name[0]))]
        if name[1] != space:
            parts.append(("namespace", _text(name[1])))
        if isinstance(schema.get("doc"), str):
            parts.append(("doc", _text(schema["doc"])))
        parts += self._body(kind, schema, name[1])
        parts += _others(schema, without={"default"} if kind == "enum" else ())
        if schema.get("aliases"):
            aliases = [_split(alias, name[1]) for alias in dict.fromkeys(schema["aliases"])]
            parts.append(("aliases", _texts(_qualified(alias, name[1]) for alias in aliases)))
        return _object(parts)

    def _body(self, kind: str, schema: Mapping[str, Any], space: str) -> Iterable[tuple[str, str]]:
        if kind == "fixed":
            yield "size", str(schema["size"])
        elif kind == "enum":
            yield "symbols", _texts(schema["symbols"])
            if schema.get("default") is not None:
                yield "default", _text(schema["default"])
        else:
            yield "fields", f"[{','.join(self._field(field, space) for field in schema['fields'])}]"

    def _field(self, field: Mapping[str, Any], space: str) -> str:
        parts = [("name", _text(field["name"])), ("type", self.print(field["type"], space))]
        if isinstance(field.get("doc"), str):
            parts.append(("doc", _text(field["doc"])))
        if "default" in field:
            parts.append(("default", _value(_default(field["type"], field["default"]))))
        if str(field.get("order", "ascending")).lower() != "ascending":
            parts.append(("order", _text(str(field["order"]).lower())))
        if field.get("aliases"):
            parts.append(("aliases", _texts(dict.fromkeys(field["aliases"]))))
        parts += [(key, _value(value)) for key, value in field.items() if key not in _FIELD_RESERVED]
        return _object(parts)


def _name_of(schema: Mapping[str, Any], space: str) -> _Name:
    return _split(schema["name"], schema.get("namespace", space))


def _split(name: str, space: str) -> _Name:
    if "." not in name:
        return name, space
    own, _, last = name.rpartition(".")
    return last, own


def _full(name: _Name) -> str:
    return f"{name[1]}.{name[0]}" if name[1] else name[0]


def _qualified(name: _Name, space: str) -> str:
    """A name as it is referred to inside a namespace: in full, if it would be taken for another."""
    inherited = name[1] == space and name[0] not in _TYPE_NAMES
    return name[0] if inherited else _full(name)


def _others(schema: Mapping[str, Any], without: Iterable[str] = ()) -> Iterable[tuple[str, str]]:
    """The attributes that Avro does not know, in the order of the schema."""
    return [(key, _value(value)) for key, value in schema.items() if key not in _RESERVED and key not in without]


def _default(kind: Any, default: Any) -> Any:
    """Java takes a text for a default of a floating-point field as the number that it says."""
    if isinstance(default, str) and kind in ("float", "double"):
        try:
            return float(default)
        except ValueError as error:
            raise SchemaError(f"the Avro schema has the default {default!r} for a {kind}") from error
    return default


def _object(parts: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_text(key)}:{value}" for key, value in parts) + "}"


def _texts(texts: Iterable[str]) -> str:
    return f"[{','.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """A JSON string as Jackson writes it to text: nothing escaped that need not be, escapes in capitals."""
    return _ESCAPE.sub(lambda match: f"\\u00{match[1].upper()}", json.dumps(text, ensure_ascii=False))


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _object((key, _value(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return f"[{','.join(map(_value, value))}]"
    if isinstance(value, float):
        return java_float(value) if math.isfinite(value) else NOT_FINITE[str(value)]
    return _text(value) if isinstance(value, str) else json.dumps(value)
