"""Messages of the segment store's wire protocol, version 16, each declared in one place.

A message on the wire is ``i32 type | i32 length | body``, big-endian. Here it is a frozen struct with its type number,
``TYPE``, and the types of its fields in order, ``LAYOUT``. :mod:`pravega_connector.wire.codec` uses the layout. The
definition adds the message to the table ``MESSAGES``, which is all that encoding and decoding need. A subclass of
:class:`Reply` is sent by the segment store. Layouts are those of Java's
``io.pravega.shared.protocol.netty.WireCommands`` (0.13), checked against a real server. The structs are msgspec's: the
same number of dataclasses took a fifth of the connector's import time.

Layout letters: ``q`` i64, ``i`` i32, ``1`` i8, ``?`` boolean byte, ``u`` 16-byte UUID, ``s`` u16 length and UTF-8,
``b`` i32 length and bytes, ``e`` an event: i32 0, i32 length and bytes. Lists with an i32 count are ``k`` keys, ``t``
entries and ``v`` versions of a table: see :mod:`pravega_connector.wire.table_lists`. They are compiled into ``PARTS``,
once per class.

An append of a block is two messages, AppendBlock and AppendBlockEnd, around its bytes: :class:`BlockAppend`.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final, NamedTuple, dataclass_transform

import msgspec

from pravega_connector.wire.table_lists import WireEntry, WireKey

__all__ = [
    "NO_ATTRIBUTE",
    "AppendSetup",
    "AuthTokenCheckFailed",
    "BlockAppend",
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
    "NoSuchSegment",
    "OperationUnsupported",
    "ReadSegment",
    "ReadTable",
    "ReadTableEntries",
    "ReadTableKeys",
    "RemoveTableKeys",
    "Reply",
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
    "TableEntriesRead",
    "TableEntriesUpdated",
    "TableKeyBadVersion",
    "TableKeyDoesNotExist",
    "TableKeysRead",
    "TableKeysRemoved",
    "TableRead",
    "TruncateSegment",
    "UpdateSegmentAttribute",
    "UpdateTableEntries",
    "WrongHost",
]

# The oldest protocol version that has every message used here, and the newest that was tested.
PROTOCOL_VERSION: Final = 16
OLDEST_PROTOCOL_VERSION: Final = 5

# WireCommands.NULL_TABLE_SEGMENT_OFFSET: an update of a table segment does not depend on its length.
ANY_LENGTH: Final = -1
# WireCommands.NULL_ATTRIBUTE_VALUE: the segment has no such attribute; in AppendSetup, the writer id has never written.
NO_ATTRIBUTE: Final = -(2**63)

_APPEND_BLOCK: Final = 3
_APPEND_BLOCK_END: Final = 4
_BLOCK_HEADER: Final = struct.Struct(">ii16s")
_BLOCK_END: Final = struct.Struct(">ii16siiiqq")


_FIXED: Final = {"q": "q", "i": "i", "1": "b", "?": "?", "u": "16s"}
# Fields with a length or a count before them. An event has four zero bytes before the length.
_SIZED: Final = {"s": "H", "b": "i", "e": "4xi", "k": "i", "t": "i", "v": "i"}


class Part(NamedTuple):
    """Consecutive fields of a message: ``plain`` fixed-size fields, then one with a length, of letter ``sized``.

    ``fixed`` includes the length, or the count of a list. Only the last part may have no sized field: then ``sized``
    is empty.
    """

    fixed: struct.Struct
    plain: int
    sized: str


def _compiled(layout: str) -> tuple[Part, ...]:
    parts, form, count = [], ">", 0
    for letter in layout:
        if letter in _FIXED:
            form, count = form + _FIXED[letter], count + 1
        else:
            parts.append(Part(struct.Struct(form + _SIZED[letter]), count, letter))
            form, count = ">", 0
    if count:
        parts.append(Part(struct.Struct(form), count, ""))
    return tuple(parts)


#: Classes of all messages, by type number.
MESSAGES: Final[dict[int, type[Message]]] = {}
#: Classes of the messages that a segment store sends, by type number.
REPLIES: Final[dict[int, type[Reply]]] = {}


@dataclass_transform(frozen_default=True)  # type checkers do not inherit it from msgspec's base
class Message(msgspec.Struct, frozen=True):
    """Base class of all messages, with a type number and the layout of the fields."""

    TYPE: ClassVar[int]
    LAYOUT: ClassVar[str]
    PARTS: ClassVar[tuple[Part, ...]]
    """Compiled layout."""

    def __init_subclass__(cls) -> None:
        if "TYPE" not in vars(cls):  # an intermediate base class
            return
        cls.PARTS = _compiled(cls.LAYOUT)
        if MESSAGES.setdefault(cls.TYPE, cls) is not cls:
            raise TypeError(f"{cls.__name__} and {MESSAGES[cls.TYPE].__name__} have the same type {cls.TYPE}")


class Reply(Message):
    """Base class of the messages that a segment store sends. A subclass is decoded once it is defined."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        REPLIES[cls.TYPE] = cls


