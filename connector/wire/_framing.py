"""Events into the frames that a segment holds: ``i32 0 | i32 length | payload``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connector.errors import ColumnTypeError, NullEventError
from connector.wire._boundaries import EVENT_HEADER_SIZE


@dataclass(frozen=True, slots=True)
class FramedColumn:
    """The frames of a column's events, one after the other, ready to be appended to a segment."""

    data: memoryview
    """All frames."""
    ends: npt.NDArray[np.int64]
    """Where each event's frame ends in ``data``: the places where it may be cut."""


def frame_column(column: pa.Array | pa.ChunkedArray) -> FramedColumn:
    """Frame a binary or string column (large and dictionary ones too), without Python work per event.

    Raises NullEventError with the row of the first null, ColumnTypeError for other types.
    """
    events = _as_large_binary(column)
    lengths = pc.binary_length(events).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths + EVENT_HEADER_SIZE, dtype=np.int64)
    if not len(ends):
        return FramedColumn(memoryview(b""), ends)
    # The type of an event is 0, so type and length together are one big-endian number of eight bytes.
    headers = lengths.astype(">i8")
    header_ends = np.arange(0, EVENT_HEADER_SIZE * (len(lengths) + 1), EVENT_HEADER_SIZE, dtype=np.int64)
    header_column = pa.Array.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(header_ends), pa.py_buffer(headers)]
    )
    framed = pc.binary_join_element_wise(header_column, events, pa.scalar(b"", pa.large_binary()))
    return FramedColumn(memoryview(framed.buffers()[2])[: int(ends[-1])], ends)


def frame_events(events: Sequence[bytes]) -> FramedColumn:
    """Frame single events: less overhead than :func:`frame_column` for a short list."""
    parts = [part for event in events for part in (len(event).to_bytes(EVENT_HEADER_SIZE, "big"), event)]
    ends = np.cumsum(np.fromiter(map(len, events), np.int64, len(events)) + EVENT_HEADER_SIZE, dtype=np.int64)
    return FramedColumn(memoryview(b"".join(parts)), ends)


def _as_large_binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise NullEventError(f"row {row} of the column is null, and Pravega has no null events: fill or drop it")
    try:
        wide = column.cast(pa.large_binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnTypeError(f"a column of {column.type} holds no events: cast it to binary or string") from None
    return wide.combine_chunks() if isinstance(wide, pa.ChunkedArray) else wide
