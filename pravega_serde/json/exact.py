"""Exact columns of JSON: what a column would lose is malformed, and inference of columns that lose nothing.

An event may lose something in a column of :class:`~pravega_serde.json.JsonSerializer`: a field without a column, a
repeated name, digits that a double does not have. Readers of files must not lose any of these. Columns of text accept
any value, as its JSON text, so that values of different types fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import Attempt, ColumnReader, MalformedError, PlainPath, list_items, map_entries
from pravega_serde.columnar.arrays import Bools, Int64s, as_binary, bools_of, numbers_of, offsets_of, select, valid_rows
from pravega_serde.columnar.digits import inexact_fractions
from pravega_serde.columnar.found import EXACT_INTEGERS, SMALLEST_NORMAL, Found, fits_double, fits_float
from pravega_serde.columnar.limits import ItemLimit
from pravega_serde.columnar.parsed import Convert
from pravega_serde.columnar.types import contains, integer_bounds
from pravega_serde.errors import DeserializationError, SchemaError
from pravega_serde.json.columns import column_reader
from pravega_serde.json.convert import JsonValues
from pravega_serde.json.rows import parse, parse_with, strip
from pravega_serde.json.serializer import JsonSerializer
from pravega_serde.json.write_rows import to_json

_decode: Final = msgspec.json.Decoder().decode
_REFUSALS: Final = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)


# ---- one event at a time ----


class _Number(Decimal):
    """Number with its digits as they are written."""

    __slots__ = ("_text",)

    _text: str

    def __new__(cls, text: str) -> _Number:
        number = super().__new__(cls, text)
        number._text = text
        return number

    def __str__(self) -> str:
        return self._text


class _RepeatedError(Exception):
    """Name that occurs twice in an object."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedError(next(name for name in names if names.count(name) > 1))
    return found


def _integer(text: str) -> Any:
    # Python refuses integers of thousands of digits; minus zero is not an integer.
    return _Number(text) if len(text) > _LONG_INTEGER or text == "-0" else int(text)


def _refuse_constant(name: str) -> Any:
    raise MalformedError(f"invalid value {name}")


#: Text of a number that no other text means.
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
#: Text of a date and a time, whose seconds have up to six digits after the point.
_SECONDS: Final = re.compile(r"[^.]*[Tt ][^.]*(\.[0-9]{1,6}0*(?![0-9])[^.]*)?")
_LONG_INTEGER: Final = 100
_NUMBERS: Final[dict[str, Any]] = {
    "parse_constant": _refuse_constant,
    "parse_float": _Number,
    "parse_int": _integer,
}
_PARSE: Final = json.JSONDecoder(**_NUMBERS).decode
_PARSE_WITHOUT_REPEATS: Final = json.JSONDecoder(object_pairs_hook=_without_repeats, **_NUMBERS).decode


class _ExactValues(JsonValues):
    def integer(self, kind: pa.DataType) -> Convert:
        convert = super().integer(kind)
        _, high = integer_bounds(kind)

        def exactly(value: Any) -> int:
            if type(value) is _Number and not -high <= value <= high and value == value.to_integral_value():
                raise MalformedError(f"a number beyond the range of {kind}")
            number: int = convert(value)
            return number

        return exactly

    def floating(self, kind: pa.DataType) -> Convert:
        convert, double = super().floating(kind), pa.types.is_float64(kind)

        def exactly(value: Any) -> float:
            if type(value) is _Number:
                value, text = Decimal(value), str(value)
            else:
                text = value
            number: float = convert(value)
            if type(value) in (int, Decimal) and not (
                fits_double(Decimal(value)) if double else fits_float(str(value), number)
            ):
                raise MalformedError(f"{text!s:.60} has more digits than a {kind} holds")
            return number

        return exactly

    def timestamp(self, kind: pa.DataType) -> Convert:
        convert = super().timestamp(kind)

        def exactly(value: Any) -> Any:
            fraction = _SECONDS.fullmatch(value) if isinstance(value, str) else None
            lost = fraction is None if isinstance(value, str) else type(value) is list and value[6:] and value[6] % 1000
            if lost:
                raise MalformedError(f"{value!s:.60} is not a time of up to six digits after the point")
            return convert(value)

        return exactly

    def decimal(self, kind: pa.DataType) -> Convert:
        convert = super().decimal(kind)

        def exactly(value: Any) -> Decimal:
            if isinstance(value, str) and not _DECIMAL.fullmatch(value):
                raise self.wrong("a decimal number", value)
            number: Decimal = convert(value)
            return number

        return exactly

    def text(self, kind: pa.DataType) -> Convert:
        def convert(value: Any) -> str:
            if not isinstance(value, str):
                return to_json(value).decode()
            try:
                value.encode()
            except UnicodeEncodeError:
                raise MalformedError("an unpaired surrogate, which is not text") from None
            return value

        return convert

    def fields(self, kind: pa.DataType, path: str) -> Convert:
        convert, names = super().fields(kind, path), frozenset(entry.name for entry in kind)

        def exactly(value: Any) -> tuple[Any, ...]:
            if type(value) is dict and not names.issuperset(value):
                unknown = next(name for name in value if name not in names)
                raise MalformedError(f"the field {unknown!r} has no column")
            record: tuple[Any, ...] = convert(value)
            return record

        return exactly


