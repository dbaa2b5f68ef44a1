"""Where events come from: standard input, a socket that is connected to, or one that others connect to."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from connector.errors import ConfigError, InputLostError

__all__ = ["Input", "Source", "connected", "listening", "standard_input"]

# Read from one source at a time: as much as a pipe or a socket holds, and turns stay short.
_READ_BYTES: Final = 256 << 10
# Connections that are served at a time. Each may hold an event that is not whole yet.
_MAX_CONNECTIONS: Final = 64
_CONNECT_SECONDS: Final = 15.0
# Acknowledgements that the other side has not taken yet.
_UNSENT_BYTES: Final = 4096


class Source:
    """One flow of bytes, and where its acknowledgements go."""

    def __init__(
        self, name: str, fd: int, acknowledge: Callable[[bytes], int] | None, close: Callable[[], None]
    ) -> None:
        self.name, self.fd, self.close = name, fd, close
        self.written = self.acknowledged = 0  # events
        self._send = acknowledge
        self._unsent = b""

    def read(self) -> bytes:
        """What is there now; empty at the end. Raises InputLostError for a connection that broke."""
        try:
            return os.read(self.fd, _READ_BYTES)
        except OSError as error:
            raise InputLostError(f"{self.name} was lost: {error.strerror or error}") from error

    def acknowledge(self) -> None:
        """Tell that all that was written is durable: a line with the number of events since the beginning.

        Where the other side does not read such lines, some are left out; a later one has a larger number.
        """
        if self.acknowledged == self.written:
            return
        self.acknowledged = self.written
        if self._send is None:
            return
        if len(self._unsent) < _UNSENT_BYTES:
            self._unsent += b"%d\n" % self.acknowledged
        with contextlib.suppress(OSError):  # its end is seen where it is read
            self._unsent = self._unsent[self._send(self._unsent) :]


class Input:
    """All sources of one pipe. ``stop`` may be called from a signal handler."""

    def __init__(self, *, name: str, many: bool = False, acknowledge: bool = False) -> None:
        self.name = name
        self.many = many  # sources come and go, and the pipe stays
        self._acknowledge = acknowledge
        self.stopped = False
        self._selector = selectors.PollSelector() if hasattr(selectors, "PollSelector") else selectors.SelectSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._listener: socket.socket | None = None
        self._sources: dict[int, Source] = {}

    def add(self, source: Source) -> None:
        """Read from a source from now on."""
        self._sources[source.fd] = source
        self._selector.register(source.fd, selectors.EVENT_READ, source)
        if self._listener is not None and len(self._sources) == _MAX_CONNECTIONS:
            self._selector.unregister(self._listener)

    def listen(self, listener: socket.socket) -> None:
        """Take connections from now on."""
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ)

    def drop(self, source: Source) -> None:
        """End a source."""
        if self._sources.pop(source.fd, None) is None:
            return
        self._selector.unregister(source.fd)
        if self._listener is not None and len(self._sources) == _MAX_CONNECTIONS - 1:
            self._selector.register(self._listener, selectors.EVENT_READ)
        source.close()

    @property
    def open(self) -> bool:
        """Whether anything may come yet."""
        return not self.stopped and (self.many or bool(self._sources))

    def ready(self, *, wait: bool) -> list[Source]:
        """Sources that have something, or have ended; with ``wait`` not before there is one, or :meth:`stop`."""
        found = []
        for key, _ in self._selector.select(None if wait else 0):
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, Source):
                found.append(key.data)
        return [] if self.stopped else found

    def stop(self) -> None:
        """Read nothing more."""
        self.stopped = True
        with contextlib.suppress(OSError):
            self._wake_write.send(b"\0", socket.MSG_DONTWAIT)

    def close(self) -> None:
        """End all sources; once more changes nothing."""
        for source in list(self._sources.values()):
            self.drop(source)
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()
        if self._listener is not None:
            address = self._listener.getsockname()
            self._listener.close()
            self._listener = None
            if isinstance(address, str):
                Path(address).unlink(missing_ok=True)

    def _accept(self) -> None:
        assert self._listener is not None
        connection, address = self._listener.accept()
        where = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else self.name
        self.add(_of_socket(connection, f"the connection from {where}", acknowledge=self._acknowledge))


def standard_input(fd: int = 0, *, acknowledge: Callable[[bytes], int] | None = None) -> Input:
    """One source: a file descriptor. ``acknowledge`` takes the lines that tell how many events are durable."""
    made = Input(name="standard input")
    made.add(Source("standard input", fd, acknowledge, lambda: None))
    return made


def connected(address: str, *, acknowledge: bool = False) -> Input:
    """One source: a connection to ``tcp://host:port`` or ``unix:/path``, to which acknowledgements go if asked.

    Raises ConfigError, InputLostError if nobody answers there.
    """
    family, where = _parsed(address)
    sock = socket.socket(family)
    sock.settimeout(_CONNECT_SECONDS)
    try:
        sock.connect(where)
    except OSError as error:
        sock.close()
        raise InputLostError(f"nobody answers at {address}: {error.strerror or error}") from error
    sock.settimeout(None)
    made = Input(name=address)
    made.add(_of_socket(sock, f"the connection to {address}", acknowledge=acknowledge))
    return made


def listening(address: str, *, acknowledge: bool = False) -> Input:
    """Any number of sources: those who connect to ``tcp://host:port`` (0: any port) or ``unix:/path``.

    ``name`` is the address with the port. Raises ConfigError for an address that cannot be had.
    """
    family, where = _parsed(address)
    if isinstance(where, str):
        _remove_stale(where)
    listener = socket.socket(family)
    if isinstance(where, tuple):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen at {address}: {error.strerror or error}") from None
    bound = listener.getsockname()
    name = f"tcp://{bound[0]}:{bound[1]}" if isinstance(bound, tuple) else f"unix:{bound}"
    made = Input(name=name, many=True, acknowledge=acknowledge)
    made.listen(listener)
    return made


def _of_socket(sock: socket.socket, name: str, *, acknowledge: bool) -> Source:
    send = (lambda line: sock.send(line, socket.MSG_DONTWAIT)) if acknowledge else None
    return Source(name, sock.fileno(), send, sock.close)


def _parsed(address: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest:
        return socket.AF_UNIX, rest.removeprefix("//")
    host, _, port = rest.removeprefix("//").rpartition(":")
    if kind != "tcp" or not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{address!r} is no address: it must be tcp://host:port or unix:/path")
    host = host.strip("[]")
    return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, int(port))


def _remove_stale(path: str) -> None:
    """Remove the socket of a process that was killed."""
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(Path(path).stat().st_mode):
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    Path(path).unlink()
