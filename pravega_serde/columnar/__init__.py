"""What the columnar paths of all formats share: taking columns in, cutting them up, and isolating bad rows."""

from pravega_serde.columnar._arrays import (
    as_binary,
    as_column,
    at_path,
    bounds_of,
    days_of,
    expand,
    floor_divide,
    is_text,
    list_items,
    list_offsets,
    map_entries,
    per_row,
    time_of_day,
    to_micros,
    written,
)
from pravega_serde.columnar._bad_rows import Attempt, FastPath, PlainPath, bisecting, chained, decode_rows
from pravega_serde.columnar._bytes import ByteColumn, cut, is_utf8, word_view
from pravega_serde.columnar._malformed import MalformedError
from pravega_serde.columnar._rounds import RoundBudget
from pravega_serde.columnar._writing import Lower, StagedWriter, Unwritable, unless_refused

__all__ = [
    "Attempt",
    "ByteColumn",
    "FastPath",
    "Lower",
    "MalformedError",
    "PlainPath",
    "RoundBudget",
    "StagedWriter",
    "Unwritable",
    "as_binary",
    "as_column",
    "at_path",
    "bisecting",
    "bounds_of",
    "chained",
    "cut",
    "days_of",
    "decode_rows",
    "expand",
    "floor_divide",
    "is_text",
    "is_utf8",
    "list_items",
    "list_offsets",
    "map_entries",
    "per_row",
    "time_of_day",
    "to_micros",
    "unless_refused",
    "word_view",
    "written",
]
