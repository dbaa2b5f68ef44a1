"""Read of a range of one segment, without I/O: the requests to send, and the answers in order.

The server may answer with fewer bytes than requested, and may answer pipelined requests out of order. This module
handles both: chunks are returned in order, and missing bytes are requested again. (Java: ``SegmentInputStreamImpl``.)
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Final

from pravega_connector.errors import MalformedStreamCutError, UnexpectedReplyError
from pravega_connector.wire.codec import encode
from pravega_connector.wire.messages import Message, ReadSegment, SegmentRead
from pravega_connector.wire.replies import answers

# 1 MiB is the fastest size (measured 64 KiB to 2 MiB). The server limits a request to 2 MiB.
READ_CHUNK: Final = 1 << 20
# The server answers one request while the client parses one answer. More depth only adds memory.
READ_DEPTH: Final = 2
# The server answers a shorter request with this many bytes.
LEAST_ANSWER: Final = 8


class RangeRead:
    """Requests and answers for the bytes [start, end) of a segment, on one connection at a time.

    ``end`` must be at most the segment's length. The server parks a read at the tail of an open segment, and drops the
    connection for a read past the end of a sealed segment.
    """

    def __init__(self, segment: str, start: int, end: int, *, chunk: int = READ_CHUNK, depth: int = READ_DEPTH) -> None:
        self.segment = segment
        self.position = start  # all bytes before it were returned
        self.end = end
        self._chunk, self._depth = chunk, depth
        self.restart()

    @property
    def done(self) -> bool:
        """True if all bytes were returned."""
        return self.position >= self.end

    def restart(self) -> None:
        """Begin with a new connection, without requests in flight."""
        self._next_request = self.position
        self._asked: dict[int, ReadSegment] = {}  # by offset, which is also the request id
        self._gaps: list[tuple[int, int]] = []  # heap of the ranges that short answers left out
        self._early: dict[int, bytes] = {}  # answers that arrived early

    def in_flight(self, lengths: Mapping[int, int]) -> None:
        """Continue with requests that another process has sent: lengths by offset."""
        self._asked = {offset: ReadSegment(self.segment, offset, size, "", offset) for offset, size in lengths.items()}

    def requests(self, token: str) -> bytes:
        """Return the encoded requests to send now; empty while enough are in flight."""
        wire = b""
        while len(self._asked) + len(self._early) < self._depth:
            if self._gaps:
                offset, length = heapq.heappop(self._gaps)
            elif self._next_request < self.end:
                offset = self._next_request
                length = min(self._chunk, self.end - offset)
                self._next_request += length
            else:
                break
            self._asked[offset] = request = ReadSegment(self.segment, offset, length, token, request_id=offset)
            wire += encode(request)
        return wire

    def check(self, reply: Message) -> None:
        """Raise UnexpectedReplyError unless a reply, which may be a refusal, belongs to a request in flight."""
        request = self._asked.get(getattr(reply, "request_id", -1))
        if request is None or not answers(request, reply):
            place = f"for offset {reply.offset}" if isinstance(reply, SegmentRead) else ""
            raise UnexpectedReplyError.of(f"the store of segment {self.segment}", reply, place)

    def receive(self, reply: SegmentRead) -> list[tuple[int, memoryview]]:
        """Process an answer. Return offset and bytes of each chunk that is next in order.

        The first chunk may be a view into the receive buffer: use it before the next receive. Raises
        UnexpectedReplyError, and MalformedStreamCutError if the segment ends before ``end``.
        """
        self.check(reply)
        length = self._asked.pop(reply.offset).length
        size = len(reply.data)
        if size > max(length, LEAST_ANSWER):
            place = f"with {size} bytes for {length} at offset {reply.offset}"
            raise UnexpectedReplyError.of(f"the store of segment {self.segment}", reply, place)
        data = reply.data[:length]
        if size < length:
            if reply.end_of_segment:
                raise MalformedStreamCutError(
                    f"segment {self.segment} ends at offset {reply.offset + size}, before offset {self.end} of the "
                    "stream cut: use a cut of this stream"
                )
            # Request the lowest range first: early answers occupy the depth until the bytes before them arrive.
            heapq.heappush(self._gaps, (reply.offset + size, length - size))
        if reply.offset != self.position:
            self._early[reply.offset] = bytes(data)
            return []
        ready = [(reply.offset, data)] if size else []
        self.position += len(data)
        while self.position in self._early:
            early = self._early.pop(self.position)
            ready.append((self.position, memoryview(early)))
            self.position += len(early)
        return ready
