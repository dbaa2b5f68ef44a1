"""Column reader: reads all events of a column at once, with a tree of closures compiled from the plan.

If events take different paths (another branch of a union), the rows of each path are selected, read and put back.
``items`` documents how the items of lists are read. All schemas are supported, except those with items of zero bytes:
the plain path reads those and limits their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.avro.items import ItemReader, Read
from pravega_serde.avro.resolve import (
    ArrayNode,
    EnumNode,
    Leaf,
    MapNode,
    Node,
    RecordNode,
    UnionNode,
    arrow_type,
    min_size,
)
from pravega_serde.avro.rows import MEMORY, default_array
from pravega_serde.avro.schema import Fixed, Primitive
from pravega_serde.avro.values import INT64_MAX, UUID_PATTERN, is_long_decimal
from pravega_serde.columnar import (
    Attempt,
    ByteColumn,
    Cursor,
    FallbackError,
    MemoryBudget,
    bools_of,
    expand,
    list_offsets,
    number_column,
    select,
    text_column,
)
from pravega_serde.columnar.arrays import Bools, Int64s, UInt64s, with_repeated_key
from pravega_serde.columnar.types import is_family
from pravega_serde.errors import SchemaError


class FastReader:
    """Reader of columns of events with a plan."""

    __slots__ = ("_read",)

    def __init__(self, node: Node, kind: pa.DataType) -> None:
        self._read = _compile(node, kind)

    def __call__(self, column: pa.BinaryArray) -> Attempt:
        """Return the values, and the rows left for the plain path."""
        opened = ByteColumn.of(column)
        cursor = Cursor.of(opened, MemoryBudget(MEMORY.of(len(opened.data))))
        values = self._read(cursor)
        cursor.end_zeros()
        cursor.fail_unfinished()
        return Attempt(values, np.flatnonzero(cursor.bad))


def fast_path(node: Node, kind: pa.DataType) -> FastReader | None:
    """Return the fast path for a plan and its Arrow type, or None if the plan must be read by rows."""
    if _has_empty_items(node):
        return None
    try:
        return FastReader(node, kind)
    except FallbackError:
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
    defaults = [(slot, default_array(entry, kind.field(slot).type)) for slot, entry in node.defaults]
    fields = list(kind)

    def read(cursor: Cursor) -> pa.Array:
        columns: list[Any] = [None] * len(fields)
        for read_field, slot in steps:
            values = read_field(cursor)
            if slot is not None:
                columns[slot] = values
        for slot, value in defaults:
            columns[slot] = select(value, np.zeros(len(cursor), np.int64))
        if not fields:
            return pa.array([{}] * len(cursor), kind)
        return pa.StructArray.from_arrays(columns, fields=fields)

    return read


def _compile_skip(node: Node) -> Read:
    """Compile the skipping of a value. Bytes are not copied; other values are read and dropped."""
    if isinstance(node, Leaf) and node.wire in ("bytes", "fixed"):
        size = _size_of(node)
        return lambda cursor: cursor.spans(_lengths(cursor, size))
    try:
        return _compile(node, arrow_type(node))
    except SchemaError:
        # A recursive value has no type, although the column is dropped.
        raise FallbackError from None


def _union(node: UnionNode, kind: pa.DataType) -> Read:
    return _members(node, kind) if node.members else _bare(node, kind)


def _bare(node: UnionNode, kind: pa.DataType) -> Read:
    """Compile a union that the reader sees as values and nulls."""
    known = np.array([arm.node is not None for arm in node.arms])
    arms = [
        (branch, _compile(arm.node, kind))
        for branch, arm in enumerate(node.arms)
        if arm.node is not None and not _is_null(arm.node)
    ]

    def read(cursor: Cursor) -> pa.Array:
        index = _branches(cursor, known)
        parts, order = [], []
        for branch, read_arm in arms:
            rows = np.flatnonzero(index == branch)
            if len(rows) == len(cursor):
                return read_arm(cursor)
            if len(rows):
                parts.append(_read_some(cursor, rows, read_arm))
                order.append(rows)
        return _interleave(parts, order, len(cursor), kind)

    return read


def _members(node: UnionNode, kind: pa.DataType) -> Read:
    """Compile a union that the reader sees as a struct of members."""
    arms: list[Read | None] = []
    for arm in node.arms:
        inner = pa.null() if arm.member is None else kind.field(arm.member).type
        arms.append(None if arm.node is None else _compile(arm.node, inner))
    known = np.array([arm is not None for arm in arms])
    fields = list(kind)

    def read(cursor: Cursor) -> pa.Array:
        index = _branches(cursor, known) if node.indexed else np.zeros(len(cursor), np.int64)
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
        return pa.StructArray.from_arrays(columns, fields=fields, mask=number_column(~present))

    return read


def _branches(cursor: Cursor, known: Bools) -> Int64s:
    """Return the arm's index of each row, or -1 for malformed rows and for arms that the reader does not have."""
    index = cursor.longs()
    outside = (index < 0) | (index >= len(known))
    if outside.any() or not known.all():
        index[outside] = 0
        cursor.fail(outside | ~known[index])
    if cursor.bad.any():
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
    """Put the values of several selections of rows in place. Other rows become null."""
    if not parts:
        return pa.nulls(count, kind)
    there = np.zeros(count, np.bool_)
    for where in rows:
        there[where] = True
    if len(parts) == 1:
        return expand(parts[0], there)
    place = np.zeros(count, np.int64)
    before = 0
    for part, where in zip(parts, rows, strict=True):
        place[where] = np.arange(before, before + len(where))
        before += len(part)
    return select(pa.concat_arrays(parts), place, valid=there)


