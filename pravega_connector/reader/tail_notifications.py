"""Notifications of new data in segments, without polling.

A store holds a read at the end of a segment (``ReadSegment``) until data arrive. So one such read for each segment
reports new data at once, and costs nothing until then. The read returns a few bytes. The caller reads the data itself.
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
# Most segments that are watched: a store keeps a request for each.
_MOST: Final = 256
# Bytes of a read: the least that a store sends.
_LEAST_READ: Final = 8
# Seconds to connect to a store, which has just answered.
_CONNECT: Final = 1.0


class Arrivals:
    """Reads that stores hold at the ends of segments. Not thread safe, except :meth:`interrupt`."""

    def __init__(self, stores: SegmentStores) -> None:
        self._stores = stores
        self._connections: dict[Endpoint, Connection] = {}
        self._held: dict[str, int] = {}  # segment name -> offset at which a read is held
        weakref.finalize(self, _close, self._connections)

    def wait(self, ends: Ends, timeout: float) -> bool | None:
        """Return True as soon as there is data after one of the ends, or False after ``timeout`` seconds.

        Returns None at once if this cannot be determined: there are too many segments, or a store does not accept the
        reads. Returns True for a reply without data too: the caller's next read finds the reason. Raises nothing.
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
                    reply = connection.receive_now()  # one reply, so that the clock is checked before the next
                    if reply is not None and self._is_news(reply, wanted):
                        return True
                if left <= 0:
                    return False
                self._hold(wanted)  # a read was answered without data
        except ConnectorError:
            self.close()
            return None

    def _hold(self, wanted: Mapping[str, tuple[StreamName, int, int]]) -> None:
        """Send a read for each end that has none."""
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
            self.close()  # the segment has moved or was deleted, or the token has expired
            return True
        if self._held.get(reply.segment) != reply.offset:
            return False  # the reply to an earlier read, which was seen before
        del self._held[reply.segment]
        return reply.segment in wanted and (len(reply.data) > 0 or reply.end_of_segment)

    def interrupt(self) -> None:
        """End a :meth:`wait` that runs in another thread. It then returns None."""
        for connection in list(self._connections.values()):
            connection.shut_down()

    def close(self) -> None:
        """Close the connections, which ends the reads."""
        _close(self._connections)
        self._held.clear()


def _close(connections: dict[Endpoint, Connection]) -> None:
    for connection in connections.values():
        connection.close()
    connections.clear()
