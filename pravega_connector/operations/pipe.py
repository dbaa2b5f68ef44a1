"""Lines of standard input, files and TCP connections, written as events to a stream.

An :class:`Input` collects one or many sources. A :class:`Pipe` splits their bytes into lines, encodes the lines, and
passes the events to a writer. It acknowledges durable events to the sources. :class:`ByJsonField` and
:class:`ByPattern` find routing keys in lines.

Theory of operation
-------------------

There is one thread. While the input has data, its events are passed to the writer. When the input pauses, or when the
limit of unacknowledged bytes is reached, the thread waits until all events are durable. Then it acknowledges them. So
the number of bytes that are read and not durable is limited, and a slow stream slows the input down. A pipe or a socket
that is not read fills up, and its peer waits. While the thread waits, the input accumulates, so appends grow with the
load.

The writer handles lost connections, and segments that moved or were sealed: no event is lost or duplicated. A
crash of this process leaves events that were read, and perhaps written, but not acknowledged. If the peer sends them
again, each arrives at least once. A source without memory does not allow more.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.compute

from pravega_connector import metrics
from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.errors import (
    BadRecordError,
    ConfigError,
    ConnectorError,
    DeadlineExceededError,
    EventError,
    EventTooLargeError,
    InputLostError,
)
from pravega_connector.writer.event_writer import EventWriter
from pravega_connector.writer.transactions import OpenTransaction
from pravega_serde.errors import DeserializationError, SerdeError, SerializationError
from pravega_serde.json import JsonSerializer
from pravega_serde.routing import ByField, EventRouter

__all__ = [
    "MAX_UNACKNOWLEDGED",
    "ByJsonField",
    "ByPattern",
    "Input",
    "Pipe",
    "PipeSummary",
    "listening",
    "of_files",
    "standard_input",
]

_log: Final = logging.getLogger(__name__)
#: Encoder of lines as a column of events. Raises SerializationError or DeserializationError with the row.
Encode = Callable[[list[bytes]], pa.Array]
#: Maximum number of bytes that are read and not durable.
MAX_UNACKNOWLEDGED: Final = 8 << 20
# Seconds of waiting for durability before the first warning in the log, and between two warnings.
_WARN_AFTER: Final = 10.0
_WARN_EVERY: Final = 30.0


@dataclass(slots=True)
class PipeSummary:
    """Progress of a pipe: counts of events, their bytes, and bytes of incomplete lines at the ends of sources."""

    read: int = 0
    acknowledged: int = 0
    without_key: int = 0
    bytes: int = 0
    bytes_left: int = 0
    errors: list[ConnectorError] = field(default_factory=list)

    @property
    def not_acknowledged(self) -> int:
        """Number of events that were read and may not be in the stream."""
        return self.read - self.acknowledged


class Pipe:
    """Copier of lines from an input to a writer, which it flushes but does not close."""

    def __init__(
        self,
        input: Input,
        writer: EventWriter[bytes] | OpenTransaction[bytes],
        *,
        encode: Encode | None = None,
        router: EventRouter | None = None,
        max_line_size: int = MAX_EVENT_SIZE,
        max_unacknowledged: int = MAX_UNACKNOWLEDGED,
        failover_timeout: float = 300.0,
    ) -> None:
        """Set up. ``encode`` converts lines to events; without it, a line is an event.

        ``router`` returns the keys of a batch whose column ``event`` has the lines. ``max_line_size`` is in bytes.
        ``failover_timeout`` is the maximum number of seconds until the servers make read events durable.
        """
        self._input, self._writer, self._router = input, writer, router
        self._encode = encode or (lambda lines: pa.array(lines, pa.large_binary()))
        self._largest = max_line_size
        self._frames: dict[Source, LineFrames] = {}
        self._limit, self._failover_timeout = max_unacknowledged, failover_timeout
        self._size = 0  # bytes since the last acknowledgement
        self.summary = PipeSummary()

    def run(self) -> PipeSummary:
        """Copy until the input has ended or was stopped; on return all events are durable and the input is closed.

        If sources come and go, a source that cannot be read, or has an invalid event, is ended on its own. The summary
        then has its error. Otherwise the pipe ends, and raises the error when all events before it are durable.

        Raises DeadlineExceededError if the servers are unavailable for longer than ``failover_timeout``, and the errors
        of the writer. The summary then counts the acknowledged events. The others may or may not be in the stream.
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
        # Add the bytes of sources that were stopped in the middle of an event.
        self.summary.bytes_left += sum(frames.pending for frames in self._frames.values())

    def _take(self, source: Source) -> None:
        frames = self._frames.get(source)
        if frames is None:
            frames = self._frames[source] = LineFrames(self._largest)
        try:
            data = source.read()
            self._write(source, frames.feed(data) if data else frames.finish())
            if frames.broken is not None:
                raise frames.broken
        except (BadRecordError, EventError, InputLostError) as error:
            if not isinstance(error, InputLostError):
                metrics.BAD_RECORDS.add(1, "write", str(self._writer.stream))
            self.summary.errors.append(type(error)(f"{source.name}: {error.message}"))
            data = b""
        if not data:
            self._end(source, frames)

    def _end(self, source: Source, frames: LineFrames) -> None:
        self.summary.bytes_left += frames.pending
        self._acknowledge()
        del self._frames[source]
        self._input.drop(source)

    def _write(self, source: Source, lines: list[bytes]) -> None:
        if not lines:
            return
        events, error = self._encoded(source, lines)
        if len(events):
            keys = None
            if self._router is not None:
                column = pa.array(lines[: len(events)], pa.large_binary())
                keys = self._router.keys(pa.RecordBatch.from_arrays([column], ["event"]))
            self._writer.write_column(events, keys)
            self.summary.read += len(events)
            source.written += len(events)
            self.summary.without_key += 0 if keys is None else keys.null_count
            size = int(pa.compute.sum(pa.compute.binary_length(events)).as_py())
            self.summary.bytes += size
            # Add one byte for each event: an empty event also waits for its acknowledgement.
            self._size += size + len(events)
        if error is not None:
            raise error

    def _encoded(self, source: Source, lines: list[bytes]) -> tuple[pa.Array, BadRecordError | None]:
        """Return the events of the lines before the first malformed one, and its error."""
        try:
            return self._encode(lines), None
        except (SerializationError, DeserializationError) as error:
            row = error.row or 0
            where = f" (field {error.field_path})" if error.field_path else ""
            bad = BadRecordError(f"line {source.written + row + 1} is not an event: {error.reason}{where}")
            return self._encode(lines[:row]) if row else pa.array([], pa.binary()), bad

    def _acknowledge(self) -> None:
        if not self._size:
            return
        self._flush()
        self.summary.acknowledged, self._size = self.summary.read, 0
        for source in self._frames:
            source.acknowledge()

    def _flush(self) -> None:
        """Wait until all events are durable; log warnings if that takes long. Raises DeadlineExceededError."""
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
                    "%s waits: %d events (%d bytes) for stream %s are not durable after %.0f s, retrying for %.0f s "
                    "more; last error: %s",
                    self._input.name,
                    self.summary.not_acknowledged,
                    self._size,
                    self._writer.stream,
                    waited,
                    self._failover_timeout - waited,
                    error.message,
                )
        if pause == _WARN_EVERY:
            _log.warning("%s: recovered after %.0f s", self._input.name, time.monotonic() - began)


