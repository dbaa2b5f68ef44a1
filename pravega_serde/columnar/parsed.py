"""Conversion of parsed values, such as those of JSON and CBOR, to values of Arrow types, one at a time.

Types are strict: a text is not read as a number. This module has the parts that the formats share. Each format defines
the form of its scalars in its own class.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Any, ClassVar, Final

import pyarrow as pa

from pravega_serde.columnar.bad_rows import MalformedError
from pravega_serde.columnar.building import parse_times
from pravega_serde.columnar.types import Walk, family, integer_bounds, no_form, stored
from pravega_serde.columnar.variant import encode

#: Holds every decimal number that Python can have, exactly.
EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])

#: Digits of the seconds that 64 bits of microseconds can reach.
_SECONDS_DIGITS: Final = 13

#: Converts a parsed value to one that ``pa.array`` accepts, possibly in place. Raises :class:`MalformedError`.
Convert = Callable[[Any], Any]


class ParsedValues(Walk[Convert]):
    """Conversions of the parsed values of one format, checked."""

    #: Families of the keys of maps.
    keys: ClassVar[tuple[str, ...]] = ("text",)
    nouns: ClassVar[dict[type, str]]
    """What its errors call a value of a Python type."""

    def of(self, kind: pa.DataType, path: str = "$") -> Convert:
        """Return the conversion to a type. Raises :class:`SchemaError` for a type that columns are not read as."""
        if (other := stored(kind)) != kind or not hasattr(self, family(kind)):
            raise no_form(
                kind, self.language, path, f"read it as {other if hasattr(self, family(other)) else 'string'}"
            )
        return self.optional(super().of(kind, path))

    def optional(self, convert: Convert) -> Convert:
        """Return the conversion for values that may be absent."""
        return lambda value: None if value is None else convert(value)

    def wrong(self, wanted: str, value: Any) -> MalformedError:
        """Return the error of a value of another type."""
        return MalformedError(f"{self.noun(value)} where {wanted} is expected")

    @abstractmethod
    def noun(self, value: Any) -> str:
        """Return the name of a value in errors."""

    @abstractmethod
    def text(self, kind: pa.DataType) -> Convert:
        """Conversion to ``string``."""

    @abstractmethod
    def binary(self, kind: pa.DataType) -> Convert:
        """Conversion to ``binary``."""

    @abstractmethod
    def decimal(self, kind: pa.DataType) -> Convert:
        """Conversion to a decimal."""

    @abstractmethod
    def date(self, kind: pa.DataType) -> Convert:
        """Conversion to ``date32``."""

    @abstractmethod
    def timestamp(self, kind: pa.DataType) -> Convert:
        """Conversion to a timestamp in microseconds."""

    def null(self, kind: pa.DataType) -> Convert:
        """Conversion to ``null``."""

        def convert(value: Any) -> None:
            raise self.wrong("null", value)

        return convert

    def boolean(self, kind: pa.DataType) -> Convert:
        """Conversion to ``bool``."""

        def convert(value: Any) -> bool:
            if type(value) is not bool:
                raise self.wrong("a boolean", value)
            return value

        return convert

    def integer(self, kind: pa.DataType) -> Convert:
        """Conversion to an integer type."""
        low, high = integer_bounds(kind)

        def convert(value: Any) -> int:
            if type(value) is not int:
                raise self.wrong("an integer", value)
            if not low <= value <= high:
                raise MalformedError(f"a number beyond the range of {kind}")
            return value

        return convert

    def floating(self, kind: pa.DataType) -> Convert:
        """Conversion to ``float`` or ``double``; larger values are infinite, as in Java."""

        def convert(value: Any) -> float:
            if type(value) is float:
                return value
            if type(value) is not int and type(value) is not Decimal:
                raise self.wrong("a number", value)
            try:
                return float(value)
            except OverflowError:
                return math.inf if value > 0 else -math.inf

        return convert

    def time_of(self, value: Any, kind: pa.DataType, wanted: str) -> int:
        """Return the days or microseconds of a text in ISO 8601."""
        if not isinstance(value, str):
            raise self.wrong(wanted, value)
        try:
            text = value.upper()  # Java's formatters accept letters in lower case
            if (number := _usual_time(text, kind)) is not None:
                return number
            time = parse_times(pa.array([text]), kind).cast(pa.int64() if kind.bit_width == 64 else pa.int32())
            return int(time[0].as_py())
        except (pa.ArrowInvalid, UnicodeEncodeError):
            zone = "" if wanted == "a date" else " with its zone" if kind.tz else " without a zone"
            raise MalformedError(f"{value[:40]!r} is not {wanted} in ISO 8601{zone}") from None

    def of_parts(self, value: list[Any], wanted: str, make: Callable[..., Any], least: int, most: int) -> Any:
        """Return one of Java's dates or times from the array of its parts."""
        if not least <= len(value) <= most or not all(type(part) is int for part in value):
            raise self.wrong(wanted, value)
        try:
            return make(*value)
        except (OverflowError, ValueError) as error:
            raise MalformedError(f"invalid parts of {wanted}: {error}") from None

    def items(self, kind: pa.DataType, path: str) -> Convert:
        """Conversion to a list."""
        inner = self.item(kind, path)

        def convert(value: Any) -> list[Any]:
            if type(value) is not list:
                raise self.wrong("an array", value)
            index = 0
            try:
                for index, item in enumerate(value):
                    # In place: a list may be as large as the event, and a second one would double the memory.
                    value[index] = inner(item)
            except MalformedError as error:
                raise error.within(f"[{index}]") from error
            return value

        return convert

    def entries(self, kind: pa.DataType, path: str) -> Convert:
        """Conversion to a map."""
        self.check_keys(kind, path, *self.keys)
        key_of, value_of = self.of(kind.key_type, f"{path}{{}}"), self.value(kind, path)

        def convert(value: Any) -> list[tuple[Any, Any]]:
            if type(value) is not dict:
                raise self.wrong(self.nouns[dict], value)
            entries: list[tuple[Any, Any]] = []
            key: Any = ""
            try:
                for key, inner in value.items():
                    entries.append((key_of(key), value_of(inner)))
            except MalformedError as error:
                raise error.within(f"[{key!r}]") from error
            return entries

        return convert

    def fields(self, kind: pa.DataType, path: str) -> Convert:
        """Conversion to a struct; unknown members are skipped."""
        fields = list(self.members(kind, path).items())

        def convert(value: Any) -> tuple[Any, ...]:
            if type(value) is not dict:
                raise self.wrong(self.nouns[dict], value)
            name = ""
            record: list[Any] = []
            try:
                for name, inner in fields:
                    record.append(inner(value.get(name)))
            except MalformedError as error:
                raise error.within(f".{name}") from error
            return tuple(record)

        return convert

    def variant(self, kind: pa.DataType) -> Convert:
        """Conversion to Spark's VARIANT; null is a null of the column."""
        return lambda value: encode(value, self.natural)

    def natural(self, value: Any) -> Any:
        """Return a value of another type than JSON's in a type that VARIANT has."""
        raise self.wrong("a value of JSON", value)


