"""Writers of events to a stream."""

from __future__ import annotations

import contextlib
import time
import uuid
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector import metrics
from pravega_connector.core import arguments
from pravega_connector.core.connection import ProcessBound
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.events import (
    MAX_EVENT_SIZE,
    RawEvents,
    SupportsSerialize,
    as_binary,
    as_bytes,
    blocks_of_frames,
    check_key,
    pieces_of,
)
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    DeadlineExceededError,
    EventTooLargeError,
    NullEventError,
    StreamSealedError,
)
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import EVENT_HEADER_SIZE, MAX_READABLE_EVENT, FramedColumn, StreamName
from pravega_connector.writer.append_loop import AppendLoop, settle
from pravega_connector.writer.inbox import Blocks, Inbox, Rows
from pravega_connector.writer.routing import Destination, Routes, StreamDestination
from pravega_serde import after_fork
from pravega_serde.columnar import as_column
from pravega_serde.routing import EventRouter

T = TypeVar("T")

# Bytes handed over and not yet durable, from which on writes wait. With one piece more it bounds the memory of a writer
# and what a lost connection sends again.
MAX_IN_FLIGHT: Final = 64 << 20
# Rows are collected up to this number of bytes or values.
_ROW_BYTES: Final = 1 << 20
_ROW_VALUES: Final = 2 * 16384  # events with their keys
_GOODBYE_SECONDS: Final = 5.0


class _Intake(Inbox):
    """The inbox and the checks of an event for it. It has no error hints, because they slow down attribute look-ups."""

    __slots__ = ("max_event_size", "serialize")

    def __init__(self, routes: Routes, serialize: Callable[[Any], Any] | None, max_event_size: int) -> None:
        """Without ``serialize``, the events are bytes."""
        super().__init__(routes)
        self.serialize, self.max_event_size = serialize, min(max_event_size, MAX_READABLE_EVENT)


class WriterOptions(TypedDict, total=False):
    """Options of :meth:`PravegaClient.writer`."""

    router: EventRouter | None
    max_event_size: int
    max_in_flight: int
    timeout: float | None
    writer_id: str | None
    automatically_note_time: bool


def _note_present(stores: SegmentStores, stream: StreamName, writer_id: str, millis: int) -> bool:
    """Note an event time at the current tail: all durable events are before it, and later events are after it."""
    return stores.controller.note_time(writer_id, tail_cut(stores, stream), millis)


