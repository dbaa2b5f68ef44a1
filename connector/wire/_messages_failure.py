"""Answers that refuse a request, whatever it was."""

from __future__ import annotations

from dataclasses import dataclass

from connector.wire._message import Message

__all__ = [
    "AuthTokenCheckFailed",
    "ErrorMessage",
    "NoSuchSegment",
    "OperationUnsupported",
    "SegmentIsSealed",
    "SegmentIsTruncated",
    "WrongHost",
]


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
