"""Limits of a micro-batch, divided among streams and segments. Each end in a segment is between two events.

To find these ends, the driver walks the frames that it admits, except those whose boundaries it already knows (see
``pravega_connector.reader.boundaries``). Without a limit, nothing is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, TypeVar

from pravega_connector.reader.boundaries import Boundaries
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.wire import EVENT_HEADER_SIZE, StreamName

T = TypeVar("T")
# Assumed size of an event, frame included, until one was seen.
_USUAL_EVENT: Final = 128
# Tolerance for rounding: a third, three times, is one.
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum bytes (frames included) and maximum events of one micro-batch; None means no limit."""

    max_bytes: int | None = None
    max_rows: int | None = None

    def share(self, part: float) -> Limits:
        """Return a fraction of the limits, rounded down."""
        return Limits(
            None if self.max_bytes is None else int(self.max_bytes * part + _ROUNDING),
            None if self.max_rows is None else int(self.max_rows * part + _ROUNDING),
        )

    def less(self, size: int, rows: int) -> Limits:
        """Return the remaining limits."""
        return Limits(
            None if self.max_bytes is None else max(0, self.max_bytes - size),
            None if self.max_rows is None else max(0, self.max_rows - rows),
        )

    @property
    def is_used_up(self) -> bool:
        """True if the limits are used up: no further event fits."""
        return self.max_bytes == 0 or self.max_rows == 0


UNLIMITED: Final = Limits()


@dataclass(frozen=True, slots=True)
class Backlog:
    """Readable part of one stream: from ``starts`` to ``ends``, offsets of the same segments."""

    stream: StreamName
    starts: Mapping[int, int]
    ends: Mapping[int, int]


@dataclass(slots=True)
class _Segment:
    """Segment that waits for its share. ``weight`` balances streams with different numbers of segments."""

    stream: StreamName
    id: int
    at: int
    end: int
    weight: float

    @property
    def claim(self) -> float:
        return (self.end - self.at) / self.weight


