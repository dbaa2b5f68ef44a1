"""How much memory the value of an event may take.

A message of no content takes two bytes, so a small event could hold very many large messages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from pravega_serde.errors import LimitExceededError
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan, reachable
from pravega_serde.protobuf._wire import walk

__all__ = ["MAX_EXPANSION", "Meter", "message_cost", "value_cost"]

#: How many bytes an event's value may take for each byte of the event.
MAX_EXPANSION: Final = 64

#: Events below this size count as if they had it.
_SMALL_EVENT: Final = 1 << 20


class Meter:
    """Finds events that would take too much. Few need a look: most types cannot expand so far."""

    __slots__ = ("_cost", "_plan", "safe_size")

    def __init__(self, plan: MessagePlan, cost: Callable[[MessagePlan], int]) -> None:
        self._plan, self._cost = plan, cost
        inner = [f for p in reachable(plan) for f in p.fields]
        # The most that a byte can take: messages have two of them at least, packed values one.
        most = max((_per_byte(f, cost) for f in inner), default=0)
        self.safe_size = MAX_EXPANSION * _SMALL_EVENT // most if most > MAX_EXPANSION else sys.maxsize
        """Events of so many bytes, or fewer, need no look."""

    def measure(self, data: bytes) -> None:
        """Raise :class:`LimitExceededError` if the event would take too much, MalformedError if it is none."""
        budget = MAX_EXPANSION * max(len(data), _SMALL_EVENT)
        taken = 0

        def visit(what: MessagePlan | FieldPlan, size: int) -> None:
            nonlocal taken
            taken += self._cost(what) if isinstance(what, MessagePlan) else size * _item_cost(what)
            if taken > budget:
                raise LimitExceededError(
                    f"an event of {len(data)} bytes would take more than {budget >> 20} MiB, "
                    f"{MAX_EXPANSION} bytes for each of its own"
                )

        walk(data, self._plan, visit)


def _per_byte(field: FieldPlan, cost: Callable[[MessagePlan], int]) -> int:
    if field.message is not None:
        return cost(field.message) // 2
    return _item_cost(field) if field.label == "repeated" and field.enum is not None else 0


def message_cost(plan: MessagePlan) -> int:
    """An upper bound of the bytes that Google's parser takes for a message of no content."""
    return 24 + 16 * len(plan.fields)


def value_cost(plan: MessagePlan) -> int:
    """An upper bound of the bytes of a message, its dict, and its row in Arrow."""
    return 256 + 112 * len(plan.fields)


def _item_cost(field: FieldPlan) -> int:
    """Bytes of an enum's value in a list, and of its name in Arrow, whose buffers double when they grow."""
    assert field.enum is not None
    return 24 + 2 * max(len(name.encode()) for name in field.enum.numbers)
