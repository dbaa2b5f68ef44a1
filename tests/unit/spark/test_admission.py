"""Share of each backlog in one micro-batch: always whole events, always at least one, never more than its limits."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.reader.boundaries import Boundaries, divide
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.spark.source.admission import Admission, Backlog, Limits
from pravega_connector.testing.requests import frame
from pravega_connector.wire import ReadSegment, SegmentRead, StreamName, segment_name
from tests.support.fake_stream import FakeSegmentStore, FakeStream

EVENTS = [[b"%d" % i + bytes(i * 37 % 90) for i in range(60)], [b"x" * 300, b"", b"", b"y" * 5000, b"z"], [b"alone"]]
ENDS = [list(itertools.accumulate(len(frame(event)) for event in events)) for events in EVENTS]
BACKLOG = {number: ends[-1] for number, ends in enumerate(ENDS)}


@pytest.fixture(params=[1, 7, 64, 1 << 20])
def stream(request: pytest.FixtureRequest) -> Iterator[FakeStream]:
    """Three segments of a store that answers in pieces of some bytes, which cut headers anywhere."""
    with FakeSegmentStore() as store:
        made = FakeStream(store, segments=3)
        for number, events in enumerate(EVENTS):
            store.append(made.segment(number), b"".join(map(frame, events)))

        def short(session, read):
            data = bytes(store.segments[read.segment].data[read.offset : read.offset + min(read.length, request.param)])
            session.reply(SegmentRead(read.segment, read.offset, False, False, memoryview(data), read.request_id))

        store.on(ReadSegment, short)
        yield made


@pytest.fixture
def client(stream: FakeStream) -> Iterator[PravegaClient]:
    with stream.client() as opened:
        yield opened


def admission(client: PravegaClient, **limits: int) -> Admission:
    return Admission(Boundaries(client.stores), Limits(**limits))


def admit(at: Admission, stream: FakeStream, position: dict[int, int] | None = None) -> dict[int, int]:
    starts = dict.fromkeys(BACKLOG, 0) if position is None else position
    return at.admit([Backlog(stream.name, starts, BACKLOG)])[stream.name]


def rows_of(ends: dict[int, int]) -> dict[int, int]:
    """Events of each segment up to a boundary, which must be one."""
    assert all(end in [0, *ENDS[number]] for number, end in ends.items())
    return {number: int(np.searchsorted(ENDS[number], end, side="right")) for number, end in ends.items()}


@pytest.mark.parametrize(
    ("most", "rows"),
    [(1, {2: 0, 1: 0, 0: 1}), (3, {2: 1, 0: 1, 1: 1}), (21, {2: 1, 0: 15, 1: 5}), (1000, {2: 1, 0: 60, 1: 5})],
)
def test_what_a_segment_does_not_use_goes_to_others(client, stream, most, rows):
    assert rows_of(admit(admission(client, max_rows=most), stream)) == rows


@pytest.mark.parametrize("most", [1, 50, 400, 3000, 1_000_000])
def test_bytes_are_limited_to_whole_events(client, stream, most):
    at = admission(client, max_bytes=most)
    for _ in range(4):
        ends = admit(at, stream)
        found = rows_of(ends)
        assert sum(found.values()) >= 1
        assert sum(ends.values()) <= most or sum(found.values()) == 1, "a single event may be larger than the limit"
        assert (ends == BACKLOG) is (most == 1_000_000)


def test_both_limits_hold(client, stream):
    assert rows_of(admit(admission(client, max_bytes=1_000_000, max_rows=4), stream)) == {2: 1, 0: 1, 1: 2}
    assert sum(admit(admission(client, max_bytes=60, max_rows=1000), stream).values()) <= 60


@pytest.mark.parametrize("limits", [{"max_rows": 10}, {"max_bytes": 700}, {"max_rows": 1}, {"max_bytes": 1}])
def test_from_batch_to_batch_everything_is_taken_once(client, stream, limits):
    position, at = dict.fromkeys(BACKLOG, 0), admission(client, **limits)
    while position != BACKLOG:
        after = admit(at, stream, position)
        rows = sum(rows_of(after).values()) - sum(rows_of(position).values())
        size = sum(after.values()) - sum(position.values())
        assert 1 <= rows <= limits.get("max_rows", rows)
        assert rows == 1 or size <= limits.get("max_bytes", size)
        position = after
    assert admit(admission(client), stream, position) == BACKLOG


def test_a_limit_too_small_for_all_starves_nobody(client, stream):
    at = admission(client, max_rows=1)
    first = [admit(at, stream) for _ in range(3)]
    assert sorted(max(ends, key=ends.get) for ends in first) == [0, 1, 2]


@pytest.fixture
def many() -> Iterator[tuple[PravegaClient, FakeSegmentStore, list[Backlog]]]:
    """A stream of eight segments and one of a single segment, with 400 events of 92 bytes in each segment."""
    with FakeSegmentStore() as store:
        wide = FakeStream(store, segments=8)
        single = StreamName("scope", "single")
        names = [(wide.name, i) for i in range(8)] + [(single, 0)]
        store.create(segment_name(single, 0))
        for name, i in names:
            store.append(segment_name(name, i), frame(b"x" * 92) * 400)
        with wide.client() as client:
            yield (
                client,
                store,
                [
                    Backlog(name, {i: 0 for n, i in names if n == name}, {i: 40_000 for n, i in names if n == name})
                    for name in (wide.name, single)
                ],
            )


@pytest.mark.parametrize("limits", [{"max_rows": 320}, {"max_bytes": 32_000}])
def test_streams_get_the_same_and_so_do_the_segments_of_each(many, limits):
    client, _, backlogs = many
    wide, single = (sorted(ends.values()) for ends in admission(client, **limits).admit(backlogs).values())
    assert single == [16_000]
    assert sum(wide) == 16_000
    assert set(wide) == {2000}


def test_no_more_is_read_than_the_limit_needs(many):
    client, store, backlogs = many
    at = admission(client, max_bytes=8192)
    position = backlogs
    for _ in range(3):
        ends = at.admit(position)
        position = [Backlog(b.stream, ends[b.stream], b.ends) for b in position]
    read = sum(request.length for request in store.requests if isinstance(request, ReadSegment))
    assert read <= 4 * 8192, "about what was admitted, not the backlog"


def test_of_large_events_only_the_headers_are_read():
    with FakeSegmentStore() as store:
        stream = FakeStream(store)
        events = [bytes(200_000 + i) for i in range(20)]
        store.append(stream.segment(0), b"".join(map(frame, events)))
        ends = list(itertools.accumulate(len(frame(event)) for event in events))
        with stream.client() as client:
            at = Admission(Boundaries(client.stores), Limits(max_rows=15))
            assert at.admit([Backlog(stream.name, {0: 0}, {0: ends[-1]})])[stream.name] == {0: ends[14]}
        read = sum(request.length for request in store.requests if isinstance(request, ReadSegment))
        assert read < 10_000, "3 MB were passed"


def test_known_lengths_spare_the_walk(many):
    client, store, backlogs = many
    boundaries = Boundaries(client.stores)
    at = Admission(boundaries, Limits(max_bytes=20_000))
    boundaries.note(backlogs[1].stream, 0, 19_900)
    assert at.admit(backlogs[1:])[backlogs[1].stream] == {0: 20_000}
    read = sum(request.length for request in store.requests if isinstance(request, ReadSegment))
    assert read <= 4096


@pytest.mark.parametrize("least", [2, 5, 9, 10_000])
def test_slices_are_divided_between_events(client, stream, least):
    slices = [SegmentSlice(stream.name, number, 0, end) for number, end in BACKLOG.items()]
    boundaries = Boundaries(client.stores)
    found = {piece.segment_id: places for piece, places in divide(boundaries, slices, least)}
    for number, places in found.items():
        assert list(places) == sorted(set(places))
        assert set(places) <= set(ENDS[number][:-1])
    parts = len(slices) + sum(map(len, found.values()))
    events = sum(map(len, EVENTS))
    assert parts == events if least == 10_000 else parts >= min(least, 3)
    assert {p.segment_id: places for p, places in divide(boundaries, slices, least)} == found


def test_slices_of_small_events_are_divided_evenly(many):
    client, _, backlogs = many
    piece = SegmentSlice(backlogs[1].stream, 0, 0, 40_000)
    ((_, places),) = divide(Boundaries(client.stores), [piece], 4)
    assert places == (10_000, 20_000, 30_000)
    assert not list(divide(Boundaries(client.stores), [piece], 1))
    assert not list(divide(Boundaries(client.stores), [piece], None))
