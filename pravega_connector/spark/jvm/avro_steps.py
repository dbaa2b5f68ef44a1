"""Steps of the JVM's Avro decoder, from the plan with which Python resolves the schemas."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from pravega_connector.spark.jvm.messages import NotInJvmError
from pravega_serde.avro.resolve import ArrayNode, EnumNode, Leaf, MapNode, Node, RecordNode, UnionNode, resolve
from pravega_serde.avro.rows import surely_fits
from pravega_serde.avro.schema import Field, Primitive
from pravega_serde.avro.serializer import AvroSerializer
from pravega_serde.avro.values import is_decimal, is_long_decimal
from pravega_serde.avro.write_rows import encode_default
from pravega_serde.columnar import MalformedError

Steps = dict[str, Any]

# Reader's type: milliseconds that become microseconds.
_MILLIS: Final = ("timestamp-millis", "local-timestamp-millis")
_DAY: Final = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}


def avro_plan(serializer: AvroSerializer) -> Steps:
    """Return the plan for the events of a serializer. Raises NotInJvmError for a schema without one."""
    node = serializer.plan
    largest = surely_fits(node)
    if not largest:
        raise NotInJvmError("Avro items that may have no bytes, or are too wide")
    return {
        "format": "avro",
        "record": isinstance(resolved := resolve(serializer.reader), RecordNode) or _is_struct(resolved),
        "largest": largest,
        "root": _steps(node),
    }


def _is_struct(node: Node) -> bool:
    """Return True if a union at the top is read as the columns of its record, or of its members."""
    if not isinstance(node, UnionNode):
        return False
    return bool(node.members) or any(isinstance(arm.node, RecordNode) for arm in node.arms)


def _steps(node: Node) -> Steps:
    build = _BUILDERS.get(type(node))
    if build is None:
        raise NotInJvmError("an Avro record that contains itself")
    return build(node)


def _leaf(node: Leaf) -> Steps:
    target, wire = node.target, node.wire
    logical = target.logical.name if target.logical else ""
    size = {} if isinstance(target, Primitive) else {"size": target.size}
    if is_long_decimal(target.logical):
        raise NotInJvmError("an Avro decimal of more than 38 digits")
    if target.logical is not None and is_decimal(target.logical):
        if wire == "string":
            raise NotInJvmError("an Avro decimal in a string")
        return {"op": "decimal", "precision": target.logical.precision} | size
    if wire in ("bytes", "string", "fixed"):
        is_text = isinstance(target, Primitive) and target.name == "string"
        return {"op": "text", "utf8": is_text or wire == "string", "uuid": is_text and logical == "uuid"} | size
    if wire in ("int", "long"):
        step: Steps = {"op": wire}
        if logical in _MILLIS:
            step["times"] = 1000
        return step | ({"below": _DAY[logical]} if logical in _DAY else {})
    return {"op": wire}


def _items(node: ArrayNode) -> Steps:
    return {"op": "array", "item": _steps(node.item)}


def _record(node: RecordNode) -> Steps:
    fields = [
        {"name": None if step.slot is None else node.names[step.slot], "step": _steps(step.node)} for step in node.steps
    ]
    defaults = [{"name": node.names[slot]} | _default(entry) for slot, entry in node.defaults]
    return {"op": "record", "fields": fields, "defaults": defaults}


def _default(entry: Field) -> Steps:
    try:
        data = base64.b64encode(encode_default(entry)).decode()
    except MalformedError as error:
        raise NotInJvmError(f"a default that Python cannot write: {error}") from error
    return {"data": data, "step": _steps(resolve(entry.type))}


def _union(node: UnionNode) -> Steps:
    branches = [None if arm.node is None else _steps(arm.node) for arm in node.arms]
    if node.members:
        chosen = [arm.member for arm in node.arms]
        members = {"members": len(node.members), "chosen": chosen, "indexed": node.indexed}
        return {"op": "union", "branches": branches} | members
    if not node.indexed:
        (only,) = branches
        assert only is not None
        return only
    return {"op": "union", "branches": branches}


_BUILDERS: Final[Mapping[type, Callable[[Any], Steps]]] = {
    ArrayNode: _items,
    EnumNode: lambda node: {"op": "enum", "symbols": list(node.symbols)},
    Leaf: _leaf,
    MapNode: lambda node: {"op": "map", "value": _steps(node.value)},
    RecordNode: _record,
    UnionNode: _union,
}
