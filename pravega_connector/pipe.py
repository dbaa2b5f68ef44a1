"""Events of sources that forget, standard input and sockets, into a stream.

An :class:`Input` gathers one or many sources, frames cut the bytes of each into events, and a :class:`Pipe` hands the
events to an idempotent writer and tells the sources which of them are durable. :class:`ByJsonField` and
:class:`ByPattern` find routing keys in events that are bytes.

Theory of operation
-------------------
One thread. While the input has something, its events are handed to the writer; when it pauses, or when so many bytes
are not acknowledged, the thread waits until all of them are durable and acknowledges them. So what is read and not
durable is bounded, and a slow stream slows the input: a pipe or a socket that is not read fills up, and its other end
waits. While the thread waits the input gathers, so appends grow with the load by themselves.

Lost connections, moved and sealed segments are the writer's matter: no event is lost or written twice by them. A crash
of this process leaves events that were read, and perhaps written, but not acknowledged. Sending them again gives
each at least once; a source that does not remember allows no more.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import selectors
import socket
import stat
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from pravega_connector import metrics
from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    DeadlineExceededError,
    EventError,
    EventTooLargeError,
    InputLostError,
)
from pravega_connector.writer.event_writer import EventWriter
from pravega_serde.errors import SerdeError
from pravega_serde.json import JsonSerializer
from pravega_serde.routing import ByField, EventRouter

__all__ = [
    "FRAMES",
    "MAX_UNACKNOWLEDGED",
    "ByJsonField",
    "ByPattern",
    "Frames",
    "Input",
    "LengthFrames",
    "LineFrames",
    "Pipe",
    "PipeSummary",
    "connected",
    "listening",
    "standard_input",
]

_log: Final = logging.getLogger(__name__)
#: Largest number of bytes that are read and not durable.
MAX_UNACKNOWLEDGED: Final = 8 << 20
# Seconds without durability before the first warning in the log, and between two of them.
_WARN_AFTER: Final = 10.0
_WARN_EVERY: Final = 30.0


@dataclass(slots=True)
class PipeSummary:
    """Progress of a pipe: counts of events, and bytes of incomplete events at the ends of sources."""

    read: int = 0
    acknowledged: int = 0
    without_key: int = 0
    bytes: int = 0
    bytes_left: int = 0
    errors: list[ConnectorError] = field(default_factory=list)

    @property
    def not_acknowledged(self) -> int:
        """Events read that may not be in the stream."""
        return self.read - self.acknowledged


class Pipe:
    """Copies events from an input to a writer, which it flushes but does not close."""

    def __init__(
        self,
        input: Input,  # noqa: A002 - the usual word
        writer: EventWriter[bytes],
        frames: Callable[[], Frames],
        *,
        router: EventRouter | None = None,
        max_unacknowledged: int = MAX_UNACKNOWLEDGED,
        failover_timeout: float = 300.0,
    ) -> None:
        """``frames`` cut the bytes of one source; ``router`` gives the keys of a batch with the column ``event``.

        ``failover_timeout`` is how many seconds the servers have to make durable what was read.
        """
        self._input, self._writer, self._new_frames, self._router = input, writer, frames, router
        self._frames: dict[Source, Frames] = {}
        self._limit, self._failover_timeout = max_unacknowledged, failover_timeout
        self._size = 0  # bytes since the last acknowledgement
        self.summary = PipeSummary()

    def run(self) -> PipeSummary:
        """Copy until the input has ended or was stopped; on return all events read are durable and it is closed.

        A source that cannot be read, or holds an invalid event, is ended alone where sources come and go, and the
        summary has its error; else the pipe ends, and raises the error when all events before it are durable.

        Raises DeadlineExceededError when the servers stay away longer than ``failover_timeout``, and as the writer
        does. The summary then counts the acknowledged events; the others may be in the stream or not.
        """
        try:
            self._copy()
        except DeadlineExceededError as error:
            raise DeadlineExceededError(
                f"{error.message}; {self.summary.acknowledged} events are acknowledged, "
                f"{self.summary.not_acknowledged} more were read and may not be in the stream: send them again"
            ) from error
        finally:
            self._input.close()
        if self.summary.errors and not self._input.many:
            raise self.summary.errors[0]
        return self.summary

    def _copy(self) -> None:
        while self._input.open:
            found = self._input.ready(wait=not self._size)
            for source in found:
                self._take(source)
            if not found or self._size >= self._limit:
                self._acknowledge()
        self._acknowledge()
        # Of sources that were stopped in the middle of an event.
        self.summary.bytes_left += sum(frames.pending for frames in self._frames.values())

    def _take(self, source: Source) -> None:
        frames = self._frames.get(source)
        if frames is None:
            frames = self._frames[source] = self._new_frames()
        try:
            data = source.read()
            self._write(source, frames.feed(data) if data else frames.finish())
            if frames.broken is not None:
                raise frames.broken
        except (EventError, InputLostError) as error:
            if isinstance(error, EventError):
                metrics.BAD_RECORDS.add(1, "pipe", str(self._writer.stream))
            self.summary.errors.append(type(error)(f"{source.name}: {error.message}"))
            data = b""
        if not data:
            self._end(source, frames)

    def _end(self, source: Source, frames: Frames) -> None:
        self.summary.bytes_left += frames.pending
        self._acknowledge()
        del self._frames[source]
        self._input.drop(source)

    def _write(self, source: Source, events: list[bytes]) -> None:
        if not events:
            return
        column = pa.array(events, pa.large_binary())
        keys = None
        if self._router is not None:
            keys = self._router.keys(pa.RecordBatch.from_arrays([column], ["event"]))
        self.summary.read += len(events)
        self._writer.write_column(column, keys)
        source.written += len(events)
        self.summary.without_key += 0 if keys is None else keys.null_count
        size = sum(map(len, events))
        self.summary.bytes += size
        # One byte more for each event: an empty one waits for its acknowledgement too.
        self._size += size + len(events)

    def _acknowledge(self) -> None:
        if not self._size:
            return
        self._flush()
        self.summary.acknowledged, self._size = self.summary.read, 0
        for source in self._frames:
            source.acknowledge()

    def _flush(self) -> None:
        """Wait until all is durable, with warnings in the log if that takes long. Raises DeadlineExceededError."""
        began, pause = time.monotonic(), _WARN_AFTER
        while True:
            left = began + self._failover_timeout - time.monotonic()
            try:
                self._writer.flush(min(pause, left))
                break
            except DeadlineExceededError as error:
                waited, pause = time.monotonic() - began, _WARN_EVERY
                if waited >= self._failover_timeout:
                    raise
                _log.warning(
                    "%s waits: %d events (%d bytes) for stream %s are not durable after %.0f s, %.0f s are left: %s",
                    self._input.name,
                    self.summary.not_acknowledged,
                    self._size,
                    self._writer.stream,
                    waited,
                    self._failover_timeout - waited,
                    error.message,
                )
        if pause == _WARN_EVERY:
            _log.warning("%s goes on after %.0f s", self._input.name, time.monotonic() - began)


# ---- inputs ----

# Bytes of one read: as much as a pipe or a socket holds, and the other sources wait little.
_READ_BYTES: Final = 256 << 10
# Connections served at a time; each may hold an incomplete event.
_MAX_CONNECTIONS: Final = 64
_CONNECT_SECONDS: Final = 15.0
# Bytes of acknowledgements kept for a peer that does not read them.
_UNSENT_BYTES: Final = 4096


class Source:
    """One flow of bytes, and the way back for its acknowledgements."""

    def __init__(
        self, name: str, fd: int, acknowledge: Callable[[bytes], int] | None, close: Callable[[], None]
    ) -> None:
        self.name, self.fd, self.close = name, fd, close
        self.written = self.acknowledged = 0  # events
        self._send = acknowledge
        self._unsent = b""

    def read(self) -> bytes:
        """Bytes that are there now; empty at the end. Raises InputLostError for a broken connection."""
        try:
            return os.read(self.fd, _READ_BYTES)
        except OSError as error:
            raise InputLostError(f"{self.name} was lost: {error.strerror or error}") from error

    def acknowledge(self) -> None:
        """Send a line with the number of events written so far, all of which are durable.

        A peer that does not read such lines misses some; a later one has a larger number.
        """
        if self.acknowledged == self.written:
            return
        self.acknowledged = self.written
        if self._send is None:
            return
        if len(self._unsent) < _UNSENT_BYTES:
            self._unsent += b"%d\n" % self.acknowledged
        with contextlib.suppress(OSError):  # reading it will tell
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
        """Whether the input may have more events."""
        return not self.stopped and (self.many or bool(self._sources))

    def ready(self, *, wait: bool) -> list[Source]:
        """Sources with bytes, or at their end; with ``wait`` not before there is one, or :meth:`stop`."""
        found = []
        for key, _ in self._selector.select(None if wait else 0):
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, Source):
                found.append(key.data)
        return [] if self.stopped else found

    def stop(self) -> None:
        """Stop reading, also from a signal handler."""
        self.stopped = True
        with contextlib.suppress(OSError):
            self._wake_write.send(b"\0", socket.MSG_DONTWAIT)

    def close(self) -> None:
        """End all sources. Idempotent."""
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
    """Input from a file descriptor; ``acknowledge`` takes the lines with the number of durable events."""
    made = Input(name="standard input")
    made.add(Source("standard input", fd, acknowledge, lambda: None))
    return made


def connected(address: str, *, acknowledge: bool = False) -> Input:
    """Input from a connection to ``tcp://host:port`` or ``unix:/path``; with ``acknowledge`` the lines go back to it.

    Raises ConfigError, InputLostError if the connection is refused.
    """
    family, where = _parsed(address)
    sock = socket.socket(family)
    sock.settimeout(_CONNECT_SECONDS)
    try:
        sock.connect(where)
    except OSError as error:
        sock.close()
        raise InputLostError(f"cannot connect to {address}: {error.strerror or error}") from error
    sock.settimeout(None)
    made = Input(name=address)
    made.add(_of_socket(sock, f"the connection to {address}", acknowledge=acknowledge))
    return made


def listening(address: str, *, acknowledge: bool = False) -> Input:
    """Input from all who connect to ``tcp://host:port`` (0: any port) or ``unix:/path``.

    Its ``name`` is the address with the port. Raises ConfigError for an address that cannot be bound.
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
        raise ConfigError(f"invalid address {address!r}: write tcp://host:port or unix:/path")
    host = host.strip("[]")
    return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, int(port))


