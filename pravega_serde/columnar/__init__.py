"""Shared parts of the columnar paths of all formats.

For formats in other packages, :class:`ColumnSerializer` and a few helpers are public names of ``pravega_serde``. All
other names here are internal.

- ``types`` has the forms of Arrow types in each format, and the walk over nested types.
- ``arrays`` reads Arrow columns and opens columns of bytes.
- ``cursor`` reads all events of such a column at once, with the numbers of ``varints``.
- ``building`` makes arrays of Python values.
- ``lowering`` converts columns into the form that is written, and ``pieces`` assembles events.
- ``bad_rows`` finds the rows that cannot be read or written. It defines the two exceptions that formats use inside.
- ``limits`` bounds the cost of those rows.
- ``base`` is the serializer built from these parts.
"""

from pravega_serde.columnar.arrays import (
    ByteColumn,
    as_binary,
    as_column,
    bools_of,
    bounds_of,
    cut,
    days_of,
    expand,
    floor_divide,
    list_items,
    list_offsets,
    map_entries,
    nothing,
    number_column,
    numbers_of,
    repeated_text,
    select,
    text_column,
    time_of_day,
    to_micros,
    valid_rows,
    word_view,
)
from pravega_serde.columnar.bad_rows import (
    Attempt,
    FallbackError,
    FastPath,
    MalformedError,
    PlainPath,
    bisecting,
    decode_rows,
    per_row,
    written,
)
from pravega_serde.columnar.base import (
    ColumnReader,
    ColumnSerializer,
    ColumnWriter,
    StagedWriter,
    bytes_at_once,
    unless_refused,
)
from pravega_serde.columnar.cursor import Cursor
from pravega_serde.columnar.limits import MemoryBudget, MemoryLimit, RoundBudget
from pravega_serde.columnar.lowering import Lower, at_path
from pravega_serde.columnar.types import holds_bytes, is_text, no_form

__all__ = [
    "Attempt",
    "ByteColumn",
    "ColumnReader",
    "ColumnSerializer",
    "ColumnWriter",
    "Cursor",
    "FallbackError",
    "FastPath",
    "Lower",
    "MalformedError",
    "MemoryBudget",
    "MemoryLimit",
    "PlainPath",
    "RoundBudget",
    "StagedWriter",
    "as_binary",
    "as_column",
    "at_path",
    "bisecting",
    "bools_of",
    "bounds_of",
    "bytes_at_once",
    "cut",
    "days_of",
    "decode_rows",
    "expand",
    "floor_divide",
    "holds_bytes",
    "is_text",
    "list_items",
    "list_offsets",
    "map_entries",
    "no_form",
    "nothing",
    "number_column",
    "numbers_of",
    "per_row",
    "repeated_text",
    "select",
    "text_column",
    "time_of_day",
    "to_micros",
    "unless_refused",
    "valid_rows",
    "word_view",
    "written",
]
