"""Schemas of the Python classes of Protobuf messages, for the values of :meth:`ProtobufSerializer.as_dict`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from google.protobuf.descriptor import Descriptor

from pravega_serde.generating import class_schemas as schemas
from pravega_serde.generating.class_schemas import ClassSchemas, JsonSchema
from pravega_serde.protobuf.plan import EnumPlan, FieldPlan, MessagePlan, plan, reachable

_FLOATS: Final = frozenset({"double", "float"})
_KINDS: Final[dict[str, JsonSchema]] = {
    "bool": {"type": "boolean"},
    "bytes": schemas.BYTES,
    "string": {"type": "string"},
}
_SHAPES: Final[dict[str, JsonSchema]] = {
    "timestamp": schemas.DATETIME,
    "duration": schemas.DURATION,
    "json": {},
}
#: Value of a field that is not written.
_DEFAULTS: Final[dict[str, object]] = {"bool": False, "string": "", "double": 0.0, "float": 0.0}


def protobuf_classes(messages: Sequence[Descriptor]) -> ClassSchemas:
    """Return the schemas of messages, of the messages in them, and of their enums."""
    plans: dict[str, MessagePlan] = {}
    entries: set[str] = set()
    for each in messages:
        for found in reachable(plan(each)):
            plans.setdefault(found.name, found)
            entries |= {field.message.name for field in found.fields if field.label == "map" and field.message}
    own = [each for each in plans.values() if each.shape == "message" and each.name not in entries]
    return _Classes(own, all_needed=len(messages) == 1).build()


class _Classes:
    def __init__(self, plans: Sequence[MessagePlan], *, all_needed: bool) -> None:
        self._plans, self._all_needed = plans, all_needed
        fields = [field for each in plans for field in each.fields]
        fields += [
            inner for field in fields if field.label == "map" and field.message for inner in field.message.fields
        ]
        self._enums: dict[str, EnumPlan] = {each.enum.name: each.enum for each in fields if each.enum}
        self._names = schemas.class_names([*(each.name for each in plans), *self._enums])

    def build(self) -> ClassSchemas:
        made = ClassSchemas(all_needed=self._all_needed)
        for each in self._plans:
            properties = {each.fields[at].name: self._field(each.fields[at]) for at in each.order}
            made.schemas[self._names[each.name]] = schemas.class_of(properties)
        for name, enum in self._enums.items():
            made.schemas[self._names[name]] = {"type": "string", "enum": list(dict.fromkeys(enum.names.values()))}
        return made

    def _field(self, field: FieldPlan) -> JsonSchema:
        if field.label == "repeated":
            return {"type": "array", "items": self._single(field), "default": []}
        if field.label == "map":
            assert field.message is not None
            key, value = field.message.fields
            return {"type": "object", **_keys(key.kind), "additionalProperties": self._single(value), "default": {}}
        made = self._single(field)
        if field.label == "implicit":
            return made if field.enum or field.kind == "bytes" else {**made, "default": _DEFAULTS.get(field.kind, 0)}
        return made if field.label == "required" else {**schemas.optional(made), "default": None}

    def _single(self, field: FieldPlan) -> JsonSchema:
        if field.enum is not None:
            return schemas.refers_to(self._names[field.enum.name])
        if field.message is None:
            return _KINDS.get(field.kind) or {"type": "number" if field.kind in _FLOATS else "integer"}
        if field.message.shape == "wrapper":
            return schemas.optional(self._single(field.message.fields[0]))
        known = _SHAPES.get(field.message.shape)
        return schemas.refers_to(self._names[field.message.name]) if known is None else known


def _keys(kind: str) -> JsonSchema:
    """Return the part of a map's schema for keys of a kind. The generator reads ``x-python-type``."""
    python = {"string": "str", "bool": "bool"}.get(kind, "int")
    return {} if python == "str" else {"propertyNames": {"type": "string", "x-python-type": python}}
