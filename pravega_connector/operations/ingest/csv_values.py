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

from pravega_serde.columnar.arrays import Int64s, bools_of, number_column, numbers_of, offsets_of, select, valid_rows
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
_BOOLEAN: Final = "^(true|false|True|False|TRUE|FALSE)$"
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
_MOST_IN_INT64: Final = 18
#: Texts that are looked at one by one.
_FIRST: Final = 16
#: More digits than a number in a column has; Python refuses integers of thousands of digits.
_MOST_DIGITS: Final = 100
_UNFIT: Final = (pa.ArrowException, ArithmeticError, ValueError)


# ---- inference ----


def found_in(texts: pa.StringArray) -> Found:
    """Return the types of texts; null without any."""
    found = Found()
    texts = texts.drop_null()
    first = [text.strip(" \t") for text in texts[:_FIRST].to_pylist()]
    if not all(any(re.search(pattern, text) for pattern, _ in _KINDS) for text in first):
        return Found({"text"})
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


def _add_integers(found: Found, trimmed: pa.StringArray, _: pa.StringArray) -> None:
    short = pc.less_equal(pc.binary_length(trimmed), _MOST_IN_INT64)
    bounds = pc.min_max(trimmed.filter(short).cast(pa.int64())).as_py()
    for number in (bounds["min"], bounds["max"]):
        if number is not None:
            found.add_integer(number)
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
    plain = trimmed.filter(simple)
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


def converted(texts: pa.Array, kind: pa.DataType, name: str) -> tuple[pa.Array, dict[int, str]]:
    """Return the values of the texts of a column, and the rows with texts that the type cannot hold, with the reason.

    The values of these rows are null.
    """
    if kind == texts.type:
        return texts, {}
    values, unsure = _usual(texts, kind)
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
    lengths = np.diff(offsets_of(texts))
    try:
        if pa.types.is_timestamp(kind) and kind.tz is None:
            return texts.cast(kind), np.flatnonzero((lengths < _SHORTEST_TIME) & valid_rows(texts))
        if pa.types.is_integer(kind):
            return _cast(texts, kind, _IN_INTEGERS), _odd_rows(texts, _IN_INTEGERS)
        if kind == pa.float64():
            return _usual_doubles(texts, lengths)
    except pa.ArrowInvalid:
        pass
    return pa.nulls(len(texts), kind), np.arange(len(texts))


def _usual_doubles(texts: pa.StringArray, lengths: npt.NDArray[np.int32]) -> tuple[pa.Array, Int64s]:
    values, valid = _cast(texts, pa.float64(), _IN_FRACTIONS), valid_rows(texts)
    if not len(texts):
        return values, np.empty(0, np.int64)
    small = np.abs(numbers_of(values)) < EXACT_INTEGERS
    doubtful = (lengths > _MOST_IN_DOUBLE + 1) | ~small
    rows = np.arange(len(texts)) if doubtful.mean() > _MANY else np.flatnonzero(doubtful)
    exact = np.zeros(len(texts), np.bool_)
    if len(rows):
        same = pc.equal(double_texts(_some(values, rows)), _some(texts, rows))
        exact[rows] = bools_of(same.fill_null(False)) & small[rows]
    rest = np.flatnonzero(~exact & valid)
    odd = rest[_odd_rows(_some(texts, rest), _IN_FRACTIONS)]
    return values, np.union1d(odd, rest[doubtful[rest]])


def _some(column: pa.Array, rows: Int64s) -> pa.Array:
    return column if len(rows) == len(column) else select(column, rows)


def _odd_rows(texts: pa.StringArray, letters: bytes) -> Int64s:
    """Return the rows with other bytes than these letters, leading zeros, or minus zero without a point."""
    offsets, buffer = offsets_of(texts), texts.buffers()[2]
    starts, lengths = offsets[:-1], np.diff(offsets)
    if buffer is None or not len(texts):
        return np.empty(0, np.int64)
    view = np.frombuffer(buffer, np.uint8)
    rows = np.flatnonzero(lengths > 1)
    at = starts[rows]
    first = view[at]
    zero = (first == _ZERO) & (view[at + 1] != _POINT)
    minus = np.flatnonzero(first == _MINUS)
    if len(minus):
        at, longer = at[minus], lengths[rows[minus]] > 2
        zero[minus] = (view[at + 1] == _ZERO) & ~(longer & (view[at + 1 + longer] == _POINT))
    # A text with a point at the end, as in 1., is not a number.
    odd: Int64s = rows[zero | (view[starts[rows] + lengths[rows] - 1] == _POINT)]
    for other in set(memoryview(buffer)[offsets[0] : offsets[-1]].tobytes().translate(None, letters)):
        places = np.flatnonzero(view[: offsets[-1]] == other)
        odd = np.union1d(odd, np.searchsorted(offsets, places[places >= offsets[0]], "right") - 1)
    return odd


def _cast(texts: pa.StringArray, kind: pa.DataType, letters: bytes) -> pa.Array:
    """Return the values of texts; those of odd rows may be null."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return _without(texts, _odd_rows(texts, letters)).cast(kind)


def _without(texts: pa.StringArray, rows: Int64s) -> pa.StringArray:
    """Return texts; null in some rows."""
    if not len(rows):
        return texts
    nothing = np.zeros(len(texts), np.bool_)
    nothing[rows] = True
    return pc.if_else(number_column(nothing), None, texts)


_ZERO, _MINUS, _POINT = b"0-."
_IN_INTEGERS: Final = b"-0123456789"
_IN_FRACTIONS: Final = b"-.0123456789"
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
