"""What a value of each type is in Python and in Arrow, and how the one bytes format becomes either.

*Natural* values are what ``deserialize`` gives: ``datetime``, ``date``, ``time``, ``Decimal``, ``UUID``. *Arrow* values
are what ``pa.array(..., type)`` takes without loss: a timestamp beyond Python's year 9999 is still a number there.

| Avro | natural | Arrow |
|---|---|---|
| int, long, float, double, boolean, null | int, float, bool, None | int32, int64, float32, float64, bool, null |
| string, enum | str | string |
| bytes, fixed | bytes | binary |
| date | date | date32 |
| timestamp-millis, -micros | datetime in UTC | timestamp[us, tz=UTC] |
| local-timestamp-millis, -micros | datetime without zone | timestamp[us] |
| timestamp-nanos, local- | int | int64: microseconds would lose digits, and Spark has no finer type |
| time-millis, time-micros | time | int32, int64: what Spark's own Avro reader makes of them; its time type is new |
| decimal | Decimal | decimal128; binary beyond 38 digits, Spark's limit |
| uuid | UUID | string, or binary if it annotates a fixed |
| duration | bytes | binary |
| array, map | list, dict | list<element>, map<key, value> |
| record | dict | struct |
| union with null | value or None | nullable value |
| any other union | value, see ``_read_rows`` | struct of member0, member1, …: all null but the one that is there |
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.avro._model import Fixed, Logical, Primitive
from pravega_serde.columnar import MalformedError

__all__ = [
    "UUID_PATTERN",
    "Converter",
    "MalformedError",
    "arrow_converter",
    "arrow_leaf_type",
    "is_decimal",
    "is_uuid",
    "natural_converter",
    "promoter",
    "shape_of",
]

Converter = Callable[[Any], Any]

#: Spark's, and decimal128's, most digits.
MAX_DECIMAL_DIGITS: Final = 38

INT64_MAX: Final = (1 << 63) - 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()

#: Enough digits for any decimal that a named limit lets through, so that making one never rounds.
_EXACT: Final = Context(prec=1_000_000)

_PRIMITIVE_TYPES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL_TYPES: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}


def is_decimal(logical: Logical | None) -> bool:
    """Whether a type is a decimal that Arrow and Spark can hold."""
    return logical is not None and logical.name == "decimal" and logical.precision <= MAX_DECIMAL_DIGITS


def arrow_leaf_type(target: Primitive | Fixed) -> pa.DataType:
    """Arrow type of a primitive or fixed."""
    logical = target.logical
    if logical is not None and is_decimal(logical):
        return pa.decimal128(logical.precision, logical.scale)
    if isinstance(target, Fixed):
        return pa.binary()
    return _LOGICAL_TYPES.get(logical.name if logical else "", _PRIMITIVE_TYPES[target.name])


def promoter(wire: str, target: Primitive | Fixed) -> Converter | None:
    """What turns the writer's primitive into the reader's; None where nothing has to be done."""
    if isinstance(target, Fixed) or wire == target.name:
        return None
    if target.name == "float":
        # Java's (float) rounds once; through a double it would be twice.
        return lambda value: float(np.int64(value).astype(np.float32))
    return _PROMOTERS.get(target.name)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"not UTF-8 at byte {error.start} of the string") from error


_PROMOTERS: Final[dict[str, Converter]] = {"double": float, "bytes": str.encode, "string": _text}


#: RFC 4122's text of a UUID. Java and Python each take more than that, and not the same.
UUID_PATTERN: Final = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"
is_uuid: Final = re.compile(UUID_PATTERN.replace("$", r"\Z")).match


class SpelledUUID(uuid.UUID):
    """A UUID that came in capitals: equal to any other, and written again as it was."""

    __slots__ = ("_text",)

    _text: str

    def __init__(self, text: str) -> None:
        super().__init__(text)
        object.__setattr__(self, "_text", text)

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[type[SpelledUUID], tuple[str]]:
        return SpelledUUID, (self._text,)


def natural_converter(target: Primitive | Fixed) -> Converter | None:
    """What turns the reader's primitive into its natural value."""
    logical = target.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        return lambda data: _decimal(data, logical)
    if logical.name == "uuid":
        return _uuid if isinstance(target, Primitive) else lambda data: uuid.UUID(bytes=data)
    return _NATURAL.get(logical.name)