class EventWriter(HintedNames, ProcessBound, Generic[T]):
    """Writer of events to one stream. Thread safe, with one background thread.

    Events of one routing key keep their order, also across scaling. An event is durable when :meth:`flush` has
    returned. Before that, it may be lost with the process. After a lost connection, the writer reconnects and neither
    loses nor repeats events.

    Close the writer, or use it in a ``with`` block. If it is garbage collected before, it emits a ResourceWarning and
    delivers its events in the background, for ``timeout`` seconds at most; it logs a loss. If the process ends before
    its events are durable, it emits a ResourceWarning and logs their number.
    """

    def __init__(
        self,
        stores: SegmentStores,
        stream: StreamName,
        serializer: SupportsSerialize[T],
        *,
        router: EventRouter | None = None,
        max_event_size: int = MAX_EVENT_SIZE,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float | None = None,
        writer_id: str | None = None,
        automatically_note_time: bool = False,
        destination: Destination | None = None,
    ) -> None:
        """``router`` returns the routing keys of events that are written without a key.

        ``writer_id`` is the name under which the writer notes time, by default a unique one.
        ``automatically_note_time`` notes the clock's time every 5 s. ``destination`` replaces the stream's segments
        with those of a transaction.
        """
        arguments.instance("automatically_note_time", automatically_note_time, bool, "True or False")
        arguments.count("max_event_size", max_event_size, 1, optional=False)
        arguments.count("max_in_flight", max_in_flight, 1, optional=False)
        arguments.seconds("timeout", timeout)
        arguments.instance("router", router, EventRouter, "ByColumn('name'), ByFunction(str)")
        destination = destination or StreamDestination(stores.controller, stream)
        self.stream, self._destination = stream, destination
        self.writer_id = writer_id or str(uuid.uuid4())
        self._noted = self._notes_time = automatically_note_time  # watermarks wait for a writer that has noted
        self._stores = stores
        self._serializer, self._router = serializer, router
        self._may_block = bool(getattr(serializer, "write_may_block", False))
        self._timeout = timeout
        routes = Routes(stream, destination.ranges())
        raw = isinstance(serializer, RawEvents)
        self._intake = _Intake(routes, None if raw else serializer.serialize, max_event_size)
        self._overdue = False  # the last flush was not done in time
        self._ended = False
        note = partial(_note_present, stores, stream, self.writer_id) if automatically_note_time else None
        self._loop = AppendLoop(stores, destination, self._intake, max_in_flight=max_in_flight, note_time=note)
        self._unclosed = weakref.finalize(self, self._loop.delivery.orphan, timeout)
        self._unclosed.atexit = False  # the loops report at exit
        after_fork.register(self)

    def _after_fork(self) -> None:
        # What the parent has accepted the parent writes.
        self._unclosed.detach()
        self._ended = self._intake.lock = self._loop = after_fork.inherited(f"EventWriter of stream {self.stream}")

    def __repr__(self) -> str:
        return f"EventWriter({self.stream}{', closed' if self._intake.closed else ''})"

    def write(self, value: T, routing_key: str | None = None, *, key: object = None) -> None:
        """Write one event. Without a routing key and a router, it goes to any segment.

        Waits while too many bytes are not yet durable. Raises SerializationError, EventTooLargeError,
        DeadlineExceededError, StreamSealedError, or ConfigError for a key that is not a string. After an error, the
        event is not written. Do not use ``key``: it exists to name ``routing_key`` in its error.
        """
        if key is not None:
            arguments.only("write", ["key"], ["value", "routing_key"])
        if routing_key is None and self._router is not None:
            routing_key = self._router.key(value)
        intake = self._intake
        event = value if intake.serialize is None else intake.serialize(value)
        if type(event) is not bytes:
            event = as_bytes(event, raw=intake.serialize is None)
        size = len(event)
        if size > intake.max_event_size:
            raise self._too_large(size)
        if routing_key is not None and not (type(routing_key) is str and routing_key.isascii()):
            check_key(routing_key)
        with intake.lock:
            rows = intake.rows
            values = rows.values
            if size <= rows.room and len(values) < _ROW_VALUES:
                values += event, routing_key  # one step, so that an interrupt cannot part them
                rows.room -= size
                return
        self._write_elsewhere(event, routing_key)

    def _write_elsewhere(self, event: bytes, routing_key: str | None) -> None:
        """Write an event to new rows, after handing over the current rows if they have events."""
        deadline = self._stores.deadline(self._timeout)
        while True:
            with self._intake.lock:
                if self._intake.closed:
                    raise self._destination.closed()
                rows = self._intake.rows
                if not rows.values:
                    # Before the event is accepted: after an interrupt in between, the loop finds no rows.
                    rows.since = time.monotonic()
                    self._loop.wake()
                    rows.values += event, routing_key
                    rows.room = _ROW_BYTES - len(event)
                    return
            self._hand_over(rows, deadline)

    def write_all(self, values: Iterable[T], routing_key: str | None = None) -> Future[None]:
        """Write events of one routing key in one step: the segment gets all of them, next to each other, or none.

        Java's counterpart is ``writeEvents(key, list)``. Without a key and a router, they go to any one segment. The
        result is done when the events are durable, as for :meth:`write_with_ack`. They may have 128 MiB together.

        Raises the errors of :meth:`write`, or ConfigError if a router returns several keys. After an error, no event is
        written.
        """
        listed = arguments.listed("values", values)
        if routing_key is None and self._router is not None and listed:
            keys = {self._router.key(value) for value in listed}
            if len(keys) > 1:
                raise ConfigError(
                    f"write_all requires events of one routing key, but the router returned {len(keys)} keys: pass "
                    "routing_key, or write events of different keys in a transaction"
                )
            (routing_key,) = keys
        if routing_key is not None:
            check_key(routing_key)
        return self._write_together([self._serialized(value) for value in listed], routing_key)

    def write_with_ack(self, value: T, routing_key: str | None = None) -> Future[None]:
        """Write one event, as :meth:`write`, and return its acknowledgement.

        The Future is done when the event is durable. It has the error if the writer fails or is abandoned before that:
        then it is not known if the event was written. Its callbacks run in the writer's background thread, so they must
        not wait. Each such event is sent as a separate block; :meth:`write` and :meth:`flush` are faster.
        """
        if routing_key is None and self._router is not None:
            routing_key = self._router.key(value)
        if routing_key is not None:
            check_key(routing_key)
        return self._write_together([self._serialized(value)], routing_key)

    def _serialized(self, value: T) -> bytes:
        intake = self._intake
        event = as_bytes(value if intake.serialize is None else intake.serialize(value), raw=intake.serialize is None)
        if len(event) > intake.max_event_size:
            raise self._too_large(len(event))
        return event

    def _write_together(self, events: list[bytes], routing_key: str | None) -> Future[None]:
        acknowledgement: Future[None] = Future()
        acknowledgement.set_running_or_notify_cancel()  # what was sent cannot be cancelled
        if (size := sum(map(len, events)) + EVENT_HEADER_SIZE * len(events)) > MAX_READABLE_EVENT:
            raise EventTooLargeError(
                f"events of {size} bytes together are over the limit of {MAX_READABLE_EVENT} bytes for one step of "
                f"stream {self.stream}: write them in a transaction"
            )
        if not events:
            acknowledgement.set_result(None)
            return acknowledgement
        self._write_blocks(
            self._intake.route_together(pa.array(events, pa.large_binary()), routing_key, acknowledgement)
        )
        if (failure := self._loop.failure) is not None:
            settle(acknowledgement, failure)
        return acknowledgement

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a record batch, serialized by column, with the routing keys of the router.

        Without a serializer, the events are the column ``event``. Raises SchemaError, SerializationError, ConfigError
        for another type, and the errors of :meth:`write_column`.
        """
        if not isinstance(batch, pa.RecordBatch):
            raise ConfigError(
                f"write_batch requires a pyarrow.RecordBatch, not a {type(batch).__name__}: write each of "
                "table.to_batches() of an Arrow table, pyarrow.RecordBatch.from_pandas(frame, preserve_index=False), "
                "or frame.to_arrow().to_batches() of polars"
            )
        encode = getattr(self._serializer, "encode_column", None)
        if encode is None:
            raise ConfigError(f"a {type(self._serializer).__name__} writes single values only: it has no encode_column")
        keys = None if self._router is None else self._router.keys(batch)
        self._write_events(encode(batch), keys)

    def write_column(self, events: pa.Array, routing_keys: pa.Array | None = None) -> None:
        """Write a column of serialized events (binary or string), with a column of routing keys of the same length.

        A null key means no key. Without keys, a router reads them from a batch with the column ``event``.

        Raises NullEventError, ColumnTypeError, EventTooLargeError, DeadlineExceededError, StreamSealedError,
        SchemaError if the router finds no key, and ConfigError if the lengths differ. After an error, nothing of the
        column is written. But a column over 16 MiB is written in pieces of 8 MiB. If the servers fail between two
        pieces, the error has the number of rows that were accepted.
        """
        if routing_keys is None and self._router is not None:
            routing_keys = self._router.keys(pa.RecordBatch.from_arrays([as_column(events)], ["event"]))
        self._write_events(events, routing_keys)

    def _write_events(self, events: pa.Array, keys: pa.Array | None) -> None:
        events = as_binary(events)
        if not isinstance(keys, pa.Array | pa.ChunkedArray | None):
            raise ConfigError(
                f"routing keys must be a pyarrow.Array of strings, not a {type(keys).__name__}: write "
                "pyarrow.array(keys)"
            )
        if keys is not None and len(keys) != len(events):
            raise ConfigError(
                f"{len(keys)} routing keys do not match a column of {len(events)} events: pass one key for each event"
            )
        if not len(events):
            return
        if events.null_count:
            row = pa.compute.index(pa.compute.is_null(events), value=True).as_py()
            raise NullEventError.at_row(row)
        lengths = pa.compute.binary_length(events).to_numpy()
        if (longest := int(lengths.max())) > self._intake.max_event_size:
            raise self._too_large(longest)
        for first, last in pieces_of(lengths):
            try:
                self._write_blocks(self._intake.route(events[first:last], None if keys is None else keys[first:last]))
            except (DeadlineExceededError, StreamSealedError) as error:
                if not first:
                    raise
                raise type(error)(
                    f"{error.message} (the writer accepted the first {first} rows of the column)"
                ) from None

    def write_frames(self, data: memoryview, ends: npt.NDArray[np.int64], position: float) -> None:
        """Write events in the form that they have in a segment, to the segment that owns a position.

        ``data`` has the frames: a 0 and the length of the event, as big-endian 32-bit numbers, and the event. ``ends``
        has the end of each frame in ``data``. ``position`` is in the key space [0, 1). The bytes are not copied, so do
        not change them before they are durable. Raises DeadlineExceededError, StreamSealedError.
        """
        if len(ends):
            blocks = blocks_of_frames(FramedColumn(data, ends), np.full(len(ends), position))
            target = self._intake.routes.target(position)
            self._write_blocks([(target, block) for block in blocks])

    def _write_blocks(self, blocks: Blocks) -> None:
        """Hand over blocks, after the rows before them."""
        deadline = self._stores.deadline(self._timeout)
        while True:
            self._hand_over(self._intake.rows, deadline)
            with self._intake.lock:
                if self._intake.closed:
                    raise self._destination.closed()
                self._loop.raise_failure()
                if not self._intake.rows.values and self._loop.has_room:
                    self._intake.hand_over(blocks)
                    break
            deadline.remaining(f"writing to stream {self.stream}")  # other threads may be faster each time
            self._loop.wait_for_room(deadline)
        self._loop.wake()

    def flush(self, timeout: float | None = None) -> None:
        """Return when all events written before are durable. Raises DeadlineExceededError, StreamSealedError.

        After a DeadlineExceededError the events are still in flight, and you may call it again.
        """
        if self._ended:
            raise self._destination.closed()
        deadline = self._stores.deadline(self._timeout if timeout is None else timeout)
        rows = self._intake.rows
        began, idle = time.monotonic(), not rows.values and self._loop.is_durable
        try:
            self._hand_over(rows, deadline)
            self._loop.flush(deadline)
        except (DeadlineExceededError, KeyboardInterrupt):
            self._overdue = True
            raise
        self._overdue = False
        if not idle:
            metrics.OPERATION_SECONDS.record(time.monotonic() - began, "flush", str(self.stream))

    def note_time(self, millis: int) -> bool:
        """Flush, and note an event time: earlier events are of this time or before, later events of it or after.

        The server combines the times of all writers of a stream into watermarks, which readers of every client see
        (``getCurrentTimeWindow`` in Java). ``millis`` counts milliseconds, usually since 1970. Returns False without
        effect if this writer has noted a later time. Raises the errors of :meth:`flush`, and ConfigError for a writer
        with ``automatically_note_time``.
        """
        if self._notes_time:
            raise ConfigError(
                f"the writer of stream {self.stream} notes the time itself: create it without automatically_note_time "
                "to note other times"
            )
        arguments.millis("millis", millis)
        self.flush()
        noted = _note_present(self._stores, self.stream, self.writer_id, millis)
        self._noted |= noted
        return noted

    def close(self, timeout: float | None = None) -> None:
        """Accept no more events, flush within ``timeout`` seconds, and end the background thread.

        Watermarks no longer wait for this writer. An interrupt leaves the background thread running: close the writer
        again to wait for its events.
        """
        if after_fork.is_inherited(self._loop):
            return
        arguments.number("timeout", timeout)
        if self._ended:
            self.abandon()  # which an interrupt may have left
            return
        try:
            self.finish(timeout)
        except Exception:
            self._leave()
            raise
        self._leave()

    def finish(self, timeout: float | None = None) -> None:
        """Accept no more events, and flush. You may call it again, as :meth:`flush`."""
        arguments.number("timeout", timeout)  # while the writer still takes events
        self._intake.close()  # before the flush, which then includes all that other threads have written
        self.flush(timeout)

    def _leave(self) -> None:
        self.abandon()
        if self._noted:
            # A writer that stays is left out as soon as it holds the watermarks back for the stream's timeout.
            with contextlib.suppress(ConnectorError):
                self._stores.controller.remove_writer(self.stream, self.writer_id, timeout=_GOODBYE_SECONDS)

    def abandon(self) -> None:
        """End the background thread without waiting. Events that are not yet durable may be lost."""
        if after_fork.is_inherited(self._loop):
            return
        self._ended = True
        self._intake.close()
        self._loop.close()
        self._unclosed.detach()

    def __enter__(self) -> EventWriter[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
            return
        if self._overdue or isinstance(error, DeadlineExceededError):  # it has waited in vain already
            self.abandon()
            return
        # What was written before the error is written still, but the error is the one to be seen.
        with contextlib.suppress(ConnectorError):
            self.close()

    @property
    def is_free(self) -> bool:
        """Return True if a write does not wait now."""
        return self._loop.has_room and not self._may_block

    def _too_large(self, size: int) -> EventTooLargeError:
        limit = self._intake.max_event_size
        fix = (
            "readers support no larger events: split it"
            if limit == MAX_READABLE_EVENT
            else "raise max_event_size if all readers of the stream support it"
        )
        return EventTooLargeError(
            f"an event of {size} bytes is over the limit of {limit} bytes for stream {self.stream}; {fix}"
        )

    def _hand_over(self, rows: Rows, deadline: Deadline) -> None:
        """Return when the rows are handed over, which waits for space. On failure, they stay in the queue."""
        while True:
            with self._intake.lock:
                if rows is not self._intake.rows or not rows.values:  # another thread has handed them over
                    return
                self._loop.raise_failure()
                if self._loop.has_room:
                    self._intake.hand_over(self._intake.blocks(rows))
                    break
            self._loop.wait_for_room(deadline)
        self._loop.wake()
