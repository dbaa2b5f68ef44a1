"""Writing columns by ptars, twice as fast as numpy, where it is installed and writes the type.

It is only given what is listed here, whose bytes the tests compare with those of the other paths. It takes a negative
zero for a default value and leaves it out, so columns with one are written otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from pravega_serde.columnar import FallbackError, bounds_of, list_items, unless_refused
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan
from pravega_serde.protobuf._write_numbers import bits_of

try:
    import ptars
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

__all__ = ["compiled_writer"]

#: Events of a column in storage form, or None if they have to be written otherwise.
Write = Callable[[pa.Array], pa.BinaryArray | None]


def compiled_writer(plan: MessagePlan, descriptor: Descriptor) -> Write | None:
    """The writer for a message type, which does not contain itself; None if ptars is missing or does not write it."""
    if not _INSTALLED or not plan.fields or plan.shape != "message" or not all(map(_is_written, plan.fields)):
        return None
    if _has_editions(descriptor.file):
        # ptars panics over them, which its library prints on stderr.
        return None
    handler = unless_refused(lambda: ptars.HandlerPool([descriptor.file]).get_for_message(descriptor))
    return None if handler is None else _Writer(plan, handler)


def _has_editions(file: FileDescriptor) -> bool:
    """Whether a file, or one that it imports, is written in an edition and not in proto2 or proto3."""
    own = FileDescriptorProto()
    file.CopyToProto(own)
    return own.syntax == "editions" or any(map(_has_editions, file.dependencies))


def _is_written(field: FieldPlan) -> bool:
    """Whether ptars writes the field as Google does: not maps, which it does not sort, and not Google's own types."""
    if field.oneof is not None or field.kind == "group" or field.label in ("map", "required"):
        return False
    if field.message is not None:
        return field.message.shape == "message" and all(map(_is_written, field.message.fields))
    return field.label != "repeated" or field.packed or field.kind in ("bytes", "string")


class _Writer:
    __slots__ = ("_handler", "_plan", "_schema")

    def __init__(self, plan: MessagePlan, handler: Any) -> None:
        self._plan, self._handler = plan, handler
        self._schema: pa.Schema = handler.schema()

    def __call__(self, stored: pa.Array) -> pa.BinaryArray | None:
        if stored.null_count:
            return None
        try:
            columns = _columns(self._plan, list(self._schema), stored)
        except FallbackError:
            return None
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return unless_refused(lambda: self._handler.record_batch_to_array(batch))


def _columns(plan: MessagePlan, wanted: list[pa.Field], column: pa.Array) -> list[pa.Array]:
    """The fields of messages, as ptars wants them."""
    stored = dict(
        zip((field.name for field in plan.fields), zip(plan.fields, column.flatten(), strict=True), strict=True)
    )
    return [_field(stored[entry.name][0], entry.type, stored[entry.name][1]) for entry in wanted]


def _field(field: FieldPlan, kind: pa.DataType, column: pa.Array) -> pa.Array:
    if field.label != "repeated":
        return _single(field, kind, column)
    lengths, items = list_items(column)
    if items.null_count:
        raise FallbackError
    values = _single(dataclasses.replace(field, label="explicit"), kind.value_type, items)
    return pa.ListArray.from_arrays(pa.array(bounds_of(lengths), pa.int32()), values, type=kind)


def _single(field: FieldPlan, kind: pa.DataType, column: pa.Array) -> pa.Array:
    """Values in the type that ptars takes; nulls only where the field may be absent."""
    if field.message is not None:
        parts = _columns(field.message, list(kind), column)
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if field.kind in ("double", "float") and field.label == "implicit" and _has_negative_zero(column):
        raise FallbackError
    if field.kind in _BY_BITS:
        nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        column = pa.array(bits_of(field, column).astype(kind.to_pandas_dtype()), mask=nulls)
    if column.null_count and field.label == "implicit":
        return column.fill_null(_DEFAULTS.get(field.kind, 0))
    return column


#: Kinds whose storage is another type than ptars's.
_BY_BITS: Final = frozenset({"enum", "fixed32", "fixed64", "uint32", "uint64"})

_DEFAULTS: Final[Mapping[str, Any]] = {"bool": False, "bytes": b"", "string": ""}


def _has_negative_zero(column: pa.Array) -> bool:
    values = column.fill_null(0).to_numpy() if column.null_count else column.to_numpy()
    return bool(((values == 0) & np.signbit(values)).any())