class Hello(Reply):
    """First message in each direction."""

    TYPE = -127
    LAYOUT = "ii"
    high: int = PROTOCOL_VERSION
    low: int = OLDEST_PROTOCOL_VERSION


class KeepAlive(Reply):
    """Message that keeps an idle connection open. The server sends it back."""

    TYPE = 100
    LAYOUT = ""


# ---- writing events, unconditionally or conditionally, and the answers ----


class SetupAppend(Message):
    """Request to bind a writer id to a segment on this connection. Answer: AppendSetup."""

    TYPE = 1
    LAYOUT = "quss"
    request_id: int
    writer_id: bytes
    segment: str
    token: str


class AppendSetup(Reply):
    """Permission for the writer id to append. ``last_event_number`` is the last durable event number."""

    TYPE = 2
    LAYOUT = "qsuq"
    request_id: int
    segment: str
    writer_id: bytes
    last_event_number: int


class ConditionalAppend(Message):
    """Request to append one event if the segment's length is ``expected_offset``.

    Answer: DataAppended or ConditionalCheckFailed.
    """

    TYPE = 5
    LAYOUT = "uqqeq"
    writer_id: bytes
    event_number: int
    expected_offset: int
    event: bytes
    request_id: int


class DataAppended(Reply):
    """Acknowledgement: all events up to ``event_number`` are durable.

    ``write_offset`` is the segment's length after them.
    """

    TYPE = 7
    LAYOUT = "uqqqq"
    writer_id: bytes
    event_number: int
    previous_event_number: int
    request_id: int
    write_offset: int


class ConditionalCheckFailed(Reply):
    """Refusal of a conditional append, because the segment has another length than expected."""

    TYPE = 8
    LAYOUT = "uqq"
    writer_id: bytes
    event_number: int
    request_id: int


class InvalidEventNumber(Reply):
    """Refusal: the writer id has a later event number. The server closes the connection after it."""

    TYPE = 55
    LAYOUT = "uqsq"
    writer_id: bytes
    request_id: int
    stack: str
    event_number: int


class ConditionalBlockEnd(Message):
    """Request to append raw bytes if the segment's length is ``expected_offset``."""

    TYPE = 89
    LAYOUT = "uqqbq"
    writer_id: bytes
    event_number: int
    expected_offset: int
    data: bytes | memoryview
    request_id: int


class BlockAppend(Message):
    """Request to append bytes in one step: a message before and a message after the bytes.

    Answer: DataAppended.
    """

    writer_id: bytes
    event_number: int  # of the last event in the block
    request_id: int

    def around(self, size: int, event_count: int) -> tuple[bytes, bytes]:
        """Return the bytes to send before and after the ``size`` bytes of the block.

        They are AppendBlock's header and the whole AppendBlockEnd. The block is sent without a copy.
        """
        before = _BLOCK_HEADER.pack(_APPEND_BLOCK, 16 + size, self.writer_id)
        after = _BLOCK_END.pack(
            _APPEND_BLOCK_END,
            _BLOCK_END.size - 8,
            self.writer_id,
            size,
            0,
            event_count,
            self.event_number,
            self.request_id,
        )
        return before, after


# ---- segments, their bytes, attributes and keys: each request before its answer ----


class ReadSegment(Message):
    """Request for bytes of a segment.

    The server parks it while ``offset`` is the end of an unsealed segment.
    """

    TYPE = 9
    LAYOUT = "sqisq"
    segment: str
    offset: int
    length: int
    token: str
    request_id: int


