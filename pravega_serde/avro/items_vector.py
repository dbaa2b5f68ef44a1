"""Vectorized search for the items of many lists or maps. Each round finds one more item of each list.

It reads only the lengths of values, not the values, with the tables of ``items_scalar``. A round costs as much for ten
rows as for a hundred. If few rows have items left, those are walked one by one. So the cost depends on the number of
items, not on the longest list.

Four lists of texts, sorted by their number of items. A round moves all rows that have an item left by one item::

    row 2   06 | 02 a | 02 b | 02 c | 00        06: a block of 3 items (zigzag), 02: a length of 1, 00: the end
    row 0   04 | 04 de| 02 f | 00
    row 3   04 | 02 g | 02 h | 00               round 1: rows 2, 0, 3     starts of a, de, g
    row 1   00                                  round 2: rows 2, 0, 3     starts of b, f, h
                                                walk:    row 2            start of c, item by item in Python

A list inside an item is found by a separate :class:`ItemFinder`, which leaves only the position after it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np

from pravega_serde.avro.items_scalar import Items, Layout, Part
from pravega_serde.avro.rows import WRONG
from pravega_serde.columnar import Cursor
from pravega_serde.columnar.arrays import Int64s, UInt8s, UInt64s, bounds_of
from pravega_serde.columnar.cursor import varints_at

#: Function that moves positions of values past the values, in place. It reads only up to the ends of their rows. A
#: malformed value may move to any position after its start.
Stride = Callable[[Cursor, Int64s, Int64s], Int64s]

#: Costs: items that a walk finds in the time of a round, the fixed cost of a walked event in items, and the fixed cost
#: of all rounds in rounds.
_ROUND: Final = 96
_EVENT: Final = 8
_BEFORE: Final = 2

#: Maximum items of a walked list. The plain path reads longer ones.
_LONGEST: Final = 1 << 17

#: Maximum depth of nested lists. Each level finds all inner lists once more. The plain path reads deeper ones.
_DEEPEST: Final = 8


class ItemFinder:
    """Finder of the start of each item of lists, or of the keys and values of maps."""

    def __init__(self, items: Items) -> None:
        self._walk = items.walk
        self._stride = _stride_of(items.layout)
        self._too_deep = items.depth() > _DEEPEST

    def __call__(self, cursor: Cursor) -> tuple[Int64s, Int64s]:
        """Return the number of items of each row, and their start positions, row by row.

        The cursor moves past the lists.
        """
        left = _next_block(cursor)
        if self._too_deep:
            cursor.fail(left > 0)
            left[:] = 0
        rows = np.flatnonzero(left)
        if not len(rows):
            return left, left[:0]
        # In each round, the rows with items left come first.
        rows = rows[np.argsort(-left[rows], kind="stable")]
        lengths = left[rows]
        walked = _fewest(lengths)
        strided, first = np.zeros(len(left), np.int64), left[:0]
        if walked < len(rows):
            strided = np.minimum(left, lengths[walked])
            first = self._by_strides(cursor, rows, strided)
            left -= strided
            rows = rows[walked:]
            heads = cursor.select(rows)
            left[rows] = _next_block(heads)
            cursor.update(rows, heads)
        rows = np.flatnonzero(left)
        if not len(rows):
            return strided, first
        lengths, then = self._by_walks(cursor, rows, left[rows])
        counts = strided.copy()
        counts[rows] += lengths
        if not len(first):
            return counts, then
        # The walked items come after the others of their rows.
        parts = zip(np.split(first, np.cumsum(strided)[rows]), np.split(then, np.cumsum(lengths)), strict=True)
        return counts, np.concatenate([part for both in parts for part in both])

    def _by_strides(self, cursor: Cursor, rows: Int64s, counts: Int64s) -> Int64s:
        """Return the start positions of ``counts`` items of each row, and move the rows past them.

        The rows are sorted by count, largest first.
        """
        starts = np.empty(int(counts.sum()), np.int64)
        place, lengths = (bounds_of(counts)[:-1])[rows], counts[rows]
        block = cursor.select(rows)
        at, ends = block.position, block.ends
        for active in np.searchsorted(-lengths, -np.arange(lengths[0])).tolist():
            starts[place[:active]] = at[:active]
            place[:active] += 1
            at[:active] = self._stride(cursor, at[:active], ends[:active])
        block.fail(at >= ends)  # the end of the list is missing
        cursor.update(rows, block)
        return starts

    def _by_walks(self, cursor: Cursor, rows: Int64s, left: Int64s) -> tuple[Int64s, Int64s]:
        """Return the number of items left in this block and the next ones of each row, and their start positions."""
        starts = array("q")
        lengths: list[int] = []
        stops: list[int] = []
        memory = cursor.data.data
        active = cursor.select(rows)
        for at, end, count in zip(active.position.tolist(), active.ends.tolist(), left.tolist(), strict=True):
            before, stop = len(starts), -1
            with suppress(*WRONG):
                if count <= _LONGEST:
                    stop = self._walk(memory[:end], at, count, starts)
            if stop < 0 or len(starts) - before > _LONGEST:
                del starts[before:]
                stop = -1
            stops.append(stop)
            lengths.append(len(starts) - before)
        position = np.array(stops, np.int64)
        active.move(position)
        active.fail(position < 0)
        cursor.update(rows, active)
        return np.array(lengths, np.int64), np.frombuffer(starts, np.int64)


def _fewest(lengths: Int64s) -> int:
    """Return the number of rows, the longest first, that are cheaper to walk. The others are read in rounds."""
    # Walking more rows takes longer than all rounds.
    most = min(len(lengths), _ROUND * (int(lengths[0]) + _BEFORE) // _EVENT)
    longest = lengths[: most + 1]
    rounds = longest + _BEFORE
    if most == len(lengths):
        longest, rounds = np.append(longest, 0), np.append(rounds, 0)
    rows = np.arange(most + 1)
    walked = bounds_of(lengths[:most]) - rows * longest  # their items after the last round
    return int(np.argmin(_ROUND * rounds + walked + _EVENT * rows))


def _next_block(cursor: Cursor) -> Int64s:
    """Return the number of items in each row's next block: 0 at the end of the list, and for malformed rows."""
    count = cursor.longs()
    sized = np.flatnonzero(count < 0)
    if len(sized):
        # A negative count is followed by the block's size in bytes, for readers that skip it.
        some = cursor.select(sized)
        some.longs()
        cursor.update(sized, some)
        # The smallest number has no positive counterpart. It stays negative, and the row is malformed.
        np.negative(count, out=count, where=count < 0)
        cursor.fail(count < 0)
    cursor.fail(count > cursor.ends - cursor.position)  # every item has at least one byte
    if cursor.bad.any():
        count[cursor.bad] = 0
    return count


