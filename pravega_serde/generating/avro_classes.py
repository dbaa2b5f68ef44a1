"""Schemas of the Python classes of an Avro schema, for the values of :class:`AvroSerializer`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pravega_serde.avro.schema import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    branches_of,
    load,
    namespace_of,
)
from pravega_serde.errors import SchemaError
from pravega_serde.generating import class_schemas as schemas
from pravega_serde.generating.class_schemas import ClassSchemas, JsonSchema

_PRIMITIVES: Final[Mapping[str, JsonSchema]] = {
    "null": {"type": "null"},
    "boolean": {"type": "boolean"},
    "int": {"type": "integer"},
    "long": {"type": "integer"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "bytes": schemas.BYTES,
    "string": {"type": "string"},
}
_LOGICAL: Final[Mapping[str, JsonSchema]] = {
    "date": schemas.DATE,
    "decimal": schemas.DECIMAL,
    "time-micros": schemas.TIME,
    "time-millis": schemas.TIME,
    "uuid": schemas.UUID,
    **{f"{local}timestamp-{unit}": schemas.DATETIME for local in ("", "local-") for unit in ("micros", "millis")},
}


def avro_classes(text: str) -> ClassSchemas:
    """Return the schemas of the records and enums of an Avro schema, the outermost first.

    Raises :class:`SchemaError` if it is not a record, or has a union that Python classes cannot hold.
    """
    root, _ = load(text)
    if not isinstance(root, Record):
        raise SchemaError("the Avro schema is not a record, so it has no class")
    return _Classes(root, _docs(json.loads(text))).build()


class _Classes:
    def __init__(self, root: Record, docs: Mapping[str, str]) -> None:
        self._docs = docs
        self._types: dict[str, Record | Enum] = {}
        self._collect(root)
        self._names = schemas.class_names(self._types)

    def build(self) -> ClassSchemas:
        return ClassSchemas({self._names[name]: self._class(each) for name, each in self._types.items()})

    def _collect(self, kind: Type) -> None:
        if isinstance(kind, Record | Enum):
            if kind.name in self._types:
                return
            self._types[kind.name] = kind
        for inner in _inside(kind):
            self._collect(inner)

    def _class(self, kind: Record | Enum) -> JsonSchema:
        doc = self._docs.get(kind.name, "")
        if isinstance(kind, Enum):
            return {"type": "string", "enum": list(kind.symbols), **({"description": doc} if doc.strip() else {})}
        return schemas.class_of({each.name: self._field(each, kind.name) for each in kind.fields}, doc)

    def _field(self, field: Field, record: str) -> JsonSchema:
        made = self._of(field.type, f"the field {field.name} of {record}")
        is_simple = field.default is None or isinstance(field.default, bool | int | float | str)
        first = field.type.branches[0] if isinstance(field.type, Union) else field.type
        plain = isinstance(first, Primitive) and first.logical is None and first.name != "bytes"
        if field.default is not MISSING and is_simple and plain:
            return {**made, "default": field.default}
        is_empty = isinstance(field.type, Array) and field.default == []
        return {**made, "default": []} if is_empty else made

    def _of(self, kind: Type, where: str) -> JsonSchema:
        if isinstance(kind, Record | Enum):
            return schemas.refers_to(self._names[kind.name])
        if isinstance(kind, Array):
            return {"type": "array", "items": self._of(kind.items, where)}
        if isinstance(kind, Map):
            return {"type": "object", "additionalProperties": self._of(kind.values, where)}
        if isinstance(kind, Union):
            return self._union(kind, where)
        known = None if kind.logical is None else _LOGICAL.get(kind.logical.name)
        return known or (schemas.BYTES if isinstance(kind, Fixed) else _PRIMITIVES[kind.name])

    def _union(self, kind: Union, where: str) -> JsonSchema:
        others = branches_of(kind)
        branches = [self._of(each, where) for each in others]
        kinds = [_json_kind(each, made) for each, made in zip(others, branches, strict=True)]
        if len(branches) < len(kind.branches):
            branches.append({"type": "null"})
        return branches[0] if len(branches) == 1 else schemas.union(branches, kinds, where)


def _inside(kind: Type) -> list[Type]:
    if isinstance(kind, Record):
        return [each.type for each in kind.fields]
    if isinstance(kind, Array | Map):
        return [kind.items if isinstance(kind, Array) else kind.values]
    return list(kind.branches) if isinstance(kind, Union) else []


def _json_kind(kind: Type, made: JsonSchema) -> str:
    if isinstance(kind, Record):
        return "object"
    return "string" if isinstance(kind, Enum) else str(made["type"])


def _docs(definition: Any, space: str = "") -> dict[str, str]:
    """Return the ``doc`` of each named type, by full name."""
    found: dict[str, str] = {}
    if isinstance(definition, list):
        for each in definition:
            found |= _docs(each, space)
    if not isinstance(definition, Mapping):
        return found
    name = definition.get("name")
    if isinstance(name, str) and definition.get("type") in ("record", "error", "enum", "fixed"):
        own = namespace_of(definition, space)
        full = name if "." in name or not own else f"{own}.{name}"
        space = full.rpartition(".")[0]
        if isinstance(definition.get("doc"), str):
            found[full] = definition["doc"]
    for key in ("type", "items", "values", "fields"):
        found |= _docs(definition.get(key), space)
    return found
