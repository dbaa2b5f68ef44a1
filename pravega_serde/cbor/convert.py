"""Conversion of CBOR values to values of Arrow types, one at a time.

Types are strict: a text is not read as a number.

Dates and times come in many forms: with the tags of the standard, and as Jackson writes Java's, without tags. A
``java.util.Date`` is a number of milliseconds, and an ``Instant`` a decimal number of seconds. A ``LocalDate`` and a
``LocalDateTime`` are arrays of their parts. Each can also be text in ISO 8601.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, Final
from uuid import UUID

import cbor2
import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.building import decimal_fitter, millis
from pravega_serde.columnar.parsed import Convert, ParsedValues, local_time, seconds_to_micros

#: Tags of texts of instants and of dates; the other tags of dates and times, and that of UUIDs.
DATE_TIME, DATE_TEXT = 0, 1004
_SECONDS, _DAYS, _UUID = 1, 100, 37

_INSTANT: Final = pa.timestamp("us", "UTC")


class _CborValues(ParsedValues):
    language = "reads of CBOR"
    keys = ("text", "binary", "integer")
    nouns: ClassVar[dict[type, str]] = {
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

    def text(self, kind: pa.DataType) -> Convert:
        return lambda value: value if type(value) is str else str(UUID(bytes=self._uuid(value, "a text")))

    def binary(self, kind: pa.DataType) -> Convert:
        return lambda value: value if type(value) is bytes else self._uuid(value, "a byte string")

    def _uuid(self, value: Any, wanted: str) -> bytes:
        """Return the bytes of a UUID."""
        if not isinstance(value, cbor2.CBORTag) or value.tag != _UUID:
            raise self.wrong(wanted, value)
        if type(value.value) is not bytes or len(value.value) != 16:
            raise MalformedError("a UUID that is not of 16 bytes")
        return value.value

    def decimal(self, kind: pa.DataType) -> Convert:
        fit = decimal_fitter(kind)

        def convert(value: Any) -> Decimal:
            if type(value) is not Decimal and type(value) is not int:
                raise self.wrong("a decimal number", value)
            return fit(Decimal(value))

        return convert

    def date(self, kind: pa.DataType) -> Convert:
        wanted = "a date"

        def convert(value: Any) -> Any:
            if type(value) is str:
                return self.time_of(value, kind, wanted)
            if type(value) is list:
                return self.of_parts(value, wanted, date, 3, 3)
            content = value.value if isinstance(value, cbor2.CBORTag) else None
            if isinstance(content, str) and value.tag == DATE_TEXT:
                return self.time_of(content, kind, wanted)
            if type(content) is int and value.tag == _DAYS:
                if not -(1 << 31) <= content < 1 << 31:
                    raise MalformedError("a date beyond the range of 32 bits of days")
                return content
            raise self.wrong(wanted, value)

        return convert

    def timestamp(self, kind: pa.DataType) -> Convert:
        wanted = "a timestamp"

        def convert(value: Any) -> Any:
            if type(value) is int:
                return millis(value)
            if type(value) is str:
                return self.time_of(value, kind, wanted)
            if type(value) is Decimal:
                return seconds_to_micros(value)
            if type(value) is list and kind.tz is None:
                return self.of_parts(value, wanted, local_time, 5, 7)
            content = value.value if isinstance(value, cbor2.CBORTag) else None
            if isinstance(content, str) and value.tag == DATE_TIME:
                return self.time_of(content, kind, wanted)
            if isinstance(content, int | float) and not isinstance(content, bool) and value.tag == _SECONDS:
                return seconds_to_micros(content)
            raise self.wrong(wanted, value)

        return convert

    def natural(self, value: Any) -> Any:
        if value is cbor2.undefined:
            return None
        tag = value.tag if isinstance(value, cbor2.CBORTag) else None
        if tag == _UUID:
            return self.text(pa.string())(value)
        try:
            if tag in (DATE_TEXT, _DAYS):
                return pa.scalar(self.date(pa.date32())(value), pa.date32()).as_py()
            if tag in (DATE_TIME, _SECONDS):
                return pa.scalar(self.timestamp(_INSTANT)(value), _INSTANT).as_py()
        except MalformedError:
            raise
        except (OverflowError, ValueError):
            raise MalformedError("a date or time beyond the years 1 to 9999") from None
        return super().natural(value)


converter = _CborValues().of
