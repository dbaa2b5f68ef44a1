"""How much memory the objects of an event may take as values of an Arrow type, or of a class.

``{}`` is two bytes of JSON. As an item of a list of structs it is a null in each of their columns, so a mebibyte of
them could be gigabytes.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from pravega_serde.errors import LimitExceededError

__all__ = ["Budget"]

#: Bytes of memory that the objects of any event may take, and how many more for each of its own.
_BASE: Final = 16 << 20
_PER_BYTE: Final = 16

#: Of a tuple, and of one of its places; of an Arrow column's cell, whether it is null or not.
_TUPLE: Final = 56
_PLACE: Final = 8
_CELL: Final = 9


class Budget:
    """What the objects of an event may take, each of which becomes a value of ``weight`` bytes at most."""

    __slots__ = ("_weight",)

    def __init__(self, weight: int) -> None:
        self._weight = weight

    @classmethod
    def of(cls, kind: pa.DataType) -> Budget:
        """For events that are read as an Arrow type."""
        # Structs that are no items come once, however wide they are: that is the type's own size.
        return cls(_heaviest(kind, repeated=False))

    def concerns(self, size: int) -> bool:
        """Whether an event of so many bytes could have too many objects: none is shorter than its two braces."""
        return size // 2 * self._weight > _BASE + _PER_BYTE * size

    def may_be_exceeded(self, event: bytes) -> bool:
        """Whether the event has that many braces; some may be text."""
        return bool(self._weight) and event.count(b"{") * self._weight > _limit(event)

    def check(self, event: bytes, value: Any) -> None:
        """Raise :class:`LimitExceededError` if the value of an event has too many objects for its bytes."""
        if self.may_be_exceeded(event) and _objects(value) * self._weight > _limit(event):
            most = _limit(event) >> 20
            raise LimitExceededError(f"the objects of {len(event)} bytes take more than {most} MiB of memory")


def _limit(event: bytes) -> int:
    return _BASE + _PER_BYTE * len(event)


def _heaviest(kind: pa.DataType, *, repeated: bool) -> int:
    """Memory of the heaviest struct of a type that is an item of a list or map."""
    own = 0
    if pa.types.is_struct(kind) and repeated:
        own = _TUPLE + _PLACE * kind.num_fields + _CELL * _leaves(kind)
    inside = repeated or pa.types.is_list(kind) or pa.types.is_map(kind)
    return max([own, *(_heaviest(kind.field(i).type, repeated=inside) for i in range(kind.num_fields))])


def _leaves(kind: pa.DataType) -> int:
    if not pa.types.is_struct(kind):
        return 1
    return 1 + sum(_leaves(entry.type) for entry in kind)


def _objects(value: Any) -> int:
    """Objects in a value of JSON."""
    found, waiting = 0, [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            found += 1
            waiting.extend(at.values())
        elif isinstance(at, list):
            waiting.extend(at)
    return found
