"""Watermarks of a stream: how to read them, the time window of a position, and the position of a time.

A writer that notes a time promises two things. All events that it has written are of that time or earlier. All events
that it will write are of that time or later. So no event after a watermark's cut is earlier than its ``low``, as far as
the writers keep this promise. Its ``high`` is the latest noted time. A writer that continued to write after its own
note can have later events before the cut, because the cut is after the positions of all writers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector.core import io
from pravega_connector.errors import StreamNotFoundError, TimeUnknownError
from pravega_connector.reader.slices import SegmentSlice, read_slice
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import (
    EVENT_HEADER_SIZE,
    SegmentRange,
    StreamCut,
    StreamName,
    Watermark,
    decode_watermark,
    mark_stream,
    segment_epoch,
)
from pravega_serde import after_fork
from pravega_serde.columnar import number_column, select
from pravega_serde.errors import DeserializationError

_NEVER: Final = 2**63 - 1  # offset of a watermark that is after the whole segment


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Event times around a position, in milliseconds; like Java's ``EventStreamReader.getCurrentTimeWindow``."""

    low: int | None
    """All writers had noted this time or a later one before this position; None before the first watermark."""
    high: int | None
    """The latest time that any writer had noted at the next watermark; None after the last one."""


@dataclass(frozen=True, slots=True, eq=False)
class SegmentTimes:
    """Watermarks along a part of a segment, as int64 arrays of equal length."""

    places: npt.NDArray[np.int64]
    """Offsets of the watermarks in the segment, ascending."""
    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]

    def low(self, offsets: npt.NDArray[np.int64]) -> pa.Int64Array:
        """Return the lower bound in milliseconds for events at ``offsets``; null before the first watermark."""
        return _pick(self.lows, self.places.searchsorted(offsets, side="right") - 1)

    def high(self, offsets: npt.NDArray[np.int64]) -> pa.Int64Array:
        """Return the upper bound in milliseconds for events at ``offsets``; null after the last watermark."""
        return _pick(self.highs, self.places.searchsorted(offsets, side="right"))


def _pick(values: npt.NDArray[np.int64], rows: npt.NDArray[np.intp]) -> pa.Int64Array:
    known = (rows >= 0) & (rows < len(values))
    return select(number_column(values), rows, valid=known)


