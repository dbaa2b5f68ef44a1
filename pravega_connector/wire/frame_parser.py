"""Events of a segment from its bytes, which come in pieces: an event may begin in one piece and end in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.errors import ProtocolError
from pravega_connector.wire.frame_walk import EVENT_HEADER_SIZE, MAX_READABLE_EVENT, Bytes, walk_frames

MAX_CHUNK: Final = 1 << 30  # with a carried event, still within the 32-bit offsets of a binary column

_INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class EventColumn:
    """Consecutive events of a segment."""

    payload: pa.BinaryArray
    """Bytes of the events, in separate memory."""
    offsets: npt.NDArray[np.int64]
    """Offset in the segment of each event's frame."""


class ReceiveBuffer(bytearray):
    """Memory for one received message at a time. Its recipient may write to it.

    The bytes before an event chunk, which are ``ROOM`` and decoded fields, are free for the start of the chunk's first
    event. So no copy of the chunk is needed.
    """

    ROOM: Final = 1 << 16
    """Free bytes before a message. A larger start of an event is joined to the rest with a copy of both."""


class FrameParser:
    """Parser of a segment's bytes, fed in pieces, into events. Not thread safe; unusable after an error.

    ``offset`` is the offset of the first piece in the segment, at an event's boundary. Errors name ``segment``.
    """

    def __init__(self, offset: int = 0, *, segment: str = "", max_event_size: int = MAX_READABLE_EVENT) -> None:
        self._offset = offset
        self._segment = segment
        self._max_event_size = max_event_size
        self._carry = bytearray()
        self._wanted = 0  # size of the frame at the start of the carry, if it is known

    @property
    def offset(self) -> int:
        """Offset in the segment of the first event that was not returned yet."""
        return self._offset

    @property
    def pending(self) -> int:
        """Number of bytes held of an incomplete event; at most max_event_size + 7."""
        return len(self._carry)

    def feed(self, chunk: Bytes) -> EventColumn | None:
        """Add the next bytes. Return the events that they complete, or None.

        ``chunk`` is not referenced afterwards. In a :class:`ReceiveBuffer`, the bytes before the chunk are overwritten.
        Raises ProtocolError for invalid frames, and ValueError for more than 1 GiB at once.
        """
        if len(chunk) > MAX_CHUNK:
            raise ValueError(f"a chunk of {len(chunk)} bytes is too large for one column")
        if len(self._carry) + len(chunk) < self._wanted:
            self._carry += chunk
            return None
        data = self._joined(chunk) if self._carry else chunk
        bounds = walk_frames(data, offset=self._offset, segment=self._segment, max_event_size=self._max_event_size)
        self._wanted = 0
        if bounds[-1] > len(data):
            self._wanted = int(bounds[-1] - bounds[-2])
            bounds = bounds[:-1]
        column = EventColumn(_payloads(data, bounds), bounds[:-1] + self._offset) if len(bounds) > 1 else None
        self._keep(data, int(bounds[-1]))
        return column

    def finish(self) -> None:
        """End the input. Raises ProtocolError inside an event."""
        if self._carry:
            place = f"offset {self._offset}" + (f" of segment {self._segment}" if self._segment else "")
            raise ProtocolError(f"the bytes end inside the event at {place}; read up to the boundary of an event")

    def _joined(self, chunk: Bytes) -> Bytes:
        """Return the carry with the chunk after it, in the chunk's memory if it has room, or in the carry's."""
        size = len(self._carry)
        if isinstance(chunk, memoryview) and isinstance(chunk.obj, ReceiveBuffer):
            memory = memoryview(chunk.obj)
            start = _address(chunk) - _address(memory)
            if size <= start:
                memory[start - size : start] = self._carry
                self._carry.clear()
                return memory[start - size : start + len(chunk)]
        self._carry += chunk
        return self._carry

    def _keep(self, data: Bytes, consumed: int) -> None:
        """Keep the bytes after ``consumed``. ``data`` is either the carry itself or the caller's."""
        self._offset += consumed
        if data is self._carry:
            del self._carry[:consumed]
        else:
            self._carry += memoryview(data)[consumed:]


def _address(data: memoryview) -> int:
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return address


def _payloads(data: Bytes, bounds: npt.NDArray[np.int64]) -> pa.BinaryArray:
    """Return the payloads of whole frames, copied in one call.

    Without an explicit end, Arrow's slice overflows.
    """
    offsets = pa.py_buffer(bounds.astype(np.int32))
    frames = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, offsets, pa.py_buffer(data)])
    return pc.binary_slice(frames, EVENT_HEADER_SIZE, _INT32_MAX)
