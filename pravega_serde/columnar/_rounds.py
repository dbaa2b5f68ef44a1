"""A bound on reading a column round by round, where each round reads on in fewer rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["RoundBudget"]

#: A round that reads on in fewer rows than this costs more than reading the rows one by one.
THIN: Final = 32

#: So many such rounds a column may have: enough for a few rows with long lists, and for many short columns. Without a
#: limit, a single event with many items would take a round for each.
MAX_THIN_ROUNDS: Final = 256


@dataclass(slots=True)
class RoundBudget:
    """How many more thin rounds the reading of a column may take."""

    rounds: int = MAX_THIN_ROUNDS

    def allows(self, rows: int) -> bool:
        """Whether to read on in so many rows, or to leave them to the plain path."""
        if rows >= THIN:
            return True
        self.rounds -= 1
        return self.rounds >= 0
