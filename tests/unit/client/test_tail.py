"""Following a tail: order across scaling, positions, and stores that fail in the meantime."""

import itertools
import math
import threading
import time

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import ConfigError, DataLossError, DeadlineExceededError, ProtocolError, WrongHostError
from pravega_connector.reader import tail
from pravega_connector.testing.requests import frame
from pravega_connector.wire import (
    AuthTokenCheckFailed,
    GetStreamSegmentInfo,
    ReadSegment,
    SegmentRead,
    StreamCut,
    WrongHost,
    encode,
)
from tests.support.fake_stream import FakeStream
from tests.support.stopwatch import Stopwatch


def take(reader, count, seconds=10):
    """The next events, as (segment id, payload)."""
    found, end = [], time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        batch = reader.poll(0.5)
        if batch is not None:
            found += [(batch.segment_id, event) for event in batch.events.to_pylist()]
    assert len(found) == count
    return found


def parked(store, count=1):
    """Wait until this many reads wait at a tail."""
    end = time.monotonic() + 5
    while store.parked() < count:
        assert time.monotonic() < end, "no read came"
        time.sleep(0.002)


@pytest.fixture
def reader(client, stream):
    with client.follow(stream.name) as reader:
        yield reader


def asked(reader, store, count=1):
    """Poll until this many reads wait at a tail."""
    end = time.monotonic() + 5
    while store.parked() < count:
        assert time.monotonic() < end, "no read came"
        assert reader.poll(0.01) is None


def test_events_come_as_they_arrive(reader, stream, store):
    asked(reader, store)
    store.append(stream.segment(0), frame(b"a") + frame(b""))
    assert take(reader, 2) == [(0, b"a"), (0, b"")]
    store.append(stream.segment(0), frame(b"b"))
    assert take(reader, 1) == [(0, b"b")]
    assert reader.position == StreamCut(stream.name, {0: 26})


def test_a_poll_returns_in_time_when_nothing_arrives(reader):
    began = Stopwatch()
    assert reader.poll(0.2) is None
    assert began.lasted(0.15)
    assert began.within(3)


def test_an_event_that_arrives_in_pieces_comes_whole_and_the_position_stays_before_it(reader, stream, store):
    whole = frame(bytes(100))
    store.append(stream.segment(0), frame(b"a") + whole[:50])
    assert take(reader, 1) == [(0, b"a")]
    assert reader.position == StreamCut(stream.name, {0: 9})
    store.append(stream.segment(0), whole[50:])
    assert take(reader, 1) == [(0, bytes(100))]


def test_a_reader_begins_at_its_cut(client, stream, store):
    store.append(stream.segment(0), frame(b"a") + frame(b"b"))
    with client.follow(stream.name, start=StreamCut(stream.name, {0: 9})) as reader:
        assert take(reader, 1) == [(0, b"b")]


def test_successors_start_when_all_before_them_are_read_and_the_position_stays_a_cut(store):
    stream = FakeStream(store, segments=2)
    with stream.client() as client, client.follow(stream.name) as reader:
        asked(reader, store, 2)
        store.append(stream.segment(0), frame(b"left"))
        store.append(stream.segment(1), frame(b"right"))
        (merged,) = stream.scale([0, 1], 0.0, 1.0)
        store.append(stream.segment(merged), frame(b"merged"))
        found = take(reader, 3)
        assert sorted(found[:2]) == [(0, b"left"), (1, b"right")]
        assert found[2] == (merged, b"merged")
        assert reader.position == StreamCut(stream.name, {merged: 14})


def test_a_stream_that_is_sealed_ends_the_iteration(reader, stream, store):
    store.append(stream.segment(0), frame(b"a"))
    (new,) = stream.scale([0], 0.0, 1.0)
    store.append(stream.segment(new), frame(b"b"))
    stream.seal_all()
    assert [event for batch in reader for event in batch.events.to_pylist()] == [b"a", b"b"]
    assert reader.at_end
    assert reader.poll(5) is None
    assert reader.position == StreamCut(stream.name, {new: 9})


def test_a_parked_read_that_the_seal_ends_loses_nothing(reader, stream, store):
    asked(reader, store)
    stream.seal_all()
    assert reader.poll(5) is None
    assert reader.at_end


def test_an_empty_answer_at_the_tail_is_asked_again(reader, stream, store):
    def nothing(session, request):
        session.reply(SegmentRead(request.segment, request.offset, True, False, memoryview(b""), request.request_id))

    store.on(ReadSegment, nothing, times=3)
    assert reader.poll(0.1) is None
    store.append(stream.segment(0), frame(b"a"))
    assert take(reader, 1) == [(0, b"a")]
    assert store.unused_rules == 0


def test_a_segment_that_ends_inside_an_event_is_a_protocol_error(reader, stream, store):
    store.append(stream.segment(0), frame(b"abc")[:-1])
    stream.seal_all()
    with pytest.raises(ProtocolError, match=r"offset 0.*scope/stream/0"):
        reader.poll(5)


