"""Avro schemas derived from columns, and schemas as text.

:func:`avro_schema_of` derives a schema from an Arrow schema. :func:`avro_text` prints a schema like Java's
``Schema.toString()``, which Java's serializers register. :func:`print_schema` prints a schema with replaced types.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
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
from pravega_serde.columnar import is_text, no_form
from pravega_serde.errors import SchemaError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_schema_of(schema: pa.Schema, name: str) -> str:
    """Return the Avro schema of a record called ``name`` with the columns as fields.

    ``name`` may begin with a namespace.

    | Arrow | Avro |
    |---|---|
    | bool | boolean |
    | integers of up to 32 bits, but uint32 | int |
    | uint32, int64 | long |
    | float16, float32; float64 | float; double |
    | string, binary of any kind | string, bytes |
    | fixed_size_binary(n) | fixed of n bytes |
    | decimal(p, s) | bytes with the logical type decimal |
    | date; time | date; time-millis of seconds and milliseconds, time-micros of others |
    | timestamp with a time zone | timestamp-millis of seconds and milliseconds, timestamp-micros of others |
    | timestamp without | the same with ``local-`` before it |
    | list, map with string keys | array, map |
    | struct | record, named after its field, in the namespace of the record around it (as Spark's ``to_avro`` does) |
    | dictionary | as its values |
    | a nullable field, item or value | a union of the type and null; a field has the default null |

    Nanoseconds are rounded down to microseconds when they are written. Raises :class:`SchemaError` for types that Avro
    does not have (for example uint64 and durations), and for invalid Avro names.
    """
    return avro_text(_record(list(schema), name, "$"))


def _record(fields: list[pa.Field], name: str, path: str) -> dict[str, Any]:
    for part in name.split("."):
        _check_name(part, path)
    space, _, last = name.rpartition(".")
    made = [_field(field, name, f"{path}.{field.name}") for field in fields]
    return {"type": "record", "name": last, "namespace": space, "fields": made}


def _check_name(name: str, path: str) -> None:
    if not _NAME.fullmatch(name):
        raise SchemaError(f"invalid Avro name {name!r} (at {path}): letters, digits and _ only; rename it")


def _field(field: pa.Field, space: str, path: str) -> dict[str, Any]:
    _check_name(field.name, path)
    default = {"default": None} if field.nullable else {}
    return {"name": field.name, "type": _optional(field, f"{space}.{field.name}", path), **default}


def _optional(field: pa.Field, name: str, path: str) -> Any:
    schema = _of(field.type, name, path)
    return ["null", schema] if field.nullable and schema != "null" else schema


def _of(kind: pa.DataType, name: str, path: str) -> Any:
    for fits, build in _BUILDERS:
        if fits(kind):
            return build(kind, name, path)
    raise no_form(kind, "Avro", path)


_Build = Callable[[pa.DataType, str, str], Any]


def _constant(schema: Any) -> _Build:
    return lambda _, __, ___: schema


def _logical(base: str, logical: str) -> dict[str, str]:
    return {"type": base, "logicalType": logical}


def _decimal(kind: pa.DataType, name: str, path: str) -> Any:  # noqa: ARG001
    if kind.scale < 0 or kind.precision > 38:
        raise no_form(kind, "Avro that Spark and Java share", path)
    return {**_logical("bytes", "decimal"), "precision": kind.precision, "scale": kind.scale}


def _timestamp(kind: pa.DataType, name: str, path: str) -> Any:  # noqa: ARG001
    unit = "millis" if kind.unit in ("s", "ms") else "micros"
    return _logical("long", f"{'local-' if kind.tz is None else ''}timestamp-{unit}")


def _map(kind: pa.MapType, name: str, path: str) -> Any:
    if not is_text(kind.key_type):
        raise no_form(kind, "Avro", path, "cast its keys to string")
    return {"type": "map", "values": _optional(kind.item_field, name, f"{path}{{}}")}


def _fixed(kind: pa.DataType, name: str, path: str) -> Any:  # noqa: ARG001
    space, _, last = name.rpartition(".")
    return {"type": "fixed", "name": last, "namespace": space, "size": kind.byte_width}


_t = pa.types
_SMALL: Final = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_BUILDERS: Final[tuple[tuple[Callable[[pa.DataType], bool], _Build], ...]] = (
    (_t.is_dictionary, lambda kind, name, path: _of(kind.value_type, name, path)),
    (_t.is_null, _constant("null")),
    (_t.is_boolean, _constant("boolean")),
    (lambda kind: kind in _SMALL, _constant("int")),
    (lambda kind: kind in (pa.uint32(), pa.int64()), _constant("long")),
    (_t.is_float64, _constant("double")),
    (_t.is_floating, _constant("float")),
    (_t.is_decimal, _decimal),
    (is_text, _constant("string")),
    (_t.is_fixed_size_binary, _fixed),
    (lambda kind: _t.is_binary(kind) or _t.is_large_binary(kind) or _t.is_binary_view(kind), _constant("bytes")),
    (_t.is_date, _constant(_logical("int", "date"))),
    (_t.is_time32, _constant(_logical("int", "time-millis"))),
    (_t.is_time64, _constant(_logical("long", "time-micros"))),
    (_t.is_timestamp, _timestamp),
    (_t.is_map, _map),
    (_t.is_struct, lambda kind, name, path: _record(list(kind), name, path)),
    (
        lambda kind: _t.is_list(kind) or _t.is_large_list(kind) or _t.is_fixed_size_list(kind),
        lambda kind, name, path: {"type": "array", "items": _optional(kind.value_field, name, f"{path}[]")},
    ),
)


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
        raise SchemaError("an Avro union has no name; register the schema of one of its branches")
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
        from pravega_serde.json.write_rows import NOT_FINITE, java_float  # noqa: PLC0415 - few schemas have such a value

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
