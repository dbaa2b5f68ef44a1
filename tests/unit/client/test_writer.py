"""Promises of a writer, on a store that works."""

import json
import math
import re
import threading
import time

import pyarrow as pa
import pytest

from pravega_connector.errors import (
    ColumnTypeError,
    ConfigError,
    DeadlineExceededError,
    EventTooLargeError,
    NullEventError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.testing.requests import Append
from pravega_connector.wire import MAX_READABLE_EVENT, SetupAppend
from pravega_serde.errors import SerializationError
from pravega_serde.routing import segment_key
from tests.support.fake_stream import FakeSegmentStore, FakeStream
from tests.support.stopwatch import Stopwatch


def events_of(stream, number=0):
    return stream.store.segments[stream.segment(number)].events


class Json:
    def serialize(self, value):
        return json.dumps(value).encode()


def test_rows_are_durable_after_flush_in_the_order_of_writing(client, stream):
    with client.writer(stream.name) as writer:
        for i in range(1000):
            writer.write(b"%d" % i)
        writer.flush()
        assert events_of(stream) == [b"%d" % i for i in range(1000)]


def test_a_row_goes_out_soon_without_flush(client, stream, store):
    arrived = threading.Event()

    def serve(session, request):
        store.serve(session, request)
        arrived.set()

    store.on(Append, serve)
    with client.writer(stream.name) as writer:
        writer.write(b"lonely")
        assert arrived.wait(120)
        assert events_of(stream) == [b"lonely"]


def test_leaving_the_block_makes_everything_durable(client, stream):
    with client.writer(stream.name) as writer:
        writer.write(b"a")
        writer.write_column(pa.array([b"b", b""]))
        writer.write(b"c")
    assert events_of(stream) == [b"a", b"b", b"", b"c"]


def test_what_was_written_before_an_error_in_the_block_is_written_and_the_error_is_seen(client, stream):
    def use(writer):
        with writer:
            writer.write(b"a")
            raise KeyError("of the program")

    with pytest.raises(KeyError):
        use(client.writer(stream.name))
    assert events_of(stream) == [b"a"]


def test_a_serializer_makes_the_bytes(client, stream):
    with client.writer(stream.name, Json()) as writer:
        writer.write({"ü": 1})
    assert events_of(stream) == [json.dumps({"ü": 1}).encode()]


@pytest.mark.parametrize("as_column", [False, True])
def test_keys_decide_the_segment_and_keep_their_order(store, as_column):
    stream = FakeStream(store, segments=3)
    keys = [f"key-{i % 17}" for i in range(600)]
    events = [f"{key}:{i}".encode() for i, key in enumerate(keys)]
    with stream.client() as client, client.writer(stream.name) as writer:
        if as_column:
            writer.write_column(pa.array(events), pa.array(keys))
        else:
            for event, key in zip(events, keys, strict=True):
                writer.write(event, key)
    for number in range(3):
        low, high = number / 3, (number + 1) / 3
        assert events_of(stream, number) == [
            event for event, key in zip(events, keys, strict=True) if low <= segment_key(key) < high
        ]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a", b"bb", b""]),
        pa.array(["a", "bb", ""]),
        pa.array(["a", "bb", ""], pa.large_string()),
        pa.chunked_array([[b"a"], [b"bb", b""]]),
        pa.array([b"x", b"a", b"bb", b"", b"y"]).slice(1, 3),
    ],
    ids=lambda c: f"{c.type}-{type(c).__name__}",
)
def test_columns_of_any_binary_or_string_type_are_written(client, stream, column):
    with client.writer(stream.name) as writer:
        writer.write_column(column)
    assert events_of(stream) == [b"a", b"bb", b""]


def test_an_empty_column_writes_nothing(client, stream, store):
    with client.writer(stream.name) as writer:
        writer.write_column(pa.array([], pa.binary()))
    assert store.count(SetupAppend) == 0


def test_rows_with_and_without_keys_may_be_mixed(store):
    stream = FakeStream(store, segments=2)
    with stream.client() as client, client.writer(stream.name) as writer:
        for i in range(100):
            writer.write(b"%d" % i, "k" if i % 2 else None)
    found = events_of(stream, 0) + events_of(stream, 1)
    assert sorted(found) == sorted(b"%d" % i for i in range(100))
    home = events_of(stream, int(segment_key("k") >= 0.5))
    assert [e for e in home if int(e) % 2] == [b"%d" % i for i in range(1, 100, 2)]


# ---------------------------------------------------------------- bad input: nothing of it is written, all else is


def test_a_null_event_is_refused_with_its_row(client, stream):
    with client.writer(stream.name) as writer:
        with pytest.raises(NullEventError, match="row 1 "):
            writer.write_column(pa.array([b"a", None, b"c", None]))
        writer.write(b"after")
    assert events_of(stream) == [b"after"]


