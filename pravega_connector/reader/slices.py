"""Reads of bounded ranges: exact bytes of one segment, or the events of a stream between two cuts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector import metrics
from pravega_connector.core import arguments
from pravega_connector.core.connection import Connection
from pravega_connector.errors import (
    ConnectionLostError,
    DataLossError,
    NoSuchSegmentError,
    SegmentTruncatedError,
    StreamNotFoundError,
)
from pravega_connector.notebook import table
from pravega_connector.stores.segment_stores import SegmentStores, read_error_of
from pravega_connector.stores.segments import Lineage, tail_cut
from pravega_connector.wire import (
    EVENT_HEADER_SIZE,
    EventPointer,
    FrameParser,
    RangeRead,
    SegmentRange,
    SegmentRead,
    StreamCut,
    StreamName,
    segment_name,
)
from pravega_serde.errors import DeserializationError, PravegaError

T = TypeVar("T")

_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """The bytes [start, end) of one segment; both are event boundaries."""

    stream: StreamName
    segment_id: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, repr=False)
class EventBatch:
    """Consecutive events of one segment.

    ``events`` is a binary array, ``offsets`` the segment offset at which each event starts (int64, same length).
    """

    stream: StreamName
    segment_id: int
    events: pa.BinaryArray
    offsets: npt.NDArray[np.int64]

    @property
    def end(self) -> int:
        """Segment offset after the last event."""
        return int(self.offsets[-1]) + EVENT_HEADER_SIZE + len(self.events[-1].as_buffer())

    def pointer(self, row: int) -> EventPointer:
        """Return the pointer to the event in ``row``, for :meth:`PravegaClient.fetch`."""
        length = EVENT_HEADER_SIZE + len(self.events[row].as_buffer())
        return EventPointer(self.stream, self.segment_id, int(self.offsets[row]), length)

    def __repr__(self) -> str:
        first = self.offsets[0] if len(self.offsets) else "none"
        return f"EventBatch({self.stream}, segment {self.segment_id}, {len(self.events)} events, the first at {first})"

    def _repr_html_(self) -> str:
        rows = zip(self.offsets.tolist(), (event.as_py() for event in self.events), strict=True)
        name = f"segment {self.segment_id} of {self.stream}: {len(self.events):,} events"
        return table(name, ["offset", "event"], rows, len(self.events))

    def values(self, serializer: Any = None) -> Iterator[Any]:
        """Yield the events one by one, deserialized if you pass a serializer or the name of its format.

        Raises DeserializationError with the stream, segment and offset of the event.
        """
        if serializer is None:
            yield from self.events.to_pylist()
            return
        yield from decoded_values(self, arguments.serializer_of(serializer, "deserialize").deserialize)

    def locate(self, error: DeserializationError, row: int) -> DeserializationError:
        """Return the error with the coordinates of the event in ``row``."""
        return error.at(
            scope=self.stream.scope,
            stream=self.stream.stream,
            segment_id=self.segment_id,
            offset=int(self.offsets[row]),
        )


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Range between two cuts of a stream, as slices of its segments, predecessors before their successors.

    For a read of one routing key, ``owned`` has the keys of each segment.
    """

    start: StreamCut
    end: StreamCut
    slices: tuple[SegmentSlice, ...]
    owned: Mapping[int, SegmentRange] = field(default_factory=dict)


#: Returns the wanted events of a batch; the range has the routing keys of its segment.
Select = Callable[[EventBatch, SegmentRange], EventBatch]


def decoded_values(batch: EventBatch, deserialize: Callable[[bytes], T]) -> Iterator[T]:
    """Yield the result of ``deserialize`` for each event. Raises DeserializationError that names the event."""
    for row, event in enumerate(batch.events.to_pylist()):
        try:
            value = deserialize(event)
        except DeserializationError as error:
            metrics.BAD_RECORDS.add(1, "client", str(batch.stream))
            raise batch.locate(error, row) from error
        yield value


