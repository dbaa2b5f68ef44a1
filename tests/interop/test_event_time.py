"""Event time shared with Java, both ways: Java's readers see our times, and we see the times of Java's writers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamConfig, StreamCut, TimeWindow
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.interop._java_time import JavaTimePeer

pytestmark = pytest.mark.long  # watermarks take seconds
EVENTS = [(f"key {number}", f"event {number}") for number in range(20)]


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaTimePeer]:
    with JavaTimePeer(pravega.config.controller) as java:
        yield java


def await_time(client: PravegaClient, stream: StreamName, time: int, eventually) -> StreamCut:
    """The cut of the watermark of a time, when it exists."""
    eventually(lambda: any(mark.low == time for mark in client.watermarks(stream)))
    return next(mark.cut for mark in client.watermarks(stream) if mark.low == time)


def test_java_readers_see_our_times(client: PravegaClient, java: JavaTimePeer, stream_name, eventually) -> None:
    client.create_stream(stream_name, 2)
    cuts = [client.head(stream_name)]
    with client.writer(stream_name) as writer:
        for time in (1000, 2000):
            for key, event in EVENTS:
                writer.write(event.encode(), key)
            writer.note_time(time)
            cuts.append(await_time(client, stream_name, time, eventually))
        transactions = client.transactions(stream_name, lease=60)
        transaction = transactions.begin()
        for key, event in EVENTS:
            transaction.write(event.encode(), key)
        transaction.commit(3000)
        cuts.append(await_time(client, stream_name, 3000, eventually))
    assert [client.time_window(cut).low for cut in cuts] == [None, 1000, 2000, 3000]
    for number, cut in enumerate(cuts):
        window = client.time_window(cut)
        assert java.window(cut, window) == window
        with client.reader_group(f"{stream_name.scope}/from{number}", stream_name, start=cut) as group:
            assert group.time_window(stream_name) == window


def test_we_see_the_times_of_java_writers(client: PravegaClient, java: JavaTimePeer, stream_name, eventually) -> None:
    client.create_stream(stream_name, 2)
    cuts = []
    for time in (1000, 2000):
        java.note(stream_name, time, EVENTS)
        cuts.append(await_time(client, stream_name, time, eventually))
        assert cuts[-1] == client.tail(stream_name)
    java.commit(stream_name, 3000, EVENTS)
    cuts.append(await_time(client, stream_name, 3000, eventually))
    assert cuts[-1] == client.tail(stream_name)
    assert client.time_window(cuts[0]) == TimeWindow(1000, 2000)
    assert client.cut_at(stream_name, 2500) == cuts[0]
    assert client.cut_at(stream_name, 2500, end=True) == cuts[2]
    for cut in cuts:
        window = client.time_window(cut)
        assert java.window(cut, window) == window


def test_times_of_both_are_put_together(client: PravegaClient, java: JavaTimePeer, stream_name, eventually) -> None:
    client.controller.create_scope(stream_name.scope)
    policy = StreamConfig(scaling=ScalingPolicy.fixed(2), timestamp_aggregation_timeout_ms=0)
    client.controller.create_stream_with(stream_name, policy)
    with client.writer(stream_name) as writer:
        java.note(stream_name, 1000, EVENTS)
        await_time(client, stream_name, 1000, eventually)
        writer.write(b"ours", "key")
        writer.note_time(5000)
        java.note(stream_name, 4000, EVENTS)
        await_time(client, stream_name, 5000, eventually)
        writer.write(b"ours", "key")
        writer.note_time(7000)
        java.note(stream_name, 6000, EVENTS)
        # The controller does not wait for a late writer while the stream's timeout is 0.
        await_time(client, stream_name, 7000, eventually)
    tail = client.tail(stream_name)
    window = client.time_window(tail)
    assert java.window(tail, window) == window


def test_java_readers_see_the_times_of_our_sink(
    client: PravegaClient, java: JavaTimePeer, spark, pravega: LocalPravega, stream_name, eventually, tmp_path
) -> None:
    client.create_stream(stream_name, 2)
    frame = spark.range(100).selectExpr("cast(id as string) event", "timestamp_millis(id * 1000) at")
    folder = str(tmp_path / "rows")
    frame.write.parquet(folder)
    query = spark.readStream.schema(frame.schema).parquet(folder).writeStream.format("pravega")
    query = query.option("controller", pravega.config.controller).option("event_time_column", "at")
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(stream_name))
    query.trigger(availableNow=True).start().awaitTermination()
    cut = await_time(client, stream_name, 99_000, eventually)
    assert cut == client.tail(stream_name)
    for at, window in ((client.head(stream_name), TimeWindow(None, 99_000)), (cut, TimeWindow(99_000, None))):
        assert client.time_window(at) == window
        assert java.window(at, window) == window
