"""Order of a mirror's events: the place of each source segment in the destination, and the scalings that keep it.

Terms: in a stream, a segment *precedes* another one if it was sealed and the other one continues some of its routing
keys, directly or through further segments. Readers read a segment only after all segments that precede it. So an event
is read before another one if it is earlier in the same segment, or in a segment that precedes the other one.

A mirror does not know the routing keys of events. But it knows that all events of a key are in source segments that
own the key, and that these precede each other. So it keeps this order of the source:

    (1) the events of one source segment stay in their order, and
    (2) all events of a source segment come before all events of the segments that it precedes.

Then the events of each key stay in their order, and the mirror need not decode any event.

**Place.** Each source segment S has a *point* p(S) in the middle of its key range. All events of S are written to the
destination segment that owns p(S) at that moment. The owners of one point precede each other in the order of time,
no matter which client scales the destination: the next owner of the point continues some keys of the last owner. Steps
are written one after the other, and a step is committed only when the step before is visible. This is (1), through
every scaling of the destination. If the range of S is divided there, all events of S go to one part, never to several.

**Barrier.** The events of a segment are written only after all events of its predecessors are visible. But this alone
is not (2): readers may read two segments of one epoch in any order. Let S precede T directly, so that their ranges
overlap. At the barrier between them, the destination is scaled. The owner of p(S) is sealed, and a new segment D owns
p(T). If the ranges of the two overlap, the owner of p(S) precedes D, and D is or precedes every later owner of p(T).
This is (2) for S and T, and for other pairs of segments it follows step by step.

The new segments have the ranges of the source's segments. So while no other client scales the destination, the owner of
p(S) has exactly the range of S. Then one scaling is enough: ranges overlap in the destination where they overlap in the
source. Otherwise, :func:`scalings` first merges all affected segments into one. It owns the points of both sides, so
all earlier owners are or precede it, and it precedes all later ones.

The condition is about the segments at one moment between the last event of S and the first event of T. Scalings by
others, before or after that moment, do not matter: they only continue the chains of owners. A barrier that a run has
passed is in the log, because the log has the positions of its successors. A run that fails before this passes the
barrier again, which only costs scalings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pravega_connector.wire import SegmentRange

Ranges = list[tuple[float, float]]

# Bounds of ranges that are closer are equal: clusters may compute the same bound with another rounding.
_TOLERANCE: Final = 1e-9


def point(segment: SegmentRange) -> float:
    """Return the position in the key space [0, 1) at which the events of a source segment are written."""
    return (segment.low + segment.high) / 2


def overlap(one: SegmentRange, other: SegmentRange) -> bool:
    """Return True if two segments own a key in common."""
    return one.low < other.high - _TOLERANCE and other.low < one.high - _TOLERANCE


def affected(current: Iterable[SegmentRange], after: Sequence[SegmentRange]) -> list[SegmentRange]:
    """Return the segments of the destination that own keys of ``after``, ascending."""
    return sorted((each for each in current if any(overlap(each, new) for new in after)), key=lambda each: each.low)


def scalings(
    current: Sequence[SegmentRange], before: Sequence[SegmentRange], after: Sequence[SegmentRange]
) -> list[Ranges]:
    """Return the scalings at a barrier: each replaces the :func:`affected` segments by segments with these ranges.

    ``current`` are the segments of the destination. ``before`` are the source segments whose events are visible in it,
    and ``after`` are their successors, or the segments of the beginning. ``before`` and ``after`` are one interval.
    """
    old = affected(current, after)
    wanted = _wanted(old, after)
    pairs = [(one, other) for one in before for other in after if overlap(one, other)]
    if _are_same(old, wanted) and all(_owner(old, one) == _owner(old, other) for one, other in pairs):
        return []
    if all(overlap(_owner(old, one), other) for one, other in pairs):
        return [wanted]
    return [[(old[0].low, old[-1].high)], wanted]


def is_aligned(current: Sequence[SegmentRange], source: Sequence[SegmentRange]) -> bool:
    """Return True if each source segment has a segment of the destination with the same range."""
    return all(_owner(current, each).low == each.low and _owner(current, each).high == each.high for each in source)


def _wanted(old: Sequence[SegmentRange], after: Sequence[SegmentRange]) -> Ranges:
    """Return the ranges of ``after``, extended to the bounds of the segments that they replace."""
    ranges = sorted((each.low, each.high) for each in after)
    (low, first), (_, high) = ranges[0], ranges[-1]
    start, end = old[0].low, old[-1].high
    if low - start > _TOLERANCE:
        ranges.insert(0, (start, low))
    else:
        ranges[0] = start, first
    if end - high > _TOLERANCE:
        ranges.append((high, end))
    else:
        ranges[-1] = ranges[-1][0], end
    return ranges


def _are_same(segments: Sequence[SegmentRange], ranges: Ranges) -> bool:
    return len(segments) == len(ranges) and all(
        abs(each.low - low) < _TOLERANCE and abs(each.high - high) < _TOLERANCE
        for each, (low, high) in zip(segments, ranges, strict=True)
    )


def _owner(segments: Iterable[SegmentRange], source: SegmentRange) -> SegmentRange:
    """Return the segment that owns the point of a source segment."""
    at = point(source)
    return next(each for each in segments if each.low <= at < each.high)
