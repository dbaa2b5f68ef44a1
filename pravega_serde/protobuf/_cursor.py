"""Where every event of a column has been read to, and how all of them are read on by one numpy operation.

Nothing here raises for bad bytes. A row that shows any is marked, put at its own end, where it can do no harm, and left
to the plain path, which says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from pravega_serde.columnar import RoundBudget
from pravega_serde.columnar.arrays import Int64s, UInt8s, UInt64s
from pravega_serde.columnar.varints import squeeze, squeeze_long

__all__ = ["LONGEST_LENGTH", "Bools", "Cursor", "Tag", "varints_at"]

#: Bytes of a length, or a tag; Google's parser takes no more.
LONGEST_LENGTH: Final = 5

Bools = npt.NDArray[np.bool_]

_U: Final = np.uint64


@dataclass(frozen=True, slots=True)
class Tag:
    """A field's number and wire type as they stand in an event."""

    size: int
    word: int
    mask: int

    @classmethod
    def of(cls, number: int, wire: int) -> Tag:
        """The tag, in as few bytes as it takes."""
        left, word, size = number << 3 | wire, 0, 0
        while left > 0x7F:
            word |= (left & 0x7F | 0x80) << 8 * size
            left >>= 7
            size += 1
        return cls(size + 1, word | left << 8 * size, (1 << 8 * (size + 1)) - 1)

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return self.word.to_bytes(self.size, "little")


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
    shared: bool = True
    """Whether others hold the array of positions, so that it must not be changed."""
    _next: UInt8s | None = field(default=None)

    def __len__(self) -> int:
        return len(self.position)

    def select(self, rows: Int64s) -> Cursor:
        """A cursor of some rows only; give it back to :meth:`update` when it has read."""
        places = self.position[rows], self.ends[rows], self.bad[rows]
        return Cursor(self.data, self.words, *places, self.budget, shared=False)

    def update(self, rows: Int64s, selected: Cursor) -> None:
        """Take over where the selected rows have been read to."""
        position = self.position.copy() if self.shared else self.position
        position[rows] = selected.position
        self.bad[rows] = selected.bad
        self.move(position)

    def spans(self, starts: Int64s, ends: Int64s) -> Cursor:
        """A cursor of parts of the events, to read what is in them."""
        return Cursor(self.data, self.words, starts.copy(), ends, np.zeros(len(starts), np.bool_), self.budget)

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
        """The byte where each row is; arbitrary for rows at their end."""
        if self._next is None:
            self._next = self.data[self.position]
        return self._next

    def at(self, tag: Tag) -> Bools:
        """Which rows have a field of this tag next."""
        if tag.size == 1:
            found: Bools = self.next_bytes() == tag.word
        else:
            found = self.next_bytes() == (tag.word & 0xFF)
            if not found.any():
                return found
            found = (self.words[self.position] & _U(tag.mask)) == tag.word
        # Behind a row's end stands the next row's first byte.
        if found.any():
            found &= self.position + (tag.size - 1) < self.ends
        return found

    def varints(self, longest: int = 10) -> UInt64s:
        """The next varint, as 64 bits; rows where it has more bytes than that fail."""
        first = self.next_bytes()
        if len(first) == 0 or first.max() < 0x80:
            self.skip(1)
            return first.astype(_U)
        value, size = varints_at(self.words, self.position)
        self.fail((size == 0) | (size > longest))
        self.skip(size)
        return value

    def fixed(self, size: int) -> UInt64s:
        """The next ``size`` bytes, at most eight; what stands above them in the word is arbitrary."""
        words = self.words[self.position]
        self.skip(size)
        return words

    def lengths(self) -> tuple[Int64s, Int64s]:
        """Starts and ends of the next bytes, as many as the number before them says."""
        lengths = self.varints(LONGEST_LENGTH).view(np.int64)
        self.fail((lengths < 0) | (lengths > self.ends - self.position))
        starts = self.position
        stops = starts + lengths
        if self.bad.any():
            stops = np.where(self.bad, self.ends, stops)
            starts = np.where(self.bad, self.ends, starts)
        self.move(stops, shared=True)
        return starts, stops

    def end_zeros(self) -> None:
        """Put rows at their end of which only zeros are left."""
        rows = np.flatnonzero((self.next_bytes() == 0) & (self.position < self.ends))
        if not len(rows):
            return
        bounds = np.empty(2 * len(rows), np.int64)
        bounds[0::2], bounds[1::2] = self.position[rows], self.ends[rows]
        padded = rows[np.bitwise_or.reduceat(self.data, bounds)[::2] == 0]
        position = self.position.copy()
        position[padded] = self.ends[padded]
        self.move(position)


def varints_at(words: UInt64s, position: Int64s) -> tuple[UInt64s, Int64s]:
    """Varints at some positions, and their sizes; 0 for what is none, or has more than 64 bits."""
    first = words[position]
    value, size = squeeze(first)
    longer = np.flatnonzero(size == 0)
    if len(longer):
        value[longer], size[longer] = squeeze_long(first[longer], words[position[longer] + 8])
    return value, size
