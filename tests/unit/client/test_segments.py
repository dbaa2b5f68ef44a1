"""From segments to their successors: when a reader may go on, and what its position is then."""

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.core.values import Successor
from pravega_connector.stores.segments import Lineage
from pravega_connector.wire import SegmentRange, StreamName

STREAM = StreamName("s", "t")


class History:
    """Epochs of key ranges; each scaling replaces some segments."""

    def __init__(self, segments=1):
        self.asked = []
        self.current = {i: (i / segments, (i + 1) / segments) for i in range(segments)}
        self.ranges = dict(self.current)
        self.followers = {}

    def scale(self, seal, *bounds):
        first = len(self.ranges)
        new = {first + i: bounds[i : i + 2] for i in range(len(bounds) - 1)}
        old = {i: self.current.pop(i) for i in seal}
        for i, (low, high) in old.items():
            self.followers[i] = [
                Successor(SegmentRange(n, a, b), tuple(o for o, (c, d) in old.items() if c < b and a < d))
                for n, (a, b) in new.items()
                if a < high and low < b
            ]
        self.current |= new
        self.ranges |= new
        return sorted(new)

    def successors(self, stream, segment_id, *, deadline=None):
        self.asked.append(segment_id)
        return self.followers.get(segment_id, [])

    def lineage(self):
        return Lineage(SimpleNamespace(controller=self), STREAM)


def test_a_split_replaces_the_segment_by_all_its_parts():
    history = History()
    new = history.scale([0], 0.0, 0.3, 0.6, 1.0)
    positions = {0: 500}
    assert history.lineage().advance(positions, {0}) == new
    assert positions == dict.fromkeys(new, 0)


def test_an_open_segment_stays():
    history = History(2)
    positions = {0: 5, 1: 6}
    assert history.lineage().advance(positions, set()) == []
    assert history.lineage().advance(positions, {0}) == []
    assert positions == {0: 5, 1: 6}


def test_a_merge_waits_for_its_siblings():
    history = History(2)
    new = history.scale([0, 1], 0.0, 1.0)
    lineage, positions = history.lineage(), {0: 5, 1: 6}
    assert lineage.advance(positions, {1}) == []
    assert positions == {0: 5, 1: 6}
    assert lineage.advance(positions, {0, 1}) == new
    assert positions == {new[0]: 0}


def test_what_one_scaling_ties_together_is_replaced_as_a_whole():
    history = History(3)
    # 0 and 1 share a successor, 1 and 2 another one: no cut is valid with only some of them replaced.
    new = history.scale([0, 1, 2], 0.0, 0.5, 1.0)
    lineage, positions = history.lineage(), {0: 1, 1: 2, 2: 3}
    for finished in ({0}, {0, 1}, {1, 2}, {0, 2}):
        assert lineage.advance(positions, finished) == []
        assert positions == {0: 1, 1: 2, 2: 3}
    assert lineage.advance(positions, {0, 1, 2}) == new
    assert positions == dict.fromkeys(new, 0)


def test_segments_of_one_scaling_that_share_nothing_go_on_alone():
    history = History(2)
    first, second, third, fourth = history.scale([0, 1], 0.0, 0.25, 0.5, 0.75, 1.0)
    lineage, positions = history.lineage(), {0: 1, 1: 2}
    assert lineage.advance(positions, {0}) == [first, second]
    assert positions == {1: 2, first: 0, second: 0}
    assert lineage.advance(positions, {0, 1}) == [third, fourth]


def test_a_chain_is_gone_along_one_link_at_a_time():
    history = History()
    (middle,) = history.scale([0], 0.0, 1.0)
    (last,) = history.scale([middle], 0.0, 1.0)
    lineage, positions = history.lineage(), {0: 9}
    assert lineage.advance(positions, {0}) == [middle]
    assert lineage.advance(positions, {0, middle}) == [last]
    assert positions == {last: 0}


def test_the_last_segments_of_a_sealed_stream_stay_where_they_ended():
    history = History(2)
    positions = {0: 5, 1: 6}
    assert history.lineage().advance(positions, {0, 1}) == []
    assert positions == {0: 5, 1: 6}


def test_successors_are_asked_for_once_they_are_known_and_again_until_then():
    history = History()
    lineage = history.lineage()
    assert lineage.successors(0) == {}
    (new,) = history.scale([0], 0.0, 1.0)
    assert lineage.successors(0) == lineage.successors(0) == {new: (0,)}
    assert history.asked == [0, 0]


@given(st.data())
def test_positions_stay_a_valid_cut_and_every_segment_is_started_once_after_all_its_predecessors(data):
    history = History(data.draw(st.integers(1, 3)))
    for _ in range(data.draw(st.integers(1, 4))):
        ordered = sorted(history.current, key=history.current.get)
        low = data.draw(st.integers(0, len(ordered) - 1))
        high = data.draw(st.integers(low, len(ordered) - 1))
        seal = ordered[low : high + 1]
        begin, end = history.current[seal[0]][0], history.current[seal[-1]][1]
        inner = data.draw(st.lists(st.floats(0.01, 0.99), max_size=3, unique=True))
        history.scale(seal, begin, *sorted(begin + x * (end - begin) for x in inner), end)
    lineage = history.lineage()
    positions = dict.fromkeys(first_epoch(history), 0)
    started, finished = set(positions), set()
    while True:
        readable = [i for i in positions if i not in finished and i in history.followers]
        if not readable:
            break
        finished.add(data.draw(st.sampled_from(readable)))
        for new in lineage.advance(positions, finished):
            assert new not in started
            started.add(new)
            predecessors = {i for i, after in history.followers.items() if any(s.range.id == new for s in after)}
            assert predecessors <= finished
        ranges = sorted(history.ranges[i] for i in positions)
        assert ranges[0][0] == 0.0
        assert ranges[-1][1] == 1.0
        assert all(one[1] == pytest.approx(two[0]) for one, two in itertools.pairwise(ranges))
    assert set(positions) == set(history.current)


def first_epoch(history):
    followers = {s.range.id for after in history.followers.values() for s in after}
    return [i for i in history.ranges if i not in followers]
