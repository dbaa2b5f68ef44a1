"""Kinds of text that have a name: lines of CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Final

_FEWEST: Final = 10
_FEWEST_COLUMNS: Final = 3
_DELIMITERS: Final = ",;\t|"


def text_kind(payloads: Sequence[bytes]) -> str:
    """Return ``csv`` for texts that are lines with the same number of columns, else an empty string."""
    if len(payloads) < _FEWEST:
        return ""
    texts = [payload.decode(errors="replace") for payload in payloads]
    return "csv" if any(_is_csv(texts, delimiter) for delimiter in _DELIMITERS) else ""


def _is_csv(texts: Sequence[str], delimiter: str) -> bool:
    counts = {text.count(delimiter) for text in texts[:_FEWEST]}
    if max(counts) < _FEWEST_COLUMNS - 1:
        return False
    try:
        rows = [next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter), []) for text in texts]
    except csv.Error:
        return False
    columns = len(rows[0])
    # A sentence has a space after its comma.
    prose = sum(text.count(f"{delimiter} ") for text in texts) * 2 > sum(text.count(delimiter) for text in texts)
    return columns >= _FEWEST_COLUMNS and all(len(row) == columns for row in rows) and not prose
