"""The key space among segments, through splits and merges."""

import numpy as np
import pytest

from pravega_connector.core.values import Successor
from pravega_connector.errors import ProtocolError
from pravega_connector.wire import SegmentRange, StreamName
from pravega_connector.writer.routing import Routes

STREAM = StreamName("s", "t")


def routes(*ranges):
    return Routes(STREAM, [SegmentRange(*r) for r in ranges])


def follows(number, low, high, *predecessors):
    return Successor(SegmentRange(number, low, high), predecessors)


def table(r):
    """Target of positions on, before and after each eighth of the key space."""
    return [r.target(i / 8) for i in range(8)]


def test_a_position_belongs_to_the_range_that_begins_at_or_before_it():
    r = routes((1, 0.5, 1.0), (0, 0.0, 0.5))
    positions = np.array([0.0, np.nextafter(0.5, 0), 0.5, np.nextafter(1.0, 0)])
    assert r.targets(positions).tolist() == [0, 0, 1, 1]
    assert [r.target(p) for p in positions] == [0, 0, 1, 1]


def test_one_segment_takes_everything():
    assert routes((7, 0.0, 1.0)).targets(np.array([0.0, 0.99])).tolist() == [7, 7]


def test_no_position_is_an_empty_answer():
    assert routes((7, 0.0, 0.5), (8, 0.5, 1.0)).targets(np.array([])).tolist() == []


@pytest.mark.parametrize("ranges", [[], [(0, 0.5, 1.0)]])
def test_segments_that_leave_the_beginning_open_are_refused(ranges):
    with pytest.raises(ProtocolError, match=r"s/t.*key space"):
        routes(*ranges)


def test_a_split_goes_to_its_parts():
    r = routes((0, 0.0, 0.5), (1, 0.5, 1.0))
    r.replace(0, [follows(2, 0.0, 0.25, 0), follows(3, 0.25, 0.5, 0)])
    assert table(r) == [2, 2, 3, 3, 1, 1, 1, 1]
    assert [r.is_current(i) for i in range(4)] == [False, True, True, True]


def test_of_a_merge_only_the_sealed_part_moves_until_the_other_is_sealed_too():
    r = routes((0, 0.0, 0.5), (1, 0.5, 1.0))
    merged = [follows(2, 0.0, 1.0, 0, 1)]
    r.replace(1, merged)
    assert table(r) == [0, 0, 0, 0, 2, 2, 2, 2]
    r.replace(0, merged)
    assert table(r) == [2] * 8
    assert not r.is_current(0)
    assert not r.is_current(1)


def test_successors_that_cross_the_old_bounds_take_only_what_was_sealed():
    r = routes((0, 0.0, 0.5), (1, 0.5, 1.0))
    r.replace(0, [follows(2, 0.0, 0.25, 0), follows(3, 0.25, 0.75, 0, 1)])
    assert table(r) == [2, 2, 3, 3, 1, 1, 1, 1]
    r.replace(1, [follows(3, 0.25, 0.75, 0, 1), follows(4, 0.75, 1.0, 1)])
    assert table(r) == [2, 2, 3, 3, 3, 3, 4, 4]


def test_a_merged_segment_can_be_split_again():
    r = routes((0, 0.0, 0.5), (1, 0.5, 1.0))
    for sealed in (0, 1):
        r.replace(sealed, [follows(2, 0.0, 1.0, 0, 1)])
    r.replace(2, [follows(3, 0.0, 0.25, 2), follows(4, 0.25, 1.0, 2)])
    assert table(r) == [3, 3, 4, 4, 4, 4, 4, 4]


def test_replacing_what_was_replaced_changes_nothing():
    r = routes((0, 0.0, 1.0))
    r.replace(0, [follows(1, 0.0, 1.0, 0)])
    r.replace(0, [follows(1, 0.0, 1.0, 0)])
    assert table(r) == [1] * 8


def test_a_table_taken_before_a_change_stays_whole():
    r = routes((0, 0.0, 0.5), (1, 0.5, 1.0))
    before = r.targets(np.array([0.1, 0.9]))
    r.replace(0, [follows(2, 0.0, 0.5, 0)])
    assert before.tolist() == [0, 1]
    assert r.targets(np.array([0.1, 0.9])).tolist() == [2, 1]
