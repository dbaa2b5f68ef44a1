"""Arrow columns in any layout, as the formats read them, and small operations that Arrow lacks.

Columns of events are opened as :class:`ByteColumn`: one run of bytes, with the start and end of each event. The
columnar decoders rely on two techniques. Eight bytes at any position are one gather from a view with a stride of one
byte. Slices of all events become an Arrow array with one ``take`` (see :func:`cut`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.types import holds_bytes, with_leaves
from pravega_serde.errors import SchemaError, SerializationError

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]
UInt64s = npt.NDArray[np.uint64]

#: Zero bytes behind the data, so that two words (the longest varint takes ten bytes) can be read at its very end.
SLACK: Final = 16

_INT32_MAX: Final = (1 << 31) - 1

assert sys.byteorder == "little", (
    "the word tricks are written for little-endian machines, the only ones Arrow ships for"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteColumn:
    """Binary column without nulls, opened for vectorized reading."""

    data: UInt8s
    """All bytes, with ``SLACK`` zeros behind them."""
    words: UInt64s
    """``words[i]`` is the little-endian word of the eight bytes from position i on."""
    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, column: pa.BinaryArray | pa.StringArray) -> ByteColumn:
        """Open a column; its bytes are copied once, to add the slack."""
        offsets = offsets_of(column)
        low, high = int(offsets[0]), int(offsets[-1])
        # Arrow's allocator keeps freed memory, which numpy would have to fault in again page by page.
        data = np.frombuffer(pa.allocate_buffer(high - low + SLACK), np.uint8)
        if high > low:
            data[:-SLACK] = np.frombuffer(column.buffers()[2], np.uint8)[low:high]
        data[-SLACK:] = 0
        wide = offsets.astype(np.int64)
        wide -= low
        return cls(data=data, words=word_view(data), starts=wide[:-1], ends=wide[1:])


def offsets_of(column: pa.BinaryArray | pa.StringArray) -> npt.NDArray[np.int32]:
    """Return the offsets (n + 1) of a binary or string column, limited to its slice."""
    buffer = column.buffers()[1]
    if len(column) == 0 or buffer is None:
        return np.zeros(1, np.int32)
    return np.frombuffer(buffer, np.int32)[column.offset : column.offset + len(column) + 1]


def word_view(data: UInt8s) -> UInt64s:
    """Return a view that reads, or writes, eight bytes at any byte position."""
    view: UInt64s = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    return view


# Conversions between numpy and Arrow through their buffers. ``pa.array``, ``pa.scalar`` and ``to_numpy`` do the same,
# but the first such call in a process imports an installed pandas: 0.2 s of a core, in every task that reads.


def number_column(values: npt.NDArray[Any], kind: Any = None, *, valid: Bools | None = None) -> pa.Array:
    """Return an Arrow array over the memory of an array of numbers, without a copy.

    The type must be as wide as the numbers; the default is numpy's own. Rows that are not ``valid`` are null. Bools are
    copied into bits.
    """
    kind = pa.from_numpy_dtype(values.dtype) if kind is None else kind
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    there = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(data)])


def numbers_of(column: pa.Array) -> npt.NDArray[Any]:
    """Return the numbers of a column, over its memory; the values at nulls are arbitrary."""
    dtype = np.dtype(column.type.to_pandas_dtype())
    buffer = column.buffers()[1]
    if len(column) == 0 or buffer is None:
        return np.zeros(len(column), dtype)
    return np.frombuffer(buffer, dtype, len(column), column.offset * dtype.itemsize)


def bools_of(column: pa.BooleanArray) -> Bools:
    """Return the bools of a column without nulls."""
    return _bits(column.buffers()[1], column.offset, len(column))


def _bits(buffer: pa.Buffer | None, first: int, count: int) -> Bools:
    if buffer is None:
        return np.ones(count, np.bool_)
    packed = np.frombuffer(buffer, np.uint8)[first // 8 : (first + count + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[first % 8 : first % 8 + count].view(np.bool_)


def select(column: pa.Array, rows: Int64s, *, valid: Bools | None = None) -> pa.Array:
    """Return the elements of a column in the order of ``rows``; null where a row is not ``valid``."""
    return column.take(number_column(rows, valid=valid))


def nothing(kind: pa.DataType) -> pa.Scalar:
    """Return the null of a type."""
    return pa.nulls(1, kind)[0]


def text_column(values: Sequence[str], kind: Any = None) -> pa.Array:
    """Return an array of a few texts, at most 2 GiB in all, of a type with 32-bit offsets (default string)."""
    encoded = [value.encode() for value in values]
    offsets = bounds_of(np.fromiter(map(len, encoded), np.int64, len(encoded))).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string() if kind is None else kind, len(encoded), buffers)


def repeated_text(text: str, count: int) -> pa.StringArray:
    """Repeat a text; the result is at most 2 GiB in all."""
    data = text.encode()
    offsets = np.arange(0, len(data) * count + 1, len(data), dtype=np.int32) if data else np.zeros(count + 1, np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data * count)])


def cut(data: UInt8s, starts: Int64s, ends: Int64s, kind: Any = None) -> pa.Array:
    """Return the slices ``data[starts[i]:ends[i]]`` as an Arrow array; they must be ascending without overlap.

    Values and the gaps between them are laid out as one array of twice the length, and every other element is selected.
    Arrow does the copying, at memory speed. The bytes are not validated for any ``kind`` (default binary).
    """
    count = len(starts)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    kind = pa.binary() if kind is None else kind
    alternating = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return select(alternating, np.arange(0, 2 * count, 2))


def cut_text(data: UInt8s, starts: Int64s, ends: Int64s) -> tuple[pa.StringArray, Bools | None]:
    """Return a string array of slices, and the rows that are not UTF-8 (None: all are).

    The slices are the same as for :func:`cut`. Rows that are not UTF-8 hold the empty string.
    """
    return as_text(cut(data, starts, ends))


def as_text(column: pa.BinaryArray) -> tuple[pa.StringArray, Bools | None]:
    """Return the bytes as a string array, and the rows that are not UTF-8 (None: all are), which become empty."""
    try:
        return column.cast(pa.string()), None
    except pa.ArrowInvalid:
        values = column.to_pylist()
        wrong = np.array([value is not None and not _is_utf8(value) for value in values])
        texts = [b"" if bad else value for bad, value in zip(wrong, values, strict=True)]
        return pa.array(texts, pa.binary()).cast(pa.string()), wrong


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def valid_rows(column: pa.Array) -> Bools:
    """Return the mask of the rows that are not null."""
    return bools_of(column.is_valid())


_MICROS_OF: Final = {"s": 1_000_000, "ms": 1000}


#: Types whose arrays Arrow can neither select from nor filter -> type with the same values.
_VIEWS: Final = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type with plain strings and binaries in the place of views; itself without views."""
    return with_leaves(kind, _plain) if _has_views(kind) else kind


