"""Avro schemas: parsed once from JSON into checked objects, which all other modules use.

Follows the Avro 1.12 specification. Names are checked loosely, because some writers use other characters in them. An
unknown or malformed ``logicalType`` is ignored, as the specification requires.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pravega_serde.columnar.bad_rows import has_surrogate
from pravega_serde.errors import SchemaError

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

#: Default of a field without one (None is a valid default).
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Logical:
    """Logical type of a primitive or fixed."""

    name: str
    precision: int = 0
    """Total digits of a decimal."""
    scale: int = 0
    """Digits of a decimal after the point."""


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """Primitive type, one of eight."""

    name: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """Fixed number of bytes."""

    name: str
    aliases: frozenset[str]
    size: int
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """Enumeration of symbols."""

    name: str
    aliases: frozenset[str]
    symbols: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Items of one type."""

    items: Type


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """Values of one type under string keys."""

    values: Type


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Field of a record."""

    name: str
    aliases: tuple[str, ...]
    type: Type
    default: Any
    """JSON, or MISSING. Checked only on use, so a writer's defaults are not checked."""


@dataclass(slots=True, eq=False)
class Record:
    """Named fields in order. The fields are set after creation, because a field may contain the record itself."""

    name: str
    aliases: frozenset[str]
    fields: tuple[Field, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """Union of several types."""

    branches: tuple[Type, ...]


Type = Primitive | Fixed | Enum | Array | Map | Record | Union


def kind_of(schema: Type) -> str:
    """Return the name of a type in a schema: the primitive's, or the class's."""
    return schema.name if isinstance(schema, Primitive) else type(schema).__name__.lower()


def branches_of(schema: Union) -> list[Type]:
    """Return the branches of a union other than null."""
    return [branch for branch in schema.branches if kind_of(branch) != "null"]


def label_of(schema: Type) -> str:
    """Return the name of a union's branch: the full name of a named type, otherwise the kind."""
    return schema.name if isinstance(schema, Fixed | Enum | Record) else kind_of(schema)


def text_fault(schema: Type, path: Sequence[str]) -> str | None:
    """Return the reason why the field at a path cannot hold every text, or all bytes; None if it can."""
    if isinstance(schema, Union):
        branches = branches_of(schema)
        return text_fault(branches[0], path) if len(branches) == 1 else "is in a union of several types"
    if isinstance(schema, Array | Map):
        return text_fault(schema.items if isinstance(schema, Array) else schema.values, path)
    if isinstance(schema, Record) and path:
        inside = next((each.type for each in schema.fields if each.name == path[0]), None)
        return "does not exist" if inside is None else text_fault(inside, path[1:])
    if path or not isinstance(schema, Primitive):
        return f"is of the Avro type {kind_of(schema)}"
    if schema.logical is not None:
        return f"has the logical type {schema.logical.name}"
    return None if schema.name in ("string", "bytes") else f"is of the Avro type {schema.name}"


#: Accepted forms of a schema: JSON text, the name of a primitive type, the path of a file, or parsed JSON.
SchemaLike = str | Path | Mapping[str, Any] | list[Any]

#: Maximum depth of nested types. All functions on schemas are recursive, with up to four Python frames per level.
MAX_NESTING: Final = 64

#: Logical type -> the types that it may annotate.
_LOGICAL: Final[Mapping[str, frozenset[str]]] = {
    "date": frozenset({"int"}),
    "decimal": frozenset({"bytes", "fixed"}),
    "duration": frozenset({"fixed"}),
    "local-timestamp-micros": frozenset({"long"}),
    "local-timestamp-millis": frozenset({"long"}),
    "local-timestamp-nanos": frozenset({"long"}),
    "time-micros": frozenset({"long"}),
    "time-millis": frozenset({"int"}),
    "timestamp-micros": frozenset({"long"}),
    "timestamp-millis": frozenset({"long"}),
    "timestamp-nanos": frozenset({"long"}),
    "uuid": frozenset({"string", "fixed"}),
}
_FIXED_SIZE: Final = {"duration": 12, "uuid": 16}


def load(schema: SchemaLike) -> tuple[Type, str]:
    """Return the checked schema, and its text as compact JSON. Raises :class:`SchemaError`, which names the fault."""
    definition = definition_of(schema)
    try:
        return _Parser().parse(definition, ""), json.dumps(definition, separators=(",", ":"))
    except RecursionError as error:
        raise SchemaError("the Avro schema is nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the Avro schema has values that JSON does not support: {error}") from error


class _Parser:
    """Parser of the JSON, in one pass. It collects the named types."""

    def __init__(self) -> None:
        self._names: dict[str, Fixed | Enum | Record] = {}
        self._depth = 0

    def parse(self, schema: Any, space: str) -> Type:
        """Return the type of a schema inside a namespace."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise SchemaError(f"the Avro schema is nested more than {MAX_NESTING} levels deep")
        parsed = self._parse(schema, space)
        self._depth -= 1
        return parsed

    def _parse(self, schema: Any, space: str) -> Type:
        if isinstance(schema, str):
            return self._reference(schema, space)
        if isinstance(schema, list):
            return self._union(schema, space)
        if not isinstance(schema, Mapping):
            raise SchemaError(f"invalid Avro schema: {_short(schema)}")
        kind = _need(schema, "type", (str, Mapping, list), "schema")
        if not isinstance(kind, str):
            return self.parse(kind, space)
        if kind in PRIMITIVES:
            return Primitive(kind, _logical(schema, kind, 0))
        build = _COMPLEX.get(kind)
        return self._reference(kind, space) if build is None else build(self, kind, schema, space)

    def _array(self, kind: str, schema: Mapping[str, Any], space: str) -> Type:
        return Array(self.parse(_need(schema, "items", (str, Mapping, list), kind), space))

    def _map(self, kind: str, schema: Mapping[str, Any], space: str) -> Type:
        return Map(self.parse(_need(schema, "values", (str, Mapping, list), kind), space))

    def _reference(self, name: str, space: str) -> Type:
        if name in PRIMITIVES:
            return Primitive(name)
        for full in (name, f"{space}.{name}") if "." in name else (f"{space}.{name}" if space else name, name):
            if full in self._names:
                return self._names[full]
        raise SchemaError(f"the Avro schema refers to an unknown type {name!r}")

    def _union(self, branches: list[Any], space: str) -> Union:
        parsed = tuple(self.parse(branch, space) for branch in branches)
        labels = [label_of(branch) for branch in parsed]
        if any(isinstance(branch, Union) for branch in parsed):
            raise SchemaError(f"an Avro union must not contain a union: {_short(branches)}")
        if len(set(labels)) < len(labels) or not labels:
            raise SchemaError(f"an Avro union must contain different types: {_short(branches)}")
        return Union(parsed)

    def _named(self, kind: str, schema: Mapping[str, Any], space: str) -> Type:
        name, space = _full_name(schema, kind, space)
        if name in self._names or name in PRIMITIVES:
            raise SchemaError(f"the Avro schema defines {name!r} twice")
        aliases = frozenset(_names(schema, "aliases", name))
        if kind == "fixed":
            size = _need(schema, "size", (int,), f"fixed {name}")
            if isinstance(size, bool) or size < 0:
                raise SchemaError(f"fixed {name}: invalid size {size!r}")
            self._names[name] = fixed = Fixed(name, aliases, size, _logical(schema, kind, size))
            return fixed
        if kind == "enum":
            self._names[name] = enum = _enum(schema, name, aliases)
            return enum
        self._names[name] = record = Record(name, aliases)
        record.fields = self._fields(_need(schema, "fields", (list,), f"record {name}"), name, space)
        return record

    def _fields(self, fields: list[Any], record: str, space: str) -> tuple[Field, ...]:
        parsed: dict[str, Field] = {}
        for entry in fields:
            if not isinstance(entry, Mapping):
                raise SchemaError(f"record {record}: invalid field {_short(entry)}")
            name = _need(entry, "name", (str,), f"a field of record {record}")
            if name in parsed or not name:
                raise SchemaError(f"record {record} has the field {name!r} twice, or no name for it")
            where = f"field {_unicode(name, f'a field of record {record}')} of record {record}"
            # A logical type next to the field's type, instead of inside it, is ignored, as in Java, Spark and fastavro.
            kind = self.parse(_need(entry, "type", (str, Mapping, list), where), space)
            parsed[name] = Field(name, _names(entry, "aliases", where), kind, entry.get("default", MISSING))
        return tuple(parsed.values())


_COMPLEX: Final[Mapping[str, Callable[[_Parser, str, Mapping[str, Any], str], Type]]] = {
    "array": _Parser._array,
    "enum": _Parser._named,
    "error": _Parser._named,
    "fixed": _Parser._named,
    "map": _Parser._map,
    "record": _Parser._named,
}


def _enum(schema: Mapping[str, Any], name: str, aliases: frozenset[str]) -> Enum:
    symbols = _names(schema, "symbols", f"enum {name}", needed=True)
    default = schema.get("default")
    if len(set(symbols)) < len(symbols):
        raise SchemaError(f"enum {name} has a symbol twice")
    if default is not None and default not in symbols:
        raise SchemaError(f"enum {name}: its default {_short(default)} is not one of its symbols")
    return Enum(name, aliases, symbols, default)


def _logical(schema: Mapping[str, Any], kind: str, size: int) -> Logical | None:
    name = schema.get("logicalType")
    if not isinstance(name, str) or kind not in _LOGICAL.get(name, ()):
        return None
    if kind == "fixed" and _FIXED_SIZE.get(name, size) != size:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    for number in (precision, scale):
        if not isinstance(number, int) or isinstance(number, bool):
            return None
    assert isinstance(precision, int)
    if kind == "fixed" and precision > math.floor(math.log10(2) * (8 * size - 1)):
        return None  # as in Java: not all numbers of these digits fit
    return Logical(name, precision, scale) if 0 <= scale <= precision and precision > 0 else None


def namespace_of(definition: Mapping[str, Any], space: str) -> Any:
    """Return the namespace of a definition without a dot in its name. Null is absent, as in Java."""
    own = definition.get("namespace")
    return space if own is None else own


def _full_name(schema: Mapping[str, Any], kind: str, space: str) -> tuple[str, str]:
    """Return the full name of a named type, and the namespace for the types inside it."""
    name = _need(schema, "name", (str,), kind)
    if "." not in name:
        own = namespace_of(schema, space)
        if not isinstance(own, str):
            raise SchemaError(f"{kind} {name}: invalid namespace {_short(own)}")
        name = f"{own}.{name}" if own else name
    if not name.rpartition(".")[2]:
        raise SchemaError(f"{kind} without a name")
    return _unicode(name, kind), name.rpartition(".")[0]


def _unicode(name: str, where: str) -> str:
    if has_surrogate(name):
        raise SchemaError(f"the Avro schema has an unpaired surrogate in the name {_short(name)} of {where}")
    return name


def _need(schema: Mapping[str, Any], key: str, kinds: tuple[type, ...], where: str) -> Any:
    if key not in schema:
        raise SchemaError(f"the Avro schema lacks {key!r} in {where}: {_short(dict(schema))}")
    if not isinstance(schema[key], kinds):
        raise SchemaError(f"the Avro schema has a wrong {key!r} in {where}: {_short(schema[key])}")
    return schema[key]


def _names(schema: Mapping[str, Any], key: str, where: str, *, needed: bool = False) -> tuple[str, ...]:
    names = _need(schema, key, (list,), where) if needed else schema.get(key) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"the Avro schema has wrong {key} in {where}: {_short(names)}")
    return tuple(_unicode(name, where) for name in names)


def definition_of(schema: SchemaLike) -> Any:
    """Return the parsed JSON of a schema. Raises :class:`SchemaError`."""
    if isinstance(schema, Path):
        return parse_json(_read(schema), f"file {schema}")
    if not isinstance(schema, str):
        if isinstance(schema, Mapping | list):
            return schema
        raise SchemaError(f"an Avro schema must be JSON text, parsed JSON or a path, not {_kind_of(schema)}")
    text = schema.removeprefix("\ufeff").strip()
    if text in PRIMITIVES:
        return text
    if text[:1] in ("{", "[", '"') or text[:2] in ("/*", "//"):
        return parse_json(text, "schema")
    return parse_json(_read(Path(text)), f"file {text}")


def _kind_of(value: object) -> str:
    return f"a class: pass avro_schema_of({value.__name__})" if isinstance(value, type) else type(value).__name__


#: A string, or a comment, which Java's parser skips.
_STRING_OR_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|//[^\n]*', re.DOTALL)


def parse_json(text: str, where: str) -> Any:
    """Return the JSON of a schema, as Java's parser reads it: with a byte order mark, and with comments."""
    text = text.removeprefix("\ufeff")
    try:
        # NaN and infinities become text, because JSON has no others.
        return json.loads(_STRING_OR_COMMENT.sub(lambda found: found[1] or " ", text), parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the Avro {where} is not JSON: {error}") from error


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
        return data.decode(json.detect_encoding(data))
    except (OSError, ValueError) as error:
        raise SchemaError(
            f"an Avro schema must be JSON or the path of a .avsc file; {str(path)[:80]!r} is neither ({error})"
        ) from error


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
