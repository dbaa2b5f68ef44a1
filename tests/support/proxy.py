"""A TCP proxy between the client and a real segment store, which cuts, stalls or delays on command.

(The idea is asyncpg's ``TCPFuzzingProxy``.)
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName

# Closing with this option sends RST: the peer loses what it has not read yet, as when a host fails.
_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards connections to ``target``; counts what it did to them.

    Nothing is done to connections from a port that ``spared`` accepts, and they are not counted.
    """

    def __init__(self, target: tuple[str, int], port: int = 0, spared: Callable[[int], bool] | None = None) -> None:
        self.target, self._spared = target, spared
        self.connections = self.cuts = self.refused = self.sent = self.returned = 0
        self._cut_at: int | None = None
        self._delay = 0.0
        self._seconds_per_byte = 0.0
        self._flowing = threading.Event()
        self._flowing.set()
        self._stuck: list[threading.Event] = []
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._spared_pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self.endpoint: tuple[str, int] = self._listener.getsockname()
        self._start(self._accept)

    # ---------------------------------------------------------------- commands

    def between(self, client: PravegaClient) -> PravegaClient:
        """The client, whose requests to segment stores all take this way from now on."""
        client.controller.endpoint = lambda stream, segment_id, **_: self.endpoint  # type: ignore[method-assign]
        return client

    def cut_after(self, count: int) -> None:
        """Cut all connections when the client has sent this many more bytes."""
        with self._lock:
            self._cut_at = self.sent + count

    @property
    def cut_is_due(self) -> bool:
        return self._cut_at is not None

    @property
    def open(self) -> int:
        """How many connections go through now."""
        with self._lock:
            return len(self._pairs)

    def cut(self) -> None:
        """Cut all connections now; what is under way is lost in both directions."""
        with self._lock:
            self._cut_at = None
            pairs, self._pairs = self._pairs, []
            self.cuts += bool(pairs)
        self._reset(pairs)

    @staticmethod
    def _reset(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
        for pair in pairs:
            for sock in pair:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()

    def stall(self) -> None:
        """Forward nothing, in either direction, and keep the connections open."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def delay(self, seconds: float) -> None:
        """Hold every piece for this long."""
        self._delay = seconds

    def throttle(self, bytes_per_second: float) -> None:
        """Let so much through on each connection and in each direction; infinity for all there is."""
        self._seconds_per_byte = 1 / bytes_per_second

    # ---------------------------------------------------------------- forwarding

    def _start(self, run: object, *args: object) -> None:
        thread = threading.Thread(target=run, args=args)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, peer = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:
                self.refused += 1
                near.close()
                continue
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            spared = self._spared is not None and self._spared(peer[1])
            with self._lock:
                self.connections += not spared
                (self._spared_pairs if spared else self._pairs).append((near, far))
                flowing = None if spared else self._flowing
            self._start(self._forward, near, far, True, flowing)
            self._start(self._forward, far, near, False, flowing)

    def _forward(self, source: socket.socket, sink: socket.socket, up: bool, flowing: threading.Event | None) -> None:
        """Forward one direction; ``flowing`` is None for a spared connection."""
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                cut = False
                if flowing is not None:
                    flowing.wait()
                    if pause := self._delay + len(data) * self._seconds_per_byte:
                        time.sleep(pause)
                    data, cut = self._counted(data, up)
                sink.sendall(data)
                if cut:
                    self.cut()
        with self._lock:
            pairs = self._spared_pairs if flowing is None else self._pairs
            first = any(source in pair for pair in pairs)
            pairs[:] = [pair for pair in pairs if source not in pair]
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            if not first:  # the other direction has ended as well
                sock.close()

    def _counted(self, data: bytes, up: bool) -> tuple[bytes, bool]:
        with self._lock:
            if not up:
                self.returned += len(data)
                return data, False
            cut = self._cut_at is not None and self.sent + len(data) >= self._cut_at
            if cut and self._cut_at is not None:
                data = data[: self._cut_at - self.sent]
            self.sent += len(data)
            return data, cut

    def stall_open(self) -> None:
        """Forward nothing more on the connections that are open now; new ones go through."""
        with self._lock:
            self._stuck.append(self._flowing)
            self._flowing.clear()
            self._flowing = threading.Event()
            self._flowing.set()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which close() alone would not
        self._listener.close()
        for stuck in (self._flowing, *self._stuck):
            stuck.set()
        self.cut()
        with self._lock:
            spared = list(self._spared_pairs)
        self._reset(spared)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_all(config: PravegaConfig, stream: StreamName) -> list[bytes]:
    """Events of a stream, read without a proxy."""
    with PravegaClient(config) as client:
        return list(client.read(stream))
