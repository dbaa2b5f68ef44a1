"""The fast path: all events of a column at once, by a tree of closures made from the plan.

Where events take different ways (another branch of a union, one more item of an array) the rows that go one way are
selected, read on, and put back. Any schema can be read so, except where items take no bytes: those are counted by the
plain path, which bounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.avro._arrow import arrow_type
from pravega_serde.avro._cursor import Bools, Cursor
from pravega_serde.avro._model import Fixed
from pravega_serde.avro._nodes import ArrayNode, EnumNode, Leaf, MapNode, Node, RecordNode, UnionNode, min_size
from pravega_serde.avro._plan import plan
from pravega_serde.avro._read_leaves import NotByColumnsError, Read, read_enum, read_leaf
from pravega_serde.avro._read_rows import row_reader
from pravega_serde.avro._write_rows import encode_default
from pravega_serde.columnar import Attempt, ByteColumn, bounds_of, expand
from pravega_serde.columnar.arrays import Int64s
from pravega_serde.errors import SchemaError

__all__ = ["ColumnReader", "column_reader"]


class ColumnReader:
    """Reads columns of events by a plan."""

    __slots__ = ("_read",)

    def __init__(self, node: Node, kind: pa.DataType) -> None:
        self._read = _compile(node, kind)

    def __call__(self, column: pa.BinaryArray) -> Attempt:
        """Values, and the rows that the plain path should look at."""
        cursor = Cursor.of(ByteColumn.of(column))
        values = self._read(cursor)
        cursor.fail_unread()
        return Attempt(values, np.flatnonzero(cursor.bad))


def column_reader(node: Node, kind: pa.DataType) -> ColumnReader | None:
    """The reader of columns for a plan and its Arrow type; None if the plan has to be read by rows."""
    if _has_empty_items(node):
        return None
    try:
        return ColumnReader(node, kind)
    except NotByColumnsError:
        return None


def _has_empty_items(node: Node) -> bool:
    if isinstance(node, ArrayNode):
        return min_size(node.item) == 0 or _has_empty_items(node.item)
    if isinstance(node, MapNode):
        return _has_empty_items(node.value)
    if isinstance(node, RecordNode):
        return any(_has_empty_items(step.node) for step in node.steps)
    return isinstance(node, UnionNode) and any(arm.node is not None and _has_empty_items(arm.node) for arm in node.arms)


def _compile(node: Node, kind: pa.DataType) -> Read:
    return _BUILDERS[type(node)](node, kind)


def _record(node: RecordNode, kind: pa.DataType) -> Read:
    steps: list[tuple[Read, int | None]] = []
    for step in node.steps:
        skipped = step.slot is None
        read_field = _compile_skip(step.node) if skipped else _compile(step.node, kind.field(step.slot).type)
        steps.append((read_field, step.slot))
    defaults = [(slot, _constant(entry, kind.field(slot).type)) for slot, entry in node.defaults]
    fields = list(kind)

    def read(cursor: Cursor) -> pa.Array:
        columns: list[Any] = [None] * len(fields)
        for read_field, slot in steps:
            values = read_field(cursor)
            if slot is not None:
                columns[slot] = values
        for slot, value in defaults:
            columns[slot] = value.take(pa.array(np.zeros(len(cursor), np.int64)))
        if not fields:
            return pa.array([{}] * len(cursor), kind)
        return pa.StructArray.from_arrays(columns, fields=fields)

    return read


def _constant(entry: Any, kind: pa.DataType) -> pa.Array:
    """A field's default, as an array of one."""
    return pa.array([row_reader(plan(entry.type), arrow=True)(encode_default(entry))], kind)


def _compile_skip(node: Node) -> Read:
    """Reads over a value. Bytes are not copied; the rest is read and forgotten."""
    if isinstance(node, Leaf) and node.wire in ("bytes", "fixed"):
        size = node.target.size if isinstance(node.target, Fixed) else None
        return lambda cursor: cursor.spans(size)
    try:
        return _compile(node, arrow_type(node))
    except SchemaError:
        # Recursive: it has no type, though nobody would see it.
        raise NotByColumnsError from None


