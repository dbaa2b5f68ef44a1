"""Every client reads the events of every other one: the same bytes, in the same order for each routing key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.wire import StreamName
from tests.interop._events import Events, assert_same, read_here, sample_events

SEGMENTS = 4


def write_rows(client: PravegaClient, stream: StreamName, events: Events) -> None:
    with client.writer(stream) as writer:
        for key, payload in events:
            writer.write(payload, key)


def write_columns(client: PravegaClient, stream: StreamName, events: Events) -> None:
    keys, payloads = zip(*events, strict=True)
    with client.writer(stream) as writer:
        writer.write_column(pa.array(payloads, pa.binary()), pa.array(keys, pa.string()))


def test_java_writes_and_we_read(client, java, stream_name):
    client.create_stream(stream_name, SEGMENTS)
    events = sample_events()
    java.write(stream_name, events)
    assert_same((event.payload for event in read_here(client, stream_name)), events)


def test_java_strings_are_plain_utf8_here(client, java, stream_name):
    client.create_stream(stream_name, SEGMENTS)
    texts = ["", "plain", "ümläut", "日本語", "🚀 and \x00"]
    java.write(stream_name, [(text, text.encode()) for text in texts], serializer="utf8")
    assert sorted(client.read(stream_name)) == sorted(text.encode() for text in texts)


def test_rust_writes_and_we_read(client, rust, stream_name):
    client.create_stream(stream_name, SEGMENTS)
    events = sample_events()
    rust.write(stream_name, events)
    assert_same((event.payload for event in read_here(client, stream_name)), events)


@pytest.mark.parametrize("write", [write_rows, write_columns])
def test_we_write_and_java_reads(client, java, stream_name, write):
    client.create_stream(stream_name, SEGMENTS)
    events = sample_events()
    write(client, stream_name, events)
    assert_same((event.payload for event in java.read(stream_name)), events)
    assert_same((event.payload for event in java.read_group(stream_name, len(events))), events)


@pytest.mark.parametrize("write", [write_rows, write_columns])
def test_we_write_and_rust_reads(client, rust, stream_name, write):
    client.create_stream(stream_name, SEGMENTS)
    events = [event for event in sample_events() if event[1]]  # an empty event is the end for its reader: it waits on
    write(client, stream_name, events)
    assert_same(rust.read(stream_name, len(events)), events)


def test_segments_and_offsets_are_those_of_java(client, java, stream_name):
    client.create_stream(stream_name, SEGMENTS)
    events = sample_events()
    write_columns(client, stream_name, events)
    here = sorted(read_here(client, stream_name))
    assert len({event.segment for event in here}) == SEGMENTS
    assert sorted(java.read(stream_name)) == here
    assert sorted(java.read_group(stream_name, len(events))) == here


def test_java_follows_what_we_wrote_across_a_scaling(client, java, stream_name):
    client.create_stream(stream_name, 1)
    events = [(f"key {number % 50}", f"{number}".encode()) for number in range(1000)]
    with client.writer(stream_name) as writer:
        for number, (key, payload) in enumerate(events):
            if number == 500:
                writer.flush()
                old = [segment.id for segment in client.controller.current_segments(stream_name)]
                client.controller.scale_stream(stream_name, old, [(0.0, 0.2), (0.2, 0.7), (0.7, 1.0)])
            writer.write(payload, key)
    assert_same((event.payload for event in java.read_group(stream_name, len(events))), events)
    assert sorted(java.read(stream_name)) == sorted(read_here(client, stream_name))


def test_we_read_what_java_wrote_across_a_scaling(client, java, stream_name):
    client.create_stream(stream_name, 2)
    events = [(f"key {number % 50}", f"{number}".encode()) for number in range(1000)]
    java.write(stream_name, events[:500])
    old = [segment.id for segment in client.controller.current_segments(stream_name)]
    client.controller.scale_stream(stream_name, old, [(0.0, 0.3), (0.3, 1.0)])
    java.write(stream_name, events[500:])
    assert_same(client.read(stream_name), events)
