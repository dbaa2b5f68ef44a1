"""Arrow columns to columns of events, all rows at once: the choice of the way, and the types of one value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import (
    at_path,
    days_of,
    expand,
    list_items,
    list_offsets,
    map_entries,
    time_of_day,
    to_micros,
)
from pravega_serde.errors import SerializationError
from pravega_serde.java._column_values import BOXES, STRING, natural_type, object_prefix
from pravega_serde.java._constants import SHORT_STRING, STRING_EVENT
from pravega_serde.java._encode_objects import encode_objects
from pravega_serde.java._jdk_table import array_descriptor, jdk_descriptor
from pravega_serde.java._model import ClassDescriptor
from pravega_serde.java._types import ColumnType, is_any_list
from pravega_serde.java._wire_values import RefusedError, big_endian, cast, fixed_rows, headed, modified_utf8

__all__ = ["encode_fast", "lowered"]


def encode_fast(kind: ColumnType, column: pa.Array) -> pa.BinaryArray | None:
    """Events of a column; None if this column has to be written row by row."""
    present = column.is_valid()
    rows = column if column.null_count == 0 else column.filter(present)
    try:
        events = _encode(kind, rows)
    except RefusedError:
        return None
    return None if events is None else expand(events, present.to_numpy(zero_copy_only=False))


def lowered(column: pa.Array, target: pa.DataType, path: str = "$") -> pa.Array:
    """A column in the types that Java's values are made of, as far as Python has them.

    Structs keep the fields that they have, decimals their scale. Raises :class:`SerializationError` with the field of
    a value that does not fit: beyond Python's calendar, outside the day.
    """
    kind, t = column.type, pa.types
    if t.is_dictionary(kind):
        return lowered(column.dictionary_decode(), target, path)
    if t.is_struct(kind):
        parts = [
            lowered(part, target.field(field.name).type, f"{path}.{field.name}")
            for part, field in zip(column.flatten(), kind, strict=True)
        ]
        fields = [pa.field(field.name, part.type) for part, field in zip(parts, kind, strict=True)]
        if not fields:
            return column
        return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())
    if is_any_list(kind):
        lengths, items = list_items(column)
        inside = lowered(items, target.value_type, f"{path}[]")
        return pa.ListArray.from_arrays(list_offsets(lengths), inside, mask=column.is_null())
    if t.is_map(kind):
        lengths, keys, values = map_entries(column)
        key, item = lowered(keys, target.key_type, f"{path}{{}}"), lowered(values, target.item_type, f"{path}{{}}")
        made = pa.map_(key.type, item.type)
        return pa.MapArray.from_arrays(list_offsets(lengths), key, item, type=made, mask=column.is_null())
    return at_path(lambda values: _lowered_leaf(values, target), path)(column)


def _lowered_leaf(column: pa.Array, target: pa.DataType) -> pa.Array:
    kind, t = column.type, pa.types
    if t.is_timestamp(target):
        if t.is_timestamp(kind):
            column = to_micros(column, kind.unit, what="timestamp").cast(pa.timestamp("us", target.tz and "UTC"))
        made = column.cast(pa.timestamp("us", target.tz and "UTC"))
        _check_years(made.cast(pa.int64()), 86_400_000_000)
        return made
    if t.is_date(target):
        made = days_of(column) if t.is_date(kind) else column.cast(pa.date32())
        _check_years(made.cast(pa.int32()), 1)
        return made
    if t.is_time(target):
        return time_of_day(column if t.is_time(kind) else column.cast(target))
    if t.is_duration(target) and t.is_duration(kind):
        return to_micros(column, kind.unit, what="duration").cast(pa.duration("us"))
    # A decimal is written with the digits that it has.
    return column if kind == target or (t.is_decimal(kind) and t.is_decimal(target)) else column.cast(target)


#: The days of Python's calendar, counted from 1970.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896


def _check_years(numbers: pa.Array, per_day: int) -> None:
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and not (
        _FIRST_DAY * per_day <= bounds["min"] <= bounds["max"] < (_LAST_DAY + 1) * per_day
    ):
        msg = "a time beyond the years 1 to 9999"
        raise SerializationError(msg)


def _encode(kind: ColumnType, column: pa.Array) -> pa.BinaryArray | None:
    java_type = kind.java_type
    if isinstance(java_type, ClassDescriptor):
        return encode_objects(java_type, column)
    if java_type in BOXES:
        return _boxes(cast(column, natural_type(java_type)), java_type, BOXES[java_type])
    if java_type in (STRING, "[B"):
        return _variable(cast(column, natural_type(java_type)), text=java_type == STRING)
    return None


def _boxes(values: pa.Array, signature: str, code: str) -> pa.BinaryArray:
    descriptor = jdk_descriptor(signature[1:-1].replace("/", "."))
    assert descriptor is not None
    prefix = np.frombuffer(object_prefix(descriptor), np.uint8)
    return fixed_rows(np.hstack([np.broadcast_to(prefix, (len(values), len(prefix))), big_endian(values, code)]))


def _variable(values: pa.Array, *, text: bool) -> pa.BinaryArray | None:
    values = modified_utf8(values) if text else values
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False)
    if text and len(lengths) and int(lengths.max()) > SHORT_STRING:
        return None
    prefix = STRING_EVENT if text else object_prefix(array_descriptor("[B"), b"\x75")
    heads = headed(prefix, lengths, ">u2" if text else ">u4")
    return pc.binary_join_element_wise(heads, values, b"")
