"""Where in an object a reader or writer was when it failed: ``$.lines[3].price``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pravega_serde.java._state import Frame

__all__ = ["path_of"]

_LONGEST: Final = 12
"""Parts of a path that are shown; in the middle of a longer one stands an ellipsis."""


def path_of(stack: Sequence[Frame]) -> str:
    """Path of the value that the innermost frame waits for."""
    parts = [_part(frame) for frame in stack if frame.plan is not None or frame.handle >= 0]
    if len(parts) > _LONGEST:
        parts = [*parts[: _LONGEST // 2], "…", *parts[-_LONGEST // 2 :]]
    return "$" + "".join(parts)


def _part(frame: Any) -> str:
    if frame.plan is None:
        return f"[{len(frame.items)}]"
    if frame.items is not frame.values:
        return f"<{len(frame.items)}>"
    names = frame.plan.descriptor.field_names
    at = len(frame.values)
    return f".{names[at]}" if at < len(names) else ""
