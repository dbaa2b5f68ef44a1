"""Scopes and streams by the client: made, listed, described, changed, deleted; several streams read together."""

import itertools

import pytest

from pravega_connector.client import PravegaClient, RetentionPolicy, ScalingPolicy
from pravega_connector.errors import (
    ConfigError,
    ControllerError,
    MalformedStreamCutError,
    ScopeExistsError,
    ScopeNotFoundError,
    StreamExistsError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.wire import StreamName
from pravega_serde.errors import DeserializationError


def write(client, stream, *values, serializer="string"):
    with client.writer(stream, serializer) as writer:
        for value in values:
            writer.write(value, routing_key="key")


def test_existing_and_missing_objects_are_reported_or_are_an_error(client, scope):
    assert client.create_scope(scope)
    assert not client.create_scope(scope)
    with pytest.raises(ScopeExistsError, match=scope):
        client.create_scope(scope, if_exists="error")
    assert client.scope_exists(scope)
    assert scope in client.scopes()
    assert client.create_stream("a", if_exists="error")
    assert not client.create_stream("a", 7)
    with pytest.raises(StreamExistsError, match=f"{scope}/a exists"):
        client.create_stream("a", if_exists="error")
    assert client.delete_stream("a")
    assert not client.delete_stream("a")
    with pytest.raises(StreamNotFoundError, match=f"{scope}/a"):
        client.delete_stream("a", if_missing="error")
    assert client.delete_scope(scope)
    assert not client.delete_scope(scope)
    assert not client.delete_stream("a")
    with pytest.raises(ScopeNotFoundError, match=scope):
        client.delete_scope(scope, if_missing="error")


def test_the_streams_of_a_scope_come_page_by_page(client, scope):
    names = {StreamName(scope, f"stream-{i}") for i in range(4)}
    for name in names:
        client.create_stream(name)
    listed = client.streams()
    assert next(listed) in names
    assert {*client.streams(scope)} == names
    with pytest.raises(ScopeNotFoundError):
        next(client.streams("no-such-scope"))


def test_a_scope_is_deleted_with_its_contents(client, own_scope):
    for number in range(3):
        client.create_stream(f"{own_scope}/s{number}", 2)
        client.write(f"{own_scope}/s{number}", "x", "string")
    client.seal_stream(f"{own_scope}/s1")
    client.create_table(f"{own_scope}/table", 4)
    with client.reader_group(f"{own_scope}/group", f"{own_scope}/s0", retention="automatic"):
        pass
    with pytest.raises(ControllerError, match="it has streams or tables"):
        client.delete_scope(own_scope)
    assert client.delete_scope(own_scope, recursive=True)
    assert own_scope not in client.scopes()
    assert not client.delete_scope(own_scope, recursive=True)
    with pytest.raises(ScopeNotFoundError):
        client.delete_scope(own_scope, recursive=True, if_missing="error")


def test_less_common_settings_of_a_stream(client, stream_name):
    client.create_stream(stream_name, timestamp_aggregation_timeout_ms=5000, rollover_size_bytes=1 << 20)
    config = client.describe(stream_name).config
    assert (config.timestamp_aggregation_timeout_ms, config.rollover_size_bytes) == (5000, 1 << 20)
    client.update_stream(stream_name, rollover_size_bytes=0)
    config = client.describe(stream_name).config
    assert (config.timestamp_aggregation_timeout_ms, config.rollover_size_bytes) == (5000, 0)
    with pytest.raises(ConfigError, match="rollover"):
        client.create_stream(stream_name, rollover_size_bytes=-1)


def test_streams_are_found_by_tag(client, own_scope):
    for number in range(4):
        client.create_stream(f"{own_scope}/s{number}", tags=["all", "odd" if number % 2 else "even"])
    client.update_stream(f"{own_scope}/s1", tags=["all", "even", "new tag"])
    assert {name.stream for name in client.streams(own_scope, tag="even")} == {"s0", "s1", "s2"}
    assert [name.stream for name in client.streams(own_scope, tag="odd")] == ["s3"]
    assert [name.stream for name in client.streams(own_scope, tag="new tag")] == ["s1"]
    assert list(client.streams(own_scope, tag="none")) == []
    with pytest.raises(ConfigError, match="'tag' must be a str"):
        client.streams(own_scope, tag=["even"])


def test_a_stream_is_described_and_changed(client, stream_name):
    client.create_stream(stream_name, 2, RetentionPolicy.by_time(60_000), tags=["red", "blue"])
    client.write(stream_name, "hello", "string", routing_key="a")
    found = client.describe(stream_name)
    assert found.stream == stream_name
    assert found.config.scaling == ScalingPolicy.fixed(2)
    assert found.config.retention == RetentionPolicy.by_time(60_000)
    assert set(found.config.tags) == {"red", "blue"}
    assert [(each.low, each.high) for each in found.segments] == [(0.0, 0.5), (0.5, 1.0)]
    assert (found.size, found.sealed) == (len("hello") + 8, False)
    assert (found.head, found.tail) == (client.head(stream_name), client.tail(stream_name))

    client.update_stream(stream_name, retention=None, tags=["green"])
    changed = client.describe(stream_name).config
    assert (changed.scaling, changed.retention, changed.tags) == (ScalingPolicy.fixed(2), None, ("green",))

    assert len(client.scale_stream(stream_name, 3)) == 3
    assert client.scale_stream(stream_name, 3) == list(client.describe(stream_name).segments)
    client.truncate(stream_name, "tail")
    assert client.describe(stream_name).size == 0
    client.seal_stream(stream_name)
    assert client.describe(stream_name).sealed
    with pytest.raises(StreamSealedError):
        client.write(stream_name, b"too late")


def test_one_event_is_durable_on_return(client, config, stream_name):
    client.create_stream(stream_name)
    client.write(stream_name, {"n": 1}, "json")
    with PravegaClient(config) as other:
        assert list(other.read(stream_name, "json")) == [{"n": 1}]


def test_places_are_words_cuts_and_their_texts(client, stream_name):
    client.create_stream(stream_name)
    write(client, stream_name, "a", "b")
    middle = client.tail(stream_name)
    write(client, stream_name, "c")
    for start in (middle, middle.to_text(), str(middle), [middle]):
        assert list(client.read(stream_name, str, start=start)) == ["c"]
    assert list(client.read(stream_name, str, start="head", end=middle.to_text())) == ["a", "b"]
    assert list(client.read(stream_name, str, start="earliest", end="unbounded", limit=2)) == ["a", "b"]
    assert list(client.read(stream_name, limit=0)) == []
    assert list(client.read(stream_name, bytes, limit=9)) == [b"a", b"b", b"c"]
    assert list(client.read(stream_name, start="latest")) == []
    with pytest.raises(ConfigError, match=r"argument 'start' must be 'earliest', 'latest'"):
        client.read(stream_name, start="unbounded")


def test_several_streams_are_read_and_followed_together(client, scope):
    streams = [StreamName(scope, name) for name in "ab"]
    for stream in streams:
        client.create_stream(stream, 2)
        write(client, stream, *(f"{stream.stream}{i}" for i in range(3)))
    expected = [f"{name}{i}" for name in "ab" for i in range(3)]
    assert list(client.read(streams, "string")) == expected
    assert list(client.read(["a", "b"], "string", limit=4)) == expected[:4]

    with client.follow(streams, "string", start="earliest") as reader:
        found = list(itertools.islice(reader, 4))
        bookmarks = reader.positions
    with client.follow(streams, "string", start=bookmarks) as reader:
        write(client, "b", "b3")
        for stream in streams:
            client.seal_stream(stream)
        rest = list(reader)
        assert reader.at_end
    for name, count in (("a", 3), ("b", 4)):
        assert [value for value in found + rest if value[0] == name] == [f"{name}{i}" for i in range(count)]

    with client.follow(streams, start="head") as reader:
        assert {batch.stream for batch in reader} == set(streams)
    with pytest.raises(MalformedStreamCutError, match=f"no stream cut of stream {streams[1]}"):
        client.follow(streams, start=client.head("a"))


def test_following_values_continues_after_one_that_cannot_be_decoded(client, stream_name):
    client.create_stream(stream_name)
    for event in (b"1", b"no json", b"2"):
        client.write(stream_name, event)
    with client.follow(stream_name, "json", start="earliest") as reader:
        assert reader.poll(60) == [1]
        before = reader.position
        with pytest.raises(DeserializationError, match="offset 9"):
            reader.poll(60)
        assert reader.position == before
        assert list(client.read(stream_name, start=reader.position)) == [b"no json", b"2"]
        assert reader.poll(60) == [2]
        assert reader.position == client.tail(stream_name)
