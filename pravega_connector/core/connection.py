"""Connections to segment stores: blocking ones with a pool in each process, and connections for appends."""

from __future__ import annotations

import contextlib
import math
import select
import socket
import ssl
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol, SupportsIndex, TypeVar

from pravega_connector.config import PravegaConfig
from pravega_connector.core import addresses, io
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.errors import (
    AuthenticationError,
    ConfigError,
    ConnectionLostError,
    ProtocolError,
    UnexpectedReplyError,
)
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

# The buffer is reused for every message and grows with them: a reader of a slow stream does not need a mebibyte.
_FIRST_BUFFER: Final = 1 << 16
# Most bytes of acknowledgements that are received at once.
_RECEIVE: Final = 1 << 16
# Seconds before the system gives up a peer that acknowledges nothing: a host without power closes no connection.
_UNACKNOWLEDGED: Final = 30
_PROBE_AFTER: Final = 10
_PROBE_EVERY: Final = 5
_WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
# Most idle connections that are kept for each endpoint. Others are closed when they are given back.
_MAX_IDLE: Final = 8


class ProcessBound:
    """Object with connections, locks or threads. It cannot be pickled or copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raise ConfigError: a copy would share the state, or have none."""
        raise ConfigError(
            f"objects of {type(self).__name__} belong to their process and cannot be pickled or copied: pass the "
            "client's config, and create them where they are used, from shared_client(config)"
        )


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings of connections: the context, and the certificate's name if it differs from the host."""

    context: ssl.SSLContext
    server_name: str | None

    @classmethod
    def of(cls, config: PravegaConfig) -> Tls | None:
        """Return the settings for segment stores, or None without TLS. Raises ConfigError."""
        if not config.uses_tls_to_stores:
            return None
        try:
            context = ssl.create_default_context(cadata=config.authorities())
        except ssl.SSLError as error:
            raise ConfigError(
                f"the CA certificates in {config.tls_ca_file} are invalid: {error.reason or error}; check "
                "pravega.tls.ca.file"
            ) from None
        context.check_hostname = config.tls_validate_hostname
        return cls(context, config.tls_server_name)


