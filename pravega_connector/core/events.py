"""Events as a writer accepts them (values with their serializer, bytes, columns), divided into blocks to send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.wire import Block, FramedColumn, frame_column
from pravega_serde.errors import SerializationError

# io.pravega.client.stream.Serializer.MAX_EVENT_SIZE: the limit of the Java and Rust clients.
MAX_EVENT_SIZE: Final = 8 << 20
# Bytes of one append. Measured: larger appends are not faster, and a server holds a whole append in memory.
_BLOCK_SIZE: Final = 1 << 20
# A larger frame is written through a transient segment: a wire message has at most 16 MiB.
_LARGE_FRAME: Final = MAX_EVENT_SIZE + 8
# Larger columns are written in pieces: a column that fills the whole window waits for all of it, then leaves it empty.
_LARGE_COLUMN: Final = 16 << 20
_PIECE_SIZE: Final = 8 << 20
T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)


class SupportsSerialize(Protocol[T_contra]):
    """Method of a serializer that a writer uses."""

    def serialize(self, value: T_contra, /) -> bytes:
        """Return the bytes of one event."""
        ...


class SupportsDeserialize(Protocol[T_co]):
    """Method of a serializer that a reader uses."""

    def deserialize(self, data: bytes, /) -> T_co:
        """Return the value of one event."""
        ...


class RawEvents:
    """Serializer for events that are bytes: single events, or the column ``event`` of a batch."""

    def serialize(self, value: bytes, /) -> bytes:
        """Return the event unchanged."""
        return value

    def deserialize(self, data: bytes, /) -> bytes:
        """Return the event unchanged."""
        return data

    def encode_column(self, column: pa.RecordBatch) -> pa.Array:
        """Return the events of a batch. Raises ColumnTypeError."""
        if column.schema.get_field_index("event") < 0:
            raise ColumnTypeError(
                f"the batch has no column 'event' (it has: {', '.join(column.schema.names)}): name the column of "
                "bytes 'event', or pass a serializer to the writer"
            )
        return column.column("event")


def as_bytes(event: Any, *, raw: bool = False) -> bytes:
    """Return the bytes from a serializer, or of a ``raw`` event. Raises SerializationError for other types."""
    if raw and not isinstance(event, bytes | bytearray | memoryview):
        raise SerializationError(
            f"without a serializer, events must be bytes, not {type(event).__name__}: pass a serializer, such as "
            "'string' or 'json'"
        )
    if not isinstance(event, bytes | bytearray | memoryview):
        raise SerializationError(f"the serializer returned a {type(event).__name__} for an event; it must return bytes")
    return bytes(event)


def check_key(routing_key: str) -> None:
    """Raise ConfigError for an invalid routing key."""
    if not isinstance(routing_key, str):
        raise ConfigError(
            f"a routing key must be a str, not {type(routing_key).__name__}: write "
            f"{'key.decode()' if isinstance(routing_key, bytes) else 'str(key)'}"
        )
    try:
        _ = routing_key.isascii() or routing_key.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"invalid routing key {routing_key!a}: it has an unpaired surrogate") from None


def as_binary(column: pa.Array) -> pa.Array:
    """Return the column in a type with lengths that Arrow can compute. Raises ColumnTypeError."""
    t = pa.types
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        raise ColumnTypeError(
            f"a column of events must be a pyarrow.Array, not {type(column).__name__}: pa.array(events)"
        )
    if t.is_binary(column.type) or t.is_string(column.type) or t.is_large_binary(column.type):
        return column
    try:
        return column.cast(pa.large_binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnTypeError(f"a column of {column.type} cannot contain events: cast it to binary or string") from None


def blocks_of(
    column: pa.Array, positions: npt.NDArray[np.float64], targets: npt.NDArray[np.int64]
) -> Iterator[tuple[int, Block]]:
    """Yield blocks of a column by segment. The events of each segment keep the order of the column."""
    ids = np.unique(targets)
    for segment_id in ids:
        if len(ids) == 1:
            part, places = column, positions
        else:
            chosen = np.flatnonzero(targets == segment_id)
            part, places = column.take(pa.array(chosen)), positions[chosen]
        for block in blocks_of_frames(frame_column(part), places):
            yield int(segment_id), block


def blocks_of_frames(framed: FramedColumn, positions: npt.NDArray[np.float64]) -> Iterator[Block]:
    """Yield blocks of consecutive frames, with one position in the key space for each."""
    for first, last in _cuts(framed.ends, _BLOCK_SIZE):
        begin = int(framed.ends[first - 1]) if first else 0
        ends = framed.ends[first:last] - begin
        data = framed.data[begin : begin + int(ends[-1])]
        yield Block(data, ends, positions[first:last], len(data) > _LARGE_FRAME)


def one_block(column: pa.Array, position: float) -> Block:
    """Return a block with all events of a column, at one position in the key space."""
    framed = frame_column(column)
    return Block(framed.data, framed.ends, np.full(len(column), position), len(framed.data) > _LARGE_FRAME)


def pieces_of(lengths: npt.NDArray[np.integer[Any]]) -> Iterator[tuple[int, int]]:
    """Return ranges of rows to write one after the other, from the lengths of a column's events."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return iter([(0, len(ends))]) if ends[-1] <= _LARGE_COLUMN else _cuts(ends, _PIECE_SIZE)


def _cuts(ends: npt.NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that fill ``size`` bytes. A larger row has a separate range."""
    first, begin = 0, 0
    while first < len(ends):
        last = int(np.searchsorted(ends, begin + size, side="right"))
        last = max(last, first + 1)
        yield first, last
        first, begin = last, int(ends[last - 1])
