"""Logs in streams of one segment: many clients write, and a write can require the latest revision.

(Java: ``RevisionedStreamClientImpl``, which can share a stream with this module.)
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, Protocol, TypeVar

from pravega_connector.core import arguments
from pravega_connector.core.connection import ProcessBound
from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.errors import (
    ConfigError,
    EventTooLargeError,
    InvalidNameError,
    SegmentTruncatedError,
    StreamSealedError,
)
from pravega_connector.reader.slices import SegmentSlice, data_loss, read_slice
from pravega_connector.single_segment.conditional_append import SegmentAppender
from pravega_connector.stores.segment_stores import SegmentCalls, SegmentStores
from pravega_connector.wire import EVENT_HEADER_SIZE, NO_ATTRIBUTE, StreamName, parse_segment_name, segment_name
from pravega_serde.errors import DeserializationError

T = TypeVar("T")
# Java's SegmentAttribute.RevisionStreamClientMark: the attribute id of a segment's mark.
_MARK: Final = uuid.UUID("7df9a874-246c-c9d6-9397-cdd19ead68c5").bytes


@dataclass(frozen=True, slots=True, order=True)
class Revision:
    """Position in a revisioned stream: after one entry, before the next. Later revisions of a stream are greater.

    ``str()`` and :meth:`parse` use the text form of Java's ``RevisionImpl``.
    """

    stream: StreamName
    """The stream."""
    segment_id: int
    """Its only segment."""
    offset: int
    """Offset in the segment at which the previous entry ends and the next begins."""
    update: int = 0
    """Number of the update in an entry with several updates; 0 except in a state synchronizer."""

    def __str__(self) -> str:
        return f"{segment_name(self.stream, self.segment_id)}:{self.offset}:{self.update}"

    @classmethod
    def parse(cls, text: str) -> Revision:
        """Parse ``scope/stream/0.#epoch.0:offset:update``. Raises ConfigError for any other text."""
        segment, *numbers = text.split(":")
        try:
            offset, update = map(int, numbers)
            return cls(*parse_segment_name(segment), offset, update)
        except (ValueError, InvalidNameError):
            known = "write it as scope/stream/0.#epoch.0:offset:0"
            raise ConfigError(f"invalid revision {text[:200]!r}: {known}") from None


class SupportsBoth(Protocol[T]):
    """Methods of a serializer that a revisioned stream uses."""

    def serialize(self, value: T, /) -> bytes:
        """Return the bytes of a value."""
        ...

    def deserialize(self, data: bytes, /) -> T:
        """Return the value of bytes."""
        ...


