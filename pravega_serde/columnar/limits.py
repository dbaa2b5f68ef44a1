"""Limits: what an event, a column or a schema may cost, so that none can ask for far more than its own size.

The formats have limits of their own kind in one form. Memory is a base and so many bytes for each byte of the event;
columns are read in rounds, of which only so many may be thin; a type may have only so many columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pravega_serde.columnar.bad_rows import MalformedError
from pravega_serde.errors import SchemaError

__all__ = ["MAX_COLUMNS", "MAX_THIN_ROUNDS", "THIN", "ColumnCount", "MemoryLimit", "RoundBudget"]


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