def test_an_event_over_the_limit_is_refused_with_both_sizes(client, stream):
    with client.writer(stream.name, max_event_size=10) as writer:
        writer.write(bytes(10))
        with pytest.raises(EventTooLargeError, match=r"11 bytes .* 10 bytes .*max_event_size"):
            writer.write(bytes(11))
        with pytest.raises(EventTooLargeError, match="12 bytes"):
            writer.write_column(pa.array([b"", bytes(12)]))
    assert events_of(stream) == [bytes(10)]


@pytest.mark.parametrize(("key", "text"), [(5, "str(key)"), (b"bytes", "key.decode()")], ids=["int", "bytes"])
def test_a_key_that_is_not_text_is_refused_and_loses_no_other_event(client, stream, key, text):
    with client.writer(stream.name) as writer:
        writer.write(b"before", "k")
        with pytest.raises(ConfigError, match=f"routing key.*{type(key).__name__}: write {re.escape(text)}"):
            writer.write(b"bad", key)
        writer.write(b"after", "k")
    assert events_of(stream) == [b"before", b"after"]


def test_a_key_with_half_a_surrogate_pair_is_refused_at_once(client, stream):
    with client.writer(stream.name) as writer:
        writer.write(b"before", "k")
        with pytest.raises(ConfigError, match=r"routing key.*surrogate"):
            writer.write(b"bad", "\ud800")
    assert events_of(stream) == [b"before"]


def test_a_column_of_keys_must_be_as_long_as_its_events(client, stream):
    with client.writer(stream.name) as writer, pytest.raises(ConfigError, match=r"2 routing keys.*3 events"):
        writer.write_column(pa.array([b"a", b"b", b"c"]), pa.array(["x", "y"]))
    assert events_of(stream) == []


@pytest.mark.parametrize("options", [{"max_event_size": 0}, {"max_in_flight": 0}])
def test_a_limit_of_nothing_is_refused(client, stream, options):
    with pytest.raises(ConfigError, match="at least 1"):
        client.writer(stream.name, **options)


def test_a_closed_writer_reports_it(client, stream):
    writer = client.writer(stream.name)
    writer.close()
    writer.close()
    for call in (lambda: writer.write(b"x"), writer.flush, lambda: writer.write_column(pa.array([b"x"]))):
        with pytest.raises(ConfigError, match=r"scope/stream is closed"):
            call()


def test_a_writer_of_a_sealed_or_missing_stream_is_refused(client, stream):
    stream.seal_all()
    with pytest.raises(StreamSealedError, match="scope/stream is sealed"):
        client.writer(stream.name)
    stream.exists = False
    with pytest.raises(StreamNotFoundError):
        client.writer(stream.name)


# ---------------------------------------------------------------- bounds


def hold(store: FakeSegmentStore) -> threading.Event:
    """The store takes appends only after the event that is returned is set."""
    go = threading.Event()

    def wait(session, request):
        assert go.wait(120)
        store.serve(session, request)

    store.on(Append, wait)
    return go


