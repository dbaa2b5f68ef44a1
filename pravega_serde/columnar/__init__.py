"""What the columnar paths of all formats share: taking columns in, cutting them up, and isolating bad rows."""

from pravega_serde.columnar._arrays import as_binary, as_column, bounds_of, expand, list_items, map_entries, per_row
from pravega_serde.columnar._bad_rows import Attempt, FastPath, PlainPath, bisecting, chained, decode_rows
from pravega_serde.columnar._bytes import ByteColumn, cut, word_view
from pravega_serde.columnar._malformed import MalformedError

__all__ = [
    "Attempt",
    "ByteColumn",
    "FastPath",
    "MalformedError",
    "PlainPath",
    "as_binary",
    "as_column",
    "bisecting",
    "bounds_of",
    "chained",
    "cut",
    "decode_rows",
    "expand",
    "list_items",
    "map_entries",
    "per_row",
    "word_view",
]
