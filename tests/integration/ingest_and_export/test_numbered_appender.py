"""Numbered events are in a stream once, with any writer, and through cuts and scaling."""

import threading
import uuid

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import StreamNotFoundError, StreamSealedError
from pravega_connector.single_segment.conditional_append import NumberedAppender
from tests.support.proxy import Proxy

COUNT = 4000
EVENTS = [(17 * i, b"%06d" % i + bytes(i % 90)) for i in range(COUNT)]
KEY = "one key"


@pytest.fixture
def stream(client, stream_name):
    client.create_stream(stream_name, 2)
    return stream_name


@pytest.fixture
def attempt(config, stream):
    """``attempt(count)``: write the first ``count`` events, some at a time, from the beginning."""
    writer = uuid.uuid4().bytes

    def attempt(count=COUNT, step=100, client=None):
        with PravegaClient(config) as own:
            appender = NumberedAppender((client or own).stores, stream, KEY, writer)
            try:
                for at in range(0, count, step):
                    appender.append(EVENTS[at : min(at + step, count)])
            finally:
                appender.close()

    return attempt


def split_all(client, stream):
    for segment in client.controller.current_segments(stream):
        middle = (segment.low + segment.high) / 2
        client.controller.scale_stream(stream, [segment.id], [(segment.low, middle), (middle, segment.high)])


def expect_all(client, stream):
    assert list(client.read(stream)) == [event for _, event in EVENTS]


def test_attempts_at_a_time_while_the_stream_scales(client, stream, attempt):
    threads = [
        threading.Thread(target=attempt, args=arguments)
        for arguments in ((1000, 7), (COUNT, 30), (COUNT, 41), (2500, 100))
    ]
    for thread in threads:
        thread.start()
    split_all(client, stream)
    split_all(client, stream)
    for thread in threads:
        thread.join()
    expect_all(client, stream)


def test_attempts_after_each_other_with_scalings_between(client, stream, attempt):
    for count in (500, 300, 1500):
        attempt(count)
        split_all(client, stream)
    attempt()
    expect_all(client, stream)
    everything = [segment.id for segment in client.controller.current_segments(stream)]
    client.controller.scale_stream(stream, everything, [(0.0, 0.5), (0.5, 1.0)])
    attempt()
    expect_all(client, stream)


def test_connections_that_are_cut(config, client, stream, attempt):
    with Proxy(client.controller.endpoint(stream, 0)) as proxy, PravegaClient(config) as through:
        proxy.between(through)
        done = threading.Event()

        def cut():
            while not done.is_set():
                proxy.cut_after(15_000)
                done.wait(0.02)

        cutter = threading.Thread(target=cut)
        cutter.start()
        attempt(client=through)
        done.set()
        cutter.join()
        assert proxy.cuts >= 5
    expect_all(client, stream)


def test_a_stream_that_takes_nothing(client, stream, attempt):
    client.controller.seal_stream(stream)
    with pytest.raises(StreamSealedError):
        attempt(10)
    client.controller.delete_stream(stream)
    with pytest.raises(StreamNotFoundError):
        attempt(10)