@pytest.mark.parametrize("event", [bytes(1000), bytes(100_000)], ids=["lingering rows", "whole blocks"])
def test_rows_that_are_not_durable_are_bounded(client, stream, store, event):
    limit = 3 << 20
    go = hold(store)
    writer = client.writer(stream.name, max_in_flight=limit, timeout=0.5)
    count = 0

    def write_on():
        nonlocal count
        for _ in range(20 * limit // len(event)):
            writer.write(event)
            count += 1
            if count % 50 == 0:
                time.sleep(0.002)  # let rows linger

    with pytest.raises(DeadlineExceededError, match="not acknowledged"):
        write_on()
    # These may wait: the bound, the rows that reached it, and those that wait for company.
    assert count * len(event) <= limit + (2 << 20) + len(event)
    go.set()
    writer.flush(10)
    writer.close()
    assert len(events_of(stream)) == count


def test_a_column_waits_for_room(client, stream, store):
    go = hold(store)
    column = pa.array([bytes(1000)] * 1000)
    with client.writer(stream.name, max_in_flight=3_000_000, timeout=0.5) as writer:
        for _ in range(3):
            writer.write_column(column)
        with pytest.raises(DeadlineExceededError, match=r"scope/stream.*bytes are not acknowledged"):
            writer.write_column(column)
        go.set()
        writer.flush(10)
    assert len(events_of(stream)) == 3000


@pytest.mark.parametrize("value", ["text", None, 5, [1, 2]], ids=repr)
def test_a_serializer_that_makes_no_bytes_is_refused_and_loses_no_other_event(client, stream, value):
    class Wrong:
        def serialize(self, wrong):
            return value if wrong else b"right"

    with client.writer(stream.name, Wrong()) as writer:
        writer.write(False)
        with pytest.raises(SerializationError, match=rf"returned a {type(value).__name__} .*bytes"):
            writer.write(True)
    assert events_of(stream) == [b"right"]


def test_a_column_that_holds_no_events_is_refused(client, stream):
    with client.writer(stream.name) as writer, pytest.raises(ColumnTypeError, match="int64"):
        writer.write_column(pa.array([1, 2]))
    assert events_of(stream) == []


def test_flush_does_not_wait_longer_for_another_thread_that_waits_for_room(client, stream, store, eventually):
    go = hold(store)
    writer = client.writer(stream.name, max_in_flight=1, timeout=30)
    writer.write_column(pa.array([b"a"]))
    waiting = threading.Thread(target=writer.write_column, args=(pa.array([b"b"]),))
    waiting.start()
    eventually(lambda: writer._loop._bell._waiters)
    began = Stopwatch()
    with pytest.raises(DeadlineExceededError):
        writer.flush(0.2)
    assert began.within(5)
    go.set()
    waiting.join()
    writer.close()
    assert events_of(stream) == [b"a", b"b"]


def test_abandoning_a_writer_frees_a_thread_that_waits_for_room(client, stream, store):
    hold(store).set()
    stuck = threading.Event()
    store.on(Append, lambda session, request: stuck.set(), times=10)
    failures = []

    def write():
        try:
            writer.write_column(pa.array([b"b"]))
        except ConfigError as error:
            failures.append(error)

    writer = client.writer(stream.name, max_in_flight=1, timeout=30)
    writer.write_column(pa.array([b"a"]))
    writer.flush()
    writer.write_column(pa.array([b"stuck"]))
    assert stuck.wait(120)
    waiting = threading.Thread(target=write)
    waiting.start()
    writer.abandon()
    waiting.join(5)
    assert not waiting.is_alive()
    assert "closed" in str(failures[0])


def test_flush_keeps_its_own_deadline_and_may_be_repeated(client, stream, store):
    go = hold(store)
    with client.writer(stream.name) as writer:
        writer.write(b"a")
        with pytest.raises(DeadlineExceededError, match=r"within 0.2 s; 9 bytes are not acknowledged"):
            writer.flush(0.2)
        go.set()
        writer.flush(10)
        assert events_of(stream) == [b"a"]


def test_many_threads_may_share_a_writer(client, stream):
    def write(name):
        for i in range(300):
            writer.write(b"%d:%d" % (name, i))

    with client.writer(stream.name, max_in_flight=1) as writer:
        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = events_of(stream)
    assert len(found) == 1200
    for name in range(4):
        assert [e for e in found if e.startswith(b"%d:" % name)] == [b"%d:%d" % (name, i) for i in range(300)]


def test_threads_that_wait_for_room_wait_as_long_as_one(client, stream, store):
    go = hold(store)
    took: list[float] = []

    def write():
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError):
            writer.write_column(pa.array([b"b"]))
        took.append(time.monotonic() - began)

    writer = client.writer(stream.name, max_in_flight=1, timeout=0.5)
    writer.write_column(pa.array([b"a"]))
    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(took) == 8
    assert max(took) < 2  # 4 if one waited after the other
    go.set()
    writer.close(10)
    assert events_of(stream) == [b"a"]


@pytest.mark.parametrize("as_column", [False, True])
def test_what_other_threads_write_while_it_is_closed_exists_or_refused(client, stream, as_column):
    accepted: list[list[bytes]] = [[] for _ in range(3)]

    def write(number):
        for i in range(1_000_000):
            event = b"%d:%d" % (number, i)
            try:
                if as_column:
                    writer.write_column(pa.array([event]))
                else:
                    writer.write(event)
            except ConfigError:
                return
            accepted[number].append(event)

    writer = client.writer(stream.name)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    while not all(accepted):
        time.sleep(0.001)
    writer.close()
    for thread in threads:
        thread.join()
    assert sorted(events_of(stream)) == sorted(event for each in accepted for event in each)


def test_an_event_that_no_reader_can_pass_is_refused_whatever_the_limit(client, stream):
    event = bytes(MAX_READABLE_EVENT + 1)
    with client.writer(stream.name, max_event_size=1 << 30) as writer:
        with pytest.raises(EventTooLargeError, match=f"{len(event)} bytes .* {MAX_READABLE_EVENT} bytes .*split it"):
            writer.write(event)
        with pytest.raises(EventTooLargeError, match="split it"):
            writer.write_column(pa.array([event], pa.large_binary()))
        writer.write(b"small")
    assert events_of(stream) == [b"small"]


@pytest.mark.parametrize("timeout", [math.nan, math.inf, -math.inf, 1e300, True, "5"])
def test_a_timeout_that_is_not_a_time_is_refused_and_ends_nothing(client, stream, timeout):
    with client.writer(stream.name) as writer:
        writer.write(b"a")
        for call in (writer.flush, writer.close):
            with pytest.raises(ConfigError, match="argument 'timeout' must be a number of seconds, not "):
                call(timeout)
        writer.write(b"b")
    assert events_of(stream) == [b"a", b"b"]
