"""Columns of events to Arrow columns, all events at once: the choice of the way, and the types of one value."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import Attempt, ByteColumn, FastPath, cut
from pravega_serde.java._column_values import (
    BOXES,
    STRING,
    WIDTH,
    array_of,
    arrow_of,
    matches,
    numbers_at,
    object_prefix,
    text_of,
    u32_at,
)
from pravega_serde.java._decode_objects import object_path
from pravega_serde.java._jdk_table import array_descriptor, jdk_descriptor
from pravega_serde.java._model import ClassDescriptor
from pravega_serde.java._types import ColumnType

__all__ = ["fast_path"]


def fast_path(kind: ColumnType) -> FastPath | None:
    """The vectorised decoder of a column type; None if it has none, and events are read one by one."""
    if isinstance(kind.java_type, ClassDescriptor):
        return object_path(kind.java_type, kind.arrow_type)
    if kind.java_type == STRING and kind.arrow_type == pa.string():
        return _strings
    if kind.java_type == "[B" and kind.arrow_type == pa.binary():
        return _byte_arrays
    code = BOXES.get(kind.java_type or "")
    if code is None or kind.arrow_type != arrow_of(code):
        return None
    assert kind.java_type is not None
    descriptor = jdk_descriptor(kind.java_type[1:-1].replace("/", "."))
    assert descriptor is not None
    return functools.partial(_boxed, object_prefix(descriptor), code)


def _strings(events: pa.BinaryArray) -> Attempt:
    column = ByteColumn.of(events)
    head = column.words[column.starts]
    good = head & np.uint64(0xFFFFFFFFFF) == np.uint64(0x74_0500_EDAC)
    length = (head >> np.uint64(32) & np.uint64(0xFF00) | head >> np.uint64(48) & np.uint64(0xFF)).astype(np.int64)
    good &= column.ends - column.starts == length + 7
    bad = ~good
    values = text_of(column, np.where(good, column.starts + 7, column.ends), column.ends, bad)
    return Attempt(values, np.flatnonzero(bad))


def _byte_arrays(events: pa.BinaryArray) -> Attempt:
    column = ByteColumn.of(events)
    prefix = object_prefix(array_descriptor("[B"), b"\x75")
    body = column.starts + len(prefix) + 4
    good = (column.ends >= body) & matches(column, column.starts, prefix)
    safe = np.where(good, body - 4, column.starts)
    good &= u32_at(column, safe) == column.ends - body
    return Attempt(cut(column.data, np.where(good, body, column.ends), column.ends), np.flatnonzero(~good))


def _boxed(prefix: bytes, code: str, events: pa.BinaryArray) -> Attempt:
    column = ByteColumn.of(events)
    good = (column.ends - column.starts == len(prefix) + WIDTH[code]) & matches(column, column.starts, prefix)
    at = np.where(good, column.starts + len(prefix), column.starts)
    bad = ~good
    values = array_of(numbers_at(column, at, code), code, bad)
    return Attempt(values, np.flatnonzero(bad))