# ---- inputs ----

# Bytes of one read: the capacity of a pipe or a socket, and a short wait for the other sources.
_READ_BYTES: Final = 256 << 10
# Maximum connections at a time; each may have an incomplete event.
_MAX_CONNECTIONS: Final = 64
# Maximum bytes of acknowledgements kept for a peer that does not read them.
_UNSENT_BYTES: Final = 4096


class Source:
    """One byte stream, and the channel for its acknowledgements."""

    def __init__(
        self, name: str, fd: int, acknowledge: Callable[[bytes], int] | None, close: Callable[[], None]
    ) -> None:
        self.name, self.fd, self.close = name, fd, close
        self.written = self.acknowledged = 0  # numbers of events
        self._send = acknowledge
        self._unsent = b""

    def read(self) -> bytes:
        """Return the available bytes; empty at the end. Raises InputLostError for a broken connection."""
        try:
            return os.read(self.fd, _READ_BYTES)
        except OSError as error:
            raise InputLostError(f"{self.name} was lost: {error.strerror or error}") from error

    def acknowledge(self) -> None:
        """Send a line with the number of events written so far, which are all durable.

        If the peer does not read these lines, it misses some. A later line has a larger number.
        """
        if self.acknowledged == self.written:
            return
        self.acknowledged = self.written
        if self._send is None:
            return
        if len(self._unsent) < _UNSENT_BYTES:
            self._unsent += b"%d\n" % self.acknowledged
        with contextlib.suppress(OSError):  # the next read raises the error
            self._unsent = self._unsent[self._send(self._unsent) :]


