"""Binary columns as numpy sees them: one run of bytes, and where each event starts and ends.

The columnar decoders walk all events of a column at once. A *cursor* per event says how far it has been read, and one
numpy operation moves all of them. Two tricks carry the weight: eight bytes at any position are one gather from a view
with a stride of one byte, and slices of all events become an Arrow array by one ``take`` (see :func:`cut`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["SLACK", "ByteColumn", "Int64s", "UInt8s", "UInt64s", "cut", "is_utf8", "word_view"]

Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]
UInt64s = npt.NDArray[np.uint64]

#: Zero bytes behind the data, so that two words (the longest varint takes ten bytes) can be read at its very end.
SLACK: Final = 16

assert sys.byteorder == "little", (
    "the word tricks are written for little-endian machines, the only ones Arrow ships for"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteColumn:
    """A binary column without nulls, opened for vectorised reading."""

    data: UInt8s
    """All bytes, with ``SLACK`` zeros behind them."""
    words: UInt64s
    """``words[i]`` is the little-endian word of the eight bytes from position i on."""
    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, column: pa.BinaryArray | pa.StringArray, *, before: int = 0) -> ByteColumn:
        """Open a column; its bytes are copied once, to add the slack, and ``before`` zeros in front of them."""
        offsets = offsets_of(column)
        low, high = int(offsets[0]), int(offsets[-1])
        # Arrow's allocator keeps freed memory, which numpy would have to fault in again page by page.
        data = np.frombuffer(pa.allocate_buffer(before + high - low + SLACK), np.uint8)
        data[:before] = 0
        if high > low:
            data[before:-SLACK] = np.frombuffer(column.buffers()[2], np.uint8)[low:high]
        data[-SLACK:] = 0
        wide = offsets.astype(np.int64)
        wide += before - low
        return cls(data=data, words=word_view(data), starts=wide[:-1], ends=wide[1:])


def offsets_of(column: pa.BinaryArray | pa.StringArray) -> npt.NDArray[np.int32]:
    """The n + 1 offsets of a binary or string column, its own slice only."""
    buffer = column.buffers()[1]
    if len(column) == 0 or buffer is None:
        return np.zeros(1, np.int32)
    return np.frombuffer(buffer, np.int32)[column.offset : column.offset + len(column) + 1]


def word_view(data: UInt8s) -> UInt64s:
    """A view that reads, or writes, eight bytes at any byte position."""
    view: UInt64s = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    return view


def cut(data: UInt8s, starts: Int64s, ends: Int64s, kind: Any = None) -> pa.Array:
    """Arrow array of the slices ``data[starts[i]:ends[i]]``; they must lie one after the other and not overlap.

    Values and the gaps between them are laid out as one array of twice the length, and every other element is taken:
    the copying is Arrow's, at memory speed. The bytes are not validated, whatever ``kind`` (default binary) says.
    """
    count = len(starts)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    kind = pa.binary() if kind is None else kind
    alternating = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return alternating.take(pa.array(np.arange(0, 2 * count, 2)))


def is_utf8(data: bytes) -> bool:
    """Whether bytes are text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