class Admission:
    """Divides the limits of a micro-batch among streams, and the share of a stream among its segments.

    Unused capacity is redistributed. The first stream changes from batch to batch, so a limit smaller than one
    event for each segment starves no segment. A batch exceeds its limits only if its first event does so on its own.
    """

    def __init__(self, boundaries: Boundaries, limits: Limits) -> None:
        self._boundaries, self.limits = boundaries, limits
        self._turn = -1
        self._event_size = float(_USUAL_EVENT)

    def admit(self, backlogs: Sequence[Backlog]) -> dict[StreamName, dict[int, int]]:
        """Return end offsets for each stream, each between two events.

        At least one event of a backlog is admitted.
        """
        if self.limits == UNLIMITED:
            return {backlog.stream: dict(backlog.ends) for backlog in backlogs}
        ends = {backlog.stream: dict(backlog.starts) for backlog in backlogs}
        waiting = self._in_turn(backlogs)
        left, passed_over = self.limits, 0
        while not left.is_used_up and passed_over < len(waiting):
            places = self._places(left, len(waiting))
            group, waiting = _by_claim(waiting[:places]), waiting[places:]
            before = left
            left = self._serve(group, left)
            passed_over = passed_over + len(group) if left == before else 0
            waiting += [segment for segment in group if segment.at < segment.end]
            for segment in group:
                ends[segment.stream][segment.id] = segment.at
        return ends

    def _serve(self, group: list[_Segment], left: Limits) -> Limits:
        """Advance each segment of the group by its share of the remaining limits; return the limits that remain."""
        weights = sum(segment.weight for segment in group)
        for segment in group:
            share = left.share(min(1.0, segment.weight / weights))
            left = left.less(*self._take(segment, share, left))
            weights -= segment.weight
        return left

    def _in_turn(self, backlogs: Sequence[Backlog]) -> list[_Segment]:
        """Return the segments with a backlog: one of each stream, then the next ones.

        Every batch begins with another segment.
        """
        queues = []
        for backlog in backlogs:
            ids = sorted(i for i, end in backlog.ends.items() if backlog.starts[i] < end)
            weight = 1 / len(ids) if ids else 1.0
            queues.append([_Segment(backlog.stream, i, backlog.starts[i], backlog.ends[i], weight) for i in ids])
        queues = [queue for queue in queues if queue]
        self._turn += 1
        turn, round_ = self._turn % max(len(queues), 1), self._turn // max(len(queues), 1)
        queues = [_rotated(queue, round_) for queue in _rotated(queues, turn)]
        longest = max(map(len, queues), default=0)
        return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]

    def _places(self, left: Limits, waiting: int) -> int:
        """Return the number of segments that can get at least one event."""
        by_bytes = waiting if left.max_bytes is None else int(left.max_bytes / self._event_size)
        by_rows = waiting if left.max_rows is None else left.max_rows
        return max(1, min(waiting, by_bytes, by_rows))

    def _take(self, segment: _Segment, share: Limits, left: Limits) -> tuple[int, int]:
        """Advance the segment by its share. Return (bytes, events), with events 0 if they are not counted.

        An event that does not fit the share is admitted if it fits the remaining limits, or if it is the first of the
        batch.
        """
        piece = SegmentSlice(segment.stream, segment.id, segment.at, segment.end)
        size = piece.end - piece.start
        limit = piece.end if share.max_bytes is None else piece.start + min(size, share.max_bytes)
        if share.max_rows is not None:
            stop, rows = self._walk(piece, piece.start, limit, share.max_rows)
        elif limit == piece.end:
            stop, rows = limit, 0
        else:
            stop, rows = self._walk(piece, self._boundaries.nearest(piece, limit), limit, None)
        if stop == piece.start and not left.is_used_up:
            stop, rows = self._first_event(piece, left)
        segment.at = stop
        return stop - piece.start, rows

    def _walk(self, piece: SegmentSlice, begin: int, limit: int, rows: int | None) -> tuple[int, int]:
        """Return the last boundary within ``limit`` and ``rows``, and the number of events from ``begin`` to it."""
        stop, count = begin, 0
        wanted = limit - begin if rows is None else min(limit - begin, int(rows * self._event_size * 1.2))
        rest = SegmentSlice(piece.stream, piece.segment_id, begin, min(limit + EVENT_HEADER_SIZE, piece.end))
        with closing(self._boundaries.walk(rest, wanted)) as walk:
            while limit - stop >= EVENT_HEADER_SIZE and count != rows and (ends := next(walk, None)) is not None:
                self._event_size = (self._event_size + float(ends[-1] - stop) / len(ends)) / 2
                fit = int(ends.searchsorted(limit, side="right"))
                fit = fit if rows is None else min(fit, rows - count)
                if fit:
                    stop, count = int(ends[fit - 1]), count + fit
                if fit < len(ends):
                    break
        return stop, count

    def _first_event(self, piece: SegmentSlice, left: Limits) -> tuple[int, int]:
        """Return the end of the first event of the slice and 1, or (start, 0) if it does not fit."""
        with closing(self._boundaries.walk(piece, 0)) as walk:
            ends = next(walk, None)
        # The reader raises the error for bytes that are not an event.
        stop = piece.end if ends is None else min(int(ends[0]), piece.end)
        fits = left.max_bytes is None or stop - piece.start <= left.max_bytes
        return (stop, 1) if fits or left == self.limits else (piece.start, 0)


def _by_claim(segments: list[_Segment]) -> list[_Segment]:
    """Order the segments: the first stays first, then the smallest claims, whose remainder goes to the others."""
    return segments[:1] + sorted(segments[1:], key=lambda segment: segment.claim)


def _rotated(items: list[T], places: int) -> list[T]:
    places %= max(len(items), 1)
    return items[places:] + items[:places]