class SegmentRead(Reply):
    """Bytes of a segment, possibly fewer than requested.

    ``data`` is a view into the receive buffer.
    """

    TYPE = 10
    LAYOUT = "sq??bq"
    segment: str
    offset: int
    at_tail: bool
    end_of_segment: bool
    data: memoryview
    request_id: int


class GetStreamSegmentInfo(Message):
    """Request for a segment's start, length and state."""

    TYPE = 11
    LAYOUT = "qss"
    request_id: int
    segment: str
    token: str


class StreamSegmentInfo(Reply):
    """Start, length and state of a segment."""

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


class CreateTransientSegment(Message):
    """Request to create a segment that exists as long as this connection, to be merged into ``parent``."""

    TYPE = 40
    LAYOUT = "quss"
    request_id: int
    writer_id: bytes
    parent: str
    token: str


class SegmentCreated(Reply):
    """Answer to CreateTransientSegment with the name that the server chose."""

    TYPE = 21
    LAYOUT = "qs"
    request_id: int
    segment: str


class MergeSegments(Message):
    """Request to append all of ``source`` to ``target`` in one step, and to delete it.

    It is conditional on an attribute of ``target``, which is replaced in the same step. If the attribute is not as
    expected, the answer is a SegmentAttributeUpdated without success.
    """

    TYPE = 58
    LAYOUT = "qsssiu1qq"
    request_id: int
    target: str
    source: str
    token: str
    attribute_updates: int = 1
    attribute_id: bytes = bytes(16)
    update_type: int = 4  # ReplaceIfEquals
    new_value: int = 0
    expected_value: int = NO_ATTRIBUTE


class SegmentsMerged(Reply):
    """Acknowledgement: the merge is durable.

    ``write_offset`` is the target's length after it.
    """

    TYPE = 59
    LAYOUT = "qssq"
    request_id: int
    target: str
    source: str
    write_offset: int


class TruncateSegment(Message):
    """Request to delete all bytes of a segment before ``offset``."""

    TYPE = 38
    LAYOUT = "qsqs"
    request_id: int
    segment: str
    offset: int
    token: str


class SegmentTruncated(Reply):
    """Acknowledgement: the bytes were deleted."""

    TYPE = 39
    LAYOUT = "qs"
    request_id: int
    segment: str


class GetSegmentAttribute(Message):
    """Request for a numeric attribute of a segment."""

    TYPE = 34
    LAYOUT = "qsus"
    request_id: int
    segment: str
    attribute_id: bytes
    token: str


class SegmentAttribute(Reply):
    """Value of the attribute, or NO_ATTRIBUTE."""

    TYPE = 35
    LAYOUT = "qq"
    request_id: int
    value: int


class UpdateSegmentAttribute(Message):
    """Request to replace a numeric attribute of a segment if it has the expected value."""

    TYPE = 36
    LAYOUT = "qsuqqs"
    request_id: int
    segment: str
    attribute_id: bytes
    new_value: int
    expected_value: int
    token: str


class SegmentAttributeUpdated(Reply):
    """Answer: ``success`` is true if the attribute had the expected value and was replaced."""

    TYPE = 37
    LAYOUT = "q?"
    request_id: int
    success: bool


# ---- table segments: keys with values and versions ----


class ReadTable(Message):
    """Request for the values of keys in a table segment. The version of each key is ANY_VERSION."""

    TYPE = 78
    LAYOUT = "qssk"
    request_id: int
    segment: str
    token: str
    keys: tuple[WireKey, ...]


class TableRead(Reply):
    """Entries of the requested keys, in their order. A missing key has the version NO_ENTRY and an empty value."""

    TYPE = 79
    LAYOUT = "qst"
    request_id: int
    segment: str
    entries: tuple[WireEntry, ...]


class UpdateTableEntries(Message):
    """Request to set entries of a table segment, all or none.

    The version of each is the condition for it: the key's current version, NO_ENTRY or ANY_VERSION. Answer:
    TableEntriesUpdated, TableKeyBadVersion or TableKeyDoesNotExist.
    """

    TYPE = 74
    LAYOUT = "qsstq"
    request_id: int
    segment: str
    token: str
    entries: tuple[WireEntry, ...]
    length: int = ANY_LENGTH


