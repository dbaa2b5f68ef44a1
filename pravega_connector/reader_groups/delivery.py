"""Delivery of the events of one batch to the caller of a group's reader.

They are decoded in blocks, and delivered one by one or as lists. An interrupt may come at any line. A call either
delivers events and marks them as delivered, or does neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pravega_connector import metrics
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader_groups.protocol import Segment
from pravega_connector.wire import EventPointer
from pravega_serde import after_fork
from pravega_serde.errors import DeserializationError

T = TypeVar("T")
V = TypeVar("V")
#: Maximum events that are decoded at once, and in a list. Python's garbage collector visits the objects of longer lists
#: several times, which takes as long as everything else here. Kafka's consumers have the same default.
MAX_EVENTS: Final = 500


class GroupEvent(NamedTuple, Generic[T]):
    """Result of reading from a group: an event, or a checkpoint without a value (Java's ``EventRead``)."""

    value: T | None
    """The event; None for a checkpoint."""
    segment: Segment | None = None
    """Segment that the event is in."""
    offset: int = -1
    """Offset in the segment at which the event begins."""
    checkpoint: str | None = None
    """Name of the checkpoint; None for an event."""

    @property
    def is_checkpoint(self) -> bool:
        """True if this is a checkpoint, False if it is an event."""
        return self.checkpoint is not None

    @property
    def pointer(self) -> EventPointer | None:
        """Pointer to the event, for :meth:`PravegaClient.fetch`; None for a checkpoint."""
        return None if self.segment is None else EventPointer(self.segment.stream, self.segment.id, self.offset)


# A call of the class takes half as long again.
_group_event: Final[Callable[[tuple[Any, ...]], GroupEvent[Any]]] = partial(tuple.__new__, GroupEvent)


class Delivery(Generic[T]):
    """Batch that is being delivered. Not thread safe.

    It has no error hints, because they slow down attribute look-ups.
    """

    __slots__ = (
        "__weakref__",
        "_before",
        "_block",
        "_deserialize",
        "batch",
        "began",
        "due",
        "passed",
        "row",
    )

    def __init__(self, deserialize: Callable[[bytes], T] | None) -> None:
        """Without ``deserialize``, the values are raw bytes."""
        self._deserialize = deserialize
        self.batch: EventBatch | None = None
        self.row = 0
        """Row of the next event."""
        self.began = 0
        """Row of the first event that the last call delivered."""
        self.passed: str | None = None
        """Checkpoint that was delivered, until the next turn."""
        self.due = 0.0
        """Time of the next turn (monotonic seconds)."""
        self._block: tuple[int, list[GroupEvent[T]]] = 0, []  # decoded events, and the row of the first
        self._before: tuple[int, int, str | None] = (0, 0, None)  # row, began and passed before the last call
        after_fork.register(self)

    def _after_fork(self) -> None:
        self.batch = self._block = after_fork.inherited("GroupReader")

    @property
    def has_events(self) -> bool:
        """True if the batch has events that were not delivered."""
        return self.batch is not None and self.row < len(self.batch.offsets)

    @property
    def segment(self) -> Segment | None:
        """Segment of the batch; None without a batch."""
        return None if self.batch is None else Segment(self.batch.stream, self.batch.segment_id)

    @property
    def offset(self) -> int:
        """Offset after the delivered events of the batch, which must exist."""
        assert self.batch is not None
        return int(self.batch.offsets[self.row]) if self.has_events else self.batch.end

    @property
    def last_call(self) -> dict[Segment, int]:
        """Segment and offset of the first event that the last call delivered, if the batch still has it."""
        if self.batch is None or self.segment is None or self.began >= len(self.batch.offsets):
            return {}
        return {self.segment: int(self.batch.offsets[self.began])}

    def begin(self, batch: EventBatch) -> None:
        """Deliver the events of a batch. The previous one was dropped."""
        self._block, self.row, self.began = (0, []), 0, 0
        self.batch = batch  # last: after an interrupt before it, no event is skipped

    def drop(self) -> None:
        """Drop the batch with the events that were not delivered."""
        self._block = 0, []
        self.batch = None

    def take_ready(self) -> GroupEvent[T] | None:
        """Return the next event if it was decoded and no turn is due, otherwise None."""
        row = self.row
        first, events = self._block
        if not (first <= row < first + len(events) and time.monotonic() < self.due):
            return None
        self._before = row, self.began, self.passed
        try:
            self.row, self.began = row + 1, row
            return events[row - first]
        except BaseException:
            self.take_back()
            raise

    def take(self) -> GroupEvent[T]:
        """Return the next event, which must exist. Raises DeserializationError."""
        row = self.row
        first, events = self._block
        if not first <= row < first + len(events):
            first, events = self._block = row, self._decoded(row)
        return self.hand_out(events[row - first], row + 1)

    def take_list(self) -> list[GroupEvent[T]]:
        """Return the next events, which must exist. Raises DeserializationError."""
        found = self._decoded(self.row)
        return self.hand_out(found, self.row + len(found))

    def take_columns(self) -> EventBatch:
        """Return all events that were not delivered, which must exist."""
        batch, rest = self.batch, slice(self.row, None)
        assert batch is not None
        found = EventBatch(batch.stream, batch.segment_id, batch.events[rest], batch.offsets[rest])
        return self.hand_out(found, len(batch.offsets))

    def hand_out(self, what: V, row: int, checkpoint: str | None = None) -> V:
        """Return ``what`` and mark the events before ``row`` as delivered. An interrupt undoes both."""
        self._before = self.row, self.began, self.passed
        try:
            self.row, self.began, self.passed = row, self.row, checkpoint or self.passed
            return what
        except BaseException:
            self.take_back()
            raise

    def take_back(self) -> None:
        """Mark what the last call delivered as not delivered."""
        self.row, self.began, self.passed = self._before

    def _decoded(self, row: int) -> list[GroupEvent[T]]:
        """Return at most ``MAX_EVENTS`` events from a row, up to one that cannot be decoded.

        If that is the first one, raises its error. The call after a DeserializationError continues after the event.
        """
        assert self.batch is not None
        values: list[Any] = self.batch.events[row : row + MAX_EVENTS].to_pylist()
        if self._deserialize is not None:
            values = self._values(values, row, self._deserialize)
        offsets = self.batch.offsets[row : row + MAX_EVENTS].tolist()
        return list(map(_group_event, zip(values, repeat(self.segment), offsets, repeat(None), strict=False)))

    def _values(self, events: list[bytes], row: int, deserialize: Callable[[bytes], T]) -> list[T]:
        values: list[T] = []
        try:
            values.extend(map(deserialize, events))  # values before an error stay in the list
        except DeserializationError as error:
            if not values:
                raise self._refused(error, row) from error
        except Exception:
            if not values:
                raise
        return values  # a later call raises the error, because these values come before it

    def _refused(self, error: DeserializationError, row: int) -> DeserializationError:
        """Return the error with the event's position. The next call continues after the event."""
        assert self.batch is not None
        metrics.BAD_RECORDS.add(1, "client", str(self.batch.stream))
        return self.hand_out(self.batch.locate(error, row), row + 1)
