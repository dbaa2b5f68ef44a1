"""What a segment store keeps: segments with their attributes, and tables of keys, values and versions. In memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final, Protocol

from pravega_connector.testing.requests import split_events
from pravega_connector.wire import NO_ATTRIBUTE, Message, ReadSegment

#: Most bytes in one answer to a read; also the least that a server takes for a wish.
MAX_READ: Final = 2 << 20
_LEAST_READ: Final = 8


class SupportsReply(Protocol):
    """Connection that an answer is sent to."""

    def reply(self, message: Message) -> None:
        """Send a message."""

    def drop(self) -> None:
        """End the connection without an answer."""


@dataclass
class ParkedRead:
    """A read at the tail, which waits for data."""

    session: SupportsReply
    request: ReadSegment
    since: float = field(default_factory=time.monotonic)


@dataclass
class Segment:
    """A segment. Offsets count from its first byte ever, whether or not that was truncated."""

    name: str
    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    """First offset that has not been truncated."""
    sealed: bool = False
    modified_ms: int = 0
    attributes: dict[bytes, int] = field(default_factory=dict)
    """Numbers by their UUIDs; a writer's own one is the last event number that it appended."""
    parked: list[ParkedRead] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Offset at which the next byte goes."""
        return len(self.data)

    @property
    def events(self) -> list[bytes]:
        """Payloads of all events, truncated ones included. Raises ProtocolError where it holds something else."""
        return split_events(bytes(self.data))

    def attribute(self, key: bytes) -> int:
        """Number of an attribute; NO_ATTRIBUTE if there is none."""
        return self.attributes.get(key, NO_ATTRIBUTE)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes at the end."""
        self.data += data
        self.modified_ms = time.time_ns() // 1_000_000

    def read(self, offset: int, wanted: int) -> bytes:
        """Bytes from an offset: as many as a server gives in one answer."""
        return bytes(memoryview(self.data)[offset : offset + min(max(wanted, _LEAST_READ), MAX_READ)])


@dataclass
class Table:
    """A table segment. Each change of a key gets the next version of the whole table."""

    name: str
    entries: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """Version and value by key."""
    version: int = 0

    def put(self, key: str, value: bytes) -> int:
        """Set a value; its version."""
        self.version += 1
        self.entries[key.encode()] = (self.version, value)
        return self.version

    def remove(self, key: str) -> None:
        """Remove a key, if it is there."""
        self.entries.pop(key.encode(), None)
