"""The fast path: all events of a column at once.

Writers put fields in the order of their numbers. So one pass over the fields, each read in all rows that have it next,
reads whole columns; rows in another order, or with unknown fields, take further passes. What Protobuf allows but nobody
writes (a message in two parts, two members of a oneof, groups) is left to the plain path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import Attempt, ByteColumn, RoundBudget, expand
from pravega_serde.columnar.arrays import Int64s, UInt64s
from pravega_serde.protobuf._build import Build, leaf_builder, list_of, map_of, nulled, shaped
from pravega_serde.protobuf._cursor import Bools, Cursor, varints_at
from pravega_serde.protobuf._gather import Items, Last, Parts
from pravega_serde.protobuf._numbers import FIXED32, FIXED64, LENGTH, NUMBERS, VARINT
from pravega_serde.protobuf._plan import FieldPlan, MessagePlan
from pravega_serde.protobuf._read_fields import FieldReader, field_reader

__all__ = ["ColumnReader", "column_reader"]

#: Rows whose temporaries the allocator keeps, rather than giving them back.
_ROWS_AT_ONCE: Final = 65_536

#: Larger events are left to the plain path: it takes less memory for lists, and is no slower.
LONGEST: Final = 1 << 18

#: A row that is not read to its end by then is left to the plain path.
MAX_PASSES: Final = 16

_U: Final = np.uint64


def column_reader(plan: MessagePlan, kind: pa.DataType) -> ColumnReader | None:
    """The reader of columns for a message type and its Arrow type; None for JSON, which is read by rows."""
    return None if plan.shape == "json" else ColumnReader(plan, kind)


class ColumnReader:
    """Reads columns of events of one message type."""

    __slots__ = ("_message",)

    def __init__(self, plan: MessagePlan, kind: pa.DataType) -> None:
        self._message = MessageReader(plan, kind, top=True)

    def __call__(self, column: pa.BinaryArray) -> Attempt:
        """Values, and the rows that the plain path should look at."""
        budget = RoundBudget()
        pieces = [self._piece(column.slice(at, _ROWS_AT_ONCE), budget) for at in range(0, len(column), _ROWS_AT_ONCE)]
        suspects = [at * _ROWS_AT_ONCE + piece.suspects for at, piece in enumerate(pieces)]
        values = pieces[0].values if len(pieces) == 1 else pa.concat_arrays([piece.values for piece in pieces])
        return Attempt(values, np.concatenate(suspects))

    def _piece(self, column: pa.BinaryArray, budget: RoundBudget) -> Attempt:
        opened = ByteColumn.of(column)
        bad = np.zeros(len(column), np.bool_)
        cursor = Cursor(opened.data, opened.words, opened.starts, opened.ends, bad, budget)
        cursor.fail(opened.ends - opened.starts > LONGEST)
        values = self._message(cursor)
        return Attempt(values, np.flatnonzero(cursor.bad))


@dataclass(frozen=True, slots=True)
class _Field:
    plan: FieldPlan
    reader: FieldReader
    build: Build
    kind: pa.DataType
    dtype: type[np.generic] | None
    """Of numbers; None for what has starts and ends."""

    def empty(self, starts: Int64s) -> Parts:
        """Parts of rows where nothing has been read; absent bytes lie where the row begins, to keep their order."""
        return (starts, starts) if self.dtype is None else (np.zeros(len(starts), self.dtype),)


def _inner_types(plan: MessagePlan, kind: pa.DataType) -> list[pa.DataType]:
    """Arrow types of a message's fields, in the order of their numbers."""
    if plan.shape in ("timestamp", "duration"):
        return [pa.int64(), pa.int32()]
    if plan.shape == "wrapper":
        return [kind]
    declared = dict(zip(plan.order, kind, strict=True))
    return [declared[index].type for index in range(len(plan.fields))]


