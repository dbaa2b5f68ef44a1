"""Which segment takes a routing key now."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from connector.client._policies import Successor
from connector.errors import ProtocolError
from connector.wire import SegmentRange, StreamName

__all__ = ["Routes"]


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
        """Whether the segment takes new events as far as is known."""
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
