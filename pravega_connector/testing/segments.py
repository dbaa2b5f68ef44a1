"""Segments of a store in memory, with their attributes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final, Protocol

from pravega_connector.testing.requests import split_events
from pravega_connector.wire import NO_ATTRIBUTE, Message, ReadSegment

#: Maximum number of bytes in one answer to a read, and the minimum that a server uses for a request.
MAX_READ: Final = 2 << 20
_LEAST_READ: Final = 8


class SupportsReply(Protocol):
    """Connection for answers."""

    def reply(self, message: Message) -> None:
        """Send a message."""

    def drop(self) -> None:
        """End the connection without an answer."""


@dataclass
class ParkedRead:
    """Read at the tail that waits for data."""

    session: SupportsReply
    request: ReadSegment
    since: float = field(default_factory=time.monotonic)


@dataclass
class Segment:
    """Segment. Offsets count from its first byte, even if that byte was truncated."""

    name: str
    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    """First offset that has not been truncated."""
    sealed: bool = False
    modified_ms: int = 0
    attributes: dict[bytes, int] = field(default_factory=dict)
    """Numbers by UUID. The number of a writer is that of its last appended event."""
    parked: list[ParkedRead] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Offset of the next byte."""
        return len(self.data)

    @property
    def events(self) -> list[bytes]:
        """Payloads of all events, truncated ones included. Raises ProtocolError if it holds other bytes."""
        return split_events(bytes(self.data))

    def attribute(self, key: bytes) -> int:
        """Return the number of an attribute, or NO_ATTRIBUTE if there is none."""
        return self.attributes.get(key, NO_ATTRIBUTE)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self.data += data
        self.modified_ms = time.time_ns() // 1_000_000

    def read(self, offset: int, wanted: int) -> bytes:
        """Return the bytes from an offset, at most as many as a server returns in one answer."""
        return bytes(memoryview(self.data)[offset : offset + min(max(wanted, _LEAST_READ), MAX_READ)])
