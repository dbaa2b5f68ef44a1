"""The server's side of the wire: requests out of bytes. Written apart from the client's codec, to check it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from connector.wire import Message
from connector.wire.messages import MESSAGES

_SIZES = {"q": 8, "i": 4, "?": 1, "u": 16}


@dataclass(frozen=True)
class Append:
    """An AppendBlock with its AppendBlockEnd."""

    writer_id: bytes
    data: bytes
    event_count: int
    last_event_number: int
    request_id: int


class RequestDecoder:
    """Feed it what the client sent; it gives whole requests."""

    def __init__(self) -> None:
        self._buffer = b""
        self._block: tuple[bytes, bytes] | None = None

    def feed(self, data: bytes) -> list[Message | Append]:
        self._buffer += data
        requests = []
        while len(self._buffer) >= 8:
            type_code, length = struct.unpack(">ii", self._buffer[:8])
            assert 0 <= length <= 0xFFFFFF - 8, f"no server takes a frame of {length} bytes"
            if len(self._buffer) < 8 + length:
                break
            body, self._buffer = self._buffer[8 : 8 + length], self._buffer[8 + length :]
            request = self._request(type_code, body)
            if request is not None:
                requests.append(request)
        return requests

    def _request(self, type_code: int, body: bytes) -> Message | Append | None:
        if type_code == 3:
            assert self._block is None, "an AppendBlock came inside another one"
            self._block = (body[:16], body[16:])
            return None
        if type_code == 4:
            return self._append(body)
        assert self._block is None, f"message {type_code} came between an AppendBlock and its end"
        return decode_request(type_code, body)

    def _append(self, body: bytes) -> Append:
        assert self._block is not None, "an AppendBlockEnd came without its AppendBlock"
        writer_id, size, extra, count, last, request_id = struct.unpack(">16siiiqq", body)
        block_writer, data = self._block
        self._block = None
        assert (block_writer, len(data), 0) == (writer_id, size, extra)
        assert count == len(split_events(data)), "the number of events is wrong"
        return Append(writer_id, data, count, last, request_id)


def decode_request(type_code: int, body: bytes) -> Message:
    request, at, values = MESSAGES[type_code], 0, []
    for kind in request.LAYOUT:
        if kind == "s":
            (size,) = struct.unpack_from(">H", body, at)
            values.append(body[at + 2 : at + 2 + size].decode())
            at += 2 + size
        elif kind == "b":
            (size,) = struct.unpack_from(">i", body, at)
            values.append(body[at + 4 : at + 4 + size])
            at += 4 + size
        elif kind == "e":
            event, size = struct.unpack_from(">ii", body, at)
            assert event == 0, "an event has the type 0"
            values.append(body[at + 8 : at + 8 + size])
            at += 8 + size
        else:
            size = _SIZES[kind]
            raw = body[at : at + size]
            values.append(raw if kind == "u" else int.from_bytes(raw, "big", signed=True))
            at += size
    assert at == len(body), f"{len(body) - at} bytes after the last field of {request.__name__}"
    return request(*values)


def frame(payload: bytes) -> bytes:
    """One event as a segment holds it."""
    return struct.pack(">ii", 0, len(payload)) + payload


def split_events(data: bytes) -> list[bytes]:
    """The payloads of whole frames."""
    events, at = [], 0
    while at < len(data):
        kind, size = struct.unpack_from(">ii", data, at)
        assert kind == 0
        assert at + 8 + size <= len(data), "the bytes end inside an event"
        events.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return events
