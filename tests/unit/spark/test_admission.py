"""What one micro-batch takes of a backlog: always whole events, always at least one, never more than its limits."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from connector.client import PravegaClient
from connector.source._admission import UNLIMITED, Limits, admit
from connector.wire import ReadSegment, SegmentRead
from tests.fake_store import FakeSegmentStore, FakeStream, frame

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


def admitted(client: PravegaClient, stream: FakeStream, **limits: int) -> dict[int, int]:
    return admit(client.stores, stream.name, dict.fromkeys(BACKLOG, 0), BACKLOG, Limits(**limits))


def rows_of(ends: dict[int, int]) -> dict[int, int]:
    """Events of each segment up to a boundary, which must be one."""
    assert all(end in [0, *ENDS[number]] for number, end in ends.items())
    return {number: int(np.searchsorted(ENDS[number], end, side="right")) for number, end in ends.items()}


@pytest.mark.parametrize(
    ("most", "rows"),
    [(1, {2: 1, 1: 0, 0: 0}), (3, {2: 1, 0: 1, 1: 1}), (21, {2: 1, 0: 10, 1: 5}), (1000, {2: 1, 0: 60, 1: 5})],
)
def test_what_a_segment_does_not_use_goes_to_larger_ones(
    client: PravegaClient, stream: FakeStream, most: int, rows: dict[int, int]
):
    assert rows_of(admitted(client, stream, max_rows=most)) == rows


@pytest.mark.parametrize("most", [1, 50, 400, 3000, 1_000_000])
def test_bytes_are_limited_to_whole_events(client: PravegaClient, stream: FakeStream, most: int):
    ends = admitted(client, stream, max_bytes=most)
    found = rows_of(ends)
    assert sum(found.values()) >= 1
    # A segment's first event is taken whatever its size.
    extra = sum(ENDS[number][0] for number, rows in found.items() if rows == 1)
    assert sum(ends.values()) <= most + extra
    assert (ends == BACKLOG) is (most == 1_000_000)


def test_both_limits_hold(client: PravegaClient, stream: FakeStream):
    assert rows_of(admitted(client, stream, max_bytes=1_000_000, max_rows=4)) == {2: 1, 0: 1, 1: 2}
    assert sum(admitted(client, stream, max_bytes=60, max_rows=1000).values()) <= 60 + ENDS[1][0]


def test_from_batch_to_batch_everything_is_taken_once(client: PravegaClient, stream: FakeStream):
    position = dict.fromkeys(BACKLOG, 0)
    batches = 0
    while position != BACKLOG:
        after = admit(client.stores, stream.name, position, BACKLOG, Limits(max_rows=10))
        assert sum(rows_of(after).values()) - sum(rows_of(position).values()) in range(1, 11)
        position, batches = after, batches + 1
    assert 7 <= batches <= 14
    assert admit(client.stores, stream.name, position, BACKLOG, UNLIMITED) == BACKLOG
