"""From storage columns to the bits that are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import FallbackError, MalformedError
from pravega_serde.columnar.arrays import UInt64s
from pravega_serde.protobuf._plan import EnumPlan, FieldPlan
from pravega_serde.protobuf._write_values import converter

__all__ = ["bits_of"]


def bits_of(field: FieldPlan, column: pa.Array) -> UInt64s:
    """A number for each row, as 64 bits; 0 for null."""
    if field.enum is not None:
        return _enum(field.enum, column)
    if field.kind in ("uint64", "fixed64"):
        return _decimals(column)
    if column.null_count:
        column = column.fill_null(False if field.kind == "bool" else 0)
    values = column.to_numpy(zero_copy_only=False)
    return _FLOATS[field.kind](values) if field.kind in _FLOATS else _integers(field.kind, values)


_FLOATS = {
    "double": lambda values: values.view(np.uint64),
    "float": lambda values: values.view(np.uint32).astype(np.uint64),
}


def _integers(kind: str, values: Any) -> UInt64s:
    wide: Any = values.astype(np.int64)
    if kind.startswith("sint"):
        wide = (wide << 1) ^ (wide >> 63)
    elif kind == "sfixed32":
        wide &= 0xFFFFFFFF
    elif kind in ("uint32", "fixed32") and len(wide) and (wide.min() < 0 or wide.max() >= 1 << 32):
        raise FallbackError
    bits: UInt64s = wide.view(np.uint64)
    return bits


def _decimals(column: pa.Array) -> UInt64s:
    if column.null_count:
        column = column.fill_null(0)
    words = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)[column.offset : column.offset + len(column)]
    if words[:, 1].any():
        raise FallbackError
    return np.ascontiguousarray(words[:, 0])


def _enum(enum: EnumPlan, column: pa.Array) -> UInt64s:
    names = list(enum.numbers)
    codes = pc.index_in(column, pa.array(names, pa.string()))
    numbers = [*enum.numbers.values(), 0]
    if codes.null_count > column.null_count:
        others = [text for text in column.unique().to_pylist() if text is not None and text not in enum.numbers]
        numbers = [*enum.numbers.values(), *_numbers_of(enum, others), 0]
        names += others
        codes = pc.index_in(column, pa.array(names, pa.string()))
    bits: UInt64s = np.array(numbers, np.int64)[codes.fill_null(len(names)).to_numpy()].view(np.uint64)
    return bits


def _numbers_of(enum: EnumPlan, texts: list[str]) -> list[int]:
    """Numbers that are given as text, since they have no name."""
    convert = converter("enum", enum)
    try:
        return [convert(text) for text in texts]
    except MalformedError:
        raise FallbackError from None
