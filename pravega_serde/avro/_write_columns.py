"""Writing columns: into storage form, then into pieces, then into events.

Everything that can be wrong with a value (a null where none may be, a symbol that is none) only stops the fast path;
the plain path then writes row by row, and names the row and field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro._compiled import compiled_writer
from pravega_serde.avro._decimals import big_endian, halves, signed_sizes, within
from pravega_serde.avro._lower import lowering
from pravega_serde.avro._model import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, kind_of
from pravega_serde.avro._storage import members_of
from pravega_serde.avro._values import is_decimal
from pravega_serde.avro._write_rows import RowWriter
from pravega_serde.columnar import FallbackError, StagedWriter, bounds_of, list_items, map_entries
from pravega_serde.columnar.arrays import Int64s
from pravega_serde.columnar.pieces import Piece, Words, assemble, constant, regroup, spread, varints

__all__ = ["AvroColumnWriter"]


class AvroColumnWriter(StagedWriter):
    """Writes columns of a schema, whose JSON is ``text``."""

    def __init__(self, schema: Type, text: str, *, few: int) -> None:
        super().__init__(
            lowering=partial(lowering, schema),
            pieces=partial(_write, schema),
            write_row=RowWriter(schema, arrow=True),
            compiled=compiled_writer(schema, text),
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


def _boolean(schema: Primitive, column: pa.Array) -> list[Piece]:  # noqa: ARG001
    return [Words(column.to_numpy(zero_copy_only=False).astype(np.uint64), 1)]


def _float(schema: Primitive, column: pa.Array) -> list[Piece]:  # noqa: ARG001
    return [Words(column.to_numpy().view(np.uint32).astype(np.uint64), 4)]


def _double(schema: Primitive, column: pa.Array) -> list[Piece]:  # noqa: ARG001
    return [Words(column.to_numpy().view(np.uint64), 8)]


def _bytes(schema: Primitive, column: pa.Array) -> list[Piece]:  # noqa: ARG001
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
    "null": lambda schema, column: [],  # noqa: ARG005
    "string": _bytes,
}


def _decimal(schema: Primitive | Fixed, column: pa.Array) -> list[Piece]:
    assert schema.logical is not None
    if column.type != pa.decimal128(schema.logical.precision, schema.logical.scale):
        raise FallbackError
    high, low = halves(column)
    least = signed_sizes(high, low)
    size = np.full(len(column), schema.size) if isinstance(schema, Fixed) else least
    if (least > size).any() or (size > 16).any() or not within(high, low, 10**schema.logical.precision).all():
        raise FallbackError
    before = [] if isinstance(schema, Fixed) else varints(size)
    return [*before, *big_endian(high, low, size)]


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
    """Each row's items as one block, as Java writes them, and the empty block."""
    return [*varints(lengths, lengths > 0), regroup(items, bounds_of(lengths)), constant(0, 1, len(lengths))]


def _record(schema: Record, column: pa.Array) -> list[Piece]:
    parts = zip(schema.fields, column.flatten(), strict=True)
    return [piece for entry, values in parts for piece in _write(entry.type, values)]


def _union(schema: Union, column: pa.Array) -> list[Piece]:
    others = members_of(schema)
    null = next((index for index, branch in enumerate(schema.branches) if kind_of(branch) == "null"), None)
    columns = [column] if len(others) == 1 else column.flatten() if others else []
    there = [values.is_valid().to_numpy(zero_copy_only=False) for values in columns]
    codes = np.full(len(column), -1 if null is None else null)
    for branch, present in zip(others, there, strict=True):
        codes[present] = schema.branches.index(branch)
    # None is set where one must be, or several are.
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
