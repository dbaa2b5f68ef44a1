"""Limits on the cost of an event, a column or a schema, so that none can require far more than its own size.

All formats express their own limits in one form:

- Memory has a base and a number of bytes for each byte of the event.
- Columns are read in rounds, with a limited number of thin ones, or within a budget of memory.
- A type may have a limited number of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from pravega_serde.columnar.bad_rows import MalformedError
from pravega_serde.errors import SchemaError


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Limit in bytes of the memory for the values of an event."""

    per_byte: int
    """For each byte of the event."""
    base: int = 0
    """And for any event."""
    smallest: int = 0
    """Smaller events count as if they had this number of bytes."""

    def of(self, size: int) -> int:
        """Return the memory for an event of ``size`` bytes."""
        return self.base + self.per_byte * max(size, self.smallest)

    def exceeded(self, size: int) -> MalformedError:
        """Return the error of an event of ``size`` bytes that would need more."""
        return MalformedError(
            f"the values of {size} bytes use more than {self.of(size) >> 20} MiB of memory", limit=True
        )


#: Maximum number of columns: a small schema that repeats its records can unfold into an enormous type.
MAX_COLUMNS: Final = 10_000


@dataclass(slots=True)
class ColumnCount:
    """Number of columns that a schema has unfolded into so far."""

    count: int = 0

    def add(self) -> None:
        """Count a column; raise :class:`SchemaError` if there are too many."""
        self.count += 1
        if self.count > MAX_COLUMNS:
            raise SchemaError(f"the schema unfolds into more than {MAX_COLUMNS} columns; read it by rows")


class Budget(Protocol):
    """Remaining cost for reading a column, in a measure that the format chooses."""

    def allows(self, cost: int, /) -> bool:
        """True if reading may continue at this cost; otherwise the rows are left to the plain path."""
        ...


#: A round that reads on in fewer rows than this costs more than reading the rows one by one.
THIN: Final = 32

#: Maximum number of such rounds for a column: enough for a few rows with long lists, and for many short columns.
#: Without a limit, a single event with many items would use a round for each.
MAX_THIN_ROUNDS: Final = 256


@dataclass(slots=True)
class RoundBudget:
    """Number of thin rounds left for reading a column."""

    rounds: int = MAX_THIN_ROUNDS

    def allows(self, rows: int) -> bool:
        """True if reading may continue in this number of rows; otherwise they are left to the plain path."""
        if rows >= THIN:
            return True
        self.rounds -= 1
        return self.rounds >= 0


@dataclass(slots=True)
class MemoryBudget:
    """Number of bytes of memory left for the items of a column."""

    memory: int

    def allows(self, memory: int) -> bool:
        """True if items may use ``memory`` bytes; otherwise their rows are left to the plain path."""
        self.memory -= memory
        return self.memory >= 0


#: Memory that the records in an event's lists and maps may take.
_RECORDS: Final = MemoryLimit(per_byte=16, base=16 << 20)


class ItemLimit:
    """Limit of the memory of structs that are items of lists and maps, in events that are read as an Arrow type.

    ``{}`` is two bytes of JSON and one of CBOR, as null is. Each such item is a null in all columns of its struct, so a
    mebibyte of them could become gigabytes. A struct outside lists and maps comes once, at any width: that is the
    type's own size.
    """

    __slots__ = ("_weigh", "_weight")

    def __init__(self, kind: pa.DataType) -> None:
        self._weight, self._weigh = _heaviest_item(kind), _weigher(kind)

    @property
    def surely_fits(self) -> int:
        """Size in bytes: no event up to it can exceed the limit."""
        per_item = self._weight - _RECORDS.per_byte
        return _RECORDS.base // per_item if per_item > 0 else 2**31 - 1

    def concerns(self, items: int, size: int) -> bool:
        """True if an event of ``size`` bytes with at most ``items`` items could exceed the limit."""
        return items * self._weight > _RECORDS.of(size)

    def check(self, size: int, value: Any) -> None:
        """Raise :class:`MalformedError` if the items of a parsed event of ``size`` bytes need more memory."""
        if self._weigh is not None and self.concerns(size, size) and self._weigh(value) > _RECORDS.of(size):
            raise _RECORDS.exceeded(size)


#: Bytes of a tuple, and of one of its places; of a cell of an Arrow column, null or not.
_TUPLE: Final = 56
_PLACE: Final = 8
_CELL: Final = 9


def _heaviest_item(kind: pa.DataType) -> int:
    """Return the bytes of the heaviest struct that is an item of a list or map in a type; 0 if there is none."""
    inside = [kind.field(i).type for i in range(kind.num_fields)]
    own = [_weight(inner) for inner in inside] if pa.types.is_list(kind) or pa.types.is_map(kind) else []
    return max([*own, *map(_heaviest_item, inside)], default=0)


def _weight(kind: pa.DataType) -> int:
    """Return the bytes of a struct that is null or empty, and of the structs in it; 0 for other types."""
    if not pa.types.is_struct(kind):
        return 0
    inside = [entry.type for entry in kind]
    return _TUPLE + _PLACE * len(inside) + _CELL * (1 + len(inside)) + sum(map(_weight, inside))


def _weigher(kind: pa.DataType) -> Callable[[Any], int] | None:
    """Return a function for the bytes of all structs that are items of lists and maps in a value of a type.

    Return None if the type has no such structs.
    """
    t = pa.types
    if t.is_struct(kind):
        parts = [(entry.name, weigh) for entry in kind if (weigh := _weigher(entry.type)) is not None]
        if not parts:
            return None
        return lambda value: sum(weigh(value.get(name)) for name, weigh in parts) if isinstance(value, dict) else 0
    if not (t.is_list(kind) or t.is_map(kind)):
        return None
    item = kind.value_type if t.is_list(kind) else kind.item_type
    own, inside = _weight(item), _weigher(item)
    if not own and inside is None:
        return None

    def weigh_items(value: Any) -> int:
        items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        return len(items) * own + (sum(map(inside, items)) if inside is not None else 0)

    return weigh_items


class ObjectLimit:
    """Limit of the memory of an event's objects: each becomes an instance of at most ``weight`` bytes."""

    __slots__ = ("_allowed", "_weight")

    def __init__(self, weight: int, allowed: MemoryLimit = _RECORDS) -> None:
        self._weight, self._allowed = weight, allowed

    def may_be_exceeded(self, event: bytes) -> bool:
        """Return True if a JSON event has too many opening braces. Some of them may be in text."""
        return bool(self._weight) and event.count(b"{") * self._weight > self._allowed.of(len(event))

    def check(self, size: int, value: Any) -> None:
        """Raise :class:`LimitExceededError` if an event of ``size`` bytes has too many objects.

        ``value`` is the parsed event; each of its objects has at least one byte.
        """
        allowed = self._allowed.of(size)
        if size * self._weight > allowed and _objects(value) * self._weight > allowed:
            raise self._allowed.exceeded(size).in_event("value")


def _objects(value: Any) -> int:
    """Return the number of objects in a parsed value."""
    found, waiting = 0, [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            found += 1
            waiting.extend(at.values())
        elif isinstance(at, list):
            waiting.extend(at)
    return found
