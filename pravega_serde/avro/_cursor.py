"""Where every event of a column has been read to, and how all of them are read on by one numpy operation.

Nothing here raises for bad bytes. A row that shows any is marked, put at its own end, where it can do no harm, and left
to the plain path, which says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.columnar import ByteColumn, RoundBudget, cut
from pravega_serde.columnar.arrays import SLACK, Int64s, UInt8s, UInt64s, cut_text
from pravega_serde.columnar.varints import from_zigzag, squeeze, squeeze_long

__all__ = ["Cursor"]

Bools = npt.NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Cursor:
    """The positions of some rows. Each reading method moves them all, and gives a value for each.

    Positions never pass a row's end, and the slack behind the data is two words, so no read can leave it.
    """

    data: UInt8s
    words: UInt64s
    position: Int64s
    ends: Int64s
    bad: Bools
    budget: RoundBudget

    @classmethod
    def of(cls, column: ByteColumn) -> Cursor:
        """All rows of a column, at their starts."""
        bad = np.zeros(len(column.starts), np.bool_)
        return cls(column.data, column.words, column.starts.copy(), column.ends, bad, RoundBudget())

    def __len__(self) -> int:
        return len(self.position)

    def select(self, rows: Int64s) -> Cursor:
        """A cursor of some rows only; give it back to :meth:`update` when it has read."""
        return Cursor(self.data, self.words, self.position[rows], self.ends[rows], self.bad[rows], self.budget)

    def update(self, rows: Int64s, selected: Cursor) -> None:
        """Take over where the selected rows have been read to."""
        self.position[rows] = selected.position
        self.bad[rows] = selected.bad

    def fail(self, wrong: Bools) -> None:
        """Leave rows to the plain path."""
        if wrong.any():
            self.bad |= wrong
            self.position = np.where(wrong, self.ends, self.position)

    def skip(self, count: Int64s | int) -> None:
        """Move on by a number of bytes that is not negative."""
        self.position = self.position + count
        self.fail(self.position > self.ends)

    def longs(self) -> Int64s:
        """The next number."""
        value: UInt64s
        first = self.data[self.position]
        if len(first) == 0 or first.max() < 0x80:
            self.skip(1)
            return from_zigzag(first.astype(np.uint64))
        words = self.words[self.position]
        value, size = squeeze(words)
        longer = np.flatnonzero(size == 0)
        if len(longer):
            value[longer], size[longer] = squeeze_long(words[longer], self.words[self.position[longer] + 8])
            self.fail(size == 0)
        self.skip(size)
        return from_zigzag(value)

    def fixed_words(self, size: int) -> UInt64s:
        """The next ``size`` bytes, at most eight; what stands above them in the word is arbitrary."""
        words = self.words[self.position]
        self.skip(size)
        return words

    def spans(self, size: int | None = None) -> tuple[Int64s, Int64s]:
        """Starts and ends of the next bytes: of so many, or of as many as the number before them says."""
        lengths = self.longs() if size is None else np.full(len(self), size)
        self.fail((lengths < 0) | (lengths > self.ends - self.position))
        starts = self.position
        self.position = starts + lengths
        if self.bad.any():
            self.position = np.where(self.bad, self.ends, self.position)
        return starts, self.position

    def binaries(self, size: int | None = None) -> pa.BinaryArray:
        """The bytes themselves."""
        return cut(self.data, *self.spans(size))

    def strings(self) -> pa.StringArray:
        """Bytes as text; rows that are not UTF-8 fail."""
        starts, ends = self.spans()
        values, wrong = cut_text(self.data, starts, ends)
        if wrong is not None:
            self.fail(wrong)
        return values

    def fail_unread(self) -> None:
        """At the end of the events: only zeros may be left of them."""
        left = self.position < self.ends
        if not left.any():
            return
        filled = np.zeros(len(self.data) - SLACK + 1, np.int64)
        np.cumsum(self.data[:-SLACK] != 0, out=filled[1:])
        self.fail(left & (filled[self.ends] > filled[self.position]))