def _either(first: pa.Array, second: pa.Array, from_second: Bools) -> pa.Array:
    """Combine the values of one member from two branches of the writer."""
    if first.null_count == len(first):
        return second
    index = np.arange(len(first))
    index[from_second] += len(first)
    return select(pa.concat_arrays([first, second]), index)


def _is_null(node: Node) -> bool:
    return isinstance(node, Leaf) and node.wire == "null"


def _array(node: ArrayNode, kind: pa.DataType) -> Read:
    read_items = ItemReader(node, [(_compile(node.item, kind.value_type), kind.value_type)])

    def read(cursor: Cursor) -> pa.Array:
        counts, (items,) = read_items(cursor)
        return pa.ListArray.from_arrays(list_offsets(counts), items, type=kind)

    return read


def _map(node: MapNode, kind: pa.DataType) -> Read:
    read_value = _compile(node.value, kind.item_type)
    read_entries = ItemReader(node, [(_strings, pa.string()), (read_value, kind.item_type)])

    def read(cursor: Cursor) -> pa.Array:
        counts, (keys, values) = read_entries(cursor)
        cursor.fail(with_repeated_key(counts, keys))  # the plain path keeps the last entry
        return pa.MapArray.from_arrays(list_offsets(counts), keys, values, type=kind)

    return read


def _leaf(node: Leaf, kind: pa.DataType) -> Read:
    """Compile the reading of a primitive or fixed."""
    if node.wire == "null":
        # The reader may have a union with null here. The nulls then have its type.
        return lambda cursor: pa.nulls(len(cursor), kind)
    if node.wire in ("int", "long"):
        return _integer(node, kind)
    if node.wire in ("bytes", "string", "fixed"):
        return _bytes(node, kind)
    return _FIXED_WIDTH[node.wire if node.wire != "float" or kind == pa.float32() else "float to double"]


def _bytes(node: Leaf, kind: pa.DataType) -> Read:
    target, size = node.target, _size_of(node)
    if is_family(kind, "decimal"):
        if node.wire == "string":
            raise FallbackError
        return lambda cursor: _decimals(cursor, size, kind.precision, kind.scale)
    logical = target.logical
    if logical is not None and logical.name == "uuid" and kind == pa.string():
        return _uuid
    if is_long_decimal(logical):
        raise FallbackError
    if kind == pa.string():
        return _strings
    if node.wire == "string":
        # Bytes are read from a string, which must still be a valid string.
        return lambda cursor: _strings(cursor).cast(pa.binary())
    return lambda cursor: cursor.binaries(_lengths(cursor, size))


def _size_of(node: Leaf) -> int | None:
    """Return the bytes of a fixed, or None for a value that stores its length."""
    return node.target.size if isinstance(node.target, Fixed) else None


def _lengths(cursor: Cursor, size: int | None) -> Int64s:
    return cursor.longs() if size is None else np.full(len(cursor), size)


def _strings(cursor: Cursor) -> pa.StringArray:
    return cursor.strings(cursor.longs())


def _uuid(cursor: Cursor) -> pa.Array:
    text = _strings(cursor)
    cursor.fail(~bools_of(pc.match_substring_regex(text, UUID_PATTERN)))
    return text


def _boolean(cursor: Cursor) -> pa.Array:
    byte = cursor.data[cursor.position]
    cursor.skip(1)
    cursor.fail(byte > 1)
    return number_column(byte == 1)


