"""Messages of the segment store's wire protocol, version 16.

Every message is ``i32 type | i32 length | body``, big-endian. A message here is a frozen dataclass whose ``LAYOUT``
names the type of each field in order; encoding and decoding follow the layout. Layouts are those of Java's
``io.pravega.shared.protocol.netty.WireCommands`` (0.13), checked against a real server.

Layout letters: ``q`` i64, ``i`` i32, ``?`` boolean byte, ``u`` 16-byte UUID, ``s`` u16 length and UTF-8,
``b`` i32 length and bytes, ``e`` an event: i32 0, i32 length and bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from connector.errors import ProtocolError

__all__ = [
    "APPEND_OVERHEAD",
    "MAX_FRAME_SIZE",
    "NO_ATTRIBUTE",
    "NO_EVENT_NUMBER",
    "AppendSetup",
    "AuthTokenCheckFailed",
    "ConditionalAppend",
    "ConditionalBlockEnd",
    "ConditionalCheckFailed",
    "CreateTransientSegment",
    "DataAppended",
    "ErrorMessage",
    "GetSegmentAttribute",
    "GetStreamSegmentInfo",
    "Hello",
    "InvalidEventNumber",
    "KeepAlive",
    "MergeSegments",
    "Message",
    "MessageDecoder",
    "NoSuchSegment",
    "OperationUnsupported",
    "ReadSegment",
    "ReadTable",
    "SegmentAttribute",
    "SegmentAttributeUpdated",
    "SegmentCreated",
    "SegmentIsSealed",
    "SegmentIsTruncated",
    "SegmentRead",
    "SegmentTruncated",
    "SegmentsMerged",
    "SetupAppend",
    "StreamSegmentInfo",
    "TableRead",
    "TruncateSegment",
    "UpdateSegmentAttribute",
    "WrongHost",
    "decode",
    "encode",
    "encode_append",
    "parse_header",
]

# WireCommands.MAX_WIRECOMMAND_SIZE: a longer message makes the server drop the connection.
MAX_FRAME_SIZE: Final = 0x00FF_FFFF
# WireCommands.NULL_ATTRIBUTE_VALUE: what AppendSetup carries for a writer id that has never written.
NO_EVENT_NUMBER: Final = -(2**63)
# The same, in its first meaning: a segment does not have such an attribute.
NO_ATTRIBUTE: Final = NO_EVENT_NUMBER
# The oldest protocol version that has every message used here, and the newest that was tested.
PROTOCOL_VERSION: Final = 16
OLDEST_PROTOCOL_VERSION: Final = 5

_HEADER: Final = struct.Struct(">ii")
_APPEND_BLOCK: Final = 3
_APPEND_BLOCK_END: Final = 4
_BLOCK_HEADER: Final = struct.Struct(">ii16s")
_BLOCK_END: Final = struct.Struct(">ii16siiiqq")
# What an append adds to its events on the wire: the header of AppendBlock, and the whole of AppendBlockEnd.
APPEND_OVERHEAD: Final = _BLOCK_HEADER.size + _BLOCK_END.size


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
class SetupAppend(Message):
    """Binds a writer id to a segment on this connection; answered by AppendSetup."""

    TYPE = 1
    LAYOUT = "quss"
    request_id: int
    writer_id: bytes
    segment: str
    token: str


@dataclass(frozen=True, slots=True)
class AppendSetup(Message):
    """The writer id may append; ``last_event_number`` is the last one that is durable."""

    TYPE = 2
    LAYOUT = "qsuq"
    request_id: int
    segment: str
    writer_id: bytes
    last_event_number: int


@dataclass(frozen=True, slots=True)
class ConditionalAppend(Message):
    """Appends one event if the segment's length is ``expected_offset``; DataAppended or ConditionalCheckFailed."""

    TYPE = 5
    LAYOUT = "uqqeq"
    writer_id: bytes
    event_number: int
    expected_offset: int
    event: bytes
    request_id: int


@dataclass(frozen=True, slots=True)
class DataAppended(Message):
    """All events up to ``event_number`` are durable; ``write_offset`` is the segment's length after them."""

    TYPE = 7
    LAYOUT = "uqqqq"
    writer_id: bytes
    event_number: int
    previous_event_number: int
    request_id: int
    write_offset: int


@dataclass(frozen=True, slots=True)
class ConditionalCheckFailed(Message):
    """A conditional append found the segment at another length than it expected."""

    TYPE = 8
    LAYOUT = "uqq"
    writer_id: bytes
    event_number: int
    request_id: int


@dataclass(frozen=True, slots=True)
class ReadSegment(Message):
    """Asks for bytes of a segment; parked by the server while ``offset`` is the end of an unsealed segment."""

    TYPE = 9
    LAYOUT = "sqisq"
    segment: str
    offset: int
    length: int
    token: str
    request_id: int