@pytest.mark.parametrize("at", [3, 16, 20, 60, 200])
def test_a_connection_cut_inside_an_answer_loses_and_repeats_nothing(reader, stream, store, at):
    store.cut_replies_at = at
    events = [b"%d" % i for i in range(200)]
    for part in itertools.batched(events, 20) if hasattr(itertools, "batched") else [events]:
        store.append(stream.segment(0), b"".join(map(frame, part)))
    assert take(reader, 200) == [(0, event) for event in events]
    assert store.cut_replies_at is None
    assert store.connections >= 2


def test_connections_cut_again_and_again_while_events_arrive_lose_and_repeat_nothing(reader, stream, store):
    events = [b"%d" % i for i in range(300)]

    def produce():
        for i, event in enumerate(events):
            store.append(stream.segment(0), frame(event))
            if i % 60 == 29:
                parked(store)
                store.drop_all()

    thread = threading.Thread(target=produce)
    thread.start()
    found = take(reader, 300, seconds=30)
    thread.join()
    assert found == [(0, event) for event in events]
    assert store.drops >= 5


def test_a_moved_segment_and_a_refused_token_are_settled(reader, stream, store):
    stream.valid_token = "old"

    def refuse(session, request):
        stream.valid_token = "new"
        session.reply(AuthTokenCheckFailed(request.offset, "stack", 1))

    store.on(ReadSegment, lambda s, r: s.reply(WrongHost(r.request_id, r.segment, "", "stack")))
    store.on(ReadSegment, refuse)
    store.append(stream.segment(0), frame(b"a"))
    assert take(reader, 1) == [(0, b"a")]
    assert store.unused_rules == 0


def test_a_segment_that_never_is_where_it_should_be_is_an_error_in_time(stream, store):
    store.on(ReadSegment, lambda s, r: s.reply(WrongHost(r.request_id, r.segment, "", "stack")), times=10_000)
    began = Stopwatch()
    with stream.client(timeout=0.6) as client, client.follow(stream.name) as reader:
        with pytest.raises(WrongHostError):
            reader.poll(20)
        assert began.lasted(0.5)
        assert began.within(5)


def test_a_store_that_stalls_inside_an_answer_is_asked_again(stream, store, monkeypatch):
    monkeypatch.setattr(tail, "_PING_AFTER", 0.2)

    def half(session, request):
        session.deaf = True
        data = memoryview(frame(b"stalled"))
        reply, sock = SegmentRead(request.segment, request.offset, True, False, data, request.request_id), session.sock
        sock.sendall(encode(reply)[:30])

    store.append(stream.segment(0), frame(b"stalled"))
    store.on(ReadSegment, half)
    with stream.client() as client, client.follow(stream.name, start=stream_start(stream)) as reader:
        assert take(reader, 1) == [(0, b"stalled")]
    assert store.unused_rules == 0
    assert store.connections == 2


def test_a_store_that_forgot_a_parked_read_is_asked_again(reader, stream, store, monkeypatch):
    monkeypatch.setattr(tail, "_PARKED_SECONDS", 0.3)

    def forget(session, request):
        session.deaf = True

    store.on(ReadSegment, forget)
    assert reader.poll(0.1) is None
    store.append(stream.segment(0), frame(b"a"))
    assert take(reader, 1) == [(0, b"a")]
    assert store.unused_rules == 0


def test_a_read_that_waits_for_long_on_a_quiet_segment_continues_waiting(reader, stream, store, monkeypatch):
    """The server holds it for ever where others use the segment."""
    monkeypatch.setattr(tail, "_PARKED_SECONDS", 0.2)
    asked(reader, store)
    assert reader.poll(1.0) is None
    assert sum(isinstance(request, GetStreamSegmentInfo) for request in store.requests) >= 3
    store.append(stream.segment(0), frame(b"a"))
    assert take(reader, 1) == [(0, b"a")]
    assert sum(isinstance(request, ReadSegment) for request in store.requests) == 1


def test_while_a_quiet_segment_is_looked_into_the_loop_rests(reader, stream, store, monkeypatch):
    monkeypatch.setattr(tail, "_PARKED_SECONDS", 0.2)
    rounds = []
    monkeypatch.setattr(tail, "wait_ready", lambda *args, wait=tail.wait_ready: rounds.append(0) or wait(*args))
    asked(reader, store)
    store.on(GetStreamSegmentInfo, lambda session, request: None)
    assert reader.poll(1.0) is None
    assert store.unused_rules == 0
    assert len(rounds) < 50


def test_a_store_that_never_answers_a_parked_read_exceeds_the_deadline(reader, stream, store, monkeypatch):
    monkeypatch.setattr(tail, "_PARKED_SECONDS", 0.2)

    def forget(session, request):
        session.deaf = True

    store.on(ReadSegment, forget, times=2)
    assert reader.poll(0.1) is None
    store.append(stream.segment(0), frame(b"a"))
    with pytest.raises(DeadlineExceededError, match=r"the stream has events.* nor was the read before"):
        reader.poll(10)
    assert store.unused_rules == 0
    assert take(reader, 1) == [(0, b"a")]