def _float(cursor: Cursor) -> pa.Array:
    return number_column(cursor.fixed(4).astype(np.uint32).view(np.float32))


def _float_to_double(cursor: Cursor) -> pa.Array:
    floats = cursor.fixed(4).astype(np.uint32).view(np.float32)
    # A signaling NaN counts as any other NaN.
    with np.errstate(invalid="ignore"):
        return number_column(floats.astype(np.float64))


def _double(cursor: Cursor) -> pa.Array:
    return number_column(np.ascontiguousarray(cursor.fixed(8)).view(np.float64))


_FIXED_WIDTH: Final[Mapping[str, Read]] = {
    "boolean": _boolean,
    "double": _double,
    "float": _float,
    "float to double": _float_to_double,
}


#: Units of a day.
_DAY: Final = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}


def _integer(node: Leaf, kind: pa.DataType) -> Read:
    narrow = node.wire == "int"
    assert isinstance(node.target, Primitive)
    logical = node.target.logical.name if node.target.logical else ""
    millis = logical in ("timestamp-millis", "local-timestamp-millis")
    day = _DAY.get(logical)
    number = (
        kind.to_pandas_dtype()
        if kind in (pa.float32(), pa.float64())
        else np.int32
        if kind.bit_width == 32
        else np.int64
    )

    def read(cursor: Cursor) -> pa.Array:
        values = cursor.longs()
        if narrow:
            cursor.fail((values < -0x80000000) | (values > 0x7FFFFFFF))
        if millis:
            cursor.fail((values > INT64_MAX // 1000) | (values < -(INT64_MAX // 1000)))
            values *= 1000
        if day is not None:
            cursor.fail((values < 0) | (values >= day))
        return number_column(values.astype(number, copy=False), kind)

    return read


def _enum(node: EnumNode, kind: pa.DataType) -> Read:
    """Compile the reading of a symbol."""
    known = np.array([symbol is not None for symbol in node.symbols], np.bool_)
    symbols = text_column([symbol or "" for symbol in node.symbols], kind)

    def read(cursor: Cursor) -> pa.Array:
        index = cursor.longs()
        outside = (index < 0) | (index >= len(known))
        index[outside] = 0
        cursor.fail(outside | ~known[index])
        return select(symbols, index)

    return read


def _decimals(cursor: Cursor, size: int | None, precision: int, scale: int) -> pa.Array:
    """Read decimals in two's complement of any size.

    Rows with too many digits or more than sixteen bytes fail.
    """
    starts, ends = cursor.spans(_lengths(cursor, size))
    lengths = ends - starts
    cursor.fail((lengths < 1) | (lengths > 16))
    lengths = np.where(cursor.bad, 1, lengths)
    starts = np.where(cursor.bad, 0, starts)
    high, low = _from_big_endian(cursor.words, starts, lengths)
    cursor.fail(~within(high, low, 10**precision))
    both = np.empty((len(low), 2), np.uint64)
    both[:, 0], both[:, 1] = low, high.view(np.uint64)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(low), [None, pa.py_buffer(both)])


def _from_big_endian(words: UInt64s, starts: Int64s, lengths: Int64s) -> tuple[Int64s, UInt64s]:
    """Return the high and low halves of numbers of 1 to 16 bytes."""
    first = words[starts].byteswap().view(np.int64)
    short = lengths <= 8
    # The first (up to eight) bytes, shifted down with their sign: the lower half, or the upper one of longer numbers.
    head = first >> (8 * (8 - np.where(short, lengths, lengths - 8)))
    if short.all():
        return head >> 63, head.view(np.uint64)
    tail = words[np.where(short, starts, starts + lengths - 8)].byteswap()
    return np.where(short, head >> 63, head), np.where(short, head.view(np.uint64), tail)


def within(high: Int64s, low: UInt64s, limit: int) -> Bools:
    """Return True for each number strictly between -limit and limit."""
    return _less(high, low, limit) & ~_less(high, low, 1 - limit)


def _less(high: Int64s, low: UInt64s, bound: int) -> Bools:
    # 128-bit numbers compare by their signed upper halves, and, where these are equal, by the unsigned lower ones.
    top, bottom = bound >> 64, np.uint64(bound & 0xFFFFFFFFFFFFFFFF)
    less: Bools = (high < top) | ((high == top) & (low < bottom))
    return less


_BUILDERS: Final[Mapping[type, Callable[[Any, pa.DataType], Read]]] = {
    ArrayNode: _array,
    EnumNode: _enum,
    Leaf: _leaf,
    MapNode: _map,
    RecordNode: _record,
    UnionNode: _union,
}