@dataclass(frozen=True, slots=True)
class SegmentRead(Message):
    """Bytes of a segment, perhaps fewer than were asked for. ``data`` is a view into the receive buffer."""

    TYPE = 10
    LAYOUT = "sq??bq"
    segment: str
    offset: int
    at_tail: bool
    end_of_segment: bool
    data: memoryview
    request_id: int


@dataclass(frozen=True, slots=True)
class GetStreamSegmentInfo(Message):
    """Asks for a segment's start, length and state."""

    TYPE = 11
    LAYOUT = "qss"
    request_id: int
    segment: str
    token: str


@dataclass(frozen=True, slots=True)
class StreamSegmentInfo(Message):
    """A segment's start, length and state."""

    TYPE = 12
    LAYOUT = "qs???qqq"
    request_id: int
    segment: str
    exists: bool
    sealed: bool
    deleted: bool
    last_modified: int
    write_offset: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class SegmentCreated(Message):
    """Answer to CreateTransientSegment: the name that the server chose."""

    TYPE = 21
    LAYOUT = "qs"
    request_id: int
    segment: str


@dataclass(frozen=True, slots=True)
class GetSegmentAttribute(Message):
    """Asks for a number that is kept with a segment."""

    TYPE = 34
    LAYOUT = "qsus"
    request_id: int
    segment: str
    attribute_id: bytes
    token: str


@dataclass(frozen=True, slots=True)
class SegmentAttribute(Message):
    """The number that is kept, or NO_ATTRIBUTE."""

    TYPE = 35
    LAYOUT = "qq"
    request_id: int
    value: int


@dataclass(frozen=True, slots=True)
class UpdateSegmentAttribute(Message):
    """Replaces a number that is kept with a segment if it is the expected one."""

    TYPE = 36
    LAYOUT = "qsuqqs"
    request_id: int
    segment: str
    attribute_id: bytes
    new_value: int
    expected_value: int
    token: str


@dataclass(frozen=True, slots=True)
class SegmentAttributeUpdated(Message):
    """Whether the number was the expected one, and was replaced."""

    TYPE = 37
    LAYOUT = "q?"
    request_id: int
    success: bool


@dataclass(frozen=True, slots=True)
class TruncateSegment(Message):
    """Drops all bytes of a segment before ``offset``."""

    TYPE = 38
    LAYOUT = "qsqs"
    request_id: int
    segment: str
    offset: int
    token: str


@dataclass(frozen=True, slots=True)
class SegmentTruncated(Message):
    """The bytes are dropped."""

    TYPE = 39
    LAYOUT = "qs"
    request_id: int
    segment: str


@dataclass(frozen=True, slots=True)
class CreateTransientSegment(Message):
    """Asks for a segment that lives as long as this connection, to be merged into ``parent``."""

    TYPE = 40
    LAYOUT = "quss"
    request_id: int
    writer_id: bytes
    parent: str
    token: str


@dataclass(frozen=True, slots=True)
class WrongHost(Message):
    """The segment lives on another segment store."""

    TYPE = 50
    LAYOUT = "qsss"
    request_id: int
    segment: str
    correct_host: str
    stack: str


@dataclass(frozen=True, slots=True)
class SegmentIsSealed(Message):
    """An append, or a read at the end, of a segment that has ended."""

    TYPE = 51
    LAYOUT = "qssq"
    request_id: int
    segment: str
    stack: str
    offset: int


@dataclass(frozen=True, slots=True)
class NoSuchSegment(Message):
    """The segment was deleted, merged into another one, or never existed."""

    TYPE = 53
    LAYOUT = "qssq"
    request_id: int
    segment: str
    stack: str
    offset: int


@dataclass(frozen=True, slots=True)
class InvalidEventNumber(Message):
    """The writer id has moved on; the server closes the connection after this."""

    TYPE = 55
    LAYOUT = "uqsq"
    writer_id: bytes
    request_id: int
    stack: str
    event_number: int


@dataclass(frozen=True, slots=True)
class SegmentIsTruncated(Message):
    """The offset lies before ``start_offset``, the first one that the segment still holds."""

    TYPE = 56
    LAYOUT = "qsqsq"
    request_id: int
    segment: str
    start_offset: int
    stack: str
    offset: int


@dataclass(frozen=True, slots=True)
class OperationUnsupported(Message):
    """The server does not know the operation."""

    TYPE = 57
    LAYOUT = "qss"
    request_id: int
    operation: str
    stack: str


@dataclass(frozen=True, slots=True)
class MergeSegments(Message):
    """Appends the whole of ``source`` to ``target`` in one step and deletes it."""

    TYPE = 58
    LAYOUT = "qsssi"
    request_id: int
    target: str
    source: str
    token: str
    attribute_updates: int = 0


@dataclass(frozen=True, slots=True)
class SegmentsMerged(Message):
    """The merge is durable; ``write_offset`` is the target's length after it."""

    TYPE = 59
    LAYOUT = "qssq"
    request_id: int
    target: str
    source: str
    write_offset: int


