"""Event frames of a segment, ``i32 0 | i32 length | payload``, of columns of events. ``frame_parser`` reads them.

The type of an event is 0. So its type and length together are one big-endian number of eight bytes: the length.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_connector.errors import ColumnTypeError, NullEventError
from pravega_connector.wire.frame_walk import EVENT_HEADER_SIZE

_pack_header: Final = struct.Struct(">q").pack
_MANY: Final = 512  # events; a longer list is framed faster as an Arrow column than with a join
# pa.scalar would import an installed pandas, which takes a fifth of a second at every start.
_NOTHING: Final = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(bytes(16)), pa.py_buffer(b"")])[0]


@dataclass(frozen=True, slots=True)
class FramedColumn:
    """Consecutive frames of a column's events, as they are appended to a segment."""

    data: memoryview
    """All frames."""
    ends: npt.NDArray[np.int64]
    """End of each frame in ``data``, in bytes: the offsets at which it may be split."""


def frame_column(column: pa.Array | pa.ChunkedArray) -> FramedColumn:
    """Return the frames of a column of binaries or strings of any width or encoding.

    It does no Python work per event, and does not limit sizes. Raises NullEventError with the row of the first null,
    and ColumnTypeError.
    """
    events = _as_large_binary(column)
    if not len(events):
        return FramedColumn(memoryview(b""), np.empty(0, np.int64))
    offsets = np.frombuffer(events.buffers()[1], np.int64, len(events) + 1, 8 * events.offset)
    lengths = np.diff(offsets)
    ends = np.cumsum(lengths + EVENT_HEADER_SIZE)
    if (lengths == lengths[0]).all():
        return FramedColumn(_frame_one_size(events.buffers()[2], int(offsets[0]), len(lengths), int(lengths[0])), ends)
    return FramedColumn(_frame_any_size(events, lengths)[: int(ends[-1])], ends)


def frame_events(events: Sequence[bytes]) -> FramedColumn:
    """Return the frames of single events.

    A short list takes a tenth of the time of :func:`frame_column`. Raises NullEventError.
    """
    if len(events) >= _MANY or None in events:
        return frame_column(pa.array(events, pa.large_binary()))
    lengths = np.fromiter(map(len, events), np.int64, len(events))
    data = b"".join(chain.from_iterable(zip(map(_pack_header, lengths.tolist()), events, strict=True)))
    return FramedColumn(memoryview(data), np.cumsum(lengths + EVENT_HEADER_SIZE))


def _as_large_binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    try:
        wide = column.cast(pa.large_binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnTypeError(f"a column of {column.type} cannot contain events: cast it to binary or string") from None
    if wide.null_count:
        row = pc.index(pc.is_null(wide), True).as_py()
        raise NullEventError.at_row(row)
    return wide.combine_chunks() if isinstance(wide, pa.ChunkedArray) else wide


def _frame_one_size(payloads: pa.Buffer, start: int, count: int, length: int) -> memoryview:
    """Return the frames of events of one length, with two block copies."""
    frames = np.empty((count, EVENT_HEADER_SIZE + length), np.uint8)
    frames[:, :EVENT_HEADER_SIZE] = np.frombuffer(_pack_header(length), np.uint8)
    frames[:, EVENT_HEADER_SIZE:] = np.frombuffer(payloads, np.uint8, count * length, start).reshape(count, length)
    return frames.reshape(-1).data


def _frame_any_size(events: pa.Array, lengths: npt.NDArray[np.int64]) -> memoryview:
    """Return the frames of events of any length.

    Headers and events are joined row by row, in the joined column's buffer.
    """
    count = len(lengths)
    ends = np.arange(0, EVENT_HEADER_SIZE * (count + 1), EVENT_HEADER_SIZE, dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(lengths.astype(">i8"))]
    headers = pa.Array.from_buffers(pa.large_binary(), count, buffers)
    frames = pc.binary_join_element_wise(headers, events, _NOTHING).buffers()[2]
    return memoryview(frames).cast("B")  # Arrow's own view has signed bytes, which fit into no other view
