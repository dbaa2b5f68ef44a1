"""Columns: reading all events of a column at once.

Writers put fields in the order of their numbers. One pass over the fields reads whole columns, because it reads each
field in all rows that have it next. Rows in another order, or with unknown fields, need further passes. The plain path
reads events that Protobuf allows but hardly any writer produces: a message in two parts, two members of a oneof,
groups.

Fields 1 (string) and 2 (repeated number) of three events, where ``·`` is the position of a row before each step::

    row 0   ·1:"ab" 2:7 2:9      step 1, tag of field 1 next?   rows 0 and 1 have it: read both strings
    row 1   ·1:"c"  2:5          step 2, tag of field 2 next?   rows 0, 1 and 2: read one number each
    row 2   ·2:3    1:"d"        again, until none has it       row 0: read 9
                                 second pass, only row 2        field 1: read "d"

What is read is stored by row: the last value of a single field (:class:`Last`), or pairs of row and item
(:class:`Items`), which one sort by row turns into lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import (
    Attempt,
    ByteColumn,
    Cursor,
    RoundBudget,
    bools_of,
    cut,
    expand,
    list_offsets,
    nothing,
    number_column,
    numbers_of,
    select,
    text_column,
    valid_rows,
)
from pravega_serde.columnar.arrays import Bools, Int64s, UInt64s, cut_text
from pravega_serde.columnar.cursor import varints_at
from pravega_serde.protobuf.plan import EnumPlan, FieldPlan, MessagePlan
from pravega_serde.protobuf.wire import FIXED32, FIXED64, LENGTH, LONGEST_LENGTH, NUMBERS, VARINT, Number, Tag

#: Numbers of items as one array, or starts and ends of their bytes as two.
Parts = tuple[npt.NDArray[Any], ...]


#: Returns values without nulls, and the mask of bad ones (None: none). The cursor has the bytes.
Build = Callable[[Parts, Cursor], tuple[pa.Array, Bools | None]]

#: Rows, of events or of items, that are read together.
_ROWS_AT_ONCE: Final = 65_536

#: Larger events are left to the plain path: it needs less memory for lists, and is not slower.
LONGEST: Final = 1 << 18

#: Maximum number of passes. A row that is not at its end after them is left to the plain path.
MAX_PASSES: Final = 16

_U: Final = np.uint64


def fast_path(plan: MessagePlan, kind: pa.DataType) -> FastReader | None:
    """Return the fast path for a message type and its Arrow type; None for JSON, which is read by rows."""
    return None if plan.shape == "json" else FastReader(plan, kind)


class FastReader:
    """Reader of columns of events of one message type."""

    __slots__ = ("_message",)

    def __init__(self, plan: MessagePlan, kind: pa.DataType) -> None:
        self._message = MessageReader(plan, kind, top=True)

    def __call__(self, column: pa.BinaryArray) -> Attempt:
        """Return the values, and the rows left to the plain path."""
        budget = RoundBudget()
        pieces = [self._piece(column.slice(at, _ROWS_AT_ONCE), budget) for at in range(0, len(column), _ROWS_AT_ONCE)]
        suspects = [at * _ROWS_AT_ONCE + piece.suspects for at, piece in enumerate(pieces)]
        values = pieces[0].values if len(pieces) == 1 else pa.concat_arrays([piece.values for piece in pieces])
        return Attempt(values, np.concatenate(suspects))

    def _piece(self, column: pa.BinaryArray, budget: RoundBudget) -> Attempt:
        opened = ByteColumn.of(column)
        cursor = Cursor.of(opened, budget)
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
    """Type of numbers; None for values that have starts and ends."""

    def empty(self, starts: Int64s) -> Parts:
        """Return the parts of rows where nothing has been read.

        Absent bytes are at the start of their row, to keep their order.
        """
        return (starts, starts) if self.dtype is None else (np.zeros(len(starts), self.dtype),)


def _inner_types(plan: MessagePlan, kind: pa.DataType) -> list[pa.DataType]:
    """Return the Arrow types of a message's fields, in the order of their numbers."""
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
    return _Field(plan, _field_reader(plan), _builder(plan, item), kind, None if number is None else number.dtype)


def _builder(plan: FieldPlan, kind: pa.DataType) -> Build:
    if plan.message is None:
        return _leaf_builder(plan.kind, plan.enum)
    if plan.message.shape == "json" or plan.kind == "group":
        return lambda parts, cursor: (pa.nulls(len(parts[0]), kind), np.ones(len(parts[0]), np.bool_))
    read = MessageReader(plan.message, kind)

    def build(parts: Parts, cursor: Cursor) -> tuple[pa.Array, Bools | None]:
        inner = cursor.inside(*parts)
        pieces = [read(inner.part(at, at + _ROWS_AT_ONCE)) for at in range(0, max(len(inner), 1), _ROWS_AT_ONCE)]
        return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces), inner.bad

    return build


