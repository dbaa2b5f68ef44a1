"""A routing key leads every client to the same segment."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.wire import StreamName
from tests.interop._events import numbered, sample_keys, segments_here

KEYS = 12_000
# Unequal ranges: a hash that is only nearly right would show at one of their borders.
RANGES = [(0.0, 0.05), (0.05, 0.3), (0.3, 0.31), (0.31, 0.75), (0.75, 0.9), (0.9, 1.0)]


def write_column(client: PravegaClient, stream: StreamName, keys: list[str]) -> None:
    with client.writer(stream) as writer:
        payloads = pa.array([payload for _, payload in numbered(keys)], pa.binary())
        writer.write_column(payloads, pa.array(keys, pa.string()))


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name, 1)
    client.controller.scale_stream(stream_name, [0], RANGES)
    return stream_name


@pytest.fixture
def other_stream(client: PravegaClient, stream: StreamName) -> StreamName:
    """A second stream with the same segments."""
    other = StreamName(stream.scope, f"{stream.stream}b")
    client.create_stream(other, 1)
    client.controller.scale_stream(other, [0], RANGES)
    assert client.controller.current_segments(other) == client.controller.current_segments(stream)
    return other


def test_our_columns_go_where_java_puts_them(client, java, stream, other_stream):
    keys = sample_keys(KEYS)
    java.write(stream, numbered(keys))
    write_column(client, other_stream, keys)
    expected = segments_here(client, stream)
    assert len(expected) == KEYS
    assert len(set(expected.values())) == len(RANGES)
    assert segments_here(client, other_stream) == expected
    assert {int(event.payload): event.segment for event in java.read(other_stream)} == expected


def test_our_events_go_where_java_puts_them(client, java, stream, other_stream):
    keys = sample_keys(KEYS)
    java.write(stream, numbered(keys))
    with client.writer(other_stream) as writer:
        for key, payload in numbered(keys):
            writer.write(payload, key)
    assert segments_here(client, other_stream) == segments_here(client, stream)


def as_rust_hashes(key: str) -> str:
    """The key whose segment the Rust client uses for `key`.

    It hashes the UTF-16 text in a buffer with as many units as the key has bytes in UTF-8, so what is not ASCII is
    followed by NULs. Java does not do so, and we follow Java: writers in Rust and Java agree on ASCII keys only.
    """
    return key + "\0" * (len(key.encode()) - len(key.encode("utf-16-le")) // 2)


def test_our_columns_go_where_rust_puts_them(client, rust, stream, other_stream):
    keys = [*sample_keys(KEYS), *(f"plain {number}" for number in range(KEYS))]
    assert [as_rust_hashes(key) for key in keys if key.isascii()] == [key for key in keys if key.isascii()]
    rust.write(stream, numbered(keys))
    write_column(client, other_stream, [as_rust_hashes(key) for key in keys])
    expected = segments_here(client, stream)
    assert len(expected) == len(keys)
    assert segments_here(client, other_stream) == expected
