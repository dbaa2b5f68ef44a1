"""Boundaries between events inside segments, to divide a segment among batches, tasks or splits.

The server does not report event boundaries. But every length that a segment has had is the end of an event. So is every
position that a walk from one event to the next has passed. Known boundaries are kept (:class:`Boundaries`). So a walk
begins near its goal, and nothing is read twice to find boundaries. Of large events only the headers are read.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pravega_connector.reader.slices import SegmentSlice, read_chunks
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import EVENT_HEADER_SIZE, READ_CHUNK, StreamName, segment_name, walk_frames

SegmentKey = tuple[StreamName, int]
# Above this mean size, a request for each header is faster than reading the bytes between headers.
_LARGE_EVENT: Final = 64 * 1024
# Bytes to read past a goal, so that one request finds the event that crosses it.
_MARGIN: Final = 4096
# Maximum boundaries kept per segment. With one per MiB walked, they cover 4 GiB before every second one is dropped.
_MAX_KNOWN: Final = 4096


class Boundaries:
    """Known ends of events in the segments of a query.

    If they are forgotten, more is read; the results do not change.
    """

    def __init__(self, stores: SegmentStores) -> None:
        self._stores = stores
        self._known: dict[SegmentKey, list[int]] = {}

    def note(self, stream: StreamName, segment_id: int, offset: int) -> None:
        """Remember that an event ends at ``offset``."""
        known = self._known.setdefault((stream, segment_id), [])
        at = bisect_left(known, offset)
        if at == len(known) or known[at] != offset:
            known.insert(at, offset)
            if len(known) > _MAX_KNOWN:
                del known[::2]

    def keep_only(self, places: Collection[SegmentKey]) -> None:
        """Forget all other segments."""
        for place in self._known.keys() - set(places):
            del self._known[place]

    def nearest(self, piece: SegmentSlice, goal: int) -> int:
        """Return the last known boundary up to ``goal``, or the start of the slice if none is inside it."""
        known = self._known.get((piece.stream, piece.segment_id), [])
        del known[: bisect_left(known, piece.start)]
        at = bisect_right(known, min(goal, piece.end))
        return known[at - 1] if at else piece.start

    def walk(self, piece: SegmentSlice, window: int = READ_CHUNK) -> Generator[npt.NDArray[np.int64], None, None]:
        """Yield arrays of the offsets at which the events of a slice end. The last one may be past the slice's end.

        ``window`` is the number of bytes to read first. Raises DataLossError, ProtocolError.
        """
        name = segment_name(piece.stream, piece.segment_id)
        at = piece.start
        window = min(max(window, EVENT_HEADER_SIZE), READ_CHUNK)
        while at < piece.end:
            data = self._read(piece, at, window)
            ends = walk_frames(data, offset=at, segment=name)[1:] + at
            if not len(ends):  # less than a header: the reader of the slice raises the error
                return
            window = EVENT_HEADER_SIZE if (ends[-1] - at) > _LARGE_EVENT * len(ends) else READ_CHUNK
            at = int(ends[-1])
            if at <= piece.end:
                self.note(piece.stream, piece.segment_id, at)
            yield ends

    def ends_near(self, piece: SegmentSlice, goals: list[int]) -> list[int]:
        """Return the first boundary at or after each of the rising goals, without start and end of the slice."""
        found: list[int] = []
        for goal in goals:
            if found and found[-1] >= goal:
                continue
            start = max([self.nearest(piece, goal), *found[-1:]])
            end = start if start >= goal else self._first_from(piece, start, goal)
            if piece.start < end < piece.end:
                found.append(end)
        return found

    def _first_from(self, piece: SegmentSlice, start: int, goal: int) -> int:
        rest = SegmentSlice(piece.stream, piece.segment_id, start, piece.end)
        with closing(self.walk(rest, goal - start + _MARGIN)) as walk:
            for ends in walk:
                at = int(ends.searchsorted(goal))
                if at < len(ends):
                    return int(ends[at])
        return piece.end

    def _read(self, piece: SegmentSlice, start: int, length: int) -> bytearray:
        data = bytearray()
        end = min(start + length, piece.end)
        with closing(read_chunks(self._stores, SegmentSlice(piece.stream, piece.segment_id, start, end))) as chunks:
            for chunk in chunks:
                data += chunk
        return data


def divide(
    boundaries: Boundaries, slices: Sequence[SegmentSlice], least: int | None
) -> Iterable[tuple[SegmentSlice, tuple[int, ...]]]:
    """Yield slices, and the positions between events that divide them into parts of about equal size.

    The total number of parts is at least ``least``, if there are enough events.
    """
    if least is None or len(slices) >= least:
        return
    size = sum(piece.end - piece.start for piece in slices) / least
    for piece in slices:
        count = -(-(piece.end - piece.start) // max(size, 1))
        goals = [piece.start + int((piece.end - piece.start) * i / count) for i in range(1, int(count))]
        if places := boundaries.ends_near(piece, goals):
            yield piece, tuple(places)


def divided(piece: SegmentSlice, places: Sequence[int]) -> list[SegmentSlice]:
    """Return the parts of a slice between rising positions inside it."""
    bounds = itertools.pairwise([piece.start, *places, piece.end])
    return [replace(piece, start=begin, end=end) for begin, end in bounds]
