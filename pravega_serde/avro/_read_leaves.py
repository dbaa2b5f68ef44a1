"""Readers of single values for all events of a column at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro._cursor import Cursor
from pravega_serde.avro._decimals import decimals
from pravega_serde.avro._model import Fixed, Primitive
from pravega_serde.avro._nodes import EnumNode, Leaf
from pravega_serde.avro._values import INT64_MAX, UUID_PATTERN
from pravega_serde.columnar import cut

__all__ = ["NotByColumnsError", "Read", "read_enum", "read_leaf"]

#: The next value of each row.
Read = Callable[[Cursor], pa.Array]


class NotByColumnsError(Exception):
    """The plan has a corner that is not worth a columnar reader: the rows will do."""


def read_leaf(node: Leaf, kind: pa.DataType) -> Read:
    """Reads a primitive or fixed."""
    if node.wire == "null":
        # The reader may have a union with null there: then nulls of its type.
        return lambda cursor: pa.nulls(len(cursor), kind)
    if node.wire in ("int", "long"):
        return _integer(node, kind)
    if node.wire in ("bytes", "string", "fixed"):
        return _bytes(node, kind)
    return _FIXED_WIDTH[node.wire if node.wire != "float" or kind == pa.float32() else "float to double"]


def _bytes(node: Leaf, kind: pa.DataType) -> Read:
    target = node.target
    size = target.size if isinstance(target, Fixed) else None
    if pa.types.is_decimal(kind):
        if node.wire == "string":
            raise NotByColumnsError
        return lambda cursor: decimals(cursor, size, kind.precision, kind.scale)
    logical = target.logical
    if logical is not None and logical.name == "uuid" and kind == pa.string():
        return _uuid
    if logical is not None and logical.name == "decimal":
        if node.wire == "string":
            raise NotByColumnsError
        return partial(_large_decimal, size=size, surely=logical.precision * 3321 // 8000)
    if kind == pa.string():
        return Cursor.strings
    if node.wire == "string":
        # Bytes are made of a string: it must be one all the same.
        return lambda cursor: cursor.strings().cast(pa.binary())
    return lambda cursor: cursor.binaries(size)


def _uuid(cursor: Cursor) -> pa.Array:
    text = cursor.strings()
    cursor.fail(~pc.match_substring_regex(text, UUID_PATTERN).to_numpy(zero_copy_only=False))
    return text


def _large_decimal(cursor: Cursor, *, size: int | None, surely: int) -> pa.Array:
    """The bytes of a decimal that Arrow has no type for; the plain path counts digits where there may be too many."""
    starts, ends = cursor.spans(size)
    cursor.fail((ends == starts) | (ends - starts > surely))
    return cut(cursor.data, starts, np.where(cursor.bad, starts, ends))


def _boolean(cursor: Cursor) -> pa.Array:
    byte = cursor.data[cursor.position]
    cursor.skip(1)
    cursor.fail(byte > 1)
    return pa.array(byte == 1)


def _float(cursor: Cursor) -> pa.Array:
    return pa.array(cursor.fixed_words(4).astype(np.uint32).view(np.float32))


def _float_to_double(cursor: Cursor) -> pa.Array:
    floats = cursor.fixed_words(4).astype(np.uint32).view(np.float32)
    # A signalling NaN is a NaN like any other.
    with np.errstate(invalid="ignore"):
        return pa.array(floats.astype(np.float64))


def _double(cursor: Cursor) -> pa.Array:
    return pa.array(np.ascontiguousarray(cursor.fixed_words(8)).view(np.float64))


_FIXED_WIDTH: Final[Mapping[str, Read]] = {
    "boolean": _boolean,
    "double": _double,
    "float": _float,
    "float to double": _float_to_double,
}


#: How many units a day has.
_DAY: Final = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}


def _integer(node: Leaf, kind: pa.DataType) -> Read:
    narrow = node.wire == "int"
    assert isinstance(node.target, Primitive)
    logical = node.target.logical.name if node.target.logical else ""
    millis = logical in ("timestamp-millis", "local-timestamp-millis")
    day = _DAY.get(logical)
    number = (
        kind.to_pandas_dtype()
        if kind in (pa.float32(), pa.float64())
        else np.int32
        if kind.bit_width == 32
        else np.int64
    )

    def read(cursor: Cursor) -> pa.Array:
        values = cursor.longs()
        if narrow:
            cursor.fail((values < -0x80000000) | (values > 0x7FFFFFFF))
        if millis:
            cursor.fail((values > INT64_MAX // 1000) | (values < -(INT64_MAX // 1000)))
            values *= 1000
        if day is not None:
            cursor.fail((values < 0) | (values >= day))
        return pa.array(values.astype(number, copy=False)).view(kind)

    return read


def read_enum(node: EnumNode, kind: pa.DataType) -> Read:
    """Reads a symbol."""
    known = np.array([symbol is not None for symbol in node.symbols], np.bool_)
    symbols = pa.array([symbol or "" for symbol in node.symbols], kind)

    def read(cursor: Cursor) -> pa.Array:
        index = cursor.longs()
        outside = (index < 0) | (index >= len(known))
        index[outside] = 0
        cursor.fail(outside | ~known[index])
        return symbols.take(pa.array(index))

    return read
