"""What is known while one event is read: its bytes, the objects so far, and what it has cost."""

from __future__ import annotations

from typing import Any, Final

from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.java._constants import STREAM_HEADER
from pravega_serde.java._limits import HEAVY_BYTES, HEAVY_FACTOR, Limits
from pravega_serde.java._plans import DescriptorCache, Layouts, Plan

__all__ = ["NO_FIELDS", "UNRESOLVED", "Frame", "ReadState"]


class _Unresolved:
    """Stands in the handle table for an object that is not complete and has no form before it is."""

    def __repr__(self) -> str:
        return "<object that is still being read>"


UNRESOLVED: Final = _Unresolved()


NO_FIELDS: Final[list[Any]] = []


class Frame:
    """An object, array or run of annotations that is being read."""

    __slots__ = ("ahead", "handle", "items", "need", "notes", "plan", "shell", "step", "values")

    def __init__(self, plan: Plan | None, handle: int, shell: Any, items: list[Any], need: int) -> None:
        self.plan = plan
        self.handle = handle
        self.shell = shell
        self.items = items
        """Where the next values go."""
        self.need = need
        """How many more of them."""
        self.values = items
        self.notes: list[tuple[Any, ...]] = []
        self.step = 0
        self.ahead: list[Any] | None = None
        """Contents that came before the fields of the class that is being read; NO_FIELDS where it has none."""


class ReadState:
    """One event that is being read. ``cache`` is shared by the events of a serializer."""

    __slots__ = (
        "cache",
        "classes",
        "copied",
        "data",
        "doubtful",
        "handles",
        "heavy",
        "layouts",
        "limits",
        "lowest",
        "nesting",
        "singles",
        "size",
    )

    def __init__(self, data: bytes, cache: DescriptorCache, limits: Limits, layouts: Layouts | None = None) -> None:
        self.data, self.size = data, len(data)
        self.cache, self.limits = cache, limits
        self.layouts = layouts
        self.doubtful: dict[str, None] = {}
        self.handles: list[Any] = []
        self.singles: set[int] = set()
        self.classes = self.heavy = self.copied = self.nesting = self.lowest = 0
        if self.size > limits.size:
            msg = f"{self.size} bytes, the limit is {limits.size}"
            raise LimitExceededError(msg)
        if not data.startswith(STREAM_HEADER):
            msg = f"not a Java object stream: it begins with {data[:4].hex() or 'nothing'}, not {STREAM_HEADER.hex()}"
            raise DeserializationError(msg)

    def reserve(self) -> int:
        """Take the next handle for an object that is not there yet."""
        self.handles.append(UNRESOLVED)
        if len(self.handles) > self.limits.handles:
            msg = f"more than {self.limits.handles} objects in one event"
            raise LimitExceededError(msg)
        return len(self.handles) - 1

    def unique(self, value: Any, kind: type[Any]) -> Any:
        """A value that is an object of its own: CPython shares small numbers and strings, a stream need not."""
        if id(value) in self.singles:
            return kind(value)
        self.singles.add(id(value))
        return value

    def charge(self, memory: int) -> None:
        """Account for a value whose Python form takes much more memory than its bytes."""
        self.heavy += memory
        if self.heavy > HEAVY_BYTES + HEAVY_FACTOR * self.size:
            msg = f"sets, deques or keys that take {self.heavy} bytes of memory in an event of {self.size}"
            raise LimitExceededError(msg)

    def copies(self, count: int) -> bool:
        """Account for ``count`` elements or bytes that are copied out of an object which others may share.

        False when more has been copied than the event has bytes: only many references to one object can do that.
        """
        self.copied += count
        return self.copied <= self.size

    def read_annotation(self, pos: int) -> tuple[tuple[Any, ...], int]:
        """Contents up to the end mark, for class descriptors; whoever reads objects knows how."""
        raise NotImplementedError
