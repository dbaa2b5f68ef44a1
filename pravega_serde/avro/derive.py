"""Avro schemas derived from columns, and schemas as text.

:func:`avro_schema_of` derives a schema from an Arrow schema. :func:`avro_text` prints a schema like Java's
``Schema.toString()``, which Java's serializers register. :func:`print_schema` prints a schema with replaced types.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro.schema import (
    MISSING,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    SchemaLike,
    Type,
    Union,
    load,
    namespace_of,
)
from pravega_serde.avro.values import java_number
from pravega_serde.columnar.types import SchemaWalk
from pravega_serde.errors import SchemaError
from pravega_serde.json.write_rows import NOT_FINITE, java_float

#: Parts of a path that are not names of fields.
_STEPS: Final = re.compile(r"\$|\[\]|\{\}")


def avro_schema_of(schema: pa.Schema | Any, name: str | None = None) -> str:
    """Return the Avro schema of a class, such as ``Order``, or of a record with columns as fields.

    ``name`` is the name of the record. It may begin with a namespace. For a class, it is by default the name of the
    class. The page *Derived schemas* has the types of a class.

    A struct becomes a record named after its field, in the namespace of the record around it, as Spark's ``to_avro``
    does. A nullable field, item or value is a union of the type and null; a field has the default null. See
    ``docs/serialization/derived-schemas.md`` for the types.

    Nanoseconds are rounded down to microseconds when they are written. Raises :class:`SchemaError` for types that Avro
    does not have (for example uint64 and durations), and for invalid Avro names.
    """
    if not isinstance(schema, pa.Schema):
        from pravega_serde.adapters.avro_schemas import avro_definition  # noqa: PLC0415 - columns need no classes

        return avro_text(avro_definition(schema, name, avro_schema_of))
    if name is None:
        raise SchemaError("columns have no name; pass the name of the record")
    schemas = _Schemas(name)
    for part in name.split("."):
        schemas.check_name(part, "$")
    return avro_text(schemas.record(schema, "$"))


class _Schemas(SchemaWalk[Any]):
    language, column = "Avro", "avro"

    def __init__(self, name: str) -> None:
        self._name = name

    def _named(self, path: str) -> dict[str, str]:
        """Return the name of a type: its field's, in the namespace of the record around it."""
        space, _, last = (self._name + _STEPS.sub("", path)).rpartition(".")
        return {"name": last, "namespace": space}

    def field(self, field: pa.Field, path: str) -> Any:
        schema = self.of(field.type, path)
        return ["null", schema] if field.nullable and schema != "null" else schema

    def leaf(self, kind: pa.DataType, path: str, form: str) -> Any:
        base, _, logical = form.partition(", ")
        if base == "fixed":
            return {"type": base, **self._named(path), "size": kind.byte_width}
        digits = {"precision": kind.precision, "scale": kind.scale} if logical == "decimal" else {}
        return {"type": base, "logicalType": logical, **digits} if logical else base

    def items(self, kind: pa.ListType, path: str) -> Any:
        return {"type": "array", "items": self.item(kind, path)}

    def entries(self, kind: pa.MapType, path: str) -> Any:
        self.check_keys(kind, path, "text")
        return {"type": "map", "values": self.value(kind, path)}

    def fields(self, kind: pa.StructType, path: str) -> Any:
        return self.record(kind, path)

    def record(self, fields: Iterable[pa.Field], path: str) -> dict[str, Any]:
        for field in fields:
            self.check_name(field.name, f"{path}.{field.name}")
        schemas = self.members(fields, path)
        made = [
            {"name": field.name, "type": schemas[field.name], **({"default": None} if field.nullable else {})}
            for field in fields
        ]
        return {"type": "record", **self._named(path), "fields": made}


# ---- Java's form ----

# Checked against Avro 1.11.1: attributes in a fixed order, names without a namespace that they inherit, unknown
# attributes after the known ones. All are kept (doc, defaults, aliases), because the registry compares them.

