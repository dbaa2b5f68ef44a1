"""Messages that write events, in one step or under a condition, and their answers.

AppendBlock has no class: it is two parts, which go before and after the events (:func:`encode_append`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from connector.wire._message import Message

__all__ = [
    "AppendSetup",
    "ConditionalAppend",
    "ConditionalBlockEnd",
    "ConditionalCheckFailed",
    "DataAppended",
    "InvalidEventNumber",
    "SetupAppend",
    "encode_append",
]

_APPEND_BLOCK: Final = 3
_APPEND_BLOCK_END: Final = 4
_BLOCK_HEADER: Final = struct.Struct(">ii16s")
_BLOCK_END: Final = struct.Struct(">ii16siiiqq")


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
class InvalidEventNumber(Message):
    """The writer id has moved on; the server closes the connection after this."""

    TYPE = 55
    LAYOUT = "uqsq"
    writer_id: bytes
    request_id: int
    stack: str
    event_number: int


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