#: Usual texts of dates and times, with or without a zone.
_USUAL: Final = re.compile(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)?(Z|[-+][0-9]{2}(?::?[0-5][0-9])?)?"
)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


def _usual_time(text: str, kind: pa.DataType) -> int | None:
    """Return the days or microseconds of a usual text; None for another one, which Arrow reads or refuses."""
    match = _USUAL.fullmatch(text)
    try:
        if match is None:
            return None
        if pa.types.is_date(kind):
            return None if len(text) > _DATE_LENGTH else date.fromisoformat(text).toordinal() - _FIRST_DAY
        if match[1] is None or (match[2] is None) != (kind.tz is None):
            return None
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    offset = time.utcoffset() or _NO_TIME
    past = timedelta(time.toordinal() - _FIRST_DAY, time.second, time.microsecond, 0, time.minute, time.hour) - offset
    return past // _MICROSECOND


_DATE_LENGTH: Final = 10
_NO_TIME: Final = timedelta(0)
_MICROSECOND: Final = timedelta(microseconds=1)


def seconds_to_micros(seconds: float | Decimal) -> int:
    """Return the microseconds of seconds since 1970.

    A decimal number is rounded down, a float to the nearest microsecond.
    """
    if not seconds:
        return 0
    size = seconds.adjusted() if isinstance(seconds, Decimal) else math.log10(abs(seconds))
    if not size < _SECONDS_DIGITS:  # nor is NaN
        raise MalformedError("a number of seconds beyond the range of a timestamp")
    if isinstance(seconds, int):
        return seconds * 1_000_000
    if isinstance(seconds, Decimal):
        # Only the sign of a number this small counts; its exponent can be anything.
        if size < -_SECONDS_DIGITS:
            return -int(seconds < 0)
        return int(seconds.scaleb(6, EXACT).to_integral_value(ROUND_FLOOR))
    whole = math.floor(seconds)
    return whole * 1_000_000 + round((seconds - whole) * 1_000_000)


def local_time(*parts: int) -> datetime:
    """Return the date and time of year, month, day, hour, minute and perhaps second and nanosecond."""
    year, month, day, hour, minute, second, nano = (*parts, 0, 0)[:7]
    return datetime(year, month, day, hour, minute, second, nano // 1000)
