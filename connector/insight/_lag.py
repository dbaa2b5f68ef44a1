"""How far a reader is behind: the bytes between its position and the end of the stream at this moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from connector.client import Lineage, PravegaClient, SegmentSlice, SegmentStores, StreamCut, StreamName, read_slice
from connector.insight._losses import Loss, lost_bytes, survey
from connector.wire import segment_name

__all__ = ["SegmentLag", "StreamLag", "count_events", "stream_lag"]


@dataclass(frozen=True, slots=True)
class SegmentLag:
    """What is left to read of one segment."""

    stream: StreamName
    segment_id: int
    offset: int
    """Where the reader is, or will begin."""
    end: int
    """Length of the segment."""
    sealed: bool | None
    """Whether it takes no more events; None where nobody asked."""

    @property
    def bytes(self) -> int:
        """Bytes behind, 8 for each event included."""
        return max(self.end - self.offset, 0)

    @property
    def slice(self) -> SegmentSlice:
        """What is left, to be read."""
        return SegmentSlice(self.stream, self.segment_id, self.offset, max(self.end, self.offset))

    @property
    def name(self) -> str:
        """``0.#epoch.0``."""
        return segment_name(self.stream, self.segment_id).rsplit("/", 1)[1]


@dataclass(frozen=True, slots=True)
class StreamLag:
    """What is left to read of a stream, segment by segment, predecessors first, and what was lost already."""

    stream: StreamName
    segments: tuple[SegmentLag, ...]
    losses: tuple[Loss, ...]
    exists: bool = True

    @property
    def is_final(self) -> bool:
        """Whether nothing can be added any more: the stream is sealed, or gone."""
        return all(segment.sealed for segment in self.segments)

    @property
    def bytes(self) -> int:
        """Bytes behind, all segments together."""
        return sum(segment.bytes for segment in self.segments)

    def to_json(self) -> dict[str, Any]:
        """The lag as JSON. Events are told only where they are known without reading: where there are none."""
        value: dict[str, Any] = {"bytes": self.bytes, "segments": {s.name: s.bytes for s in self.segments}}
        if not self.bytes:
            value["events"] = 0
        if self.losses:
            value["lost_bytes"] = lost_bytes(self.losses)
            value["losses"] = [loss.to_json() for loss in self.losses]
        return value if self.exists else value | {"deleted": True}


def stream_lag(client: PravegaClient, position: StreamCut) -> StreamLag:
    """How far a reader at ``position`` is behind; a stream that was deleted is one, not an error.

    A reader that is among the stream's open segments costs no call to the controller.
    """
    stream = position.stream
    found = survey(client.stores, position)
    if found.cut is None:
        return StreamLag(stream, (), found.losses, exists=False)
    if not any(info.sealed for info in found.infos.values()):
        segments = (
            SegmentLag(stream, i, at, found.infos[i].write_offset, False) for i, at in found.cut.positions.items()
        )
        return StreamLag(stream, tuple(segments), found.losses)
    return StreamLag(stream, tuple(_through_scaling(client, found.cut)), found.losses)


def _through_scaling(client: PravegaClient, position: StreamCut) -> Iterator[SegmentLag]:
    stream = position.stream
    if client.controller.current_segments(stream):
        ids = client.controller.segments_between(position, client.tail(stream))
    else:
        ids = _all_after(Lineage(client.stores, stream), position)  # sealed: nothing tells its end but its segments
    infos = client.stores.segment_infos(stream, ids)
    for segment_id in ids:
        info = infos[segment_id]
        if info.exists:
            # Java's cuts have -1 for a segment that has not begun.
            at = max(position.positions.get(segment_id, 0), info.start_offset)
            yield SegmentLag(stream, segment_id, at, info.write_offset, info.sealed)


def _all_after(lineage: Lineage, position: StreamCut) -> list[int]:
    """The position's segments, and all that follow them."""
    found, frontier = set(position.positions), list(position.positions)
    while frontier:
        after = lineage.successors(frontier.pop()).keys() - found
        found |= after
        frontier += after
    return sorted(found)


def count_events(stores: SegmentStores, piece: SegmentSlice) -> int:
    """The number of events in a slice, by reading all of it. Raises as ``read_slice``."""
    return sum(len(column.offsets) for column in read_slice(stores, piece))
