"""Cursor: the read position of every event of a column; one numpy operation reads on in all of them.

Nothing here raises for bad bytes. A row with bad bytes is marked and moved to its own end, where it is harmless. It is
left to the plain path, which reports the fault.

The events of a column are one run of bytes, and a cursor is three numbers for each of them::

    data      0A 03 61 62 63 10 07 | 0A 01 78 10 96 01 | 0A FF 79 | 00 ... 00  slack: two words
    row       0                    | 1                 | 2
    position  0                      7                   13
    ends      7                      13                  16

    varints() reads "next varint" in rows 0, 1, 2 at once: data[position], one gather. Only where a byte has its top
    bit set, a second gather reads the word at the position, and shifts squeeze its groups of seven bits together.
    A length that leaves the row (FF in row 2) makes the row bad: its position becomes its end, and it stays there.
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
    """Positions of some rows. Each reading method moves them all, and returns a value for each.

    Positions never pass a row's end, and the slack after the data is two words, so no read can leave it.
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
        """Return a cursor of all rows of a column, at their starts."""
        bad = np.zeros(len(column.starts), np.bool_)
        return cls(column.data, column.words, column.starts, column.ends, bad, budget)

    def __len__(self) -> int:
        return len(self.position)

    def select(self, rows: Int64s) -> Cursor:
        """Return a cursor of some rows only; pass it to :meth:`update` after it has read."""
        places = self.position[rows], self.ends[rows], self.bad[rows]
        return Cursor(self.data, self.words, *places, self.budget, shared=False)

    def update(self, rows: Int64s, selected: Cursor) -> None:
        """Adopt the positions of the selected rows."""
        position = self.position.copy() if self.shared else self.position
        position[rows] = selected.position
        self.bad[rows] = selected.bad
        self.move(position)

    def part(self, first: int, stop: int) -> Cursor:
        """Return a cursor of neighboring rows; rows that it marks as bad are marked here, too."""
        position, ends, bad = self.position[first:stop], self.ends[first:stop], self.bad[first:stop]
        return Cursor(self.data, self.words, position, ends, bad, self.budget)

    def inside(self, starts: Int64s, ends: Int64s) -> Cursor:
        """Return a cursor of parts of the events, to read their contents."""
        bad = np.zeros(len(starts), np.bool_)
        return Cursor(self.data, self.words, starts, ends, bad, self.budget)

    def unfinished(self) -> Int64s:
        """Return the rows that are not at their end."""
        return np.flatnonzero(self.position < self.ends)

    def fail(self, wrong: Bools) -> None:
        """Leave rows to the plain path."""
        if wrong.any():
            self.bad |= wrong
            self.move(np.where(wrong, self.ends, self.position))

    def move(self, position: Int64s, *, shared: bool = False) -> None:
        """Move to the given positions."""
        self.position, self.shared = position, shared
        self._next = None

    def skip(self, count: Int64s | int) -> None:
        """Move on by a number of bytes that is not negative."""
        self.move(self.position + count)
        self.fail(self.position > self.ends)

    def next_bytes(self) -> UInt8s:
        """Return the byte at the position of each row; arbitrary for rows at their end."""
        if self._next is None:
            self._next = self.data[self.position]
        return self._next

    def varints(self, longest: int = _LONGEST_VARINT) -> UInt64s:
        """Read the next varint, as 64 bits; rows fail if it has more bytes than ``longest``."""
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
        """Read the next varint, a zigzag number, as a signed number."""
        first = self.next_bytes()
        if len(first) and first.max() < 0x80:
            self.skip(1)
            return from_short_zigzag(first)
        return from_zigzag(self.varints())

    def fixed(self, size: int) -> UInt64s:
        """Read the next ``size`` bytes, at most eight; the higher bytes in the word are arbitrary."""
        words = self.words[self.position]
        self.skip(size)
        return words

    def spans(self, lengths: Int64s) -> tuple[Int64s, Int64s]:
        """Return the starts and ends of the next bytes, of these lengths; empty for rows that fail."""
        self.fail((lengths < 0) | (lengths > self.ends - self.position))
        starts = self.position
        stops = starts + lengths
        if self.bad.any():
            stops = np.where(self.bad, self.ends, stops)
            starts = np.where(self.bad, self.ends, starts)
        self.move(stops, shared=True)
        return starts, stops

    def binaries(self, lengths: Int64s) -> pa.BinaryArray:
        """Read the next bytes, of these lengths."""
        return cut(self.data, *self.spans(lengths))

    def strings(self, lengths: Int64s) -> pa.StringArray:
        """Read the next bytes as text; rows that are not UTF-8 fail."""
        values, wrong = cut_text(self.data, *self.spans(lengths))
        if wrong is not None:
            self.fail(wrong)
        return values

    def fail_unfinished(self) -> None:
        """Leave rows that are not at their end to the plain path."""
        self.fail(self.position < self.ends)

    def end_zeros(self) -> None:
        """Move rows with only zeros left to their end: some of Java's writers pad."""
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
    """Return the varints at some positions, and their sizes; size 0 if invalid or of more than 64 bits."""
    first = words[position]
    value, size = squeeze(first)
    longer = np.flatnonzero(size == 0)
    if len(longer):
        value[longer], size[longer] = squeeze_long(first[longer], words[position[longer] + 8])
    return value, size
