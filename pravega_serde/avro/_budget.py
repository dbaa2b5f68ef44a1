"""How much memory values may take, so that an event cannot ask for far more than its own size.

An item of one byte may be a record of many fields: nulls, defaults, records in records. A mebibyte of them would be
gigabytes. What a value takes at the least is known from the plan, so it is counted before the items of a block are
read, and where an event chooses: at the branches of unions, and at records inside themselves.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from pravega_serde.avro._nodes import ArrayNode, Leaf, MapNode, Node, RecordNode, UnionNode, ambiguous_labels
from pravega_serde.columnar import MalformedError

__all__ = ["MAX_EMPTY_ITEMS", "Budget", "TooMuchError", "Weights"]

#: Items that take no bytes (nulls, empty records) can be claimed in any number by a few bytes: so many are believed.
MAX_EMPTY_ITEMS: Final = 65_536

#: Bytes of memory that any event may take, and how many more for each of its own: 60 MiB for an event of one.
_BASE: Final = 24 << 20
_PER_BYTE: Final = 36

#: What CPython's values of logical types take. Numbers and texts take in proportion to their bytes, or little.
_LOGICAL: Final = {"decimal": 112, "uuid": 80, "timestamp": 56, "local-timestamp": 56, "time": 48, "date": 40}
_LIST: Final = 88
_MAP: Final = 128
_MEMBER: Final = 184
_PAIR: Final = 64
#: Of an Arrow column of the value, whether it is null or not.
_CELL: Final = 16


class TooMuchError(MalformedError):
    """Valid so far, but beyond a limit."""


class Budget(threading.local):
    """What the event being read may still take: items without bytes, and bytes of memory."""

    _items = 0
    _memory = 0
    _size = 0

    def start(self, size: int) -> None:
        """For an event of so many bytes."""
        self._items, self._memory, self._size = MAX_EMPTY_ITEMS, _BASE + _PER_BYTE * size, size

    def spend(self, weight: int) -> None:
        """Take memory; TooMuchError if there is not as much left."""
        self._memory -= weight
        if self._memory < 0:
            most = _BASE + _PER_BYTE * self._size >> 20
            raise TooMuchError(f"the values of {self._size} bytes take more than {most} MiB of memory")

    def for_items(self, weight: int, size: int) -> Callable[[int, int], None] | None:
        """Takes the number of a block's items, and of the bytes left; None where their bytes say enough.

        ``weight`` and ``size`` are the memory and the bytes that an item takes at the least.
        """
        if size and weight <= _PER_BYTE * size:
            return None

        def spend(count: int, left: int) -> None:
            if not size:
                self._spend_empty(count)
            elif count > left // size:
                count = left // size + 1  # what the event is too short for is never read
            memory = self._memory = self._memory - weight * count
            if memory < 0:
                self.spend(0)

        return spend

    def for_value(self, weight: int, size: int) -> Callable[[], None] | None:
        """The same of a single value."""
        return None if weight <= _PER_BYTE * size else lambda: self.spend(weight)

    def _spend_empty(self, count: int) -> None:
        self._items -= count
        if self._items < 0:
            raise TooMuchError(f"{count} items that take no bytes; at most {MAX_EMPTY_ITEMS} in an event are believed")


class Weights:
    """Bytes that a value takes at the least; for Arrow, with the columns that it is put into."""

    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        # Records are shared: a small schema may unfold into an enormous tree.
        self._known: dict[Node, int] = {}
        self._cells: dict[Node, int] = {}

    def of(self, node: Node) -> int:
        """The weight of a value, without items, chosen branches and records inside themselves."""
        if node not in self._known:
            self._known[node] = self._weigh(node)
        return self._known[node]

    def _weigh(self, node: Node) -> int:
        if isinstance(node, Leaf):
            return _leaf(node) + _CELL * self._arrow
        if isinstance(node, RecordNode):
            return self._record(node)
        if isinstance(node, UnionNode):
            return self.least(node) + self._choice(node)
        return {ArrayNode: _LIST, MapNode: _MAP}.get(type(node), 0)

    def _record(self, node: RecordNode) -> int:
        own = sys.getsizeof(dict.fromkeys(node.names))
        return (
            own + sum(self.of(step.node) for step in node.steps) + sum(_deep(each.default) for _, each in node.defaults)
        )

    def least(self, node: UnionNode) -> int:
        """The lightest branch's weight."""
        return min((self.of(arm.node) for arm in node.arms if arm.node is not None), default=0)

    def _choice(self, node: UnionNode) -> int:
        """What says which member it is."""
        if self._arrow:
            return _MEMBER + _CELL * self._width(node) if node.members else 0
        return _PAIR if ambiguous_labels(node) else 0

    def _width(self, node: Node) -> int:
        """Columns that hold a value: of a union, those of all members."""
        if node not in self._cells:
            self._cells[node] = sum(map(self._width, _parts(node))) or 1
        return self._cells[node]


def _leaf(node: Leaf) -> int:
    logical = node.target.logical
    return _LOGICAL.get(logical.name.removesuffix("-millis").removesuffix("-micros"), 0) if logical else 0


def _parts(node: Node) -> list[Node]:
    if isinstance(node, RecordNode):
        return [step.node for step in node.steps]
    return list(node.members) if isinstance(node, UnionNode) else []


def _deep(default: Any) -> int:
    """Memory of a default, which is JSON."""
    size = sys.getsizeof(default)
    if isinstance(default, dict):
        return size + sum(map(_deep, default.values()))
    return size + sum(map(_deep, default)) if isinstance(default, list) else size
