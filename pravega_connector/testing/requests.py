"""Decoder of requests, as a segment store reads them.

It is independent of the client's codec, so that each checks the other.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from pravega_connector.errors import ProtocolError
from pravega_connector.wire import MAX_FRAME_SIZE, Message, WireEntry, WireKey
from pravega_connector.wire.messages import MESSAGES

_APPEND_BLOCK: Final = 3
_APPEND_BLOCK_END: Final = 4
_BLOCK_END: Final = struct.Struct(">16sii")  # writer, bytes of whole events in the block, and bytes that follow here
_BLOCK_END_REST: Final = struct.Struct(">iqq")  # events, number of the last one, request
_PADDING: Final = -1
_PARTIAL_EVENT: Final = -2
_HEADER: Final = struct.Struct(">ii")
_SIZES: Final = {"q": 8, "i": 4, "1": 1, "?": 1, "u": 16}


@dataclass(frozen=True)
class Append:
    """Bytes to append at once: an AppendBlock with its AppendBlockEnd, or only the end.

    Java's writers may send only the end. No server checks if the bytes are events.
    """

    writer_id: bytes
    data: bytes
    event_count: int
    last_event_number: int
    request_id: int


Request = Message | Append


class RequestDecoder:
    """Decoder of a client's bytes into requests. Raises ProtocolError for bytes that no server accepts."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._block: tuple[bytes, bytes] | None = None

    def feed(self, data: bytes) -> list[Request]:
        """Decode the next bytes. Return the requests that they complete."""
        self._buffer += data
        requests, at = list[Request](), 0
        while len(self._buffer) - at >= _HEADER.size:
            type_code, length = _HEADER.unpack_from(self._buffer, at)
            _check(0 <= length <= MAX_FRAME_SIZE - _HEADER.size, f"no server takes a frame of {length} bytes")
            end = at + _HEADER.size + length
            if len(self._buffer) < end:
                break
            request = self._request(type_code, bytes(memoryview(self._buffer)[at + _HEADER.size : end]))
            at = end
            if request is not None:
                requests.append(request)
        del self._buffer[:at]
        return requests

    def _request(self, type_code: int, body: bytes) -> Request | None:
        if type_code == _APPEND_BLOCK:
            _check(self._block is None, "an AppendBlock came inside another one")
            self._block = (body[:16], body[16:])
            return None
        if type_code == _APPEND_BLOCK_END:
            return self._append(body)
        _check(self._block is None, f"message {type_code} came between an AppendBlock and its end")
        return _decode(type_code, body)

    def _append(self, body: bytes) -> Append:
        writer_id, size, extra = _BLOCK_END.unpack_from(body)
        rest = _BLOCK_END.size + extra
        _check(len(body) == rest + _BLOCK_END_REST.size, "an AppendBlockEnd has other bytes than it says")
        count, last, request_id = _BLOCK_END_REST.unpack_from(body, rest)
        block_writer, block = self._block or (writer_id, b"")
        self._block = None
        right = block_writer == writer_id and 0 <= size <= len(block) and count > 0
        _check(right, "an AppendBlockEnd is not that of its block")
        data = block[:size] + _started_event(block[size:]) + body[_BLOCK_END.size : rest]
        return Append(writer_id, data, count, last, request_id)


def _started_event(left: bytes) -> bytes:
    """Return the first bytes of an incomplete event after the whole events of a block.

    Java's writers estimate the size of a block before they fill it.
    """
    if not left:
        return b""
    _check(len(left) >= _HEADER.size, "a block ends inside a header")
    kind, length = _HEADER.unpack_from(left)
    _check(kind in (_PADDING, _PARTIAL_EVENT) and length == len(left) - _HEADER.size, "a block ends in another message")
    return left[_HEADER.size :] if kind == _PARTIAL_EVENT else b""


def _decode(type_code: int, body: bytes) -> Message:
    if type_code not in MESSAGES:
        raise ProtocolError(f"the in-process segment store does not know messages of type {type_code}")
    request, at, values = MESSAGES[type_code], 0, list[Any]()
    for kind in request.LAYOUT:
        if kind == "s":
            (size,) = struct.unpack_from(">H", body, at)
            values.append(body[at + 2 : at + 2 + size].decode())
            at += 2 + size
        elif kind == "b":
            (size,) = struct.unpack_from(">i", body, at)
            values.append(body[at + 4 : at + 4 + size])
            at += 4 + size
        elif kind in "kt":
            members, at = _members(kind, body, at)
            values.append(members)
        elif kind == "e":
            event, size = _HEADER.unpack_from(body, at)
            _check(event == 0, "an event has the type 0")
            values.append(body[at + 8 : at + 8 + size])
            at += 8 + size
        else:
            size = _SIZES[kind]
            raw = body[at : at + size]
            values.append(raw if kind == "u" else int.from_bytes(raw, "big", signed=True))
            at += size
    _check(at == len(body), f"{len(body) - at} bytes after the last field of {request.__name__}")
    return request(*values)


def _members(kind: str, body: bytes, at: int) -> tuple[tuple[Any, ...], int]:
    """Return the keys or entries of a table from an offset, and the offset after them."""
    (count,) = struct.unpack_from(">i", body, at)
    members, at = list[Any](), at + 4
    for _ in range(count):
        size, length = _HEADER.unpack_from(body, at)
        _check(length > 0 and size == 4 + length + 8, "a key of a table has another size than it says")
        key, (version,) = body[at + 8 : at + 8 + length], struct.unpack_from(">q", body, at + 8 + length)
        at += 4 + size
        if kind == "k":
            members.append(WireKey(key, version))
            continue
        size, length = _HEADER.unpack_from(body, at)
        _check(length >= 0 and size == 4 + length, "a value of a table has another size than it says")
        members.append(WireEntry(key, version, body[at + 8 : at + 8 + length]))
        at += 4 + size
    return tuple(members), at


def _check(right: bool, otherwise: str) -> None:
    if not right:
        raise ProtocolError(f"invalid request: {otherwise}")


def frame(payload: bytes) -> bytes:
    """Return the bytes of an event in a segment."""
    return _HEADER.pack(0, len(payload)) + payload


def split_events(data: bytes) -> list[bytes]:
    """Return the payloads of whole events. Raises ProtocolError if other bytes are found."""
    events, at = list[bytes](), 0
    while at < len(data):
        _check(at + 8 <= len(data), "the bytes end inside the header of an event")
        kind, size = _HEADER.unpack_from(data, at)
        _check(kind == 0 and size >= 0, f"there is no event at byte {at}")
        _check(at + 8 + size <= len(data), "the bytes end inside an event")
        events.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return events