def _field(plan: FieldPlan, kind: pa.DataType) -> _Field:
    number = NUMBERS.get(plan.kind)
    item = kind
    if plan.label == "repeated":
        item = kind.value_type
    elif plan.label == "map":
        item = pa.struct([kind.key_field, kind.item_field])
    return _Field(plan, field_reader(plan), _builder(plan, item), kind, None if number is None else number.dtype)


def _builder(plan: FieldPlan, kind: pa.DataType) -> Build:
    if plan.message is None:
        return leaf_builder(plan.kind, plan.enum)
    if plan.message.shape == "json" or plan.kind == "group":
        return lambda parts, cursor: (pa.nulls(len(parts[0]), kind), np.ones(len(parts[0]), np.bool_))  # noqa: ARG005
    read = MessageReader(plan.message, kind)

    def build(parts: Parts, cursor: Cursor) -> tuple[pa.Array, Bools | None]:
        inner = cursor.spans(*parts)
        values = read(inner)
        return values, inner.bad

    return build


def _finish(field: _Field, found: Last | Items, cursor: Cursor, starts: Int64s) -> pa.Array:
    if isinstance(found, Last):
        return _finish_single(field, found, cursor, starts)
    owners, parts = found.ordered(field.empty(starts[:0]))
    values, bad = field.build(parts, cursor)
    _fail(cursor, owners, bad)
    if field.plan.label == "repeated":
        return list_of(owners, values, len(cursor), field.kind)
    keys, items = values.flatten()
    if items.null_count:
        # A message that is left out is an empty one; a number that is none of the enum is left out with its entry.
        _fail(cursor, owners, items.is_null().to_numpy(zero_copy_only=False))
        items = items.fill_null("") if pa.types.is_string(items.type) else items
    return map_of(owners, keys, items, len(cursor), field.kind)


def _finish_single(field: _Field, found: Last, cursor: Cursor, starts: Int64s) -> pa.Array:
    there = found.presence()
    parts = field.empty(starts) if found.parts is None else found.parts
    if field.plan.label == "required":
        cursor.fail(~there)
    if found.twice is not None and field.dtype is None:
        # Two messages are one in two parts; of two strings, the one that does not count may be malformed.
        cursor.fail(found.twice)
    if field.plan.message is not None:
        return _finish_message(field, found, parts, cursor)
    values, bad = field.build(parts, cursor)
    if bad is not None:
        cursor.fail(bad & there)
    return values if field.plan.label == "implicit" else nulled(values, there)


def _finish_message(field: _Field, found: Last, parts: Parts, cursor: Cursor) -> pa.Array:
    there = found.presence()
    rows = np.flatnonzero(there)
    if not len(rows):
        return pa.nulls(len(cursor), field.kind)
    values, bad = field.build(parts if len(rows) == len(cursor) else tuple(part[rows] for part in parts), cursor)
    _fail(cursor, rows, bad)
    return expand(values, there)


def _fail(cursor: Cursor, owners: Int64s, bad: Bools | None) -> None:
    """Fail the rows of bad values."""
    if bad is not None and bad.any():
        wrong = np.zeros(len(cursor), np.bool_)
        wrong[owners[bad]] = True
        cursor.fail(wrong)


