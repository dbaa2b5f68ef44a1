"""Records of CSV that are not one line of fields: a quote is open or misplaced, or the number of fields differs."""

from __future__ import annotations

import csv
import re
from typing import Final

import numpy as np

from pravega_connector.operations.ingest.lines import Lines
from pravega_serde.columnar.arrays import Int64s

OPEN: Final = "a quote is missing, or a quoted field has a line end (set --multiline)"
STRAY: Final = "a quoted field has text after its closing quote (a quote within it must be doubled)"
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


def fault_of(text: str, delimiter: str) -> str | None:
    """Return the fault of the quotes of a record; None without one."""
    return _count(text, delimiter)[1] if '"' in text else None


def has_plain_quotes(lines: Lines, delimiter: str) -> bool:
    """Return True if each quote opens a field, closes it, or is doubled within it, if a record has no line end."""
    if b'"' not in lines.data:
        return True
    data = np.frombuffer(b"".join([b"\n", lines.joined(), b"\n"]), np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    around = np.append(data[quotes[::2] - 1], data[quotes[1::2] + 1])
    return bool(np.isin(around, [ord(delimiter), _NEWLINE, _RETURN, _QUOTE]).all())


def broken(lines: Lines, fields: int, delimiter: str) -> dict[int, str]:
    """Return the reasons why records are not one line with this number of fields, by row.

    Each quote opens or closes a field if those with an even number before them begin a field, or follow a quote, and
    the others end it, or precede a quote. Records with other quotes are read one by one.
    """
    first, last = int(lines.starts[0]), int(lines.ends[-1])
    data, starts = np.frombuffer(lines.data, np.uint8)[first:last], lines.starts - first
    quotes = np.flatnonzero(data == _QUOTE)
    before = np.searchsorted(quotes, np.append(starts, last - first))
    rows = np.searchsorted(starts, quotes, "right") - 1
    follows = data[quotes - 1]
    begins = (quotes == starts[rows]) | (follows == ord(delimiter)) | (follows == _QUOTE)
    precedes = data[np.minimum(quotes + 1, len(data) - 1)]
    ends = (quotes + 1 == lines.ends[rows] - first) | (precedes == ord(delimiter)) | (precedes == _QUOTE)
    opens = (np.arange(len(quotes)) - before[rows]) % 2 == 0
    unsure = np.unique(rows[~np.where(opens, begins, ends)])

    def outside(byte: int) -> Int64s:
        """Return the rows of the occurrences of a byte outside quotes and line ends."""
        places = np.flatnonzero(data == byte)
        of = np.searchsorted(starts, places, "right") - 1
        rows: Int64s = of[((np.searchsorted(quotes, places) - before[of]) % 2 == 0) & (places < lines.ends[of] - first)]
        return rows

    counts = 1 + np.bincount(outside(ord(delimiter)), minlength=len(lines))
    faults = dict.fromkeys(np.flatnonzero(np.diff(before) % 2 == 1).tolist(), OPEN)
    for row in {*unsure.tolist(), *outside(_NEWLINE).tolist(), *outside(_RETURN).tolist()}:
        counts[row], fault = _count(lines.text(row), delimiter)
        faults.pop(row, None)
        if fault is not None:
            faults[row] = fault
    reasons = {
        row: f"Expected {fields} columns, got {counts[row]}" for row in np.flatnonzero(counts != fields).tolist()
    }
    return reasons | faults


def _count(text: str, delimiter: str) -> tuple[int, str | None]:
    """Return the number of fields of a record, and the fault of its quotes."""
    # One letter for any text, because csv refuses long fields.
    short = re.sub(f'[^"\r\n{re.escape(delimiter)}]+', "x", text.strip("\r\n"))
    try:
        rows = list(csv.reader([f"{short}\n", "end"], delimiter=delimiter))
    except csv.Error:
        return 0, OPEN
    if rows[-1] != ["end"]:
        return 0, OPEN
    try:
        list(csv.reader([short], delimiter=delimiter, strict=True))
    except csv.Error:
        return 0, STRAY
    return len(rows[0]), None