def _remove_stale(path: str) -> None:
    """Remove the socket of a killed process."""
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(Path(path).stat().st_mode):
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    Path(path).unlink()


# ---- bytes to events ----

_LENGTH: Final = struct.Struct(">I")


class Frames(Protocol):
    """Cuts the bytes of one source into events; holds at most one incomplete event."""

    broken: EventError | None
    """Error after which no more events are found: one is too large."""

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the events that they complete."""

    def finish(self) -> list[bytes]:
        """Return the events that the end of the source completes. Raises EventError for a truncated frame."""

    @property
    def pending(self) -> int:
        """Bytes of the incomplete event."""


class LineFrames:
    """Each line is an event, without its newline; also an empty one, and a last one without newline."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._begun: list[bytes] = []  # pieces of the line that goes on
        self.pending = 0
        self.broken: EventError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the lines that end in them."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._begun, lines[0]))
            self._begun, self.pending = [], 0
        self._begun.append(rest)
        self.pending += len(rest)
        if max(map(len, lines), default=0) > self._largest:
            first = next(i for i, line in enumerate(lines) if len(line) > self._largest)
            self.broken = _too_large(len(lines[first]), self._largest, "a line")
            return lines[:first]
        if self.pending > self._largest:
            self.broken = _too_large(self.pending, self._largest, "a line")
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if it has no newline."""
        last = b"".join(self._begun)
        self._begun, self.pending = [], 0
        return [last] if last else []


class LengthFrames:
    """Each event follows its length: four bytes, big-endian."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._data = bytearray()
        self.broken: EventError | None = None

    @property
    def pending(self) -> int:
        """Bytes of the incomplete event."""
        return len(self._data)

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the events that end in them."""
        self._data += data
        events, at, view = [], 0, bytes(self._data)
        while at + _LENGTH.size <= len(view):
            (size,) = _LENGTH.unpack_from(view, at)
            if size > self._largest:
                self.broken = _too_large(size, self._largest, "a frame")
                break
            end = at + _LENGTH.size + size
            if end > len(view):
                break
            events.append(view[at + _LENGTH.size : end])
            at = end
        del self._data[:at]
        return events

    def finish(self) -> list[bytes]:
        """Return no event. Raises EventError for a truncated frame."""
        if self._data:
            raise EventError(f"the input ended {len(self._data)} bytes into a frame")
        return []


def _too_large(size: int, largest: int, what: str) -> EventTooLargeError:
    return EventTooLargeError(
        f"{what} of {size} bytes or more is over the limit of {largest} bytes for an event: check how the input is "
        "cut into events, or raise max_event_size"
    )


#: Name -> factory of the frames, which takes the largest event in bytes.
FRAMES: Final[dict[str, Callable[[int], Frames]]] = {"lines": LineFrames, "length": LengthFrames}


# ---- routing keys of events ----

_EVENT = "event"
_json_value: Final = JsonSerializer().deserialize


class _OfBytes:
    """Router of the column ``event``, event by event."""

    def key(self, value: Any) -> str | None:
        """Key of an event."""
        raise NotImplementedError

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Keys of the column ``event``; null for an event without one."""
        return pa.array(map(self.key, batch.column(_EVENT).to_pylist()), pa.string(), size=batch.num_rows)

    def check(self, schema: pa.Schema) -> None:
        """Accept any schema: the events are bytes."""


@dataclass(frozen=True)
class ByJsonField(_OfBytes):
    """The key is a field of the JSON text, named by a path with dots; none without such a field or valid JSON."""

    path: str

    def key(self, value: Any) -> str | None:
        """Text of the field, as Java's ``String.valueOf``; None without such a field."""
        try:
            return ByField(self.path).key(_json_value(value))
        except SerdeError:
            return None


@dataclass(frozen=True)
class ByPattern(_OfBytes):
    """The key is the first match of a regular expression: its group ``key``, else its first group, else all of it."""

    pattern: str
    _compiled: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ConfigError for an invalid regular expression."""
        try:
            compiled = re.compile(self.pattern.encode())
        except re.error as error:
            raise ConfigError(f"invalid regular expression {self.pattern!r} for the key: {error}") from None
        object.__setattr__(self, "_compiled", compiled)

    def key(self, value: Any) -> str | None:
        """Text of the match, as UTF-8; None without a match."""
        found = self._compiled.search(value)
        if found is None:
            return None
        group: Any = "key" if "key" in self._compiled.groupindex else min(1, self._compiled.groups)
        text = found.group(group)
        return None if text is None else text.decode(errors="replace")