def _finish(field: _Field, found: Last | Items, cursor: Cursor, starts: Int64s) -> pa.Array:
    if isinstance(found, Last):
        return _finish_single(field, found, cursor, starts)
    owners, parts = found.ordered(field.empty(starts[:0]))
    values, bad = field.build(parts, cursor)
    _fail(cursor, owners, bad)
    if field.plan.label == "repeated":
        return pa.ListArray.from_arrays(_offsets(owners, len(cursor)), values, type=field.kind)
    keys, items = values.flatten()
    if items.null_count:
        # A message that is left out is an empty one; a number that is not in the enum is left out with its entry.
        _fail(cursor, owners, ~valid_rows(items))
        items = items.fill_null("") if pa.types.is_string(items.type) else items
    return _map_of(owners, keys, items, len(cursor), field.kind)


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
    if field.plan.label == "implicit" or there.all():
        return values
    return pc.if_else(number_column(there), values, nothing(values.type))


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


def _at(cursor: Cursor, tag: Tag) -> Bools:
    """Return the rows that have a field of this tag next."""
    if tag.size == 1:
        found: Bools = cursor.next_bytes() == tag.word
    else:
        found = cursor.next_bytes() == (tag.word & 0xFF)
        if not found.any():
            return found
        found = (cursor.words[cursor.position] & _U(tag.mask)) == tag.word
    # After a row's end comes the next row's first byte.
    if found.any():
        found &= cursor.position + (tag.size - 1) < cursor.ends
    return found


def _delimited(cursor: Cursor) -> tuple[Int64s, Int64s]:
    """Read a length, and return the starts and ends of that number of next bytes."""
    parts = _short_runs(cursor, cursor.position, True)
    if parts is None:
        return cursor.spans(cursor.varints(LONGEST_LENGTH).view(np.int64))
    cursor.move(parts[1], shared=True)
    return parts


def _short_runs(cursor: Cursor, position: Int64s, at: Bools | bool) -> tuple[Int64s, Int64s] | None:
    """Return the starts and ends of the bytes after their lengths at a position; empty in rows not ``at`` one.

    Return None if any length has more than one byte, or passes the end of its row.
    """
    lengths = cursor.data[position] * at
    if np.count_nonzero(lengths >= 0x80):
        return None
    starts = position + at
    ends = starts + lengths
    return None if np.count_nonzero(ends > cursor.ends) else (starts, ends)


class MessageReader:
    """Reader of messages of one type. It returns a struct for each message.

    For entries of a map, it returns key and value.
    """

    __slots__ = ("_fields", "_kind", "_oneofs", "_order", "_shape", "_tags", "_top", "_unknown_matter")

    def __init__(self, plan: MessagePlan, kind: pa.DataType, *, top: bool = False) -> None:
        self._kind, self._top, self._shape, self._order = kind, top, plan.shape, plan.order
        self._unknown_matter = plan.unknown_matter
        self._fields = [_field(f, inner) for f, inner in zip(plan.fields, _inner_types(plan, kind), strict=True)]
        self._tags = np.array([tag for f in self._fields for tag in f.reader.tags], _U)
        names = {f.oneof for f in plan.fields if f.oneof is not None}
        self._oneofs = [[i for i, f in enumerate(plan.fields) if f.oneof == name] for name in sorted(names)]

    def __call__(self, cursor: Cursor) -> pa.Array:
        """Return one value for each row of the cursor; rows that fail have arbitrary values."""
        columns = self.columns(cursor)
        return _shaped(self._shape, cursor, [columns[index] for index in self._order], self._kind)

    def columns(self, cursor: Cursor) -> list[pa.Array]:
        """Return the values of the fields, in the order of their numbers."""
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
        cursor.fail_unfinished()

    def _pass(self, cursor: Cursor, rows: Int64s | None, found: list[Any]) -> None:
        """Read every field once, in order."""
        for f, what in zip(self._fields, found, strict=True):
            if isinstance(what, Items):
                f.reader.take_items(cursor, np.arange(len(cursor)) if rows is None else rows, what)
            else:
                f.reader.take_last(cursor, rows, what)

    def _skip_unknown(self, cursor: Cursor) -> None:
        """Skip all next fields that the reader does not know."""
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
    """Return the mask of tags that are malformed, of groups, or longer than necessary."""
    wire, longest = tags & _U(7), tags >= _U(1 << 32)
    least = np.ones(len(tags), np.int64)
    for bits in (7, 14, 21, 28):
        least += tags >= _U(1 << bits)
    # Field number 0, more than 32 bits, needless bytes, or a wire type of groups.
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


