"""Events on their way from a writer's callers to its loop.

An interrupt may come at any line of a caller. So a caller changes the inbox in single steps that an interrupt cannot
divide: one list grows by an event with its key, or new rows are assigned, which are a hand-over. Everything else is
prepared before that step, or read off its result.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_connector.core.events import blocks_of, one_block
from pravega_connector.wire import Block
from pravega_connector.writer.routing import Routes
from pravega_serde.routing import segment_key, segment_keys

Blocks = list[tuple[int, Block]]  # each with the id of the segment that it goes to
# Seconds for which rows are collected.
_LINGER: Final = 0.01


class Rows:
    """Events that wait for company, and the blocks that were handed over before them."""

    __slots__ = ("before", "enqueued", "events", "previous", "room", "since", "values")

    def __init__(self, before: Blocks, enqueued: int, events: int, previous: Rows | None) -> None:
        """``enqueued`` bytes of ``events`` were handed over in all; ``previous`` are the rows of ``before``."""
        self.before, self.enqueued, self.events, self.previous = before, enqueued, events, previous
        self.values: list[Any] = []
        """Each event, followed by its routing key or None."""
        self.room = -1
        """Bytes for which there is room; negative in empty rows and after :meth:`Inbox.close`."""
        self.since = math.inf
        """When the oldest one came (monotonic seconds)."""


class Inbox:
    """Rows that take events, and what was handed over to the loop before them.

    Callers hold :attr:`lock`, which is never held across a wait, to change it. The loop takes what is handed over
    without the lock. The loop holds the inbox, so the inbox must not refer to the writer.
    """

    __slots__ = ("_random", "closed", "lock", "routes", "rows")

    def __init__(self, routes: Routes) -> None:
        """``routes`` divide the events among segments."""
        self.lock = threading.Lock()
        self.routes = routes
        self._random = np.random.default_rng()
        self.rows = Rows([], 0, 0, None)
        """The rows that take events; the previous ones are handed over, as the blocks of the rows that follow."""
        self.closed = False

    @property
    def enqueued(self) -> int:
        """Bytes that were handed over in all."""
        return self.rows.enqueued

    @property
    def accepted(self) -> int:
        """Number of events that were accepted in all, also those that are not handed over."""
        rows = self.rows
        return rows.events + len(rows.values) // 2

    def close(self) -> None:
        """Accept no more events."""
        with self.lock:
            self.closed = True
            self.rows.room = -1

    def hand_over(self, blocks: Blocks) -> None:
        """Hand over blocks, with the lock held. They replace the present rows, whose events they contain."""
        size, events = self.rows.enqueued, self.rows.events
        for _, block in blocks:
            block.mark = self.rows.enqueued
            size += len(block.data)
            events += len(block.ends)
        self.rows = Rows(blocks, size, events, self.rows)

    def collect(self, has_room: Callable[[], bool]) -> float:
        """Hand over rows that are due, if there is room; return when (monotonic seconds) to call again."""
        # A caller that holds the lock is about to hand them over itself.
        if not self.lock.acquire(blocking=False):
            return time.monotonic() + _LINGER
        try:
            if not self.rows.values:
                return math.inf
            due = self.rows.since + _LINGER
            if due > time.monotonic():
                return due
            if not has_room():
                return time.monotonic() + _LINGER
            self.hand_over(self.blocks(self.rows))
            return math.inf
        finally:
            self.lock.release()

    def blocks(self, rows: Rows) -> Blocks:
        """Cut rows to blocks, by segment."""
        events, keys = pa.array(rows.values[::2], pa.large_binary()), rows.values[1::2]
        if keys.count(None) == len(keys):
            return self.route(events, None)
        return self.route(events, pa.array(keys, pa.string()))

    def route(self, events: pa.Array, keys: Any) -> Blocks:
        """Cut a column of events to blocks, by segment."""
        # Without keys, one place for the whole column: fewer, larger appends, and all segments take turns.
        positions = np.full(len(events), self._random.random()) if keys is None else segment_keys(keys)
        return list(blocks_of(events, positions, self.routes.targets(positions)))

    def route_together(self, events: pa.Array, key: str | None, note: object) -> Blocks:
        """Return one block with a column of events. Its segment appends all of them in one step."""
        block = one_block(events, self._random.random() if key is None else segment_key(key))
        block.note = note
        return [(int(self.routes.targets(block.positions[:1])[0]), block)]

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
