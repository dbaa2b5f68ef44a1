"""Streams of one segment as logs: many may write, and each can say what it has seen when it does.

(Java: ``RevisionedStreamClientImpl``, which can share a stream with this.)
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, Protocol, TypeVar

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
# Java's SegmentAttribute.RevisionStreamClientMark: the id under which a segment keeps the mark.
_MARK: Final = uuid.UUID("7df9a874-246c-c9d6-9397-cdd19ead68c5").bytes


@dataclass(frozen=True, slots=True, order=True)
class Revision:
    """A place in a revisioned stream: after one entry, before the next. Later ones of a stream are greater.

    ``str()`` and :meth:`parse` are those of Java's ``RevisionImpl``.
    """

    stream: StreamName
    """The stream."""
    segment_id: int
    """Its only segment."""
    offset: int
    """Offset in the segment at which the previous entry ends and the next begins."""
    update: int = 0
    """Number of the update inside an entry that holds several; only a state synchronizer has others than 0."""

    def __str__(self) -> str:
        return f"{segment_name(self.stream, self.segment_id)}:{self.offset}:{self.update}"

    @classmethod
    def parse(cls, text: str) -> Revision:
        """The revision called ``scope/stream/0.#epoch.0:offset:update``; ConfigError for anything else."""
        segment, *numbers = text.split(":")
        try:
            offset, update = map(int, numbers)
            return cls(*parse_segment_name(segment), offset, update)
        except (ValueError, InvalidNameError):
            known = "write it as scope/stream/0.#epoch.0:offset:0"
            raise ConfigError(f"invalid revision {text[:200]!r}: {known}") from None


class SupportsBoth(Protocol[T]):
    """Serializer as far as a revisioned stream needs one."""

    def serialize(self, value: T, /) -> bytes:
        """Bytes of a value."""
        ...

    def deserialize(self, data: bytes, /) -> T:
        """The value of bytes."""
        ...


class RevisionedStreamClient(Generic[T]):
    """Reads and writes the entries of a stream of one segment, with the revision of each. Thread safe.

    The stream must exist and have a fixed number of segments: one. Do not give it a retention policy.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, serializer: SupportsBoth[T]) -> None:
        """Raises StreamNotFoundError, StreamSealedError, ConfigError for a stream of several segments."""
        segments = stores.controller.current_segments(stream)
        if not segments:
            raise StreamSealedError.of(stream)
        if len(segments) > 1:
            raise ConfigError(f"stream {stream} has {len(segments)} segments; revisions need a stream of one")
        self.stream = stream
        self._id = segments[0].id
        self._stores, self._serializer = stores, serializer
        self._calls = SegmentCalls(stores, stream, self._id)
        self._appender = SegmentAppender(stores, stream, self._id)

    # ---------------------------------------------------------------- reading

    def oldest_revision(self) -> Revision:
        """The revision before the first entry that the stream still has."""
        return self._revision(self._calls.info().start_offset)

    def latest_revision(self) -> Revision:
        """The revision after the last entry."""
        return self._revision(self._calls.info().write_offset)

    def read_from(self, start: Revision) -> Iterator[tuple[Revision, T]]:
        """The entries after a revision, up to the present end, each with the revision after it.

        Raises DataLossError at once when entries after ``start`` were truncated, DeserializationError on the way.
        """
        return self._read(start, None)

    def read_range(self, start: Revision, end: Revision) -> Iterator[tuple[Revision, T]]:
        """The entries between two revisions, each with the revision after it; raises as :meth:`read_from`."""
        return self._read(start, end)

    def entry_after(self, revision: Revision) -> tuple[Revision, T] | None:
        """The entry that follows a revision, with the revision after it; None if that is the latest.

        When a conditional write was refused, this is the entry that was there before it. Raises DataLossError.
        """
        return next(iter(self._read(revision, None)), None)

    # ---------------------------------------------------------------- writing

    def write_conditionally(self, latest: Revision, value: T) -> Revision | None:
        """Write an entry if ``latest`` is the latest revision; the new one, or None if others came first.

        Durable on return. A lost connection or a late answer is settled: None means refused for certain, and that the
        entry which was first can be read (:meth:`entry_after`). Raises OutcomeUnknownError when that takes longer than
        the client's timeout: the entry may be there, may come yet, or never will. Then write the same value at the same
        revision again, with this object: it goes on until the outcome is known. A reading that does not show the entry
        proves nothing. Raises EventTooLargeError, StreamSealedError.
        """
        return self._write(latest, self._serialized(value))

    def write_once(self, latest: Revision, value: T) -> Revision | None:
        """Like :meth:`write_conditionally`, for bytes that no other writer writes, such as those with a random number.

        An entry of the same bytes that follows ``latest`` is taken for this one, whichever process or object wrote it.
        So after an OutcomeUnknownError any process with the value and the revision can find out the outcome.
        """
        event = self._serialized(value)
        if (written := self._write(latest, event)) is not None:
            return written
        end, found = next(self._frames(latest.offset, self._calls.info().write_offset))
        return self._revision(end) if found == event else None

    def write_unconditionally(self, value: T) -> None:
        """Write an entry after whatever is there; durable on return.

        Raises OutcomeUnknownError when it may come yet or never; EventTooLargeError, StreamSealedError.
        """
        self._appender.append(self._serialized(value))

    def truncate_to_revision(self, revision: Revision) -> None:
        """Drop all entries before a revision; done at once if they were dropped before.

        Raises ConfigError for a revision that is not there yet.
        """
        end = self._calls.info().write_offset
        if self._own(revision).offset > end:
            raise ConfigError(f"cannot truncate to revision {revision}: the stream ends at offset {end}")
        self._calls.truncate(revision.offset)

    # ---------------------------------------------------------------- the mark

    def mark(self) -> Revision | None:
        """Marked revision, where new readers begin; None without a mark."""
        value = self._calls.attribute(_MARK)
        return None if value == NO_ATTRIBUTE else self._revision(value)

    def compare_and_set_mark(self, expected: Revision | None, mark: Revision | None) -> bool:
        """Mark another revision if ``expected`` is the one that is marked; whether ``mark`` is marked now.

        None stands for no mark.
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
        if (revision.stream, revision.segment_id) != (self.stream, self._id):
            raise ConfigError(f"revision {revision} is not of stream {self.stream}, or of a deleted one of its name")
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
                f"there is nothing to read from offset {first} to {last} of stream {self.stream}: "
                f"it ends at {info.write_offset}"
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
        """The entries in a range, each with the offset after it."""
        if first == last:
            return
        piece = SegmentSlice(self.stream, self._id, first, last)
        with closing(read_slice(self._stores, piece)) as columns:
            for column in columns:
                for offset, event in zip(column.offsets.tolist(), column.events.to_pylist(), strict=True):
                    yield offset + EVENT_HEADER_SIZE + len(event), event