#: Skips a value of a wire type.
_SKIPS: Final[list[tuple[int, Callable[[Cursor], object]]]] = [
    (VARINT, Cursor.varints),
    (FIXED64, lambda cursor: cursor.skip(8)),
    (LENGTH, _delimited),
    (FIXED32, lambda cursor: cursor.skip(4)),
]


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Reader of a field at any position in a message."""

    tag: Tag
    read: Callable[[Cursor], Parts]
    packed: Tag | None
    read_packed: Callable[[Cursor], tuple[Int64s, Parts]] | None
    """Returns the number of items of each row, and the items of all."""

    @property
    def tags(self) -> list[int]:
        """Return the numbers of the tags that it reads."""
        return [_tag_number(tag) for tag in (self.tag, self.packed) if tag is not None]

    def take_last(self, cursor: Cursor, rows: Int64s | None, found: Last) -> None:
        """Read one value in all rows that have the tag next.

        ``rows`` are the rows of the cursor, or None if it has all.
        """
        at = _at(cursor, self.tag)
        count = np.count_nonzero(at)
        if count == 0:
            return
        if count == len(cursor):
            cursor.move(cursor.position + self.tag.size)
            found.put(rows, self.read(cursor))
            return
        if rows is None and self.read is _delimited and 2 * count > len(cursor):
            # To leave a few rows out costs more than to read them as empty.
            runs = _short_runs(cursor, cursor.position + at * self.tag.size, at)
            if runs is not None:
                cursor.move(runs[1], shared=True)
                found.parts, found.there = runs, at
                return
        places, selected = _select(cursor, at, self.tag)
        parts = self.read(selected)
        cursor.update(places, selected)
        found.put(places if rows is None else rows[places], parts)

    def take_items(self, cursor: Cursor, rows: Int64s, found: Items) -> None:
        """Read items, packed or not, for as long as any row has one next."""
        while True:
            count = self._take_singly(cursor, rows, found) + self._take_packed(cursor, rows, found)
            if self.packed is None or count == 0 or not cursor.budget.allows(count):
                # Rows that are not read to their end are left to the plain path.
                return

    def _take_singly(self, cursor: Cursor, rows: Int64s, found: Items) -> int:
        """Read items that are not packed, and return their number.

        Each step reads only the rows that had an item in the step before.
        """
        left, reading, total = np.arange(len(cursor)), cursor, 0
        while True:
            at = _at(reading, self.tag)
            count = int(np.count_nonzero(at))
            if count == 0 or not (reading is cursor or cursor.budget.allows(count)):
                return total
            places, reading = _select(reading, at, self.tag)
            left = left[places]
            parts = self.read(reading)
            cursor.update(left, reading)
            found.put(rows[left], parts)
            total += count

    def _take_packed(self, cursor: Cursor, rows: Int64s, found: Items) -> int:
        if self.packed is None or self.read_packed is None:
            return 0
        at = _at(cursor, self.packed)
        if not at.any():
            return 0
        places, selected = _select(cursor, at, self.packed)
        counts, parts = self.read_packed(selected)
        cursor.update(places, selected)
        found.put(np.repeat(rows[places], counts), parts)
        return len(places)


def _tag_number(tag: Tag) -> int:
    return sum((byte & 0x7F) << 7 * index for index, byte in enumerate(tag.data))


def _select(cursor: Cursor, at: Bools, tag: Tag) -> tuple[Int64s, Cursor]:
    places = np.flatnonzero(at)
    selected = cursor.select(places)
    selected.move(selected.position + tag.size)
    return places, selected


def _field_reader(field: FieldPlan) -> FieldReader:
    """Return the reader of a field's values."""
    number = NUMBERS.get(field.kind)
    if number is None:
        return FieldReader(Tag.of(field.number, LENGTH), _delimited, None, None)
    packed = Tag.of(field.number, LENGTH) if field.label == "repeated" else None
    return FieldReader(Tag.of(field.number, number.wire), _read_single(number), packed, _read_packed(number))


_SIZES = {FIXED32: 4, FIXED64: 8}


def _read_single(number: Number) -> Callable[[Cursor], Parts]:
    decode = number.decode
    if number.wire == VARINT:
        return lambda cursor: (decode(cursor.varints()),)
    size = _SIZES[number.wire]
    return lambda cursor: (decode(cursor.fixed(size)),)


