"""Numbers in text that a double does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.arrays import Int64s, number_column, numbers_of, select, text_column, valid_rows
from pravega_serde.columnar.found import fits_double

_POINT, _COMMA = 0x2E, 0x2C
#: Doubles hold all numbers of 15 digits. This is the length of the next longer ones, with their point.
_RUN: Final = 17
_PIECE: Final = 1 << 16
#: Bytes before an exponent in which its number is searched. A longer one is found at a later digit, and is not exact.
_FAR: Final = 2000
#: Length of such a number without a point.
_LONG: Final = 16
_NUMBER: Final = re.compile(rb"[0-9]*(\.[0-9]+)?([eE][-+]?[0-9]+)?(?![0-9.eE])")
_DIGITS_BEFORE: Final = re.compile(rb"[0-9.]*\Z")


def line_pieces(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield positions and bytes of consecutive lines, which the caches of a processor hold."""
    end = len(data) if end is None else end
    while start < end:
        stop = (data.find(b"\n", start + _PIECE, end) + 1) or end
        yield start, data[start:stop]
        start = stop


def inexact_fractions(data: bytes) -> Int64s:
    """Return the positions of numbers with a point that are not the text of their double; perhaps of some others.

    The shortest text that a double is read from has up to 17 digits. Most long numbers in files are such texts, so all
    of them are read and written again at once.
    """
    found = [start + inexact_in_piece(piece) for start, piece in line_pieces(data)]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def inexact_in_piece(data: bytes) -> Int64s:
    """Return what :func:`inexact_fractions` returns, for a few lines."""
    view = np.frombuffer(data, np.uint8)
    with_exponent = _long_with_exponents(data, view)
    marks = np.zeros(len(view) + 2 * _RUN, np.bool_)
    np.less(view - _POINT, 12, out=marks[8 : 8 + len(view)])  # digits and the point, also a slash
    # A run of 17 has eight marks at a multiple of eight, and five before or after them.
    eights = np.packbits(marks)
    full = np.flatnonzero(eights == 0xFF)
    if not ((eights[full + 1] >= 0xF8) | (eights[full - 1] & 0x1F == 0x1F)).any():
        return np.array(with_exponent, np.int64)
    edges = np.flatnonzero(marks[1:] != marks[:-1]) - 7
    starts, ends = edges[::2], edges[1::2]
    long = ends - starts >= _RUN
    starts, ends = starts[long], ends[long]
    texts = _parts(data, starts, ends)
    doubtful = view[np.minimum(ends, len(view) - 1)] | 0x20 == ord("e")
    try:
        values = texts.cast(pa.float64())
    except pa.ArrowInvalid:  # points that are not in a number
        doubtful[:] = True
    else:
        if not _are_written_as(values, texts):
            doubtful |= pc.not_equal(double_texts(values), texts).to_numpy(zero_copy_only=False)
    if doubtful.any():
        doubtful &= pc.match_substring(texts, ".").to_numpy(zero_copy_only=False)
    found = {start for start in starts[doubtful].tolist() if not _is_exact(data, start)}
    return np.array(sorted(found.union(with_exponent)), np.int64)


def _long_with_exponents(data: bytes, view: npt.NDArray[np.uint8]) -> list[int]:
    """Return the positions of numbers with an exponent and many digits before it that are not their double."""
    ends = np.flatnonzero((view[1:] | 0x20 == ord("e")) & (view[:-1] - _POINT < 12)) + 1
    ends = ends[ends >= _LONG]
    for before in range(2, _LONG + 1):
        if not len(ends):
            break
        ends = ends[view[ends - before] - _POINT < 12]
    starts = (_DIGITS_BEFORE.search(data, max(0, end - _FAR), end).start() for end in ends.tolist())  # type: ignore[union-attr]
    return [start for start in starts if not _is_exact(data, start)]


def _are_written_as(values: pa.DoubleArray, texts: pa.StringArray) -> bool:
    """Return True if each value is written as its text, which is cheaper to find than the texts that differ."""
    rows = pa.ListArray.from_arrays(number_column(np.array([0, len(texts)], np.int32)), texts)
    return bool(_written(values)[1:-1] == pc.binary_join(rows, text_column([","]))[0].as_buffer())


def _written(values: pa.DoubleArray) -> bytes:
    numbers = numbers_of(values)
    if values.null_count:
        numbers = np.where(valid_rows(values), numbers, np.nan)
    return msgspec.json.encode(numbers.tolist())


def double_texts(column: pa.DoubleArray) -> pa.StringArray:
    """Return the shortest text of each double, with a point or an exponent; ``null`` for NaN, infinities and nulls."""
    if not len(column):
        return pa.array([], pa.string())
    written = _written(column)
    bounds = np.zeros(len(column) + 1, np.int32)
    bounds[1:-1] = np.flatnonzero(np.frombuffer(written, np.uint8) == _COMMA) - np.arange(1, len(column))
    data = written[1:-1].replace(b",", b"")
    bounds[-1] = len(data)
    return pa.Array.from_buffers(pa.string(), len(column), [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def _parts(data: bytes, starts: Int64s, ends: Int64s) -> pa.StringArray:
    bounds = np.empty(2 * len(starts), np.int32)
    bounds[::2], bounds[1::2] = starts, ends
    parts = pa.Array.from_buffers(
        pa.string(), max(0, len(bounds) - 1), [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    return select(parts, np.arange(0, len(parts), 2))


def _is_exact(data: bytes, start: int) -> bool:
    text = _NUMBER.match(data, start)
    try:
        return text is not None and fits_double(Decimal(text[0].decode()))
    except InvalidOperation:  # an exponent beyond Python's
        return False
