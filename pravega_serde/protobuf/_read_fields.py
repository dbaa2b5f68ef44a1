"""How the columnar path reads one field: from the tag to the parts of its values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pravega_serde.columnar.arrays import Int64s
from pravega_serde.protobuf._cursor import Cursor, Tag, varints_at
from pravega_serde.protobuf._gather import Items, Last, Parts
from pravega_serde.protobuf._numbers import FIXED32, FIXED64, LENGTH, NUMBERS, VARINT, Number
from pravega_serde.protobuf._plan import FieldPlan

__all__ = ["FieldReader", "field_reader"]


@dataclass(frozen=True, slots=True)
class FieldReader:
    """Reads a field wherever it comes next."""

    tag: Tag
    read: Callable[[Cursor], Parts]
    packed: Tag | None
    read_packed: Callable[[Cursor], tuple[Int64s, Parts]] | None
    """Items of each row, and the items of all."""

    @property
    def tags(self) -> list[int]:
        """Numbers of the tags that it reads."""
        return [_number(tag) for tag in (self.tag, self.packed) if tag is not None]

    def take_last(self, cursor: Cursor, rows: Int64s | None, found: Last) -> None:
        """Read one value in all rows that have the tag next. ``rows`` are those of the cursor; None: it has all."""
        at = cursor.at(self.tag)
        count = np.count_nonzero(at)
        if count == 0:
            return
        if count == len(cursor):
            cursor.move(cursor.position + self.tag.size)
            found.put(rows, self.read(cursor))
            return
        places, selected = _select(cursor, at, self.tag)
        parts = self.read(selected)
        cursor.update(places, selected)
        found.put(places if rows is None else rows[places], parts)

    def take_items(self, cursor: Cursor, rows: Int64s | None, found: Items) -> None:
        """Read items, packed or not, for as long as any row has one next."""
        while True:
            count = self._take_one(cursor, rows, found) + self._take_packed(cursor, rows, found)
            if count == 0 or not cursor.budget.allows(count):
                # Rows that are not read to their end are left to the plain path.
                return

    def _take_one(self, cursor: Cursor, rows: Int64s | None, found: Items) -> int:
        at = cursor.at(self.tag)
        if not at.any():
            return 0
        places, selected = _select(cursor, at, self.tag)
        parts = self.read(selected)
        cursor.update(places, selected)
        found.put(places if rows is None else rows[places], parts)
        return len(places)

    def _take_packed(self, cursor: Cursor, rows: Int64s | None, found: Items) -> int:
        if self.packed is None or self.read_packed is None:
            return 0
        at = cursor.at(self.packed)
        if not at.any():
            return 0
        places, selected = _select(cursor, at, self.packed)
        counts, parts = self.read_packed(selected)
        cursor.update(places, selected)
        found.put(np.repeat(places if rows is None else rows[places], counts), parts)
        return len(places)


def _number(tag: Tag) -> int:
    return sum((byte & 0x7F) << 7 * index for index, byte in enumerate(tag.data))


def _select(cursor: Cursor, at: np.ndarray[tuple[int], np.dtype[np.bool_]], tag: Tag) -> tuple[Int64s, Cursor]:
    places = np.flatnonzero(at)
    selected = cursor.select(places)
    selected.move(selected.position + tag.size)
    return places, selected


def field_reader(field: FieldPlan) -> FieldReader:
    """The reader of a field's values."""
    number = NUMBERS.get(field.kind)
    if number is None:
        return FieldReader(Tag.of(field.number, LENGTH), Cursor.lengths, None, None)
    packed = Tag.of(field.number, LENGTH) if field.label == "repeated" else None
    return FieldReader(Tag.of(field.number, number.wire), _single(number), packed, _packed(number))


_SIZES = {FIXED32: 4, FIXED64: 8}


def _single(number: Number) -> Callable[[Cursor], Parts]:
    decode = number.decode
    if number.wire == VARINT:
        return lambda cursor: (decode(cursor.varints()),)
    size = _SIZES[number.wire]
    return lambda cursor: (decode(cursor.fixed(size)),)


def _packed(number: Number) -> Callable[[Cursor], tuple[Int64s, Parts]]:
    if number.wire == VARINT:
        return lambda cursor: _packed_varints(number, cursor)
    return lambda cursor: _packed_fixed(number, cursor, _SIZES[number.wire])


def _within(starts: Int64s, counts: Int64s, step: int) -> Int64s:
    """Positions of the items of all rows, ``step`` bytes apart."""
    before = np.cumsum(counts) - counts
    index = np.arange(int(counts.sum())) - np.repeat(before, counts)
    positions: Int64s = np.repeat(starts, counts) + index * step
    return positions


def _packed_fixed(number: Number, cursor: Cursor, size: int) -> tuple[Int64s, Parts]:
    starts, ends = cursor.lengths()
    cursor.fail((ends - starts) % size != 0)
    counts = (ends - starts) // size
    return counts, (number.decode(cursor.words[_within(starts, counts, size)]),)


def _packed_varints(number: Number, cursor: Cursor) -> tuple[Int64s, Parts]:
    starts, ends = cursor.lengths()
    lengths = ends - starts
    # The last byte of a run must end a number; a row where it does not counts as empty.
    open_ended = (lengths > 0) & (cursor.data[ends - 1] >= 0x80)
    cursor.fail(open_ended)
    lengths = np.where(open_ended, 0, lengths)
    positions = _within(starts, lengths, 1)
    last = cursor.data[positions] < 0x80
    counts = _sum_runs(last, lengths)
    first = np.empty(len(last), np.bool_)
    first[:1] = True
    first[1:] = last[:-1]
    values, sizes = varints_at(cursor.words, positions[first])
    if (sizes == 0).any():
        cursor.fail(_sum_runs(sizes == 0, counts) > 0)
    return counts, (number.decode(values),)


def _sum_runs(flags: np.ndarray[tuple[int], np.dtype[np.bool_]], lengths: Int64s) -> Int64s:
    """How many flags of each row's run are set."""
    before = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=before[1:])
    ends = np.cumsum(lengths)
    sums: Int64s = before[ends] - before[ends - lengths]
    return sums
