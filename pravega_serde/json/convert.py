"""Conversion of JSON values to values of Arrow types, one at a time.

Types are strict: a string is not read as a number.
"""

from __future__ import annotations

import binascii
import math
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Final

import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.building import decimal_fitter, millis
from pravega_serde.columnar.parsed import Convert, ParsedValues, local_time, seconds_to_micros

#: Jackson's texts of numbers that JSON does not have.
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class JsonValues(ParsedValues):
    """Conversions of JSON values."""

    language = "reads of JSON"
    nouns: ClassVar[dict[type, str]] = {
        str: "a string",
        bool: "a boolean",
        list: "an array",
        dict: "an object",
        type(None): "null",
    }

    def noun(self, value: Any) -> str:
        """Return the name of a value in errors."""
        return self.nouns.get(type(value), "a number")

    def floating(self, kind: pa.DataType) -> Convert:
        """Conversion to ``float`` or ``double``, also of the texts that Jackson writes for NaN and infinities."""
        number = super().floating(kind)

        def convert(value: Any) -> Any:
            return _NOT_FINITE[value] if isinstance(value, str) and value in _NOT_FINITE else number(value)

        return convert

    def text(self, kind: pa.DataType) -> Convert:
        """Conversion to ``string``."""

        def convert(value: Any) -> str:
            if not isinstance(value, str):
                raise self.wrong("a string", value)
            try:
                value.encode()
            except UnicodeEncodeError:
                # An unpaired surrogate, which Java keeps and writes as a question mark.
                return value.encode("utf-8", "replace").decode()
            return value

        return convert

    def binary(self, kind: pa.DataType) -> Convert:
        """Conversion to ``binary``, from Base64."""

        def convert(value: Any) -> bytes:
            if not isinstance(value, str):
                raise self.wrong("a Base64 string", value)
            try:
                # Jackson skips line ends and blanks, which the variant of MIME has.
                return binascii.a2b_base64("".join(value.split()), strict_mode=True)
            except ValueError as error:
                raise MalformedError(f"invalid Base64: {error}") from error

        return convert

    def decimal(self, kind: pa.DataType) -> Convert:
        """Conversion to a decimal, from a number or a text."""
        fit = decimal_fitter(kind)

        def convert(value: Any) -> Decimal:
            if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
                raise self.wrong("a decimal number", value)
            try:
                number = Decimal(value)
            except InvalidOperation:
                raise MalformedError(f"invalid decimal number {str(value)[:40]!r}") from None
            return fit(number)

        return convert

    def date(self, kind: pa.DataType) -> Convert:
        """Conversion to ``date32``, from ISO 8601 or Jackson's ``[year, month, day]``."""

        def convert(value: Any) -> Any:
            if type(value) is list:
                return self.of_parts(value, "a date", date, 3, 3)
            return self.time_of(value, kind, "a date")

        return convert

    def timestamp(self, kind: pa.DataType) -> Convert:
        """Conversion of Jackson's forms too: milliseconds, seconds with a fraction, the parts of a local time."""

        def convert(value: Any) -> Any:
            if type(value) is int:
                return millis(value)
            if type(value) is Decimal and kind.tz is not None:
                return seconds_to_micros(value)
            if type(value) is list and kind.tz is None:
                return self.of_parts(value, "a timestamp", local_time, 5, 7)
            return self.time_of(value, kind, "a timestamp")

        return convert


converter = JsonValues().of