def read_slice(stores: SegmentStores, piece: SegmentSlice) -> Generator[EventBatch, None, None]:
    """Yield the events of a slice in order, about a mebibyte at a time.

    Raises the errors of :func:`read_chunks`.
    """
    parser = FrameParser(piece.start, segment=segment_name(piece.stream, piece.segment_id))
    label = str(piece.stream)
    with closing(read_chunks(stores, piece)) as chunks:
        for chunk in chunks:
            column = parser.feed(chunk)
            metrics.CONSUMED_BYTES.add(len(chunk), label)
            if column is not None:
                metrics.CONSUMED_EVENTS.add(len(column.offsets), label)
                yield EventBatch(piece.stream, piece.segment_id, column.payload, column.offsets)
    parser.finish()


def joined(batches: Iterable[EventBatch], size: int) -> Iterator[EventBatch]:
    """Yield the batches, merged per segment until each has ``size`` bytes or more. With 0, yield them unchanged.

    If an error occurs, the batches before it are yielded first, and then it is raised.
    """
    if not size:
        yield from batches  # keep no reference to a batch while the next one is read
        return
    parts: list[EventBatch] = []
    there = 0
    try:
        for batch in batches:
            if parts and (batch.segment_id, batch.stream) != (parts[0].segment_id, parts[0].stream):
                yield _one(parts)
                parts, there = [], 0
            parts.append(batch)
            there += batch.events.nbytes
            if there >= size:
                yield _one(parts)
                parts, there = [], 0
    except PravegaError:
        if parts:
            yield _one(parts)
        raise
    if parts:
        yield _one(parts)


def batch_part(batch: EventBatch, start: int, stop: int | None = None) -> EventBatch:
    """Return the events of a batch from row ``start`` to row ``stop``."""
    return replace(batch, events=batch.events[start:stop], offsets=batch.offsets[start:stop])


def _one(parts: list[EventBatch]) -> EventBatch:
    if len(parts) == 1:
        return parts[0]
    events = pa.concat_arrays([part.events for part in parts])
    return replace(parts[0], events=events, offsets=np.concatenate([part.offsets for part in parts]))


def read_chunks(stores: SegmentStores, piece: SegmentSlice) -> Generator[memoryview, None, None]:
    """Yield the bytes of a slice in order, at most a mebibyte at a time.

    A chunk is valid until you request the next one. Lost connections, moved segments and expired tokens are retried,
    each time for as long as a call may take. Raises DataLossError if the range was truncated or deleted and the
    controller confirms it.
    """
    stream, segment_id = piece.stream, piece.segment_id
    name = segment_name(stream, segment_id)
    plan = RangeRead(name, piece.start, piece.end)
    connection: Connection | None = None
    attempts = stores.health.attempts(_logger, f"reading stream {stream}")

    def step() -> list[memoryview]:
        nonlocal connection
        deadline = attempts.share()
        if connection is None:
            connection = stores.pool.take(stores.endpoint(stream, segment_id, deadline), deadline)
            plan.restart()
        if wire := plan.requests(stores.token(stream, write=False, deadline=deadline)):
            connection.send(wire, deadline)
        reply = connection.receive(deadline)
        if not isinstance(reply, SegmentRead):
            plan.check(reply)
            stores.confirm(stream, segment_id, read_error_of(reply, name), deadline)
        assert isinstance(reply, SegmentRead)
        chunks = [data for _, data in plan.receive(reply)]
        if not len(reply.data):  # the store's container of the segment is shutting down
            raise ConnectionLostError(f"the store of segment {name} returned no bytes for a read at {reply.offset}")
        return chunks

    def reconnect(error: PravegaError) -> None:
        nonlocal connection
        if connection is not None:
            connection.close()
            connection = None
        stores.forget(stream, segment_id, error)

    try:
        while not plan.done:
            try:
                chunks = step()
            except PravegaError as error:
                attempts.settle(error, reconnect)
                continue
            attempts.done()
            yield from chunks
    except (SegmentTruncatedError, NoSuchSegmentError) as error:
        raise data_loss(stream, segment_id, plan.position, error) from error
    finally:
        attempts.close()
        if connection is not None:
            # Only a range that was read to its end leaves no reply in flight.
            if plan.done:
                stores.pool.give_back(connection)
            else:
                connection.close()


