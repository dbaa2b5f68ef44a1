"""Arrow columns to columns of events, all rows at once: the choice of the way, and the types of one value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import expand
from pravega_serde.java._column_values import BOXES, STRING, object_prefix
from pravega_serde.java._constants import SHORT_STRING, STRING_EVENT
from pravega_serde.java._encode_objects import encode_objects
from pravega_serde.java._jdk_table import array_descriptor, jdk_descriptor
from pravega_serde.java._model import ClassDescriptor
from pravega_serde.java._types import ColumnType
from pravega_serde.java._wire_values import RefusedError, big_endian, cast, fixed_rows, headed, modified_utf8

__all__ = ["encode_fast"]


def encode_fast(kind: ColumnType, column: pa.Array) -> pa.BinaryArray | None:
    """Events of a column; None if this column has to be written row by row."""
    present = column.is_valid()
    rows = column if column.null_count == 0 else column.filter(present)
    try:
        events = _encode(kind, rows)
    except RefusedError:
        return None
    return None if events is None else expand(events, present.to_numpy(zero_copy_only=False))


def _encode(kind: ColumnType, column: pa.Array) -> pa.BinaryArray | None:
    java_type = kind.java_type
    if isinstance(java_type, ClassDescriptor):
        return encode_objects(java_type, kind.arrow_type, column)
    if java_type in BOXES:
        return _boxes(cast(column, kind.arrow_type), java_type, BOXES[java_type])
    if java_type in (STRING, "[B"):
        return _variable(cast(column, kind.arrow_type), text=java_type == STRING)
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
