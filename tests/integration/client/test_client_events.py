"""Events written by rows and by columns, read back equal: ranges, sizes, keys, cuts, data loss."""

import json
import re

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import (
    DataLossError,
    EventTooLargeError,
    InvalidNameError,
    MalformedStreamCutError,
    ScopeNotFoundError,
    StreamNotFoundError,
)
from pravega_connector.wire import StreamCut, StreamName
from pravega_serde.errors import DeserializationError
from pravega_serde.routing import segment_key

KEYS = [f"ключ-{i % 29}" for i in range(3000)]
EVENTS = [f"{key}|{i}|".encode() + bytes(i % 331) for i, key in enumerate(KEYS)]


class Json:
    def serialize(self, value):
        return json.dumps(value).encode()

    def deserialize(self, data):
        try:
            return json.loads(data)
        except ValueError as error:
            raise DeserializationError(str(error)) from None


def by_key(events):
    grouped = {}
    for event in events:
        grouped.setdefault(event.split(b"|")[0], []).append(event)
    return grouped


@pytest.mark.parametrize("as_column", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("keyed", [False, True], ids=["no keys", "keys"])
def test_events_are_read_back_equal_and_in_order(client, stream_name, as_column, keyed):
    client.create_stream(stream_name, 3)
    with client.writer(stream_name) as writer:
        if as_column:
            for at in range(0, 3000, 1000):
                part = slice(at, at + 1000)
                writer.write_column(pa.array(EVENTS[part]), pa.array(KEYS[part]) if keyed else None)
        else:
            for key, event in zip(KEYS, EVENTS, strict=True):
                writer.write(event, key if keyed else None)
    batches = list(client.read_columns(stream_name))
    found = [event for batch in batches for event in batch.events.to_pylist()]
    assert sorted(found) == sorted(EVENTS)
    if keyed:
        assert by_key(found) == by_key(EVENTS)
        for batch in batches:
            for event in batch.events.to_pylist():
                assert int(segment_key(event.split(b"|")[0].decode()) * 3) == batch.segment_id


def test_one_segment_keeps_all_events_in_order(client, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        for event in EVENTS:
            writer.write(event)
    assert list(client.read(stream_name)) == EVENTS


def test_a_serializer_works_both_ways_and_names_the_event_that_it_cannot_read(client, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name, Json()) as writer:
        writer.write({"n": 1})
        writer.write({"n": 2})
    assert list(client.read(stream_name, Json())) == [{"n": 1}, {"n": 2}]
    with client.writer(stream_name) as writer:
        writer.write(b"no json")
    with pytest.raises(DeserializationError, match=rf"stream {stream_name}, segment 0, offset 32\b"):
        list(client.read(stream_name, Json()))


# ---------------------------------------------------------------- sizes


def test_events_of_no_bytes_are_events(client, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"")
        writer.write_column(pa.array([b"", b"x", b""]))
    assert list(client.read(stream_name)) == [b"", b"", b"x", b""]


@pytest.mark.parametrize("as_column", [False, True], ids=["rows", "columns"])
def test_large_events_keep_their_place_among_their_neighbours(client, stream_name, as_column):
    client.create_stream(stream_name)
    mib = bytes(range(256)) * 4096
    events = [b"first", b"8" + 8 * mib[:-1], b"between", b"9" + 9 * mib, b"", b"20" + 20 * mib, b"last"]
    with client.writer(stream_name, max_event_size=32 << 20) as writer:
        if as_column:
            writer.write_column(pa.array(events))
        else:
            for event in events:
                writer.write(event)
    found = list(client.read(stream_name))
    assert [len(event) for event in found] == [len(event) for event in events]
    assert found == events


def test_javas_limit_is_the_default_and_an_event_of_that_size_fits(client, stream_name):
    client.create_stream(stream_name)
    limit = 8 << 20
    with client.writer(stream_name) as writer:
        with pytest.raises(EventTooLargeError, match=rf"{limit + 1} bytes .*{limit} bytes .*{stream_name}"):
            writer.write(bytes(limit + 1))
        writer.write(bytes(limit))
    assert [len(event) for event in client.read(stream_name)] == [limit]


# ---------------------------------------------------------------- cuts


def test_a_range_between_two_tails_holds_exactly_what_was_written_between_them(client, stream_name):
    client.create_stream(stream_name, 3)
    cuts = [client.tail(stream_name)]
    with client.writer(stream_name) as writer:
        for part in range(4):
            for i in range(50):
                writer.write(b"%d|%d" % (part, i), str(i % 7))
            writer.flush()
            cuts.append(client.tail(stream_name))
    for first in range(5):
        for last in range(first, 5):
            found = list(client.read(stream_name, start=cuts[first], end=cuts[last]))
            assert sorted(found) == sorted(b"%d|%d" % (p, i) for p in range(first, last) for i in range(50))


def test_head_and_tail_are_the_bounds(client, stream_name):
    client.create_stream(stream_name, 2)
    nothing = StreamCut(stream_name, {0: 0, 1: 0})
    assert client.head(stream_name) == client.tail(stream_name) == nothing
    with client.writer(stream_name) as writer:
        writer.write(b"12345678", "k")
    home = int(segment_key("k") >= 0.5)
    assert client.head(stream_name) == nothing
    assert client.tail(stream_name) == StreamCut(stream_name, {home: 16, 1 - home: 0})


def test_a_cut_survives_its_text(client, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"a")
        writer.flush()
        cut = StreamCut.from_text(client.tail(stream_name).to_text())
        writer.write(b"b")
    assert list(client.read(stream_name, start=cut)) == [b"b"]
    assert list(client.read(stream_name, end=cut)) == [b"a"]


def test_cuts_in_the_wrong_order_or_of_another_stream_are_refused(client, stream_name):
    client.create_stream(stream_name)
    head = client.head(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"a")
    with pytest.raises(MalformedStreamCutError, match="swap"):
        client.read(stream_name, start=client.tail(stream_name), end=head)
    other = StreamName(stream_name.scope, "other")
    client.create_stream(other)
    with pytest.raises(MalformedStreamCutError, match=f"{other}.*{stream_name}"):
        client.follow(stream_name, start=client.head(other))


# ---------------------------------------------------------------- what is not there


def test_a_stream_that_is_missing_is_never_created(client, stream_name):
    calls = [client.read, client.read_columns, client.follow, client.writer, client.head, client.tail]
    for call in calls:
        with pytest.raises((StreamNotFoundError, ScopeNotFoundError), match=stream_name.scope):
            call(stream_name)
    client.controller.create_scope(stream_name.scope)
    for call in [*calls, client.require_stream]:
        with pytest.raises(StreamNotFoundError, match=str(stream_name)):
            call(stream_name)
    assert not client.controller.stream_exists(stream_name)


def test_a_name_that_is_none_is_refused_before_anything_is_asked():
    with PravegaClient("tcp://127.0.0.1:1") as client, pytest.raises(InvalidNameError):
        client.read("a/b/c")


def test_truncated_events_are_data_loss_with_segment_and_offset(client, stream_name):
    client.create_stream(stream_name)
    start = client.head(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"gone")
        writer.flush()
        cut = client.tail(stream_name)
        writer.write(b"kept")
    client.controller.truncate_stream(cut)
    assert list(client.read(stream_name)) == [b"kept"]
    place = re.escape(f"stream {stream_name}, segment 0, offset 0: the events before offset 12")
    with pytest.raises(DataLossError, match=place):
        list(client.read(stream_name, start=start))
    with client.follow(stream_name, start=start) as reader, pytest.raises(DataLossError, match=place):
        reader.poll(10)


def test_a_stream_is_not_truncated_beyond_its_tail(client, stream_name):
    """The controller would take it, and hide what is written up to there."""
    client.create_stream(stream_name, 2)
    with client.writer(stream_name) as writer:
        writer.write_column(pa.array([b"%d" % i for i in range(100)]), pa.array([str(i) for i in range(100)]))
    tail = client.tail(stream_name)
    beyond = StreamCut(tail.stream, tail.positions | {1: tail.positions[1] + 1})
    with pytest.raises(MalformedStreamCutError, match=f"of segment 1: it ends at {tail.positions[1]}"):
        client.truncate(beyond)
    assert len(list(client.read(stream_name))) == 100
    client.truncate(tail)
    client.truncate(tail)
    assert list(client.read(stream_name)) == []


def test_segments_that_were_truncated_away_are_data_loss(client, stream_name):
    client.create_stream(stream_name)
    start = client.head(stream_name)
    with client.writer(stream_name) as writer:
        writer.write(b"gone")
        writer.flush()
        client.controller.scale_stream(stream_name, [0], [(0.0, 1.0)])
        writer.write(b"kept")
    client.controller.truncate_stream(client.tail(stream_name))
    with client.writer(stream_name) as writer:
        writer.write(b"new")
    assert list(client.read(stream_name)) == [b"new"]
    place = re.escape(f"stream {stream_name}, segment 0, offset 0: the segment was truncated away")
    with pytest.raises(DataLossError, match=place):
        list(client.read(stream_name, start=start))
    with client.follow(stream_name, start=start) as reader, pytest.raises(DataLossError, match=place):
        reader.poll(10)
