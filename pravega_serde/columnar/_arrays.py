"""Taking Arrow columns in, whatever their layout, and small operations on them that Arrow lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar._bytes import Int64s
from pravega_serde.errors import SchemaError, SerializationError

__all__ = [
    "UNFIT",
    "as_binary",
    "as_column",
    "at_path",
    "bounds_of",
    "days_of",
    "expand",
    "floor_divide",
    "is_text",
    "list_items",
    "list_offsets",
    "map_entries",
    "per_row",
    "time_of_day",
    "to_micros",
    "written",
]

_MICROS_OF: Final = {"s": 1_000_000, "ms": 1000}


def as_column(column: pa.Array | pa.ChunkedArray | pa.RecordBatch) -> pa.Array:
    """One plain array: batches become structs, chunks are joined, dictionaries and extension types unfolded."""
    if isinstance(column, pa.RecordBatch):
        return column.to_struct_array()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column.storage if isinstance(column, pa.ExtensionArray) else column


#: What Arrow, and Python's own types, raise for values that do not fit a type.
UNFIT: Final = (pa.ArrowException, ArithmeticError, TypeError, ValueError)


def at_path(convert: Callable[[pa.Array], pa.Array], path: str) -> Callable[[pa.Array], pa.Array]:
    """The conversion of a field's column, whose :class:`SerializationError` says which field it was."""

    def run(column: pa.Array) -> pa.Array:
        try:
            return convert(column)
        except SerializationError as error:
            raise SerializationError(error.reason, field_path=error.field_path or path) from error
        except UNFIT as error:
            raise SerializationError(f"a value does not fit: {error}", field_path=path) from error

    return run


def written(column: pa.Array, write: Callable[[pa.Array], pa.BinaryArray]) -> pa.BinaryArray:
    """The events of a column; a value that cannot be written is a :class:`SerializationError` that names its row.

    ``write`` takes any slice of the column. It need not know rows: the first bad one is looked for by halving.
    """
    try:
        return write(column)
    except SerializationError as error:
        if error.row is not None:
            raise
        refused: Exception = error
    except UNFIT as error:
        refused = error
    row = _first_refused(column, write)
    if row is None:
        raise SerializationError(f"the column cannot be written as a whole: {refused}") from refused
    raise row from refused


def _first_refused(column: pa.Array, write: Callable[[pa.Array], pa.BinaryArray]) -> SerializationError | None:
    """The error of the first row that cannot be written by itself."""
    start, stop = 0, len(column)
    while stop > start:
        middle = (start + stop + 1) // 2
        try:
            write(column.slice(start, middle - start))
        except (SerializationError, *UNFIT) as error:
            if middle - start == 1:
                found = error if isinstance(error, SerializationError) else SerializationError(str(error))
                return found.in_row(start)
            stop = middle
        else:
            start = middle
    return None


def as_binary(column: pa.Array | pa.ChunkedArray) -> pa.BinaryArray:
    """A column of events as a binary array; :class:`SchemaError` if its type cannot hold events."""
    column = as_column(column)
    if column.type == pa.binary():
        return column
    if not holds_bytes(column.type):
        raise SchemaError(f"a column of type {column.type} holds no events; give a binary or string column")
    return column.cast(pa.binary())


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's string types."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def holds_bytes(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's many binary and string types (or null)."""
    t = pa.types
    binary = t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind)
    return bool(is_text(kind) or binary or t.is_null(kind))


def expand(values: pa.Array, present: npt.NDArray[np.bool_]) -> pa.Array:
    """Spread values over the true places of ``present``; the other places become null."""
    if len(values) == len(present):
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(present))
    index = np.cumsum(present) - 1
    return values.take(pa.array(index, mask=~present))


def list_items(column: pa.Array) -> tuple[Int64s, pa.Array]:
    """How many items each row of a list column has (none, if it is null), and all items in order."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    return lengths, column.flatten()


def map_entries(column: pa.MapArray) -> tuple[Int64s, pa.Array, pa.Array]:
    """How many entries each row of a map column has, and all keys and values in order."""
    # Unlike a list's flatten(), keys and items are those of the whole array, whatever slice of it this is.
    there = column.drop_null() if column.null_count else column
    offsets = there.offsets.to_numpy().astype(np.int64) if len(there) else np.zeros(1, np.int64)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    lengths = np.zeros(len(column), np.int64)
    lengths[column.is_valid().to_numpy(zero_copy_only=False)] = np.diff(offsets)
    return lengths, there.keys.slice(first, count), there.items.slice(first, count)


def bounds_of(lengths: Int64s) -> Int64s:
    """Where each row's part begins, and where the last one ends."""
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def list_offsets(lengths: Int64s) -> pa.Array:
    """The offsets of lists, or maps, of so many items."""
    return pa.array(bounds_of(lengths), pa.int32())


def floor_divide(column: pa.Array, by: int) -> pa.Array:
    """Numbers divided and rounded down, nulls kept."""
    # Arrow's own division rounds towards zero, the wrong way for times before 1970.
    values = column.fill_null(0).to_numpy() // by
    return pa.array(values, column.type, mask=column.is_null().to_numpy(zero_copy_only=False))


def to_micros(column: pa.Array, unit: str, *, what: str) -> pa.Array:
    """Times, or numbers of ``unit``, as numbers of microseconds; finer ones are rounded down.

    Raises :class:`SerializationError` for ``what`` is beyond their range.
    """
    numbers = column.cast(pa.int64())
    if unit == "us":
        return numbers
    if unit == "ns":
        return floor_divide(numbers, 1000)
    try:
        return pc.multiply_checked(numbers, _MICROS_OF[unit])
    except pa.ArrowInvalid as error:
        raise SerializationError(f"a {what} beyond the range of microseconds: {error}") from error


def days_of(column: pa.Array) -> pa.Array:
    """Dates without the hours that Arrow lets a date of milliseconds have."""
    if column.type == pa.date32():
        return column
    return floor_divide(column.cast(pa.int64()), 86_400_000).cast(pa.int32()).cast(pa.date32())


def time_of_day(column: pa.Array, unit: str = "us") -> pa.Array:
    """Times as ``time64`` or ``time32`` of a unit, finer ones rounded down.

    Raises :class:`SerializationError` for numbers that are no time of a day: Arrow lets them stand.
    """
    kind = column.type
    numbers = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < 86_400 * _PER_SECOND[kind.unit]:
        raise SerializationError("a time outside the day")
    have, want = _PER_SECOND[kind.unit], _PER_SECOND[unit]
    scaled = floor_divide(numbers, have // want) if have > want else pc.multiply(numbers, want // have)
    return scaled.cast(pa.int32()).cast(pa.time32(unit)) if want <= 1000 else scaled.cast(pa.time64(unit))


_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def per_row(values: Iterable[Any], write: Callable[[Any], bytes]) -> pa.BinaryArray:
    """The plain way to encode a column: value by value. A null stays null, an error names the row."""
    events: list[bytes | None] = []
    for row, value in enumerate(values):
        try:
            events.append(None if value is None else write(value))
        except SerializationError as error:
            raise error.in_row(row) from error
    return pa.array(events, pa.binary())
