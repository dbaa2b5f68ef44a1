"""Reads held at the ends of segments report arrivals."""

import threading
import time

import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.reader.tail_notifications import Arrivals
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import GetStreamSegmentInfo, ReadSegment, encode

A, B = StreamName("s", "a"), StreamName("s", "b")
LONG = 30.0  # none of the tests waits for it


@pytest.fixture
def client():
    with InProcessPravega() as pravega, PravegaClient(pravega.config) as client:
        client.create_stream(A, 2)
        client.create_stream(B, 1)
        yield client


@pytest.fixture
def arrivals(client):
    arrivals = Arrivals(client.stores)
    yield arrivals
    arrivals.close()


def ends(client, *streams):
    return {stream: dict(client.tail(stream).positions) for stream in streams}


def write(client, stream, text="x", key=None):
    with client.writer(stream, "string") as writer:
        writer.write(text, key)


def soon(work):
    timer = threading.Timer(0.1, work)
    timer.start()
    return timer


def test_nothing_arrives(client, arrivals):
    began = time.monotonic()
    assert arrivals.wait(ends(client, A, B), 0.2) is False
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("stream", [A, B])
def test_an_event_is_reported_at_once(client, arrivals, stream):
    before = ends(client, A, B)
    assert arrivals.wait(before, 0.01) is False
    timer = soon(lambda: write(client, stream))
    assert arrivals.wait(before, LONG) is True
    timer.join()
    # One that existed before the question as well.
    after = ends(client, A, B)
    write(client, stream)
    assert arrivals.wait(after, LONG) is True


def test_what_has_been_seen_is_not_reported_again(client, arrivals):
    before = ends(client, B)
    assert arrivals.wait(before, 0.01) is False
    write(client, B)
    write(client, B)
    assert arrivals.wait(ends(client, B), 0.2) is False, "the read that was held before is answered now"
    write(client, B)
    assert arrivals.wait(ends(client, A), 0.2) is False, "another stream's, which nobody asked for"


def test_a_scaled_and_a_sealed_stream_are_reported(client, arrivals):
    before = ends(client, B)
    timer = soon(lambda: client.scale_stream(B, 2))
    assert arrivals.wait(before, LONG) is True
    timer.join()
    after = ends(client, B)
    timer = soon(lambda: client.seal_stream(B))
    assert arrivals.wait(after, LONG) is True
    timer.join()


def test_waiting_asks_once(client, arrivals, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "pravega_connector.reader.tail_notifications.encode", lambda message: sent.append(message) or encode(message)
    )
    before = ends(client, A, B)
    for _ in range(5):
        assert arrivals.wait(before, 0.02) is False
    assert [type(message) for message in sent] == [ReadSegment] * 3
    assert GetStreamSegmentInfo not in map(type, sent)


def test_where_it_cannot_be_told_is_said_at_once(client, arrivals):
    assert arrivals.wait({}, LONG) is None
    assert arrivals.wait({A: dict.fromkeys(range(300), 0)}, LONG) is None
    assert arrivals.wait(ends(client, A), 0.05) is False, "and it goes on where it can"


def test_a_connection_that_is_lost_ends_the_wait(client, arrivals):
    before = ends(client, A)
    assert arrivals.wait(before, 0.01) is False
    (connection,) = arrivals._connections.values()
    connection._sock.shutdown(2)
    assert arrivals.wait(before, LONG) is None
    assert arrivals.wait(before, 0.05) is False


def test_a_store_that_has_the_segment_no_more_is_news(client, arrivals):
    before = ends(client, A)
    client.seal_stream(A)
    client.delete_stream(A)
    assert arrivals.wait(before, LONG) is not False
