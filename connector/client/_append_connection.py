"""A non-blocking connection that carries the appends of several segments."""

from __future__ import annotations

import contextlib
import math
import ssl
import time
from collections import deque
from typing import Final

from connector.client._connection import Endpoint, Tls, open_socket
from connector.client._deadline import Deadline
from connector.errors import ConnectionLostError
from connector.wire import Hello, KeepAlive, Message, MessageDecoder, encode

__all__ = ["AppendConnection"]

_RECEIVE: Final = 1 << 16
_WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class AppendConnection:
    """Output queue, input decoder, and which segments and writer ids are bound to the connection."""

    def __init__(self, endpoint: Endpoint, tls: Tls | None, deadline: Deadline) -> None:
        self.lanes: dict[str, int] = {}  # segment name -> segment id
        self.writers: dict[bytes, int] = {}  # writer id -> segment id
        self._where = f"the segment store at {endpoint[0]}:{endpoint[1]}"
        self._sock = open_socket(endpoint, tls, deadline.remaining(f"connecting to {self._where}"))
        self._sock.setblocking(False)
        self._decoder = MessageDecoder()
        self._output: deque[memoryview] = deque()
        self._last_output = time.monotonic()
        self.heard = False  # whether the store has said anything
        self.owes_since = math.inf  # when (monotonic) the store began to owe the next answer
        self.send(encode(Hello()))

    def fileno(self) -> int:
        """The socket's file descriptor, for select."""
        return self._sock.fileno()

    @property
    def has_output(self) -> bool:
        """Whether bytes wait to be sent."""
        return bool(self._output)

    @property
    def has_buffered_input(self) -> bool:
        """Whether TLS holds decrypted bytes that select does not see."""
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0

    def idle_for(self, seconds: float) -> bool:
        """Whether nothing was sent for so long."""
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
            raise ConnectionLostError(f"the connection to {self._where} was lost while sending: {error}") from None

    def receive(self) -> list[Message]:
        """The messages that arrived. Raises ConnectionLostError, ProtocolError."""
        try:
            data = self._sock.recv(_RECEIVE)
        except _WOULD_BLOCK:
            return []
        except OSError as error:
            raise ConnectionLostError(f"the connection to {self._where} was lost: {error}") from None
        if not data:
            raise ConnectionLostError(f"{self._where} closed the connection")
        self.owes_since, self.heard = math.inf, True
        return [m for m in self._decoder.feed(data) if not isinstance(m, Hello | KeepAlive)]

    def gone_silent(self, seconds: float) -> ConnectionLostError:
        """The error for a store that owes an answer for too long."""
        return ConnectionLostError(f"{self._where} has not answered for {seconds:.0f} s")

    def close(self) -> None:
        """Close the socket; unsent bytes are dropped."""
        with contextlib.suppress(OSError):
            self._sock.close()
