"""Reading ranges from a store that fails, or that no longer has what is asked for."""

import math
import pickle
from collections import Counter
from dataclasses import replace

import pytest

from pravega_connector.errors import (
    ConnectionLostError,
    DataLossError,
    DeadlineExceededError,
    MalformedStreamCutError,
    StoreFailureError,
    StreamNotFoundError,
    TokenExpiredError,
    UnexpectedReplyError,
)
from pravega_connector.reader.slices import SegmentSlice, read_slice, slices_between
from pravega_connector.stores.segment_stores import SegmentPlace
from pravega_connector.testing.requests import frame
from pravega_connector.wire import (
    AuthTokenCheckFailed,
    ErrorMessage,
    GetStreamSegmentInfo,
    Hello,
    ReadSegment,
    SegmentRead,
    StreamCut,
    WrongHost,
)
from pravega_serde.errors import DeserializationError
from tests.support.fake_stream import FakeStream
from tests.support.stopwatch import Stopwatch

EVENTS = [b"%d:" % i + bytes(i % 700) for i in range(9000)]  # about three chunks
DATA = b"".join(map(frame, EVENTS))


@pytest.fixture
def full(stream, store):
    store.append(stream.segment(0), DATA)
    return stream


def read(client, stream, **bounds):
    return list(client.read(stream.name, **bounds))


def cut(stream, **positions):
    return StreamCut(stream.name, {int(k[1:]): v for k, v in positions.items()})


def test_a_stream_is_read_from_head_to_tail(client, full):
    assert read(client, full) == EVENTS


def test_events_come_as_columns_with_their_offsets(client, full):
    at = 0
    for batch in client.read_columns(full.name):
        assert batch.stream == full.name
        assert batch.segment_id == 0
        for event, offset in zip(batch.events.to_pylist(), batch.offsets.tolist(), strict=True):
            assert offset == at
            at += len(frame(event))
    assert at == len(DATA)


def test_a_range_holds_exactly_the_events_between_its_cuts(client, full):
    start = sum(len(frame(e)) for e in EVENTS[:100])
    end = start + sum(len(frame(e)) for e in EVENTS[100:5000])
    assert read(client, full, start=cut(full, s0=start), end=cut(full, s0=end)) == EVENTS[100:5000]
    assert read(client, full, start=cut(full, s0=start), end=cut(full, s0=start)) == []


def test_a_cut_of_another_stream_is_refused(client, full):
    with pytest.raises(MalformedStreamCutError, match="scope/other"):
        client.read(full.name, start=StreamCut(type(full.name)("scope", "other"), {0: 0}))


