"""Head and tail of a stream as cuts, and the way from a segment to its successors."""

from __future__ import annotations

from connector.client._stores import SegmentStores
from connector.wire import StreamCut, StreamName

__all__ = ["Lineage", "tail_cut"]


class Lineage:
    """Which segments follow which, remembered: a sealed segment's successors never change."""

    def __init__(self, stores: SegmentStores, stream: StreamName) -> None:
        self._stores = stores
        self.stream = stream
        self._successors: dict[int, dict[int, tuple[int, ...]]] = {}

    def successors(self, segment_id: int) -> dict[int, tuple[int, ...]]:
        """Successor id -> ids of all its predecessors; empty while the segment is open or the stream's last."""
        known = self._successors.get(segment_id)
        if known is None:
            found = self._stores.controller.successors(self.stream, segment_id)
            known = {s.range.id: tuple(s.predecessors) for s in found}
            if known:
                self._successors[segment_id] = known
        return known

    def advance(self, positions: dict[int, int], finished: set[int], among: set[int] | None = None) -> list[int]:
        """Replace finished segments by their successors; return the ids that started, each at offset 0.

        A group of segments that one scaling sealed is replaced as a whole, when all of it is finished: so the order
        per routing key holds across scaling, and ``positions``, which is changed in place, stays a valid cut.
        ``among`` are those that finished after the last call, if the others were looked at then.
        """
        started: list[int] = []
        for segment_id in sorted((finished if among is None else among) & positions.keys()):
            if segment_id in positions and (group := self._group(segment_id, finished)) is not None:
                predecessors, successors = group
                for predecessor in predecessors:
                    positions.pop(predecessor, None)
                positions.update(dict.fromkeys(successors, 0))
                started += sorted(successors)
        return started

    def _group(self, segment_id: int, finished: set[int]) -> tuple[set[int], set[int]] | None:
        """All (predecessors, successors) tied to the segment by one scaling; None while not all are finished."""
        predecessors, successors, frontier = {segment_id}, set[int](), [segment_id]
        while frontier:
            for successor, others in self.successors(frontier.pop()).items():
                successors.add(successor)
                if not finished.issuperset(others):
                    return None
                frontier += set(others) - predecessors
                predecessors.update(others)
        return (predecessors, successors) if successors else None


def tail_cut(stores: SegmentStores, stream: StreamName) -> StreamCut:
    """The end of a stream at this moment: the length of each current segment.

    A sealed stream has no current segments; its tail is found by walking from the head. (Java's client returns an
    empty cut there that it cannot parse itself.)
    """
    current = [r.id for r in stores.controller.current_segments(stream)]
    if not current:
        current = _last_segments(stores, stream)
    infos = stores.segment_infos(stream, current)
    return StreamCut(stream, {i: infos[i].write_offset for i in current})


def _last_segments(stores: SegmentStores, stream: StreamName) -> list[int]:
    lineage = Lineage(stores, stream)
    frontier, last, seen = list(stores.controller.head_cut(stream).positions), [], set[int]()
    while frontier:
        segment_id = frontier.pop()
        if segment_id in seen:
            continue
        seen.add(segment_id)
        after = lineage.successors(segment_id)
        if after:
            frontier.extend(after)
        else:
            last.append(segment_id)
    return sorted(last)