class Input:
    """All sources of one pipe. ``stop`` may be called from a signal handler."""

    def __init__(self, *, name: str, many: bool = False, acknowledge: bool = False) -> None:
        self.name = name
        self.many = many  # True if sources come and go while the pipe runs
        self._acknowledge = acknowledge
        self.stopped = False
        self._selector = selectors.PollSelector() if hasattr(selectors, "PollSelector") else selectors.SelectSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._listener: socket.socket | None = None
        self._later: deque[Source] = deque()
        self._sources: dict[int, Source] = {}

    def add(self, source: Source) -> None:
        """Read from a source from now on."""
        self._sources[source.fd] = source
        self._selector.register(source.fd, selectors.EVENT_READ, source)
        if self._listener is not None and len(self._sources) == _MAX_CONNECTIONS:
            self._selector.unregister(self._listener)

    def add_later(self, source: Source) -> None:
        """Read from a source when the others have ended."""
        if self._sources:
            self._later.append(source)
        else:
            self.add(source)

    def listen(self, listener: socket.socket) -> None:
        """Accept connections from now on."""
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
        if self._later and not self._sources:
            self.add(self._later.popleft())

    @property
    def open(self) -> bool:
        """True if the input may have more events."""
        return not self.stopped and (self.many or bool(self._sources))

    def ready(self, *, wait: bool) -> list[Source]:
        """Return sources with bytes, or at their end; with ``wait``, block until there is one or until :meth:`stop`."""
        found = []
        for key, _ in self._selector.select(None if wait else 0):
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, Source):
                found.append(key.data)
        return [] if self.stopped else found

    def stop(self) -> None:
        """Stop reading; it may be called from a signal handler."""
        self.stopped = True
        with contextlib.suppress(OSError):
            self._wake_write.send(b"\0", socket.MSG_DONTWAIT)

    def close(self) -> None:
        """End all sources. Idempotent."""
        while self._sources:
            self.drop(next(iter(self._sources.values())))
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _accept(self) -> None:
        assert self._listener is not None
        connection, address = self._listener.accept()
        send = (lambda line: connection.send(line, socket.MSG_DONTWAIT)) if self._acknowledge else None
        name = f"the connection from {address[0]}:{address[1]}"
        self.add(Source(name, connection.fileno(), send, connection.close))


def standard_input(fd: int = 0, *, acknowledge: Callable[[bytes], int] | None = None) -> Input:
    """Return the input of a file descriptor; ``acknowledge`` receives lines with the number of durable events."""
    made = Input(name="standard input")
    made.add(Source("standard input", fd, acknowledge, lambda: None))
    return made


def of_files(files: Iterable[IO[bytes]]) -> Input:
    """Return the input of open files, one after the other; it closes them."""
    made = Input(name="the files")
    for file in files:
        made.add_later(Source(file.name, file.fileno(), None, file.close))
    return made