def _read_packed(number: Number) -> Callable[[Cursor], tuple[Int64s, Parts]]:
    if number.wire == VARINT:
        return lambda cursor: _packed_varints(number, cursor)
    return lambda cursor: _packed_fixed(number, cursor, _SIZES[number.wire])


def _within(starts: Int64s, counts: Int64s, step: int) -> Int64s:
    """Return the positions of the items of all rows, ``step`` bytes apart."""
    # Number of each item in its row: its number among all items, less the items of the rows before.
    before = np.cumsum(counts) - counts
    index = np.arange(int(counts.sum())) - np.repeat(before, counts)
    positions: Int64s = np.repeat(starts, counts) + index * step
    return positions


def _packed_fixed(number: Number, cursor: Cursor, size: int) -> tuple[Int64s, Parts]:
    starts, ends = _delimited(cursor)
    cursor.fail((ends - starts) % size != 0)
    counts = (ends - starts) // size
    return counts, (number.decode(cursor.words[_within(starts, counts, size)]),)


def _packed_varints(number: Number, cursor: Cursor) -> tuple[Int64s, Parts]:
    starts, ends = _delimited(cursor)
    lengths = ends - starts
    # The last byte of a run must end a number; a row where it does not counts as empty.
    open_ended = (lengths > 0) & (cursor.data[ends - 1] >= 0x80)
    cursor.fail(open_ended)
    lengths = np.where(open_ended, 0, lengths)
    positions = _within(starts, lengths, 1)
    last = cursor.data[positions] < 0x80
    counts = _sum_runs(last, lengths)
    # Each number begins after the last byte of another one.
    first = np.empty(len(last), np.bool_)
    first[:1] = True
    first[1:] = last[:-1]
    values, sizes = varints_at(cursor.words, positions[first])
    if (sizes == 0).any():
        cursor.fail(_sum_runs(sizes == 0, counts) > 0)
    return counts, (number.decode(values),)


def _sum_runs(flags: Bools, lengths: Int64s) -> Int64s:
    """Return the number of true flags in each row's run."""
    # Flags set before each place; the difference between a run's end and start is the number within it.
    before = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=before[1:])
    ends = np.cumsum(lengths)
    sums: Int64s = before[ends] - before[ends - lengths]
    return sums


class Last:
    """Last value of each row, the one that counts in Protobuf. Values of absent rows are ``empty``."""

    __slots__ = ("_empty", "parts", "there", "twice")

    def __init__(self, empty: Parts) -> None:
        self._empty = empty
        self.parts: Parts | None = None
        self.there: Bools | None = None
        """Rows that have a value; None: all, or none where there are no parts."""
        self.twice: Bools | None = None
        """Rows that had a value already when another came."""

    def put(self, rows: Int64s | None, parts: Parts) -> None:
        """Store the values of some rows, or of all."""
        if self.parts is None and rows is None:
            self.parts = parts
            return
        count = len(self._empty[0])
        there = self.presence()
        if self.parts is None:
            self.parts = self._empty
        rows = np.arange(count) if rows is None else rows
        if there[rows].any():
            self.twice = np.zeros(count, np.bool_) if self.twice is None else self.twice
            self.twice[rows[there[rows]]] = True
        self.parts = tuple(part.copy() for part in self.parts)
        for mine, new in zip(self.parts, parts, strict=True):
            mine[rows] = new
        there[rows] = True
        self.there = there

    def presence(self) -> Bools:
        """Return the rows that have a value."""
        if self.there is not None:
            return self.there
        return np.full(len(self._empty[0]), self.parts is not None)


class Items:
    """All items of each row, in the order of reading."""

    __slots__ = ("_count", "_owners", "_parts")

    def __init__(self, count: int) -> None:
        self._count = count
        self._owners: list[Int64s] = []
        self._parts: list[Parts] = []

    def put(self, rows: Int64s, parts: Parts) -> None:
        """Append the next items of some rows; a row may occur several times."""
        self._owners.append(rows)
        self._parts.append(parts)

    def ordered(self, empty: Parts) -> tuple[Int64s, Parts]:
        """Return the row of each item, ascending, and the items."""
        if not self._owners:
            return np.empty(0, np.int64), empty
        if len(self._owners) == 1:
            return self._owners[0], self._parts[0]
        owners = np.concatenate(self._owners)
        order = np.argsort(owners, kind="stable")
        return owners[order], tuple(np.concatenate(part)[order] for part in zip(*self._parts, strict=True))


