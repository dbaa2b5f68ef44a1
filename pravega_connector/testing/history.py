"""Epochs of a stream: the segments of each routing key over time, and the order of stream cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pravega_connector.wire import SegmentRange, segment_id, segment_number

# Largest gap between adjacent key ranges (StreamMetadataStore's check before a scaling).
_TOLERANCE: Final = 1e-9

Cut = Mapping[int, int]


def even_ranges(count: int) -> list[tuple[float, float]]:
    """Return ``count`` key ranges of equal size."""
    return list(pairwise(i / count for i in range(count + 1)))


@dataclass(frozen=True, slots=True)
class Epoch:
    """Segments between two scalings.

    ``reference`` is the number of the copied epoch if this one is a copy. Otherwise it is its own number. After a
    scaling, the commit of an older transaction creates two epochs: a copy of the transaction's epoch, and then a copy
    of the present one.
    """

    number: int
    reference: int
    segments: tuple[SegmentRange, ...]

    def by_number(self, number: int) -> SegmentRange:
        """Return the segment with a number. Raises StopIteration."""
        return next(segment for segment in self.segments if segment_number(segment.id) == number)


class StreamHistory:
    """Epochs of one stream since its creation. It has no offsets except those of the stream cuts in its arguments."""

    def __init__(self, segments: int, first_number: int = 0) -> None:
        """Create the first epoch. ``first_number`` is the number of the first segment.

        A recreated stream continues to count where the deleted one ended.
        """
        ranges = even_ranges(segments)
        first = tuple(SegmentRange(segment_id(first_number + i, 0), *keys) for i, keys in enumerate(ranges))
        self.epochs = [Epoch(0, 0, first)]
        self.next_number = first_number + segments
        self.sealed = False
        self.head: dict[int, int] = dict.fromkeys((segment.id for segment in first), 0)

    @property
    def active(self) -> Epoch:
        """Last epoch."""
        return self.epochs[-1]

    @property
    def current(self) -> tuple[SegmentRange, ...]:
        """Segments that accept events now. Empty for a sealed stream."""
        return () if self.sealed else self.active.segments

    def segments(self) -> dict[int, SegmentRange]:
        """Return all present and past segments by id."""
        return {segment.id: segment for epoch in self.epochs for segment in epoch.segments}

    # ---- scaling ----

    def can_scale(self, seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> bool:
        """Return True if the ranges cover the same keys as the segments to seal.

        The segments must be current ones.
        """
        current = {segment.id: (segment.low, segment.high) for segment in self.active.segments}
        if not seal or not ranges or len(set(seal)) != len(seal) or not all(i in current for i in seal):
            return False
        old, new = _joined(current[i] for i in seal), _joined(ranges)
        overlap = any(one[1] > other[0] + _TOLERANCE for one, other in pairwise(sorted(ranges)))
        return not overlap and len(old) == len(new) and all(map(_same, old, new))

    def scale(self, seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> Epoch:
        """Begin an epoch in which new segments have the keys of the sealed ones."""
        number = self.active.number + 1
        made = [SegmentRange(segment_id(self.next_number + i, number), *keys) for i, keys in enumerate(ranges)]
        self.next_number += len(made)
        kept = [segment for segment in self.active.segments if segment.id not in seal]
        return self._begin(number, number, [*kept, *made])

    def copy(self, reference: int) -> Epoch:
        """Begin an epoch with the segments of an earlier one: the same numbers and keys, but other ids."""
        number = self.active.number + 1
        like = self.epochs[reference].segments
        made = [SegmentRange(segment_id(segment_number(each.id), number), each.low, each.high) for each in like]
        return self._begin(number, reference, made)

    def _begin(self, number: int, reference: int, segments: Iterable[SegmentRange]) -> Epoch:
        epoch = Epoch(number, reference, tuple(sorted(segments, key=lambda segment: segment.low)))
        self.epochs.append(epoch)
        return epoch

    # ---- order ----

    def successors(self, segment: int) -> list[tuple[SegmentRange, tuple[int, ...]]]:
        """Return the successors of a segment, each with all of its predecessors.

        Empty for a segment that never existed.
        """
        old = self.segments().get(segment)
        if old is None:
            return []
        last = max(epoch.number for epoch in self.epochs if old in epoch.segments)
        if last == self.active.number:
            return []
        before = set(self.epochs[last].segments)
        after = [each for each in self.epochs[last + 1].segments if each not in before]
        ended = [each for each in self.epochs[last].segments if each not in self.epochs[last + 1].segments]
        return [
            (new, tuple(sorted(each.id for each in ended if _overlap(each, new))))
            for new in after
            if _overlap(old, new)
        ]

    def knows(self, cut: Cut) -> bool:
        """Return True if all segments of a stream cut belong to this stream."""
        return cut.keys() <= self.segments().keys()

    def covers(self, cut: Cut) -> bool:
        """Return True if the segments of a stream cut cover every routing key once."""
        return self.knows(cut) and all(len(self._at(cut, key)) == 1 for key, _ in self._chains())

    def precedes(self, one: Cut, other: Cut) -> bool:
        """Return True if one cut is nowhere after the other. Both must cover all keys."""
        for key, chain in self._chains():
            (first,), (last,) = self._at(one, key), self._at(other, key)
            if (chain.index(first), one[first]) > (chain.index(last), other[last]):
                return False
        return True

    def between(self, one: Cut, other: Cut) -> list[int]:
        """Return the ids of the segments from one cut to the other, those of the cuts included.

        An empty cut means the first segments, or the present ones. Raises ValueError if the first cut is not before the
        second.
        """
        is_known = all(self.covers(cut) for cut in (one, other) if cut)
        if not is_known or (one and other and not self.precedes(one, other)):
            raise ValueError("the cuts are in no order")
        found = set[int]()
        for key, chain in self._chains():
            first = chain.index(*self._at(one, key)) if one else 0
            last = chain.index(*self._at(other, key)) if other else len(chain) - 1
            found.update(chain[first : last + 1])
        return sorted(found)

    def before(self, cut: Cut) -> set[int]:
        """Return the ids of the segments that are completely before a cut that covers all keys."""
        kept = set[int]()
        for key, chain in self._chains():
            (first,) = self._at(cut, key)
            kept.update(chain[chain.index(first) :])
        return self.segments().keys() - kept

    def latest(self, cuts: Iterable[Cut]) -> dict[int, int]:
        """Return the smallest cut that is after all of these.

        A key that is in no cut is at the head of the stream.
        """
        places = [self.head, *cuts]
        found = dict[int, int]()
        for key, chain in self._chains():
            ends = [(chain.index(i), cut[i]) for cut in places for i in self._at(cut, key) if i in chain]
            index, offset = max(ends)
            found[chain[index]] = max(offset, found.get(chain[index], 0))
        return found

    def _chains(self) -> Iterator[tuple[float, list[int]]]:
        """Yield a key of each part of the key space that was never split.

        Each key comes with the segments that have had it, in order.
        """
        bounds = sorted({bound for each in self.segments().values() for bound in (each.low, each.high)})
        for low, high in pairwise(bounds):
            if high - low > _TOLERANCE:
                key = (low + high) / 2
                owners = (each.id for epoch in self.epochs for each in epoch.segments if each.low <= key < each.high)
                yield key, list(dict.fromkeys(owners))

    def _at(self, cut: Cut, key: float) -> list[int]:
        known = self.segments()
        return [i for i in cut if i in known and known[i].low <= key < known[i].high]


def _overlap(one: SegmentRange, other: SegmentRange) -> bool:
    return one.low < other.high and other.low < one.high


def _same(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) <= _TOLERANCE and abs(one[1] - other[1]) <= _TOLERANCE


def _joined(ranges: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + _TOLERANCE:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