class RevisionedStreamClient(ProcessBound, Generic[T]):
    """Reader and writer of a stream of one segment. Each entry has a revision. Thread safe.

    The stream must exist and have a fixed number of segments: one. Do not set a retention policy for it.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, serializer: SupportsBoth[T]) -> None:
        """Open the stream.

        Raises StreamNotFoundError, StreamSealedError, ConfigError for a stream of several segments.
        """
        segments = stores.controller.current_segments(stream)
        if not segments:
            raise StreamSealedError.of(stream)
        if len(segments) > 1:
            raise ConfigError(
                f"stream {stream} has {len(segments)} segments; revisions require a stream with one segment"
            )
        self.stream = stream
        self._id = segments[0].id
        self._stores, self._serializer = stores, serializer
        self._calls = SegmentCalls(stores, stream, self._id)
        self._appender = SegmentAppender(stores, stream, self._id)

    # ---------------------------------------------------------------- reading

    def oldest_revision(self) -> Revision:
        """Return the revision before the first entry that the stream still has."""
        return self._revision(self._calls.info().start_offset)

    def latest_revision(self) -> Revision:
        """Return the revision after the last entry."""
        return self._revision(self._calls.info().write_offset)

    def read_from(self, start: Revision) -> Iterator[tuple[Revision, T]]:
        """Return the entries after ``start`` up to the present end, each with the revision after it.

        Raises DataLossError at once if entries after ``start`` were truncated. Raises DeserializationError during the
        iteration.
        """
        return self._read(start, None)

    def read_range(self, start: Revision, end: Revision) -> Iterator[tuple[Revision, T]]:
        """Return the entries between two revisions, each with the revision after it.

        Raises the errors of :meth:`read_from`.
        """
        return self._read(start, end)

    def entry_after(self, revision: Revision) -> tuple[Revision, T] | None:
        """Return the entry after ``revision`` with the revision after it; None if ``revision`` is the latest.

        After a refused conditional write, this is the entry that was written first. Raises DataLossError.
        """
        return next(iter(self._read(revision, None)), None)

    # ---------------------------------------------------------------- writing

    def write_conditionally(self, latest: Revision, value: T) -> Revision | None:
        """Write an entry if ``latest`` is the latest revision. Return its revision, or None if another was first.

        The entry is durable on return. A lost connection or a late reply is resolved. None means that the write was
        certainly refused and that you can read the entry which was first (:meth:`entry_after`).

        Raises OutcomeUnknownError if this takes longer than the client's timeout: the entry may exist, may appear
        later, or never. Then write the same value at the same revision again, with this object. The call continues
        until the outcome is known. A read that does not show the entry proves nothing. Raises EventTooLargeError,
        StreamSealedError.
        """
        return self._write(latest, self._serialized(value))

    def write_once(self, latest: Revision, value: T) -> Revision | None:
        """Write an entry as :meth:`write_conditionally`, with bytes that no other writer writes.

        An example is bytes with a random number. If an entry of the same bytes follows ``latest``, it counts as this
        one, regardless of the process or object that wrote it. So after an OutcomeUnknownError, any process with the
        value and the revision can determine the outcome.
        """
        event = self._serialized(value)
        if (written := self._write(latest, event)) is not None:
            return written
        end, found = next(self._frames(latest.offset, self._calls.info().write_offset))
        return self._revision(end) if found == event else None

    def write_unconditionally(self, value: T) -> None:
        """Write an entry after the last one. It is durable on return.

        Raises OutcomeUnknownError if the entry may appear later or never. Raises EventTooLargeError, StreamSealedError.
        """
        self._appender.append(self._serialized(value))

    def truncate_to_revision(self, revision: Revision) -> None:
        """Delete all entries before ``revision``. If they were deleted before, do nothing.

        Raises ConfigError for a revision that does not exist yet.
        """
        end = self._calls.info().write_offset
        if self._own(revision).offset > end:
            raise ConfigError(f"cannot truncate to revision {revision}: the stream ends at offset {end}")
        self._calls.truncate(revision.offset)

    # ---------------------------------------------------------------- the mark

    def mark(self) -> Revision | None:
        """Return the marked revision, where new readers start; None without a mark."""
        value = self._calls.attribute(_MARK)
        return None if value == NO_ATTRIBUTE else self._revision(value)

    def compare_and_set_mark(self, expected: Revision | None, mark: Revision | None) -> bool:
        """Set the mark to ``mark`` if it is ``expected``. Return True if it is ``mark`` now.

        None means no mark.
        """
        return self._calls.replace_attribute(_MARK, self._mark_value(expected), self._mark_value(mark))

    def close(self) -> None:
        """Close the connection that writes."""
        self._appender.close()

    def __enter__(self) -> RevisionedStreamClient[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- inside

    def _revision(self, offset: int) -> Revision:
        return Revision(self.stream, self._id, offset)

    def _own(self, revision: Revision) -> Revision:
        arguments.instance("revision", revision, Revision, "the result of a call, Revision.parse(text)", optional=False)
        if (revision.stream, revision.segment_id) != (self.stream, self._id):
            raise ConfigError(
                f"revision {revision} is not of stream {self.stream}, or is of a deleted stream with the same name"
            )
        return revision

    def _mark_value(self, revision: Revision | None) -> int:
        return NO_ATTRIBUTE if revision is None else self._own(revision).offset

    def _serialized(self, value: T) -> bytes:
        event = bytes(self._serializer.serialize(value))
        if len(event) > MAX_EVENT_SIZE:
            raise EventTooLargeError(
                f"an entry of {len(event)} bytes is over the limit of {MAX_EVENT_SIZE} bytes for stream {self.stream}"
            )
        return event

    def _write(self, latest: Revision, event: bytes) -> Revision | None:
        offset = self._own(latest).offset
        if not self._appender.append_at(event, offset):
            return None
        return self._revision(offset + EVENT_HEADER_SIZE + len(event))

    def _read(self, start: Revision, end: Revision | None) -> Iterator[tuple[Revision, T]]:
        info = self._calls.info()
        first = self._own(start).offset
        last = info.write_offset if end is None else self._own(end).offset
        if first < info.start_offset:
            error = SegmentTruncatedError("truncated", start_offset=info.start_offset)
            raise data_loss(self.stream, self._id, first, error)
        if not first <= last <= info.write_offset:
            raise ConfigError(
                f"cannot read from offset {first} to {last} of stream {self.stream}: it ends at {info.write_offset}"
            )
        return self._values(first, last)

    def _values(self, first: int, last: int) -> Iterator[tuple[Revision, T]]:
        begin = first
        for end, event in self._frames(first, last):
            try:
                value = self._serializer.deserialize(event)
            except DeserializationError as error:
                place = {"scope": self.stream.scope, "stream": self.stream.stream}
                raise error.at(**place, segment_id=self._id, offset=begin) from error
            begin = end
            yield self._revision(end), value

    def _frames(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """Yield the entries in a range, each with the offset after it."""
        if first == last:
            return
        piece = SegmentSlice(self.stream, self._id, first, last)
        with closing(read_slice(self._stores, piece)) as columns:
            for column in columns:
                for offset, event in zip(column.offsets.tolist(), column.events.to_pylist(), strict=True):
                    yield offset + EVENT_HEADER_SIZE + len(event), event
