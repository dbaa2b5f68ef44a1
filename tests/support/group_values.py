"""Values of reader groups as plain JSON values, in the same form as in java/GroupBytes.java."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from pravega_connector.reader_groups.protocol import Bound, KeyRange, Ranged, Segment
from pravega_connector.wire import StreamCut, StreamName

__all__ = ["plain", "plain_checkpoint"]


def plain(value: Any) -> Any:
    """Return a value as plain JSON.

    The order of sets and maps is lost. For a value decoded from bytes, only its content is kept.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case uuid.UUID() | StreamName():
            return str(value)
        case Enum():
            return value.value
        case Segment():
            return f"{value.stream.scope}/{value.stream.stream}/{value.id}"
        case KeyRange():
            return [value.low, value.high]
        case Ranged():
            return {"type": "Ranged", "positions": plain(value.positions), "ranges": plain(value.ranges)}
        case Bound():
            return plain(value.cut)
        case StreamCut():
            return plain(value.positions)
        case Mapping():
            return {str(plain(key)): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
    assert is_dataclass(value), value
    named = {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.name != "later"}
    return {"type": type(value).__name__, **named}


def plain_checkpoint(name: str, cuts: Mapping[StreamName, StreamCut]) -> Any:
    """Return a checkpoint, which both languages exchange, as plain JSON."""
    return {"type": "Checkpoint", "name": name, "cuts": plain(cuts)}
