"""From segments to their successors: when a reader may continue, and what its position is then."""

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.core.values import Successor
from pravega_connector.errors import MalformedStreamCutError
from pravega_connector.stores.segments import Lineage
from pravega_connector.wire import SegmentRange, StreamCut, StreamName, segment_id

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


def test_segments_of_one_scaling_that_share_nothing_continue_alone():
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


# ---- one routing key -------------------------------------------------------------------------------------------------

# Bounds of segments are multiples of an eighth. A scaling seals segments between two bounds, and divides their part of
# the key line at some of the bounds within.
EIGHTHS = st.integers(0, 8)
SCALINGS = st.lists(st.tuples(EIGHTHS, EIGHTHS, st.sets(EIGHTHS)), max_size=6)


class Epochs:
    """Segments of each epoch, as a controller answers."""

    def __init__(self, scalings):
        self.epochs = [[SegmentRange(segment_id(n, 0), n / 2, n / 2 + 0.5) for n in range(2)]]
        self.followers = {}
        self.numbers = itertools.count(2)
        for first, last, within in scalings:
            self.scale(min(first, last) / 8, max(first, last) / 8, [each / 8 for each in within])

    def scale(self, low, high, within):
        current = self.epochs[-1]
        sealed = [each for each in current if low <= each.low and each.high <= high]
        if not sealed:
            return
        low, high = sealed[0].low, sealed[-1].high
        bounds = [low, *sorted(each for each in within if low < each < high), high]
        epoch = len(self.epochs)
        new = [SegmentRange(segment_id(next(self.numbers), epoch), a, b) for a, b in itertools.pairwise(bounds)]
        for old in sealed:
            self.followers[old.id] = [
                Successor(each, tuple(o.id for o in sealed if o.low < each.high and each.low < o.high))
                for each in new
                if each.low < old.high and old.low < each.high
            ]
        left = [each for each in current if each not in sealed]
        self.epochs.append(sorted([*left, *new], key=lambda each: each.low))

    def epoch_segments(self, stream, epoch):
        return self.epochs[epoch]

    def successors(self, stream, segment):
        return self.followers.get(segment, [])

    def segments_between(self, start, end):
        found, frontier = set(), list(start.positions)
        while frontier:
            found.add(segment := frontier.pop())
            frontier += [] if segment in end.positions else [each.range.id for each in self.successors(STREAM, segment)]
        return sorted(found)

    def owners(self, key):
        """The segments that own the key, in order."""
        found = [each.id for ranges in self.epochs for each in ranges if each.low <= key < each.high]
        return list(dict.fromkeys(found))

    def bounds(self, segments):
        ranges = {each.id: each for of_epoch in self.epochs for each in of_epoch}
        return sorted((ranges[each].low, ranges[each].high) for each in segments)


@given(SCALINGS, st.floats(0, 1, exclude_max=True))
def test_the_segments_of_a_key_follow_each_other_and_the_position_stays_a_valid_cut(scalings, key):
    epochs = Epochs(scalings)
    lineage = Lineage(SimpleNamespace(controller=epochs), STREAM, key)
    positions = {each.id: 7 for each in epochs.epochs[0]}
    (owner,) = lineage.included(StreamCut(STREAM, positions))
    read, finished = [owner], set()
    while True:
        finished.add(owner)
        started = lineage.advance(positions, finished)
        bounds = epochs.bounds(positions)
        assert [0.0, *(high for _, high in bounds)] == [*(low for low, _ in bounds), 1.0]
        if not started:
            break
        (owner,) = started
        assert positions[owner] == 0
        assert lineage.included(StreamCut(STREAM, positions)) == [owner]
        read.append(owner)
    assert read == epochs.owners(key)
    ends = [{each.id: 9 for each in ranges} for ranges in (epochs.epochs[0], epochs.epochs[-1])]
    head, tail = (StreamCut(STREAM, each) for each in ends)
    assert lineage.between(head, tail) == read
    assert lineage.between(tail, tail) == read[-1:]


def test_positions_in_segments_of_other_keys_stay_as_long_as_they_can():
    epochs = Epochs([(4, 8, {6}), (0, 4, {2}), (2, 6, set())])
    lineage = Lineage(SimpleNamespace(controller=epochs), STREAM, 0.3)
    first, second = (each.id for each in epochs.epochs[0])
    positions = {first: 100, second: 50}
    (part,) = lineage.advance(positions, {first})
    assert positions == {part: 0, second: 50, part - 1: 0}
    (merged,) = lineage.advance(positions, {first, part})  # with a part of the second segment
    assert epochs.bounds(positions) == [(0.0, 0.25), (0.25, 0.75), (0.75, 1.0)]
    assert (positions[merged], second in positions) == (0, False)


def test_a_cut_in_which_no_segment_or_two_own_the_key():
    epochs = Epochs([(0, 4, {2})])
    lineage = Lineage(SimpleNamespace(controller=epochs), STREAM, 0.3)
    for ids in ([1], [0, segment_id(2, 1), segment_id(3, 1)]):
        with pytest.raises(MalformedStreamCutError, match="does not cover"):
            lineage.included(StreamCut(STREAM, dict.fromkeys(ids, 0)))
    with pytest.raises(MalformedStreamCutError, match=r"no segment s/t/9\.#epoch\.0"):
        lineage.range_of(9)