def test_a_reader_that_is_polled_seldom_takes_no_answer_for_missing(reader, stream, store, monkeypatch):
    """Longer than the server holds a read, and there was nothing to read: it waits in the socket since then."""
    monkeypatch.setattr(tail, "_PARKED_SECONDS", 0.2)

    def nothing(session, request):
        session.reply(SegmentRead(request.segment, request.offset, True, False, memoryview(b""), request.request_id))

    store.on(ReadSegment, nothing, times=5)
    while store.unused_rules:
        assert reader.poll(0.05) is None
        time.sleep(0.3)
    store.append(stream.segment(0), frame(b"a"))
    assert take(reader, 1) == [(0, b"a")]
    assert store.connections == 1


def test_a_short_outage_long_after_another_one_is_survived_though_nothing_came_in_between(
    stream, store, monkeypatch, eventually
):
    now, ahead = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now() + ahead[0])
    with stream.client(timeout=30) as client, client.follow(stream.name) as reader:
        for _ in range(2):
            asked(reader, store)
            ahead[0] += 40  # longer than an outage may last
            assert reader.poll(0.1) is None
            parked(store)
            store.drop_all()
            eventually(
                lambda: not store.parked()
            )  # else the next round takes the read of the lost connection for a new one
        assert reader.poll(0.1) is None
        store.append(stream.segment(0), frame(b"a"))
        assert take(reader, 1) == [(0, b"a")]
        assert store.drops >= 2


def test_an_answer_for_another_place_ends_the_connection(reader, stream, store):
    def elsewhere(session, request):
        session.reply(SegmentRead(request.segment, 9, True, False, memoryview(frame(b"a")), request.request_id))

    store.on(ReadSegment, elsewhere)
    before = store.connections
    store.append(stream.segment(0), frame(b"b"))
    assert take(reader, 1) == [(0, b"b")]
    assert store.connections == before + 1


def test_reads_that_bring_no_bytes_do_not_hold_up_a_poll(reader, stream, store):
    def nothing(session, request):
        session.reply(SegmentRead(request.segment, request.offset, True, False, memoryview(b""), request.request_id))

    store.on(ReadSegment, nothing, times=1_000_000)
    began = Stopwatch()
    assert reader.poll(0.3) is None
    assert began.within(3)
    assert store.count(ReadSegment) > 10


def test_truncation_under_a_reader_is_data_loss_with_segment_and_offset(client, stream, store):
    store.append(stream.segment(0), frame(bytes(92)) * 2)
    store.segments[stream.segment(0)].start = 100
    with (
        client.follow(stream.name, start=stream_start(stream)) as reader,
        pytest.raises(DataLossError, match=r"scope/stream, segment 0, offset 0: .*100"),
    ):
        reader.poll(5)


def test_deletion_under_a_reader_is_data_loss(client, stream, store):
    with client.follow(stream.name, start=stream_start(stream)) as reader:
        stream.exists = False
        store.seal(stream.segment(0))  # as a stream is before it can be deleted
        with pytest.raises(DataLossError, match=r"scope/stream, segment 0, offset 0: the stream was deleted"):
            reader.poll(5)
        del store.segments[stream.segment(0)]
        for _ in range(2):
            with pytest.raises(DataLossError, match=r"scope/stream, segment 0, offset 0"):
                reader.poll(5)


def stream_start(stream):
    return StreamCut(stream.name, {0: 0})


def test_a_reader_that_is_closed_reports_it_at_once(stream, store):
    store.append(stream.segment(0), frame(b"a") + frame(b"b"))
    with stream.client() as client:
        at_head = client.head(stream.name)
        for reader in (client.follow(stream.name), client.follow(stream.name, str, start=at_head)):
            with reader:
                assert reader.poll(0) in (None, [])
            for _ in range(2):
                with pytest.raises(
                    ConfigError, match=f"the reader of stream {stream.name} is closed: create a new reader"
                ):
                    reader.poll(30)
            reader.close()
        with client.follow(stream.name, str, start=at_head) as reader:
            assert next(iter(reader)) == "a"
        with pytest.raises(ConfigError, match="is closed"):
            reader.poll(30)
        assert reader.position == StreamCut(stream.name, {0: len(frame(b"a"))})  # what comes next is "b"


@pytest.mark.parametrize("timeout", [math.inf, math.nan, -math.inf, -1, 10**400, 1e300, True, "5", None])
def test_a_wait_without_end_is_refused(stream, timeout):
    with stream.client() as client, client.follow(stream.name) as batches, client.follow(stream.name, str) as values:
        for reader in (batches, values):
            with pytest.raises(ConfigError, match="argument 'timeout' must be a number of seconds, not "):
                reader.poll(timeout)
    for name in ("timeout", "failover_timeout"):
        if isinstance(timeout, float | int) and timeout is not True:
            with pytest.raises(ConfigError, match=f"{name}.* must be .* s"):
                PravegaClient("tcp://127.0.0.1:1", **{name: timeout})
