"""Flush waits for the events that were written before it, and for no later ones."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from pravega_connector.testing import InProcessPravega
from pravega_connector.testing.requests import Append
from pravega_connector.wire import StreamName
from pravega_serde.routing import segment_key
from tests.support.fake_stream import FakeStream

LOW, HIGH = (next(k for k in map(str, range(100)) if (segment_key(k) < 0.5) is low) for low in (True, False))


@contextmanager
def flushing(writer) -> Iterator[threading.Thread]:
    """A flush that has begun, in a thread."""
    thread = threading.Thread(target=writer.flush, args=(20,))
    thread.start()
    try:
        while not writer._loop._bell._waiters:
            assert thread.is_alive()
        yield thread
    finally:
        thread.join()


def held(store) -> Callable[[], None]:
    """Let appends wait one by one: each call lets the next one take effect."""
    gate = threading.Semaphore(0)

    def wait(session, request):
        assert gate.acquire(timeout=120)
        store.serve(session, request)

    store.on(Append, wait, times=2)
    return gate.release


def test_flush_returns_while_a_later_event_is_not_durable(client, stream, store):
    serve_next = held(store)
    with client.writer(stream.name) as writer:
        writer.write_column(pa.array([b"before"]))
        with flushing(writer) as flush:
            writer.write_column(pa.array([b"later"]))
            serve_next()
            flush.join(10)
            assert not flush.is_alive()
            assert store.segments[stream.segment(0)].events == [b"before"]
            serve_next()
    assert store.segments[stream.segment(0)].events == [b"before", b"later"]


def test_flush_waits_for_its_events_in_the_segments_that_follow_a_scaling(store):
    """The merge sends a later event of one segment before an earlier event of the other one."""
    stream = FakeStream(store, segments=2)
    serve_next = threading.Semaphore(0)
    new: list[int] = []

    def scale_and_drop(session, request):
        if not new:
            new[:] = stream.scale([0, 1], 0.0, 1.0)
        session.drop()

    def wait(session, request):
        assert serve_next.acquire(timeout=120)
        store.serve(session, request)

    store.on(Append, scale_and_drop, times=2)
    store.on(Append, wait, times=100)
    with stream.client() as client, client.writer(stream.name, timeout=20) as writer:
        writer.write_column(pa.array([b"low", b"high"]), pa.array([LOW, HIGH]))
        with flushing(writer) as flush:
            for number in range(5):
                writer.write_column(pa.array([b"later %d" % number]), pa.array([LOW]))
            found: list[bytes] = []
            while flush.is_alive():
                serve_next.release()
                flush.join(0.01)
            found += store.segments[stream.segment(new[0])].events
            assert {b"low", b"high"} <= set(found)
            store.forget_rules()
            for _ in range(100):
                serve_next.release()
    assert sorted(store.segments[stream.segment(new[0])].events) == sorted(
        [b"low", b"high", *(b"later %d" % number for number in range(5))]
    )


def test_flush_ends_while_other_threads_write_and_the_stream_is_scaled():
    with InProcessPravega() as pravega, pravega.client() as client:
        stream = StreamName("scope", "busy")
        client.create_stream(stream, 1)
        ended = threading.Event()

        def write() -> None:
            while not ended.is_set():
                writer.write(bytes(1000))

        with client.writer(stream, max_in_flight=8 << 20) as writer:
            threads = [threading.Thread(target=write) for _ in range(3)]
            for thread in threads:
                thread.start()
            try:
                for number in range(3):
                    writer.write(b"mine %d" % number, "mine")
                    client.scale_stream(stream, 2 + number % 2)
                    writer.flush(20)
            finally:
                ended.set()
                for thread in threads:
                    thread.join()
        assert [e for e in client.read(stream) if e.startswith(b"mine")] == [b"mine %d" % n for n in range(3)]
