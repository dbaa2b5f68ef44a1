"""The plain path: one event at a time, by Python's own JSON. It is the authority on what is valid.

Read is what Jackson reads by default: one value in UTF-8, a byte order mark before it or not; no NaN, no comments. A
member of an object that comes twice counts the last time. Zeros behind the value are ignored, because some of Java's
writers pad with them.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.json._budget import Budget
from pravega_serde.json._convert import contains_decimal, converter

__all__ = ["LONG_EVENT", "TypedReader", "is_slow", "parse", "parse_plainly", "strip"]

#: msgspec takes some 8 µs for a number near the ends of the range of doubles, Python 0.3 µs. In events that are no
#: longer than this it does not matter.
LONG_EVENT: Final = 64 * 1024

_LONG_EXPONENT: Final = re.compile(rb"[eE][+-]?[0-9]{3}")

_decode_fast: Final = msgspec.json.Decoder().decode

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def _no_constant(name: str) -> Any:
    raise MalformedError(f"{name} is not JSON")


_DECODERS: Final = {
    False: json.JSONDecoder(parse_constant=_no_constant),
    True: json.JSONDecoder(parse_constant=_no_constant, parse_float=Decimal),
}


def parse(data: bytes) -> Any:
    """The value of an event as Python has it: by msgspec, where it takes the event."""
    if is_slow(data):
        return parse_plainly(data)
    try:
        return _decode_fast(data)
    # Its own errors, and those of Python's strings and numbers: the plain way says what is wrong, if anything is.
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return parse_plainly(data)


def is_slow(data: bytes) -> bool:
    """Whether msgspec may take more than its time for an event."""
    return len(data) > LONG_EVENT and _LONG_EXPONENT.search(data) is not None


def parse_plainly(data: bytes, *, decimals: bool = False) -> Any:
    """The value of an event by Python's own JSON. With ``decimals``, a number with a point is a Decimal."""
    try:
        return _DECODERS[decimals].decode(strip(data).decode())
    except UnicodeDecodeError as error:
        raise DeserializationError(f"not JSON: not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise DeserializationError(f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise LimitExceededError("JSON nested beyond the interpreter's recursion limit") from error
    # A number of thousands of digits, or with an exponent of as many, which Python refuses; a constant that is none.
    except (ArithmeticError, ValueError) as error:
        raise DeserializationError(f"not JSON: {error}") from error


def strip(data: bytes) -> bytes:
    """The event without what Java's writers put around it."""
    return bytes(data).removeprefix(_BYTE_ORDER_MARK).rstrip(b"\0")


class TypedReader:
    """Reads single events as values of an Arrow type.

    What an object has beyond the type is ignored, what it lacks is null. Types are strict: a string is no number.
    """

    __slots__ = ("_budget", "_convert", "_decimals")

    def __init__(self, kind: pa.DataType) -> None:
        self._budget = Budget.of(kind)
        self._convert = converter(kind)
        self._decimals = contains_decimal(kind)

    def __call__(self, data: bytes) -> Any:
        """The value, in a form that ``pa.array`` takes for the type."""
        value = parse_plainly(data, decimals=self._decimals)
        self._budget.check(data, value)
        try:
            return self._convert(value)
        except MalformedError as error:
            raise DeserializationError(f"not of this schema: {error.reason}", field_path=error.field_path()) from error
