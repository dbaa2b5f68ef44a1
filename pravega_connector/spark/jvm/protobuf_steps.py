"""Steps of the JVM's Protobuf decoder, from the plan of a message type."""

from __future__ import annotations

from typing import Any

from pravega_connector.spark.jvm.messages import NotInJvmError
from pravega_serde.protobuf.plan import FieldPlan, MessagePlan
from pravega_serde.protobuf.rows import Meter, required_in, value_cost
from pravega_serde.protobuf.serializer import ProtobufSerializer

Steps = dict[str, Any]

# Google's parsers refuse messages in more than 100 others.
_DEEPEST = 50


def protobuf_plan(serializer: ProtobufSerializer) -> Steps:
    """Return the plan for the events of a serializer. Raises NotInJvmError for a message type without one."""
    plan = serializer.plan
    _ = serializer.arrow_type  # raises SchemaError for a message that contains itself
    if plan.shape != "message":
        raise NotInJvmError(f"Protobuf events of type {plan.name}")
    if required_in(plan) is not None:
        raise NotInJvmError("required fields of Protobuf")
    return {
        "format": "protobuf",
        "largest": min(Meter(plan, value_cost).safe_size, 2**31 - 1),
        "root": _message(plan, 0),
    }


def _message(plan: MessagePlan, depth: int) -> Steps:
    if depth > _DEEPEST:
        raise NotInJvmError(f"Protobuf messages in more than {_DEEPEST} others")
    if not plan.fields:
        raise NotInJvmError(f"the Protobuf message {plan.name} without fields")
    oneofs = list(dict.fromkeys(f.oneof for f in plan.fields if f.oneof is not None))
    fields = [
        {
            "name": f.name,
            "number": f.number,
            "label": f.label,
            "oneof": -1 if f.oneof is None else oneofs.index(f.oneof),
            "value": _entries(f, depth) if f.label == "map" else _value(f, depth),
        }
        for f in plan.fields
    ]
    unknown = {"unknown_matter": plan.unknown_matter, "oneofs": len(oneofs)}
    return {"kind": "message", "fields": fields} | unknown


def _entries(field: FieldPlan, depth: int) -> Steps:
    assert field.message is not None
    key, value = field.message.fields
    # An entry always has a value: without one, it is the default of the type.
    has_default = value.message is None and value.label == "implicit"
    return {"key": _value(key, depth), "value": _value(value, depth + 1), "has_default": has_default}


def _value(field: FieldPlan, depth: int) -> Steps:
    if field.kind == "group" or field.declared is not None:
        raise NotInJvmError(f"the Protobuf field {field.name}, a group or a value of another type")
    if field.enum is not None:
        if field.label == "implicit" and 0 not in field.enum.names:
            raise NotInJvmError(f"the Protobuf enum {field.enum.name} without zero")
        return {"kind": "enum", "names": [[number, name] for number, name in field.enum.names.items()]}
    inner = field.message
    if inner is None:
        return {"kind": field.kind}
    if inner.shape == "message":
        return _message(inner, depth + 1)
    if inner.shape == "timestamp":
        return {"kind": "timestamp"}
    if inner.shape == "wrapper":
        return {"kind": "wrapper", "value": _value(inner.fields[0], depth + 1)}
    raise NotInJvmError(f"the Protobuf field {field.name} of type {inner.name}")
