"""A writer on a store that fails: every event once, in order, or an error that says why not."""

import threading

import pyarrow as pa
import pytest

from pravega_connector.errors import (
    AuthenticationError,
    DeadlineExceededError,
    PravegaError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.testing.requests import Append
from pravega_connector.wire import (
    AppendSetup,
    AuthTokenCheckFailed,
    ConditionalBlockEnd,
    CreateTransientSegment,
    ErrorMessage,
    InvalidEventNumber,
    MergeSegments,
    NoSuchSegment,
    SetupAppend,
    WrongHost,
)
from pravega_connector.writer import append_loop
from pravega_serde.routing import segment_key
from tests.support.fake_stream import FakeStream
from tests.support.stopwatch import Stopwatch

COUNT = 120
EVENTS = [b"%d" % i for i in range(COUNT)]


def events_of(stream, number=0):
    return stream.store.segments[stream.segment(number)].events


def write_in_steps(client, stream, events=EVENTS, step=10):
    """Each step is its own block."""
    with client.writer(stream.name, timeout=20) as writer:
        for at in range(0, len(events), step):
            writer.write_column(pa.array(events[at : at + step]))


def test_a_connection_cut_at_any_byte_of_the_requests_loses_and_repeats_nothing(store):
    # Hello, set-up and twelve appends take some 1,700 bytes; every kind of place is met.
    for at in [*range(1, 200, 19), *range(200, 1700, 131)]:
        stream = FakeStream(store)
        drops = store.drops
        store.cut_requests_at = at
        with stream.client() as client:
            write_in_steps(client, stream)
        assert store.drops == drops + 1, f"no cut at byte {at}"
        assert events_of(stream) == EVENTS
        store.drop_all()


def test_a_connection_cut_at_any_byte_of_the_replies_loses_and_repeats_nothing(store):
    for at in range(1, 520, 29):
        stream = FakeStream(store)
        drops = store.drops
        store.cut_replies_at = at
        with stream.client() as client:
            write_in_steps(client, stream)
        assert store.drops == drops + 1, f"no cut at byte {at}"
        assert events_of(stream) == EVENTS
        store.drop_all()


def test_acknowledgements_that_come_late_or_never_cost_nothing(client, stream, store):
    """Appends take effect, but their acknowledgements are lost with the connection."""

    def silently(session, request):
        reply, session.reply = session.reply, lambda message: None
        store.serve(session, request)
        session.reply = reply
        if store.unused_rules == 0:
            session.drop()

    store.on(Append, silently, times=3)
    write_in_steps(client, stream)
    assert store.unused_rules == 0
    assert events_of(stream) == EVENTS


def test_an_append_of_a_dead_connection_that_lands_after_the_set_up_is_not_repeated(client, stream, store):
    """The zombie's append is served when the new connection's set-up has been answered without it."""
    zombie = []

    def hold_and_drop(session, request):
        zombie.append((session, request))
        session.drop()

    def then_land(session, request):
        store.serve(session, request)
        held, append = zombie.pop()
        assert store.segments[stream.segment(0)].attributes.get(append.writer_id) is None
        store.serve(held, append)

    store.on(Append, hold_and_drop)
    store.on(SetupAppend, store.serve)
    store.on(SetupAppend, then_land)
    write_in_steps(client, stream)
    assert store.unused_rules == 0
    assert store.count(SetupAppend) >= 3
    assert events_of(stream) == EVENTS


def test_an_event_number_that_is_refused_starts_over_from_the_set_up(client, stream, store):
    def refuse(session, request):
        session.reply(InvalidEventNumber(request.writer_id, request.request_id, "stack", request.last_event_number))
        session.drop()

    store.on(Append, store.serve, times=2)
    store.on(Append, refuse)
    write_in_steps(client, stream)
    assert store.unused_rules == 0
    assert events_of(stream) == EVENTS


def test_a_segment_that_moved_is_looked_up_again(client, stream, store):
    def elsewhere(session, request):
        session.reply(WrongHost(request.request_id, request.segment, "", "stack"))

    store.on(SetupAppend, elsewhere, times=2)
    write_in_steps(client, stream)
    assert store.unused_rules == 0
    assert stream.asked["endpoint"] >= 3
    assert events_of(stream) == EVENTS


@pytest.mark.parametrize("kind", [SetupAppend, Append])
def test_a_refused_token_is_replaced(client, stream, store, kind):
    def refuse(session, request):
        stream.valid_token = "new"
        session.reply(AuthTokenCheckFailed(request.request_id, "stack", 1))
        session.deaf = True

    stream.valid_token = "old"
    store.on(kind, refuse)
    write_in_steps(client, stream)
    assert store.unused_rules == 0
    assert [r.token for r in store.requests if isinstance(r, SetupAppend)][-1] == "new"
    assert events_of(stream) == EVENTS


def test_a_reply_that_means_failure_ends_the_writer_with_its_reason(client, stream, store):
    store.on(SetupAppend, lambda s, r: s.reply(ErrorMessage(r.request_id, r.segment, "no room\nfor this", -1)))
    writer = client.writer(stream.name)
    writer.write(b"a")
    with pytest.raises(PravegaError, match=r"scope/stream/0.*no room for this"):
        writer.flush()
    with pytest.raises(PravegaError, match="no room"):
        writer.close()


def test_a_reply_that_does_not_belong_ends_the_connection(client, stream, store):
    store.on(Append, lambda s, r: s.reply(AppendSetup(r.request_id, stream.segment(0), r.writer_id, 0)))
    with client.writer(stream.name) as writer:
        writer.write(b"a")
    assert store.connections == 2
    assert events_of(stream) == [b"a"]


def test_a_store_that_stays_away_is_a_deadline_that_names_the_trouble(client, stream, store):
    store.close()
    writer = client.writer(stream.name, timeout=0.5)
    writer.write(b"a")
    began = Stopwatch()
    with pytest.raises(DeadlineExceededError, match=r"9 bytes are not acknowledged .*no connection"):
        writer.flush()
    assert began.within(10)
    writer.abandon()


def test_a_controller_that_refuses_ends_the_writer(client, stream, monkeypatch):
    def refused(*args, **options):
        raise AuthenticationError("the password has changed")

    writer = client.writer(stream.name)
    monkeypatch.setattr(stream, "endpoint", refused)
    writer.write(b"a")
    with pytest.raises(AuthenticationError, match="password"):
        writer.flush()
    writer.abandon()


def test_a_connection_that_falls_silent_is_given_up_for_a_new_one(client, stream, store, monkeypatch):
    monkeypatch.setattr(append_loop, "SILENCE_SECONDS", 0.3)

    def go_away(session, request):
        session.deaf = True

    store.on(Append, go_away)
    write_in_steps(client, stream)
    assert store.unused_rules == 0
    assert store.connections == 2
    assert events_of(stream) == EVENTS


# ---------------------------------------------------------------- scaling


def keyed(count):
    return [(f"key-{i % 13}", f"key-{i % 13}:{i}".encode()) for i in range(count)]


def assert_once_and_in_order(stream, events):
    """Each key's events, read along its successors, are those written."""
    logs = [segment.events for name, segment in sorted(stream.store.segments.items(), key=by_epoch)]
    found = [event for log in logs for event in log]
    assert len(found) == len(events)
    for key in {key for key, _ in events}:
        assert [e for e in found if e.split(b":")[0] == key.encode()] == [e for k, e in events if k == key]


def by_epoch(item):
    number, _, epoch = item[0].rpartition("/")[2].partition(".#epoch.")
    return int(epoch), int(number)


def test_events_of_a_sealed_segment_go_to_its_successors_by_key(client, stream, store):
    events = keyed(400)
    with client.writer(stream.name, timeout=20) as writer:
        for i, (key, event) in enumerate(events):
            if i == 100:
                stream.scale([0], 0.0, 0.25, 0.5, 0.75, 1.0)
            if i == 250:
                stream.scale([r.id for r in stream.ranges], 0.0, 0.6, 1.0)
            writer.write(event, key)
            if i % 7 == 0:
                writer.flush()
    assert_once_and_in_order(stream, events)
    low, high = (stream.store.segments[stream.segment(r.id)].events for r in stream.ranges)
    assert low
    assert high
    assert all(segment_key(e.split(b":")[0].decode()) < 0.6 for e in low)
    assert all(segment_key(e.split(b":")[0].decode()) >= 0.6 for e in high)


def test_a_segment_sealed_with_appends_in_flight_and_the_connection_cut_loses_and_repeats_nothing(store):
    """The first appends take effect unseen, the segment is sealed, the connection dies; then another scaling."""
    for taken in range(5):
        store.segments.clear()
        stream = FakeStream(store)
        events = keyed(100)

        def last_one(session, request, stream=stream):
            stream.scale([0], 0.0, 0.5, 1.0)
            session.drop()

        if taken:
            store.on(Append, store.serve, times=taken)
        store.on(Append, last_one)
        with stream.client() as client, client.writer(stream.name, timeout=20) as writer:
            for at in range(0, 100, 10):
                part = events[at : at + 10]
                writer.write_column(pa.array([e for _, e in part]), pa.array([k for k, _ in part]))
            writer.flush()
            stream.scale([r.id for r in stream.ranges], 0.0, 1.0)
            writer.write(b"key-0:last", "key-0")
        assert store.unused_rules == 0
        assert_once_and_in_order(stream, [*events, ("key-0", b"key-0:last")])


def test_a_sealed_stream_ends_the_writer_and_keeps_what_was_durable(client, stream):
    writer = client.writer(stream.name)
    writer.write(b"a")
    writer.flush()
    stream.seal_all()
    writer.write(b"b")
    with pytest.raises(StreamSealedError, match="scope/stream is sealed"):
        writer.flush()
    with pytest.raises(StreamSealedError):
        writer.close()
    assert events_of(stream) == [b"a"]


def test_a_deleted_stream_ends_the_writer(client, stream, store):
    def gone(session, request):
        stream.exists = False
        session.reply(NoSuchSegment(request.request_id, stream.segment(0), "stack", -1))

    store.on(SetupAppend, gone)
    writer = client.writer(stream.name)
    writer.write(b"a")
    with pytest.raises(StreamNotFoundError, match="scope/stream was deleted"):
        writer.flush()
    writer.abandon()


@pytest.mark.parametrize("at", [SetupAppend, Append, CreateTransientSegment, MergeSegments])
def test_a_stream_recreated_under_a_writer_ends_it_and_gets_none_of_its_events(client, stream, store, at):
    def recreate(session, request):
        stream.recreate()
        session.reply(NoSuchSegment(request.request_id, stream.segment(0), "stack", -1))

    store.on(at, recreate)
    writer = client.writer(stream.name, max_event_size=10 << 20)
    writer.write_column(pa.array([b"a", LARGE]))
    with pytest.raises(StreamNotFoundError, match="scope/stream was deleted and recreated"):
        writer.flush(20)
    with pytest.raises(StreamNotFoundError, match="recreated"):
        writer.close(5)
    assert store.unused_rules == 0
    assert events_of(stream, 1) == []


def test_a_stream_recreated_while_a_connection_is_lost_ends_the_writer(client, stream, store):
    def recreate(session, request):
        stream.recreate()
        session.drop()

    store.on(Append, recreate)
    writer = client.writer(stream.name)
    acknowledgement = writer.write_with_ack(b"a")
    with pytest.raises(StreamNotFoundError, match="recreated"):
        writer.flush(20)
    writer.abandon()
    with pytest.raises(StreamNotFoundError, match="recreated"):
        acknowledgement.result(0)


# ---------------------------------------------------------------- large events

LARGE = bytes(range(256)) * (9 * 4096)  # 9 MiB


def test_a_large_event_keeps_its_place(client, stream, store):
    with client.writer(stream.name, max_event_size=10 << 20, timeout=20) as writer:
        writer.write_column(pa.array([b"before", LARGE, b"after"]))
        writer.write(LARGE)
        writer.write(b"last")
    assert events_of(stream) == [b"before", LARGE, b"after", LARGE, b"last"]
    assert store.count(MergeSegments) == 2


@pytest.mark.parametrize("kind", [ConditionalBlockEnd, MergeSegments])
def test_a_large_event_whose_connection_is_cut_is_written_again_as_a_whole(client, stream, store, kind):
    store.on(kind, lambda session, request: session.drop())
    with client.writer(stream.name, max_event_size=10 << 20, timeout=20) as writer:
        writer.write_column(pa.array([b"before", LARGE, b"after"]))
    assert store.unused_rules == 0
    assert events_of(stream) == [b"before", LARGE, b"after"]


def do_and_drop(store):
    """Serve a request, and lose the answer with the connection."""

    def rule(session, request):
        reply, session.reply = session.reply, lambda message: None
        store.serve(session, request)
        session.reply = reply
        session.drop()

    return rule


def test_a_large_event_whose_merge_was_not_answered_exists_once(client, stream, store):
    store.on(MergeSegments, do_and_drop(store))
    with client.writer(stream.name, max_event_size=10 << 20, timeout=20) as writer:
        writer.write_column(pa.array([b"before", LARGE, b"after"]))
    assert store.unused_rules == 0
    assert store.count(MergeSegments) == 2
    assert events_of(stream) == [b"before", LARGE, b"after"]


def test_a_merge_that_a_store_does_late_is_not_repeated(client, stream, store):
    held = []

    def hold(session, request):
        store.merging = dict(store.segments)  # the transient segment outlives its connection here
        held.append(request)
        session.drop()

    def do_both(session, request):
        late = held.pop()
        store.segments[late.source] = store.merging[late.source]
        store.serve(session, late)
        store.serve(session, request)

    store.on(MergeSegments, hold)
    store.on(MergeSegments, do_both)
    with client.writer(stream.name, max_event_size=10 << 20, timeout=20) as writer:
        writer.write_column(pa.array([b"before", LARGE, b"after"]))
    assert store.unused_rules == 0
    assert events_of(stream) == [b"before", LARGE, b"after"]


def test_a_large_event_that_was_merged_before_its_segment_was_sealed_exists_once(client, stream, store):
    new = []

    def merge_and_seal(session, request):
        do_and_drop(store)(session, request)
        new.extend(stream.scale([0], 0.0, 1.0))

    store.on(MergeSegments, merge_and_seal)
    with client.writer(stream.name, max_event_size=10 << 20, timeout=20) as writer:
        writer.write_column(pa.array([b"before", LARGE, b"after"]))
    assert store.unused_rules == 0
    assert events_of(stream) == [b"before", LARGE]
    assert events_of(stream, new[0]) == [b"after"]


def test_a_large_event_of_a_transaction_whose_merge_was_not_answered_exists_once(client, stream, store):
    store.on(MergeSegments, do_and_drop(store))
    with client.transactions(stream.name, max_event_size=10 << 20).begin() as transaction:
        transaction.write_column(pa.array([b"before", LARGE, b"after"]))
    assert store.unused_rules == 0
    assert events_of(stream) == [b"before", LARGE, b"after"]


def test_a_large_event_goes_to_the_successor_of_a_segment_that_was_sealed_under_it(client, stream, store):
    new = []

    def seal_first(session, request):
        new.extend(stream.scale([0], 0.0, 1.0))
        store.serve(session, request)

    store.on(MergeSegments, seal_first)
    with client.writer(stream.name, max_event_size=10 << 20, timeout=20) as writer:
        writer.write_column(pa.array([b"before", LARGE, b"after"]))
    assert store.unused_rules == 0
    assert events_of(stream) == [b"before"]
    assert events_of(stream, new[0]) == [LARGE, b"after"]


def test_abandoning_a_writer_that_cannot_write_returns(client, stream, store):
    started = threading.Event()
    store.on(Append, lambda session, request: started.set(), times=100)
    writer = client.writer(stream.name)
    writer.write(b"a")
    assert started.wait(120)
    began = Stopwatch()
    writer.abandon()
    assert began.within(3)
