"""Two cuts of one stream: which one lies before the other, and how much lies between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from connector.client import PravegaClient, StreamCut, StreamName, sealed_lengths
from connector.errors import MalformedStreamCutError
from connector.wire import SegmentRange, segment_epoch

__all__ = ["Comparison", "Relation", "compare_cuts"]

Relation = Literal["before", "equal", "after", "incomparable"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the first cut lies to the second."""

    relation: Relation
    """``incomparable``: before it for some routing keys and after it for others."""
    bytes: int | None
    """Bytes between the two, 8 for each event included; None if they are incomparable or nobody tells any more."""


def compare_cuts(first: StreamCut, second: StreamCut, client: PravegaClient | None = None) -> Comparison:
    """Compare two cuts of a stream. Without a client, only cuts of the same segments can be compared.

    Raises MalformedStreamCutError for cuts of different streams, ControllerError.
    """
    if first.stream != second.stream:
        raise MalformedStreamCutError(f"the cuts are of different streams: {first.stream} and {second.stream}")
    if first.positions.keys() == second.positions.keys():
        pairs = [(at, second.positions[i]) for i, at in first.positions.items()]
        relation = _relation((a > b) - (a < b) for a, b in pairs)
        between = None if relation == "incomparable" else sum(abs(max(a, 0) - max(b, 0)) for a, b in pairs)
        return Comparison(relation, between)
    if client is None:
        raise MalformedStreamCutError(f"the cuts have different segments: the servers of {first.stream} must be asked")
    relation = _relation(_signs(client, first, second))
    match relation:
        case "before":
            return Comparison(relation, _bytes_between(client, first, second))
        case "after":
            return Comparison(relation, _bytes_between(client, second, first))
    return Comparison(relation, None)


def _relation(signs: Iterable[int]) -> Relation:
    found = set(signs) - {0}
    if len(found) == 2:
        return "incomparable"
    return "equal" if not found else "before" if found == {-1} else "after"


def _signs(client: PravegaClient, first: StreamCut, second: StreamCut) -> Iterator[int]:
    """For each two segments that share routing keys: -1 where the first cut comes first, 1 where the second does."""
    ranges = _ranges(client, first.stream, {*first.positions, *second.positions})
    for a, at in first.positions.items():
        for b, to in second.positions.items():
            if a == b:
                yield (at > to) - (at < to)
            elif ranges[a].low < ranges[b].high and ranges[b].low < ranges[a].high:
                yield 1 if a > b else -1  # of two segments with the same keys the later one has the higher epoch


def _ranges(client: PravegaClient, stream: StreamName, segment_ids: set[int]) -> dict[int, SegmentRange]:
    found: dict[int, SegmentRange] = {}
    for epoch in sorted({segment_epoch(i) for i in segment_ids}):
        found |= {r.id: r for r in client.controller.epoch_segments(stream, epoch)}
    if missing := segment_ids - found.keys():
        raise MalformedStreamCutError(f"stream {stream} has no segment {min(missing)}: the cut is of another stream")
    return found


def _bytes_between(client: PravegaClient, start: StreamCut, end: StreamCut) -> int | None:
    stream = start.stream
    ids = client.controller.segments_between(start, end)
    ends = {i: at for i, at in end.positions.items() if i in ids}
    infos = client.stores.segment_infos(stream, [i for i in ids if i not in ends])
    ends |= {i: info.write_offset for i, info in infos.items() if info.exists}
    ends |= sealed_lengths(client.stores, stream, [i for i, info in infos.items() if not info.exists])
    if ends.keys() != set(ids):
        return None
    return sum(max(ends[i], 0) - max(start.positions.get(i, 0), 0) for i in ids)
