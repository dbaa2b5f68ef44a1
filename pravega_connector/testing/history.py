"""The epochs of a stream: which segments took which routing keys when, and what follows from that for stream cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pravega_connector.wire import SegmentRange, segment_id, segment_number

# Key ranges that adjoin may differ by this much (StreamMetadataStore's check before a scaling).
_TOLERANCE: Final = 1e-9

Cut = Mapping[int, int]


def even_ranges(count: int) -> list[tuple[float, float]]:
    """So many key ranges of one size."""
    return list(pairwise(i / count for i in range(count + 1)))


@dataclass(frozen=True, slots=True)
class Epoch:
    """The segments between two scalings.

    ``reference`` is the epoch of which this one is a copy, its own number otherwise: a transaction that is committed
    after a scaling gets a copy of its own epoch, and the stream goes on with a copy of the present one.
    """

    number: int
    reference: int
    segments: tuple[SegmentRange, ...]

    def by_number(self, number: int) -> SegmentRange:
        """Segment of a number. Raises StopIteration."""
        return next(segment for segment in self.segments if segment_number(segment.id) == number)


class StreamHistory:
    """Epochs of one stream, from its creation on. It knows offsets only from the cuts that it is asked about."""

    def __init__(self, segments: int, first_number: int = 0) -> None:
        """``first_number`` is that of the first segment: a stream that is made again goes on counting."""
        ranges = even_ranges(segments)
        first = tuple(SegmentRange(segment_id(first_number + i, 0), *keys) for i, keys in enumerate(ranges))
        self.epochs = [Epoch(0, 0, first)]
        self.next_number = first_number + segments
        self.sealed = False
        self.head: dict[int, int] = dict.fromkeys((segment.id for segment in first), 0)

    @property
    def active(self) -> Epoch:
        """The last epoch."""
        return self.epochs[-1]

    @property
    def current(self) -> tuple[SegmentRange, ...]:
        """Segments that take events now; none of a sealed stream."""
        return () if self.sealed else self.active.segments

    def segments(self) -> dict[int, SegmentRange]:
        """All segments that there ever were, by id."""
        return {segment.id: segment for epoch in self.epochs for segment in epoch.segments}

    # ---- scaling ----

    def can_scale(self, seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> bool:
        """Whether the ranges cover just what the segments to seal, which are current ones, do."""
        current = {segment.id: (segment.low, segment.high) for segment in self.active.segments}
        if not seal or not ranges or len(set(seal)) != len(seal) or not all(i in current for i in seal):
            return False
        old, new = _joined(current[i] for i in seal), _joined(ranges)
        overlap = any(one[1] > other[0] + _TOLERANCE for one, other in pairwise(sorted(ranges)))
        return not overlap and len(old) == len(new) and all(map(_same, old, new))

    def scale(self, seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> Epoch:
        """Begin an epoch in which other segments have the keys of those to seal."""
        number = self.active.number + 1
        made = [SegmentRange(segment_id(self.next_number + i, number), *keys) for i, keys in enumerate(ranges)]
        self.next_number += len(made)
        kept = [segment for segment in self.active.segments if segment.id not in seal]
        return self._begin(number, number, [*kept, *made])

    def copy(self, reference: int) -> Epoch:
        """Begin an epoch with the segments of an earlier one: their numbers and keys, other ids."""
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
        """Segments that follow one, each with all that it follows; none for one that never was."""
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
        """Whether all segments of a cut are this stream's."""
        return cut.keys() <= self.segments().keys()

    def covers(self, cut: Cut) -> bool:
        """Whether the segments of a cut cover every routing key once."""
        return self.knows(cut) and all(len(self._at(cut, key)) == 1 for key, _ in self._chains())

    def precedes(self, one: Cut, other: Cut) -> bool:
        """Whether a cut that covers all keys lies nowhere behind another one that does."""
        for key, chain in self._chains():
            (first,), (last,) = self._at(one, key), self._at(other, key)
            if (chain.index(first), one[first]) > (chain.index(last), other[last]):
                return False
        return True

    def between(self, one: Cut, other: Cut) -> list[int]:
        """Ids of the segments from one cut to the other, theirs included. Raises ValueError unless it precedes it.

        No cut at all is the first segments, or the present ones.
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
        """Ids of the segments that lie wholly before a cut that covers all keys."""
        kept = set[int]()
        for key, chain in self._chains():
            (first,) = self._at(cut, key)
            kept.update(chain[chain.index(first) :])
        return self.segments().keys() - kept

    def latest(self, cuts: Iterable[Cut]) -> dict[int, int]:
        """The least cut that lies behind all of these; a key that none of them has is at its head."""
        places = [self.head, *cuts]
        found = dict[int, int]()
        for key, chain in self._chains():
            ends = [(chain.index(i), cut[i]) for cut in places for i in self._at(cut, key) if i in chain]
            index, offset = max(ends)
            found[chain[index]] = max(offset, found.get(chain[index], 0))
        return found

    def _chains(self) -> Iterator[tuple[float, list[int]]]:
        """A key of each part of the key space that was never split, with the segments that have had it, in order."""
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