@dataclass(frozen=True, slots=True)
class AuthTokenCheckFailed(Message):
    """The delegation token was refused. To a ReadSegment the server puts the offset where the request id belongs."""

    TYPE = 60
    LAYOUT = "qsi"
    request_id: int
    stack: str
    error_code: int


@dataclass(frozen=True, slots=True)
class ErrorMessage(Message):
    """Any other failure of a request."""

    TYPE = 61
    LAYOUT = "qssi"
    request_id: int
    segment: str
    text: str
    error_code: int


@dataclass(frozen=True, slots=True)
class ReadTable(Message):
    """Asks a table segment for the value of one key; ``key_size`` counts the key's length, itself and its version."""

    TYPE = 78
    LAYOUT = "qssiibq"
    request_id: int
    segment: str
    token: str
    count: int
    key_size: int
    key: bytes
    version: int


@dataclass(frozen=True, slots=True)
class TableRead(Message):
    """One key of a table segment with its value, which is empty for a key that is not there."""

    TYPE = 79
    LAYOUT = "qsiibqib"
    request_id: int
    segment: str
    count: int
    key_size: int
    key: bytes | memoryview
    version: int
    value_size: int
    value: bytes | memoryview


@dataclass(frozen=True, slots=True)
class ConditionalBlockEnd(Message):
    """Appends raw bytes if the segment's length is ``expected_offset``."""

    TYPE = 89
    LAYOUT = "uqqbq"
    writer_id: bytes
    event_number: int
    expected_offset: int
    data: bytes | memoryview
    request_id: int


@dataclass(frozen=True, slots=True)
class KeepAlive(Message):
    """Keeps an idle connection open; the server sends it back."""

    TYPE = 100
    LAYOUT = ""


_REPLIES: Final[dict[int, type[Message]]] = {
    cls.TYPE: cls
    for cls in (
        Hello,
        AppendSetup,
        DataAppended,
        ConditionalCheckFailed,
        SegmentRead,
        StreamSegmentInfo,
        SegmentCreated,
        SegmentAttribute,
        SegmentAttributeUpdated,
        SegmentTruncated,
        WrongHost,
        SegmentIsSealed,
        NoSuchSegment,
        InvalidEventNumber,
        SegmentIsTruncated,
        OperationUnsupported,
        SegmentsMerged,
        TableRead,
        AuthTokenCheckFailed,
        ErrorMessage,
        KeepAlive,
    )
}
_FIXED: Final = {
    "q": struct.Struct(">q"),
    "i": struct.Struct(">i"),
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
    """The bytes of a request, header included."""
    values = (getattr(message, field.name) for field in fields(message))  # type: ignore[arg-type]
    body = b"".join(map(_encode_field, message.LAYOUT, values))
    return _HEADER.pack(message.TYPE, len(body)) + body


def encode_append(
    writer_id: bytes, data_size: int, event_count: int, last_event_number: int, request_id: int
) -> tuple[bytes, bytes]:
    """What goes before and after ``data_size`` bytes of framed events to append them atomically.

    The pair is (header of AppendBlock, the whole AppendBlockEnd): the events themselves are sent from where they lie.
    """
    before = _BLOCK_HEADER.pack(_APPEND_BLOCK, 16 + data_size, writer_id)
    after = _BLOCK_END.pack(
        _APPEND_BLOCK_END, _BLOCK_END.size - 8, writer_id, data_size, 0, event_count, last_event_number, request_id
    )
    return before, after


def _decode_field(kind: str, body: memoryview, at: int) -> tuple[Any, int]:
    if kind == "s":
        end = at + 2 + _U16.unpack_from(body, at)[0]
        if end > len(body):
            raise ProtocolError("a text runs past the end of its message")
        # Stack traces come from the server as Java's modified UTF-8: never let their odd bytes hide the reply.
        return str(body[at + 2 : end], "utf-8", "replace"), end
    if kind == "b":
        size = _I32.unpack_from(body, at)[0]
        end = at + 4 + size
        if size < 0 or end > len(body):
            raise ProtocolError("a byte field runs past the end of its message")
        return body[at + 4 : end], end
    fixed = _FIXED[kind]
    return fixed.unpack_from(body, at)[0], at + fixed.size


def decode(type_code: int, body: memoryview) -> Message:
    """A reply from its type number and body. Byte fields are views into ``body``. Raises ProtocolError.

    Bytes after the known fields are ignored: later versions of the protocol append fields.
    """
    reply = _REPLIES.get(type_code)
    if reply is None:
        raise ProtocolError(f"the segment store sent a message of the unknown type {type_code}")
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
    """Cuts a byte stream of small replies into messages. ``feed`` what arrived, and get the messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[Message]:
        """Return the messages that are complete now. Raises ProtocolError."""
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