def _leaf_builder(kind: str, enum: EnumPlan | None) -> Build:
    """Return the builder of values that are not messages."""
    if enum is not None:
        return _Enum(enum)
    if kind == "string":
        return lambda parts, cursor: cut_text(cursor.data, *parts)
    if kind == "bytes":
        return lambda parts, cursor: (cut(cursor.data, *parts), None)
    to_arrow = NUMBERS[kind].to_arrow
    return lambda parts, cursor: (to_arrow(parts[0]), None)


class _Enum:
    """Names of numbers. A number without a name is its own text, or is bad if the enum is closed."""

    __slots__ = ("_closed", "_names", "_numbers")

    def __init__(self, enum: EnumPlan) -> None:
        self._numbers = np.array(sorted(enum.names), np.int32)
        self._names = text_column([enum.names[number] for number in sorted(enum.names)])
        self._closed = enum.closed

    def __call__(self, parts: Parts, cursor: Cursor) -> tuple[pa.Array, Bools | None]:
        numbers = parts[0]
        index = np.searchsorted(self._numbers, numbers)
        index[index == len(self._numbers)] = 0
        unknown = self._numbers[index] != numbers
        if not unknown.any():
            return select(self._names, index), None
        if self._closed:
            return select(self._names, index), unknown
        others, places = np.unique(numbers[unknown], return_inverse=True)
        index[unknown] = len(self._numbers) + places
        names = pa.concat_arrays([self._names, text_column([str(number) for number in others.tolist()])])
        return select(names, index), None


def _offsets(owners: Int64s, count: int) -> pa.Array:
    return list_offsets(np.bincount(owners, minlength=count))


def _map_of(owners: Int64s, keys: pa.Array, values: pa.Array, count: int, kind: pa.DataType) -> pa.Array:
    """Return the maps of all rows from their entries, in the order of their keys."""
    owners, keys, values = by_key(owners, keys, values)
    return pa.MapArray.from_arrays(_offsets(owners, count), keys, values, type=kind)


def by_key(owners: Int64s, keys: pa.Array, values: pa.Array) -> tuple[Int64s, pa.Array, pa.Array]:
    """Order entries by each row's keys. Of entries with the same key the last one counts."""
    if len(keys) < 2 or _ascending(owners, keys):
        return owners, keys, values
    entries = pa.table([number_column(owners), keys, number_column(np.arange(len(keys)))], ["row", "key", "place"])
    order = entries.sort_by([("row", "ascending"), ("key", "ascending"), ("place", "ascending")])
    row, key, place = (column.combine_chunks() for column in order.columns)
    same = pc.and_(pc.equal(row[:-1], row[1:]), pc.equal(key[:-1], key[1:]))
    last = np.append(~bools_of(same), True)
    chosen = place.filter(number_column(last))
    return owners[numbers_of(chosen)], keys.take(chosen), values.take(chosen)


def _ascending(owners: Int64s, keys: pa.Array) -> bool:
    """True if each key of a row is greater than the one before."""
    if pa.types.is_boolean(keys.type):
        keys = keys.cast(pa.int8())
    above = bools_of(pc.less(keys[:-1], keys[1:]))
    return bool((above | (owners[:-1] < owners[1:])).all())


_MICROS: Final = 1_000_000
#: Seconds whose microseconds surely fit 64 bits.
_MOST_SECONDS: Final = (1 << 63) // _MICROS - 3000


def _instants(cursor: Cursor, columns: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Return timestamps and durations: seconds and nanoseconds as microseconds.

    The rest is dropped, as Java divides.
    """
    seconds, nanos = map(numbers_of, columns)
    cursor.fail((seconds > _MOST_SECONDS) | (seconds < -_MOST_SECONDS))
    micros = np.where(nanos < 0, -(-nanos.astype(np.int64) // 1000), nanos // 1000)
    seconds = np.where(cursor.bad, 0, seconds)
    return number_column(seconds * _MICROS + micros, kind)


def _struct(cursor: Cursor, columns: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if not columns:
        return pa.array([{}] * len(cursor), kind)
    return pa.StructArray.from_arrays(columns, fields=list(kind))


_SHAPED: Final[Mapping[str, Callable[[Cursor, list[pa.Array], pa.DataType], pa.Array]]] = {
    "duration": _instants,
    "message": _struct,
    "timestamp": _instants,
    "wrapper": lambda cursor, columns, kind: columns[0],
}


def _shaped(shape: str, cursor: Cursor, columns: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Return the columns of a message in the form of its shape."""
    return _SHAPED[shape](cursor, columns, kind)
