"""What stands at the cursors of all events of a column: constant prefixes, numbers, modified UTF-8."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.columnar import ByteColumn, cut
from pravega_serde.java._constants import STREAM_HEADER
from pravega_serde.java._model import ClassDescriptor
from pravega_serde.java._writer import Writer

__all__ = [
    "BOXES",
    "STRING",
    "WIDTH",
    "Bools",
    "Int64s",
    "array_of",
    "arrow_of",
    "matches",
    "natural_type",
    "numbers_at",
    "object_prefix",
    "text_of",
    "u16_at",
    "u32_at",
]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

STRING: Final = "Ljava/lang/String;"
BOXES: Final = {f"Ljava/lang/{name};": code for name, code in (
    ("Boolean", "Z"), ("Byte", "B"), ("Character", "C"), ("Double", "D"),
    ("Float", "F"), ("Integer", "I"), ("Long", "J"), ("Short", "S"),
)}  # fmt: skip
WIDTH: Final = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}
_DTYPE: Final = {"B": "i1", "C": "u2", "D": "f8", "F": "f4", "I": "i4", "J": "i8", "S": "i2", "Z": "u1"}


def object_prefix(descriptor: ClassDescriptor, token: bytes = b"\x73") -> bytes:
    """Bytes from the start of a stream to the data of an object of that class."""
    writer = Writer()
    writer.write(descriptor)
    return STREAM_HEADER + token + bytes(writer.out[len(STREAM_HEADER) :])


def arrow_of(code: str) -> pa.DataType:
    if code == "Z":
        return pa.bool_()
    return pa.string() if code == "C" else pa.from_numpy_dtype(np.dtype(_DTYPE[code]))


def natural_type(signature: str) -> pa.DataType:
    """Arrow type of a primitive, a box, a string or a byte array."""
    if signature == "[B":
        return pa.binary()
    return pa.string() if signature == STRING else arrow_of(BOXES.get(signature, signature))


def matches(column: ByteColumn, at: Int64s, expected: bytes) -> Bools:
    """Which events have these bytes at their cursors; cursors may stand anywhere inside the data."""
    result = np.ones(len(at), np.bool_)
    last = len(column.words) - 1
    for start in range(0, len(expected), 8):
        piece = expected[start : start + 8]
        mask = (1 << 8 * len(piece)) - 1
        words = column.words[np.minimum(at + start, last)]
        if mask != (1 << 64) - 1:
            words = words & np.uint64(mask)
        result &= words == np.uint64(int.from_bytes(piece, "little"))
    return result


def numbers_at(column: ByteColumn, at: Int64s, code: str) -> npt.NDArray[Any]:
    """Big-endian numbers of one primitive type at the cursors."""
    width = WIDTH[code]
    words = column.words[at].byteswap()
    if width == 8:
        return words.view(_DTYPE[code])
    return (words >> np.uint64(64 - 8 * width)).astype(f"u{width}").view(_DTYPE[code])


def u16_at(column: ByteColumn, at: Int64s) -> Int64s:
    return (column.data[at].astype(np.int64) << 8) | column.data[at + 1]


def u32_at(column: ByteColumn, at: Int64s) -> Int64s:
    return (u16_at(column, at) << 16) | u16_at(column, at + 2)


def array_of(numbers: npt.NDArray[Any], code: str, bad: Bools) -> pa.Array:
    """Arrow array of primitive values; chars that are surrogates are marked as bad."""
    if code == "Z":
        return pa.array(numbers != 0)
    if code != "C":
        return pa.array(numbers)
    surrogate = (numbers >= 0xD800) & (numbers < 0xE000)
    bad |= surrogate
    return _characters().take(pa.array(numbers.astype(np.int32), mask=surrogate))


@functools.cache
def _characters() -> pa.Array:
    """Every char as a string; surrogates, which are not text by themselves, are null."""
    return pa.array([None if 0xD800 <= unit < 0xE000 else chr(unit) for unit in range(0x10000)], pa.string())


def text_of(column: ByteColumn, starts: Int64s, ends: Int64s, bad: Bools) -> pa.Array:
    """Strings of modified UTF-8 slices; those that are not UTF-8 as well are emptied and marked as bad."""
    values = cut(column.data, starts, ends)
    suspicious = _not_utf8(values)
    if suspicious is None:
        return values.view(pa.string())
    # Few rows have such bytes: they are emptied here and decoded one by one.
    rows = np.unique(np.searchsorted(_ends_of(values), suspicious, side="right"))
    try:
        values = _cut_without(column, starts, ends, bad, rows)
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        # Overlong forms, which Java accepts, or malformed bytes: all that is not ASCII goes the slow way.
        raw = _payload(values)
        rows = np.unique(np.searchsorted(_ends_of(values), np.flatnonzero(raw >= 0x80), side="right"))
        return _cut_without(column, starts, ends, bad, rows).cast(pa.string())


def _cut_without(column: ByteColumn, starts: Int64s, ends: Int64s, bad: Bools, rows: Int64s) -> pa.Array:
    bad[rows] = True
    return cut(column.data, np.where(bad, ends, starts), ends)


def _payload(values: pa.Array) -> npt.NDArray[np.uint8]:
    buffer = values.buffers()[2]
    size = int(_ends_of(values)[-1]) if len(values) else 0
    return np.frombuffer(buffer, np.uint8, size) if size else np.empty(0, np.uint8)


def _ends_of(values: pa.Array) -> npt.NDArray[np.int32]:
    """End offset of each value of an array that was just made."""
    return np.frombuffer(values.buffers()[1], np.int32, len(values), 4)


def _not_utf8(values: pa.Array) -> Int64s | None:
    """Where bytes stand that modified UTF-8 and UTF-8 use differently; None if there is nothing but ASCII."""
    raw = _payload(values)
    if not len(raw) or int(raw.max()) < 0x80:
        return None
    odd = (raw == 0xC0) | (raw >= 0xF0)
    odd[:-1] |= (raw[:-1] == 0xED) & (raw[1:] >= 0xA0)  # surrogates; other ED are Korean
    return np.flatnonzero(odd)