class TableEntriesUpdated(Reply):
    """Acknowledgement: the entries are durable, and have these versions, in their order."""

    TYPE = 75
    LAYOUT = "qv"
    request_id: int
    versions: tuple[int, ...]


class RemoveTableKeys(Message):
    """Request to remove keys of a table segment, all or none. Conditions and refusals are those of an update."""

    TYPE = 76
    LAYOUT = "qsskq"
    request_id: int
    segment: str
    token: str
    keys: tuple[WireKey, ...]
    length: int = ANY_LENGTH


class TableKeysRemoved(Reply):
    """Acknowledgement: the keys were removed."""

    TYPE = 77
    LAYOUT = "qs"
    request_id: int
    segment: str


class TableKeyDoesNotExist(Reply):
    """Refusal: a key that must have a certain version does not exist. Nothing was changed."""

    TYPE = 81
    LAYOUT = "qss"
    request_id: int
    segment: str
    stack: str


class TableKeyBadVersion(Reply):
    """Refusal: a key has another version than required, or exists though it must not. Nothing was changed."""

    TYPE = 82
    LAYOUT = "qss"
    request_id: int
    segment: str
    stack: str


class ReadTableKeys(Message):
    """Request for about ``count`` keys of a table segment, in order, from ``start`` to ``end``, both included.

    ``continuation`` and ``prefix`` belong to tables with keys of any length, and are empty.
    """

    TYPE = 83
    LAYOUT = "qssibbbb"
    request_id: int
    segment: str
    token: str
    count: int
    continuation: bytes
    prefix: bytes
    start: bytes
    end: bytes


class TableKeysRead(Reply):
    """Keys with their versions, in order. It is empty only at the end of the range."""

    TYPE = 84
    LAYOUT = "qskb"
    request_id: int
    segment: str
    keys: tuple[WireKey, ...]
    continuation: bytes | memoryview


class ReadTableEntries(Message):
    """Request for about ``count`` entries of a table segment; otherwise as ReadTableKeys."""

    TYPE = 85
    LAYOUT = "qssibbbb"
    request_id: int
    segment: str
    token: str
    count: int
    continuation: bytes
    prefix: bytes
    start: bytes
    end: bytes


class TableEntriesRead(Reply):
    """Entries in the order of their keys. It is empty only at the end of the range."""

    TYPE = 86
    LAYOUT = "qstb"
    request_id: int
    segment: str
    entries: tuple[WireEntry, ...]
    continuation: bytes | memoryview


# ---- refusals of any request ----


class WrongHost(Reply):
    """Refusal: the segment is on another segment store."""

    TYPE = 50
    LAYOUT = "qsss"
    request_id: int
    segment: str
    correct_host: str
    stack: str


class SegmentIsSealed(Reply):
    """Refusal of an append to a sealed segment, or of a read at its end."""

    TYPE = 51
    LAYOUT = "qssq"
    request_id: int
    segment: str
    stack: str
    offset: int


class NoSuchSegment(Reply):
    """Refusal: the segment was deleted, was merged into another one, or never existed."""

    TYPE = 53
    LAYOUT = "qssq"
    request_id: int
    segment: str
    stack: str
    offset: int


class SegmentIsTruncated(Reply):
    """Refusal: the offset is before ``start_offset``, the first one that the segment still has."""

    TYPE = 56
    LAYOUT = "qsqsq"
    request_id: int
    segment: str
    start_offset: int
    stack: str
    offset: int


class OperationUnsupported(Reply):
    """Refusal: the server does not support the operation."""

    TYPE = 57
    LAYOUT = "qss"
    request_id: int
    operation: str
    stack: str


class AuthTokenCheckFailed(Reply):
    """Refusal of the delegation token.

    In the answer to a ReadSegment, the server puts the offset in place of the request id.
    """

    TYPE = 60
    LAYOUT = "qsi"
    request_id: int
    stack: str
    error_code: int


class ErrorMessage(Reply):
    """Any other failure of a request."""

    TYPE = 61
    LAYOUT = "qssi"
    request_id: int
    segment: str
    text: str
    error_code: int
