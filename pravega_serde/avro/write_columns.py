"""Column writer: converts to storage form, then to pieces, then to events. With pyruhvro it is 3 times as fast.

Any invalid value (a null in a required field, an unknown symbol) only stops the fast path. The plain path then writes
row by row, and names the row and field.

pyruhvro is used if it is installed and supports the schema. It panics on several types (bytes, fixed, decimals, times).
So it only receives records of the types listed here, which the tests compare with the other paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro.columns import within
from pravega_serde.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, branches_of, kind_of
from pravega_serde.avro.storage import lowering
from pravega_serde.avro.values import is_decimal, is_long_decimal
from pravega_serde.avro.write_rows import RowWriter
from pravega_serde.columnar import (
    FallbackError,
    StagedWriter,
    bounds_of,
    expand,
    floor_divide,
    list_items,
    list_offsets,
    map_entries,
    unless_refused,
)
from pravega_serde.columnar.arrays import Int64s, UInt64s, valid_rows
from pravega_serde.columnar.pieces import Piece, Words, assemble, constant, regroup, spread, varints

try:
    import pyruhvro
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True


class AvroColumnWriter(StagedWriter):
    """Writer of columns of a schema. ``text`` is the schema's JSON."""

    def __init__(self, schema: Type, text: str, *, few: int) -> None:
        super().__init__(
            lowering=partial(lowering, schema),
            pieces=partial(_write, schema),
            write_row=RowWriter(schema, arrow=True),
            compiled=_compiled_writer(schema, text),
            few=few,
        )


def _write(schema: Type, column: pa.Array) -> list[Piece]:
    if isinstance(schema, Union):
        return _union(schema, column)
    if column.null_count and kind_of(schema) != "null":
        raise FallbackError
    return _WRITERS[type(schema)](schema, column)


def _leaf(schema: Primitive | Fixed, column: pa.Array) -> list[Piece]:
    if schema.logical is not None and is_decimal(schema.logical):
        return _decimal(schema, column)
    if is_long_decimal(schema.logical):
        raise FallbackError
    if isinstance(schema, Fixed):
        if pc.any(pc.not_equal(pc.binary_length(column), schema.size)).as_py():
            raise FallbackError
        return [regroup(column, np.arange(len(column) + 1))]
    return _PRIMITIVES[schema.name](schema, column)


def _integers(schema: Primitive, column: pa.Array) -> list[Piece]:
    values = column.to_numpy().astype(np.int64)
    if schema.logical is not None and schema.logical.name in ("timestamp-millis", "local-timestamp-millis"):
        values //= 1000
    return varints(values)


def _boolean(schema: Primitive, column: pa.Array) -> list[Piece]:
    return [Words(column.to_numpy(zero_copy_only=False).astype(np.uint64), 1)]


def _float(schema: Primitive, column: pa.Array) -> list[Piece]:
    return [Words(column.to_numpy().view(np.uint32).astype(np.uint64), 4)]


def _double(schema: Primitive, column: pa.Array) -> list[Piece]:
    return [Words(column.to_numpy().view(np.uint64), 8)]


def _bytes(schema: Primitive, column: pa.Array) -> list[Piece]:
    data = column.cast(pa.binary())
    lengths = pc.binary_length(data).to_numpy().astype(np.int64)
    return [*varints(lengths), regroup(data, np.arange(len(data) + 1))]


_PRIMITIVES: Final[Mapping[str, Callable[[Primitive, pa.Array], list[Piece]]]] = {
    "boolean": _boolean,
    "bytes": _bytes,
    "double": _double,
    "float": _float,
    "int": _integers,
    "long": _integers,
    "null": lambda schema, column: [],
    "string": _bytes,
}


def _decimal(schema: Primitive | Fixed, column: pa.Array) -> list[Piece]:
    assert schema.logical is not None
    if column.type != pa.decimal128(schema.logical.precision, schema.logical.scale):
        raise FallbackError
    high, low = _halves(column)
    least = _signed_sizes(high, low)
    size = np.full(len(column), schema.size) if isinstance(schema, Fixed) else least
    if (least > size).any() or (size > 16).any() or not within(high, low, 10**schema.logical.precision).all():
        raise FallbackError
    before = [] if isinstance(schema, Fixed) else varints(size)
    return [*before, *_big_endian(high, low, size)]


def _enum(schema: Enum, column: pa.Array) -> list[Piece]:
    codes = pc.index_in(column, pa.array(schema.symbols, pa.string()))
    if codes.null_count:
        raise FallbackError
    return varints(codes.to_numpy().astype(np.int64))


