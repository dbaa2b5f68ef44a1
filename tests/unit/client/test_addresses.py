"""Hosts whose name has several addresses, some of them dead, and names that do not resolve."""

import asyncio
import contextlib
import socket
import threading

import pytest

from pravega_connector.aio.event_loop import run as in_event_loop
from pravega_connector.core import addresses
from pravega_connector.core.connection import open_socket
from pravega_connector.errors import ConnectionLostError
from pravega_connector.testing.requests import frame
from tests.support.stopwatch import Stopwatch

HOST = "store.example"


@pytest.fixture
def unreachable():
    """An address where a connect waits: of a socket whose queue is full."""
    with socket.socket() as listener, contextlib.ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield listener.getsockname()


@pytest.fixture
def resolve(monkeypatch):
    """Have the host's name resolved by a function without arguments to places of IPv4."""
    real = socket.getaddrinfo

    def having(places):
        def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
            if host != HOST:
                return real(host, port, family, type, proto, flags)
            if flags & socket.AI_NUMERICHOST:
                raise socket.gaierror(socket.EAI_NONAME, "not a number")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places()]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return having


@pytest.fixture
def unanswered(resolve):
    """The resolver answers when the test ends."""
    end = threading.Event()

    def wait():
        end.wait(30)
        return []

    resolve(wait)
    yield
    end.set()


class TestDeadAddresses:
    @pytest.fixture
    def full(self, stream, store, resolve, unreachable):
        """A stream on a store whose name has two dead addresses before the right one."""
        store.append(stream.segment(0), frame(b"a"))
        places = [unreachable, unreachable, store.endpoint]
        resolve(lambda: places)
        store.endpoint = (HOST, store.endpoint[1])
        return stream

    def test_a_read_reaches_the_next_one(self, full, client):
        assert list(client.read(full.name)) == [b"a"]

    def test_a_follower_reaches_the_next_one(self, full, client):
        with client.follow(full.name, start="head") as reader:
            assert reader.poll(4).events.to_pylist() == [b"a"]

    def test_a_writer_reaches_the_next_one(self, full, client):
        with client.writer(full.name, timeout=4) as writer:
            writer.write(b"b")
        assert full.store.segments[full.segment(0)].events == [b"a", b"b"]

    def test_asyncio_reaches_the_next_one(self, full, client):
        assert asyncio.run(in_event_loop(lambda: list(client.read(full.name)))) == [b"a"]


def test_an_address_that_refuses_is_left_at_once(resolve, closed_port, store):
    resolve(lambda: [("127.0.0.1", closed_port)] * 20 + [store.endpoint])
    began = Stopwatch()
    addresses.connect((HOST, 1), 5).close()
    assert began.within(2)


def test_where_all_addresses_refuse_the_error_reports_it(resolve, closed_port):
    resolve(lambda: [("127.0.0.1", closed_port)] * 3)
    with pytest.raises(ConnectionLostError, match=r"store\.example:1: .*refused"):
        open_socket((HOST, 1), None, 5)


def test_where_all_addresses_are_dead_the_time_is_kept(resolve, unreachable):
    resolve(lambda: [unreachable] * 3)
    began = Stopwatch()
    with pytest.raises(ConnectionLostError, match="timed out"):
        open_socket((HOST, 1), None, 0.6)
    assert began.lasted(0.5)
    assert began.within(3)


def test_families_alternate():
    four, six = [(socket.AF_INET, n) for n in range(3)], [(socket.AF_INET6, n) for n in range(2)]
    assert addresses._alternating(six + four) == [six[0], four[0], six[1], four[1], four[2]]


@pytest.mark.usefixtures("unanswered")
class TestNamesThatNobodyResolves:
    def test_a_thread_waits_no_longer_than_it_may(self):
        began = Stopwatch()
        with pytest.raises(ConnectionLostError, match=r"store\.example:1: the name was not resolved within 0\.3 s"):
            open_socket((HOST, 1), None, 0.3)
        assert began.within(3)

    def test_nor_does_an_event_loop(self):
        async def attempt():
            with pytest.raises(ConnectionLostError, match=r"store\.example:1: the name was not resolved within 0\.3 s"):
                await in_event_loop(open_socket, (HOST, 1), None, 0.3)

        began = Stopwatch()
        asyncio.run(attempt())
        assert began.within(3)

    def test_nor_do_reads_and_followers(self, stream):
        stream.store.endpoint = (HOST, 1)
        began = Stopwatch()
        with stream.client(timeout=0.5) as client:
            with pytest.raises(ConnectionLostError, match="not resolved"):
                list(client.read(stream.name))
            with client.follow(stream.name, start="head") as reader:
                assert reader.poll(0.2) is None  # the poll keeps its own time
                with pytest.raises(ConnectionLostError, match="not resolved"):
                    reader.poll(5)
        assert began.within(10)
