"""Arrow columns to columns of events, all rows at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import expand
from pravega_serde.errors import SerializationError
from pravega_serde.java._constants import SHORT_STRING, STRING_EVENT
from pravega_serde.java._decode_column import object_prefix
from pravega_serde.java._jdk_table import array_descriptor, jdk_descriptor
from pravega_serde.java._model import ClassDescriptor
from pravega_serde.java._types import ColumnType

__all__ = ["encode_fast"]

_BIG: Final = {
    "Z": ">u1",
    "B": ">i1",
    "S": ">i2",
    "I": ">i4",
    "J": ">i8",
    "F": ">f4",
    "D": ">f8",
}
_BOXES: Final = {
    "Ljava/lang/Boolean;": "Z",
    "Ljava/lang/Byte;": "B",
    "Ljava/lang/Short;": "S",
    "Ljava/lang/Integer;": "I",
    "Ljava/lang/Long;": "J",
    "Ljava/lang/Float;": "F",
    "Ljava/lang/Double;": "D",
}
_STRING: Final = "Ljava/lang/String;"

Bytes = npt.NDArray[np.uint8]


def encode_fast(kind: ColumnType, column: pa.Array) -> pa.BinaryArray | None:
    """Events of a column; None if this column has to be written row by row."""
    if isinstance(kind.java_type, ClassDescriptor):
        return _objects(kind.java_type, kind.arrow_type, column)
    code = _BOXES.get(kind.java_type or "")
    if code is None and kind.java_type not in (_STRING, "[B"):
        return None
    present = column.is_valid().to_numpy(zero_copy_only=False)
    values = _cast(column.drop_null(), kind.arrow_type)
    events = _boxes(values, kind.java_type or "", code) if code else _variable(values, kind.java_type == _STRING)
    return None if events is None else expand(events, present)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    try:
        return column.cast(wanted)
    except pa.ArrowException as error:
        msg = f"a value of type {column.type} does not fit into {wanted}: {error}"
        raise SerializationError(msg) from error


def _big_endian(values: pa.Array, code: str) -> Bytes:
    """Primitive values as rows of bytes."""
    if code == "Z":
        values = values.cast(pa.uint8())
    numbers = values.to_numpy(zero_copy_only=False)
    dtype = np.dtype(_BIG[code])
    raw: Bytes = numbers.astype(dtype).view(np.uint8).reshape(len(values), dtype.itemsize)
    return raw


def _fixed(rows: Bytes) -> pa.BinaryArray:
    """Rows of equal length as a binary array."""
    count, width = rows.shape
    raw = np.ascontiguousarray(rows)
    return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(raw)]).cast(pa.binary())


def _boxes(values: pa.Array, signature: str, code: str) -> pa.BinaryArray:
    descriptor = jdk_descriptor(signature[1:-1].replace("/", "."))
    assert descriptor is not None
    prefix = np.frombuffer(object_prefix(descriptor), np.uint8)
    return _fixed(np.hstack([np.broadcast_to(prefix, (len(values), len(prefix))), _big_endian(values, code)]))


def _variable(values: pa.Array, text: bool) -> pa.BinaryArray | None:
    if text and not _is_modified(values):
        return None
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False)
    if text and len(lengths) and int(lengths.max()) > SHORT_STRING:
        return None
    prefix = STRING_EVENT if text else object_prefix(array_descriptor("[B"), b"\x75")
    heads = _headed(prefix, lengths, ">u2" if text else ">u4")
    return pc.binary_join_element_wise(heads, values.view(pa.binary()), b"")


def _headed(prefix: bytes, lengths: npt.NDArray[Any], dtype: str) -> pa.BinaryArray:
    """A prefix and a length, for each length."""
    raw = lengths.astype(dtype).view(np.uint8).reshape(len(lengths), np.dtype(dtype).itemsize)
    constant = np.frombuffer(prefix, np.uint8)
    return _fixed(np.hstack([np.broadcast_to(constant, (len(lengths), len(constant))), raw]))


def _is_modified(values: pa.StringArray) -> bool:
    """Whether the UTF-8 of all values is modified UTF-8 too: no NUL and no astral character."""
    size = len(values)
    buffer = values.buffers()[2]
    if not size or buffer is None:
        return True
    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + size + 1]
    raw = np.frombuffer(buffer, np.uint8)[ends[0] : ends[-1]]
    return not len(raw) or (int(raw.min()) > 0 and int(raw.max()) < 0xF0)


def _objects(descriptor: ClassDescriptor, arrow_type: pa.DataType, column: pa.Array) -> pa.BinaryArray | None:
    """Events of flat objects: primitives and strings. Boxes, whose bytes depend on the row, are written by row."""
    if not _is_flat(descriptor) or column.null_count:
        return None
    children: dict[str, pa.Array] = {}
    for each in column.type:
        child = pc.struct_field(column, each.name)
        children[each.name] = _cast(child, arrow_type.field(each.name).type)
    names = iter(descriptor.field_names)
    pieces: list[Any] = []
    constant = np.frombuffer(object_prefix(descriptor), np.uint8)
    fixed = [np.broadcast_to(constant, (len(column), len(constant)))]
    for owner in descriptor.hierarchy:
        for each in owner.fields:
            child = children.get(next(names))
            if each.primitive:
                fixed.append(_primitive(child, each.type, len(column)))
                continue
            parts = _string_parts(child, len(column))
            if parts is None:
                return None
            if fixed:
                pieces.append(_fixed(np.hstack(fixed)))
                fixed = []
            pieces.extend(parts)
    if fixed:
        pieces.append(_fixed(np.hstack(fixed)))
    return pc.binary_join_element_wise(*pieces, b"")


def _is_flat(descriptor: ClassDescriptor) -> bool:
    return not descriptor.is_external and all(
        not owner.flags & 1 and all(each.type in _BIG or each.type == _STRING for each in owner.fields)
        for owner in descriptor.hierarchy
    )


def _primitive(child: pa.Array | None, code: str, count: int) -> Bytes:
    """A primitive field; null, and a column that is not there, are Java's default."""
    if child is None:
        return np.zeros((count, np.dtype(_BIG[code]).itemsize), np.uint8)
    return _big_endian(pc.fill_null(child, False if code == "Z" else 0) if child.null_count else child, code)


def _string_parts(child: pa.Array | None, count: int) -> list[pa.Array] | None:
    """Token with length, and text, of a string field."""
    if child is None:
        return [pa.array([b"\x70"] * count, pa.binary())]
    filled = pc.fill_null(child, "") if child.null_count else child
    lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False)
    if not _is_modified(filled) or (len(lengths) and int(lengths.max()) > SHORT_STRING):
        return None
    heads = _headed(b"\x74", lengths, ">u2")
    if child.null_count:
        heads = pc.if_else(child.is_null(), pa.scalar(b"\x70", pa.binary()), heads)
    return [heads, filled.view(pa.binary())]
