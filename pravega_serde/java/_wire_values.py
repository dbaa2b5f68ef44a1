"""Arrow values as the bytes that Java writes for them, a whole column at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.java import _mutf8

__all__ = ["WIRE", "Bytes", "RefusedError", "big_endian", "cast", "fixed_rows", "headed", "modified_utf8"]

Bytes = npt.NDArray[np.uint8]

WIRE: Final = {
    "Z": ">u1",
    "B": ">i1",
    "C": ">u2",
    "S": ">i2",
    "I": ">i4",
    "J": ">i8",
    "F": ">f4",
    "D": ">f8",
}


class RefusedError(Exception):
    """A column holds something that is written row by row, or cannot be written: the rows will say which."""


def cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column in the type that is written; RefusedError if a value does not fit."""
    try:
        return column.cast(wanted)
    except pa.ArrowException as error:
        raise RefusedError from error


def big_endian(values: pa.Array, code: str) -> Bytes:
    """Primitive values as rows of bytes."""
    if code == "Z":
        values = values.cast(pa.uint8())
    elif code == "C":
        values = _code_units(values)
    numbers = values.to_numpy(zero_copy_only=False)
    dtype = np.dtype(WIRE[code])
    raw: Bytes = numbers.astype(dtype).view(np.uint8).reshape(len(values), dtype.itemsize)
    return raw


def _code_units(values: pa.StringArray) -> pa.Array:
    """Chars as numbers; a column has few different ones, so each is looked at once."""
    encoded = values.dictionary_encode()
    units = []
    for text in encoded.dictionary.to_pylist():
        if len(text) != 1 or ord(text) > 0xFFFF:
            raise RefusedError
        units.append(ord(text))
    return pa.array(units, pa.uint16()).take(encoded.indices)


def fixed_rows(rows: Bytes) -> pa.BinaryArray:
    """Rows of equal length as a binary array."""
    count, width = rows.shape
    raw = np.ascontiguousarray(rows)
    return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(raw)]).cast(pa.binary())


def headed(prefix: bytes, lengths: npt.NDArray[Any], dtype: str) -> pa.BinaryArray:
    """A prefix and a length, for each length."""
    raw = lengths.astype(dtype).view(np.uint8).reshape(len(lengths), np.dtype(dtype).itemsize)
    constant = np.frombuffer(prefix, np.uint8)
    return fixed_rows(np.hstack([np.broadcast_to(constant, (len(lengths), len(constant))), raw]))


def modified_utf8(values: pa.StringArray) -> pa.BinaryArray:
    """Modified UTF-8 of texts: their UTF-8 itself, but for those with NUL or astral characters, which are converted."""
    plain = values.view(pa.binary())
    buffer = values.buffers()[2]
    if not len(values) or buffer is None:
        return plain
    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    raw = np.frombuffer(buffer, np.uint8)[ends[0] : ends[-1]]
    if not len(raw) or (int(raw.min()) > 0 and int(raw.max()) < 0xF0):
        return plain
    odd = np.flatnonzero((raw == 0) | (raw >= 0xF0)) + int(ends[0])
    rows = np.unique(np.searchsorted(ends[1:], odd, side="right"))
    converted = pa.array([_mutf8.encode(values[row].as_py()) for row in rows.tolist()], pa.binary())
    places = np.arange(len(values))
    places[rows] = len(values) + np.arange(len(rows))
    return pa.concat_arrays([plain, converted]).take(pa.array(places))