def _union(node: UnionNode, kind: pa.DataType) -> Read:
    return _members(node, kind) if node.members else _bare(node, kind)


def _bare(node: UnionNode, kind: pa.DataType) -> Read:
    """A union of which the reader sees only values and nulls."""
    arms = [None if arm.node is None else _compile(arm.node, _arm_type(arm.node, kind)) for arm in node.arms]

    def read(cursor: Cursor) -> pa.Array:
        index = _branches(cursor, arms)
        parts, order = [], []
        for branch, read_arm in enumerate(arms):
            rows = np.flatnonzero(index == branch)
            if read_arm is None or not len(rows):
                continue
            if len(rows) == len(cursor):
                return _as(read_arm(cursor), kind)
            parts.append(_as(_read_some(cursor, rows, read_arm), kind))
            order.append(rows)
        return _interleave(parts, order, len(cursor), kind)

    return read


def _members(node: UnionNode, kind: pa.DataType) -> Read:
    """A union of which the reader sees a struct of members."""
    arms: list[Read | None] = []
    for arm in node.arms:
        inner = pa.null() if arm.member is None else kind.field(arm.member).type
        arms.append(None if arm.node is None else _compile(arm.node, inner))
    fields = list(kind)

    def read(cursor: Cursor) -> pa.Array:
        index = _branches(cursor, arms) if node.indexed else np.zeros(len(cursor), np.int64)
        columns = [pa.nulls(len(cursor), entry.type) for entry in fields]
        present = np.zeros(len(cursor), np.bool_)
        for branch, (arm, read_arm) in enumerate(zip(node.arms, arms, strict=True)):
            chosen = index == branch
            if read_arm is None or not chosen.any():
                continue
            values = _read_some(cursor, np.flatnonzero(chosen), read_arm)
            if arm.member is not None:
                present |= chosen
                columns[arm.member] = _either(columns[arm.member], expand(values, chosen), chosen)
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(~present))

    return read


def _branches(cursor: Cursor, arms: list[Read | None]) -> Int64s:
    """Which arm each row takes; -1 for rows that are bad, or take one that the reader does not have."""
    index = cursor.longs()
    known = np.array([arm is not None for arm in arms])
    outside = (index < 0) | (index >= len(arms))
    index[outside] = 0
    cursor.fail(outside | ~known[index])
    index[cursor.bad] = -1
    return index


def _read_some(cursor: Cursor, rows: Int64s, read: Read) -> pa.Array:
    if len(rows) == len(cursor):
        return read(cursor)
    selected = cursor.select(rows)
    values = read(selected)
    cursor.update(rows, selected)
    return values


def _interleave(parts: list[pa.Array], rows: list[Int64s], count: int, kind: pa.DataType) -> pa.Array:
    """Put the values of several selections of rows in place; other rows become null."""
    if not parts:
        return pa.nulls(count, kind)
    place = np.zeros(count, np.int64)
    there = np.zeros(count, np.bool_)
    before = 0
    for part, where in zip(parts, rows, strict=True):
        place[where] = before + np.arange(len(where))
        there[where] = True
        before += len(part)
    if pa.types.is_null(kind):
        return pa.nulls(count)
    return pa.concat_arrays(parts).take(pa.array(place, mask=~there))


def _either(first: pa.Array, second: pa.Array, from_second: Bools) -> pa.Array:
    """Two of the writer's branches can become the same member of the reader."""
    if first.null_count == len(first):
        return second
    index = np.arange(len(first))
    index[from_second] += len(first)
    return pa.concat_arrays([first, second]).take(pa.array(index))


def _arm_type(node: Node, kind: pa.DataType) -> pa.DataType:
    return pa.null() if isinstance(node, Leaf) and node.wire == "null" else kind


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(values), kind) if pa.types.is_null(values.type) else values


def _array(node: ArrayNode, kind: pa.DataType) -> Read:
    read_item = _compile(node.item, kind.value_type)

    def read(cursor: Cursor) -> pa.Array:
        counts, (items,) = _read_items(cursor, [(read_item, kind.value_type)])
        return pa.ListArray.from_arrays(pa.array(bounds_of(counts), pa.int32()), items, type=kind)

    return read


