"""Event pointers: the place of one event, as text and bytes that the Java client reads.

The text is ``scope/stream/0.#epoch.0:offset-length`` (EventPointerImpl.toString). The bytes are a VersionedSerializer
frame with the same parts (EventPointerImpl.EventPointerSerializer).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import InvalidNameError, InvalidPointerError
from pravega_connector.wire.names import MAX_SEGMENT_PART, StreamName, parse_segment_name, segment_name, segment_number
from pravega_connector.wire.versioned import (
    COMPACT_INT_MAX,
    COMPACT_LONG_MAX,
    CompactReader,
    put_compact_int,
    put_compact_long,
    put_versioned,
)

_TEXT: Final = re.compile(r"(.+):([0-9]{1,19})-([0-9]{1,10})", re.ASCII)
_COLUMNS: Final = ("scope", "stream", "segment_id", "offset")


def _malformed(reason: str) -> InvalidPointerError:
    return InvalidPointerError(f"invalid event pointer: {reason}")


@dataclass(frozen=True, slots=True, order=True)
class EventPointer(HintedNames):
    """Place of one event, for :meth:`PravegaClient.fetch` (Java's ``EventPointer``).

    Raises InvalidPointerError for a place that no event can have.
    """

    stream: StreamName
    """Stream of the event."""
    segment_id: int
    """Segment id: epoch << 32 | number."""
    offset: int
    """Offset in the segment at which the event begins."""
    length: int = 0
    """Bytes in the segment: the event and 8 before it. 0 if it is not known."""

    def __post_init__(self) -> None:
        for name, value, most in (
            ("segment_id", self.segment_id, 2**63 - 1),
            ("offset", self.offset, COMPACT_LONG_MAX),
            ("length", self.length, COMPACT_INT_MAX),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise _malformed(f"{name} must be an int from 0 to {most}, not {value!r}")
        if segment_number(self.segment_id) > MAX_SEGMENT_PART:
            raise _malformed(f"segment id {self.segment_id} is out of range (stream {self.stream})")

    def __str__(self) -> str:
        return f"{segment_name(self.stream, self.segment_id)}:{self.offset}-{self.length}"

    @classmethod
    def of(cls, record: Mapping[str, Any] | Any) -> EventPointer:
        """Return the pointer to the event of a record with ``scope``, ``stream``, ``segment_id`` and ``offset``.

        A record is a dict or a Row of Spark: a row of Spark's source, a dead letter, or a row of
        :meth:`PravegaClient.read_columns`. The length is not known. Raises InvalidPointerError.
        """
        try:
            scope, stream, segment, offset = (record[name] for name in _COLUMNS)
        except (KeyError, ValueError, TypeError, IndexError):
            raise _malformed(f"the record needs the fields {', '.join(_COLUMNS)}: {str(record)[:100]}") from None
        try:
            return cls(StreamName(scope, stream), segment, offset)
        except InvalidNameError as error:
            raise _malformed(error.message) from None

    def to_text(self) -> str:
        """Return the text that Java's ``EventPointerImpl.fromString`` reads."""
        return str(self)

    @classmethod
    def from_text(cls, text: str) -> EventPointer:
        """Return the pointer of a text from :meth:`to_text` or Java's ``toString()``. Raises InvalidPointerError."""
        match = _TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise _malformed(f"{str(text)[:100]!r}; write scope/stream/0.#epoch.0:offset-length")
        return cls._parsed(match[1], int(match[2]), int(match[3]))

    def to_bytes(self) -> bytes:
        """Return the bytes that Java's ``EventPointer.fromBytes`` reads."""
        name = segment_name(self.stream, self.segment_id).encode()
        body = len(name).to_bytes(2, "big") + name + put_compact_long(self.offset) + put_compact_int(self.length)
        return put_versioned([body])

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> EventPointer:
        """Return the pointer of bytes from :meth:`to_bytes` or Java's ``toBytes()``. Raises InvalidPointerError."""
        reader = CompactReader(bytes(data))
        try:
            _, (body, *_) = reader.versioned()
            name, offset, length = body.utf(), body.compact_long(), body.compact_int()
        except ValueError as error:
            raise _malformed(str(error)) from None
        if reader.remaining:
            raise _malformed(f"{reader.remaining} bytes follow its end")
        return cls._parsed(name, offset, length)

    @classmethod
    def _parsed(cls, segment: str, offset: int, length: int) -> EventPointer:
        try:
            return cls(*parse_segment_name(segment), offset, length)
        except InvalidNameError as error:
            raise _malformed(error.message) from None
