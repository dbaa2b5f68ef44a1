"""Writing by column: each field becomes a column of text, and Arrow joins them with the text between them.

The text equals that of :mod:`pravega_serde.json.write_rows`, byte for byte. Python writes only the values that Arrow
writes differently: numbers with an exponent, and strings with characters to escape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import (
    at_path,
    bounds_of,
    days_of,
    expand,
    list_items,
    map_entries,
    time_of_day,
    to_micros,
)
from pravega_serde.columnar.arrays import dictionary_values, offsets_of, valid_rows
from pravega_serde.columnar.base import Write
from pravega_serde.columnar.digits import double_texts
from pravega_serde.columnar.lowering import check_between
from pravega_serde.columnar.types import NESTED, Walk, family
from pravega_serde.columnar.variant import decoded
from pravega_serde.json.write_rows import NOT_FINITE, PLAIN_BELOW, PLAIN_FROM, java_float, quoted, to_json

#: Parts of each row's text in order: columns of texts, and texts that are the same in all rows.
Parts = list[pa.StringArray | str]
#: Returns the parts of a column without nulls.
Render = Callable[[pa.Array], Parts]

#: Bytes of characters to escape: quotes, backslashes, controls (below the third), the first byte of characters above
#: 16 bits (from the fourth on).
_QUOTE, _BACKSLASH, _FIRST_PLAIN, _FIRST_ASTRAL = 0x22, 0x5C, 0x20, 0xF0
_SPECIAL: Final = '["\\\\\\x00-\\x1f\\x{10000}-\\x{10FFFF}]'


def column_writer(kind: pa.DataType) -> Write:
    """Return a writer of columns of a type. Raise :class:`SchemaError` for a type without a form in JSON."""
    render = _Renderers().of(kind)

    def write(column: pa.Array) -> pa.BinaryArray:
        if column.null_count == 0:
            return join_texts(render(column), len(column)).view(pa.binary())
        there = column.drop_null()
        return expand(join_texts(render(there), len(there)), valid_rows(column)).view(pa.binary())

    return write


def join_texts(parts: Parts, count: int) -> pa.StringArray:
    """Return the texts of ``count`` rows. Neighboring constants are joined first: each part costs a pass."""
    merged: Parts = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    if all(isinstance(part, str) for part in merged):
        return pa.array(["".join(map(str, merged))] * count, pa.string())
    if len(merged) == 1:
        return merged[0]
    columns = [_scalar(part) if isinstance(part, str) else part for part in merged]
    return pc.binary_join_element_wise(*columns, _scalar(""))


# Cached, because a scalar costs pyarrow as much time as the join of some twenty rows.
@lru_cache(maxsize=4096)
def _scalar(text: str) -> pa.StringScalar:
    return pa.scalar(text, pa.string())


def _nullable(render: Render, column: pa.Array) -> Parts:
    """Return the parts of a column that may have nulls."""
    if column.null_count == 0:
        return render(column)
    there = column.drop_null()
    present = column.is_valid().to_numpy(zero_copy_only=False)
    return [expand(join_texts(render(there), len(there)), present).fill_null("null")]


def java_floats(column: pa.Array) -> pa.StringArray:
    """Return the texts of a float or double column without nulls: see :func:`java_float`.

    NaN and infinities are in quotes.
    """
    values = column.to_numpy()
    size = np.abs(values)
    if column.type == pa.float64():
        text = double_texts(column)
    else:
        text = column.cast(pa.string())
        # A signalling NaN is a NaN like any other.
        with np.errstate(invalid="ignore"):
            whole = np.floor(size) == size
        if whole.any():
            # Arrow writes 2.0 as 2.
            text = pc.if_else(pa.array(whole), pc.binary_join_element_wise(text, ".0", ""), text)
    plain = ((size >= PLAIN_FROM) & (size < PLAIN_BELOW)) | (size == 0)
    if plain.all():
        return text
    others = [_number(value) for value in values[~plain]]
    return pc.replace_with_mask(text, pa.array(~plain), pa.array(others, pa.string()))


def _number(value: float | np.float32) -> str:
    if math.isfinite(value):
        return java_float(value if isinstance(value, np.float32) else float(value))
    return NOT_FINITE[str(float(value))]


def escaped(column: pa.StringArray) -> pa.StringArray:
    """Return strings (without nulls) with escapes as they are written between quotes."""
    if not _may_need_escapes(column):
        return column
    special = pc.match_substring_regex(column, _SPECIAL)
    written = [quoted(text)[1:-1] for text in column.filter(special).to_pylist()]
    return pc.replace_with_mask(column, special, pa.array(written, pa.string()))


def _may_need_escapes(column: pa.StringArray) -> bool:
    offsets = offsets_of(column)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return False
    data = np.frombuffer(column.buffers()[2], np.uint8)[first:last]
    unusual = data.min() < _FIRST_PLAIN or data.max() >= _FIRST_ASTRAL
    return bool(unusual or (data == _QUOTE).any() or (data == _BACKSLASH).any())


#: Bytes of the text of a timestamp, and the place of its letter.
_TIMESTAMP_BYTES, _LETTER_AT = 26, 10


def _with_letter(times: pa.StringArray) -> pa.StringArray:
    """Return timestamps with a T instead of the blank."""
    if not len(times):
        return times
    _, offsets, data = times.buffers()
    letters = np.frombuffer(data, np.uint8, len(times) * _TIMESTAMP_BYTES).copy()
    letters[_LETTER_AT::_TIMESTAMP_BYTES] = ord("T")
    return pa.Array.from_buffers(pa.string(), len(times), [None, offsets, pa.py_buffer(letters)])


#: First and last day of the years 0 to 9999, counted from 1970: Java writes other years with a sign, which few read.
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896
_DAY: Final = 86_400_000_000


def joined_items(lengths: Any, items: pa.StringArray, between: str = ",") -> pa.StringArray:
    """Join the items of each row; ``lengths`` is the number of ``items`` of each row."""
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds_of(lengths), pa.int32()), items), between)


class _Renderers(Walk[Render]):
    language = "JSON"

    def of(self, kind: pa.DataType, path: str = "$") -> Render:
        render = super().of(kind, path)
        return render if family(kind) in NESTED else at_path(render, path)

    def null(self, kind: pa.DataType) -> Render:
        return lambda column: [pa.array(["null"] * len(column), pa.string())]

    def boolean(self, kind: pa.DataType) -> Render:
        return lambda column: [column.cast(pa.string())]

    integer = decimal = boolean

    def floating(self, kind: pa.DataType) -> Render:
        if kind == pa.float16():
            return lambda column: [java_floats(column.cast(pa.float32()))]
        return lambda column: [java_floats(column)]

    def text(self, kind: pa.DataType) -> Render:
        if pa.types.is_string(kind):
            return lambda column: ['"', escaped(column), '"']
        return lambda column: ['"', escaped(column.cast(pa.string())), '"']

    def binary(self, kind: pa.DataType) -> Render:
        return lambda column: [pa.array([to_json(value).decode() for value in column.to_pylist()], pa.string())]

    def date(self, kind: pa.DataType) -> Render:
        def render(column: pa.Array) -> Parts:
            days = days_of(column)
            check_between(days.cast(pa.int32()), _FIRST_DAY, _LAST_DAY, "a date beyond the years 0 to 9999 of ISO 8601")
            return ['"', days.cast(pa.string()), '"']

        return render

    def time(self, kind: pa.DataType) -> Render:
        return lambda column: ['"', time_of_day(column).cast(pa.string()), '"']

    def timestamp(self, kind: pa.DataType) -> Render:
        zone = "" if kind.tz is None else "Z"
        first, last = _FIRST_DAY * _DAY, _LAST_DAY * _DAY + _DAY - 1

        def render(column: pa.Array) -> Parts:
            # The text is in UTC for any zone of the column.
            micros = to_micros(column, kind.unit, noun="timestamp")
            check_between(micros, first, last, "a timestamp beyond the years 0 to 9999 of ISO 8601")
            return ['"', _with_letter(micros.cast(pa.timestamp("us")).cast(pa.string())), f'{zone}"']

        return render

    def items(self, kind: pa.ListType, path: str) -> Render:
        inner = self.item(kind, path)

        def render(column: pa.Array) -> Parts:
            lengths, items = list_items(column)
            return ["[", joined_items(lengths, join_texts(_nullable(inner, items), len(items))), "]"]

        return render

    def entries(self, kind: pa.MapType, path: str) -> Render:
        self.check_keys(kind, path, "text", "integer", "boolean")
        inner = self.value(kind, path)

        def render(column: pa.Array) -> Parts:
            lengths, keys, values = map_entries(column)
            entries = ['"', escaped(keys.cast(pa.string())), '":', *_nullable(inner, values)]
            return ["{", joined_items(lengths, join_texts(entries, len(keys))), "}"]

        return render

    def fields(self, kind: pa.StructType, path: str) -> Render:
        fields = [(f"{quoted(name)}:", inner) for name, inner in self.members(kind, path).items()]

        def render(column: pa.Array) -> Parts:
            parts: Parts = []
            before = "{"
            for (label, inner), values in zip(fields, column.flatten(), strict=True):
                parts += [before + label, *_nullable(inner, values)]
                before = ","
            return [*parts, "}" if parts else "{}"]

        return render

    def variant(self, kind: pa.DataType) -> Render:
        return lambda column: [pa.array([to_json(value).decode() for value in decoded(column)], pa.string())]

    def dictionary(self, kind: pa.DictionaryType, path: str) -> Render:
        inner = super().dictionary(kind, path)
        return lambda column: _nullable(inner, dictionary_values(column))
