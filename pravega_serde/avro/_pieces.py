"""Events put together from pieces, each of which is some bytes of every row.

Small pieces (numbers, lengths, branches) are words of up to eight bytes, scattered one behind the other into rows of
equal room; eight bytes are always written, and what is too much is overwritten by the next piece. Pieces of any size
are binary arrays. A run of words becomes a binary array, too, and Arrow joins the arrays row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro._varints import sizes, tail_of, to_zigzag, words_of
from pravega_serde.columnar import cut, word_view
from pravega_serde.columnar._bytes import Int64s, UInt64s, offsets_of

__all__ = ["Blob", "Piece", "Words", "assemble", "spread", "varints"]


@dataclass(frozen=True, slots=True)
class Words:
    """Up to eight bytes of each row."""

    words: UInt64s
    size: Int64s | int
    """How many of a word's bytes count, from the lowest; a number if it is the same for all."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Any number of bytes of each row; no nulls."""

    column: pa.BinaryArray


Piece = Words | Blob


def varints(values: Int64s, present: npt.NDArray[np.bool_] | None = None) -> list[Piece]:
    """Numbers as zigzag varints; rows that are not present have no bytes of theirs."""
    x = to_zigzag(values)
    size = sizes(x)
    if present is not None:
        size = np.where(present, size, 0)
    if len(size) == 0 or size.max() <= 8:
        return [Words(words_of(x, size), size)]
    ninth, tenth = tail_of(x, size)
    tail = ninth.astype(np.uint64) | (tenth.astype(np.uint64) << np.uint64(8))
    return [Words(words_of(x, size), np.minimum(size, 8)), Words(tail, np.maximum(size - 8, 0))]


def constant(word: int, size: int, count: int) -> Words:
    """The same bytes in each row."""
    return Words(np.full(count, word, np.uint64), size)


def spread(piece: Piece, present: npt.NDArray[np.bool_]) -> Piece:
    """A piece of some rows as one of all: the other rows have no bytes of it."""
    if isinstance(piece, Words):
        words, size = np.zeros(len(present), np.uint64), np.zeros(len(present), np.int64)
        words[present], size[present] = piece.words, piece.size
        return Words(words, size)
    before = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=before[1:])
    return regroup(piece.column, before)


def regroup(column: pa.BinaryArray, bounds: Int64s) -> Blob:
    """Rows made of neighbours: row i is elements ``bounds[i]`` up to ``bounds[i + 1]``, one behind the other."""
    offsets = np.ascontiguousarray(offsets_of(column)[bounds])
    data = column.buffers()[2] or pa.py_buffer(b"")
    return Blob(pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(offsets), data]))


def assemble(pieces: list[Piece], count: int) -> pa.BinaryArray:
    """The bytes of each row: all its pieces, in order."""
    columns: list[pa.BinaryArray] = []
    run: list[Words] = []
    for piece in pieces:
        if isinstance(piece, Words):
            run.append(piece)
            continue
        columns += _pack(run)
        columns.append(piece.column)
        run = []
    columns += _pack(run)
    if not columns:
        return pa.array([b""] * count, pa.binary())
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, b"")


def _pack(run: list[Words]) -> list[pa.BinaryArray]:
    """A run of words as one binary array."""
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
    return [cut(data, starts, position)]
