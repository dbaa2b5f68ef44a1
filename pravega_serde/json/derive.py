"""Columns of JSON: from a JSON schema, and to a JSON schema.

Schemas of draft 3 and later are read, as far as they name types. This includes the schemas that Jackson's
``JsonSchemaGenerator`` writes for a Java class, and those that :func:`json_schema_of` returns for columns.

Types and formats are those of the type table. ``utc-millisec`` is Jackson's format of a ``java.util.Date``.

| JSON schema | Arrow |
|---|---|
| object with properties; with additionalProperties of one type | struct; map<string, ...> |
| array with items | list |
| [T, null]; oneOf or anyOf of T and null | T |
| an enum or a const without a type | the type of its values other than null |
| $ref inside the schema, by pointer, by an ``id``, or by both | what it refers to |
| anything else: any, several types, no items, a type inside itself | no column; rows have it |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from pravega_serde.columnar.bad_rows import has_surrogate
from pravega_serde.columnar.limits import ColumnCount
from pravega_serde.columnar.types import ROWS, SchemaWalk, is_family, stored
from pravega_serde.errors import SchemaError

#: Objects inside objects, so that no schema makes Python recurse without end.
MAX_NESTING: Final = 64

#: Digits of the largest decimal of Arrow.
_DIGITS: Final = 76
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")
#: Type, perhaps with its format -> Arrow type. Of several Arrow types, the last one of the table counts.
_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    **{row.schema: row.stored for row in ROWS.values() if row.schema and row.stored is not None},
    "integer, format utc-millisec": pa.timestamp("us", "UTC"),
}


def arrow_type_of_json_schema(text: str | bytes) -> pa.DataType:
    """Return the Arrow type of the events of a JSON schema; raise :class:`SchemaError` if it names none."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the JSON schema is not JSON: {error}") from error
    kind = _Reader(schema).type_of(schema, ())
    if kind is None:
        raise SchemaError("the JSON schema does not define the columns of its events; pass an Arrow schema")
    return kind


class References:
    """References between the parts of a JSON schema."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._ids = {
            inner[key]: inner for inner in _schemas(root) for key in ("id", "$id") if isinstance(inner.get(key), str)
        }

    def target(self, schema: Any) -> Any:
        """Resolve all references of a schema; return None if the target is not in this text."""
        for _ in range(MAX_NESTING):
            if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
                return schema
            schema = self.referred(schema["$ref"])
        return None

    def referred(self, reference: str) -> Any:
        """Return what a reference names, which may refer to something else; None if it is not in this text."""
        base, _, pointer = reference.partition("#")
        found = self._ids.get(base) if base else self._root
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        return found


class _Reader:
    def __init__(self, root: Any) -> None:
        self._columns = ColumnCount()
        self._references = References(root)

    def type_of(self, schema: Any, inside: tuple[int, ...]) -> pa.DataType | None:
        schema = self._references.target(schema)
        if not isinstance(schema, Mapping) or id(schema) in inside or len(inside) > MAX_NESTING:
            return None
        self._columns.add()
        inside = (*inside, id(schema))
        for several in ("oneOf", "anyOf"):
            if isinstance(schema.get(several), list):
                return self._single(schema[several], inside)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._single([{**schema, "type": one} if isinstance(one, str) else one for one in kind], inside)
        if kind is None:
            kind = _kind_of_values([schema["const"]] if "const" in schema else schema.get("enum"))
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, inside)
        if kind == "array":
            item = self.type_of(schema.get("items"), inside)
            return None if item is None else pa.list_(pa.field("element", item))
        return _scalar(kind, schema.get("format"))

    def _single(self, options: list[Any], inside: tuple[int, ...]) -> pa.DataType | None:
        others = [one for one in options if not (isinstance(one, Mapping) and one.get("type") == "null")]
        if not others:
            return pa.null()
        return self.type_of(others[0], inside) if len(others) == 1 else None

    def _object(self, schema: Mapping[str, Any], inside: tuple[int, ...]) -> pa.DataType | None:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            found = [(name, self.type_of(inner, inside)) for name, inner in properties.items()]
            fields = [pa.field(name, kind) for name, kind in found if kind is not None and not has_surrogate(name)]
            return pa.struct(fields) if fields else None
        value = self.type_of(schema.get("additionalProperties"), inside)
        return None if value is None else pa.map_(pa.string(), value)


def _schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects within a schema, without recursion, since foreign text may nest deeply."""
    left = [schema]
    while left:
        inner = left.pop()
        if isinstance(inner, Mapping):
            yield inner
            left.extend(inner.values())
        elif isinstance(inner, list):
            left.extend(inner)


def _kind_of_values(values: Any) -> str | None:
    """Return the type of values other than null, or None for values of several types."""
    kinds = {_KINDS.get(type(value)) for value in values} if isinstance(values, list) else set()
    kinds = kinds - {"null"} or kinds
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else None


_KINDS: Final = {bool: "boolean", float: "number", int: "integer", str: "string", type(None): "null"}


def _scalar(kind: Any, form: Any) -> pa.DataType | None:
    if not isinstance(kind, str):
        return None
    decimal = _DECIMAL.fullmatch(form) if kind == "number" and isinstance(form, str) else None
    if decimal and 0 < int(decimal[1]) <= _DIGITS and int(decimal[2]) <= int(decimal[1]):
        return stored(pa.decimal256(int(decimal[1]), int(decimal[2])))
    return _COLUMNS.get(f"{kind}, format {form}", _COLUMNS.get(kind))


def json_schema_of(schema: pa.Schema, name: str) -> str:
    """Return the JSON schema (draft 7), called ``name``, of the events that columns become.

    A nullable field may be null; any other field is required. Raises :class:`SchemaError` for types that JSON cannot
    hold: times, durations. See ``docs/serialization/derived-schemas.md`` for the types.
    """
    text = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, **_Schemas().object(schema, "$")}
    return json.dumps(text, separators=(",", ":"), ensure_ascii=False)


class _Schemas(SchemaWalk[dict[str, Any]]):
    language, column = "JSON schema", "schema"

    def field(self, field: pa.Field, path: str) -> dict[str, Any]:
        schema = self.of(field.type, path)
        return {**schema, "type": [schema["type"], "null"]} if field.nullable and schema["type"] != "null" else schema

    def leaf(self, kind: pa.DataType, path: str, form: str) -> dict[str, Any]:
        if is_family(kind, "decimal"):
            form = form.replace("p,s", f"{kind.precision},{kind.scale}")
        name, _, text = form.partition(", format ")
        return {"type": name, **({"format": text} if text else {})}

    def items(self, kind: pa.ListType, path: str) -> dict[str, Any]:
        return {"type": "array", "items": self.item(kind, path)}

    def entries(self, kind: pa.MapType, path: str) -> dict[str, Any]:
        self.check_keys(kind, path, "text")
        return {"type": "object", "additionalProperties": self.value(kind, path)}

    def fields(self, kind: pa.StructType, path: str) -> dict[str, Any]:
        return self.object(kind, path)

    def object(self, fields: Iterable[pa.Field], path: str) -> dict[str, Any]:
        properties = self.members(fields, path)
        required = [field.name for field in fields if not field.nullable]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}