def _has_views(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _has_views(kind.value_type)
    return kind in _VIEWS or any(_has_views(kind.field(at).type) for at in range(kind.num_fields))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, without_views(kind.value_type), kind.ordered)
    return _VIEWS.get(kind, kind)


def dictionary_values(column: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary; those of views as plain strings and binaries."""
    if (plain := _VIEWS.get(column.type.value_type)) is not None:
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(plain))
    return column.dictionary_decode()


def as_column(column: pa.Array | pa.ChunkedArray | pa.RecordBatch) -> pa.Array:
    """Return one plain array: batches as structs, chunks joined, dictionaries and extension types unfolded.

    Raises :class:`SchemaError` for a value that is not a column.
    """
    if isinstance(column, pa.RecordBatch):
        return column.to_struct_array()
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        raise SchemaError(
            f"a column must be a pyarrow.Array, not {type(column).__name__}; convert values with pyarrow.array(values)"
        )
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        return dictionary_values(column)
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def as_binary(column: pa.Array | pa.ChunkedArray) -> pa.BinaryArray:
    """Return a column of events as a binary array; raise :class:`SchemaError` if its type cannot hold events."""
    column = as_column(column)
    if column.type == pa.binary():
        return column
    if not holds_bytes(column.type):
        raise SchemaError(f"a column of type {column.type} cannot contain events; pass a binary or string column")
    return column.cast(pa.binary())


def expand(values: pa.Array, present: npt.NDArray[np.bool_]) -> pa.Array:
    """Spread values over the true places of ``present``; the other places become null."""
    if len(values) == len(present):
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(present))
    # The number of true places before each one is the index of its value.
    before = bounds_of(present.view(np.int8))
    if values.type in (pa.string(), pa.binary()) and not values.null_count:
        # Nulls are texts without bytes: the bytes of the others do not move.
        offsets = pa.py_buffer(offsets_of(values)[before])
        there = pa.py_buffer(np.packbits(present, bitorder="little"))
        return pa.Array.from_buffers(values.type, len(present), [there, offsets, values.buffers()[2]])
    return select(values, before[:-1], valid=present)


def list_items(column: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the number of items of each row of a list column (0 if it is null), and all items in order."""
    lengths = np.where(valid_rows(column), numbers_of(pc.list_value_length(column)), 0)
    return lengths.astype(np.int64), column.flatten()


def map_entries(column: pa.MapArray) -> tuple[Int64s, pa.Array, pa.Array]:
    """Return the number of entries of each row of a map column, and all keys and values in order.

    A row that is null has 0 entries.
    """
    # Unlike a list's flatten(), keys and items belong to the whole array, not only to this slice.
    there = column.drop_null() if column.null_count else column
    offsets = numbers_of(there.offsets).astype(np.int64) if len(there) else np.zeros(1, np.int64)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    lengths = np.zeros(len(column), np.int64)
    lengths[valid_rows(column)] = np.diff(offsets)
    return lengths, there.keys.slice(first, count), there.items.slice(first, count)


def bounds_of(lengths: Int64s) -> Int64s:
    """Return the bounds (n + 1) of neighboring parts of the given lengths."""
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def list_offsets(lengths: Int64s) -> pa.Array:
    """Return the Arrow offsets of lists, or maps, of the given lengths."""
    bounds = bounds_of(lengths)
    if bounds[-1] > _INT32_MAX:
        raise pa.ArrowInvalid(f"{bounds[-1]} items in one column: its offsets reach {_INT32_MAX}")
    return number_column(bounds.astype(np.int32))


def with_repeated_key(counts: Int64s, keys: pa.Array) -> Bools:
    """Return the rows of maps, which have ``counts`` entries each, in which a key is repeated."""
    repeated = np.zeros(len(counts), np.bool_)
    if not len(keys) or counts.max() < 2:
        return repeated
    plain = dictionary_values(keys) if pa.types.is_dictionary(keys.type) else keys
    encoded = plain.dictionary_encode()
    codes = numbers_of(encoded.indices)
    rising = codes[1:] > codes[:-1]
    rising[bounds_of(counts[counts > 0])[1:-1] - 1] = True  # from one row to the next
    if not rising.all():  # in most columns, all rows have the same keys in the same order
        # One number for each pair of row and key. After sorting, repeated keys are equal neighbors.
        entries = np.repeat(np.arange(len(counts)), counts) * len(encoded.dictionary) + codes
        entries.sort()
        repeated[entries[1:][entries[1:] == entries[:-1]] // len(encoded.dictionary)] = True
    return repeated


def floor_divide(column: pa.Array, by: int) -> pa.Array:
    """Divide numbers and round down; nulls are kept."""
    # Arrow's own division rounds towards zero, the wrong way for times before 1970.
    values = column.fill_null(0).to_numpy() // by
    return pa.array(values, column.type, mask=column.is_null().to_numpy(zero_copy_only=False))


def to_micros(column: pa.Array, unit: str, *, noun: str) -> pa.Array:
    """Return times, or numbers of ``unit``, as numbers of microseconds; finer ones are rounded down.

    Raises :class:`SerializationError`, which calls them ``noun``, if they do not fit 64 bits.
    """
    numbers = column.cast(pa.int64())
    if unit == "us":
        return numbers
    if unit == "ns":
        return floor_divide(numbers, 1000)
    try:
        return pc.multiply_checked(numbers, _MICROS_OF[unit])
    except pa.ArrowInvalid as error:
        raise SerializationError(f"invalid {noun}: beyond the range of microseconds: {error}") from error


def days_of(column: pa.Array) -> pa.Array:
    """Return dates as ``date32``. Raises :class:`SerializationError` for a ``date64`` with a time of day."""
    try:
        return column.cast(pa.date32())
    except pa.ArrowInvalid:
        raise SerializationError(
            "invalid date: a date64 with a time of day; cast the column to timestamp('ms')"
        ) from None


def time_of_day(column: pa.Array, unit: str = "us") -> pa.Array:
    """Return times as ``time64`` or ``time32`` of a unit; finer ones are rounded down.

    Raises :class:`SerializationError` for numbers outside the day, which Arrow accepts.
    """
    kind = column.type
    numbers = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < 86_400 * _PER_SECOND[kind.unit]:
        raise SerializationError("invalid time: outside the day")
    have, want = _PER_SECOND[kind.unit], _PER_SECOND[unit]
    scaled = floor_divide(numbers, have // want) if have > want else pc.multiply(numbers, want // have)
    return scaled.cast(pa.int32()).cast(pa.time32(unit)) if want <= 1000 else scaled.cast(pa.time64(unit))


_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