def arrow_converter(target: Primitive | Fixed) -> Converter | None:
    """What turns the reader's primitive into what pyarrow takes for its type; bad is what is bad in a natural value."""
    logical = target.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        read = partial(_decimal, logical=logical)
        return read if is_decimal(logical) else _unchanged(read)
    if logical.name == "uuid" and isinstance(target, Primitive):
        return _unchanged(_uuid)
    return _ARROW.get(logical.name)


def _unchanged(check: Converter) -> Converter:
    """A converter that gives what it gets, if the other one takes it."""

    def convert(value: Any) -> Any:
        check(value)
        return value

    return convert


def _decimal(data: bytes, logical: Logical) -> Decimal:
    if not data:
        raise MalformedError("a decimal of no bytes")
    unscaled = int.from_bytes(data, "big", signed=True)
    # Java does not check this; but a decimal128 with too many digits is wrong data in Arrow and null in Spark.
    if abs(unscaled) >= 10**logical.precision:
        raise MalformedError(f"a decimal of more than {logical.precision} digits")
    return Decimal(unscaled).scaleb(-logical.scale, _EXACT)


def _uuid(text: str) -> uuid.UUID:
    if not is_uuid(text):
        raise MalformedError(f"{text[:40]!r} is not a UUID")
    return uuid.UUID(text) if text == text.lower() else SpelledUUID(text)


def _millis_to_micros(millis: int) -> int:
    if abs(millis) > INT64_MAX // 1000:
        raise MalformedError(f"{millis} ms is beyond the range of a timestamp")
    return millis * 1000


def _moment(epoch: datetime, micros: int) -> datetime:
    try:
        return epoch + timedelta(microseconds=micros)
    except OverflowError as error:
        raise MalformedError(
            f"{micros} µs is beyond Python's datetime; read it as a column or without logical type"
        ) from error


def _day(days: int) -> date:
    try:
        return date.fromordinal(_FIRST_DAY + days)
    except (OverflowError, ValueError) as error:
        raise MalformedError(
            f"day {days} is beyond Python's date; read it as a column or without logical type"
        ) from error


def _clock(micros: int) -> time:
    if not 0 <= micros < 86_400_000_000:
        raise MalformedError(f"{micros} µs is not a time of day")
    seconds, micros = divmod(micros, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    return time(minutes // 60, minutes % 60, seconds, micros)


_NATURAL: Final[dict[str, Converter]] = {
    "date": _day,
    "time-millis": lambda value: _clock(value * 1000),
    "time-micros": _clock,
    "timestamp-millis": lambda value: _moment(_EPOCH, value * 1000),
    "timestamp-micros": lambda value: _moment(_EPOCH, value),
    "local-timestamp-millis": lambda value: _moment(_LOCAL_EPOCH, value * 1000),
    "local-timestamp-micros": lambda value: _moment(_LOCAL_EPOCH, value),
}

_ARROW: Final[dict[str, Converter]] = {
    "local-timestamp-millis": _millis_to_micros,
    "time-micros": _unchanged(_clock),
    "time-millis": _unchanged(lambda value: _clock(value * 1000)),
    "timestamp-millis": _millis_to_micros,
}

_SHAPES: Final = {"int": "int", "long": "int", "float": "float", "double": "float", "boolean": "bool", "null": "None"}


def shape_of(target: Primitive | Fixed) -> str:
    """The Python type of a leaf's natural values; leaves of one shape cannot be told apart by their values."""
    logical = target.logical.name if target.logical else ""
    if logical in _NATURAL:
        return logical.rpartition("-")[0] or logical
    if logical in ("decimal", "uuid"):
        return logical
    if isinstance(target, Fixed) or target.name == "bytes":
        return "bytes"
    return _SHAPES.get(target.name, "str")
