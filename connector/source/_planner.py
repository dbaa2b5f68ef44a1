"""Which bytes of a stream the next micro-batch may read, without ever mixing a segment with its successor.

Theory of operation
-------------------
A position is a cut: an offset for each segment. To plan the next batch, segments that were sealed and read to their
end are first replaced by their successors, each of which starts when *all* its predecessors are finished; then each
segment is read to its length of this moment. So a batch holds, for each routing key, bytes of one segment only: Spark
may read its segments in parallel and still events of one key stay in order from batch to batch.

What a batch reads follows from the offsets at its two ends alone; see ``_offsets``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from connector.client import Lineage, PravegaClient, SegmentInfo, SegmentStores, StreamCut, StreamName
from connector.errors import DataLossError, StreamNotFoundError
from connector.source._admission import Backlog

__all__ = ["Ceiling", "StreamPlanner"]

_ANY: Final = 2**63 - 1
# A sealed segment without successors is its stream's last: they are looked for once in so many seconds all the same.
_LAST_LOOK: Final = 1.0


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Where reading ends: the segments that may be read at all, and an end offset for those in the end cut."""

    segments: frozenset[int]
    ends: Mapping[int, int]


class _PatientLineage(Lineage):
    """Asks for the successors of a sealed stream's last segments once a second, and for one of them only."""

    def __init__(self, stores: SegmentStores, stream: StreamName, clock: Callable[[], float]) -> None:
        super().__init__(stores, stream)
        self._clock = clock
        self._last: set[int] = set()
        self._next_look = 0.0

    def successors(self, segment_id: int) -> dict[int, tuple[int, ...]]:
        if segment_id in self._last and self._clock() < self._next_look:
            return {}
        found = super().successors(segment_id)
        if not found:
            self._last.add(segment_id)
            self._next_look = self._clock() + _LAST_LOOK
        elif segment_id in self._last:
            self._last.clear()
        return found


class StreamPlanner:
    """Plans one stream's share of batches. Holds nothing that a restart would miss."""

    def __init__(self, client: PravegaClient, stream: StreamName, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self.stream = stream
        self._lineage = _PatientLineage(client.stores, stream, clock)
        self._ceilings: list[Ceiling] = []

    def end_at(self, start: StreamCut, end: StreamCut) -> None:
        """Read nothing beyond ``end``; ``start`` is where reading goes on. Raises MalformedStreamCutError."""
        segments = self._client.controller.segments_between(start, end)
        self._ceilings.append(Ceiling(frozenset(segments), end.positions))

    def backlog(self, start: StreamCut) -> Backlog:
        """What can be read from ``start`` on; its segments are those of ``start`` or, where they ended, successors.

        Raises DataLossError when a segment that still had to be read is gone, StreamNotFoundError.
        """
        positions = dict(start.positions)
        infos = self._enter_successors(positions)
        ends = {}
        for segment_id, begin in positions.items():
            lengths = [infos[segment_id].write_offset, *(c.ends.get(segment_id, _ANY) for c in self._ceilings)]
            ends[segment_id] = max(begin, min(lengths)) if self._below([segment_id]) else begin
        return Backlog(self.stream, positions, ends)

    def _below(self, segment_ids: Iterable[int]) -> bool:
        return all(ceiling.segments.issuperset(segment_ids) for ceiling in self._ceilings)

    def _enter_successors(self, positions: dict[int, int]) -> dict[int, SegmentInfo]:
        """Replace finished segments until each one left has bytes, or may get some, or waits for a sibling."""
        infos: dict[int, SegmentInfo] = {}
        finished: set[int] = set()
        entered: Iterable[int] = list(positions)
        while entered:
            infos |= self._client.stores.segment_infos(self.stream, entered)
            ended = {i for i in entered if self._is_finished(infos[i], positions[i])}
            finished |= ended
            entered = self._lineage.advance(positions, finished, ended)
        return infos

    def _is_finished(self, info: SegmentInfo, at: int) -> bool:
        """Whether a segment is read to its end, and its successors may be read. Raises as :meth:`backlog`."""
        self._check_present(info, at)
        return info.sealed and at >= info.write_offset and self._below(self._lineage.successors(info.id))

    def _check_present(self, info: SegmentInfo, at: int) -> None:
        if info.exists and at >= info.start_offset:
            return
        if not self._client.controller.stream_exists(self.stream):
            raise StreamNotFoundError(f"stream {self.stream} was deleted")
        lost = f"{info.start_offset - at} bytes before offset {info.start_offset}" if info.exists else "what followed"
        raise DataLossError(
            f"stream {self.stream}, segment {info.id}, offset {at}: {lost} was truncated before it was read; "
            "start at the head of the stream with a new checkpoint, or keep the data longer (retention)"
        )