def test_short_answers_are_completed(client, full, store):
    def short(session, request):
        data = DATA[request.offset : request.offset + request.length // 3]
        session.reply(SegmentRead(request.segment, request.offset, False, False, memoryview(data), request.request_id))

    store.on(ReadSegment, short, times=5)
    assert read(client, full) == EVENTS
    assert store.unused_rules == 0


def test_answers_out_of_order_are_put_in_order(client, full, store):
    held = []

    def swap(session, request):
        held.append(request)
        if len(held) == 2:
            for later in reversed(held):
                store.serve(session, later)

    store.on(ReadSegment, swap, times=2)
    assert read(client, full) == EVENTS
    assert [r.offset for r in held] == [0, 1 << 20]


@pytest.mark.parametrize("at", [5, 16, 17, 100, 1 << 20, (1 << 20) + 77, 2_500_000])
def test_a_connection_cut_inside_an_answer_is_fixed(client, full, store, at):
    client.tail(full.name)
    before = store.connections
    store.drop_all()
    store.cut_replies_at = at
    assert read(client, full) == EVENTS
    assert store.cut_replies_at is None
    assert store.connections >= before + 2


def test_an_answer_that_nobody_asked_for_ends_the_connection(client, full, store):
    def elsewhere(session, request):
        session.reply(SegmentRead(request.segment, 12345, False, False, memoryview(b"x"), request.request_id))

    client.tail(full.name)
    before = store.connections
    store.on(ReadSegment, elsewhere)
    assert read(client, full) == EVENTS
    assert store.connections == before + 1
    store.on(ReadSegment, elsewhere, times=1000)
    with (
        full.client(timeout=0.5) as hasty,
        pytest.raises(UnexpectedReplyError, match=r"scope/stream/0\.#epoch\.0.*12345"),
    ):
        read(hasty, full)


def test_reads_that_bring_no_bytes_are_an_error_in_time(full, store):
    def nothing(session, request):
        session.reply(SegmentRead(request.segment, request.offset, True, False, memoryview(b""), request.request_id))

    store.on(ReadSegment, nothing, times=1_000_000)
    began = Stopwatch()
    with full.client(timeout=0.5) as hasty, pytest.raises(ConnectionLostError, match="no bytes"):
        read(hasty, full)
    assert began.within(5)
    store.forget_rules()
    store.on(ReadSegment, nothing, times=3)
    with full.client() as client:
        assert read(client, full) == EVENTS


def test_a_moved_segment_and_a_refused_token_are_settled(client, full, store):
    full.valid_token = "old"

    def refuse(session, request):
        full.valid_token = "new"
        session.reply(AuthTokenCheckFailed(request.offset, "stack", 1))

    def moved(session, request):
        session.reply(WrongHost(request.request_id, request.segment, "", "stack"))
        session.deaf = True  # or the request behind it would use up the next rule

    store.on(ReadSegment, moved)
    store.on(ReadSegment, refuse)
    assert read(client, full) == EVENTS
    assert store.unused_rules == 0
    assert full.asked["endpoint"] >= 2
    assert store.requests[-1].token == "new"


def test_a_token_that_is_refused_permanently_is_an_error_in_time(full, store):
    store.on(ReadSegment, lambda s, r: s.reply(AuthTokenCheckFailed(r.offset, "stack", 0)), times=1000)
    began = Stopwatch()
    with full.client(timeout=0.5) as client, pytest.raises(TokenExpiredError, match=r"scope/stream/0"):
        read(client, full)
    assert began.within(5)


def test_a_failure_that_stays_is_reported_with_its_reason_in_one_line(full, store):
    def fail(session, request):
        session.reply(ErrorMessage(request.request_id, request.segment, "disk\nfailed" * 999, -1))

    store.on(ReadSegment, fail, times=1000)
    with full.client(timeout=0.5) as client, pytest.raises(StoreFailureError, match="disk failed") as caught:
        read(client, full)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_stalled_store_exceeds_the_deadline(full, store):
    store.on(ReadSegment, lambda s, r: None, times=1000)
    began = Stopwatch()
    with full.client(timeout=0.3) as client, pytest.raises(DeadlineExceededError, match=r"0\.3 s"):
        read(client, full)
    assert began.within(10)


def test_leaving_a_read_early_leaves_no_answer_for_the_next_one(client, full):
    assert next(iter(client.read(full.name))) == EVENTS[0]
    assert read(client, full) == EVENTS


def test_a_missing_stream_is_reported_at_the_call(client, stream):
    stream.exists = False
    with pytest.raises(StreamNotFoundError):
        client.read(stream.name)


# ---------------------------------------------------------------- data loss


def test_truncated_bytes_are_data_loss_with_segment_and_offset(client, full, store):
    store.segments[full.segment(0)].start = 1000
    with pytest.raises(DataLossError, match=r"scope/stream, segment 0, offset 0: the events before offset 1000"):
        read(client, full, start=cut(full, s0=0))


def test_a_deleted_segment_is_data_loss_with_segment_and_offset(client, full, store):
    del store.segments[full.segment(0)]
    full.exists = False
    piece = SegmentSlice(full.name, 0, 8, 5000)
    with pytest.raises(DataLossError, match=r"scope/stream, segment 0, offset 8: the segment was"):
        list(read_slice(client.stores, piece))


def test_segments_between_two_cuts_that_were_truncated_away_are_data_loss(client, full, store):
    """Between cuts the controller still lists them."""
    new = full.scale([0], 0.0, 1.0)
    store.append(full.segment(new[0]), frame(b"new"))
    tail = client.tail(full.name)
    full.head = {new[0]: 0}
    del store.segments[full.segment(0)]
    with pytest.raises(DataLossError, match=r"scope/stream, segment 0, offset 77"):
        read(client, full, start=cut(full, s0=77), end=tail)


def test_a_segment_truncated_since_the_start_cut_is_data_loss(client, full, store):
    (new,) = full.scale([0], 0.0, 1.0)
    store.append(full.segment(new), frame(b"gone") + frame(b"kept"))
    tail = client.tail(full.name)
    store.segments[full.segment(new)].start = len(frame(b"gone"))
    with pytest.raises(DataLossError, match=rf"segment {new}, offset 0: the events before offset 12"):
        read(client, full, start=cut(full, s0=0), end=tail)


def test_a_segment_that_ends_before_the_cut_is_an_error_at_once(client, full, store):
    """A cut of an earlier stream of the same name, for one."""
    store.seal(full.segment(0))
    began = Stopwatch()
    with pytest.raises(MalformedStreamCutError, match=rf"ends at offset {len(DATA)}"):
        read(client, full, start=cut(full, s0=0), end=cut(full, s0=len(DATA) + 9))
    assert began.within(4)


# ---------------------------------------------------------------- several segments


def test_a_stream_that_never_scaled_is_read_after_one_call_and_one_look_up(client, full, store):
    client.stores.endpoint(full.name, 0)
    client.stores.token(full.name, write=False)
    before, seen = full.asked.copy(), len(store.requests)
    assert len(list(client.read(full.name, limit=1))) == 1
    assert full.asked - before == Counter(head_cut=1)
    asked = [type(each) for each in store.requests[seen:] if not isinstance(each, Hello)]
    assert asked[:2] == [GetStreamSegmentInfo, ReadSegment]


@pytest.mark.parametrize("ended", [False, True])
def test_a_stream_that_scaled_is_read_to_its_last_segments(client, full, store, ended):
    (new,) = full.scale([0], 0.0, 1.0)
    store.append(full.segment(new), frame(b"new"))
    if ended:
        full.seal_all()
    assert read(client, full) == [*EVENTS, b"new"]
    ((start, end),) = client.read_columns(full.name).ranges
    assert (start, end) == (cut(full, s0=0), StreamCut(full.name, {new: len(frame(b"new"))}))


def test_slices_come_predecessors_first_and_without_empty_ones(store):
    stream = FakeStream(store, segments=2)
    store.append(stream.segment(0), frame(b"a"))
    first, second = stream.scale([0], 0.0, 0.25, 0.5)
    store.append(stream.segment(second), frame(b"bb"))
    with stream.client() as client:
        head, tail = client.head(stream.name), client.tail(stream.name)
        assert slices_between(client.stores, head, tail) == [
            SegmentSlice(stream.name, 0, 0, 9),
            SegmentSlice(stream.name, second, 0, 10),
        ]
        assert tail == StreamCut(stream.name, {1: 0, first: 0, second: 10})
        assert read(client, stream) == [b"a", b"bb"]


def test_the_tail_of_a_sealed_stream_is_the_end_of_its_last_segments(store):
    stream = FakeStream(store, segments=2)
    new = stream.scale([0, 1], 0.0, 1.0)
    store.append(stream.segment(new[0]), frame(b"x"))
    stream.seal_all()
    with stream.client() as client:
        assert client.tail(stream.name) == StreamCut(stream.name, {new[0]: 9})
        assert read(client, stream) == [b"x"]


def test_information_on_many_segments_takes_one_connection_and_survives_its_loss(store):
    stream = FakeStream(store, segments=300)
    store.on(GetStreamSegmentInfo, store.serve, times=100)
    store.on(GetStreamSegmentInfo, lambda session, request: session.drop())
    with stream.client() as client:
        infos = client.stores.segment_infos(stream.name, range(300))
    assert sorted(infos) == list(range(300))
    assert store.unused_rules == 0
    assert store.connections == 2


class Broken:
    def deserialize(self, data):
        if data == EVENTS[4]:
            raise DeserializationError("not mine", field_path="$.x")
        return data


def test_an_event_that_cannot_be_deserialized_is_named_by_its_place(client, full):
    values = client.read(full.name, Broken())
    assert [next(values) for _ in range(4)] == EVENTS[:4]
    with pytest.raises(DeserializationError) as caught:
        next(values)
    error = caught.value
    assert (error.scope, error.stream, error.segment_id) == ("scope", "stream", 0)
    assert error.offset == sum(len(frame(e)) for e in EVENTS[:4])
    assert error.field_path == "$.x"


class TestPlacesThatAnotherProcessKnew:
    """Knowledge of a planning client about a segment is pickled, and a reading client takes it."""

    def known(self, full):
        with full.client() as planner:
            assert planner.stores.known_place(full.name, 0) is None
            planner.tail(full.name)
            return pickle.loads(pickle.dumps(planner.stores.known_place(full.name, 0)))

    def test_nobody_is_asked_for_what_is_known(self, full, client):
        place = self.known(full)
        full.asked.clear()
        client.stores.take_place(full.name, 0, place)
        assert read(client, full) == EVENTS
        assert full.asked["endpoint"] == full.asked["delegation_token"] == 0

    def test_a_place_that_was_left_and_a_token_that_ended_are_found_out(self, full, client, store):
        full.valid_token = "old"
        place = self.known(full)
        assert place.token == "old"
        assert "old" not in repr(place)
        full.valid_token = "new"

        def moved(session, request):
            session.reply(WrongHost(request.request_id, request.segment, "", "stack"))
            session.deaf = True  # or the request behind it would use up the next rule

        store.on(ReadSegment, moved)
        store.on(ReadSegment, lambda session, request: session.reply(AuthTokenCheckFailed(request.offset, "stack", 1)))
        full.asked.clear()
        client.stores.take_place(full.name, 0, place)
        assert read(client, full) == EVENTS
        assert store.unused_rules == 0
        assert full.asked["endpoint"] >= 1
        assert store.requests[-1].token == "new"

    def test_a_server_that_is_gone_is_not_waited_for(self, full, client, closed_port):
        place = replace(self.known(full), endpoint=("127.0.0.1", closed_port))
        client.stores.take_place(full.name, 0, place)
        assert read(client, full) == EVENTS

    def test_what_is_known_here_is_not_given_up(self, full, client, closed_port):
        client.tail(full.name)
        client.stores.take_place(full.name, 0, SegmentPlace(("127.0.0.1", closed_port), "wrong", math.inf))
        assert client.stores.known_place(full.name, 0) == self.known(full)