def _array(schema: Array, column: pa.Array) -> list[Piece]:
    lengths, items = list_items(column)
    return _blocks(lengths, assemble(_write(schema.items, items), len(items)))


def _map(schema: Map, column: pa.Array) -> list[Piece]:
    lengths, keys, values = map_entries(column)
    return _blocks(lengths, assemble([*_bytes(_KEY, keys), *_write(schema.values, values)], len(keys)))


_KEY: Final = Primitive("string")


def _blocks(lengths: Int64s, items: pa.BinaryArray) -> list[Piece]:
    """Return each row's items as one block, as Java writes them, and the empty block."""
    return [*varints(lengths, lengths > 0), regroup(items, bounds_of(lengths)), constant(0, 1, len(lengths))]


def _record(schema: Record, column: pa.Array) -> list[Piece]:
    parts = zip(schema.fields, column.flatten(), strict=True)
    return [piece for entry, values in parts for piece in _write(entry.type, values)]


def _union(schema: Union, column: pa.Array) -> list[Piece]:
    others = branches_of(schema)
    null = next((index for index, branch in enumerate(schema.branches) if kind_of(branch) == "null"), None)
    columns = [column] if len(others) == 1 else column.flatten() if others else []
    there = [valid_rows(values) for values in columns]
    codes = np.full(len(column), -1 if null is None else null)
    for branch, present in zip(others, there, strict=True):
        codes[present] = schema.branches.index(branch)
    # A required member is not set, or several members are set.
    if (codes < 0).any() or (len(there) > 1 and (np.sum(there, axis=0) > 1).any()):
        raise FallbackError
    pieces = varints(codes)
    for branch, values, present in zip(others, columns, there, strict=True):
        if present.all():
            pieces += _write(branch, values)
        elif present.any():
            pieces += [spread(piece, present) for piece in _write(branch, values.drop_null())]
    return pieces


_WRITERS: Final[Mapping[type, Callable[[Any, pa.Array], list[Piece]]]] = {
    Array: _array,
    Enum: _enum,
    Fixed: _leaf,
    Map: _map,
    Primitive: _leaf,
    Record: _record,
}


def _halves(column: pa.Array) -> tuple[Int64s, UInt64s]:
    """Return the high and low halves of a decimal128 column without nulls."""
    if len(column) == 0:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    both = np.frombuffer(column.buffers()[1], np.uint64, 2 * len(column), 16 * column.offset)
    return both[1::2].view(np.int64), both[::2]


def _signed_sizes(high: Int64s, low: UInt64s) -> Int64s:
    """Return the minimum bytes of each number in two's complement, as in Java's ``BigInteger.toByteArray``."""
    sign = high >> 63
    top, bottom = (high ^ sign).view(np.uint64), low ^ sign.view(np.uint64)
    # In a number of n bytes, all bits from 8n - 1, its sign, are equal. So these bits of x ^ sign are zero.
    size = np.ones(len(high), np.int64)
    for octets in range(1, 9):
        size += (top > 0) | (bottom >= np.uint64(1 << (8 * octets - 1)))
    for octets in range(1, 8):
        size += top >= np.uint64(1 << (8 * octets - 1))
    return size


def _big_endian(high: Int64s, low: UInt64s, size: Int64s) -> list[Words]:
    """Return the lowest ``size`` bytes (at most sixteen) of each number, highest first."""
    # After the shift to the top of a word and the swap, the wanted bytes come first.
    # Without upper bytes, the shift would be 64, which is undefined. 56 is fine, because no bytes are used.
    upper = np.maximum(size - 8, 0)
    lower = np.minimum(size, 8)
    head = (high.view(np.uint64) << (8 * np.minimum(8 - upper, 7)).astype(np.uint64)).byteswap()
    tail = (low << (8 * (8 - lower)).astype(np.uint64)).byteswap()
    return [Words(head, upper), Words(tail, lower)]


#: Function that writes a column in storage form. It returns None if the fast path does not support the column.
Compiled = Callable[[pa.Array], pa.BinaryArray | None]

_COMPILED_PRIMITIVES: Final = frozenset({"boolean", "int", "long", "float", "double", "string"})
_COMPILED_LOGICAL: Final = frozenset({"date", "timestamp-micros", "timestamp-millis"})


class _Threads:
    """State of pyruhvro's threads in this process.

    pyruhvro keeps its threads. A forked child does not have them and would wait forever.
    """

    used = False
    lost = False

    @classmethod
    def after_fork(cls) -> None:
        cls.lost = cls.used


