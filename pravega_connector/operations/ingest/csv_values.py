"""Values of CSV: the types of texts, and their conversion, which loses nothing.

A text is a number only if the number can be written in no other way but for blanks, a shorter fraction or an exponent:
``007``, ``+44`` and ``1E5`` are not. So identifiers that look like numbers stay text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.arrays import (
    Bools,
    Int64s,
    bools_of,
    number_column,
    numbers_of,
    offsets_of,
    select,
    valid_rows,
)
from pravega_serde.columnar.building import build_rows, decimals_of, parse_times
from pravega_serde.columnar.digits import double_texts
from pravega_serde.columnar.found import EXACT_INTEGERS, Found, Kind, fits_double, fits_float
from pravega_serde.columnar.types import integer_bounds, is_family

_WHOLE: Final = "(0|[1-9][0-9]*)"
_INTEGER: Final = "^(0|-?[1-9][0-9]*)$"
#: A fraction, or an exponent with its sign: a text such as 1E5 is more often an article number.
_FRACTION: Final = rf"^-?({_WHOLE}?\.[0-9]+([eE][-+]?[0-9]+)?|{_WHOLE}[eE][-+][0-9]+|0)$"
_NUMBER: Final = f"{_INTEGER}|{_FRACTION}"
#: Numbers of up to 15 digits with a point, or integers: a double holds them, if they are not large.
_SHORT: Final = r"^-?([0-9.]{1,16}|[0-9]+)$"
_PLAIN: Final = r"^-?[0-9]*\.[0-9]+$"
_SPECIAL: Final = "^(nan|NaN|-?inf|-?Infinity)$"
#: Only 29 February of other years than leap years is not a day.
_DAY: Final = (
    "[0-9]{4}-(02-(0[1-9]|[12][0-9])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))"
)
_DATE: Final = f"^{_DAY}$"
_TIME: Final = rf"^{_DAY}[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,6}}0{{0,3}})?)?"
_TIME_IN_NANOSECONDS: Final = _TIME.replace("{1,6}0{0,3}", "{1,9}")
_ZONE: Final = "(Z|[-+][0-9]{2}(:?[0-9]{2})?)"
_WITHOUT_ZONE: Final = f"{_TIME}$"
_WITH_ZONE: Final = f"{_TIME}{_ZONE}$"
#: Texts that pyarrow reads as booleans.
TRUE: Final = ("true", "True", "TRUE")
FALSE: Final = ("false", "False", "FALSE")
_BOOLEAN: Final = f"^({'|'.join(TRUE + FALSE)})$"
_MOST_IN_INT64: Final = 18
#: Texts that are looked at one by one.
_FIRST: Final = 16
#: More digits than a number in a column has; Python refuses integers of thousands of digits.
_MOST_DIGITS: Final = 100
_UNFIT: Final = (pa.ArrowException, ArithmeticError, ValueError)


# ---- inference ----


def found_in(column: Texts) -> Found:
    """Return the types of texts; null without any."""
    found = Found()
    texts = column.texts.drop_null() if column.texts.null_count else column.texts
    first = [text.strip(" \t") for text in texts[:_FIRST].to_pylist()]
    if not all(any(re.search(pattern, text) for pattern, _ in _KINDS) for text in first):
        return Found({"text"})
    if first:
        texts = select(column.texts, _add_usual(found, column, first[0]))
    trimmed = pc.ascii_trim(texts, " \t")
    # Usually all texts are of the kind of the first one.
    for pattern, add in sorted(_KINDS, key=lambda kind: not re.search(kind[0], first[0])) if first else []:
        if not len(texts) or "text" in found.kinds:
            break
        fits = pc.match_substring_regex(trimmed, pattern)
        if pc.any(fits, min_count=0).as_py():
            add(found, trimmed.filter(fits), texts.filter(fits))
            texts, trimmed = (each.filter(pc.invert(fits)) for each in (texts, trimmed))
    if len(texts):
        found.kinds.add("text")
    return found


def _add_usual(found: Found, column: Texts, first: str) -> Int64s:
    """Add exact numbers, dates and times, if most texts are of the kind of the first one. Return the other rows."""
    for pattern, kind, name in _USUAL:
        if not re.search(pattern, first):
            continue
        values, unsure = column.usual(kind)
        if len(unsure) > _FEW * len(values):
            continue
        texts = column.texts
        if len(unsure):
            rows = np.delete(np.arange(len(texts)), unsure)
            values, texts = select(values, rows), select(texts, rows)
        if name == "fraction":
            fractions = pc.match_substring(texts, ".")
            if pc.all(fractions, min_count=0).as_py():
                _add_plain(found, texts.drop_null() if texts.null_count else texts)
                return unsure
            _add_plain(found, texts.filter(fractions))
            values = values.filter(pc.invert(fractions))
        if kind in (pa.int64(), pa.float64()):
            _add_bounds(found, values)
        else:
            found.kinds.add(name)
        return unsure
    return np.flatnonzero(valid_rows(column.texts))


_FEW: Final = 0.1
_USUAL: Final[list[tuple[str, pa.DataType, Kind]]] = [
    (_INTEGER, pa.int64(), "integer"),
    (_NUMBER, pa.float64(), "fraction"),
    (_DATE, pa.date32(), "date"),
    (_WITHOUT_ZONE, pa.timestamp("us"), "time"),
    (_BOOLEAN, pa.bool_(), "boolean"),
]


def _add_bounds(found: Found, integers: pa.Array) -> None:
    if integers.null_count < len(integers):
        for number in pc.min_max(integers).values():
            found.add_integer(int(number.as_py()))


def _add_integers(found: Found, trimmed: pa.StringArray, _: pa.StringArray) -> None:
    short = pc.less_equal(pc.binary_length(trimmed), _MOST_IN_INT64)
    _add_bounds(found, trimmed.filter(short).cast(pa.int64()))
    for text in trimmed.filter(pc.invert(short)).to_pylist():
        if len(text) > _MOST_DIGITS:
            found.kinds.add("text")
        else:
            found.add_integer(int(text))


def _add_fractions(found: Found, trimmed: pa.StringArray, _: pa.StringArray) -> None:
    simple = pc.and_(pc.match_substring_regex(trimmed, _PLAIN), _are_exact(trimmed, trimmed.cast(pa.float64())))
    for text in trimmed.filter(pc.invert(simple)).to_pylist():
        try:
            found.add_fraction(Decimal(text))
        except InvalidOperation:  # an exponent beyond Python's
            found.kinds.add("text")
    _add_plain(found, trimmed.filter(simple))


def _add_plain(found: Found, plain: pa.StringArray) -> None:
    """Add numbers with a point and without an exponent, which doubles hold."""
    if len(plain):
        found.kinds.add("fraction")
        points = pc.find_substring(plain, ".")
        found.whole = max(found.whole, pc.max(points).as_py())
        found.scale = max(found.scale, pc.max(pc.subtract(pc.subtract(pc.binary_length(plain), points), 1)).as_py())


def _are_exact(trimmed: pa.StringArray, values: pa.DoubleArray) -> pa.BooleanArray:
    """Return True for texts of numbers that are certainly the values; the others need a closer look."""
    small = pc.less(pc.abs(values), float(EXACT_INTEGERS))
    return pc.or_(
        pc.and_(small, pc.match_substring_regex(trimmed, _SHORT)), pc.equal(values.cast(pa.string()), trimmed)
    )


def _adder(kind: pa.DataType, name: Kind) -> Callable[[Found, pa.StringArray, pa.StringArray], None]:
    def add(found: Found, _: pa.StringArray, texts: pa.StringArray) -> None:
        try:
            parse_times(texts, kind)
            found.kinds.add(name)
        except pa.ArrowInvalid:  # a day that does not exist, or blanks around it
            found.kinds.add("text")

    return add


def _add_booleans(found: Found, trimmed: pa.StringArray, texts: pa.StringArray) -> None:
    found.kinds.add("boolean" if trimmed.equals(texts) else "text")


_KINDS: Final[list[tuple[str, Callable[[Found, pa.StringArray, pa.StringArray], None]]]] = [
    (_INTEGER, _add_integers),
    (_FRACTION, _add_fractions),
    (_SPECIAL, lambda found, _, __: found.kinds.add("special")),
    (_BOOLEAN, _add_booleans),
    (_DATE, _adder(pa.date32(), "date")),
    (_WITHOUT_ZONE, _adder(pa.timestamp("us"), "time")),
    (_WITH_ZONE, _adder(pa.timestamp("us", "UTC"), "instant")),
]


# ---- conversion ----


def read_as(kind: pa.DataType) -> pa.DataType:
    """Return the type in which pyarrow reads a column: text, if it would accept texts of other values too.

    Its numbers may have leading zeros, an exponent without a sign, more digits than they hold, or be hexadecimal. Its
    times may be dates.
    """
    is_own = is_family(kind, "integer", "floating", "decimal") or (pa.types.is_timestamp(kind) and kind.tz is None)
    return pa.string() if is_own else kind


class Texts:
    """Column of texts, whose values are converted once."""

    def __init__(self, texts: pa.StringArray) -> None:
        self.texts = texts
        self._usual: dict[pa.DataType, tuple[pa.Array, Int64s]] = {}

    def usual(self, kind: pa.DataType) -> tuple[pa.Array, Int64s]:
        """Return the values of texts, and the rows that need a closer look; the others are exact."""
        if kind not in self._usual:
            self._usual[kind] = _usual(self.texts, kind)
        return self._usual[kind]


def converted(column: Texts, kind: pa.DataType, name: str) -> tuple[pa.Array, dict[int, str]]:
    """Return the values of the texts of a column, and the rows with texts that the type cannot hold, with the reason.

    The values of these rows are null.
    """
    texts = column.texts
    if kind == texts.type:
        return texts, {}
    values, unsure = column.usual(kind)
    if len(unsure):
        index = np.arange(len(texts))
        index[unsure] = len(texts) + np.arange(len(unsure))
        values = select(pa.concat_arrays([values, _converted(select(texts, unsure), kind)]), index)
    if values.null_count == texts.null_count:
        return values, {}
    rows = np.flatnonzero(valid_rows(texts) & ~valid_rows(values))
    advice = f"is not {_NOUNS.get(kind, kind)} without a loss; set the type of the column (--type {name}=string)"
    return values, {
        row: f"column {name!r}: {text!r} {advice}"
        for row, text in zip(rows.tolist(), select(texts, rows).to_pylist(), strict=True)
    }


_NOUNS: Final = {
    pa.bool_(): "a boolean",
    pa.date32(): "a date",
    pa.float64(): "a double",
    pa.int64(): "a 64-bit integer",
    pa.timestamp("us"): "a time without a zone",
    pa.timestamp("us", "UTC"): "a time with a zone",
}


def _usual(texts: pa.StringArray, kind: pa.DataType) -> tuple[pa.Array, Int64s]:
    """Return the values of texts, and the rows that need a closer look; the others are exact."""
    offsets = offsets_of(texts)
    try:
        if pa.types.is_timestamp(kind) and kind.tz is None:
            return texts.cast(kind), np.flatnonzero((np.diff(offsets) < _SHORTEST_TIME) & valid_rows(texts))
        if kind == pa.date32():
            return texts.cast(kind), np.empty(0, np.int64)
        if kind == pa.bool_():
            places = pc.index_in(texts, pa.array(TRUE + FALSE))
            return pc.less(places, len(TRUE)), np.flatnonzero(valid_rows(texts) & ~valid_rows(places))
        if len(texts) and kind != pa.uint64() and (pa.types.is_integer(kind) or kind == pa.float64()):
            return _usual_numbers(texts, kind, offsets)
    except pa.ArrowInvalid:
        pass
    return pa.nulls(len(texts), kind), np.arange(len(texts))


def _usual_numbers(texts: pa.StringArray, kind: pa.DataType, offsets: npt.NDArray[np.int32]) -> tuple[pa.Array, Int64s]:
    view = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    bounds = offsets - offsets[0]
    other = view - _MINUS > _NINE - _MINUS
    if kind != pa.float64():
        other |= view == _POINT
    others = _rows_of(np.flatnonzero(other), bounds)
    try:
        values = texts.cast(kind)
    except pa.ArrowInvalid:
        values = _without(texts, others).cast(kind)
    numbers = numbers_of(values).astype(np.float64 if kind == pa.float64() else np.int64, copy=False)
    sizes, lengths = np.abs(numbers), np.diff(bounds)
    whole = lengths - (numbers < 0)
    unsure = np.zeros(len(texts), np.bool_)
    if kind == pa.float64():
        points = np.flatnonzero(view == _POINT)
        rows = _rows_of(points, bounds)
        after = bounds[rows + 1] - points
        whole[rows] -= after
        unsure[rows[after == 1]] = True  # 1. is not a number
        unsure |= _inexact(texts, values, (lengths > _MOST_IN_DOUBLE + 1) | ~(sizes < EXACT_INTEGERS))
    # A number with leading zeros, or minus zero, is smaller than all with as many digits.
    unsure |= (sizes < _LEAST[np.minimum(whole, len(_LEAST) - 1)]) | (whole >= len(_LEAST))
    unsure[others] = True
    return values, np.flatnonzero(unsure & valid_rows(texts))


def _rows_of(places: Int64s, bounds: npt.NDArray[np.int32]) -> Int64s:
    """Return the row of each byte."""
    if len(places) == len(bounds) - 1 and ((places >= bounds[:-1]) & (places < bounds[1:])).all():
        return np.arange(len(places))
    rows: Int64s = np.searchsorted(bounds, places, "right") - 1
    return rows


def _inexact(texts: pa.StringArray, values: pa.DoubleArray, doubtful: Bools) -> Bools:
    """Return the doubtful rows in which a double is not written as its text."""
    if not doubtful.any():
        return doubtful
    # A selection of most rows costs more than the others.
    rows = np.flatnonzero(doubtful) if doubtful.mean() < _MANY else np.arange(len(texts))
    if len(rows) < len(texts):
        values, texts = select(values, rows), select(texts, rows)
    unlike = np.zeros(len(doubtful), np.bool_)
    unlike[rows] = ~bools_of(pc.equal(double_texts(values), texts).fill_null(False))
    return doubtful & unlike


def _without(texts: pa.StringArray, rows: Int64s) -> pa.StringArray:
    """Return texts; null in some rows."""
    if not len(rows):
        return texts
    nothing = np.zeros(len(texts), np.bool_)
    nothing[rows] = True
    return pc.if_else(number_column(nothing), None, texts)


_MINUS, _POINT, _NINE = b"-.9"
#: Smallest size of a number with n digits, at n.
_LEAST: Final = np.array([0, 0, *(10**digits for digits in range(1, _MOST_IN_INT64 + 1))])
_SHORTEST_TIME: Final = len("2026-05-01 12:00")
_MOST_IN_DOUBLE: Final = 15
_MANY: Final = 0.5


def _converted(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Return the values of texts; null for those that the type cannot hold."""
    pattern, convert = next(
        ((pattern, convert) for fits, pattern, convert in _FORMS if fits(kind)), ("", pa.StringArray.cast)
    )
    texts = pc.ascii_trim(texts, " \t") if _INTEGER in pattern else texts
    fits = pc.match_substring_regex(texts, pattern)
    if not pc.all(fits, min_count=0).as_py():
        texts = pc.if_else(fits, texts, None)
    arrays: list[pa.Array] = []
    build_rows(lambda part: convert(part, kind), kind, texts, start=0, smallest=1, refusals=_UNFIT, arrays=arrays)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _integers(trimmed: pa.StringArray, kind: pa.DataType) -> pa.Array:
    low, high = integer_bounds(kind)
    short = pc.less(pc.binary_length(trimmed), len(str(high)))
    return _checked(trimmed, short, lambda text: len(text) <= _MOST_DIGITS and low <= int(text) <= high).cast(kind)