_NAMED: Final = frozenset({"enum", "error", "fixed", "record"})
_TYPE_NAMES: Final = PRIMITIVES | {"array", "enum", "fixed", "map", "record", "union"}
_RESERVED: Final = frozenset(
    {"aliases", "doc", "fields", "items", "name", "namespace", "size", "symbols", "type", "values"}
)
_FIELD_RESERVED: Final = frozenset({"aliases", "default", "doc", "name", "order", "type"})
_ESCAPE: Final = re.compile(r"\\u00([0-9a-f]{2})")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

#: A full name: name and namespace, which is empty if there is none.
_Name = tuple[str, str]


def avro_text(schema: SchemaLike) -> str:
    """Return the text of a schema. Raises :class:`SchemaError`."""
    _, text = load(schema)
    try:
        return _JavaPrinter().print(json.loads(text), "")
    except RecursionError as error:  # in a default, or in an attribute that Avro does not define
        raise SchemaError("the Avro schema is nested too deeply") from error


def avro_name(schema: SchemaLike) -> str:
    """Return the name under which a schema is registered.

    It is the full name of a record, enum or fixed, otherwise the type's name. Raises :class:`SchemaError` for a union:
    a group holds its branches one at a time.
    """
    _, text = load(schema)
    definition = json.loads(text)
    while isinstance(definition, Mapping) and not isinstance(definition["type"], str):
        definition = definition["type"]
    kind = definition["type"] if isinstance(definition, Mapping) else definition
    if not isinstance(kind, str):
        raise SchemaError("an Avro union has no name")
    return _full(_name_of(definition, "")) if kind in _NAMED else kind


def avro_names(schema: SchemaLike) -> frozenset[str]:
    """Return the full names of a schema: its own name and its aliases."""
    definition = json.loads(load(schema)[1])
    if not isinstance(definition, Mapping) or definition["type"] not in _NAMED:
        return frozenset({avro_name(schema)})
    name = _name_of(definition, "")
    return frozenset({_full(name), *(_full(_split(alias, name[1])) for alias in definition.get("aliases") or ())})


class _JavaPrinter:
    """Printer of one schema. A name that was printed is only referred to afterwards."""

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
    return _split(schema["name"], namespace_of(schema, space))


def _split(name: str, space: str) -> _Name:
    if "." not in name:
        return name, space
    own, _, last = name.rpartition(".")
    return last, own


def _full(name: _Name) -> str:
    return f"{name[1]}.{name[0]}" if name[1] else name[0]


def _qualified(name: _Name, space: str) -> str:
    """Return a name as referred to in a namespace: in full, if the short name would be ambiguous."""
    inherited = name[1] == space and name[0] not in _TYPE_NAMES
    return name[0] if inherited else _full(name)


def _others(schema: Mapping[str, Any], without: Iterable[str] = ()) -> Iterable[tuple[str, str]]:
    """Return the attributes that Avro does not define, in the order of the schema."""
    return [(key, _value(value)) for key, value in schema.items() if key not in _RESERVED and key not in without]


def _default(kind: Any, default: Any) -> Any:
    """Return a default as Java prints it. A text for a floating-point field becomes its number."""
    if isinstance(default, str) and kind in ("float", "double"):
        try:
            return java_number(default)
        except ValueError as error:
            raise SchemaError(f"the Avro schema has the default {default!r} for a {kind}") from error
    return default


def _object(parts: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_text(key)}:{value}" for key, value in parts) + "}"


def _texts(texts: Iterable[str]) -> str:
    return f"[{','.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """Return a JSON string as Jackson prints it: with minimal escapes, in capitals.

    Unpaired surrogates, which the text's encoding in UTF-8 cannot have, are escaped, too.
    """
    escaped = _ESCAPE.sub(lambda match: f"\\u00{match[1].upper()}", json.dumps(text, ensure_ascii=False))
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04X}", escaped)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _object((key, _value(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return f"[{','.join(map(_value, value))}]"
    if isinstance(value, float):
        return java_float(value) if math.isfinite(value) else NOT_FINITE[str(value)]
    return _text(value) if isinstance(value, str) else json.dumps(value)


# ---- changed schemas ----


def print_schema(schema: Type) -> str:
    """Return the text of a schema, without the attributes that readers ignore (docs, orders).

    Two different records with the same name, because a type inside one of them was replaced, get different names.
    Resolution compares their fields.
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
        # Only the last part must stay, because it resolves an enum or a fixed.
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