def open_socket(endpoint: Endpoint, tls: Tls | None, timeout: float) -> socket.socket:
    """Return a connected, non-blocking socket to a segment store.

    Raises ConnectionLostError. Raises AuthenticationError if the store's certificate is refused.
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
    except UnicodeError:  # the name cannot be encoded for the name service
        raise ProtocolError(
            f"the controller returned {endpoint[0]!r} as a segment store, which is not a valid host"
        ) from None
    except OSError as error:
        raise ConnectionLostError(
            f"no connection to the segment store at {endpoint[0]}:{endpoint[1]}: {error}"
        ) from None


def _secured(sock: socket.socket, tls: Tls, host: str, deadline: float) -> ssl.SSLSocket:
    """Return the socket after the TLS handshake. Raises OSError."""
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
        if hasattr(socket, name):  # not every system has these options
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class _Waitable(Protocol):
    def fileno(self) -> int: ...


R = TypeVar("R", bound=_Waitable)
W = TypeVar("W", bound=_Waitable)


def wait_ready(readers: Sequence[R], writers: Sequence[W], timeout: float) -> tuple[list[R], list[W]]:
    """Wait until a connection can be read or written. Return the readable and the writable ones.

    Both lists are empty after ``timeout`` seconds.
    """
    if buffered := [r for r in readers if getattr(r, "has_buffered_input", False)]:
        return buffered, []
    masks: dict[int, int] = {}
    for reader in readers:
        masks[reader.fileno()] = select.POLLIN
    for writer in writers:
        masks[writer.fileno()] = masks.get(writer.fileno(), 0) | select.POLLOUT
    events = io.Watch(masks).wait(timeout)
    # A failed connection counts as readable: a read raises the error.
    failed = select.POLLIN | select.POLLHUP | select.POLLERR | select.POLLNVAL
    return (
        [r for r in readers if events.get(r.fileno(), 0) & failed],
        [w for w in writers if events.get(w.fileno(), 0) & select.POLLOUT],
    )


class _StoreSocket:
    """Non-blocking socket to a segment store."""

    def __init__(self, endpoint: Endpoint, tls: Tls | None, deadline: Deadline) -> None:
        self.endpoint = endpoint
        self._where = f"the segment store at {endpoint[0]}:{endpoint[1]}"
        self._sock: Any = open_socket(endpoint, tls, deadline.remaining(f"connecting to {self._where}"))
        after_fork.register(self)

    def _after_fork(self) -> None:
        # This closes only the child's descriptor. The parent's connection stays open until the parent closes it.
        self._sock.close()
        self._sock = after_fork.inherited("connection")

    @property
    def is_inherited(self) -> bool:
        """True if the parent of this process opened the connection."""
        return after_fork.is_inherited(self._sock)

    def fileno(self) -> int:
        """Return the socket's file descriptor, for :func:`wait_ready`."""
        return int(self._sock.fileno())

    @property
    def has_buffered_input(self) -> bool:
        """True if TLS holds decrypted bytes that polling does not see."""
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0

    def gone_silent(self, seconds: float) -> ConnectionLostError:
        """Return the error for a store that has owed an answer for too long."""
        return ConnectionLostError(f"{self._where} has not answered for {seconds:.0f} s")

    def shut_down(self) -> None:
        """Wake all waiters of the socket with an end of the connection. Can be called from any thread."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket and drop unsent bytes."""
        io.close(self._sock)

    def _check_greeting(self, message: Message) -> None:
        """Raise ProtocolError unless the first message is a Hello with a supported protocol version."""
        if not isinstance(message, Hello):
            raise ProtocolError(f"{self._where} sent {type(message).__name__} first instead of Hello")
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
    """Connection for one request and its reply at a time. Not thread safe. Close it after any error."""

    def __init__(self, endpoint: Endpoint, tls: Tls | None, deadline: Deadline) -> None:
        super().__init__(endpoint, tls, deadline)
        self._input = io.Watch({self._sock.fileno(): select.POLLIN})
        self._buffer = ReceiveBuffer(ReceiveBuffer.ROOM + _FIRST_BUFFER)
        self._header = memoryview(bytearray(8))
        self._type: int | None = None  # type of the message while its body is received
        self._view, self._filled = self._header, 0
        self.heard_at = time.monotonic()
        """Time when bytes arrived last, or when the connection was opened (monotonic seconds)."""
        self._request_id = 0
        try:
            self.send(encode(Hello()), deadline)
            self._check_greeting(self.receive(deadline))
        except BaseException:
            self.close()
            raise

    def is_usable(self) -> bool:
        """Return True if nothing has arrived. On an idle connection, input means that it has ended."""
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
        """Return a request number that no other request on this connection has."""
        self._request_id += 1
        return self._request_id

    def ask(
        self, request: Message, deadline: Deadline, *, data: bytes | None = None, segment: str | None = None
    ) -> Message:
        """Send a request and return its reply, which may be a refusal.

        ``data`` is sent instead of the encoded request if it is set. ``segment`` is the name of the segment of an
        append. Raises UnexpectedReplyError for any other message, and the errors of :meth:`send` and :meth:`receive`.
        """
        self.send(encode(request) if data is None else data, deadline)
        return self.reply_to(request, deadline, segment=segment)

    def reply_to(self, request: Message, deadline: Deadline, *, segment: str | None = None) -> Message:
        """Return the reply to a request that was sent, when it is the next one; see :meth:`ask`."""
        reply = self.receive(deadline)
        if not answers(request, reply, segment):
            raise UnexpectedReplyError.of(self._where, reply)
        return reply

    def ask_all(self, requests: Mapping[int, Message], deadline: Deadline, most: int) -> Iterator[tuple[int, Message]]:
        """Send requests by their numbers, at most ``most`` ahead of their replies. Yield the number of each reply.

        Replies come in any order, and may be refusals. Raises the errors of :meth:`ask`.
        """
        left, asked = deque(requests.items()), dict[int, Message]()
        while left or asked:
            data = list[bytes]()
            while left and len(asked) < most:
                number, request = left.popleft()
                asked[number] = request
                data.append(encode(request))
            if data:
                self.send(b"".join(data), deadline)
            reply = self.receive(deadline)
            number = getattr(reply, "request_id", 0)
            if number not in asked or not answers(asked[number], reply):
                raise UnexpectedReplyError.of(self._where, reply)
            del asked[number]
            yield number, reply

    def receive(self, deadline: Deadline) -> Message:
        """Return the next message. Its byte fields are views that the next receive overwrites.

        Raises ConnectionLostError, DeadlineExceededError, ProtocolError.
        """
        while True:
            heard = self.heard_at
            message = self.receive_now()
            if message is not None:
                return message
            if self.heard_at != heard and (self._filled or self._type is not None):
                deadline.progress()  # part of a message has arrived; a KeepAlive is not progress
            left = deadline.remaining(f"an answer of {self._where}")
            if self.heard_at == heard:
                self._input.wait(left)

    def receive_now(self) -> Message | None:
        """Return the next message if all of it has arrived, as :meth:`receive` but without waiting.

        Returns None after a KeepAlive too, so that the caller checks the clock even if messages keep arriving.
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
    """Idle connections by endpoint. Thread safe. A forked process starts with an empty pool."""

    def __init__(self, tls: Tls | None, health: ClusterHealth | None = None) -> None:
        """Create an empty pool. ``health`` is notified of every store that answers."""
        self._tls, self._health = tls, health
        self._closed = False
        self._after_fork()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[Endpoint, list[Connection]] = defaultdict(list)

    def take(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        """Return an idle connection or a new one. The caller must give it back or close it."""
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
        """Keep a connection without an outstanding reply."""
        with self._lock:
            idle = self._idle[connection.endpoint]
            if len(idle) < _MAX_IDLE and not self._closed and not connection.is_inherited:
                idle.append(connection)
                return
        connection.close()

    @contextmanager
    def lease(self, endpoint: Endpoint, deadline: Deadline) -> Iterator[Connection]:
        """Yield a connection for the block. Keep it if the block ends normally, else close it."""
        connection = self.take(endpoint, deadline)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self.give_back(connection)

    @property
    def tls(self) -> Tls | None:
        """TLS settings of all connections."""
        return self._tls

    def close(self) -> None:
        """Close the idle connections, and from now on each connection that is given back.

        An errand may end after its client.
        """
        with self._lock:
            self._closed = True
            for idle in self._idle.values():
                for connection in idle:
                    connection.close()
            self._idle.clear()


class AppendConnection(_StoreSocket):
    """Connection for appends: output queue, input decoder, and the segments and writer ids bound to it."""

    def __init__(self, endpoint: Endpoint, tls: Tls | None, deadline: Deadline) -> None:
        super().__init__(endpoint, tls, deadline)
        self.lanes: dict[str, int] = {}  # segment name -> segment id
        self.writers: dict[bytes, int] = {}  # writer id -> segment id
        self._decoder = MessageDecoder()
        self._greeted = False
        self._output: deque[memoryview] = deque()
        self._last_output = time.monotonic()
        self.heard = False  # True after the store has sent a message
        self.owes_since = math.inf  # time (monotonic) since when the store owes an answer
        self.send(encode(Hello()))

    @property
    def has_output(self) -> bool:
        """True if bytes wait to be sent."""
        return bool(self._output)

    def idle_for(self, seconds: float) -> bool:
        """Return True if nothing was sent within the last ``seconds``."""
        return time.monotonic() - self._last_output >= seconds

    def send(self, data: bytes | memoryview) -> None:
        """Queue bytes. The next flush sends them."""
        self._output.append(memoryview(data))
        self._last_output = time.monotonic()
        self.owes_since = min(self.owes_since, self._last_output)

    def flush(self) -> None:
        """Send the bytes that the socket accepts now. Raises ConnectionLostError."""
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
        """Return the messages that have arrived, without KeepAlives. Raises ConnectionLostError, ProtocolError."""
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
