"""Connections to segment stores: blocking ones and a pool of them for each process, and those that carry appends."""

from __future__ import annotations

import contextlib
import math
import select
import socket
import ssl
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from pravega_connector.core import addresses, io
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.errors import AuthenticationError, ConnectionLostError, ProtocolError, UnexpectedReplyError
from pravega_connector.wire import (
    Hello,
    KeepAlive,
    Message,
    MessageDecoder,
    ReceiveBuffer,
    answers,
    decode,
    encode,
    parse_header,
)
from pravega_connector.wire.messages import OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION
from pravega_serde import after_fork

Endpoint = tuple[str, int]

# The buffer is used again for every message, and grows with them: one who follows a slow stream needs no mebibyte.
_FIRST_BUFFER: Final = 1 << 16
# Bytes of acknowledgements taken at once.
_RECEIVE: Final = 1 << 16
# Seconds after which the system gives up a peer that acknowledges nothing: a host that lost its power says no goodbye.
_UNACKNOWLEDGED: Final = 30
_PROBE_AFTER: Final = 10
_PROBE_EVERY: Final = 5
_WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
# Idle connections kept for each endpoint; more are closed when they are given back.
_MAX_IDLE: Final = 8


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings of connections: the context, and the certificate's name if it is not the host."""

    context: ssl.SSLContext
    server_name: str | None


def open_socket(endpoint: Endpoint, tls: Tls | None, timeout: float) -> socket.socket:
    """A connected socket to a segment store, non-blocking.

    Raises ConnectionLostError, AuthenticationError for its certificate.
    """
    try:
        deadline = time.monotonic() + timeout
        sock = addresses.connect(endpoint, timeout)
        try:
            _set_options(sock)
            return sock if tls is None else _secured(sock, tls, endpoint[0], deadline)
        except BaseException:
            sock.close()
            raise
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationError(
            f"the certificate of the segment store at {endpoint[0]}:{endpoint[1]} is refused: {error.verify_message}; "
            "check tls_ca_file, and tls_server_name or tls_validate_hostname"
        ) from None
    except UnicodeError:  # of the name's encoding for the name service
        raise ProtocolError(f"the controller names {endpoint[0]!r} as a segment store, which is not a host") from None
    except OSError as error:
        raise ConnectionLostError(
            f"no connection to the segment store at {endpoint[0]}:{endpoint[1]}: {error}"
        ) from None


def _secured(sock: socket.socket, tls: Tls, host: str, deadline: float) -> ssl.SSLSocket:
    """The socket after the handshake. Raises OSError."""
    secured = tls.context.wrap_socket(sock, server_hostname=tls.server_name or host, do_handshake_on_connect=False)
    try:
        while True:
            try:
                secured.do_handshake()
            except ssl.SSLWantReadError:
                mask = select.POLLIN
            except ssl.SSLWantWriteError:
                mask = select.POLLOUT
            else:
                return secured
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the handshake timed out")
            io.Watch({secured.fileno(): mask}).wait(left)
    except BaseException:
        secured.close()
        raise


def _set_options(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_AFTER),
        ("TCP_KEEPINTVL", _PROBE_EVERY),
        ("TCP_KEEPCNT", (_UNACKNOWLEDGED - _PROBE_AFTER) // _PROBE_EVERY),
        ("TCP_USER_TIMEOUT", _UNACKNOWLEDGED * 1000),
    ):
        if hasattr(socket, name):  # not every system has them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class _Waitable(Protocol):
    def fileno(self) -> int: ...


R = TypeVar("R", bound=_Waitable)
W = TypeVar("W", bound=_Waitable)


def wait_ready(readers: Sequence[R], writers: Sequence[W], timeout: float) -> tuple[list[R], list[W]]:
    """Wait until one of the connections can be read or written; (readable, writable), both empty after ``timeout``."""
    if buffered := [r for r in readers if getattr(r, "has_buffered_input", False)]:
        return buffered, []
    masks: dict[int, int] = {}
    for reader in readers:
        masks[reader.fileno()] = select.POLLIN
    for writer in writers:
        masks[writer.fileno()] = masks.get(writer.fileno(), 0) | select.POLLOUT
    events = io.Watch(masks).wait(timeout)
    # A connection that failed is "readable": reading tells how.
    failed = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL
    return (
        [r for r in readers if events.get(r.fileno(), 0) & failed],
        [w for w in writers if events.get(w.fileno(), 0) & select.POLLOUT],
    )


