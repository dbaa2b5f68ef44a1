"""Writing columns: into storage form, then into pieces, then into events; or, twice as fast, with ptars.

An invalid value (a null in a list, two members of a oneof, an unknown enum value) only stops the fast path. The plain
path then writes row by row, and names the row and field.

ptars is used if it is installed, and only for the types listed here. Tests compare their bytes with those of the other
paths. ptars treats a negative zero as a default value and omits it, so columns with one are written without ptars.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from pravega_serde.columnar import (
    FallbackError,
    MalformedError,
    StagedWriter,
    bounds_of,
    list_items,
    list_offsets,
    map_entries,
    unless_refused,
)
from pravega_serde.columnar.arrays import Bools, Int64s, UInt64s, valid_rows
from pravega_serde.columnar.pieces import Piece, Words, assemble, regroup, spread
from pravega_serde.columnar.varints import sizes, tail_of, words_of
from pravega_serde.protobuf.columns import by_key
from pravega_serde.protobuf.plan import EnumPlan, FieldPlan, MessagePlan
from pravega_serde.protobuf.storage import lowering
from pravega_serde.protobuf.values import SECONDS, converter
from pravega_serde.protobuf.wire import FIXED32, FIXED64, LENGTH, NUMBERS, VARINT, Tag

try:
    import ptars
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

_U: Final = np.uint64

#: Rows of a flat message below which writing by row is faster.
_FEW: Final = 48
_FEW_FOR_COMPILED: Final = 8


class ProtobufColumnWriter(StagedWriter):
    """Writer of columns of a message type."""

    def __init__(self, plan: MessagePlan, descriptor: Descriptor, write_row: Callable[[Any], bytes]) -> None:
        compiled = _compiled_writer(plan, descriptor)
        super().__init__(
            lowering=partial(lowering, plan),
            pieces=partial(_message, plan),
            write_row=write_row,
            compiled=compiled,
            few=_FEW if compiled is None else _FEW_FOR_COMPILED,
        )


def _encode(plan: MessagePlan, column: pa.Array) -> pa.BinaryArray:
    """Return the bytes of messages, from storage without nulls."""
    return assemble(_message(plan, column), len(column))


def _message(plan: MessagePlan, column: pa.Array) -> list[Piece]:
    if plan.shape == "json":
        raise FallbackError
    if plan.shape == "wrapper":
        return _single(plan.fields[0], column)
    columns = _halves(plan, column) if plan.shape != "message" else column.flatten()
    _check_oneofs(plan, columns)
    return [piece for field, values in zip(plan.fields, columns, strict=True) for piece in _field(field, values)]


def _halves(plan: MessagePlan, column: pa.Array) -> list[pa.Array]:
    """Return the seconds and nanoseconds of microseconds. Nanoseconds of a timestamp are never negative."""
    micros = column.to_numpy()
    seconds, rest = micros // 1_000_000, micros % 1_000_000
    low, high = SECONDS[plan.shape]
    if len(seconds) and (seconds.min() < low or seconds.max() > high):
        raise FallbackError
    if plan.shape == "duration":
        towards_zero = (micros < 0) & (rest > 0)
        seconds, rest = seconds + towards_zero, rest - towards_zero * 1_000_000
    return [pa.array(seconds), pa.array((rest * 1000).astype(np.int32))]


def _check_oneofs(plan: MessagePlan, columns: list[pa.Array]) -> None:
    members: dict[str, list[pa.Array]] = {}
    for field, column in zip(plan.fields, columns, strict=True):
        if field.oneof is not None and column.null_count < len(column):
            members.setdefault(field.oneof, []).append(column)
    for several in members.values():
        if len(several) > 1 and (np.sum([valid_rows(column) for column in several], axis=0) > 1).any():
            raise FallbackError


def _field(field: FieldPlan, column: pa.Array) -> list[Piece]:
    if field.label == "required" and column.null_count:
        raise FallbackError
    if column.null_count == len(column):
        return []
    if field.label == "repeated":
        return _repeated(field, column)
    return _map(field, column) if field.label == "map" else _single(field, column)


def _single(field: FieldPlan, column: pa.Array) -> list[Piece]:
    if field.kind == "group":
        raise FallbackError
    if field.message is not None:
        return _nested(field, field.message, column)
    if field.kind in ("string", "bytes"):
        return _text(field, column)
    there = valid_rows(column) if column.null_count else None
    bits = _bits_of(field, column)
    if field.label == "implicit":
        there = bits != 0
    return _number(field, bits, None if there is None or there.all() else there)


def _number(field: FieldPlan, bits: UInt64s, there: Bools | None) -> list[Piece]:
    """Return tags and numbers; absent rows have no bytes of them."""
    wire = NUMBERS[field.kind].wire
    tag = Tag.of(field.number, wire)
    if wire == VARINT:
        return _tagged_varints(tag, bits, there)
    size = 8 if wire == FIXED64 else 4
    if tag.size + size <= 8:
        return [Words(_U(tag.word) | bits << _U(8 * tag.size), _sized(tag.size + size, there))]
    return [Words(np.full(len(bits), tag.word, _U), _sized(tag.size, there)), Words(bits, _sized(size, there))]


def _sized(size: int, there: Bools | None) -> Int64s | int:
    return size if there is None else there * size


def _tagged_varints(tag: Tag, x: UInt64s, there: Bools | None) -> list[Piece]:
    size = sizes(x)
    longest = int(size.max(initial=0))
    words = words_of(x, size)
    if longest + tag.size <= 8:
        # Tag and number fit one word; the lowest bytes, the tag's, are written first.
        words <<= _U(8 * tag.size)
        words |= _U(tag.word)
        size += tag.size
        return [Words(words, size if there is None else np.where(there, size, 0))]
    sized = size if there is None else np.where(there, size, 0)
    pieces: list[Piece] = [Words(np.full(len(x), tag.word, _U), _sized(tag.size, there))]
    if longest <= 8:
        return [*pieces, Words(words, sized)]
    ninth, tenth = tail_of(x, size)
    tail = ninth.astype(_U) | (tenth.astype(_U) << _U(8))
    return [*pieces, Words(words, np.minimum(sized, 8)), Words(tail, np.maximum(sized - 8, 0))]


def _delimited(field: FieldPlan, payload: Piece, lengths: Int64s, there: Bools | None) -> list[Piece]:
    """Return tag, length and bytes."""
    return [*_tagged_varints(Tag.of(field.number, LENGTH), lengths.view(_U), there), payload]


def _text(field: FieldPlan, column: pa.Array) -> list[Piece]:
    data = column.cast(pa.binary())
    there = valid_rows(column) if column.null_count else None
    if column.null_count:
        data = data.fill_null(b"")
    lengths = pc.binary_length(data).to_numpy().astype(np.int64)
    if field.label == "implicit":
        there = lengths > 0
    payload = regroup(data, np.arange(len(data) + 1))
    return _delimited(field, payload, lengths, None if there is None or there.all() else there)


def _nested(field: FieldPlan, plan: MessagePlan, column: pa.Array) -> list[Piece]:
    encoded = _encode(plan, column.drop_null() if column.null_count else column)
    payload: Piece = regroup(encoded, np.arange(len(encoded) + 1))
    lengths = pc.binary_length(encoded).to_numpy().astype(np.int64)
    if not column.null_count:
        return _delimited(field, payload, lengths, None)
    there = valid_rows(column)
    spread_lengths = np.zeros(len(column), np.int64)
    spread_lengths[there] = lengths
    return _delimited(field, spread(payload, there), spread_lengths, there)


def _repeated(field: FieldPlan, column: pa.Array) -> list[Piece]:
    lengths, items = list_items(column)
    if items.null_count:
        raise FallbackError
    bounds = bounds_of(lengths)
    if not field.packed:
        return [regroup(assemble(_single(_as_item(field), items), len(items)), bounds)]
    run = regroup(assemble(_untagged(field, _bits_of(field, items)), len(items)), bounds)
    return _delimited(field, run, pc.binary_length(run.column).to_numpy().astype(np.int64), lengths > 0)


def _as_item(field: FieldPlan) -> FieldPlan:
    """Return the field in a form that is always written, as items and entries are."""
    return dataclasses.replace(field, label="explicit")


def _untagged(field: FieldPlan, bits: UInt64s) -> list[Piece]:
    wire = NUMBERS[field.kind].wire
    if wire == VARINT:
        return _tagged_varints(_NO_TAG, bits, None)
    return [Words(bits, 4 if wire == FIXED32 else 8)]


_NO_TAG: Final = Tag(0, 0, 0)


def _map(field: FieldPlan, column: pa.Array) -> list[Piece]:
    assert field.message is not None
    lengths, keys, values = map_entries(column)
    if values.null_count:
        raise FallbackError
    key, item = (_as_item(part) for part in field.message.fields)
    owners, keys, values = by_key(np.repeat(np.arange(len(column)), lengths), keys, values)
    entries = assemble([*_single(key, keys), *_single(item, values)], len(keys))
    items = _delimited(
        field,
        regroup(entries, np.arange(len(entries) + 1)),
        pc.binary_length(entries).to_numpy().astype(np.int64),
        None,
    )
    counts = np.bincount(owners, minlength=len(column))
    return [regroup(assemble(items, len(keys)), bounds_of(counts))]


def _bits_of(field: FieldPlan, column: pa.Array) -> UInt64s:
    """Return the number of each row of a storage column, as 64 bits; 0 for null."""
    if field.enum is not None:
        return _enum_bits(field.enum, column)
    if field.kind in ("uint64", "fixed64"):
        return _decimal_bits(column)
    if column.null_count:
        column = column.fill_null(False if field.kind == "bool" else 0)
    values = column.to_numpy(zero_copy_only=False)
    return _FLOATS[field.kind](values) if field.kind in _FLOATS else _integer_bits(field.kind, values)


_FLOATS = {
    "double": lambda values: values.view(np.uint64),
    "float": lambda values: values.view(np.uint32).astype(np.uint64),
}


def _integer_bits(kind: str, values: Any) -> UInt64s:
    wide: Any = values.astype(np.int64)
    if kind.startswith("sint"):
        wide = (wide << 1) ^ (wide >> 63)  # zigzag: the sign becomes the lowest bit
    elif kind == "sfixed32":
        wide &= 0xFFFFFFFF  # the four bytes of its two's complement
    elif kind in ("uint32", "fixed32") and len(wide) and (wide.min() < 0 or wide.max() >= 1 << 32):
        raise FallbackError
    bits: UInt64s = wide.view(np.uint64)
    return bits


def _decimal_bits(column: pa.Array) -> UInt64s:
    if column.null_count:
        column = column.fill_null(0)
    # Only the used part of the buffer: the buffer of an empty column may have any size.
    words = np.frombuffer(column.buffers()[1], np.uint64, 2 * len(column), 16 * column.offset).reshape(-1, 2)
    if words[:, 1].any():
        raise FallbackError
    return np.ascontiguousarray(words[:, 0])


def _enum_bits(enum: EnumPlan, column: pa.Array) -> UInt64s:
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
    """Return the numbers of texts, which are used for numbers without a name."""
    convert = converter("enum", enum)
    try:
        return [convert(text) for text in texts]
    except MalformedError:
        raise FallbackError from None


#: Writes a column in storage form; returns None if another writer must write it.
Compiled = Callable[[pa.Array], pa.BinaryArray | None]


def _compiled_writer(plan: MessagePlan, descriptor: Descriptor) -> Compiled | None:
    """Return the compiled writer of a message type that does not contain itself.

    Return None if ptars is missing or does not support the type.
    """
    if not _INSTALLED or not plan.fields or plan.shape != "message" or not all(map(_is_written, plan.fields)):
        return None
    if _has_editions(descriptor.file):
        # ptars panics over them, and its library prints that on stderr.
        return None
    handler = unless_refused(lambda: ptars.HandlerPool([descriptor.file]).get_for_message(descriptor))
    return None if handler is None else _CompiledWriter(plan, handler)


def _has_editions(file: FileDescriptor) -> bool:
    """True if a file, or one that it imports, is written in an edition and not in proto2 or proto3."""
    own = FileDescriptorProto()
    file.CopyToProto(own)
    return own.syntax == "editions" or any(map(_has_editions, file.dependencies))


def _is_written(field: FieldPlan) -> bool:
    """True if ptars writes the field as Google does: not maps, which it does not sort, and not Google's own types."""
    if field.oneof is not None or field.kind == "group" or field.label in ("map", "required"):
        return False
    if field.message is not None:
        own = field.message.shape == "message" and not field.message.name.startswith("google.")
        return own and all(map(_is_written, field.message.fields))
    return field.label != "repeated" or field.packed or field.kind in ("bytes", "string")


