"""Which single values a field takes, and what they become.

Strict where a wrong value would become a wrong event: a float is no int, a bool is no int, a number must fit its type.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np

from pravega_serde.columnar import MalformedError
from pravega_serde.protobuf._plan import EnumPlan

__all__ = ["Convert", "converter", "from_duration", "from_micros", "from_timestamp", "wrong"]

#: The value to put into a message; raises :class:`MalformedError` for one that does not fit.
Convert = Callable[[Any], Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_FLOAT: Final = float(np.finfo(np.float32).max)


def wrong(wanted: str, value: object) -> MalformedError:
    """The error of a value of a wrong type."""
    text = repr(value)
    return MalformedError(f"{text if len(text) < 60 else text[:57] + '...'} ({type(value).__name__}) is no {wanted}")


def converter(kind: str, enum: EnumPlan | None) -> Convert:
    """What turns values into those of a field's kind."""
    return _CONVERTERS[kind] if enum is None else _enum(enum)


def _integer(kind: str, low: int, high: int) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not int:
            if isinstance(value, bool | np.bool_):
                raise wrong(kind, value)
            if isinstance(value, Decimal) and value == value.to_integral_value():
                value = int(value)
            try:
                value = int(operator.index(value))
            except TypeError:
                raise wrong(kind, value) from None
        if not low <= value < high:
            raise wrong(kind, value)
        return value

    return convert


def _bool(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise wrong("bool", value)
    return bool(value)


def _double(value: Any) -> float:
    if isinstance(value, float):
        return value
    if not isinstance(value, int | np.integer | np.floating) or isinstance(value, bool):
        raise wrong("double", value)
    try:
        return float(value)
    except OverflowError:
        raise wrong("double", value) from None


def _float(value: Any) -> float:
    number = _double(value)
    if math.isfinite(number) and abs(number) > _MAX_FLOAT:
        raise wrong("float", value)
    return number


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong("string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise MalformedError("a surrogate without its partner cannot be written as UTF-8") from None
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise wrong("bytes", value)
    return bytes(value)


_CONVERTERS: Final[Mapping[str, Convert]] = {
    "bool": _bool,
    "bytes": _bytes,
    "double": _double,
    "float": _float,
    "string": _string,
    **{kind: _integer(kind, -(1 << 31), 1 << 31) for kind in ("int32", "sint32", "sfixed32")},
    **{kind: _integer(kind, -(1 << 63), 1 << 63) for kind in ("int64", "sint64", "sfixed64")},
    **{kind: _integer(kind, 0, 1 << 32) for kind in ("uint32", "fixed32")},
    **{kind: _integer(kind, 0, 1 << 64) for kind in ("uint64", "fixed64")},
}


def _enum(enum: EnumPlan) -> Convert:
    """A name, a number, or a number as text, as it is read where it has no name."""
    numbers, integer = dict(enum.numbers), _integer(f"number of {enum.name}", -(1 << 31), 1 << 31)

    def convert(value: Any) -> int:
        if isinstance(value, str):
            if value in numbers:
                return numbers[value]
            if not _is_number(value):
                raise wrong(f"value of the enum {enum.name}", value)
            value = int(value)
        number: int = integer(value)
        if enum.closed and number not in enum.names:
            raise wrong(f"value of the enum {enum.name}", value)
        return number

    return convert


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 11


def from_timestamp(value: Any) -> int:
    """Microseconds since 1970 of a datetime."""
    if not isinstance(value, datetime):
        raise wrong("datetime", value)
    if value.tzinfo is None:
        raise MalformedError(f"{value!r} needs a time zone")
    return (value - _EPOCH) // _MICROSECOND


def from_duration(value: Any) -> int:
    """Microseconds of a timedelta."""
    if not isinstance(value, timedelta):
        raise wrong("timedelta", value)
    return value // _MICROSECOND


def from_micros(shape: str, micros: int) -> tuple[int, int]:
    """Seconds and nanoseconds. Those of a timestamp are never negative; those of a duration have its sign."""
    seconds, rest = divmod(micros, 1_000_000)
    if shape == "duration" and micros < 0 and rest:
        seconds, rest = seconds + 1, rest - 1_000_000
    return seconds, rest * 1000
