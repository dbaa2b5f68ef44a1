"""Order of a mirror's events per routing key, for random scalings of both streams."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.operations.mirror.order import Ranges, affected, is_aligned, overlap, point, scalings
from pravega_connector.wire import SegmentRange

Plan = Callable[[Sequence[SegmentRange], Sequence[SegmentRange], Sequence[SegmentRange]], list[Ranges]]
#: Keys of the events, as positions in the key space.
KEYS = [(number + 0.5) / 24 for number in range(24)]


class Stream:
    """Segments of a stream, and the order in which readers read them."""

    def __init__(self, ranges: Ranges) -> None:
        self.all = [SegmentRange(number, low, high) for number, (low, high) in enumerate(ranges)]
        self.current = list(self.all)
        self.before: dict[int, set[int]] = {segment.id: set() for segment in self.all}
        """All segments that precede a segment, by id."""

    def scale(self, sealed: Sequence[SegmentRange], ranges: Ranges) -> list[SegmentRange]:
        new = [SegmentRange(len(self.all) + number, low, high) for number, (low, high) in enumerate(ranges)]
        for segment in new:
            direct = [old for old in sealed if overlap(old, segment)]
            self.before[segment.id] = set().union(*({old.id} | self.before[old.id] for old in direct))
        self.all += new
        self.current = [segment for segment in self.current if segment not in sealed] + new
        return new

    def scale_somehow(self, chance: random.Random) -> tuple[list[SegmentRange], list[SegmentRange]]:
        """Replace some adjacent segments by others."""
        ordered = sorted(self.current, key=lambda segment: segment.low)
        first = chance.randrange(len(ordered))
        sealed = ordered[first : first + chance.randint(1, 3)]
        low, high = sealed[0].low, sealed[-1].high
        bounds = sorted({low, high, *(chance.uniform(low, high) for _ in range(chance.randint(0, 2)))})
        return sealed, self.scale(sealed, list(itertools.pairwise(bounds)))

    def owner(self, at: float) -> SegmentRange:
        return next(segment for segment in self.current if segment.low <= at < segment.high)


def out_of_order(seed: int, plan: Plan, *, others: float) -> int:
    """Mirror a stream that is scaled at random, and return the number of events that readers may read too early.

    Before each step, another client scales the destination with the probability ``others``.
    """
    chance = random.Random(seed)
    source = Stream([(0.0, 0.5), (0.5, 1.0)])
    destination = Stream([(0.0, 1.0)] if chance.random() < 0.5 else [(0.0, 0.3), (0.3, 1.0)])
    last: dict[float, tuple[int, int]] = {}
    wrong = written = 0

    def write(segment: SegmentRange) -> None:
        nonlocal wrong, written
        if chance.random() < others:
            destination.scale_somehow(chance)
        into = destination.owner(point(segment)).id
        for key in KEYS:
            if segment.low <= key < segment.high:
                written += 1
                before, number = last.get(key, (into, 0))
                wrong += before != into and before not in destination.before[into]
                assert number < written
                last[key] = into, written

    def pass_barrier(before: Sequence[SegmentRange], after: Sequence[SegmentRange]) -> None:
        while ranges := plan(destination.current, before, after):
            destination.scale(affected(destination.current, after), ranges[0])
            if len(ranges) == 1:
                return
            if chance.random() < others:
                destination.scale_somehow(chance)
            before = []

    pass_barrier([], source.current)
    for _ in range(12):
        for segment in chance.sample(source.current, len(source.current)):
            write(segment)
        sealed, begun = source.scale_somehow(chance)
        groups = groups_of(sealed, begun)
        for before, after in groups:
            pass_barrier(before, after)
    return wrong


def groups_of(
    sealed: Sequence[SegmentRange], begun: Sequence[SegmentRange]
) -> list[tuple[list[SegmentRange], list[SegmentRange]]]:
    """Return the parts of a scaling that have no segment in common."""
    left, groups = [*sealed, *begun], []
    while left:
        group = [left.pop(0)]
        while more := [each for each in left if any(overlap(each, other) for other in group)]:
            group += more
            left = [each for each in left if each not in more]
        groups.append(([each for each in group if each in sealed], [each for each in group if each in begun]))
    return groups


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 0.6]))
def test_each_key_stays_in_order(seed: int, others: float) -> None:
    assert out_of_order(seed, scalings, others=others) == 0


def test_without_the_merge_it_would_not() -> None:
    def only_ranges(*given: Sequence[SegmentRange]) -> list[Ranges]:
        return scalings(*given)[-1:]

    assert sum(out_of_order(seed, only_ranges, others=0.6) for seed in range(20))


def test_without_barriers_it_would_not() -> None:
    first: list[int] = []

    def once(*given: Sequence[SegmentRange]) -> list[Ranges]:
        first.append(len(given[1]))
        return scalings(*given) if len(first) == 1 else []

    assert sum(out_of_order(seed, once, others=0.0) for seed in range(20))


def segments(*bounds: float) -> list[SegmentRange]:
    return [SegmentRange(number, low, high) for number, (low, high) in enumerate(itertools.pairwise(bounds))]


@pytest.mark.parametrize(
    ("current", "before", "after", "plan"),
    [
        # The beginning.
        ((0.0, 1.0), (), (0.0, 0.5, 1.0), [[(0.0, 0.5), (0.5, 1.0)]]),
        ((0.0, 0.5, 1.0), (), (0.0, 0.5, 1.0), []),
        # The destination has the ranges of the source.
        ((0.0, 1.0), (0.0, 1.0), (0.0, 0.5, 1.0), [[(0.0, 0.5), (0.5, 1.0)]]),
        ((0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (0.0, 1.0), [[(0.0, 1.0)]]),
        ((0.0, 0.5, 1.0), (0.5, 1.0), (0.5, 0.75, 1.0), [[(0.5, 0.75), (0.75, 1.0)]]),
        ((0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (0.0, 0.2, 0.8, 1.0), [[(0.0, 0.2), (0.2, 0.8), (0.8, 1.0)]]),
        # A source segment was sealed and replaced by one with the same range.
        ((0.0, 0.5, 1.0), (0.0, 0.5), (0.0, 0.5), []),
        # Another client has split the destination.
        ((0.0, 0.5, 1.0), (0.0, 1.0), (0.0, 0.5, 1.0), [[(0.0, 1.0)], [(0.0, 0.5), (0.5, 1.0)]]),
        # A segment of the destination has more keys than the scaled part of the source.
        ((0.0, 1.0), (0.25, 0.5), (0.25, 0.3, 0.5), [[(0.0, 0.25), (0.25, 0.3), (0.3, 0.5), (0.5, 1.0)]]),
        # Clusters round bounds differently.
        ((0.0, 1 / 3 + 1e-12, 1.0), (), (0.0, 1 / 3, 1.0), []),
    ],
)
def test_the_scalings_of_a_barrier(
    current: tuple[float, ...], before: tuple[float, ...], after: tuple[float, ...], plan: list[Ranges]
) -> None:
    assert scalings(segments(*current), segments(*before), segments(*after)) == plan


def test_aligned_streams_have_the_same_ranges() -> None:
    assert is_aligned(segments(0.0, 0.25, 0.5, 1.0), segments(0.25, 0.5, 1.0))
    assert not is_aligned(segments(0.0, 0.3, 1.0), segments(0.0, 0.5, 1.0))
