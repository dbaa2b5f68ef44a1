"""Which bytes the next micro-batch reads: from one cut to the next, without ever mixing a segment with its successor.

Theory of operation
-------------------
A position is a cut: an offset for each segment. To plan the next batch, segments that were sealed and read to their
end are first replaced by their successors, each of which starts when *all* its predecessors are finished; then each
segment is read to its length of this moment. So a batch holds, for each routing key, bytes of one segment only: Spark
may read its segments in parallel and still events of one key stay in order from batch to batch.

What a batch reads follows from its two cuts alone: segment ``s`` from ``start[s]``, or 0 if it is not in ``start``,
to ``end[s]``. No server is asked, so a replay after a crash reads exactly the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from connector.client import Lineage, PravegaClient, SegmentInfo, SegmentSlice, StreamCut, StreamName
from connector.errors import DataLossError, MalformedStreamCutError, StreamNotFoundError
from connector.source._admission import UNLIMITED, Limits, admit

__all__ = ["Ceiling", "StreamPlanner", "slices_of"]

_ANY: Final = 2**63 - 1


def slices_of(start: StreamCut, end: StreamCut) -> Iterator[SegmentSlice]:
    """The ranges of segments that a micro-batch reads; depends on nothing but the two cuts."""
    for segment_id, stop in end.positions.items():
        begin = start.positions.get(segment_id, 0)
        if begin < stop:
            yield SegmentSlice(end.stream, segment_id, begin, stop)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Where reading ends: the segments that may be read at all, and an end offset for those in the end cut."""

    segments: frozenset[int]
    ends: Mapping[int, int]


def _below(ceilings: Sequence[Ceiling], segment_ids: Iterable[int]) -> bool:
    return all(ceiling.segments.issuperset(segment_ids) for ceiling in ceilings)


class StreamPlanner:
    """Plans one stream's batches. Holds nothing that a restart would miss."""

    def __init__(self, client: PravegaClient, stream: StreamName) -> None:
        self._client = client
        self.stream = stream
        self._lineage = Lineage(client.stores, stream)

    def resolve(self, where: str) -> StreamCut | None:
        """The cut that an option's text means: ``earliest``, ``latest``, a cut as text; None for ``unbounded``.

        Raises StreamNotFoundError, MalformedStreamCutError. Nothing is created.
        """
        word = where.strip().lower()
        if word == "unbounded":
            return None
        if word in ("earliest", "latest"):
            self._client.require_stream(self.stream)
            return self._client.head(self.stream) if word == "earliest" else self._client.tail(self.stream)
        cut = StreamCut.from_text(where.strip(), self.stream)
        self._client.require_stream(self.stream)
        if not self._client.controller.is_cut_valid(cut):
            raise MalformedStreamCutError(
                f"the stream cut {cut} does not cover stream {self.stream} exactly once: take one that Pravega gave"
            )
        return cut

    def ceiling(self, start: StreamCut, end: StreamCut) -> Ceiling:
        """What may be read from ``start`` on if nothing beyond ``end`` is wanted."""
        segments = self._client.controller.segments_between(start, end)
        return Ceiling(frozenset(segments), end.positions)

    def next_end(self, start: StreamCut, ceilings: Sequence[Ceiling] = (), limits: Limits = UNLIMITED) -> StreamCut:
        """The end of the batch that begins at ``start``; equal to ``start`` if there is nothing to read.

        Raises DataLossError when a segment that still had to be read is gone.
        """
        positions = dict(start.positions)
        infos = self._enter_successors(positions, ceilings)
        ends = {}
        for segment_id, begin in positions.items():
            lengths = [infos[segment_id].write_offset, *(c.ends.get(segment_id, _ANY) for c in ceilings)]
            ends[segment_id] = max(begin, min(lengths)) if _below(ceilings, [segment_id]) else begin
        if limits != UNLIMITED:
            ends = admit(self._client.stores, self.stream, positions, ends, limits)
        return start if ends == start.positions else StreamCut(self.stream, ends)

    def _enter_successors(self, positions: dict[int, int], ceilings: Sequence[Ceiling]) -> dict[int, SegmentInfo]:
        """Replace finished segments until each one left has bytes, or may get some, or waits for a sibling."""
        infos: dict[int, SegmentInfo] = {}
        while True:
            infos |= self._client.stores.segment_infos(self.stream, positions.keys() - infos.keys())
            self._check_present(positions, infos)
            finished = {i for i, at in positions.items() if infos[i].sealed and at >= infos[i].write_offset}
            finished = {i for i in finished if _below(ceilings, self._lineage.successors(i))}
            if not self._lineage.advance(positions, finished):
                return infos

    def _check_present(self, positions: Mapping[int, int], infos: Mapping[int, SegmentInfo]) -> None:
        for segment_id, at in positions.items():
            info = infos[segment_id]
            if info.exists and at >= info.start_offset:
                continue
            if not self._client.controller.stream_exists(self.stream):
                raise StreamNotFoundError(f"stream {self.stream} was deleted")
            lost = (
                f"{info.start_offset - at} bytes before offset {info.start_offset}" if info.exists else "what followed"
            )
            raise DataLossError(
                f"stream {self.stream}, segment {segment_id}, offset {at}: {lost} was truncated before it was read; "
                "start at the head of the stream with a new checkpoint, or keep the data longer (retention)"
            )