class _RowReader:
    """Reader of single events: the plain path of exact columns."""

    __slots__ = ("_convert", "_limit")

    def __init__(self, kind: pa.DataType) -> None:
        self._limit, self._convert = ItemLimit(kind), _ExactValues().of(kind)

    def __call__(self, data: bytes) -> Any:
        try:
            value = parse_with(_PARSE_WITHOUT_REPEATS, data)
            self._limit.check(len(data), value)
            return self._convert(value)
        except _RepeatedError as error:
            raise DeserializationError(f"the name {str(error)!r} occurs twice in an object") from error
        except MalformedError as error:
            raise DeserializationError(error.reason, field_path=error.field_path()) from error


# ---- columns ----


class ExactReader:
    """Reader of columns of events, of one Arrow type. Raises SchemaError for an unsupported type."""

    def __init__(self, kind: pa.DataType) -> None:
        self._has_doubles = contains(kind, "float64")
        self._flat = not any(pa.types.is_nested(entry.type) for entry in kind)
        # msgspec reads any text as a decimal, and cuts times and the digits of small floats.
        loses = contains(kind, "decimal", "timestamp", "float32", "float16")
        self._members = None if loses else column_reader(kind, closed=True)
        fast = None if self._members is None else self._attempt
        self.read = ColumnReader(PlainPath(_RowReader(kind), kind), fast)
        """Reader of columns of events."""

    def suspects(self, column: pa.BinaryArray) -> list[int]:
        """Return the rows that may not fit the type; all others fit."""
        return list(range(len(column))) if self._members is None else self._attempt(column).suspects.tolist()

    def lossy(self, values: pa.Array, column: pa.BinaryArray) -> Int64s:
        """Return the rows with numbers that may have lost digits of the events, or the sign of zero."""
        offsets = offsets_of(column)
        view = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        places, tiny = _minuses(view)
        if self._has_doubles:
            places = np.append(places, inexact_fractions(view.tobytes()))
        rows: Int64s = np.unique(np.searchsorted(offsets, offsets[0] + places, "right") - 1)
        # Zero may be a number with too small an exponent.
        least = SMALLEST_NORMAL if tiny else 0.0
        if not self._has_doubles or all(_are_usual(leaf, least) for leaf in _leaves(values)):
            return rows
        large = np.flatnonzero(_doubles(values, lambda sizes: ~(sizes < EXACT_INTEGERS)))
        small = np.flatnonzero(_doubles(values, lambda sizes: sizes < SMALLEST_NORMAL))
        if len(small):
            exponents = pc.match_substring_regex(select(column, small), "[eE]-[0-9]{3}")
            small = small[bools_of(exponents)]
        return np.unique(np.concatenate((rows, large, small)))

    def _attempt(self, column: pa.BinaryArray) -> Attempt:
        assert self._members is not None
        tried = self._members(column)
        names, written = _names_with_values(tried.values), _written_names(column)
        suspects = np.union1d(tried.suspects, self.lossy(tried.values, column))
        # More names may be written than are found: nulls, and text that looks like names.
        unsure = np.setdiff1d(np.flatnonzero(written != names), suspects, assume_unique=True)
        if len(unsure):
            counts = map(_flat_names if self._flat else _all_names, select(column, unsure).to_pylist())
            repeated = np.fromiter(counts, np.int64, len(unsure)) != written[unsure]
            suspects = np.union1d(suspects, unsure[repeated])
        return Attempt(tried.values, suspects)


