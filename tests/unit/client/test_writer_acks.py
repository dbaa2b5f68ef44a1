"""Sequences in one step, and acknowledgements of single events."""

import threading
from concurrent.futures import wait

import pyarrow as pa
import pytest

from pravega_connector.errors import ConfigError, EventTooLargeError, StreamSealedError
from pravega_connector.testing.requests import Append
from pravega_connector.wire import MergeSegments, SetupAppend
from pravega_connector.writer import event_writer
from pravega_serde.errors import SerializationError
from pravega_serde.routing import ByFunction, segment_key
from tests.support.fake_stream import FakeStream

SECONDS = 20


def events_of(stream, number=0):
    return stream.store.segments[stream.segment(number)].events


def appends(store):
    return [request for request in store.requests if isinstance(request, Append)]


def test_a_sequence_is_one_append_in_its_place(client, stream, store):
    """Larger than the blocks of a column, which have a mebibyte."""
    sequence = [b"%d" % number * 300_000 for number in range(9)]
    with client.writer(stream.name) as writer:
        writer.write(b"before", "key")
        written = writer.write_all(iter(sequence), "key")
        writer.write(b"after", "key")
        written.result(SECONDS)
        assert events_of(stream)[: len(sequence) + 1] == [b"before", *sequence]
    assert events_of(stream) == [b"before", *sequence, b"after"]
    assert [append.event_count for append in appends(store)] == [1, 9, 1]


def test_a_sequence_too_large_for_an_append_is_merged_in_one_step(client, stream, store):
    sequence = [b"%d" % number * (3 << 20) for number in range(4)]
    with client.writer(stream.name) as writer:
        writer.write_all(sequence, "key")
        writer.write_all([], "key").result(0)
    assert events_of(stream) == sequence
    assert store.count(MergeSegments) == 1


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_a_sequence_goes_to_one_successor_if_its_segment_is_sealed(client, store, size):
    stream = FakeStream(store)
    sequence = [b"%d" % number * size for number in range(4)]
    with stream.client() as client, client.writer(stream.name) as writer:
        writer.write(b"first", "key")
        writer.flush()
        new = stream.scale([0], 0, 0.25, 0.5, 0.75, 1)
        written = writer.write_all(sequence, "key")
        written.result(SECONDS)
    target = new[int(segment_key("key") * 4)]
    assert {number: events_of(stream, number) for number in new} == {number: [] for number in new} | {target: sequence}


def test_events_without_a_key_stay_together(store):
    stream = FakeStream(store, segments=4)
    sequence = [b"%d" % number for number in range(100)]
    with stream.client() as client, client.writer(stream.name) as writer:
        writer.write_all(sequence)
    assert sorted(map(events_of, [stream] * 4, range(4))) == [[], [], [], sequence]


def test_a_sequence_with_an_invalid_event_is_not_written(client, stream, monkeypatch):
    with client.writer(stream.name, "string", max_event_size=5) as writer:
        for wrong, error in [(["a", "b" * 6], EventTooLargeError), (["a", 1], SerializationError)]:
            with pytest.raises(error):
                writer.write_all(wrong, "key")
        with pytest.raises(ConfigError, match="a routing key must be a str"):
            writer.write_all(["a"], 7)
        monkeypatch.setattr(event_writer, "MAX_READABLE_EVENT", 25)
        with pytest.raises(EventTooLargeError, match="26 bytes together are over the limit of 25"):
            writer.write_all(["aaaaa", "bbbbb"], "key")
    assert events_of(stream) == []


def test_a_router_returns_the_key_of_a_sequence(store):
    stream = FakeStream(store, segments=2)
    with stream.client() as client, client.writer(stream.name, "string", router=ByFunction(lambda v: v[0])) as writer:
        writer.write_all(["a1", "a2"])
        writer.write_with_ack("a3").result(SECONDS)
        with pytest.raises(ConfigError, match="returned 2 keys"):
            writer.write_all(["a1", "b2"])
        writer.write_all(["a4", "b5"], "a")
    assert events_of(stream, int(segment_key("a") * 2)) == [b"a1", b"a2", b"a3", b"a4", b"b5"]


def test_acknowledgements_come_when_events_are_durable(client, stream, store):
    held = threading.Event()
    release = threading.Event()

    def hold(session, request):
        held.set()
        assert release.wait(SECONDS)
        store.serve(session, request)

    store.on(Append, hold)
    with client.writer(stream.name) as writer:
        first = writer.write_with_ack(b"a")
        assert held.wait(SECONDS)
        many = [writer.write_with_ack(b"%d" % number, f"key {number}") for number in range(100)]
        assert not first.done()
        assert not first.cancel()
        release.set()
        assert not wait([first, *many], SECONDS).not_done
        assert [each.result() for each in (first, *many)] == [None] * 101
        assert len(events_of(stream)) == 101


def test_acknowledgements_outlive_a_lost_connection(client, stream, store):
    store.on(Append, lambda session, request: session.drop())
    with client.writer(stream.name) as writer:
        writer.write_with_ack(b"a").result(SECONDS)
    assert events_of(stream) == [b"a"]


def test_acknowledgements_of_events_that_are_not_durable_have_the_reason(client, stream, store):
    writer = client.writer(stream.name)
    writer.write(b"a")
    writer.flush()
    stream.seal_all()
    sealed = writer.write_with_ack(b"b")
    assert isinstance(sealed.exception(SECONDS), StreamSealedError)
    with pytest.raises(StreamSealedError):
        writer.write_with_ack(b"c")
    writer.abandon()


def test_acknowledgements_of_an_abandoned_writer_end(client, stream, store):
    store.on(SetupAppend, lambda session, request: None)
    writer = client.writer(stream.name)
    found = [writer.write_with_ack(b"a"), writer.write_all([b"b", b"c"], "key")]
    writer.abandon()
    for each in found:
        assert isinstance(each.exception(SECONDS), ConfigError)
    with pytest.raises(ConfigError, match="is closed"):
        writer.write_with_ack(b"a")


def test_a_column_and_sequences_keep_their_order(client, stream):
    with client.writer(stream.name) as writer:
        for number in range(50):
            writer.write(b"row %d" % number, "k")
            writer.write_column(pa.array([b"column %d" % number]), pa.array(["k"]))
            writer.write_all([b"all %d" % number], "k")
    kinds = (b"row", b"column", b"all")
    assert events_of(stream) == [b"%s %d" % (kind, number) for number in range(50) for kind in kinds]
