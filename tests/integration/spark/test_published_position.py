"""Retention on a real server that polls every 0.1 s: up to the published position, by size and by time."""

import logging
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, RetentionPolicy, StreamCut
from pravega_connector.errors import ControllerError, DataLossError
from pravega_connector.local import LocalPravega
from pravega_connector.rows.columns import decoded_fields
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.readers import PravegaStreamReader
from pravega_connector.wire import StreamName
from tests.integration._events import SIZE, write_events
from tests.integration.spark._planning import next_offset
from tests.support.jvm import SOON_READY

# tests/unit/client/test_subscriber.py publishes positions, and test_pages.py runs a query that does.
pytestmark = [pytest.mark.long, pytest.mark.real_servers("retention is the server's")]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalPravega]:
    settings = ("-Dcontroller.retention.frequency.minutes=0", *SOON_READY)
    with LocalPravega(heap_mb=512, cache_mb=256, java_options=settings) as server:
        yield server


@pytest.fixture
def client(server: LocalPravega) -> Iterator[PravegaClient]:
    with PravegaClient(server.config) as client:
        yield client


@pytest.fixture
def write(client: PravegaClient, stream_name: StreamName) -> Callable[[int], StreamCut]:
    """``write(count)``: this many events of SIZE bytes with their headers; the tail after them."""
    return partial(write_events, client, stream_name)


@pytest.fixture
def reader(server: LocalPravega, stream_name: StreamName) -> Callable[..., PravegaStreamReader]:
    """``reader(**options)``: what plans a streaming query of the stream."""

    def reader(**options: str) -> PravegaStreamReader:
        raw = {"controller": server.controller_uri, "stream": str(stream_name), "start_stream_cut": "earliest"}
        parsed = parse_options(SourceOptions, raw | options)
        return PravegaStreamReader(parsed, pa.schema(decoded_fields(parsed, None)), None)

    return reader


def retention_runs(client: PravegaClient, stream: StreamName, eventually: Callable[..., None]) -> None:
    """Wait until retention has run again: it truncates another stream, which has no subscriber."""
    other = StreamName(stream.scope, "other")
    client.create_stream(other, 1, RetentionPolicy.by_size(1))
    before = client.head(other)

    def has_run() -> bool:
        with client.writer(other) as writer:
            writer.write(b"x")
        return client.head(other) != before

    eventually(has_run)


def test_the_server_truncates_up_to_the_committed_position_and_not_beyond(
    client, stream_name, write, reader, eventually
):
    client.create_stream(stream_name, 2, RetentionPolicy.by_size(SIZE))
    query = reader(publish_position="sales")
    start = query.initialOffset()
    query.latestOffset(start, None)  # from now on the server keeps what comes
    first = write(50)
    end = next_offset(query, start)
    assert client.controller.subscribers(stream_name) == [f"{stream_name.scope}/sales.{stream_name.stream}"]
    last = write(50)
    retention_runs(client, stream_name, eventually)
    assert client.head(stream_name).positions == {0: 0, 1: 0}, "nothing is committed yet"
    query.commit(end)
    eventually(lambda: client.head(stream_name) == first)
    retention_runs(client, stream_name, eventually)
    assert client.head(stream_name) == first != last, "what is not committed stays"


def test_the_position_continues_through_scaling_and_restarts(client, stream_name, write, reader, eventually):
    client.create_stream(stream_name, 2, RetentionPolicy.by_size(SIZE))
    query = reader(publish_position="sales")
    start = query.latestOffset(query.initialOffset(), None)
    write(10)
    end = next_offset(query, start)
    client.controller.scale_stream(stream_name, [0, 1], [(0.0, 0.3), (0.3, 0.7), (0.7, 1.0)])
    write(10)
    query = reader(publish_position="sales")
    end = query.latestOffset(end, None)  # Spark begins a run with the end of the last committed batch
    after = write(10)
    end = next_offset(query, end)
    query.commit(end)
    write(30)
    eventually(lambda: client.head(stream_name) == after)


def test_what_cannot_be_published_is_a_warning(client, stream_name, write, reader, caplog):
    client.create_stream(stream_name)
    early = write(1)
    client.subscriber(stream_name, "sales").publish(write(5))
    query = reader(publish_position="sales", start_stream_cut=early.to_text())
    with caplog.at_level(logging.WARNING):
        end = query.latestOffset(query.initialOffset(), None)
        query.commit(query.initialOffset())
    assert caplog.text.count("was not published for 'sales'") == 1
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        query.commit(end)
    assert "was not published" not in caplog.text


def test_a_subscriber_lives_on_with_a_stream_of_the_same_name(client, stream_name, write):
    subscriber = client.subscriber(stream_name, "sales")
    for _ in range(2):
        client.create_stream(stream_name)
        subscriber.publish(write(3))
        assert client.controller.subscribers(stream_name)
        with pytest.raises(ControllerError, match="a later position was already published"):
            subscriber.publish(client.head(stream_name))
        client.controller.seal_stream(stream_name)
        client.controller.delete_stream(stream_name)
    client.create_stream(stream_name)
    subscriber.publish(client.tail(stream_name))
    assert subscriber.remove()
    assert not subscriber.remove()
    assert client.controller.subscribers(stream_name) == []


@pytest.mark.parametrize(
    "policy", [RetentionPolicy.by_size(10 * SIZE), RetentionPolicy.by_time(300)], ids=["size", "time"]
)
def test_retention_passes_a_query_that_is_down(client, stream_name, write, reader, eventually, policy):
    client.create_stream(stream_name, 1, policy)
    query = reader()
    start = query.initialOffset()
    read = write(5)
    end = next_offset(query, start)

    def has_passed() -> bool:
        """Retention cuts where the stream ended when it ran last: so it needs new events again and again."""
        write(20)
        return client.head(stream_name).positions[0] > read.positions[0]

    def is_noticed() -> bool:
        """The controller knows the new head before the segment store has truncated."""
        try:
            reader().latestOffset(end, None)
        except DataLossError:
            return True
        return False

    eventually(has_passed)
    eventually(is_noticed)
    lost = client.head(stream_name).positions[0] - read.positions[0]
    with pytest.raises(
        DataLossError, match=rf"segment 0, offset {5 * SIZE}: [\d,]+ bytes from there on were truncated"
    ):
        reader().latestOffset(end, None)
    tolerant = reader(fail_on_data_loss="false")
    tolerant.latestOffset(end, None)
    assert tolerant.reportLatestOffset()["lost"]["bytes"] >= lost
