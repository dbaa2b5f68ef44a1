"""Planning micro-batches, against a stream that lives in memory."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_connector.client import StreamCut, StreamName
from pravega_connector.core.values import Successor
from pravega_connector.errors import DataLossError
from pravega_connector.rows.offsets import slices_of
from pravega_connector.spark.source.offset_planner import OPEN_END, StreamPlanner
from pravega_connector.stores.segment_stores import SegmentInfo
from pravega_connector.wire import SegmentRange, segment_id

NAME = StreamName("s", "t")


@dataclass
class FakeStream:
    """Segments with lengths and successors: the answers that a controller and a store would give."""

    ranges: dict[int, SegmentRange] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    next: dict[int, list[int]] = field(default_factory=dict)
    before: dict[int, tuple[int, ...]] = field(default_factory=dict)
    epoch: int = 0
    number: int = 0

    def grow(self, low: float, high: float) -> int:
        new = segment_id(self.number, self.epoch)
        self.number += 1
        self.ranges[new] = SegmentRange(new, low, high)
        self.lengths[new] = 0
        return new

    def scale(self, sealed: list[int], ranges: list[tuple[float, float]]) -> list[int]:
        self.epoch += 1
        new = [self.grow(*r) for r in ranges]
        for old in sealed:
            low, high = self.ranges[old].low, self.ranges[old].high
            self.next[old] = [n for n in new if self.ranges[n].low < high and low < self.ranges[n].high]
        for n in new:
            self.before[n] = tuple(old for old in sealed if n in self.next[old])
        return new

    @property
    def current(self) -> list[int]:
        return [i for i in self.ranges if i not in self.next]

    def client(self) -> SimpleNamespace:
        def successors(stream: StreamName, segment: int) -> list[Successor]:
            return [Successor(self.ranges[n], self.before[n]) for n in self.next.get(segment, [])]

        def infos(stream: StreamName, ids) -> dict[int, SegmentInfo]:
            return {
                i: SegmentInfo(
                    id=i,
                    exists=i in self.lengths,
                    sealed=i in self.next,
                    start_offset=self.starts.get(i, 0),
                    write_offset=self.lengths.get(i, 0),
                )
                for i in ids
            }

        def between(start: StreamCut, end: StreamCut) -> list[int]:
            found, frontier = set[int](), list(start.positions)
            while frontier:
                found.add(segment := frontier.pop())
                frontier += [] if segment in end.positions else self.next.get(segment, [])
            return sorted(found)

        controller = SimpleNamespace(successors=successors, stream_exists=lambda stream: True, segments_between=between)
        stores = SimpleNamespace(controller=controller, segment_infos=infos)
        return SimpleNamespace(stores=stores, controller=controller)

    def planner(self) -> StreamPlanner:
        # A clock that never stands still: the last segments of a stream are asked for successors each time.
        return StreamPlanner(self.client(), NAME, itertools.count(1, 2).__next__)  # type: ignore[arg-type]


def next_end(planner: StreamPlanner, start: StreamCut) -> StreamCut:
    return StreamCut(NAME, planner.backlog(start).ends)


def cut(positions: dict[int, int]) -> StreamCut:
    return StreamCut(NAME, positions)


def test_reads_what_was_written():
    stream = FakeStream()
    a, b = stream.grow(0, 0.5), stream.grow(0.5, 1)
    stream.lengths |= {a: 100, b: 50}
    planner = stream.planner()
    end = next_end(planner, cut({a: 0, b: 50}))
    assert end == cut({a: 100, b: 50})
    assert [(s.segment_id, s.start, s.end) for s in slices_of(cut({a: 0, b: 50}), end)] == [(a, 0, 100)]
    assert next_end(planner, end) == end


def test_a_successor_waits_until_its_predecessor_is_finished():
    stream = FakeStream()
    a = stream.grow(0, 1)
    stream.lengths[a] = 10
    b, c = stream.scale([a], [(0, 0.5), (0.5, 1)])
    stream.lengths |= {b: 7, c: 8}
    planner = stream.planner()
    first = next_end(planner, cut({a: 0}))
    assert first == cut({a: 10}), "the predecessor alone"
    assert next_end(planner, first) == cut({b: 7, c: 8})


def test_a_merge_waits_for_all_predecessors():
    stream = FakeStream()
    a, b = stream.grow(0, 0.5), stream.grow(0.5, 1)
    stream.lengths |= {a: 10, b: 20}
    (c,) = stream.scale([a, b], [(0, 1)])
    stream.lengths[c] = 5
    planner = stream.planner()
    assert next_end(planner, cut({a: 10, b: 3})) == cut({a: 10, b: 20})
    assert next_end(planner, cut({a: 10, b: 20})) == cut({c: 5})


def test_empty_segments_are_passed_in_one_step():
    stream = FakeStream()
    a = stream.grow(0, 1)
    stream.lengths[a] = 10
    (b,) = stream.scale([a], [(0, 1)])
    c, d = stream.scale([b], [(0, 0.5), (0.5, 1)])
    stream.lengths[d] = 4
    assert next_end(stream.planner(), cut({a: 10})) == cut({c: 0, d: 4})


def test_does_not_go_beyond_the_ceiling():
    stream = FakeStream()
    a = stream.grow(0, 1)
    stream.lengths[a] = 10
    b, c = stream.scale([a], [(0, 0.5), (0.5, 1)])
    stream.lengths |= {b: 7, c: 8}
    inside = stream.planner()
    inside.end_at(cut({a: 0}), cut({a: 6}))
    assert next_end(inside, cut({a: 0})) == cut({a: 6})
    assert next_end(inside, cut({a: 6})) == cut({a: 6})
    whole = stream.planner()
    whole.end_at(cut({a: 0}), cut({b: 7, c: 3}))
    assert next_end(whole, cut({a: 10})) == cut({b: 7, c: 3})
    whole.end_at(cut({a: 0}), cut({a: 10}))
    assert next_end(whole, cut({a: 10})) == cut({a: 10}), "the nearer of two ends counts"


def followed(planner: StreamPlanner, start: StreamCut) -> list[tuple[int, int, int]]:
    return [(piece.segment_id, piece.start, piece.end) for piece in planner.to_follow(planner.backlog(start))]


def test_a_reader_can_follow_all_segments_that_may_get_more():
    stream = FakeStream()
    a, b = stream.grow(0, 0.5), stream.grow(0.5, 1)
    stream.lengths |= {a: 10, b: 20}
    planner = stream.planner()
    assert followed(planner, cut({a: 10, b: 3})) == [(a, 10, OPEN_END), (b, 3, OPEN_END)]
    (c,) = stream.scale([a, b], [(0, 1)])
    assert followed(planner, cut({a: 10, b: 3})) == [(b, 3, OPEN_END)], "a is finished, and c waits for b"
    assert followed(planner, cut({a: 10, b: 20})) == [(c, 0, OPEN_END)]


def test_a_reader_follows_to_the_ceiling():
    stream = FakeStream()
    a, b = stream.grow(0, 0.5), stream.grow(0.5, 1)
    stream.lengths |= {a: 10, b: 20}
    planner = stream.planner()
    planner.end_at(cut({a: 0, b: 0}), cut({a: 10, b: 15}))
    assert followed(planner, cut({a: 0, b: 0})) == [(a, 0, 10), (b, 0, 15)]
    assert followed(planner, cut({a: 10, b: 15})) == []


@pytest.mark.parametrize("how", ["truncated", "deleted"])
def test_lost_data_is_an_error_with_its_place(how: str):
    stream = FakeStream()
    a = stream.grow(0, 1)
    stream.lengths[a] = 100
    if how == "truncated":
        stream.starts[a] = 60
    else:
        del stream.lengths[a]
    with pytest.raises(DataLossError, match=f"s/t, segment {a}, offset 40"):
        next_end(stream.planner(), cut({a: 40}))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_any_history_is_read_once_and_in_order(seed: int):
    """Random writes and scalings between batches: every byte once, predecessors before successors, cuts valid."""
    rng = random.Random(seed)
    stream = FakeStream()
    stream.grow(0, 1)
    planner = stream.planner()
    position = cut({0: 0})
    read: dict[int, int] = {}
    for step in range(60):
        if step < 40:
            for segment in stream.current:
                stream.lengths[segment] += rng.choice((0, 0, 5))
            if rng.random() < 0.4:
                scale_at_random(stream, rng)
        end = next_end(planner, position)
        batch = list(slices_of(position, end))
        segments = {s.segment_id for s in batch}
        for s in batch:
            assert s.start == read.get(s.segment_id, 0)
            read[s.segment_id] = s.end
            assert not segments & set(stream.next.get(s.segment_id, [])), "a segment with its successor"
            assert all(read.get(p, 0) == stream.lengths[p] for p in stream.before.get(s.segment_id, ()))
        assert covers_once(stream, end)
        position = end
    assert all(read.get(i, 0) == length for i, length in stream.lengths.items())


def scale_at_random(stream: FakeStream, rng: random.Random) -> None:
    current = sorted(stream.current, key=lambda i: stream.ranges[i].low)
    at = rng.randrange(len(current))
    sealed = current[at : at + rng.choice((1, 1, 2, 3))]
    low, high = stream.ranges[sealed[0]].low, stream.ranges[sealed[-1]].high
    bounds = sorted({low, high, *(low + (high - low) * rng.choice((0.25, 0.5, 0.75)) for _ in range(rng.randrange(3)))})
    stream.scale(sealed, list(itertools.pairwise(bounds)))


def covers_once(stream: FakeStream, position: StreamCut) -> bool:
    ranges = sorted((stream.ranges[i].low, stream.ranges[i].high) for i in position.positions)
    ends = [0.0] + [high for _, high in ranges]
    return all(low == end for (low, _), end in zip(ranges, ends, strict=False)) and ends[-1] == 1.0
