"""Requests for a segment as a whole and for its bytes, attributes and keys, each followed by its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.wire._message import Message

__all__ = [
    "NO_ATTRIBUTE",
    "CreateTransientSegment",
    "GetSegmentAttribute",
    "GetStreamSegmentInfo",
    "MergeSegments",
    "ReadSegment",
    "ReadTable",
    "SegmentAttribute",
    "SegmentAttributeUpdated",
    "SegmentCreated",
    "SegmentRead",
    "SegmentTruncated",
    "SegmentsMerged",
    "StreamSegmentInfo",
    "TableRead",
    "TruncateSegment",
    "UpdateSegmentAttribute",
]

# WireCommands.NULL_ATTRIBUTE_VALUE: a segment does not have such an attribute; and what AppendSetup carries for a
# writer id that has never written.
NO_ATTRIBUTE: Final = -(2**63)


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
class CreateTransientSegment(Message):
    """Asks for a segment that lives as long as this connection, to be merged into ``parent``."""

    TYPE = 40
    LAYOUT = "quss"
    request_id: int
    writer_id: bytes
    parent: str
    token: str


@dataclass(frozen=True, slots=True)
class SegmentCreated(Message):
    """Answer to CreateTransientSegment: the name that the server chose."""

    TYPE = 21
    LAYOUT = "qs"
    request_id: int
    segment: str


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