def listening(address: str, *, acknowledge: bool = False) -> Input:
    """Return the input of connections to ``tcp://host:port``; port 0 selects any free port.

    Its ``name`` is the address with the port. With ``acknowledge``, a connection receives lines with the number of its
    durable events. Raises ConfigError for an address that cannot be bound.
    """
    host, port = _parsed(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen at {address}: {error.strerror or error}") from None
    bound = listener.getsockname()
    made = Input(name=f"tcp://{bound[0]}:{bound[1]}", many=True, acknowledge=acknowledge)
    made.listen(listener)
    return made


def _parsed(address: str) -> tuple[str, int]:
    kind, _, rest = address.partition("://")
    host, _, port = rest.rpartition(":")
    if kind != "tcp" or not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"invalid address {address!r}: write tcp://host:port")
    return host.strip("[]"), int(port)


# ---- bytes to lines ----


class LineFrames:
    """Splitter of the bytes of one source into lines, without newlines. The last line may lack its newline."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._begun: list[bytes] = []  # pieces of the incomplete line
        self.pending = 0  # bytes of the incomplete line
        self.broken: EventError | None = None  # set after a line was too long; no more lines are found

    def feed(self, data: bytes) -> list[bytes]:
        """Add the next bytes; return the lines that end in them."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._begun, lines[0]))
            self._begun, self.pending = [], 0
        self._begun.append(rest)
        self.pending += len(rest)
        if max(map(len, lines), default=0) > self._largest:
            first = next(i for i, line in enumerate(lines) if len(line) > self._largest)
            self.broken = _too_large(len(lines[first]), self._largest)
            return lines[:first]
        if self.pending > self._largest:
            self.broken = _too_large(self.pending, self._largest)
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if it has no newline."""
        last = b"".join(self._begun)
        self._begun, self.pending = [], 0
        return [last] if last else []


def _too_large(size: int, largest: int) -> EventTooLargeError:
    return EventTooLargeError(
        f"a line of {size} bytes or more is over the limit of {largest} bytes: check that the input has lines, or "
        "raise max_event_size"
    )


# ---- routing keys of events ----

_EVENT = "event"
_json_value: Final = JsonSerializer().deserialize


class _OfBytes:
    """Base class of routers that use the column ``event``, event by event."""

    def key(self, value: Any) -> str | None:
        """Return the key of an event."""
        raise NotImplementedError

    def keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the keys of the column ``event``; null for an event without a key."""
        return pa.array(map(self.key, batch.column(_EVENT).to_pylist()), pa.string(), size=batch.num_rows)

    def check(self, schema: pa.Schema) -> None:
        """Accept any schema: the events are bytes."""


@dataclass(frozen=True)
class ByJsonField(_OfBytes):
    """Router by a field of the JSON text, which a path with dots names.

    An event without such a field, with invalid JSON, or with a text that is not UTF-8 (an unpaired surrogate), has no
    key.
    """

    path: str

    def key(self, value: Any) -> str | None:
        """Return the text of the field, like ``String.valueOf`` in Java; None without such a field."""
        try:
            text = ByField(self.path).key(_json_value(value))
            if text is not None:
                text.encode()
        except (SerdeError, UnicodeEncodeError):
            return None
        return text


@dataclass(frozen=True)
class ByPattern(_OfBytes):
    """Router by the first match of a regular expression.

    The key is the group ``key``, otherwise the first group, otherwise the whole match.
    """

    pattern: str
    _compiled: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ConfigError for an invalid regular expression."""
        try:
            # The command line has bytes that are not UTF-8 as surrogates.
            compiled = re.compile(self.pattern.encode(errors="surrogateescape"))
        except (re.error, UnicodeEncodeError) as error:
            raise ConfigError(f"invalid regular expression {self.pattern!r} for the key: {error}") from None
        object.__setattr__(self, "_compiled", compiled)

    def key(self, value: Any) -> str | None:
        """Return the text of the match, as UTF-8; None without a match."""
        found = self._compiled.search(value)
        if found is None:
            return None
        group: Any = "key" if "key" in self._compiled.groupindex else min(1, self._compiled.groups)
        text = found.group(group)
        return None if text is None else text.decode(errors="replace")
