"""Writing columns: into storage form, then into pieces, then into events.

Everything that can be wrong with a value (a null in a list, two members of a oneof, an unknown enum value) only stops
the fast path; the plain path then writes row by row, and names the row and field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor

from pravega_serde.columnar import FallbackError, StagedWriter, bounds_of, list_items, map_entries
from pravega_serde.columnar.arrays import Int64s, UInt64s
from pravega_serde.columnar.pieces import Piece, Words, assemble, regroup, spread
from pravega_serde.columnar.varints import sizes, tail_of, words_of
from pravega_serde.protobuf._build import by_key
from pravega_serde.protobuf._compiled import compiled_writer
from pravega_serde.protobuf._cursor import Bools, Tag
from pravega_serde.protobuf._lower import lowering
from pravega_serde.protobuf._numbers import FIXED32, FIXED64, LENGTH, NUMBERS, VARINT
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan
from pravega_serde.protobuf._write_numbers import bits_of

__all__ = ["ProtobufColumnWriter"]

_U: Final = np.uint64

#: Rows of a flat message below which writing by row is faster.
_FEW: Final = 48
_FEW_FOR_COMPILED: Final = 8


class ProtobufColumnWriter(StagedWriter):
    """Writes columns of a message type."""

    def __init__(self, plan: MessagePlan, descriptor: Descriptor, write_row: Callable[[Any], bytes]) -> None:
        compiled = compiled_writer(plan, descriptor)
        super().__init__(
            lowering=partial(lowering, plan),
            pieces=partial(_message, plan),
            write_row=write_row,
            compiled=compiled,
            few=_FEW if compiled is None else _FEW_FOR_COMPILED,
        )


def _valid(column: pa.Array) -> Bools:
    valid: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _encode(plan: MessagePlan, column: pa.Array) -> pa.BinaryArray:
    """The bytes of messages, from storage without nulls."""
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
    """Seconds and nanoseconds of microseconds. Those of a timestamp are never negative."""
    micros = column.to_numpy()
    seconds, rest = micros // 1_000_000, micros % 1_000_000
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
        if len(several) > 1 and (np.sum([_valid(column) for column in several], axis=0) > 1).any():
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
    there = _valid(column) if column.null_count else None
    bits = bits_of(field, column)
    if field.label == "implicit":
        there = bits != 0
    return _number(field, bits, None if there is None or there.all() else there)


def _number(field: FieldPlan, bits: UInt64s, there: Bools | None) -> list[Piece]:
    """Tags and numbers; rows that are not there have no bytes of theirs."""
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
    """Tag, length, bytes."""
    return [*_tagged_varints(Tag.of(field.number, LENGTH), lengths.view(_U), there), payload]


def _text(field: FieldPlan, column: pa.Array) -> list[Piece]:
    data = column.cast(pa.binary())
    there = _valid(column) if column.null_count else None
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
    there = _valid(column)
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
    run = regroup(assemble(_untagged(field, bits_of(field, items)), len(items)), bounds)
    return _delimited(field, run, pc.binary_length(run.column).to_numpy().astype(np.int64), lengths > 0)


def _as_item(field: FieldPlan) -> FieldPlan:
    """The field as one that is written whatever its value, as items and entries are."""
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
