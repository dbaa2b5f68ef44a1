"""Destinations of a writer's events: the segments of a stream or of a transaction, chosen by routing key."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import Successor, TransactionStatus, status_error
from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    ProtocolError,
    SegmentStoreError,
    StreamNotFoundError,
    StreamSealedError,
    WrongHostError,
)
from pravega_connector.wire import SegmentRange, StreamName, segment_name, transaction_segment_name

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient


class Destination(Protocol):
    """Segments that take events, and what it means when one of them does not."""

    @property
    def stream(self) -> StreamName:
        """The stream that the segments belong to."""
        ...

    @property
    def writer(self) -> str:
        """Name of the object that writes to them."""
        ...

    def ranges(self) -> Sequence[SegmentRange]:
        """The segments to begin with; together they cover the key space."""
        ...

    def segment_name(self, segment_id: int) -> str:
        """Name of a segment on the wire."""
        ...

    def successors(self, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> list[Successor]:
        """Return the successors of a segment that a store reports as sealed with ``error``.

        Raises the meaning of its end if it has none, and WrongHostError if the controller has no end of it.
        """
        ...

    def closed(self) -> ConnectorError:
        """Return the error of a writer that is used after its end."""
        ...


class StreamDestination:
    """The current segments of a stream."""

    def __init__(self, controller: ControllerClient, stream: StreamName) -> None:
        self.stream = stream
        self.writer = f"EventWriter({stream})"
        self._controller = controller

    def ranges(self) -> Sequence[SegmentRange]:
        """The current segments. Raises StreamSealedError."""
        ranges = self._controller.current_segments(self.stream)
        if not ranges:
            raise StreamSealedError.of(self.stream)
        return ranges

    def segment_name(self, segment_id: int) -> str:
        """Name of a segment on the wire."""
        return segment_name(self.stream, segment_id)

    def successors(self, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> list[Successor]:
        """The segments after one that has ended. Raises StreamSealedError, StreamNotFoundError, WrongHostError.

        A segment of the stream that is missing and not current was sealed, and truncated since then. So it has none of
        the waiting events. A recreated stream never had the segment, so it has no successors of it.
        """
        try:
            current = self._controller.current_segments(self.stream, deadline=deadline)
        except StreamNotFoundError:
            raise StreamNotFoundError.deleted(self.stream) from None
        if not current:
            raise StreamSealedError.of(self.stream)
        if segment_id not in {r.id for r in current}:
            successors = self._controller.successors(self.stream, segment_id, deadline=deadline)
            if successors:
                return successors
            if not self._controller.ever_had(self.stream, segment_id, deadline=deadline):
                raise StreamNotFoundError.recreated(self.stream)
        raise WrongHostError(
            f"{error.message}, reports a segment store, but the controller reports that the segment has not ended"
        )

    def closed(self) -> ConfigError:
        """Return the error of a writer that is used after its end."""
        return ConfigError(f"the writer of stream {self.stream} is closed")


class TransactionDestination:
    """The segments of a transaction: one for each segment that the stream had when it was begun, for its whole life.

    They outlive a scaling of the stream and end with the transaction alone, so there are never successors.
    """

    def __init__(
        self,
        stream: StreamName,
        transaction: uuid.UUID,
        segments: Sequence[SegmentRange],
        ended: Callable[[SegmentStoreError, Deadline], Exception],
    ) -> None:
        """``ended`` makes the error for a transaction that takes no more events.

        The thread of the writer holds it, so it must not refer to the OpenTransaction.
        """
        self.stream = stream
        self.writer = f"OpenTransaction({stream}, {transaction})"
        self._transaction = transaction
        self._segments = segments
        self._ended = ended
        self.aborted = False
        """True if the program has aborted the transaction with the object that writes to it."""

    def ranges(self) -> Sequence[SegmentRange]:
        """The parents of the transaction's segments."""
        return self._segments

    def segment_name(self, segment_id: int) -> str:
        """Return the name of the transaction's segment for a segment of the stream."""
        return transaction_segment_name(segment_name(self.stream, segment_id), self._transaction)

    def successors(self, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> list[Successor]:
        """None: the transaction has ended. Raises what became of it, and WrongHostError if it is open."""
        del segment_id  # all of them end with the transaction
        raise self._ended(error, deadline) from None

    def closed(self) -> ConnectorError:
        """Return the error of a transaction that is written to after its end in this program."""
        if self.aborted:
            return status_error(TransactionStatus.ABORTED, "write to", self.stream, self._transaction)
        return ConfigError(
            f"transaction {self._transaction} of stream {self.stream} accepts no more events: it was committed or "
            "detached; begin a new one"
        )


class Routes:
    """The key space [0, 1) divided among segments; thread safe.

    A sealed segment's part goes to its successors as soon as the writer learns of them; the other parts stay, as in
    Java's ``StreamSegments.withReplacementRange``, because their segments may still take events.
    """

    def __init__(self, stream: StreamName, ranges: Sequence[SegmentRange]) -> None:
        self.stream = stream
        self._lock = threading.Lock()
        self._set([(r.low, r.high, r.id) for r in ranges])

    def _set(self, parts: list[tuple[float, float, int]]) -> None:
        parts.sort()
        lows = [low for low, _, _ in parts]
        if not parts or lows[0] > 0.0:
            raise ProtocolError(f"the segments of stream {self.stream} do not cover the key space")
        self._parts = parts
        # One tuple, swapped whole: readers need no lock.
        self._table = (np.array(lows), np.array([i for _, _, i in parts], np.int64), frozenset(i for _, _, i in parts))

    def is_current(self, segment_id: int) -> bool:
        """Return True if the segment accepts new events, by the current table."""
        return segment_id in self._table[2]

    def targets(self, positions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Segment id for each position in [0, 1)."""
        lows, ids, _ = self._table
        if len(ids) == 1:
            return np.broadcast_to(ids, positions.shape)
        chosen: npt.NDArray[np.int64] = ids[np.searchsorted(lows, positions, side="right") - 1]
        return chosen

    def target(self, position: float) -> int:
        """Segment id for one position in [0, 1)."""
        lows, ids, _ = self._table
        return int(ids[int(np.searchsorted(lows, position, side="right")) - 1])

    def replace(self, sealed: int, successors: Sequence[Successor]) -> None:
        """Give the sealed segment's part of the key space to its successors."""
        with self._lock:
            parts = [p for p in self._parts if p[2] != sealed]
            for low, high, segment_id in self._parts:
                if segment_id == sealed:
                    parts += [
                        (max(low, s.range.low), min(high, s.range.high), s.range.id)
                        for s in successors
                        if s.range.low < high and low < s.range.high
                    ]
            self._set(parts)
