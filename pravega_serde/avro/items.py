"""Items: reading what the lists or maps of all rows hold, which are of different lengths.

Many rows are read in rounds, one more item of each. A round costs as much for ten rows as for some hundreds: when few
have items left, a walk finds where all of these begin, and they are read at once. So the number of items counts, not
that of the longest list.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa

from pravega_serde.avro.resolve import ArrayNode, MapNode
from pravega_serde.avro.rows import MEMORY, item_weight
from pravega_serde.avro.walk import WRONG, walk_of
from pravega_serde.columnar import Cursor, number_column
from pravega_serde.columnar.arrays import Bools, Int64s

__all__ = ["ItemReader", "Read"]

#: Reads the next value of each row.
Read = Callable[[Cursor], pa.Array]

#: Items that a walk finds in the time that a round takes, and for how many it counts that an event is walked at all.
_ROUND: Final = 384
_EVENT: Final = 8

#: Items of a list that are read at once, each with some hundred bytes of numpy's; the plain path reads longer lists.
_LONGEST: Final = 1 << 17


class ItemReader:
    """Reads the items of lists, or the keys and values of maps, in parts: one for lists, two for maps."""

    def __init__(self, node: ArrayNode | MapNode, parts: Sequence[tuple[Read, pa.DataType]]) -> None:
        """``parts`` read one part of an item each, in order, and have its type."""
        self._parts = parts
        self._walk = walk_of(node)
        self._weight = item_weight(node)

    def __call__(self, cursor: Cursor) -> tuple[Int64s, list[pa.Array]]:
        """Number of items of each row, and the items of all rows in order, one array for each part."""
        left = _next_block(cursor)
        rows = np.flatnonzero((left > 0) & ~cursor.bad)
        active, left = cursor.select(rows), left[rows]
        owners: list[Int64s] = []
        read: list[list[pa.Array]] = [[] for _ in self._parts]
        while not _few(left) and cursor.budget.allows(self._weight * len(rows)):
            owners.append(rows)
            self._read(active, read)
            left -= 1
            ended = np.flatnonzero(left == 0)
            if not len(ended) and not active.bad.any():
                continue
            heads = active.select(ended)
            left[ended] = _next_block(heads)
            active.update(ended, heads)
            gone = (left == 0) | active.bad
            cursor.update(rows[gone], active.select(np.flatnonzero(gone)))
            more = np.flatnonzero(~gone)
            rows, left, active = rows[more], left[more], active.select(more)
        if len(rows):
            owner, items = self._walked(active, left)
            self._read(items, read)
            active.fail(_marked(owner[items.bad], len(active)))
            cursor.update(rows, active)
            owners.append(rows[owner])
        owner = np.concatenate([*owners, np.empty(0, np.int64)])
        return np.bincount(owner, minlength=len(cursor)), self._in_order(read, owner)

    def _read(self, items: Cursor, read: list[list[pa.Array]]) -> None:
        """Read one item of each row."""
        for values, (read_part, _) in zip(read, self._parts, strict=True):
            values.append(read_part(items))

    def _walked(self, cursor: Cursor, left: Int64s) -> tuple[Int64s, Cursor]:
        """Row of each item that the rows have left, and a cursor of these items; the rows are put behind them."""
        starts = array("q")
        lengths: list[int] = []
        stops: list[int] = []
        memory = memoryview(cursor.data)  # type: ignore[arg-type]
        for at, end, count in zip(cursor.position.tolist(), cursor.ends.tolist(), left.tolist(), strict=True):
            before, stop = len(starts), -1
            with suppress(*WRONG):
                if count <= _LONGEST:
                    stop = self._walk(memory[:end], at, count, starts)
            length = len(starts) - before
            if stop < 0 or length > _LONGEST or self._weight * length > MEMORY.of(end - at):
                del starts[before:]
                stop, length = -1, 0
            stops.append(stop)
            lengths.append(length)
        position = np.array(stops, np.int64)
        failed = position < 0
        if not cursor.budget.allows(self._weight * len(starts)):
            failed[:], lengths = True, [0] * len(failed)
            starts = array("q")
        cursor.move(position)
        cursor.fail(failed)
        owner = np.repeat(np.arange(len(cursor)), lengths)
        return owner, cursor.inside(*_bounded(np.frombuffer(starts, np.int64), cursor.ends[owner], owner))

    def _in_order(self, rounds: list[list[pa.Array]], owner: Int64s) -> list[pa.Array]:
        """Parts of the items in the order of the rows that own them."""
        kinds = [kind for _, kind in self._parts]
        if len(rounds[0]) < 2:
            return [values[0] if values else pa.nulls(0, kind) for values, kind in zip(rounds, kinds, strict=True)]
        order = number_column(np.argsort(owner, kind="stable"))
        return [
            pa.nulls(len(order)) if pa.types.is_null(kind) else pa.concat_arrays(values).take(order)
            for values, kind in zip(rounds, kinds, strict=True)
        ]


def _bounded(starts: Int64s, ends: Int64s, owner: Int64s) -> tuple[Int64s, Int64s]:
    """Starts of items, and where each ends at the latest: at the next one of its row, else at the row's end.

    So the bytes of bad items, which are put at their ends, do not lie behind those of the next ones.
    """
    followed = np.flatnonzero(owner[1:] == owner[:-1])
    ends[followed] = starts[followed + 1]
    return starts, ends


def _few(left: Int64s) -> bool:
    """Whether rows with so many items each are better walked than read in rounds."""
    if not len(left):
        return True
    return len(left) < _ROUND and bool(left.sum(dtype=np.float64) + _EVENT * len(left) < _ROUND * float(left.max()))


def _marked(rows: Int64s, count: int) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def _next_block(cursor: Cursor) -> Int64s:
    """Number of items in each row's next block; 0 at the end of the list."""
    count = cursor.longs()
    sized = np.flatnonzero(count < 0)
    if len(sized):
        # A negative count is followed by the block's size in bytes, for readers that skip it.
        some = cursor.select(sized)
        some.longs()
        cursor.update(sized, some)
        # The smallest number has no positive: it stays negative, and the row is bad.
        np.negative(count, out=count, where=count < 0)
        cursor.fail(count < 0)
    return count
