"""Records of CSV that are not one line of fields: a quote is open, or the number of fields is another one."""

from __future__ import annotations

import csv
import re
from typing import Final

import numpy as np

from pravega_connector.operations.ingest.lines import Lines
from pravega_serde.columnar.arrays import Int64s

OPEN: Final = "a quote is missing, or a quoted field has a line end (set --multiline)"
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


def is_open(text: str, delimiter: str) -> bool:
    """Return True if a record has an unclosed quote."""
    return '"' in text and _count(text, delimiter) is None


def broken(lines: Lines, fields: int, delimiter: str) -> dict[int, str]:
    """Return the reasons why records are not one line with this number of fields, by row.

    Each quote opens or closes a field if those with an even number before them begin a field, or follow a quote.
    Records with other quotes are read one by one.
    """
    first, last = int(lines.starts[0]), int(lines.ends[-1])
    data, starts = np.frombuffer(lines.data, np.uint8)[first:last], lines.starts - first
    quotes = np.flatnonzero(data == _QUOTE)
    before = np.searchsorted(quotes, np.append(starts, last - first))
    rows = np.searchsorted(starts, quotes, "right") - 1
    follows = data[quotes - 1]
    begins = (quotes == starts[rows]) | (follows == ord(delimiter)) | (follows == _QUOTE)
    unsure = np.unique(rows[~begins & ((np.arange(len(quotes)) - before[rows]) % 2 == 0)])

    def outside(byte: int) -> Int64s:
        """Return the rows of the occurrences of a byte outside quotes and line ends."""
        places = np.flatnonzero(data == byte)
        of = np.searchsorted(starts, places, "right") - 1
        rows: Int64s = of[((np.searchsorted(quotes, places) - before[of]) % 2 == 0) & (places < lines.ends[of] - first)]
        return rows

    counts = 1 + np.bincount(outside(ord(delimiter)), minlength=len(lines))
    opened = np.diff(before) % 2 == 1
    for row in {*unsure.tolist(), *outside(_NEWLINE).tolist(), *outside(_RETURN).tolist()}:
        count = _count(lines.text(row), delimiter)
        counts[row], opened[row] = count or 0, count is None
    reasons = {
        row: f"Expected {fields} columns, got {counts[row]}" for row in np.flatnonzero(counts != fields).tolist()
    }
    return reasons | dict.fromkeys(np.flatnonzero(opened).tolist(), OPEN)


def _count(text: str, delimiter: str) -> int | None:
    """Return the number of fields of a record; None if it has an unclosed quote."""
    # One letter for any text, because csv refuses long fields.
    short = re.sub(f'[^"\r\n{re.escape(delimiter)}]+', "x", text.strip("\r\n"))
    try:
        rows = list(csv.reader([f"{short}\n", "end"], delimiter=delimiter))
    except csv.Error:
        return None
    return len(rows[0]) if rows[-1] == ["end"] else None
