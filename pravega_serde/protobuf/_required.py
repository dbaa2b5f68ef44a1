"""Required fields (proto2) that are missing.

Google's parser takes messages that lack some, and its own search for them crashes on maps in lists of messages
(protobuf 7.36), which its ``SerializeToString`` does, too. So they are sought here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message

from pravega_serde.protobuf._plan import FieldPlan, MessagePlan, reachable

__all__ = ["Required", "required_in"]


def required_in(plan: MessagePlan) -> Required | None:
    """What finds missing fields in messages of a type; None if it requires none, as in proto3."""
    found = any(f.label == "required" for inner in reachable(plan) for f in inner.fields)
    return Required(plan) if found else None


class Required:
    """Finds what is missing in messages of a type."""

    __slots__ = ("_plan",)

    def __init__(self, plan: MessagePlan) -> None:
        self._plan = plan

    def missing(self, message: Message) -> str:
        """Paths of required fields that are missing; nothing, if none is."""
        return "" if message.IsInitialized() else ", ".join(_missing(message, self._plan))


def _missing(message: Any, plan: MessagePlan) -> Iterator[str]:
    for field in plan.fields:
        if field.label == "required" and not message.HasField(field.name):
            yield field.name
        elif field.message is not None:
            for step, inner in _inside(message, field):
                part = field.message.fields[1].message if field.label == "map" else field.message
                assert part is not None
                yield from (f"{step}.{path}" for path in _missing(inner, part))


def _inside(message: Any, field: FieldPlan) -> list[tuple[str, Any]]:
    """The messages that a field holds."""
    name = field.name
    if field.label == "repeated":
        return [(f"{name}[{index}]", item) for index, item in enumerate(getattr(message, name))]
    if field.label != "map":
        return [(name, getattr(message, name))] if message.HasField(name) else []
    assert field.message is not None
    if field.message.fields[1].message is None:
        return []
    return [(f"{name}[{key!r}]", value) for key, value in getattr(message, name).items()]
