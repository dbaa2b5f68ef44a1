"""Event frames of a segment into columns of payloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connector.errors import ProtocolError
from connector.wire._boundaries import MAX_EVENT_SIZE, Bytes, walk_frames

HEADER_SIZE: Final = 8  # WireCommands.TYPE_PLUS_LENGTH_SIZE


@dataclass(frozen=True, slots=True)
class EventColumn:
    """Events that follow each other in a segment."""

    payload: pa.BinaryArray
    """The events' bytes, in memory of their own."""
    offsets: npt.NDArray[np.int64]
    """Where in the segment each event's frame begins."""


class FrameParser:
    """Cuts the bytes of a segment, fed piece by piece, into events."""

    def __init__(self, offset: int = 0, *, max_event_size: int = MAX_EVENT_SIZE) -> None:
        self.offset = offset  # of the first byte that no column has brought out yet
        self.max_event_size = max_event_size
        self._carry = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of an event that is not complete yet."""
        return len(self._carry)

    def feed(self, chunk: Bytes) -> EventColumn | None:
        """Take the next bytes of the segment; the events that they complete, or None. ProtocolError for other bytes."""
        self._carry += chunk
        data = bytes(self._carry)
        ends = walk_frames(data, offset=self.offset, max_event_size=self.max_event_size)
        if ends[-1] > len(data):
            ends = ends[:-1]
        del self._carry[: int(ends[-1])]
        if len(ends) == 1:
            return None
        frames = pa.Array.from_buffers(
            pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
        )
        column = EventColumn(pc.binary_slice(frames, HEADER_SIZE, 2**31 - 1), self.offset + ends[:-1])
        self.offset += int(ends[-1])
        return column

    def finish(self) -> None:
        """ProtocolError if the bytes ended inside an event."""
        if self._carry:
            raise ProtocolError(f"the bytes end inside the event at offset {self.offset}; read up to an event boundary")