class _CompiledWriter:
    """Writer of columns with ptars."""

    __slots__ = ("_handler", "_plan", "_schema")

    def __init__(self, plan: MessagePlan, handler: Any) -> None:
        self._plan, self._handler = plan, handler
        self._schema: pa.Schema = handler.schema()

    def __call__(self, stored: pa.Array) -> pa.BinaryArray | None:
        if stored.null_count:
            return None
        try:
            columns = _shape_columns(self._plan, list(self._schema), stored)
        except FallbackError:
            return None
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return unless_refused(lambda: self._handler.record_batch_to_array(batch))


def _shape_columns(plan: MessagePlan, wanted: list[pa.Field], column: pa.Array) -> list[pa.Array]:
    """Return the columns of messages' fields in ptars's types."""
    stored = dict(
        zip((field.name for field in plan.fields), zip(plan.fields, column.flatten(), strict=True), strict=True)
    )
    return [_shape_field(stored[entry.name][0], entry.type, stored[entry.name][1]) for entry in wanted]


def _shape_field(field: FieldPlan, kind: pa.DataType, column: pa.Array) -> pa.Array:
    if field.label != "repeated":
        return _shape_single(field, kind, column)
    lengths, items = list_items(column)
    if items.null_count:
        raise FallbackError
    values = _shape_single(_as_item(field), kind.value_type, items)
    return pa.ListArray.from_arrays(list_offsets(lengths), values, type=kind)


def _shape_single(field: FieldPlan, kind: pa.DataType, column: pa.Array) -> pa.Array:
    """Return values in the type that ptars accepts; nulls only if the field may be absent."""
    if field.message is not None:
        parts = _shape_columns(field.message, list(kind), column)
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if field.kind in ("double", "float") and field.label == "implicit" and _has_negative_zero(column):
        raise FallbackError
    if field.kind in _BY_BITS:
        nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        column = pa.array(_bits_of(field, column).astype(kind.to_pandas_dtype()), mask=nulls)
    if column.null_count and field.label == "implicit":
        return column.fill_null(_DEFAULTS.get(field.kind, 0))
    return column


#: Kinds whose storage is another type than ptars's.
_BY_BITS: Final = frozenset({"enum", "fixed32", "fixed64", "uint32", "uint64"})

_DEFAULTS: Final[Mapping[str, Any]] = {"bool": False, "bytes": b"", "string": ""}


def _has_negative_zero(column: pa.Array) -> bool:
    values = column.fill_null(0).to_numpy() if column.null_count else column.to_numpy()
    return bool(((values == 0) & np.signbit(values)).any())
