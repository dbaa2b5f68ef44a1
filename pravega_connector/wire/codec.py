"""Encoding and decoding of messages by their layouts (see :mod:`pravega_connector.wire.messages`)."""

from __future__ import annotations

import struct
from typing import Any, Final

from msgspec.structs import astuple

from pravega_connector.errors import ProtocolError
from pravega_connector.wire.messages import REPLIES, Message
from pravega_connector.wire.table_lists import LISTS, take_list

# WireCommands.MAX_WIRECOMMAND_SIZE: the server drops the connection for a longer message.
MAX_FRAME_SIZE: Final = 0x00FF_FFFF

_HEADER: Final = struct.Struct(">ii")


def encode(message: Message) -> bytes:
    """Return the bytes of a message with its header."""
    values, at, size = astuple(message), 0, 0
    pieces = [b""]
    for fixed, plain, sized in message.PARTS:
        end = at + plain
        if not sized:
            pieces.append(fixed.pack(*values[at:end]))
            size += fixed.size
            break
        value = values[end].encode() if sized == "s" else values[end]
        data = LISTS[sized].pack(value) if sized in LISTS else value
        pieces += fixed.pack(*values[at:end], len(value)), data
        size += fixed.size + len(data)
        at = end + 1
    pieces[0] = _HEADER.pack(message.TYPE, size)
    return b"".join(pieces)


def decode(type_code: int, body: memoryview) -> Message:
    """Return the message of a type number and a body. Byte fields are views into ``body``.

    Bytes after the known fields are ignored, because later versions of the protocol append fields. Raises
    ProtocolError.
    """
    reply = REPLIES.get(type_code)
    if reply is None:
        raise ProtocolError(f"the segment store sent a message of unknown type {type_code}")
    values: list[Any] = []
    at, length = 0, len(body)
    try:
        for fixed, _, sized in reply.PARTS:
            values += fixed.unpack_from(body, at)
            at += fixed.size
            if not sized:
                break
            size = values.pop()
            if sized in LISTS:
                members, at = take_list(sized, body, at, size)
                values.append(members)
                continue
            end = at + size
            if size < 0 or end > length:
                field = "text" if sized == "s" else "byte field"
                raise ProtocolError(f"invalid message of the segment store: a {field} runs past its end")
            # The server sends stack traces as Java's modified UTF-8. Their invalid bytes must not hide the reply.
            values.append(str(body[at:end], "utf-8", "replace") if sized == "s" else body[at:end])
            at = end
    except struct.error:
        raise ProtocolError(f"the segment store sent a {reply.__name__} of only {len(body)} bytes") from None
    return reply(*values)


def parse_header(header: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Return type number and body length from the 8 header bytes. Raises ProtocolError for an invalid length."""
    type_code, length = _HEADER.unpack_from(header)
    if not 0 <= length <= MAX_FRAME_SIZE:
        raise ProtocolError(f"the segment store sent a message of {length} bytes; the limit is {MAX_FRAME_SIZE}")
    return type_code, length


class MessageDecoder:
    """Decoder of a byte stream of small replies into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[Message]:
        """Add the next bytes. Return the messages that they complete. Raises ProtocolError."""
        self._buffer += data
        at, end = 0, len(self._buffer)
        messages = []
        while end - at >= 8:
            type_code, length = parse_header(self._buffer[at : at + 8])
            if end - at < 8 + length:
                break
            body = bytes(self._buffer[at + 8 : at + 8 + length])
            at += 8 + length
            messages.append(decode(type_code, memoryview(body)))
        del self._buffer[:at]
        return messages