class WatermarkLog:
    """Cache of the watermarks of one stream. Thread safe.

    A stream has no watermarks until one of its writers notes a time. They are kept as long as the stream.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName) -> None:
        self.stream = stream
        self._stores, self._source = stores, mark_stream(stream)
        self._lock = io.lock()
        self._segment: int | None = None
        self._end = 0
        self._marks: list[Watermark] = []
        self._ends: list[int] = []
        self._ranges: dict[int, SegmentRange] = {}
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = after_fork.inherited(f"watermarks of stream {self.stream}")  # another thread may have been reading

    def read(self) -> list[Watermark]:
        """Return all watermarks up to now, oldest first. Raises StreamNotFoundError, DeserializationError."""
        with self._lock:
            self._advance(None)
            return list(self._marks)

    def end(self) -> int:
        """Return the current end of the watermarks, for :meth:`read_until`. Reads no watermark."""
        with self._lock:
            return self._bounds()[1]

    def read_until(self, end: int) -> list[Watermark]:
        """Return the watermarks that existed when :meth:`end` returned ``end``."""
        with self._lock:
            if self._end < end:
                self._advance(end)
            return self._marks[: bisect_right(self._ends, end)]

    def window(self, position: StreamCut, marks: Sequence[Watermark]) -> TimeWindow:
        """Return the time window at a position, according to ``marks``."""
        passed = bisect_left(marks, True, key=lambda mark: self._compare(position, mark)[0])
        low = marks[passed - 1].low if passed else None
        high = None
        for mark in marks[passed:]:
            high = mark.high
            if not self._compare(position, mark)[1]:
                break
        return TimeWindow(low, high)

    def along(self, piece: SegmentSlice, marks: Sequence[Watermark]) -> SegmentTimes:
        """Return the event-time bounds of a slice, from the watermarks that concern its events."""

        def place(mark: Watermark) -> int:
            return self._place(mark, piece.segment_id)[0]

        first = max(0, bisect_right(marks, piece.start, key=place) - 1)
        inside = list(takewhile(lambda mark: place(mark) < piece.end, marks[first:]))
        wanted = marks[first : first + len(inside) + 1]  # with the one after the slice, for the upper bound
        places = np.array([place(mark) for mark in wanted], np.int64)
        lows, highs = (np.array([getattr(mark, name) for mark in wanted], np.int64) for name in ("low", "high"))
        return SegmentTimes(np.maximum.accumulate(places), lows, highs)

    def offset(self, mark: Watermark, segment_id: int) -> int:
        """Return the offset of a watermark in a segment.

        It is 0 for a segment that begins after the watermark, and 2**63 - 1 for a segment that ends before it.
        """
        return self._place(mark, segment_id)[0]

    # ---------------------------------------------------------------- inside

    def _compare(self, position: StreamCut, mark: Watermark) -> tuple[bool, bool]:
        """Return two flags: ``position`` is before the watermark in some segment, and after it in some segment."""
        before = behind = False
        for segment_id, offset in position.positions.items():
            place, certain = self._place(mark, segment_id)
            at = max(offset, 0)
            before |= at < place
            behind |= at > place or not certain or (place == 0 and segment_id not in mark.cut.positions)
        return before, behind

    def _place(self, mark: Watermark, segment_id: int) -> tuple[int, bool]:
        """Return the offset of a watermark in a segment, and True if it applies to all its routing keys.

        The offset is 0 for a segment that begins after the watermark, and _NEVER for a segment that ends before it.
        """
        place = mark.cut.positions.get(segment_id)
        if place is not None:
            return place, True
        own = self._range(segment_id)
        later = [r.id > segment_id for r in mark.ranges if r.low < own.high and own.low < r.high]
        return (_NEVER, all(later)) if any(later) else (0, True)

    def _range(self, segment_id: int) -> SegmentRange:
        if segment_id not in self._ranges:
            segments = self._stores.controller.epoch_segments(self.stream, segment_epoch(segment_id))
            self._ranges |= {segment.id: segment for segment in segments}
        return self._ranges[segment_id]

    def _bounds(self) -> tuple[int, int]:
        """Return the segment of the watermarks and its length. Raises StreamNotFoundError."""
        if self._segment is not None:
            info = self._stores.segment_infos(self._source, [self._segment])[self._segment]
            if info.exists:
                return self._segment, info.write_offset
        # The first time, or the stream was deleted and created again.
        segment_id = self._only_segment()
        info = self._stores.segment_infos(self._source, [segment_id])[segment_id]
        self._segment, self._end = segment_id, info.start_offset
        self._marks, self._ends, self._ranges = [], [], {}
        return segment_id, info.write_offset

    def _only_segment(self) -> int:
        # Unlike others, this call requires permission on the stream itself, not on the stream of its watermarks.
        try:
            [segment] = self._stores.controller.current_segments(self._source)
        except StreamNotFoundError:
            raise StreamNotFoundError(
                f"stream {self.stream} does not exist, or has no stream of watermarks ({self._source}): check its name"
            ) from None
        return segment.id

    def _advance(self, end: int | None) -> None:
        segment_id, length = self._bounds()
        end = length if end is None else min(end, length)
        if end <= self._end:
            return
        with closing(read_slice(self._stores, SegmentSlice(self._source, segment_id, self._end, end))) as columns:
            for column in columns:
                for offset, data in zip(column.offsets.tolist(), column.events.to_pylist(), strict=True):
                    self._take(offset, data, segment_id)

    def _take(self, offset: int, data: bytes, segment_id: int) -> None:
        try:
            mark = decode_watermark(data, self.stream)
        except DeserializationError as error:
            scope, stream = self._source.scope, self._source.stream
            raise error.at(scope=scope, stream=stream, segment_id=segment_id, offset=offset) from None
        self._end = offset + EVENT_HEADER_SIZE + len(data)
        self._marks.append(mark)
        self._ends.append(self._end)
        self._ranges |= {r.id: r for r in mark.ranges}


def cut_at(stores: SegmentStores, log: WatermarkLog, millis: int, *, end: bool) -> StreamCut:
    """Return the cut for a time; see :meth:`PravegaClient.cut_at`."""
    marks = log.read()
    if not marks:
        raise TimeUnknownError(
            f"no position for time {_text(millis)} in stream {log.stream}: it has no watermarks, because no writer "
            "has called note_time; use 'earliest' or a stream cut, or have the writers note event time (a watermark "
            "follows after about 10 s)"
        )
    head = stores.controller.head_cut(log.stream)
    if end:
        return _later(stores, head, _end(log, marks, millis))
    mark = _last_before(marks, millis)
    return head if mark is None or not _is_kept(stores, mark.cut) else mark.cut


def _end(log: WatermarkLog, marks: Sequence[Watermark], millis: int) -> StreamCut:
    for mark in marks:
        if mark.low >= millis:
            return mark.cut
    raise TimeUnknownError(
        f"no end position for time {_text(millis)} in stream {log.stream} yet: its writers have reached "
        f"{_text(marks[-1].low)}; end at an earlier time or at 'latest', or wait until the writers have noted that "
        "time"
    )


def _last_before(marks: Sequence[Watermark], millis: int) -> Watermark | None:
    """Return the last watermark with only earlier events before its cut.

    An earlier ``high`` of the watermark itself is not enough. Its cut is after the positions of all writers. Between
    the cut and the position where a writer noted its time, that writer may have written later events. The next time
    that it notes is their upper bound. A writer takes part in a watermark if it has noted a later time than the ``low``
    of the previous one. If that ``low`` is at least the ``high`` of an older watermark, the writer has noted a time
    since then.
    """
    earlier = [place for place, mark in enumerate(marks) if mark.high < millis]
    if not earlier or not earlier[-1]:
        return None
    newest = earlier[-1]
    found = [mark for mark in marks[:newest] if mark.high <= marks[newest - 1].low]
    return found[-1] if found else None


def _is_kept(stores: SegmentStores, cut: StreamCut) -> bool:
    """True if all events after a cut are still in the stream."""
    infos = stores.segment_infos(cut.stream, cut.positions)
    return all(infos[i].exists and at >= infos[i].start_offset for i, at in cut.positions.items())


def _later(stores: SegmentStores, head: StreamCut, cut: StreamCut) -> StreamCut:
    """Return the cut, or the head if no event before the cut is left."""
    infos = stores.segment_infos(cut.stream, cut.positions)
    return cut if any(infos[i].exists and at > infos[i].start_offset for i, at in cut.positions.items()) else head


def _text(millis: int) -> str:
    try:
        return f"{(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=millis)).isoformat()} ({millis} ms)"
    except OverflowError:  # event time may be in any unit
        return str(millis)
