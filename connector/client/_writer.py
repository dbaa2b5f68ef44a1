"""Writing events to a stream."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connector.client._append_loop import AppendLoop
from connector.client._deadline import Deadline
from connector.client._destinations import Destination, StreamDestination
from connector.client._routes import Routes
from connector.client._stores import SegmentStores
from connector.errors import (
    ColumnTypeError,
    ConfigError,
    ConnectorError,
    EventTooLargeError,
    NullEventError,
)
from connector.wire import Block, StreamName, frame_column
from pravega_serde.errors import SerializationError
from pravega_serde.routing import segment_keys

__all__ = ["MAX_EVENT_SIZE", "EventWriter", "SupportsSerialize"]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

# io.pravega.client.stream.Serializer.MAX_EVENT_SIZE: what the Java and Rust clients write at most.
MAX_EVENT_SIZE: Final = 8 << 20
# Bytes handed over and not yet durable; bounds the memory of a writer and what a lost connection sends again.
MAX_IN_FLIGHT: Final = 64 << 20
# One append. Measured: larger ones are not faster, and a server holds each whole in memory.
_BLOCK_SIZE: Final = 1 << 20
# A frame above this goes through a transient segment: a wire message ends at 16 MiB.
_LARGE_FRAME: Final = MAX_EVENT_SIZE + 8
# Rows wait for company until so many bytes are together or so many seconds have passed.
_ROW_BYTES: Final = 1 << 20
_ROW_COUNT: Final = 16384
_LINGER: Final = 0.01


class SupportsSerialize(Protocol[T_contra]):
    """What a writer needs of a serializer."""

    def serialize(self, value: T_contra, /) -> bytes:
        """Bytes of one event."""
        ...


def blocks_of(
    column: pa.Array, positions: npt.NDArray[np.float64], targets: npt.NDArray[np.int64]
) -> Iterator[tuple[int, Block]]:
    """Cut a column of events into blocks, by segment, each segment's events in the order of the column."""
    ids = np.unique(targets)
    for segment_id in ids:
        if len(ids) == 1:
            part, places = column, positions
        else:
            chosen = np.flatnonzero(targets == segment_id)
            part, places = column.take(pa.array(chosen)), positions[chosen]
        framed = frame_column(part)
        for first, last in _cuts(framed.ends):
            begin = int(framed.ends[first - 1]) if first else 0
            ends = framed.ends[first:last] - begin
            data = framed.data[begin : begin + int(ends[-1])]
            large = len(data) > _LARGE_FRAME
            yield int(segment_id), Block(data, ends, places[first:last], large)