def data_loss(stream: StreamName, segment_id: int, position: int, error: Exception | None = None) -> DataLossError:
    """Return the error for a reader at ``position`` of a segment that lacks the bytes from there on."""
    what = "the segment was truncated away or deleted"
    if isinstance(error, SegmentTruncatedError):
        what = f"the events before offset {error.start_offset} were truncated"
    elif isinstance(error, StreamNotFoundError):
        what = "the stream was deleted"
    return DataLossError(
        f"stream {stream}, segment {segment_id}, offset {position}: {what}; "
        "start at the head of the stream, or keep the data longer (retention)"
    )


def slices_between(
    stores: SegmentStores,
    start: StreamCut,
    end: StreamCut,
    *,
    skip_lost: bool = False,
    lineage: Lineage | None = None,
) -> list[SegmentSlice]:
    """Return the slices between two cuts of a stream, predecessors before their successors.

    Empty slices are omitted. With ``skip_lost``, truncated or deleted parts are omitted too. Without it, raises
    DataLossError if the end of a segment is unknown. With a ``lineage`` of one routing key, the slices are
    those of its segments.
    """
    stream = start.stream
    ids = (lineage or Lineage(stores, stream)).between(start, end)
    infos = stores.segment_infos(stream, [i for i in ids if skip_lost or i not in end.positions])
    slices = []
    for segment_id in ids:
        # Java writes -1 for a segment that has not begun.
        begin = max(start.positions.get(segment_id, 0), 0)
        info = infos.get(segment_id)
        if info is not None and not info.exists:
            if skip_lost:
                continue
            raise data_loss(stream, segment_id, begin)
        if info is not None and skip_lost:
            begin = max(begin, info.start_offset)
        stop = end.positions[segment_id] if info is None else end.positions.get(segment_id, info.write_offset)
        if begin < stop:
            slices.append(SegmentSlice(stream, segment_id, begin, stop))
    return slices


def range_between(stores: SegmentStores, start: StreamCut, end: StreamCut, lineage: Lineage | None = None) -> ReadRange:
    """Return the range between two cuts, with a ``lineage`` of one routing key only its segments.

    Raises the errors of :func:`slices_between`.
    """
    slices = slices_between(stores, start, end, lineage=lineage)
    owned = {} if lineage is None else {piece.segment_id: lineage.range_of(piece.segment_id) for piece in slices}
    return ReadRange(start, end, tuple(slices), owned)


def whole_stream(stores: SegmentStores, stream: StreamName) -> ReadRange:
    """Return the range from the head of a stream to its present tail.

    While the segments of the head are open, the stream has no other segments, so one call to the controller is enough.
    """
    head = stores.controller.head_cut(stream)
    infos = stores.segment_infos(stream, head.positions)
    if not infos or any(info.sealed or not info.exists for info in infos.values()):
        return range_between(stores, head, tail_cut(stores, stream))
    tail = StreamCut(stream, {segment_id: infos[segment_id].write_offset for segment_id in head.positions})
    slices = [SegmentSlice(stream, i, begin, tail.positions[i]) for i, begin in sorted(head.positions.items())]
    return ReadRange(head, tail, tuple(piece for piece in slices if piece.start < piece.end))


def read_slices(stores: SegmentStores, slices: Iterable[SegmentSlice]) -> Generator[EventBatch, None, None]:
    """Yield the events of slices, one slice after the other. Closing the generator closes its connection."""
    for piece in slices:
        yield from read_slice(stores, piece)


def read_ranges(
    stores: SegmentStores, ranges: Iterable[ReadRange], select: Select | None = None
) -> Generator[EventBatch, None, None]:
    """Yield the events of ranges, one slice after the other, as far as ``select`` keeps them."""
    for each in ranges:
        with closing(read_slices(stores, each.slices)) as batches:
            if select is None:
                yield from batches
                continue
            for batch in batches:
                kept = select(batch, each.owned[batch.segment_id])
                if len(kept.offsets):
                    yield kept
