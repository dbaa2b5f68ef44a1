"""Conversion of CBOR values to values of Arrow types, one at a time.

Types are strict: a text is not read as a number.

Dates and times come in many forms: with the tags of the standard, and as Jackson writes Java's, without tags. A
``java.util.Date`` is a number of milliseconds, and an ``Instant`` a decimal number of seconds. A ``LocalDate`` and a
``LocalDateTime`` are arrays of their parts. Each can also be text in ISO 8601.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Any, Final
from uuid import UUID

import cbor2
import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.building import decimal_fitter, millis
from pravega_serde.columnar.parsed import Convert, ParsedValues
from pravega_serde.errors import SchemaError

#: Holds every decimal number that Python can have, exactly.
EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])

#: Tags of texts of instants and of dates; the other tags of dates and times, and that of UUIDs.
DATE_TIME, DATE_TEXT = 0, 1004
_SECONDS, _DAYS, _UUID = 1, 100, 37

#: Digits of the seconds that 64 bits of microseconds can reach.
_SECONDS_DIGITS: Final = 13


class _CborValues(ParsedValues):
    format = "CBOR"
    nouns = {  # noqa: RUF012
        bool: "a boolean",
        int: "an integer",
        float: "a float",
        Decimal: "a decimal number",
        str: "a text",
        bytes: "a byte string",
        list: "an array",
        dict: "a map",
        cbor2.CBORSimpleValue: "a simple value",
    }

    def noun(self, value: Any) -> str:
        if isinstance(value, cbor2.CBORTag):
            return f"tag {value.tag}"
        return self.nouns.get(type(value), "another value")

    def optional(self, convert: Convert) -> Convert:
        return lambda value: None if value is None or value is cbor2.undefined else convert(value)

    def text(self, kind: pa.DataType, path: str) -> Convert:  # noqa: ARG002
        return lambda value: value if type(value) is str else str(UUID(bytes=self._uuid(value, "a text")))

    def binary(self, kind: pa.DataType, path: str) -> Convert:  # noqa: ARG002
        return lambda value: value if type(value) is bytes else self._uuid(value, "a byte string")

    def _uuid(self, value: Any, wanted: str) -> bytes:
        """Return the bytes of a UUID."""
        if not isinstance(value, cbor2.CBORTag) or value.tag != _UUID:
            raise self.wrong(wanted, value)
        if type(value.value) is not bytes or len(value.value) != 16:
            raise MalformedError("a UUID that is not of 16 bytes")
        return value.value

    def decimal(self, kind: pa.DataType, path: str) -> Convert:  # noqa: ARG002
        fit = decimal_fitter(kind)

        def convert(value: Any) -> Decimal:
            if type(value) is not Decimal and type(value) is not int:
                raise self.wrong("a decimal number", value)
            return fit(Decimal(value))

        return convert

    def date(self, kind: pa.DataType, path: str) -> Convert:  # noqa: ARG002
        wanted = "a date"

        def convert(value: Any) -> Any:
            if type(value) is str:
                return self.time_of(value, kind, wanted)
            if type(value) is list:
                return self._of_parts(value, wanted, date, 3, 3)
            content = value.value if isinstance(value, cbor2.CBORTag) else None
            if isinstance(content, str) and value.tag == DATE_TEXT:
                return self.time_of(content, kind, wanted)
            if type(content) is int and value.tag == _DAYS:
                if not -(1 << 31) <= content < 1 << 31:
                    raise MalformedError("a date beyond the range of 32 bits of days")
                return content
            raise self.wrong(wanted, value)

        return convert

    def timestamp(self, kind: pa.DataType, path: str) -> Convert:  # noqa: ARG002
        wanted = "a timestamp"

        def convert(value: Any) -> Any:
            if type(value) is int:
                return millis(value)
            if type(value) is str:
                return self.time_of(value, kind, wanted)
            if type(value) is Decimal:
                return _micros(value)
            if type(value) is list and kind.tz is None:
                return self._of_parts(value, wanted, _local, 5, 7)
            content = value.value if isinstance(value, cbor2.CBORTag) else None
            if isinstance(content, str) and value.tag == DATE_TIME:
                return self.time_of(content, kind, wanted)
            if isinstance(content, int | float) and not isinstance(content, bool) and value.tag == _SECONDS:
                return _micros(content)
            raise self.wrong(wanted, value)

        return convert

    def _of_parts(self, value: list[Any], wanted: str, make: Callable[..., Any], least: int, most: int) -> Any:
        """Return one of Java's dates or times from the array of its parts."""
        if not least <= len(value) <= most or not all(type(part) is int for part in value):
            raise self.wrong(wanted, value)
        try:
            return make(*value)
        except (OverflowError, ValueError) as error:
            raise MalformedError(f"invalid parts of {wanted}: {error}") from None

    def check_keys(self, kind: pa.DataType, path: str) -> None:
        t = pa.types
        if not (t.is_string(kind) or t.is_binary(kind) or t.is_integer(kind)):
            raise SchemaError(f"the keys of CBOR maps are texts, byte strings and integers, not {kind} (at {path})")


def _micros(seconds: float | Decimal) -> int:
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


def _local(*parts: int) -> datetime:
    """Return the date and time of year, month, day, hour, minute and perhaps second and nanosecond."""
    year, month, day, hour, minute, second, nano = (*parts, 0, 0)[:7]
    return datetime(year, month, day, hour, minute, second, nano // 1000)


converter = _CborValues().converter
