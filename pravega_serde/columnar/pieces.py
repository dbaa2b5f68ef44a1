"""Pieces of events: each has some bytes of every row, and all of a row's pieces make its event.

Small pieces (numbers, lengths, branches) are words of up to eight bytes, scattered one after the other into rows of
equal room. Eight bytes are always written; the next piece overwrites the excess. Pieces of any size are binary arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.columnar.arrays import Int64s, UInt8s, UInt64s, offsets_of, select, word_view
from pravega_serde.columnar.varints import sizes, tail_of, to_zigzag, words_of
from pravega_serde.errors import SerializationError


@dataclass(frozen=True, slots=True)
class Words:
    """Piece of up to eight bytes in each row."""

    words: UInt64s
    size: Int64s | int
    """Number of bytes of each word, from the lowest; one number if it is the same for all."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Piece of any number of bytes in each row, without nulls."""

    column: pa.BinaryArray


Piece = Words | Blob

#: What the 32-bit offsets of a binary array can reach.
MAX_COLUMN_BYTES: Final = (1 << 31) - 1


def varints(values: Int64s, present: npt.NDArray[np.bool_] | None = None) -> list[Piece]:
    """Return pieces of numbers as zigzag varints; rows that are not present have no bytes of them."""
    x = to_zigzag(values)
    size = sizes(x)
    if present is not None:
        size = np.where(present, size, 0)
    if len(size) == 0 or size.max() <= 8:
        return [Words(words_of(x, size), size)]
    # Bytes beyond the eighth are in a second word.
    ninth, tenth = tail_of(x, size)
    tail = ninth.astype(np.uint64) | (tenth.astype(np.uint64) << np.uint64(8))
    return [Words(words_of(x, size), np.minimum(size, 8)), Words(tail, np.maximum(size - 8, 0))]


def constant(word: int, size: int, count: int) -> Words:
    """Piece of the same bytes in each row."""
    return Words(np.full(count, word, np.uint64), size)


def spread(piece: Piece, present: npt.NDArray[np.bool_]) -> Piece:
    """Expand a piece of some rows to all rows; the other rows have no bytes of it."""
    if isinstance(piece, Words):
        words, size = np.zeros(len(present), np.uint64), np.zeros(len(present), np.int64)
        words[present], size[present] = piece.words, piece.size
        return Words(words, size)
    before = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=before[1:])
    return regroup(piece.column, before)


def regroup(column: pa.BinaryArray, bounds: Int64s) -> Blob:
    """Join neighboring elements into rows: row i is elements ``bounds[i]`` up to ``bounds[i + 1]``, in order."""
    offsets = np.ascontiguousarray(offsets_of(column)[bounds])
    data = column.buffers()[2] or pa.py_buffer(b"")
    return Blob(pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(offsets), data]))


def assemble(pieces: list[Piece], count: int) -> pa.BinaryArray:
    """Return the bytes of each row: all its pieces, in order."""
    parts: list[_Part] = []
    run: list[Words] = []
    for piece in pieces:
        if isinstance(piece, Words):
            run.append(piece)
            continue
        parts += _pack(run)
        parts.append(_of_blob(piece.column))
        run = []
    parts += _pack(run)
    if not parts:
        return pa.array([b""] * count, pa.binary())
    return _weave(parts, count)


@dataclass(frozen=True, slots=True)
class _Part:
    """Slices of ``data``, one for each row, among the stretches between neighbouring offsets."""

    data: UInt8s
    offsets: Int64s
    stride: int
    """Row i's slice is stretch ``stride * i``."""


def _of_blob(column: pa.BinaryArray) -> _Part:
    offsets = offsets_of(column).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(column.buffers()[2], np.uint8)[first:last] if last > first else np.empty(0, np.uint8)
    return _Part(data, offsets - first, 1)


def _pack(run: list[Words]) -> list[_Part]:
    """Return a part of neighboring words, put one after the other in rows of equal room."""
    if not run:
        return []
    room = sum(piece.size if isinstance(piece.size, int) else int(piece.size.max(initial=0)) for piece in run) + 8
    count = len(run[0].words)
    data = np.frombuffer(pa.allocate_buffer(count * room + 8), np.uint8)
    target = word_view(data)
    starts = np.arange(0, count * room, room)
    position = starts.copy()
    for piece in run:
        target[position] = piece.words
        position += piece.size
    offsets = np.empty(2 * count, np.int64)
    offsets[0::2], offsets[1::2] = starts, position
    return [_Part(data, offsets, 2)]


def _weave(parts: list[_Part], count: int) -> pa.BinaryArray:
    """Interleave the slices of all parts, row by row.

    The parts are laid one after the other, as one long array of stretches. One ``take`` selects the slices in the order
    of the rows, so that the slices of a row become neighbors. Each row has one slice of each part.
    """
    first = 0
    base = 0
    offsets: list[Int64s] = []
    order = np.empty((count, len(parts)), np.int64)
    for index, part in enumerate(parts):
        order[:, index] = np.arange(first, first + part.stride * count, part.stride)
        offsets.append(part.offsets + base)
        first += len(part.offsets)
        base += len(part.data)
    data = parts[0].data if len(parts) == 1 else np.concatenate([part.data for part in parts])
    end = np.array([base])
    stretches = pa.Array.from_buffers(
        pa.large_binary(), first, [None, pa.py_buffer(np.concatenate([*offsets, end])), pa.py_buffer(data)]
    )
    slices = select(stretches, order.ravel())
    bounds = np.frombuffer(slices.buffers()[1], np.int64)[: len(slices) + 1 : len(parts)]
    if bounds[-1] > MAX_COLUMN_BYTES:
        raise SerializationError(f"{bounds[-1]} bytes of events in one column; write smaller batches")
    narrow = pa.py_buffer(np.ascontiguousarray(bounds.astype(np.int32)))
    return pa.Array.from_buffers(pa.binary(), count, [None, narrow, slices.buffers()[2] or pa.py_buffer(b"")])