def _floats(trimmed: pa.StringArray, kind: pa.DataType) -> pa.Array:
    special, values = pc.match_substring_regex(trimmed, _SPECIAL), trimmed.cast(kind)
    if kind == pa.float64():
        sure = pc.or_(special, _are_exact(trimmed, values))
        return _checked(trimmed, sure, lambda text: fits_double(Decimal(text))).cast(kind)
    return _checked(trimmed, special, lambda text: fits_float(text, float(text))).cast(kind)


def _checked(texts: pa.StringArray, sure: pa.BooleanArray, holds: Callable[[str], bool]) -> pa.StringArray:
    """Return texts; null for those that are not ``sure`` and do not hold."""
    rows = np.flatnonzero(~bools_of(sure.fill_null(True)))
    lost = [row for row, text in zip(rows.tolist(), select(texts, rows).to_pylist(), strict=True) if not holds(text)]
    return _without(texts, np.array(lost, np.int64))


def _has_zone(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


#: Types, the form of their texts, and the conversion. Blanks are only allowed around numbers.
_FORMS: Final[list[tuple[Callable[[pa.DataType], bool], str, Callable[[pa.StringArray, pa.DataType], pa.Array]]]] = [
    (pa.types.is_integer, _INTEGER, _integers),
    (pa.types.is_floating, f"{_NUMBER}|{_SPECIAL}", _floats),
    (pa.types.is_decimal, _NUMBER, lambda texts, kind: decimals_of(kind)(texts)),
    (pa.types.is_boolean, _BOOLEAN, lambda texts, _: pc.equal(pc.ascii_lower(texts), "true")),
    (pa.types.is_date, _DATE, pa.StringArray.cast),
    (lambda kind: _has_zone(kind) and kind.unit == "ns", f"{_TIME_IN_NANOSECONDS}{_ZONE}$", parse_times),
    (lambda kind: pa.types.is_timestamp(kind) and kind.unit == "ns", f"{_TIME_IN_NANOSECONDS}$", parse_times),
    (_has_zone, _WITH_ZONE, parse_times),
    (pa.types.is_timestamp, _WITHOUT_ZONE, parse_times),
]