os.register_at_fork(after_in_child=_Threads.after_fork)


def _compiled_writer(schema: Type, text: str) -> Compiled | None:
    """Return the compiled writer of a schema, whose JSON is ``text``.

    Return None if pyruhvro is missing or does not support the schema.
    """
    if not _INSTALLED or not isinstance(schema, Record) or not _is_written(schema):
        return None
    wanted = unless_refused(lambda: pyruhvro.avro_to_arrow_schema(text))
    return None if wanted is None else _CompiledWriter(schema, text, wanted)


class _CompiledWriter:
    """Writer of columns with pyruhvro. It rejects invalid nulls and symbols, because pyruhvro does not check them."""

    __slots__ = ("_schema", "_text", "_wanted")

    def __init__(self, schema: Record, text: str, wanted: pa.Schema) -> None:
        self._schema, self._text, self._wanted = schema, text, wanted

    def __call__(self, stored: pa.Array) -> pa.BinaryArray | None:
        if _Threads.lost:
            return None
        try:
            shaped = _shaped(self._schema, stored, pa.struct(list(self._wanted)))
        except FallbackError:
            return None
        _Threads.used = True
        batch = pa.RecordBatch.from_arrays(shaped.flatten(), schema=self._wanted)
        chunks = unless_refused(lambda: pyruhvro.serialize_record_batch(batch, self._text, 1))
        if chunks is None:
            return None
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _without_null(schema: Type) -> Type:
    """Return the type of an optional type besides null, or the type itself for others."""
    optional = isinstance(schema, Union) and len(schema.branches) == 2 and len(branches_of(schema)) == 1
    return branches_of(schema)[0] if optional else schema  # type: ignore[arg-type]


def _is_written(schema: Type) -> bool:
    leaf = _without_null(schema)
    if isinstance(leaf, Record):
        return bool(leaf.fields) and all(_is_written(entry.type) for entry in leaf.fields)
    if isinstance(leaf, Array | Map):
        return _is_written(leaf.items if isinstance(leaf, Array) else leaf.values)
    if isinstance(leaf, Enum):
        return True
    if not isinstance(leaf, Primitive) or leaf.name not in _COMPILED_PRIMITIVES:
        return False
    return leaf.logical is None or leaf.logical.name in _COMPILED_LOGICAL


def _shaped(schema: Type, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert a stored column to pyruhvro's type."""
    leaf = _without_null(schema)
    shape = _SHAPES[type(leaf)]
    if column.null_count and not isinstance(schema, Union):
        raise FallbackError
    if column.null_count == 0 or isinstance(leaf, Primitive | Enum):
        return shape(leaf, column, wanted)
    # The values in the columns under a null are arbitrary.
    there = valid_rows(column)
    return expand(shape(leaf, column.drop_null(), wanted), there)


def _shape_record(schema: Record, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    parts = zip(schema.fields, column.flatten(), wanted, strict=True)
    return pa.StructArray.from_arrays(
        [_shaped(entry.type, part, field.type) for entry, part, field in parts], fields=list(wanted)
    )


def _shape_array(schema: Array, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    lengths, items = list_items(column)
    items = _shaped(schema.items, items, wanted.value_type)
    return pa.ListArray.from_arrays(list_offsets(lengths), items, type=wanted)


def _shape_map(schema: Map, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    lengths, keys, values = map_entries(column)
    values = _shaped(schema.values, values, wanted.item_type)
    return pa.MapArray.from_arrays(list_offsets(lengths), keys, values, type=wanted)


def _shape_enum(schema: Enum, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if not pc.all(pc.is_in(column.drop_null(), value_set=pa.array(schema.symbols, wanted)), min_count=0).as_py():
        raise FallbackError
    return column


def _shape_primitive(schema: Primitive, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert numbers back to dates and timestamps."""
    logical = schema.logical.name if schema.logical else ""
    if logical == "timestamp-millis":
        return floor_divide(column, 1000).view(pa.timestamp("ms"))
    return column.view(_TYPES[logical]) if logical in _TYPES else column


_SHAPES: Final[Mapping[type, Callable[[Any, pa.Array, pa.DataType], pa.Array]]] = {
    Array: _shape_array,
    Enum: _shape_enum,
    Map: _shape_map,
    Primitive: _shape_primitive,
    Record: _shape_record,
}
_TYPES: Final = {"date": pa.date32(), "timestamp-micros": pa.timestamp("us")}
