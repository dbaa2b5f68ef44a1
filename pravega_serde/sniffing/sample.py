"""Uniform sample of events, in constant memory."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from pravega_serde.columnar.arrays import offsets_of
from pravega_serde.errors import SerdeError

#: Events in a sample.
CAPACITY: Final = 1000
#: Bytes in a sample. If large events exceed them, the sample shrinks.
MAX_BYTES: Final = 16 << 20
#: Bytes of the largest event that is examined. Larger events are counted only.
MAX_EVENT: Final = 1 << 20


class Sample:
    """Reservoir: each event seen so far has the same chance to be in ``events``.

    After the reservoir is full, it draws how many events to skip (Li's algorithm L). Skipped events are never touched,
    so a scan of n events picks only about ``capacity * log(n / capacity)`` of them. ``events`` has None for an event of
    more than ``MAX_EVENT`` bytes. The order of a full reservoir is arbitrary.
    """

    def __init__(self, capacity: int = CAPACITY, max_bytes: int = MAX_BYTES, seed: int = 0) -> None:
        self.events: list[bytes | None] = []
        self.seen = 0
        self.seen_bytes = 0
        self._capacity, self._max_bytes = capacity, max_bytes
        self._kept_bytes = 0
        self._random = random.Random(seed)
        self._weight = 1.0
        self._next = 0
        """Number of the next event to pick."""

    def add(self, events: Sequence[bytes]) -> None:
        """Add a block of events."""
        try:
            size = sum(map(len, events))
        except TypeError:
            raise _not_bytes(next(each for each in events if not hasattr(each, "__len__"))) from None
        self._add(len(events), size, events.__getitem__)

    def add_column(self, events: pa.BinaryArray) -> None:
        """Add a block of events in an Arrow array without nulls. Only picked events are copied."""
        offsets = offsets_of(events)
        self._add(len(events), int(offsets[-1] - offsets[0]), lambda at: events[at].as_py())

    def _add(self, count: int, size: int, take: Callable[[int], bytes]) -> None:
        first = self.seen
        self.seen += count
        self.seen_bytes += size
        while self._next < self.seen:
            self._pick(take(self._next - first))
            self._next += 1 if len(self.events) < self._capacity else self._skip()

    def _pick(self, event: bytes) -> None:
        if not isinstance(event, bytes | bytearray | memoryview):
            raise _not_bytes(event)
        kept = bytes(event) if len(event) <= MAX_EVENT else None
        self._kept_bytes += len(kept or b"")
        if len(self.events) < self._capacity:
            self.events.append(kept)
            if len(self.events) == self._capacity:
                self._weight = self._random.random() ** (1 / self._capacity)
        else:
            at = self._random.randrange(self._capacity)
            self._kept_bytes -= len(self.events[at] or b"")
            self.events[at] = kept
            self._weight *= self._random.random() ** (1 / self._capacity)
        if self._kept_bytes > self._max_bytes:
            self._shrink()

    def _shrink(self) -> None:
        while self._kept_bytes > self._max_bytes and len(self.events) > 1:
            gone = self.events.pop(self._random.randrange(len(self.events)))
            self._kept_bytes -= len(gone or b"")
        self._capacity = len(self.events)
        # The weight of a reservoir is the largest of the smallest `capacity` of as many random numbers as events.
        self._weight = self._random.betavariate(self._capacity, max(self._next + 1 - self._capacity, 0) + 1)

    def _skip(self) -> int:
        """Return the distance to the next event to pick."""
        weight = min(max(self._weight, 1e-300), 1 - 1e-16)
        return 1 + math.floor(math.log(1 - self._random.random()) / math.log1p(-weight))


def _not_bytes(event: object) -> SerdeError:
    return SerdeError(f"an event to sniff must be bytes, not {type(event).__name__}")
