"""Java writes events with routing keys while the stream is scaled, and we read one of the keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.wire import StreamName
from pravega_serde import ByFunction
from tests.interop._java import JavaPeer
from tests.interop._java_client import JavaClientPeer

KEYS = [f"camera {number}" for number in range(30)] + ["größe 2", "カメラ", "🎥 1"]
# Bounds of the segments in each epoch: they are divided, merged unevenly, and divided again.
EPOCHS = [(0.0, 0.5, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.0, 0.3, 1.0), (0.0, 0.1, 0.7, 1.0)]
# The keys are in the events, in front of their numbers.
BY_EVENT = ByFunction(lambda event: event.rpartition("|")[0])


@pytest.fixture(scope="module")
def other_java(pravega) -> Iterator[JavaClientPeer]:
    with JavaClientPeer(pravega.config.controller) as java:
        yield java


def scale(client: PravegaClient, stream: StreamName, bounds: tuple[float, ...]) -> None:
    current = [each.id for each in client.controller.current_segments(stream)]
    client.controller.scale_stream(stream, current, list(itertools.pairwise(bounds)))


def written(key: str, count: int) -> list[str]:
    return [f"{key}|{number}" for number in range(count)]


def test_one_key_of_java_through_scaling(client: PravegaClient, java: JavaPeer, stream_name: StreamName) -> None:
    """In order, all, and nothing of other keys."""
    client.create_stream(stream_name, 2)
    for epoch, bounds in enumerate(EPOCHS):
        if epoch:
            scale(client, stream_name, bounds)
        numbers = range(epoch * 20, epoch * 20 + 20)
        java.write(stream_name, ((key, f"{key}|{number}".encode()) for number in numbers for key in KEYS))
    client.seal_stream(stream_name)
    count = 20 * len(EPOCHS)
    for key in KEYS[::4]:
        assert list(client.read(stream_name, "string", key=key, router=BY_EVENT)) == written(key, count)
    for key in KEYS[3::16]:
        with client.follow(stream_name, "string", start="earliest", key=key, router=BY_EVENT) as reader:
            assert list(reader) == written(key, count)
    part = client.read_columns(stream_name, key="camera 7", keep_other_keys=True)
    assert part.size < client.read_columns(stream_name).size


def test_a_transaction_of_java_that_outlives_a_scaling(
    client: PravegaClient, other_java: JavaClientPeer, stream_name: StreamName
) -> None:
    """Its events are in copies of the segments that the stream had when it was begun."""
    client.create_stream(stream_name, 2)
    transaction = client.transactions(stream_name, "string", lease=60).begin()
    other_java.join(stream_name, transaction.id, [(key, f"{key}|0") for key in KEYS])
    scale(client, stream_name, EPOCHS[1])
    transaction.commit()
    with client.writer(stream_name, "string", router=BY_EVENT) as writer:
        for key in KEYS:
            writer.write(f"{key}|1")
    for key in KEYS[::4]:
        assert list(client.read(stream_name, "string", key=key, router=BY_EVENT)) == written(key, 2)
