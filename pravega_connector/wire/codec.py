"""Messages to bytes and back, by their layouts (see :mod:`pravega_connector.wire.messages`)."""

from __future__ import annotations

import struct
from typing import Any, Final

from pravega_connector.errors import ProtocolError
from pravega_connector.wire.messages import REPLIES, Message

__all__ = ["MAX_FRAME_SIZE", "MessageDecoder", "decode", "encode", "parse_header"]

# WireCommands.MAX_WIRECOMMAND_SIZE: a longer message makes the server drop the connection.
MAX_FRAME_SIZE: Final = 0x00FF_FFFF

_HEADER: Final = struct.Struct(">ii")
_FIXED: Final = {
    "q": struct.Struct(">q"),
    "i": struct.Struct(">i"),
    "1": struct.Struct(">b"),
    "?": struct.Struct(">?"),
    "u": struct.Struct("16s"),
}
_U16: Final = struct.Struct(">H")
_I32: Final = struct.Struct(">i")


def _encode_field(kind: str, value: Any) -> bytes:
    if kind == "s":
        value = value.encode()
        return _U16.pack(len(value)) + bytes(value)
    if kind == "b":
        return _I32.pack(len(value)) + bytes(value)
    if kind == "e":
        return _HEADER.pack(0, len(value)) + bytes(value)
    return bytes(_FIXED[kind].pack(value))


def encode(message: Message) -> bytes:
    """Bytes of a message, header included."""
    values = (getattr(message, name) for name in message.__struct_fields__)
    body = b"".join(map(_encode_field, message.LAYOUT, values))
    return _HEADER.pack(message.TYPE, len(body)) + body


def _decode_field(kind: str, body: memoryview, at: int) -> tuple[Any, int]:
    if kind == "s":
        end = at + 2 + _U16.unpack_from(body, at)[0]
        if end > len(body):
            raise ProtocolError("invalid message of the segment store: a text runs past its end")
        # Stack traces come from the server as Java's modified UTF-8: never let their odd bytes hide the reply.
        return str(body[at + 2 : end], "utf-8", "replace"), end
    if kind == "b":
        size = _I32.unpack_from(body, at)[0]
        end = at + 4 + size
        if size < 0 or end > len(body):
            raise ProtocolError("invalid message of the segment store: a byte field runs past its end")
        return body[at + 4 : end], end
    fixed = _FIXED[kind]
    return fixed.unpack_from(body, at)[0], at + fixed.size


def decode(type_code: int, body: memoryview) -> Message:
    """Message of a type number and a body. Byte fields are views into ``body``. Raises ProtocolError.

    Bytes after the known fields are ignored: later versions of the protocol append fields.
    """
    reply = REPLIES.get(type_code)
    if reply is None:
        raise ProtocolError(f"the segment store sent a message of unknown type {type_code}")
    values, at = [], 0
    try:
        for kind in reply.LAYOUT:
            value, at = _decode_field(kind, body, at)
            values.append(value)
    except struct.error:
        raise ProtocolError(f"the segment store sent a {reply.__name__} of only {len(body)} bytes") from None
    return reply(*values)


def parse_header(header: bytes | bytearray | memoryview) -> tuple[int, int]:
    """(type number, body length) of the 8 header bytes. Raises ProtocolError for an impossible length."""
    type_code, length = _HEADER.unpack_from(header)
    if not 0 <= length <= MAX_FRAME_SIZE:
        raise ProtocolError(f"the segment store sent a message of {length} bytes; the limit is {MAX_FRAME_SIZE}")
    return type_code, length


class MessageDecoder:
    """Cuts a byte stream of small replies into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[Message]:
        """Take the next bytes; return the messages that they complete. Raises ProtocolError."""
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
