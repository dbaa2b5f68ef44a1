"""Columns of attributes: a map of names to texts for each event."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import bools_of, list_offsets, map_entries, number_column, select, text_column, valid_rows
from pravega_serde.columnar.arrays import Bools, Int64s, bounds_of, repeated_text

#: Type of a column of attributes.
ATTRIBUTES: Final = pa.map_(pa.string(), pa.string())

#: Lengths of the rows, and all names and values in order.
Entries = tuple[Int64s, pa.StringArray, pa.StringArray]


def attributes_of(lengths: Int64s, names: pa.StringArray, values: pa.StringArray) -> pa.MapArray:
    """Return a column of attributes without nulls; ``lengths`` is the number of attributes of each row."""
    return pa.MapArray.from_arrays(list_offsets(lengths), names, values, type=ATTRIBUTES)


def attribute(column: pa.MapArray, name: str) -> pa.StringArray:
    """Return the values of one attribute, null in rows without it."""
    lengths, names, values = map_entries(column)
    places = np.flatnonzero(_named(names, [name]))
    index, valid = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.bool_)
    rows = np.repeat(np.arange(len(lengths)), lengths)[places]
    index[rows], valid[rows] = places, True
    return select(values, index, valid=valid)


def without(column: pa.MapArray, excluded: Collection[str]) -> pa.MapArray:
    """Return a column without the attributes of these names."""
    lengths, names, values = map_entries(column)
    dropped = _named(names, excluded)
    if not dropped.any():
        return attributes_of(lengths, names, values)
    kept = ~dropped
    rows = np.repeat(np.arange(len(lengths)), lengths)[kept]
    mask = number_column(kept)
    return attributes_of(np.bincount(rows, minlength=len(lengths)), names.filter(mask), values.filter(mask))


def _named(names: pa.StringArray, wanted: Collection[str]) -> Bools:
    """Return the mask of the entries with one of the names."""
    found = np.zeros(len(names), np.bool_)
    for name in wanted:
        found |= bools_of(pc.equal(names, text_column([name])[0]))
    return found


def joined(parts: Sequence[tuple[str, pa.StringArray] | pa.MapArray]) -> pa.MapArray:
    """Return columns of attributes joined row by row.

    A part is a column of attributes, or one attribute with its values, absent where they are null.
    """
    entries = [map_entries(part) if isinstance(part, pa.MapArray) else _entries(*part) for part in parts]
    lengths = np.stack([each[0] for each in entries])
    totals = lengths.sum(axis=0)
    # First position of each part in each row, in the joined column.
    starts = bounds_of(totals)[:-1] + np.cumsum(lengths, axis=0) - lengths
    order = np.empty(int(totals.sum()), np.int64)
    bases = accumulate((len(each[1]) for each in entries), initial=0)
    for first, base, (counts, names, _) in zip(starts, bases, entries, strict=False):
        within = np.arange(len(names)) - np.repeat(bounds_of(counts)[:-1], counts)
        order[np.repeat(first, counts) + within] = base + np.arange(len(names))
    names, values = (pa.concat_arrays([each[index] for each in entries]) for index in (1, 2))
    return attributes_of(totals, select(names, order), select(values, order))


def _entries(name: str, values: pa.StringArray) -> Entries:
    there = values.drop_null()
    return valid_rows(values).astype(np.int64), repeated_text(name, len(there)), there
