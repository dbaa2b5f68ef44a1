"""Decimals of a column: two's complement numbers of any size, as Arrow's 128-bit ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.avro._cursor import Bools, Cursor
from pravega_serde.columnar.arrays import Int64s, UInt64s
from pravega_serde.columnar.pieces import Words

__all__ = ["big_endian", "decimals", "halves", "signed_sizes", "within"]


def decimals(cursor: Cursor, size: int | None, precision: int, scale: int) -> pa.Array:
    """The next decimals; rows with too many digits, or more than sixteen bytes, fail."""
    starts, ends = cursor.spans(size)
    lengths = ends - starts
    cursor.fail((lengths < 1) | (lengths > 16))
    lengths = np.where(cursor.bad, 1, lengths)
    starts = np.where(cursor.bad, 0, starts)
    high, low = _from_big_endian(cursor.words, starts, lengths)
    cursor.fail(~within(high, low, 10**precision))
    both = np.empty((len(low), 2), np.uint64)
    both[:, 0], both[:, 1] = low, high.view(np.uint64)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(low), [None, pa.py_buffer(both)])


def _from_big_endian(words: UInt64s, starts: Int64s, lengths: Int64s) -> tuple[Int64s, UInt64s]:
    """High and low half of the numbers of 1 to 16 bytes."""
    first = words[starts].byteswap().view(np.int64)
    short = lengths <= 8
    # The first (up to eight) bytes, shifted down with their sign.
    head = first >> (8 * (8 - np.where(short, lengths, lengths - 8)))
    if short.all():
        return head >> 63, head.view(np.uint64)
    tail = words[np.where(short, starts, starts + lengths - 8)].byteswap()
    return np.where(short, head >> 63, head), np.where(short, head.view(np.uint64), tail)


def within(high: Int64s, low: UInt64s, limit: int) -> Bools:
    """Whether each number lies strictly between -limit and limit."""
    return _less(high, low, limit) & ~_less(high, low, 1 - limit)


def _less(high: Int64s, low: UInt64s, bound: int) -> npt.NDArray[np.bool_]:
    top, bottom = bound >> 64, np.uint64(bound & 0xFFFFFFFFFFFFFFFF)
    less: npt.NDArray[np.bool_] = (high < top) | ((high == top) & (low < bottom))
    return less


def halves(column: pa.Array) -> tuple[Int64s, UInt64s]:
    """High and low half of a decimal128 column without nulls."""
    if len(column) == 0:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    both = np.frombuffer(column.buffers()[1], np.uint64, 2 * len(column), 16 * column.offset)
    return both[1::2].view(np.int64), both[::2]


def signed_sizes(high: Int64s, low: UInt64s) -> Int64s:
    """The fewest bytes of each number's two's complement: those of Java's ``BigInteger.toByteArray``."""
    sign = high >> 63
    top, bottom = (high ^ sign).view(np.uint64), low ^ sign.view(np.uint64)
    size = np.ones(len(high), np.int64)
    for octets in range(1, 9):
        size += (top > 0) | (bottom >= np.uint64(1 << (8 * octets - 1)))
    for octets in range(1, 8):
        size += top >= np.uint64(1 << (8 * octets - 1))
    return size


def big_endian(high: Int64s, low: UInt64s, size: Int64s) -> list[Words]:
    """The lowest ``size`` bytes, at most sixteen, of each number, highest first."""
    upper = np.maximum(size - 8, 0)
    lower = np.minimum(size, 8)
    head = (high.view(np.uint64) << (8 * np.minimum(8 - upper, 7)).astype(np.uint64)).byteswap()
    tail = (low << (8 * (8 - lower)).astype(np.uint64)).byteswap()
    return [Words(head, upper), Words(tail, lower)]