def _stride_of(layout: Layout) -> Stride:
    """Return the stride over consecutive values."""
    head, parts = layout
    steps = [_step(part) for part in parts]

    def stride(cursor: Cursor, at: Int64s, ends: Int64s) -> Int64s:
        at = np.minimum(at + head, ends) if head else at
        for step in steps:
            at = np.minimum(step(cursor, at, ends), ends)
        return at

    return stride


def _step(part: Part) -> Stride:
    if part.arms:
        return _union(part)
    rest = _list(part.items) if part.items is not None else _numbers if part.is_number else _texts
    sizes, more = np.array(part.sizes), part.more

    def step(cursor: Cursor, at: Int64s, ends: Int64s) -> Int64s:
        size = sizes.take(cursor.data[at])
        if np.count_nonzero(size) < len(size):
            (rows,) = (size == 0).nonzero()
            size[rows] = rest(cursor, at[rows], ends[rows]) - at[rows] + more
        moved: Int64s = at + size
        return moved

    return step


def _numbers(cursor: Cursor, at: Int64s, _: Int64s) -> Int64s:
    return at + varints_at(cursor.words, at)[1]


def _texts(cursor: Cursor, at: Int64s, ends: Int64s) -> Int64s:
    value, size = varints_at(cursor.words, at)
    # An odd number is a negative length.
    length = np.where(value & np.uint64(1), np.uint64(len(cursor.data)), value >> np.uint64(1))
    length = np.minimum(length, ends.view(np.uint64))
    behind: Int64s = at + size + length.view(np.int64)
    return behind


def _union(part: Part) -> Stride:
    arms = [(2 * branch, _stride_of(arm)) for branch, arm in enumerate(part.arms) if arm != (0, [])]
    more = part.more

    def step(cursor: Cursor, at: Int64s, ends: Int64s) -> Int64s:
        branch, at = _doubled(cursor, at)
        for doubled, stride in arms:
            (rows,) = (branch == doubled).nonzero()
            if len(rows):
                at[rows] = stride(cursor, at[rows], ends[rows])
        return at + more

    return step


def _doubled(cursor: Cursor, at: Int64s) -> tuple[UInt8s | UInt64s, Int64s]:
    """Return twice the index of each branch, and the positions after it."""
    first = cursor.data[at]
    if not len(first) or first.max() < 0x80:
        return first, at + 1
    value, size = varints_at(cursor.words, at)
    return value, at + size


def _list(items: Items) -> Stride:
    """Return the stride over a list or map inside an item."""
    find = ItemFinder(items)

    def stride(cursor: Cursor, at: Int64s, ends: Int64s) -> Int64s:
        inside = cursor.inside(at, ends)
        find(inside)
        return inside.position

    return stride
