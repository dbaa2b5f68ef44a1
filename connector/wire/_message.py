"""What every message of the segment store's wire protocol is, version 16, and those that serve the connection itself.

Every message is ``i32 type | i32 length | body``, big-endian. A message here is a frozen dataclass whose ``LAYOUT``
names the type of each field in order; encoding and decoding (``_codec.py``) follow the layout. Layouts are those of
Java's ``io.pravega.shared.protocol.netty.WireCommands`` (0.13), checked against a real server.

Layout letters: ``q`` i64, ``i`` i32, ``?`` boolean byte, ``u`` 16-byte UUID, ``s`` u16 length and UTF-8,
``b`` i32 length and bytes, ``e`` an event: i32 0, i32 length and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

__all__ = ["Hello", "KeepAlive", "Message"]

# The oldest protocol version that has every message used here, and the newest that was tested.
PROTOCOL_VERSION: Final = 16
OLDEST_PROTOCOL_VERSION: Final = 5


class Message:
    """Base of all messages: a type number and the layout of the fields."""

    __slots__ = ()
    TYPE: ClassVar[int]
    LAYOUT: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Hello(Message):
    """First message in each direction."""

    TYPE = -127
    LAYOUT = "ii"
    high: int = PROTOCOL_VERSION
    low: int = OLDEST_PROTOCOL_VERSION


@dataclass(frozen=True, slots=True)
class KeepAlive(Message):
    """Keeps an idle connection open; the server sends it back."""

    TYPE = 100
    LAYOUT = ""
