"""Reads of single events by their pointers, many at once.

Pointers that are near each other are read as one range. The ranges are read in parallel, through the connections that
the client keeps to each segment store. (Java: ``EventStreamReader.fetchEvent``, one event at a time.)
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pravega_connector import metrics
from pravega_connector.core import arguments
from pravega_connector.core.io import side_by_side
from pravega_connector.errors import DataLossError, InvalidPointerError, SegmentTruncatedError
from pravega_connector.reader.slices import SegmentSlice, data_loss, read_chunks
from pravega_connector.stores.segment_stores import SegmentInfo, SegmentStores
from pravega_connector.wire import EVENT_HEADER_SIZE, MAX_READABLE_EVENT, READ_CHUNK, EventPointer, StreamName
from pravega_serde.errors import DeserializationError

#: Bytes to read for an event of unknown length. The rest of a longer event is read after that.
_GUESS: Final = 4096
#: Bytes between two events that are read rather than skipped with another request.
_GAP: Final = 16_384
#: Ranges to read in parallel: the number of connections that a client keeps to a segment store.
_AT_ONCE: Final = 8
_HEADER: Final = struct.Struct(">q")

Places = Sequence[tuple[int, EventPointer]]


@dataclass(slots=True)
class _Range:
    """Bytes [start, end) of a segment that was ``limit`` bytes long, and the pointers into it."""

    stream: StreamName
    segment_id: int
    start: int
    end: int
    limit: int
    places: list[tuple[int, EventPointer]] = field(default_factory=list)

    def piece(self, start: int, end: int) -> SegmentSlice:
        return SegmentSlice(self.stream, self.segment_id, start, end)


def fetch_events(
    stores: SegmentStores,
    pointers: Iterable[EventPointer],
    deserialize: Callable[[bytes], Any] | None,
    *,
    skip_lost: bool,
) -> list[Any]:
    """Return the events at the pointers, in their order. Without ``deserialize``, they are bytes.

    An event that was truncated or deleted raises DataLossError, or is None with ``skip_lost``. Raises
    InvalidPointerError for a place at which no event begins, DeserializationError.
    """
    wanted = arguments.listed("pointers", pointers)
    for pointer in wanted:
        if not isinstance(pointer, EventPointer):
            raise InvalidPointerError(
                f"an event pointer must be an EventPointer, not a {type(pointer).__name__}: use "
                "EventPointer.from_text(text), EventPointer.from_bytes(data) or EventPointer.of(row)"
            )
    events = _events(stores, wanted, skip_lost=skip_lost)
    if deserialize is None:
        return events
    pairs = zip(wanted, events, strict=True)
    return [None if event is None else _value(pointer, event, deserialize) for pointer, event in pairs]


def _value(pointer: EventPointer, event: bytes, deserialize: Callable[[bytes], Any]) -> Any:
    try:
        return deserialize(event)
    except DeserializationError as error:
        metrics.BAD_RECORDS.add(1, "client", str(pointer.stream))
        stream = pointer.stream
        raise error.at(
            scope=stream.scope, stream=stream.stream, segment_id=pointer.segment_id, offset=pointer.offset
        ) from error


def _events(stores: SegmentStores, pointers: Sequence[EventPointer], *, skip_lost: bool) -> list[bytes | None]:
    found: list[bytes | None] = [None] * len(pointers)
    places: Places = list(enumerate(pointers))
    for last in (False, True):
        lost = side_by_side(
            lambda part, last=last: _read(stores, part, found, retry=skip_lost and not last),  # type: ignore[misc]
            _ranges(stores, places, skip_lost=skip_lost),
            _AT_ONCE,
        )
        # Truncation has passed the start of these ranges since their segments were checked.
        places = [place for part in lost for place in part]
        if not places:
            break
    return found


def _ranges(stores: SegmentStores, places: Places, *, skip_lost: bool) -> Iterator[_Range]:
    """Yield the ranges to read for pointers that the segments still have. Raises DataLossError, InvalidPointerError."""
    by_segment: defaultdict[StreamName, defaultdict[int, list[tuple[int, EventPointer]]]]
    by_segment = defaultdict(lambda: defaultdict(list))
    for place, pointer in places:
        by_segment[pointer.stream][pointer.segment_id].append((place, pointer))
    ranges: list[_Range] = []
    for stream, segments in by_segment.items():
        infos = stores.segment_infos(stream, segments)
        for segment_id, wanted in segments.items():
            there = [each for each in wanted if _is_there(each[1], infos[segment_id], skip_lost=skip_lost)]
            ranges += _joined(sorted(there, key=lambda each: each[1].offset), infos[segment_id].write_offset)
    return iter(ranges)


def _is_there(pointer: EventPointer, info: SegmentInfo, *, skip_lost: bool) -> bool:
    """Return True if the segment has the event, False if it was lost and ``skip_lost`` is set."""
    if not info.exists or pointer.offset < info.start_offset:
        if skip_lost:
            return False
        truncated = None if not info.exists else SegmentTruncatedError("truncated", start_offset=info.start_offset)
        raise data_loss(pointer.stream, pointer.segment_id, pointer.offset, truncated)
    if pointer.offset + max(pointer.length, EVENT_HEADER_SIZE) > info.write_offset:
        raise InvalidPointerError.of(pointer, f"the segment ends at offset {info.write_offset}")
    return True


def _joined(places: Places, limit: int) -> Iterator[_Range]:
    """Yield the ranges of pointers into one segment, which are in the order of their offsets."""
    current: _Range | None = None
    for place, pointer in places:
        end = min(pointer.offset + (pointer.length or _GUESS), limit)
        if current is None or pointer.offset > current.end + _GAP or end > current.start + READ_CHUNK:
            if current is not None:
                yield current
            current = _Range(pointer.stream, pointer.segment_id, pointer.offset, end, limit)
        current.end = max(current.end, end)
        current.places.append((place, pointer))
    if current is not None:
        yield current


def _read(stores: SegmentStores, part: _Range, found: list[bytes | None], *, retry: bool) -> Places:
    """Read a range, and put its events into ``found``. Return the places to try again, after data loss."""
    try:
        data = _bytes(stores, part.piece(part.start, part.end))
        for place, pointer in part.places:
            found[place] = _event(stores, part, data, pointer)
    except DataLossError:
        if not retry:
            raise
        return part.places
    metrics.CONSUMED_EVENTS.add(len(part.places), str(part.stream))
    return []


def _event(stores: SegmentStores, part: _Range, data: bytes, pointer: EventPointer) -> bytes:
    """Return one event of a range. Raises InvalidPointerError if none begins at the pointer."""
    begin = pointer.offset - part.start + EVENT_HEADER_SIZE
    (length,) = _HEADER.unpack_from(data, begin - EVENT_HEADER_SIZE)
    end = pointer.offset + EVENT_HEADER_SIZE + length
    # The type of an event is 0, so other bytes give a negative or a large number.
    if not 0 <= length <= MAX_READABLE_EVENT or end > part.limit:
        raise InvalidPointerError.of(pointer, "no event begins there")
    if pointer.length not in (0, EVENT_HEADER_SIZE + length):
        raise InvalidPointerError.of(pointer, f"the event there has a length of {EVENT_HEADER_SIZE + length}")
    if end <= part.end:
        return data[begin : begin + length]
    return data[begin:] + _bytes(stores, part.piece(part.end, end))


def _bytes(stores: SegmentStores, piece: SegmentSlice) -> bytes:
    data = b"".join(map(bytes, read_chunks(stores, piece)))
    metrics.CONSUMED_BYTES.add(len(data), str(piece.stream))
    return data
