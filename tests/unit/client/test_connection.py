"""Connections and their pool: deadlines, lost peers, reuse."""

import contextlib
import os
import socket
import threading
import time

import pytest

from pravega_connector.core.connection import AppendConnection, Connection, ConnectionPool, wait_ready
from pravega_connector.core.deadline import Deadline
from pravega_connector.errors import ConnectionLostError, DeadlineExceededError, ProtocolError
from pravega_connector.wire import GetStreamSegmentInfo, Hello, KeepAlive, SegmentRead, StreamSegmentInfo, encode
from tests.support.stopwatch import Stopwatch

SEGMENT = "scope/stream/0.#epoch.0"
ASK = encode(GetStreamSegmentInfo(1, SEGMENT, ""))
INFO = StreamSegmentInfo(1, SEGMENT, True, False, False, 0, 8, 0)


class Peer:
    """The other end of one connection, driven by the test."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = self.listener.getsockname()
        self.sock = None

    def accept(self, *, greet=True):
        self.sock, _ = self.listener.accept()
        if greet:
            self.sock.sendall(encode(Hello()))

    def close(self):
        self.listener.close()
        if self.sock is not None:
            self.sock.close()


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture
def connection(peer):
    with_greeting = threading.Thread(target=peer.accept)
    with_greeting.start()
    connection = Connection(peer.endpoint, None, Deadline(5))
    with_greeting.join()
    yield connection
    connection.close()


def within(seconds):
    began = Stopwatch()
    return lambda: began.within(seconds)


def test_a_refused_connection_is_lost_and_names_the_store(peer):
    peer.close()
    with pytest.raises(ConnectionLostError, match=rf"127\.0\.0\.1:{peer.endpoint[1]}"):
        Connection(peer.endpoint, None, Deadline(5))


def test_a_store_that_does_not_greet_exceeds_the_deadline(peer):
    in_time = within(3)
    with pytest.raises(DeadlineExceededError, match=r"127\.0\.0\.1.*0.2 s"):
        Connection(peer.endpoint, None, Deadline(0.2))
    assert in_time()


@pytest.mark.parametrize(
    ("greeting", "text"),
    [
        (encode(INFO), "StreamSegmentInfo"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "message"),
        (encode(Hello(4, 1)), r"versions 1 to 4 of the wire protocol, this client 5 to 16"),
        (encode(Hello(99, 17)), r"versions 17 to 99 of the wire protocol, this client 5 to 16"),
    ],
)
def test_what_is_not_a_segment_store_is_reported(peer, greeting, text):
    def answer():
        peer.accept(greet=False)
        peer.sock.sendall(greeting)

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(ProtocolError, match=text):
        Connection(peer.endpoint, None, Deadline(5))
    thread.join()


def test_an_answer_comes_back_and_keep_alives_are_passed_over(peer, connection):
    connection.send(ASK, Deadline(5))
    peer.sock.sendall(encode(KeepAlive()) + encode(INFO))
    assert connection.receive(Deadline(5)) == INFO


def test_a_message_larger_than_the_buffer_arrives_whole(peer, connection):
    data = os.urandom(3 << 20)
    sender = threading.Thread(
        target=peer.sock.sendall, args=(encode(SegmentRead(SEGMENT, 0, False, False, memoryview(data), 1)),)
    )
    sender.start()
    reply = connection.receive(Deadline(20))
    sender.join()
    assert isinstance(reply, SegmentRead)
    assert reply.data == data


def test_a_silent_store_exceeds_the_deadline(connection):
    in_time = within(3)
    with pytest.raises(DeadlineExceededError, match=r"an answer of the segment store at 127\.0\.0\.1:\d+ .*0.2 s"):
        connection.receive(Deadline(0.2))
    assert in_time()


def test_a_store_that_trickles_exceeds_the_deadline_too(peer, connection):
    stop = threading.Event()

    def trickle():
        for byte in encode(SegmentRead(SEGMENT, 0, False, False, memoryview(bytes(1000)), 1)):
            if stop.wait(0.05):
                return
            peer.sock.sendall(bytes([byte]))

    thread = threading.Thread(target=trickle)
    thread.start()
    in_time = within(5)
    with pytest.raises(DeadlineExceededError):
        connection.receive(Deadline(0.5))
    assert in_time()
    stop.set()
    thread.join()


@pytest.fixture
def flood(peer):
    """Have the peer send KeepAlives without end; the event ends them."""
    stop = threading.Event()

    def send():
        with contextlib.suppress(OSError):
            while not stop.is_set():
                peer.sock.sendall(encode(KeepAlive()) * 1000)

    thread = threading.Thread(target=send)
    yield thread.start
    stop.set()
    with contextlib.suppress(OSError):
        peer.sock.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_store_that_sends_keep_alives_without_end_exceeds_the_deadline(connection, flood):
    flood()
    in_time = within(3)
    attempt = Deadline(60).share(quiet=0.5)
    with pytest.raises(DeadlineExceededError, match=r"an answer of the segment store"):
        connection.receive(attempt)
    assert in_time()


def test_keep_alives_without_end_do_not_hold_up_who_looks_for_messages(connection, flood):
    flood()
    in_time = within(1)
    while connection.receive_now() is None and in_time():
        wait_ready([connection], [], 1)
    assert not in_time()


def test_a_store_that_takes_no_bytes_exceeds_the_deadline(connection):
    in_time = within(5)
    with pytest.raises(DeadlineExceededError, match="sending to"):
        connection.send(bytes(64 << 20), Deadline(0.3))
    assert in_time()


@pytest.mark.parametrize("size", [0, 3, 8, 20])
def test_a_connection_that_ends_inside_a_message_is_lost(peer, connection, size):
    peer.sock.sendall(encode(INFO)[:size])
    peer.sock.close()
    with pytest.raises(ConnectionLostError, match=r"127\.0\.0\.1"):
        connection.receive(Deadline(5))


def test_waiting_reports_which_connections_can_be_read_and_which_have_failed(peer, connection):
    assert wait_ready([connection], [], 0.01) == ([], [])
    assert wait_ready([connection], [connection], 5) == ([], [connection])
    peer.sock.sendall(encode(INFO))
    assert wait_ready([connection], [], 5) == ([connection], [])
    connection.receive(Deadline(5))
    peer.sock.close()
    assert wait_ready([connection], [], 5) == ([connection], [])


# ---------------------------------------------------------------- the pool


def ask(pool, store):
    with pool.lease(store.endpoint, Deadline(5)) as connection:
        connection.send(ASK, Deadline(5))
        return connection.receive(Deadline(5))


@pytest.fixture
def pool():
    pool = ConnectionPool(None)
    yield pool
    pool.close()


def test_a_connection_is_used_again_after_a_block_that_ended_well(store, stream, pool):
    for _ in range(3):
        assert isinstance(ask(pool, store), StreamSegmentInfo)
    assert store.connections == 1


def test_a_connection_with_an_answer_under_way_is_not_used_again(store, stream, pool):
    def fail():
        with pool.lease(store.endpoint, Deadline(5)) as connection:
            connection.send(ASK, Deadline(5))
            raise KeyError("of the program")

    with pytest.raises(KeyError):
        fail()
    assert isinstance(ask(pool, store), StreamSegmentInfo)
    assert store.connections == 2


def test_idle_connections_that_the_store_has_closed_are_not_given_out(store, stream, pool):
    taken = [pool.take(store.endpoint, Deadline(5)) for _ in range(6)]
    for connection in taken:
        pool.give_back(connection)
    store.drop_all()
    for connection in taken:
        assert wait_ready([connection], [], 5) == ([connection], [])
    assert isinstance(ask(pool, store), StreamSegmentInfo)
    assert store.connections == 7


def test_a_pool_keeps_few_idle_connections(store, stream, pool):
    taken = [pool.take(store.endpoint, Deadline(5)) for _ in range(12)]
    for connection in taken:
        pool.give_back(connection)
    assert sum(connection.fileno() < 0 for connection in taken) == 4


def test_a_closed_pool_has_closed_its_connections(store, stream, pool):
    connection = pool.take(store.endpoint, Deadline(5))
    pool.give_back(connection)
    pool.close()
    assert connection.fileno() < 0


# ---------------------------------------------------------------- the appending connection


def test_an_append_connection_queues_what_the_socket_does_not_take(peer):
    connection = AppendConnection(peer.endpoint, None, Deadline(5))
    peer.accept()
    data = os.urandom(8 << 20)
    connection.send(memoryview(data))
    connection.flush()
    assert connection.has_output
    received = bytearray()

    def drain():
        while len(received) < len(data) + len(encode(Hello())):
            received.extend(peer.sock.recv(1 << 16))

    thread = threading.Thread(target=drain)
    thread.start()
    while connection.has_output:
        assert wait_ready([], [connection], 5)[1]
        connection.flush()
    thread.join()
    assert received == encode(Hello()) + data
    connection.close()


def test_an_append_connection_reports_since_when_an_answer_is_owed_and_whether_any_came(peer):
    connection = AppendConnection(peer.endpoint, None, Deadline(5))
    connection.flush()
    assert connection.owes_since <= time.monotonic()
    assert connection.receive() == []  # nothing there yet
    assert not connection.heard
    peer.accept()
    assert wait_ready([connection], [], 5)[0]
    assert connection.receive() == []  # only the greeting
    assert connection.heard
    since = connection.owes_since
    connection.send(b"")
    assert connection.owes_since == since <= time.monotonic()  # the first request counts
    connection.close()


@pytest.mark.parametrize("greeting", [Hello(4, 1), Hello(99, 17), INFO])
def test_an_append_connection_checks_the_greeting(peer, greeting):
    connection = AppendConnection(peer.endpoint, None, Deadline(5))
    peer.accept(greet=False)
    peer.sock.sendall(encode(greeting))
    assert wait_ready([connection], [], 5)[0]
    with pytest.raises(ProtocolError, match=r"127\.0\.0\.1"):
        connection.receive()
    connection.close()


def test_later_versions_that_keep_ours_are_taken(peer):
    connection = AppendConnection(peer.endpoint, None, Deadline(5))
    peer.accept(greet=False)
    peer.sock.sendall(encode(Hello(99, 16)))
    assert wait_ready([connection], [], 5)[0]
    assert connection.receive() == []
    connection.close()


def test_an_append_connection_that_is_lost_reports_it_on_both_ways(peer):
    connection = AppendConnection(peer.endpoint, None, Deadline(5))
    peer.accept(greet=False)
    peer.close()
    assert wait_ready([connection], [], 5)[0]
    with pytest.raises(ConnectionLostError, match=r"127\.0\.0\.1"):
        connection.receive()

    def send_on():
        for _ in range(100):
            connection.send(bytes(1 << 16))
            connection.flush()

    with pytest.raises(ConnectionLostError, match="while sending"):
        send_on()
    connection.close()


def test_a_host_that_acknowledges_nothing_is_given_up_by_the_system(connection):
    options = connection._sock.getsockopt
    assert options(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert options(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
    assert options(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10


def test_bytes_that_keep_coming_keep_an_attempt_alive(peer, connection):
    """A message that takes longer than an attempt may be silent."""
    reply = encode(INFO)

    def drip():
        for at in range(len(reply)):
            peer.sock.sendall(reply[at : at + 1])
            time.sleep(4.5 / len(reply))

    sender = threading.Thread(target=drip)
    sender.start()
    attempt = Deadline(9).share()
    assert attempt.seconds == 3  # a busy machine may give the thread above no time for a second
    assert connection.receive(attempt) == INFO
    sender.join()


def test_a_connection_that_comes_back_after_the_pool_was_closed_is_closed(store, stream, pool):
    """A lookup in the background may end after the client that it was for."""
    connection = pool.take(store.endpoint, Deadline(5))
    pool.close()
    pool.give_back(connection)
    assert connection.fileno() < 0


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".b"])
def test_a_store_whose_host_is_not_a_name_is_reported_at_once(host):
    with pytest.raises(
        ProtocolError, match=f"the controller returned '{host}' as a segment store, which is not a valid host"
    ):
        Connection((host, 1), None, Deadline(10))
