"""Event frames of a segment into columns of payloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connector.errors import ProtocolError
from connector.wire._boundaries import EVENT_HEADER_SIZE, MAX_EVENT_SIZE, Bytes, walk_frames

MAX_CHUNK: Final = 1 << 30  # with an event carried over, still within the 32-bit offsets of a binary column

_INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class EventColumn:
    """Events that follow each other in a segment."""

    payload: pa.BinaryArray
    """The events' bytes, in memory of their own."""
    offsets: npt.NDArray[np.int64]
    """Where in the segment each event's frame begins."""


class FrameParser:
    """Cuts the bytes of a segment, fed piece by piece, into events; not for use by several threads.

    ``offset`` is where in the segment the first piece begins; it must be an event's boundary. ``segment`` is named in
    errors. After an error the parser is of no more use.
    """

    def __init__(self, offset: int = 0, *, segment: str = "", max_event_size: int = MAX_EVENT_SIZE) -> None:
        self._offset = offset
        self._segment = segment
        self._max_event_size = max_event_size
        self._carry = bytearray()
        self._wanted = 0  # size of the frame at the start of the carry, if that is known

    @property
    def offset(self) -> int:
        """Where in the segment the first event begins that has not been brought out."""
        return self._offset

    @property
    def pending(self) -> int:
        """Bytes held of an event that is not complete yet; at most max_event_size + 7."""
        return len(self._carry)

    def feed(self, chunk: Bytes) -> EventColumn | None:
        """Take the next bytes; the events that they complete, or None. Nothing refers to ``chunk`` afterwards.

        Raises ProtocolError for bytes that are no events, ValueError beyond 1 GiB at once (see :meth:`feed_all`).
        """
        if len(chunk) > MAX_CHUNK:
            raise ValueError(f"a chunk of {len(chunk)} bytes is too large for one column; use feed_all")
        data = chunk
        if self._carry:
            self._carry += chunk
            data = self._carry
        if len(data) < self._wanted:
            return None
        bounds = walk_frames(data, offset=self._offset, segment=self._segment, max_event_size=self._max_event_size)
        self._wanted = 0
        if bounds[-1] > len(data):
            self._wanted = int(bounds[-1] - bounds[-2])
            bounds = bounds[:-1]
        column = EventColumn(_payloads(data, bounds), bounds[:-1] + self._offset) if len(bounds) > 1 else None
        self._keep(data, int(bounds[-1]))
        return column

    def feed_all(self, chunk: Bytes) -> list[EventColumn]:
        """Like :meth:`feed`, for chunks of any size: as many columns as it takes."""
        view = memoryview(chunk)
        columns = (self.feed(view[start : start + MAX_CHUNK]) for start in range(0, len(view), MAX_CHUNK))
        return [column for column in columns if column is not None]

    def finish(self) -> None:
        """ProtocolError if the bytes ended inside an event."""
        if self._carry:
            place = f"offset {self._offset}" + (f" of segment {self._segment}" if self._segment else "")
            raise ProtocolError(f"the bytes end inside the event at {place}; read up to an event's boundary")

    def _keep(self, data: Bytes, consumed: int) -> None:
        """Hold back what follows ``consumed``: ``data`` is either the carry itself or the caller's."""
        self._offset += consumed
        if data is self._carry:
            del self._carry[:consumed]
        else:
            self._carry += memoryview(data)[consumed:]


def _payloads(data: Bytes, bounds: npt.NDArray[np.int64]) -> pa.BinaryArray:
    """The payloads of whole frames, copied out in one call; without its end, Arrow's slice overflows."""
    offsets = pa.py_buffer(bounds.astype(np.int32))
    frames = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, offsets, pa.py_buffer(data)])
    return pc.binary_slice(frames, EVENT_HEADER_SIZE, _INT32_MAX)
