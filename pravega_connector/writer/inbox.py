"""Events on their way from a writer's callers to its loop.

An interrupt may come at any line of a caller. So a caller changes the inbox in single steps that an interrupt cannot
divide: one list grows by an event with its key, or new rows are assigned, which are a hand-over. Everything else is
prepared before that step, or read off its result.
"""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

from pravega_connector.wire import Block

__all__ = ["Blocks", "Inbox", "Rows"]

Blocks = list[tuple[int, Block]]  # each with the id of the segment that it goes to


class Rows:
    """Events that wait for company, and the blocks that were handed over before them."""

    __slots__ = ("before", "handed", "previous", "since", "size", "values")

    def __init__(self, before: Blocks, handed: int, previous: Rows | None) -> None:
        """``handed`` is the number of bytes that were handed over in all, ``previous`` are the rows of ``before``."""
        self.before, self.handed, self.previous = before, handed, previous
        self.values: list[Any] = []
        """Each event, followed by its routing key or None."""
        self.size = 0
        """Bytes of the events, without the last one where an interrupt came after it."""
        self.since = math.inf
        """When the oldest one came (monotonic seconds)."""


class Inbox:
    """Rows that take events, and what was handed over to the loop before them.

    Callers hold :attr:`lock`, which is never held across a wait, to change it. The loop takes what is handed over
    without the lock.
    """

    __slots__ = ("closed", "lock", "rows")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rows = Rows([], 0, None)
        """The rows that take events; the previous ones are handed over, as the blocks of the rows that follow."""
        self.closed = False

    @property
    def handed(self) -> int:
        """Bytes that were handed over in all."""
        return self.rows.handed

    def close(self) -> None:
        """Accept no more events."""
        with self.lock:
            self.closed = True

    def hand_over(self, blocks: Blocks) -> None:
        """Hand over blocks, with the lock held. They replace the present rows, whose events they contain."""
        before = size = self.handed
        for _, block in blocks:
            block.mark = before
            size += len(block.data)
        self.rows = Rows(blocks, size, self.rows)

    def take(self) -> Blocks:
        """Take the blocks that were handed over, in order; for the loop only."""
        taken: list[Blocks] = []
        rows: Rows | None = self.rows
        while rows is not None:
            taken.append(rows.before)
            rows.before = []  # the blocks would stay in memory until the next hand-over
            previous, rows.previous = rows.previous, None
            rows = previous
        return list(itertools.chain.from_iterable(reversed(taken)))