def _minuses(view: npt.NDArray[np.uint8]) -> tuple[Int64s, bool]:
    """Return the positions of zeros whose sign msgspec and pyarrow drop, and True if exponents may be negative.

    Some may be in texts.
    """
    at = np.flatnonzero(view[:-2] == _MINUS)
    before = view[at - 1]
    signs = at[_BEFORE_VALUES[before]]
    zeros: Int64s = signs[(view[signs + 1] == _ZERO) & ~_IN_NUMBERS[view[signs + 2]]]
    return zeros, bool((before | _LOWER == _E).any())


_LOWER: Final = 0x20
_MINUS, _ZERO, _E = b"-0e"
_IN_NUMBERS: Final = np.isin(np.arange(256), list(b".0123456789"))
_BEFORE_VALUES: Final = np.isin(np.arange(256), list(b":,[ \t\r\n"))


def _names_with_values(column: pa.Array) -> Int64s:
    """Return the number of members with a value in each row."""
    kind = column.type
    names = np.zeros(len(column), np.int64)
    if pa.types.is_struct(kind):
        for inner in column.flatten():
            names += valid_rows(inner) + _names_with_values(inner)
    elif pa.types.is_map(kind):
        lengths, _, items = map_entries(column)
        names += lengths + _by_row(lengths, _names_with_values(items))
    elif pa.types.is_list(kind) and pa.types.is_nested(kind.value_type):
        lengths, items = list_items(column)
        names += _by_row(lengths, _names_with_values(items))
    return names


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the columns of doubles, and the doubles in lists and maps."""
    kind = column.type
    if pa.types.is_struct(kind):
        for inner in column.flatten():
            yield from _leaves(inner)
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        yield from _leaves((map_entries(column) if pa.types.is_map(kind) else list_items(column))[-1])
    elif pa.types.is_float64(kind):
        yield column


def _sizes(column: pa.DoubleArray) -> npt.NDArray[np.float64]:
    """Return the sizes of doubles; 1 for nulls."""
    return np.where(valid_rows(column), np.abs(numbers_of(column)), 1.0)


def _are_usual(column: pa.Array, least: float) -> bool:
    """Return True if all doubles have a size, from ``least`` on, in which their digits are exact."""
    sizes = _sizes(column)
    return not len(sizes) or bool(sizes.min() >= least and sizes.max() < EXACT_INTEGERS)  # not NaN


def _doubles(column: pa.Array, test: Callable[[npt.NDArray[np.float64]], Bools]) -> Int64s:
    """Return the number of doubles in each row that pass a test; nulls count as 1."""
    kind = column.type
    found = np.zeros(len(column), np.int64)
    if not contains(kind, "float64"):
        return found
    if pa.types.is_struct(kind):
        for inner in column.flatten():
            found += _doubles(inner, test)
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        lengths, *_, items = map_entries(column) if pa.types.is_map(kind) else list_items(column)
        found += _by_row(lengths, _doubles(items, test))
    else:
        found += test(_sizes(column))
    return found


def _by_row(lengths: Int64s, items: Int64s) -> Int64s:
    """Return the sum of the items of each row."""
    sums, ends = np.append(0, np.cumsum(items)), np.cumsum(lengths)
    of_row: Int64s = sums[ends] - sums[ends - lengths]
    return of_row


_COLON, _QUOTE, _BLANK = 0x3A, 0x22, 0x20


def _written_names(column: pa.BinaryArray) -> Int64s:
    """Return the number of names in each event, or more: colons after a quote or a blank."""
    offsets = offsets_of(column)
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    colons = np.flatnonzero(data[1:] == _COLON)
    before = data[colons]
    colons = colons[(before == _QUOTE) | (before <= _BLANK)] + 1 + offsets[0]
    bounds = np.searchsorted(colons, offsets)
    found: Int64s = np.diff(bounds)
    return found


def _flat_names(event: bytes) -> int:
    """Return the number of different names in an event, or -1 if it cannot be read."""
    try:
        return len(_decode(event))
    except _REFUSALS:
        return -1


def _all_names(event: bytes) -> int:
    try:
        return _names(_decode(event))
    except _REFUSALS:
        return -1


def _names(value: Any) -> int:
    if type(value) is dict:
        return len(value) + sum(_names(inner) for inner in value.values() if type(inner) in (dict, list))
    return sum(_names(inner) for inner in value if type(inner) in (dict, list)) if type(value) is list else 0


# ---- serializers ----


class ExactJsonSerializer(JsonSerializer):
    """JSON serializer that reads exact columns. Raises SchemaError for an unsupported type."""

    def _make_reader(self) -> ColumnReader:
        return ExactReader(self.arrow_type).read


class JsonTextSerializer(JsonSerializer):
    """Reader of JSON objects as one column of their text, without line ends."""

    def __init__(self) -> None:
        super().__init__(arrow_type=pa.string())

    def _arguments(self) -> dict[str, Any]:
        return {}

    def _make_reader(self) -> ColumnReader:
        return ColumnReader(PlainPath(_text, pa.string()), None)


def _text(event: bytes) -> str:
    value = parse(event)
    if type(value) is not dict:
        raise DeserializationError(f"invalid value: {JsonValues().noun(value)} where an object is expected")
    # Outside strings, a line end is a blank; inside, it is invalid.
    return strip(event).decode().strip().replace("\r", " ").replace("\n", " ")


# ---- inference ----

#: Depth from which objects and lists are text.
_DEEPEST: Final = 64
_ROWS_AT_ONCE: Final = 4096
_FIRST_ROWS: Final = 64


class Inference:
    """Inference of columns from events; text stays text even if it looks like a time. Malformed events are left out."""

    def __init__(self, *, mixed: bool = False) -> None:
        """With ``mixed``, values of different types are text, which only exact columns read."""
        self._mixed = mixed
        self.found = Found()
        """The objects that were found."""
        self._reader: ExactReader | None = None
        self._rows = _FIRST_ROWS

    def add(self, events: pa.BinaryArray) -> None:
        """Add the events of a column."""
        events = as_binary(events).drop_null()
        at = 0
        while at < len(events):
            part = events.slice(at, self._rows)
            self._add(part)
            at, self._rows = at + len(part), _ROWS_AT_ONCE

    def schema(self) -> pa.Schema:
        """Return the columns of all events. Raises SchemaError for too many, and for values of several types."""
        if not self._mixed and (path := self.found.mixed()) is not None:
            raise SchemaError(f"{path} has values of different types")
        return self.found.schema()

    def _add(self, events: pa.BinaryArray) -> None:
        rows = range(len(events)) if self._reader is None else self._reader.suspects(events)
        before = None if self._reader is None else self.found.schema()
        for row in rows:
            try:
                value = parse_with(_PARSE, events[row].as_py())
            except DeserializationError:
                continue
            if type(value) is dict:
                _add_value(self.found, value, 0)
        if len(rows) and (schema := self.found.schema()) != before:
            self._reader = _reader_of(schema)


def _reader_of(schema: pa.Schema) -> ExactReader | None:
    try:
        return ExactReader(pa.struct(list(schema)))
    except SchemaError:
        return None


def _add_value(found: Found, value: Any, depth: int) -> None:
    kind = type(value)
    if kind is dict and depth < _DEEPEST:
        found.kinds.add("object")
        for name, inner in value.items():
            _add_value(found.fields.setdefault(name, Found()), inner, depth + 1)
    elif kind is list and depth < _DEEPEST:
        found.kinds.add("list")
        found.item = found.item or Found()
        for inner in value:
            _add_value(found.item, inner, depth + 1)
    elif value is not None:
        _SCALARS.get(kind, _add_text)(found, value)


def _add_text(found: Found, _: Any) -> None:
    found.kinds.add("text")


def _add_number(found: Found, value: _Number) -> None:
    if "." in str(value) or "e" in str(value).lower() or not value:
        found.add_fraction(value)
    else:
        found.add_integer(int(value.to_integral_value()) if value.adjusted() < _LONG_INTEGER else 10**_LONG_INTEGER)


_SCALARS: Final[dict[type, Callable[[Found, Any], None]]] = {
    bool: lambda found, _: found.kinds.add("boolean"),
    int: Found.add_integer,
    _Number: _add_number,
}
