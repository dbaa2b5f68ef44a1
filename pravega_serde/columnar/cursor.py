"""Cursor: where every event of a column has been read to, and how all of them are read on by one numpy operation.

Nothing here raises for bad bytes. A row that shows any is marked, put at its own end, where it can do no harm, and left
to the plain path, which says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.arrays import Bools, ByteColumn, Int64s, UInt8s, UInt64s, cut, cut_text
from pravega_serde.columnar.limits import Budget
from pravega_serde.columnar.varints import from_short_zigzag, from_zigzag, squeeze, squeeze_long

#: Bytes of a varint of 64 bits.
_LONGEST_VARINT: Final = 10


@dataclass(slots=True, eq=False)
class Cursor:
    """Positions of some rows. Each reading method moves them all, and gives a value for each.

    Positions never pass a row's end, and the slack behind the data is two words, so no read can leave it.
    """

    data: UInt8s
    words: UInt64s
    position: Int64s
    ends: Int64s
    bad: Bools
    budget: Budget
    shared: bool = True
    """Whether others hold the array of positions, so that it must not be changed."""
    _next: UInt8s | None = field(default=None)

    @classmethod
    def of(cls, column: ByteColumn, budget: Budget) -> Cursor:
        """All rows of a column, at their starts."""
        bad = np.zeros(len(column.starts), np.bool_)
        return cls(column.data, column.words, column.starts, column.ends, bad, budget)

    def __len__(self) -> int:
        return len(self.position)

    def select(self, rows: Int64s) -> Cursor:
        """Cursor of some rows only; give it back to :meth:`update` when it has read."""
        places = self.position[rows], self.ends[rows], self.bad[rows]
        return Cursor(self.data, self.words, *places, self.budget, shared=False)

    def update(self, rows: Int64s, selected: Cursor) -> None:
        """Take over where the selected rows have been read to."""
        position = self.position.copy() if self.shared else self.position
        position[rows] = selected.position
        self.bad[rows] = selected.bad
        self.move(position)

    def part(self, first: int, stop: int) -> Cursor:
        """Cursor of neighbouring rows; it marks bad ones here, too."""
        position, ends, bad = self.position[first:stop], self.ends[first:stop], self.bad[first:stop]
        return Cursor(self.data, self.words, position, ends, bad, self.budget)

    def inside(self, starts: Int64s, ends: Int64s) -> Cursor:
        """Cursor of parts of the events, to read what is in them."""
        bad = np.zeros(len(starts), np.bool_)
        return Cursor(self.data, self.words, starts, ends, bad, self.budget)

    def unfinished(self) -> Int64s:
        """Rows that are not at their end."""
        return np.flatnonzero(self.position < self.ends)

    def fail(self, wrong: Bools) -> None:
        """Leave rows to the plain path."""
        if wrong.any():
            self.bad |= wrong
            self.move(np.where(wrong, self.ends, self.position))

    def move(self, position: Int64s, *, shared: bool = False) -> None:
        """Read on from there."""
        self.position, self.shared = position, shared
        self._next = None

    def skip(self, count: Int64s | int) -> None:
        """Move on by a number of bytes that is not negative."""
        self.move(self.position + count)
        self.fail(self.position > self.ends)

    def next_bytes(self) -> UInt8s:
        """Byte where each row is; arbitrary for rows at their end."""
        if self._next is None:
            self._next = self.data[self.position]
        return self._next

    def varints(self, longest: int = _LONGEST_VARINT) -> UInt64s:
        """Next varint, as 64 bits; rows where it has more bytes than ``longest`` fail."""
        first = self.next_bytes()
        if len(first) == 0 or first.max() < 0x80:
            self.skip(1)
            return first.astype(np.uint64)
        value, size = varints_at(self.words, self.position)
        if longest < _LONGEST_VARINT or size.min() == 0:
            self.fail((size == 0) | (size > longest))
        self.skip(size)
        return value

    def longs(self) -> Int64s:
        """Next varint as a signed number, of which it is the zigzag form."""
        first = self.next_bytes()
        if len(first) and first.max() < 0x80:
            self.skip(1)
            return from_short_zigzag(first)
        return from_zigzag(self.varints())

    def fixed(self, size: int) -> UInt64s:
        """Next ``size`` bytes, at most eight; what stands above them in the word is arbitrary."""
        words = self.words[self.position]
        self.skip(size)
        return words

    def spans(self, lengths: Int64s) -> tuple[Int64s, Int64s]:
        """Starts and ends of the next bytes, of these lengths; those of rows that fail are empty."""
        self.fail((lengths < 0) | (lengths > self.ends - self.position))
        starts = self.position
        stops = starts + lengths
        if self.bad.any():
            stops = np.where(self.bad, self.ends, stops)
            starts = np.where(self.bad, self.ends, starts)
        self.move(stops, shared=True)
        return starts, stops

    def binaries(self, lengths: Int64s) -> pa.BinaryArray:
        """Next bytes, of these lengths."""
        return cut(self.data, *self.spans(lengths))

    def strings(self, lengths: Int64s) -> pa.StringArray:
        """Next bytes as text; rows that are not UTF-8 fail."""
        values, wrong = cut_text(self.data, *self.spans(lengths))
        if wrong is not None:
            self.fail(wrong)
        return values

    def fail_unfinished(self) -> None:
        """Leave rows to the plain path that are not at their end."""
        self.fail(self.position < self.ends)

    def end_zeros(self) -> None:
        """Put rows at their end of which only zeros are left: some of Java's writers pad."""
        rows = self.unfinished()
        rows = rows[self.data[self.position[rows]] == 0]
        if not len(rows):
            return
        bounds = np.empty(2 * len(rows), np.int64)
        bounds[0::2], bounds[1::2] = self.position[rows], self.ends[rows]
        padded = rows[np.bitwise_or.reduceat(self.data, bounds)[::2] == 0]
        position = self.position.copy()
        position[padded] = self.ends[padded]
        self.move(position)


def varints_at(words: UInt64s, position: Int64s) -> tuple[UInt64s, Int64s]:
    """Varints at some positions, and their sizes; a size of 0 is that of an invalid one, or of more than 64 bits."""
    first = words[position]
    value, size = squeeze(first)
    longer = np.flatnonzero(size == 0)
    if len(longer):
        value[longer], size[longer] = squeeze_long(first[longer], words[position[longer] + 8])
    return value, size
