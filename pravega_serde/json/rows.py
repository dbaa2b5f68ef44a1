"""Reading one event at a time: with msgspec if it is certain, else with Python's own JSON, which decides validity.

The reader accepts the same text as Jackson does by default: one value in UTF-8, with or without a byte order mark,
without NaN or comments. If several members have one name, the last one counts. Zeros after the value are ignored,
because some of Java's writers pad with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.limits import ItemLimit
from pravega_serde.columnar.types import contains
from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.json.convert import converter

#: Events up to this many bytes are never slow: msgspec needs some 8 µs for a number near the ends of the range of
#: doubles, Python 0.3 µs. Such a short event has too few of them to matter.
LONG_EVENT: Final = 64 * 1024

_LONG_EXPONENT: Final = re.compile(rb"[eE][+-]?[0-9]{3}")

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_decode: Final = msgspec.json.Decoder().decode


def _refuse_constant(name: str) -> Any:
    raise MalformedError(f"invalid value {name}")


_DECODERS: Final = {
    False: json.JSONDecoder(parse_constant=_refuse_constant),
    True: json.JSONDecoder(parse_constant=_refuse_constant, parse_float=Decimal),
}


def _integer(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:  # thousands of digits
        return Decimal(digits)


def _fraction(digits: str) -> Decimal | float:
    try:
        return Decimal(digits)
    except ArithmeticError:  # an exponent that only a double can have
        return float(digits)


#: Decoder of all numbers: also of those that Python refuses, which a field of another type may have.
_ALL_NUMBERS: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer, parse_float=_fraction)


def parse(data: bytes) -> Any:
    """Return the Python value of an event. Raise :class:`DeserializationError` for an invalid one."""
    if is_slow(data):
        return parse_plainly(data)
    try:
        return _decode(data)
    # msgspec's errors, and those of Python's strings and numbers: the plain parser decides, and reports the fault.
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return parse_plainly(data)


def is_slow(data: bytes) -> bool:
    """True if msgspec could need seconds for an event."""
    return len(data) > LONG_EVENT and _LONG_EXPONENT.search(data) is not None


def parse_plainly(data: bytes, *, decimals: bool = False) -> Any:
    """Parse an event with Python's own JSON; ``decimals`` reads numbers with a fraction or exponent as Decimal."""
    return parse_with(_DECODERS[decimals].decode, data)


def parse_with(decode: Callable[[str], Any], data: bytes) -> Any:
    """Parse an event with a decoder of Python's own JSON."""
    try:
        return decode(strip(data).decode())
    except UnicodeDecodeError as error:
        raise DeserializationError(f"not JSON: invalid UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise DeserializationError(f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise LimitExceededError("JSON nested beyond the interpreter's recursion limit") from error
    # A number of thousands of digits, or an exponent of as many, which Python refuses; a refused constant.
    except (ArithmeticError, ValueError) as error:
        raise DeserializationError(f"not JSON: {error}") from error


def strip(data: bytes) -> bytes:
    """Return the event without its byte order mark and trailing zeros."""
    return bytes(data).removeprefix(_BYTE_ORDER_MARK).rstrip(b"\0")


class TypedReader:
    """Reader of single events as values of an Arrow type: the plain path of columns.

    Members that the type lacks are ignored, absent ones are null. Types are strict: a string is not read as a number.
    """

    __slots__ = ("_convert", "_decimals", "_exact", "_limit")

    def __init__(self, kind: pa.DataType) -> None:
        self._limit = ItemLimit(kind)
        self._convert = converter(kind)
        # Seconds with a fraction may be an instant, whose digits a double does not have.
        self._decimals = contains(kind, "decimal", "variant", "timestamp")
        self._exact = contains(kind, "variant")  # has all members, each with all digits

    def _parse(self, data: bytes) -> Any:
        try:
            return parse_plainly(data, decimals=self._decimals)
        except DeserializationError:
            if self._exact:
                raise
            # Columns skip the numbers of other members.
            return parse_with(_ALL_NUMBERS.decode, data)

    def __call__(self, data: bytes) -> Any:
        """Return the value of an event, as ``pa.array`` accepts it for the type.

        Raises :class:`DeserializationError`.
        """
        value = self._parse(data)
        try:
            self._limit.check(len(data), value)
            return self._convert(value)
        except MalformedError as error:
            raise error.in_event("value") from error
