"""Where events end inside segments: known from earlier looks, or found by walking from one event to the next.

The server cannot say where an event begins. But every length that a segment has had is the end of an event, and so is
every place that a walk has passed: what is known is kept, so that a walk begins near its goal, and nothing is read
twice to find boundaries. Of large events only the headers are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Generator
from contextlib import closing
from typing import Final

import numpy as np
import numpy.typing as npt

from connector.client import SegmentSlice, SegmentStores, StreamName, read_chunks
from connector.wire import EVENT_HEADER_SIZE, READ_CHUNK, segment_name, walk_frames

__all__ = ["Boundaries"]

Place = tuple[StreamName, int]
# Above this mean size a request for each header is faster than reading what lies between them.
_LARGE_EVENT: Final = 64 * 1024
# Read beyond a goal, so that one request finds the event that crosses it.
_MARGIN: Final = 4096
# Boundaries kept of each segment: at one for each mebibyte walked, 4 GiB of it before they get sparser.
_MAX_KNOWN: Final = 4096


class Boundaries:
    """Known ends of events in the segments of a query. Forgetting them changes how much is read, nothing else."""

    def __init__(self, stores: SegmentStores) -> None:
        self._stores = stores
        self._known: dict[Place, list[int]] = {}

    def note(self, stream: StreamName, segment_id: int, offset: int) -> None:
        """Remember that an event ends there."""
        known = self._known.setdefault((stream, segment_id), [])
        at = bisect_left(known, offset)
        if at == len(known) or known[at] != offset:
            known.insert(at, offset)
            if len(known) > _MAX_KNOWN:
                del known[::2]

    def keep_only(self, places: Collection[Place]) -> None:
        """Forget all other segments."""
        for place in self._known.keys() - set(places):
            del self._known[place]

    def nearest(self, piece: SegmentSlice, goal: int) -> int:
        """The last known boundary up to ``goal``; the slice's start if there is none in it."""
        known = self._known.get((piece.stream, piece.segment_id), [])
        del known[: bisect_left(known, piece.start)]
        at = bisect_right(known, min(goal, piece.end))
        return known[at - 1] if at else piece.start

    def walk(self, piece: SegmentSlice, window: int = READ_CHUNK) -> Generator[npt.NDArray[np.int64], None, None]:
        """Yield the offsets at which the events of a slice end, some at a time; the last one may lie beyond its end.

        ``window`` is how many bytes are worth reading at first. Raises DataLossError, ProtocolError.
        """
        name = segment_name(piece.stream, piece.segment_id)
        at = piece.start
        window = min(max(window, EVENT_HEADER_SIZE), READ_CHUNK)
        while at < piece.end:
            data = self._read(piece, at, window)
            ends = walk_frames(data, offset=at, segment=name)[1:] + at
            if not len(ends):  # less than a header: the reader of the slice will say so
                return
            window = EVENT_HEADER_SIZE if (ends[-1] - at) > _LARGE_EVENT * len(ends) else READ_CHUNK
            at = int(ends[-1])
            if at <= piece.end:
                self.note(piece.stream, piece.segment_id, at)
            yield ends

    def ends_near(self, piece: SegmentSlice, goals: list[int]) -> list[int]:
        """For each goal, in rising order, the first boundary that is not before it; without those of the slice."""
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