def _cuts(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose frames fill a block; a frame larger than a block is alone in its own."""
    first, begin = 0, 0
    while first < len(ends):
        last = int(np.searchsorted(ends, begin + _BLOCK_SIZE, side="right"))
        last = max(last, first + 1)
        yield first, last
        first, begin = last, int(ends[last - 1])


def _as_bytes(event: Any) -> bytes:
    if not isinstance(event, bytes | bytearray | memoryview):
        raise SerializationError(f"the serializer made a {type(event).__name__} of an event; it must return bytes")
    return bytes(event)


def _check_key(routing_key: str) -> None:
    if not isinstance(routing_key, str):
        raise ConfigError(f"a routing key must be a str, not {type(routing_key).__name__}")
    try:
        _ = routing_key.isascii() or routing_key.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the routing key {routing_key!a} holds half of a surrogate pair: it is no text") from None


def _as_binary(column: pa.Array) -> pa.Array:
    """The column in a type whose lengths Arrow can tell."""
    t = pa.types
    if t.is_binary(column.type) or t.is_string(column.type) or t.is_large_binary(column.type):
        return column
    try:
        return column.cast(pa.large_binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnTypeError(f"a column of {column.type} holds no events: cast it to binary or string") from None


class EventWriter(Generic[T]):
    """Writes events to one stream; thread safe, one background thread.

    Events of one routing key are kept in the order in which they were written, across scaling too. An event is
    durable once :meth:`flush` has returned; until then it may be lost with this process. Lost connections are mended
    without loss and without repetition (an event over 8 MiB may be repeated).
    """

    def __init__(
        self,
        stores: SegmentStores,
        stream: StreamName,
        serializer: SupportsSerialize[T],
        *,
        max_event_size: int = MAX_EVENT_SIZE,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float,
        destination: Destination | None = None,
    ) -> None:
        """``destination`` is where the events go instead of the stream's segments: those of a transaction."""
        if max_event_size < 1 or max_in_flight < 1:
            raise ConfigError("max_event_size and max_in_flight are counts of bytes, at least 1")
        destination = destination or StreamDestination(stores.controller, stream)
        self.stream = stream
        self._serialize = serializer.serialize
        self._max_event_size = max_event_size
        self._timeout = timeout
        self._random = np.random.default_rng()
        self._routes = Routes(stream, destination.ranges())
        self._lock = threading.Lock()
        self._events: list[bytes] = []
        self._keys: list[str | None] = []
        self._size = 0
        self._since = math.inf  # when the oldest waiting row came
        self._closed = False
        self._loop = AppendLoop(stores, destination, self._routes, max_in_flight=max_in_flight, collect=self._collect)

    def write(self, value: T, routing_key: str | None = None) -> None:
        """Write one event; without a routing key it goes to any segment.

        Waits while too many bytes are not yet durable. Raises SerializationError, EventTooLargeError,
        DeadlineExceededError, StreamSealedError, ConfigError (a key that is no text); the event is then not taken.
        """
        event = self._serialize(value)
        if type(event) is not bytes:
            event = _as_bytes(event)
        if len(event) > self._max_event_size:
            raise self._too_large(len(event))
        if routing_key is not None:
            _check_key(routing_key)
        with self._lock:
            self._check_open()
            first = not self._events
            if not first and (self._size + len(event) > _ROW_BYTES or len(self._events) >= _ROW_COUNT):
                self._submit_rows(Deadline(self._timeout))
                first = True
            self._events.append(event)
            self._keys.append(routing_key)
            self._size += len(event)
            if first:
                self._since = time.monotonic()
        if first:
            self._loop.wake()

    def write_column(self, events: pa.Array, routing_keys: pa.Array | None = None) -> None:
        """Write a column of serialized events (binary or string), with a column of routing keys as long.

        A null key means none. Raises NullEventError, ColumnTypeError, EventTooLargeError, DeadlineExceededError,
        StreamSealedError, ConfigError (not as many keys as events); nothing of the column is then taken.
        """
        events = _as_binary(events)
        if routing_keys is not None and len(routing_keys) != len(events):
            raise ConfigError(f"there are {len(routing_keys)} routing keys for a column of {len(events)} events")
        if not len(events):
            return
        lengths = pa.compute.binary_length(events)
        if events.null_count:
            row = pa.compute.index(pa.compute.is_null(events), value=True).as_py()
            raise NullEventError(f"row {row} of the column is null, and Pravega has no null events: fill or drop it")
        if (longest := pa.compute.max(lengths).as_py()) > self._max_event_size:
            raise self._too_large(longest)
        with self._lock:
            self._check_open()
            deadline = Deadline(self._timeout)
            self._submit_rows(deadline)
            blocks = self._route(events, routing_keys)
            self._loop.wait_for_room(sum(len(block.data) for _, block in blocks), deadline)
            self._loop.push(blocks)
        self._loop.wake()

    def flush(self, timeout: float | None = None) -> None:
        """Return when every event written before is durable. Raises DeadlineExceededError, StreamSealedError.

        After a DeadlineExceededError the events are still on their way; flush may be called again.
        """
        deadline = Deadline(self._timeout if timeout is None else timeout)
        # Another thread may hold the lock while it waits for room.
        while not self._lock.acquire(timeout=deadline.remaining(f"writing to stream {self.stream}")):
            pass
        try:
            self._check_open()
            self._submit_rows(deadline)
        finally:
            self._lock.release()
        self._loop.flush(deadline)

    def close(self) -> None:
        """Flush, and end the background thread."""
        if self._closed:
            return
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End the background thread without waiting; events that are not durable yet may be lost."""
        self._closed = True
        self._loop.close()

    def __enter__(self) -> EventWriter[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
            return
        # What was written before the error is written still, but the error is the one to be seen.
        with contextlib.suppress(ConnectorError):
            self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigError(f"the writer of stream {self.stream} is closed")

    def _too_large(self, size: int) -> EventTooLargeError:
        return EventTooLargeError(
            f"an event of {size} bytes is over the limit of {self._max_event_size} bytes for stream {self.stream}; "
            "raise max_event_size if all readers of the stream can take it"
        )

    def _collect(self) -> float:
        """Hand waiting rows to the loop when they are due; return when to come again."""
        # A caller that holds the lock is about to hand them over itself, or waits for the loop that asks here.
        if not self._lock.acquire(blocking=False):
            return time.monotonic() + _LINGER
        try:
            due = self._since + _LINGER
            if due > time.monotonic():
                return due
            if not self._loop.has_room(self._size):
                return time.monotonic() + _LINGER
            self._loop.push(self._take_rows())
            return math.inf
        finally:
            self._lock.release()

    def _submit_rows(self, deadline: Deadline) -> None:
        """Hand over the waiting rows when there is room; if that fails they go on waiting."""
        if self._events:
            self._loop.wait_for_room(self._size, deadline)
            self._loop.push(self._take_rows())
            self._loop.wake()

    def _take_rows(self) -> list[tuple[int, Block]]:
        events, keys = pa.array(self._events, pa.large_binary()), self._keys
        self._events, self._keys, self._size, self._since = [], [], 0, math.inf
        if all(key is None for key in keys):
            return self._route(events, None)
        return self._route(events, pa.array(keys, pa.string()))

    def _route(self, events: pa.Array, keys: Any) -> list[tuple[int, Block]]:
        # Without keys, one place for the whole column: fewer, larger appends, and all segments take turns.
        positions = np.full(len(events), self._random.random()) if keys is None else segment_keys(keys)
        return list(blocks_of(events, positions, self._routes.targets(positions)))
