"""A reader group as Java and this client see it: segments, positions, checkpoints that are given up, the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks._drive import PeerError
from pravega_connector.client import GroupNotification, PravegaClient, SegmentDistribution
from pravega_connector.errors import ReaderGroupError
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.interop._java_readers import JavaReaders

SILENCE = 0.5
Eventually = Callable[..., None]


@pytest.fixture
def java(pravega: LocalPravega, scope: str) -> Iterator[JavaReaders]:
    with JavaReaders(pravega.config.controller, scope, "group") as java:
        yield java


def test_both_see_a_group_from_its_start_to_the_end_of_its_data(
    client: PravegaClient, java: JavaReaders, stream_name: StreamName, eventually: Eventually
) -> None:
    client.create_stream(stream_name, 2)
    with client.writer(stream_name) as writer:
        for number in range(20):
            writer.write(b"event", str(number))
    assert java.create([stream_name], checkpoint_ms=-1, refresh_ms=100)
    with client.reader_group(StreamName(java.scope, java.group)) as group, ThreadPoolExecutor(1) as threads:
        seen = group.watch(0.1)
        assert next(seen) == GroupNotification(2, 0, end_of_data=False)
        assert group.segment_distribution() == SegmentDistribution({}, 2)
        assert group.reported_cuts() == java.look().cuts == {stream_name: client.head(stream_name)}

        java.open("java")
        eventually(lambda: java.read("java", 100, SILENCE) and java.look().segments == {"java": 2})
        assert group.segment_distribution() == SegmentDistribution({"java": 2}, 0)
        assert next(seen) == GroupNotification(2, 1, end_of_data=False)
        tail = {stream_name: client.tail(stream_name)}
        eventually(lambda: java.read("java", 1, SILENCE) and group.reported_cuts() == tail)

        # Java's reader is not asked to read, so that it takes no checkpoint.
        ours = threads.submit(group.checkpoint, "ours", 60)
        eventually(lambda: group.state.checkpoints.outstanding == ["ours"])
        java.cancel()
        with pytest.raises(ReaderGroupError, match="was given up"):
            ours.result()
        java.begin("theirs")
        eventually(lambda: group.state.checkpoints.outstanding == ["theirs"])
        group.cancel_outstanding_checkpoints()
        with pytest.raises(PeerError):
            java.completed("theirs", 30)

        client.seal_stream(stream_name)
        java.read("java", 1, SILENCE)
        java.begin("last")  # at a checkpoint, a reader gives up what it has read completely
        eventually(lambda: java.read("java", 1, SILENCE) and group.state.is_end_of_data)
        *_, last = seen
        assert last == GroupNotification(0, 1, end_of_data=True)
