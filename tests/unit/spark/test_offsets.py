"""The offset's JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_connector.errors import ConfigError
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.rows.offsets import Offset, from_offset
from pravega_connector.spark.source.tasks import shared_tasks
from pravega_connector.wire import StreamCut, StreamName, segment_id

words = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
names = st.builds(StreamName, words, words)
ids = st.builds(segment_id, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
positions = st.dictionaries(ids, st.integers(0, 2**62), min_size=1)
cuts = st.builds(StreamCut, names, positions)


@given(st.lists(cuts, max_size=4, unique_by=lambda cut: cut.stream))
def test_round_trip_through_text(several: list[StreamCut]):
    by_stream = {cut.stream: cut for cut in several}
    assert from_offset(json.loads(json.dumps(Offset(by_stream).to_json()))) == by_stream


@given(cuts)
def test_the_same_position_is_always_the_same_text(cut: StreamCut):
    turned = StreamCut(cut.stream, dict(reversed(cut.positions.items())))
    text = json.dumps(Offset({cut.stream: cut}).to_json())
    assert json.dumps(Offset({cut.stream: turned}).to_json()) == text
    assert text == json.dumps(json.loads(text), sort_keys=True)


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"version": 2, "streams": {}},
        {"version": 1, "streams": {}, "from": {"no-slash": {}}},
        {"version": 1, "streams": {}, "parts": {"a/b": {"0.#epoch.0": 5}}},
        {"version": 1, "streams": {}, "tasks": {}},
        {"version": 1},
        {"version": 1, "streams": {"no-slash": {}}},
        {"version": 1, "streams": {"a/b": {"x": 1}}},
        {"version": 1, "streams": {"a/b": {"0.#epoch.0": "x"}}},
        {"version": 1, "streams": {"a/b": {"0.#epoch.0": -5}}},
        {"version": 1, "streams": []},
    ],
)
def test_refuses_what_it_did_not_write(offset: dict[str, object]):
    with pytest.raises(ConfigError, match="checkpoint"):
        from_offset(offset)


offsets = st.builds(
    lambda several, begins, places: Offset(
        {cut.stream: cut for cut in several},
        {cut.stream: cut for cut in several[: len(begins)]},
        {cut.stream: {i: tuple(places) for i in cut.positions} for cut in several if places},
    ),
    st.lists(cuts, max_size=4, unique_by=lambda cut: cut.stream),
    st.lists(st.none(), max_size=2),
    st.lists(st.integers(1, 2**40), unique=True, max_size=3).map(sorted),
)


@given(offsets)
def test_what_batches_begin_with_and_how_they_are_divided_comes_back(offset: Offset):
    value = offset.to_json()
    assert Offset.from_json(json.loads(json.dumps(value))) == offset
    assert json.dumps(value, sort_keys=True) == json.dumps(json.loads(json.dumps(value)), sort_keys=True)
    assert value["version"] == 1


A, B = StreamName("s", "a"), StreamName("s", "b")


def read(start: Offset, end: Offset) -> list[tuple[str, int, int, int]]:
    return [(p.stream.stream, p.segment_id, p.start, p.end) for p in end.slices_from(start)]


def test_a_batch_reads_from_one_offset_to_the_next():
    start = Offset({A: StreamCut(A, {0: 10, 1: 5})})
    end = Offset({A: StreamCut(A, {0: 30, 2: 7, 1: 5})})
    assert read(start, end) == [("a", 0, 10, 30), ("a", 2, 0, 7)]
    assert read(end, end) == []


def test_a_stream_that_comes_later_or_lost_data_is_read_from_where_the_batch_says():
    start = Offset({A: StreamCut(A, {0: 10})})
    end = Offset(
        {A: StreamCut(A, {0: 90}), B: StreamCut(B, {0: 50})}, {A: StreamCut(A, {0: 60}), B: StreamCut(B, {0: 20})}
    )
    assert read(start, end) == [("a", 0, 60, 90), ("b", 0, 20, 50)]


def test_divided_segments_are_divided_where_the_offset_says():
    start = Offset({A: StreamCut(A, {0: 10})})
    end = Offset({A: StreamCut(A, {0: 90, 1: 8})}, {}, {A: {0: (30, 50)}})
    assert read(start, end) == [("a", 0, 10, 30), ("a", 0, 30, 50), ("a", 0, 50, 90), ("a", 1, 0, 8)]


def tasks(sizes: list[int], task_bytes: int) -> list[list[int]]:
    slices = [SegmentSlice(A, number, 100, 100 + size) for number, size in enumerate(sizes)]
    found = shared_tasks(slices, task_bytes)
    assert [piece for task in found for piece in task] == slices
    return [[piece.segment_id for piece in task] for task in found]


KIB = 1024


def test_segments_with_little_to_read_share_a_task():
    assert tasks([50] * 3, 256 * KIB) == [[0, 1, 2]]
    assert tasks([50] * 3, 0) == [[0], [1], [2]]
    assert tasks([], 256 * KIB) == []
    # Up to the bytes, each segment with some for being asked for.
    assert tasks([100 * KIB, 100 * KIB, 100 * KIB, 10], 256 * KIB) == [[0, 1], [2, 3]]
    assert [len(task) for task in tasks([0] * 40, 256 * KIB)] == [16, 16, 8]
    # One that is large has its own, and its neighbours stay where they are.
    assert tasks([10, 10, 10**9, 10, 10], 256 * KIB) == [[0, 1], [2], [3, 4]]
    assert tasks([10**9, 10**9], 256 * KIB) == [[0], [1]]


def test_whether_segments_share_tasks_is_in_the_offset_of_several():
    two, one = {A: StreamCut(A, {0: 30, 1: 7})}, {A: StreamCut(A, {0: 30})}
    value = Offset(two, task_bytes=4096).to_json()
    assert value == {"streams": {"s/a": {"0.#epoch.0": 30, "1.#epoch.0": 7}}, "tasks": 4096, "version": 1}
    assert Offset.from_json(value) == Offset(two, task_bytes=4096)
    assert Offset(one, task_bytes=4096).to_json().keys() == {"streams", "version"}


def test_an_offset_of_streams_alone():
    value = {"streams": {"s/a": {"0.#epoch.0": 12, "3.#epoch.1": 4}}, "version": 1}
    assert Offset.from_json(value).cuts == {A: StreamCut(A, {0: 12, (1 << 32) + 3: 4})}
    assert Offset.from_json(value).to_json() == value
