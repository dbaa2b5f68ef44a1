"""Watermarks of the source, noted again in the destination when it has the events before them.

Each watermark has a lower and an upper bound, and the servers compute both from the times of a stream's writers. So the
mirror notes them as two writers: one notes the lower bounds, the other the upper bounds.

A watermark is noted at the end of the destination, after all events before it are visible. While a mirror catches up, a
step ends at a watermark: then no later events are before the noted position. A watermark of the present is known only
some seconds after its events. So the noted position may be later than the watermark by the events of these seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from pravega_connector.errors import StreamNotFoundError
from pravega_connector.reader.watermarks import WatermarkLog
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import StreamName, Watermark

# Seconds between two polls for watermarks. Servers compute them about every 10 s.
_POLL: Final = 2.0


class EventTime:
    """Watermarks to note. Not thread safe."""

    def __init__(self, source: WatermarkLog, stores: SegmentStores, target: StreamName, name: str) -> None:
        """``name`` is the prefix of the names of both writers."""
        self._source, self._stores, self._target, self._name = source, stores, target, name
        self._marks: list[Watermark] = []
        self._noted = 0  # number of watermarks that are noted, or before one that is
        self._read_at = -_POLL

    def poll(self) -> None:
        """Read new watermarks, if it is time."""
        now = time.monotonic()
        if now - self._read_at < _POLL:
            return
        self._read_at = now
        try:
            self._marks = self._source.read()
        except StreamNotFoundError:  # the source was deleted, or its servers have no watermarks
            self._marks = []

    def limits(self, positions: Mapping[int, int], size: int) -> dict[int, int]:
        """Return the offset of the watermark at which a step of about ``size`` bytes ends, by segment.

        It is the last one that the step can reach, or the next one. Empty without a later watermark.
        """
        found: dict[int, int] = {}
        for mark in self._marks[self._noted :]:
            offsets = {segment_id: self._source.offset(mark, segment_id) for segment_id in positions}
            if found and sum(max(0, offset - positions[i]) for i, offset in offsets.items()) > size:
                break
            found = offsets
        return found

    def due(self, positions: Mapping[int, int]) -> bool:
        """Return True if all events before a watermark that is not noted are mirrored."""
        return self._passed(positions) > self._noted

    def note(self, positions: Mapping[int, int], *, sealed: bool) -> None:
        """Note the last watermark before ``positions``, unless the destination is ``sealed``.

        All events up to there are visible in the destination.
        """
        passed = self._passed(positions)
        mark = self._marks[passed - 1]
        if not sealed:
            tail = tail_cut(self._stores, self._target)
            for bound, millis in (("low", mark.low), ("high", mark.high)):
                self._stores.controller.note_time(f"{self._name}-{bound}", tail, millis)
        self._noted = passed

    def _passed(self, positions: Mapping[int, int]) -> int:
        """Return the number of watermarks with only mirrored events before them."""
        passed = self._noted
        for mark in self._marks[self._noted :]:
            if any(self._source.offset(mark, i) > at for i, at in positions.items()):
                break
            passed += 1
        return passed
