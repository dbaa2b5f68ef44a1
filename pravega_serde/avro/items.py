"""Reader of the items in the lists or maps of all rows, which have different lengths.

``items_vector`` first finds the start of each item. Then the items of all rows are read at once, as separate rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pravega_serde.avro.items_scalar import Items
from pravega_serde.avro.items_vector import ItemFinder
from pravega_serde.avro.resolve import ArrayNode, MapNode
from pravega_serde.avro.rows import MEMORY, item_weight
from pravega_serde.columnar import Cursor
from pravega_serde.columnar.arrays import Bools, Int64s

#: Reads the next value of each row.
Read = Callable[[Cursor], pa.Array]

#: Items that are read at once. Each uses some hundred bytes in NumPy.
_AT_ONCE: Final = 1 << 15


class ItemReader:
    """Reader of the items of lists (one part), or the keys and values of maps (two parts)."""

    def __init__(self, node: ArrayNode | MapNode, parts: Sequence[tuple[Read, pa.DataType]]) -> None:
        """Create a reader. Each of the ``parts`` reads one part of an item, in order, and has its type."""
        self._parts = parts
        self._find = ItemFinder(Items.of(node))
        self._weight = item_weight(node)

    def __call__(self, cursor: Cursor) -> tuple[Int64s, list[pa.Array]]:
        """Return the number of items of each row, and the items of all rows in order, one array per part."""
        begun = cursor.position
        counts, starts = self._find(cursor)
        cursor.fail(self._too_heavy(cursor, counts, cursor.position - begun))
        if cursor.bad.any():
            starts = starts[np.repeat(~cursor.bad, counts)]
            counts[cursor.bad] = 0
        there = np.flatnonzero(counts)
        # Each item ends at the latest at the start of the next one in its row. Malformed items move to their ends, so
        # their bytes are not after those of the next items.
        ends = np.append(starts[1:], 0)
        ends[np.cumsum(counts[there]) - 1] = cursor.position[there]
        pieces = [
            self._read(cursor.inside(starts[at : at + _AT_ONCE], ends[at : at + _AT_ONCE]))
            for at in range(0, len(starts), _AT_ONCE)
        ]
        bad = np.concatenate([np.empty(0, np.int64), *(at * _AT_ONCE + rows for at, (rows, _) in enumerate(pieces))])
        cursor.fail(_marked(np.searchsorted(np.cumsum(counts), bad, side="right"), len(counts)))
        return counts, [
            _joined([values[part] for _, values in pieces], kind) for part, (_, kind) in enumerate(self._parts)
        ]

    def _too_heavy(self, cursor: Cursor, counts: Int64s, sizes: Int64s) -> Bools:
        """Return the rows with items that exceed the memory of an event of their size.

        If all items together exceed the limit, all rows are returned. Lists are counted one by one. An event in which
        only several lists together exceed the limit is rejected by row. By column it is read, because the memory of the
        whole column limits it.
        """
        weights = self._weight * counts
        if not cursor.budget.allows(int(weights.sum())):
            return counts > 0
        return weights > MEMORY.base + MEMORY.per_byte * sizes

    def _read(self, items: Cursor) -> tuple[Int64s, list[pa.Array]]:
        """Return the malformed ones among some items, and the values of each part."""
        values = [read_part(items) for read_part, _ in self._parts]
        return np.flatnonzero(items.bad), values


def _joined(pieces: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_arrays(pieces) if pieces else pa.nulls(0, kind)


def _marked(rows: Int64s, count: int) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask
