"""Users who may read a stream and nothing else: all that reads works for them, and nothing that writes.

And users who may also publish a position.
"""

import logging
from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import AuthenticationError
from pravega_connector.wire import StreamName
from tests.integration._users import ORDERS as STREAM
from tests.integration._users import as_user, password
from tests.support.micro_batches import MicroBatches

pytestmark = pytest.mark.real_servers("users with rights of their own")

EVENTS = [b"%d" % number for number in range(20)]


@pytest.fixture(scope="module", autouse=True)
def orders(admin: PravegaConfig) -> None:
    with PravegaClient(admin) as client:
        client.controller.create_scope(STREAM.scope)
        client.create_stream(STREAM, 2)
        write(client, EVENTS[:10])
        segments = [segment.id for segment in client.controller.current_segments(STREAM)]
        client.controller.scale_stream(STREAM, segments, [(0.0, 0.5), (0.5, 0.7), (0.7, 1.0)])
        write(client, EVENTS[10:])


def write(client: PravegaClient, events: list[bytes]) -> None:
    with client.writer(STREAM) as writer:
        for event in events:
            writer.write(event, routing_key=event.decode())


@pytest.fixture
def config(admin: PravegaConfig) -> PravegaConfig:
    return as_user(admin, "analyst")


@pytest.fixture
def analyst(config: PravegaConfig) -> Iterator[PravegaClient]:
    with PravegaClient(config) as client:
        yield client


def test_the_client_reads_and_follows(analyst: PravegaClient):
    assert sorted(analyst.read(STREAM), key=int) == EVENTS
    head, tail = analyst.head(STREAM), analyst.tail(STREAM)
    assert (len(head.positions), len(tail.positions)) == (2, 3)
    assert analyst.controller.segments_between(head, tail) == [0, 1, *tail.positions]
    found: list[bytes] = []
    with analyst.follow(STREAM, start=StreamCut(STREAM, head.positions)) as reader:
        while len(found) < len(EVENTS):
            batch = reader.poll(30)
            assert batch is not None
            found += batch.events.to_pylist()
    assert sorted(found, key=int) == EVENTS
    assert analyst.watermarks(STREAM) == []


def test_a_query_reads(config: PravegaConfig):
    options = {
        "controller": config.controller,
        "path": str(STREAM),
        "username": "analyst",
        "password": password("analyst"),
        "tls_ca_file": str(config.tls_ca_file),
        "start_stream_cut": "earliest",
    }
    batches = list(MicroBatches().run(**options, max_rows_per_trigger="7"))
    assert len(batches) > 2
    assert sorted((row.event for batch in batches for row in batch.rows), key=int) == EVENTS


def test_nothing_is_written(analyst: PravegaClient):
    with pytest.raises(AuthenticationError, match=str(STREAM)), analyst.writer(STREAM) as writer:
        writer.write(b"event")
    with pytest.raises(AuthenticationError, match=str(STREAM)):
        analyst.controller.create_transaction(STREAM, 30_000)
    with pytest.raises(AuthenticationError, match=str(STREAM)):
        analyst.truncate(analyst.tail(STREAM))


@pytest.mark.parametrize(("user", "has_state"), [("publisher", False), ("owner", True)])
def test_a_position_is_published_with_and_without_the_right_to_the_group(admin, caplog, user: str, has_state: bool):
    with PravegaClient(as_user(admin, user)) as client, PravegaClient(admin) as owner:
        with caplog.at_level(logging.WARNING):
            client.subscriber(STREAM, user).publish(client.tail(STREAM))
        group = f"{user}.{STREAM.stream}"
        assert f"{STREAM.scope}/{group}" in client.controller.subscribers(STREAM)
        assert (f"reader group {STREAM.scope}/{group} has no state" in caplog.text) is not has_state
        log = owner.revisioned(StreamName(STREAM.scope, f"_RG{group}"))
        assert (log.latest_revision() != log.oldest_revision()) is has_state