class _StoreSocket:
    """A non-blocking socket to a segment store."""

    def __init__(self, endpoint: Endpoint, tls: Tls | None, deadline: Deadline) -> None:
        self.endpoint = endpoint
        self._where = f"the segment store at {endpoint[0]}:{endpoint[1]}"
        self._sock: Any = open_socket(endpoint, tls, deadline.remaining(f"connecting to {self._where}"))
        after_fork.register(self)

    def _after_fork(self) -> None:
        # Closing is of the child's descriptor only: the parent's connection lasts, and ends when the parent closes it.
        self._sock.close()
        self._sock = after_fork.inherited("connection")

    @property
    def is_inherited(self) -> bool:
        """Whether the process that opened the connection is the parent of this one."""
        return after_fork.is_inherited(self._sock)

    def fileno(self) -> int:
        """The socket's file descriptor, for :func:`wait_ready`."""
        return int(self._sock.fileno())

    @property
    def has_buffered_input(self) -> bool:
        """Whether TLS holds decrypted bytes that polling does not see."""
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0

    def gone_silent(self, seconds: float) -> ConnectionLostError:
        """The error for a store that owes an answer for too long."""
        return ConnectionLostError(f"{self._where} has not answered for {seconds:.0f} s")

    def shut_down(self) -> None:
        """Have whoever waits for the socket find it at its end; from any thread."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket; unsent bytes are dropped."""
        io.close(self._sock)

    def _check_greeting(self, message: Message) -> None:
        """Raise ProtocolError unless the store's first message is a Hello of a protocol that this client has."""
        if not isinstance(message, Hello):
            raise ProtocolError(f"{self._where} began with {type(message).__name__} instead of Hello")
        if message.low > PROTOCOL_VERSION or message.high < OLDEST_PROTOCOL_VERSION:
            raise ProtocolError(
                f"{self._where} speaks versions {message.low} to {message.high} of the wire protocol, this client "
                f"{OLDEST_PROTOCOL_VERSION} to {PROTOCOL_VERSION}; upgrade the older of the two"
            )

    def _lost(self, error: OSError, when: str = "") -> ConnectionLostError:
        return ConnectionLostError(f"the connection to {self._where} was lost{when}: {error}")

    def _ended(self) -> ConnectionLostError:
        return ConnectionLostError(f"{self._where} closed the connection")


class Connection(_StoreSocket):
    """One request-and-reply connection. Not thread safe. After any error it must be closed."""

    def __init__(self, endpoint: Endpoint, tls: Tls | None, deadline: Deadline) -> None:
        super().__init__(endpoint, tls, deadline)
        self._input = io.Watch({self._sock.fileno(): select.POLLIN})
        self._buffer = ReceiveBuffer(ReceiveBuffer.ROOM + _FIRST_BUFFER)
        self._header = memoryview(bytearray(8))
        self._type: int | None = None  # of the message whose body is under way
        self._view, self._filled = self._header, 0
        self.heard_at = time.monotonic()
        """When bytes arrived last, or the connection was opened."""
        self._request_id = 0
        try:
            self.send(encode(Hello()), deadline)
            self._check_greeting(self.receive(deadline))
        except BaseException:
            self.close()
            raise

    def is_usable(self) -> bool:
        """Whether nothing has arrived, which on an idle connection would be its end."""
        return not self.has_buffered_input and not self._input.now()

    def send(self, data: bytes | memoryview, deadline: Deadline) -> None:
        """Send all of ``data``. Raises ConnectionLostError, DeadlineExceededError."""
        rest = memoryview(data)
        try:
            while rest:
                left = deadline.remaining(f"sending to {self._where}")
                try:
                    rest = rest[self._sock.send(rest) :]
                    deadline.progress()
                except _WOULD_BLOCK:
                    wait_ready([], [self], left)
        except OSError as error:
            raise self._lost(error, " while sending") from None

    def next_request_id(self) -> int:
        """Return a number for a request that no other request on this connection has."""
        self._request_id += 1
        return self._request_id

    def ask(
        self, request: Message, deadline: Deadline, *, data: bytes | None = None, segment: str | None = None
    ) -> Message:
        """Send a request and return the reply to it, which may be a refusal.

        ``data`` is what to send if that is not the encoded request, ``segment`` the name of the segment that an append
        is for. Raises UnexpectedReplyError for any other message, and what :meth:`send` and :meth:`receive` raise.
        """
        self.send(encode(request) if data is None else data, deadline)
        reply = self.receive(deadline)
        if not answers(request, reply, segment):
            raise UnexpectedReplyError.of(self._where, reply)
        return reply

    def receive(self, deadline: Deadline) -> Message:
        """The next message. Its byte fields are views that the next receive overwrites.

        Raises ConnectionLostError, DeadlineExceededError, ProtocolError.
        """
        while True:
            heard = self.heard_at
            message = self.receive_now()
            if message is not None:
                return message
            if self.heard_at != heard and (self._filled or self._type is not None):
                deadline.progress()  # part of a message has come; a KeepAlive says nothing of the answer
            left = deadline.remaining(f"an answer of {self._where}")
            if self.heard_at == heard:
                self._input.wait(left)

    def receive_now(self) -> Message | None:
        """The next message if all of it has arrived; as :meth:`receive`, without waiting.

        None after a KeepAlive too, so that the caller checks the clock though messages keep coming.
        """
        try:
            while True:
                while self._filled < len(self._view):
                    count = self._sock.recv_into(self._view[self._filled :])
                    if not count:
                        raise self._ended()
                    self._filled += count
                    self.heard_at = time.monotonic()
                if self._type is None:
                    self._type, length = parse_header(self._header)
                    end = ReceiveBuffer.ROOM + length
                    if end > len(self._buffer):
                        self._buffer = ReceiveBuffer(max(end, 2 * len(self._buffer)))
                    self._view, self._filled = memoryview(self._buffer)[ReceiveBuffer.ROOM : end], 0
                    continue
                message = decode(self._type, self._view)
                self._type, self._view, self._filled = None, self._header, 0
                return None if isinstance(message, KeepAlive) else message
        except _WOULD_BLOCK:
            return None
        except OSError as error:
            raise self._lost(error) from None