def _map(node: MapNode, kind: pa.DataType) -> Read:
    read_value = _compile(node.value, kind.item_type)

    def read(cursor: Cursor) -> pa.Array:
        counts, (keys, values) = _read_items(cursor, [(Cursor.strings, pa.string()), (read_value, kind.item_type)])
        cursor.fail(_with_repeated_key(counts, keys))
        return pa.MapArray.from_arrays(pa.array(bounds_of(counts), pa.int32()), keys, values, type=kind)

    return read


def _with_repeated_key(counts: Int64s, keys: pa.StringArray) -> Bools:
    """Rows whose map has a key twice: of these, which nobody's map writes, the plain path keeps the last."""
    repeated = np.zeros(len(counts), np.bool_)
    if not len(keys) or counts.max() < 2:
        return repeated
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy()
    rising = codes[1:] > codes[:-1]
    rising[bounds_of(counts[counts > 0])[1:-1] - 1] = True  # from one row to the next
    if not rising.all():  # all rows have the same keys in the same order, mostly
        entries = np.repeat(np.arange(len(counts)), counts) * len(encoded.dictionary) + codes
        entries.sort()
        repeated[entries[1:][entries[1:] == entries[:-1]] // len(encoded.dictionary)] = True
    return repeated


def _read_items(cursor: Cursor, parts: list[tuple[Read, pa.DataType]]) -> tuple[Int64s, list[pa.Array]]:
    """Items of all rows, in rounds: each round reads one more item of every row that has one.

    Gives the number of items of each row, and the items of all rows in order, one array for each part of an item.
    """
    counts = np.zeros(len(cursor), np.int64)
    left = np.zeros(len(cursor), np.int64)
    rows = np.arange(len(cursor))
    owners: list[Int64s] = []
    read: list[list[pa.Array]] = [[] for _ in parts]
    while len(rows := _with_items(cursor, rows, left)):
        if not cursor.budget.allows(len(rows)):
            more = np.zeros(len(cursor), np.bool_)
            more[rows] = True
            cursor.fail(more)
            break
        selected = cursor.select(rows)
        for values, (read_part, _) in zip(read, parts, strict=True):
            values.append(read_part(selected))
        cursor.update(rows, selected)
        owners.append(rows)
        counts[rows] += 1
        left[rows] -= 1
    order = pa.array(np.argsort(np.concatenate([*owners, np.empty(0, np.int64)]), kind="stable"))
    return counts, [_in_order(values, kind, order) for values, (_, kind) in zip(read, parts, strict=True)]


def _in_order(rounds: list[pa.Array], kind: pa.DataType, order: pa.Array) -> pa.Array:
    if not rounds:
        return pa.nulls(0, kind)
    return pa.nulls(len(order)) if pa.types.is_null(kind) else pa.concat_arrays(rounds).take(order)


def _with_items(cursor: Cursor, rows: Int64s, left: Int64s) -> Int64s:
    """Of these rows, those with an item to read: rows at the end of a block start the next, or are done."""
    ended = rows[left[rows] == 0]
    if len(ended):
        selected = cursor.select(ended)
        count = selected.longs()
        sized = np.flatnonzero(count < 0)
        if len(sized):
            # A negative count is followed by the block's size in bytes, for readers that skip it.
            some = selected.select(sized)
            some.longs()
            selected.update(sized, some)
            # The smallest number has no positive: it stays negative, and the row is bad.
            np.negative(count, out=count, where=count < 0)
            selected.fail(count < 0)
        cursor.update(ended, selected)
        left[ended] = count
    return rows[(left[rows] > 0) & ~cursor.bad[rows]]


_BUILDERS: Final[Mapping[type, Callable[[Any, pa.DataType], Read]]] = {
    ArrayNode: _array,
    EnumNode: read_enum,
    Leaf: read_leaf,
    MapNode: _map,
    RecordNode: _record,
    UnionNode: _union,
}
