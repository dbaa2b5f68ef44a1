"""Limits: what an event, a column or a schema may cost, so that none can ask for far more than its own size.

The formats have limits of their own kind in one form. Memory is a base and so many bytes for each byte of the event;
columns are read in rounds, of which only so many may be thin; a type may have only so many columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pravega_serde.columnar.bad_rows import MalformedError
from pravega_serde.errors import SchemaError

__all__ = ["MAX_COLUMNS", "MAX_THIN_ROUNDS", "THIN", "ColumnCount", "MemoryLimit", "ObjectLimit", "RoundBudget"]


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Bytes of memory that the values of an event may take."""

    per_byte: int
    """For each byte of the event."""
    base: int = 0
    """And for any event."""
    smallest: int = 0
    """Smaller events count as if they had so many bytes."""

    def of(self, size: int) -> int:
        """Memory for an event of so many bytes."""
        return self.base + self.per_byte * max(size, self.smallest)

    def exceeded(self, size: int) -> MalformedError:
        """Error of an event of so many bytes that would take more."""
        return MalformedError(
            f"the values of {size} bytes take more than {self.of(size) >> 20} MiB of memory", limit=True
        )


#: A small schema that names its records often can unfold into an enormous type; so many columns are allowed.
MAX_COLUMNS: Final = 10_000


@dataclass(slots=True)
class ColumnCount:
    """Number of columns that a schema has unfolded into so far."""

    count: int = 0

    def add(self) -> None:
        """Count a column; :class:`SchemaError` if there are too many."""
        self.count += 1
        if self.count > MAX_COLUMNS:
            raise SchemaError(f"the schema unfolds into more than {MAX_COLUMNS} columns; read it by rows")


#: A round that reads on in fewer rows than this costs more than reading the rows one by one.
THIN: Final = 32

#: So many such rounds a column may have: enough for a few rows with long lists, and for many short columns. Without a
#: limit, a single event with many items would take a round for each.
MAX_THIN_ROUNDS: Final = 256


@dataclass(slots=True)
class RoundBudget:
    """Number of thin rounds that the reading of a column may still take."""

    rounds: int = MAX_THIN_ROUNDS

    def allows(self, rows: int) -> bool:
        """Whether to read on in so many rows; otherwise they are left to the plain path."""
        if rows >= THIN:
            return True
        self.rounds -= 1
        return self.rounds >= 0


#: Memory that the objects of an event may take.
_OBJECTS: Final = MemoryLimit(per_byte=16, base=16 << 20)


class ObjectLimit:
    """Limit of the memory of an event's objects, each of which becomes a value of ``weight`` bytes at most.

    ``{}`` is two bytes of JSON, and one of CBOR. As an item of a list of structs it is a null in each of their columns,
    so a mebibyte of them could become gigabytes.
    """

    __slots__ = ("_allowed", "_weight")

    def __init__(self, weight: int, allowed: MemoryLimit = _OBJECTS) -> None:
        self._weight, self._allowed = weight, allowed

    @classmethod
    def of(cls, kind: pa.DataType) -> ObjectLimit:
        """Limit for events that are read as an Arrow type."""
        # A struct outside lists and maps comes once, however wide it is: that is the type's own size.
        return cls(_heaviest(kind, repeated=False))

    def concerns(self, size: int) -> bool:
        """Whether an event of so many bytes could exceed the limit: an object has at least its two braces."""
        return size // 2 * self._weight > self._allowed.of(size)

    def may_be_exceeded(self, event: bytes) -> bool:
        """Whether the event has that many opening braces, some of which may be text."""
        return bool(self._weight) and event.count(b"{") * self._weight > self._allowed.of(len(event))

    def check(self, event: bytes, value: Any) -> None:
        """Raise :class:`LimitExceededError` if the parsed ``value`` of a JSON ``event`` has too many objects."""
        if self.may_be_exceeded(event):
            self.check_objects(len(event), value)

    def check_objects(self, size: int, value: Any) -> None:
        """The same for an event of any format, of so many bytes, none of whose objects is without a byte."""
        allowed = self._allowed.of(size)
        if size * self._weight > allowed and _objects(value) * self._weight > allowed:
            raise self._allowed.exceeded(size).in_event("value")


#: Bytes of a tuple, and of one of its places; of a cell of an Arrow column, null or not.
_TUPLE: Final = 56
_PLACE: Final = 8
_CELL: Final = 9


def _heaviest(kind: pa.DataType, *, repeated: bool) -> int:
    """Bytes of the heaviest struct in a type that is an item of a list or map; 0 if there is none."""
    own = 0
    if pa.types.is_struct(kind) and repeated:
        own = _TUPLE + _PLACE * kind.num_fields + _CELL * _cells(kind)
    inside = repeated or pa.types.is_list(kind) or pa.types.is_map(kind)
    return max([own, *(_heaviest(kind.field(i).type, repeated=inside) for i in range(kind.num_fields))])


def _cells(kind: pa.DataType) -> int:
    if not pa.types.is_struct(kind):
        return 1
    return 1 + sum(_cells(entry.type) for entry in kind)


def _objects(value: Any) -> int:
    """Number of objects in a parsed value."""
    found, waiting = 0, [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            found += 1
            waiting.extend(at.values())
        elif isinstance(at, list):
            waiting.extend(at)
    return found