class ConnectionPool:
    """Idle connections by endpoint. Thread safe; a forked process starts with none."""

    def __init__(self, tls: Tls | None, health: ClusterHealth | None = None) -> None:
        """``health`` is notified of every store that answers."""
        self._tls, self._health = tls, health
        self._closed = False
        self._after_fork()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[Endpoint, list[Connection]] = defaultdict(list)

    def take(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        """An idle connection or a new one; the caller gives it back or closes it."""
        with self._lock:
            idle = self._idle[endpoint]
            while idle:
                connection = idle.pop()
                if connection.is_usable():
                    return connection
                connection.close()
        connection = Connection(endpoint, self._tls, deadline)
        if self._health is not None:
            self._health.answered()
        return connection

    def drop(self, endpoint: Endpoint) -> None:
        """Close the idle connections to a store that has failed."""
        with self._lock:
            for connection in self._idle.pop(endpoint, ()):
                connection.close()

    def give_back(self, connection: Connection) -> None:
        """Keep a connection that has no reply outstanding."""
        with self._lock:
            idle = self._idle[connection.endpoint]
            if len(idle) < _MAX_IDLE and not self._closed and not connection.is_inherited:
                idle.append(connection)
                return
        connection.close()

    @contextmanager
    def lease(self, endpoint: Endpoint, deadline: Deadline) -> Iterator[Connection]:
        """A connection for the block; kept if the block ends normally, closed if it does not."""
        connection = self.take(endpoint, deadline)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self.give_back(connection)

    @property
    def tls(self) -> Tls | None:
        """The TLS settings of all connections."""
        return self._tls

    def close(self) -> None:
        """Close the idle connections, and from now on those that are given back: an errand may end after its client."""
        with self._lock:
            self._closed = True
            for idle in self._idle.values():
                for connection in idle:
                    connection.close()
            self._idle.clear()


class AppendConnection(_StoreSocket):
    """Output queue, input decoder, and which segments and writer ids are bound to the connection."""

    def __init__(self, endpoint: Endpoint, tls: Tls | None, deadline: Deadline) -> None:
        super().__init__(endpoint, tls, deadline)
        self.lanes: dict[str, int] = {}  # segment name -> segment id
        self.writers: dict[bytes, int] = {}  # writer id -> segment id
        self._decoder = MessageDecoder()
        self._greeted = False
        self._output: deque[memoryview] = deque()
        self._last_output = time.monotonic()
        self.heard = False  # whether the store has said anything
        self.owes_since = math.inf  # when (monotonic) the store began to owe an answer, until the owner has it
        self.send(encode(Hello()))

    @property
    def has_output(self) -> bool:
        """Whether bytes wait to be sent."""
        return bool(self._output)

    def idle_for(self, seconds: float) -> bool:
        """Whether nothing was sent within the last ``seconds``."""
        return time.monotonic() - self._last_output >= seconds

    def send(self, data: bytes | memoryview) -> None:
        """Queue bytes; they go out with the next flush."""
        self._output.append(memoryview(data))
        self._last_output = time.monotonic()
        self.owes_since = min(self.owes_since, self._last_output)

    def flush(self) -> None:
        """Send what the socket takes now. Raises ConnectionLostError."""
        try:
            while self._output:
                head = self._output[0]
                sent = self._sock.send(head)
                if sent < len(head):
                    self._output[0] = head[sent:]
                else:
                    self._output.popleft()
        except _WOULD_BLOCK:
            pass
        except OSError as error:
            raise self._lost(error, " while sending") from None

    def receive(self) -> list[Message]:
        """Return the messages that arrived, without KeepAlives. Raises ConnectionLostError, ProtocolError."""
        try:
            data = self._sock.recv(_RECEIVE)
        except _WOULD_BLOCK:
            return []
        except OSError as error:
            raise self._lost(error) from None
        if not data:
            raise self._ended()
        messages = self._decoder.feed(data)
        if messages and not self._greeted:
            self._check_greeting(messages.pop(0))
            self._greeted = True
        self.heard = True
        return [message for message in messages if not isinstance(message, KeepAlive)]