class MessageReader:
    """Reads messages of one type, and gives a struct for each; of entries of a map, key and value."""

    __slots__ = ("_fields", "_kind", "_oneofs", "_order", "_shape", "_tags", "_top", "_unknown_matter")

    def __init__(self, plan: MessagePlan, kind: pa.DataType, *, top: bool = False) -> None:
        self._kind, self._top, self._shape, self._order = kind, top, plan.shape, plan.order
        self._unknown_matter = plan.unknown_matter
        self._fields = [_field(f, inner) for f, inner in zip(plan.fields, _inner_types(plan, kind), strict=True)]
        self._tags = np.array([tag for f in self._fields for tag in f.reader.tags], _U)
        names = {f.oneof for f in plan.fields if f.oneof is not None}
        self._oneofs = [[i for i, f in enumerate(plan.fields) if f.oneof == name] for name in sorted(names)]

    def __call__(self, cursor: Cursor) -> pa.Array:
        """One value for each row of the cursor; rows that are bad afterwards have arbitrary ones."""
        columns = self.columns(cursor)
        return shaped(self._shape, cursor, [columns[index] for index in self._order], self._kind)

    def columns(self, cursor: Cursor) -> list[pa.Array]:
        """The fields' values, in the order of their numbers."""
        starts = cursor.position
        found: list[Any] = [
            Last(f.empty(starts)) if f.plan.label not in ("repeated", "map") else Items(len(cursor))
            for f in self._fields
        ]
        self._read(cursor, found)
        for members in self._oneofs:
            cursor.fail(np.sum([found[i].presence() for i in members], axis=0) > 1)
        return [_finish(f, what, cursor, starts) for f, what in zip(self._fields, found, strict=True)]

    def _read(self, cursor: Cursor, found: list[Any]) -> None:
        self._pass(cursor, None, found)
        for _ in range(MAX_PASSES):
            if self._top:
                cursor.end_zeros()
            rows = cursor.unfinished()
            if not len(rows) or not cursor.budget.allows(len(rows)):
                break
            selected = cursor.select(rows)
            self._skip_unknown(selected)
            self._pass(selected, rows, found)
            cursor.update(rows, selected)
        cursor.fail(cursor.position < cursor.ends)

    def _pass(self, cursor: Cursor, rows: Int64s | None, found: list[Any]) -> None:
        """Every field once, in order."""
        for f, what in zip(self._fields, found, strict=True):
            if isinstance(what, Items):
                f.reader.take_items(cursor, np.arange(len(cursor)) if rows is None else rows, what)
            else:
                f.reader.take_last(cursor, rows, what)

    def _skip_unknown(self, cursor: Cursor) -> None:
        """Over all fields that stand next and are not ours."""
        while True:
            rows = cursor.unfinished()
            tags, sizes = varints_at(cursor.words, cursor.position[rows])
            foreign = ~np.isin(tags, self._tags)
            rows, tags, sizes = rows[foreign], tags[foreign], sizes[foreign]
            if not len(rows):
                return
            selected = cursor.select(rows)
            selected.fail(_no_field(tags, sizes) | self._unknown_matter | (not cursor.budget.allows(len(rows))))
            _skip(selected, tags, sizes)
            cursor.update(rows, selected)


def _no_field(tags: UInt64s, sizes: Int64s) -> Bools:
    """Tags that are malformed, or of groups; and those in more bytes than they take."""
    wire, longest = tags & _U(7), tags >= _U(1 << 32)
    least = np.ones(len(tags), np.int64)
    for bits in (7, 14, 21, 28):
        least += tags >= _U(1 << bits)
    wrong: Bools = (tags < _U(8)) | longest | (sizes != least) | ~np.isin(wire, _WIRES)
    return wrong


_WIRES: Final = np.array([VARINT, FIXED64, LENGTH, FIXED32], _U)


def _skip(cursor: Cursor, tags: UInt64s, sizes: Int64s) -> None:
    cursor.move(np.where(cursor.bad, cursor.position, cursor.position + sizes))
    cursor.fail(cursor.position > cursor.ends)
    wire = np.where(cursor.bad, 8, (tags & _U(7)).view(np.int64))
    for number, skip in _SKIPS:
        rows = np.flatnonzero(wire == number)
        if len(rows):
            selected = cursor.select(rows)
            skip(selected)
            cursor.update(rows, selected)


_SKIPS: Final[list[tuple[int, Callable[[Cursor], object]]]] = [
    (VARINT, Cursor.varints),
    (FIXED64, lambda cursor: cursor.skip(8)),
    (LENGTH, Cursor.lengths),
    (FIXED32, lambda cursor: cursor.skip(4)),
]
