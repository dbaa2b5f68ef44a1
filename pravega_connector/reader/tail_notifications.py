"""Notice of what is written to segments, without asking again and again.

A read at the end of a segment is held by its store until something is there (``ReadSegment``): so one such read for
each segment tells at once, and costs nothing meanwhile. What comes is read by those who are told; here it is a few
bytes.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from typing import Final

from pravega_connector.core.connection import Connection, Endpoint, wait_ready
from pravega_connector.core.deadline import Deadline
from pravega_connector.errors import ConnectorError
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import Message, ReadSegment, SegmentRead, StreamName, encode, segment_name

Ends = Mapping[StreamName, Mapping[int, int]]
# Segments that are watched at most: each is a request that a store keeps.
_MOST: Final = 256
# Bytes that are asked for: the least that a store sends.
_LEAST_READ: Final = 8
# Seconds for connections to stores, which have just answered.
_CONNECT: Final = 1.0


class Arrivals:
    """Reads that stores hold at the ends of segments. Not thread safe, but for :meth:`interrupt`."""

    def __init__(self, stores: SegmentStores) -> None:
        self._stores = stores
        self._connections: dict[Endpoint, Connection] = {}
        self._held: dict[str, int] = {}  # by name of the segment: the offset at which a read is held
        weakref.finalize(self, _close, self._connections)

    def wait(self, ends: Ends, timeout: float) -> bool | None:
        """Whether something is there behind one of the ends, as soon as it is, or False after ``timeout`` seconds.

        None, at once, if that cannot be told: there are too many segments, or a store does not take the reads. An
        answer that is not data counts as something: whoever looks will see what it is. Raises nothing.
        """
        wanted = {segment_name(stream, i): (stream, i, end) for stream, of in ends.items() for i, end in of.items()}
        if not wanted or len(wanted) > _MOST:
            return None
        until = time.monotonic() + timeout
        try:
            self._hold(wanted)
            while True:
                left = until - time.monotonic()
                ready, _ = wait_ready(list(self._connections.values()), [], max(left, 0.0))
                for connection in ready:
                    reply = connection.receive_now()  # one, so that the clock is checked between two
                    if reply is not None and self._is_news(reply, wanted):
                        return True
                if left <= 0:
                    return False
                self._hold(wanted)  # a read was answered without anything
        except ConnectorError:
            self.close()
            return None

    def _hold(self, wanted: Mapping[str, tuple[StreamName, int, int]]) -> None:
        """Have a read held at each end where none is."""
        for name, (stream, segment_id, end) in wanted.items():
            if self._held.get(name) == end:
                continue
            deadline = Deadline(_CONNECT)
            endpoint = self._stores.endpoint(stream, segment_id, deadline)
            token = self._stores.token(stream, write=False, deadline=deadline)
            connection = self._connections.get(endpoint)
            if connection is None:
                connection = self._connections[endpoint] = self._stores.pool.take(endpoint, deadline)
            connection.send(encode(ReadSegment(name, end, _LEAST_READ, token, request_id=segment_id)), deadline)
            self._held[name] = end

    def _is_news(self, reply: Message, wanted: Mapping[str, tuple[StreamName, int, int]]) -> bool:
        if not isinstance(reply, SegmentRead):
            self.close()  # the segment has moved, or is gone, or the token has ended
            return True
        if self._held.get(reply.segment) != reply.offset:
            return False  # to a read that was there before: it has been seen
        del self._held[reply.segment]
        return reply.segment in wanted and (len(reply.data) > 0 or reply.end_of_segment)

    def interrupt(self) -> None:
        """End a wait that is under way in another thread: it cannot tell any more."""
        for connection in list(self._connections.values()):
            connection.shut_down()

    def close(self) -> None:
        """Close the connections, and so end the reads."""
        _close(self._connections)
        self._held.clear()


def _close(connections: dict[Endpoint, Connection]) -> None:
    for connection in connections.values():
        connection.close()
    connections.clear()
