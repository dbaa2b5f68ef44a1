"""Values: what each type is in Python and in Arrow, and how the one bytes format becomes either. Defaults, too.

*Natural* values are those of ``deserialize``: ``datetime``, ``date``, ``time``, ``Decimal``, ``UUID``. *Arrow* values
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
| any other union | value, see ``rows`` | struct of member0, member1, …: all null but the one that is there |
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

from pravega_serde.avro.schema import (
    MISSING,
    Array,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    kind_of,
    label_of,
)
from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.bad_rows import invalid_utf8

Converter = Callable[[Any], Any]

#: Most digits of a decimal in Spark, and of a decimal128.
MAX_DECIMAL_DIGITS: Final = 38

INT64_MAX: Final = (1 << 63) - 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()

#: More digits than any event has, so that making a decimal never rounds.
_EXACT: Final = Context(prec=1_000_000)

#: Arrow type of each primitive without logical type.
#: Arrow types of the primitives.
PRIMITIVE_TYPES: Final = {
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
    return _LOGICAL_TYPES.get(logical.name if logical else "", PRIMITIVE_TYPES[target.name])


def list_type(item: pa.DataType) -> pa.DataType:
    """Type of lists, with the name that Spark gives their items."""
    return pa.list_(pa.field("element", item))


def promoter(wire: str, target: Primitive | Fixed) -> Converter | None:
    """Conversion of the writer's primitive into the reader's; None if values stay as they are."""
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
        raise invalid_utf8(error) from error


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
    """Conversion of the reader's primitive into its natural value; None if values stay as they are."""
    logical = target.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        return lambda data: _decimal(data, logical)
    if logical.name == "uuid":
        return _uuid if isinstance(target, Primitive) else lambda data: uuid.UUID(bytes=data)
    return _NATURAL.get(logical.name)


def arrow_converter(target: Primitive | Fixed) -> Converter | None:
    """Conversion of the reader's primitive into the value that pyarrow takes; None if values stay as they are.

    It refuses what :func:`natural_converter` refuses.
    """
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
    """Converter that gives what it gets, if ``check`` takes it."""

    def convert(value: Any) -> Any:
        check(value)
        return value

    return convert


def _decimal(data: bytes, logical: Logical) -> Decimal:
    if not data:
        raise MalformedError("invalid decimal: no bytes")
    unscaled = int.from_bytes(data, "big", signed=True)
    # Java does not check this; but a decimal128 with too many digits is wrong data in Arrow and null in Spark.
    if abs(unscaled) >= 10**logical.precision:
        raise MalformedError(f"a decimal of more than {logical.precision} digits")
    return Decimal(unscaled).scaleb(-logical.scale, _EXACT)


def _uuid(text: str) -> uuid.UUID:
    if not is_uuid(text):
        raise MalformedError(f"invalid UUID {text[:40]!r}")
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
        raise MalformedError(f"invalid time of day: {micros} µs")
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
    """Python type of a leaf's natural values; leaves of one shape cannot be told apart by their values."""
    logical = target.logical.name if target.logical else ""
    if logical in _NATURAL:
        return logical.rpartition("-")[0] or logical
    if logical in ("decimal", "uuid"):
        return logical
    if isinstance(target, Fixed) or target.name == "bytes":
        return "bytes"
    return _SHAPES.get(target.name, "str")


def default_value(schema: Type, default: Any) -> Any:
    """Natural value of a default. One that does not fit is left for the writer to refuse."""
    if isinstance(schema, Union):
        return _of_union(schema, default)
    if isinstance(schema, Record) and isinstance(default, dict):
        given = {entry.name: default.get(entry.name, entry.default) for entry in schema.fields}
        return {
            entry.name: default_value(entry.type, given[entry.name])
            for entry in schema.fields
            if given[entry.name] is not MISSING
        }
    if isinstance(schema, Array) and isinstance(default, list):
        return [default_value(schema.items, item) for item in default]
    if isinstance(schema, Map) and isinstance(default, dict):
        return {key: default_value(schema.values, value) for key, value in default.items()}
    if isinstance(schema, Primitive | Fixed) and isinstance(default, str):
        return _of_text(schema, default)
    return default


def _of_union(schema: Union, default: Any) -> Any:
    """Default by the first branch that accepts it; before Avro 1.12 only the very first branch did."""
    labelled = sum(label_of(branch) != "null" for branch in schema.branches) > 1
    for branch in schema.branches:
        if _may_be(branch, default):
            value = default_value(branch, default)
            return (label_of(branch), value) if labelled and value is not None else value
    raise MalformedError(f"the default {default!r} belongs to no branch of its union")


def _of_text(schema: Primitive | Fixed, default: str) -> Any:
    """Bytes are written as text, a character for each byte."""
    if isinstance(schema, Primitive) and schema.name != "bytes":
        return default
    try:
        data = default.encode("latin-1")
    except UnicodeEncodeError:
        raise MalformedError(f"the default {default!r} is not a text of bytes") from None
    convert = natural_converter(schema) if schema.logical and schema.logical.name == "decimal" else None
    return convert(data) if convert else data


def _may_be(branch: Type, default: Any) -> bool:
    """Whether JSON of this kind can be the default of a branch."""
    if isinstance(default, bool):
        # Asked first: Python's bool is an int.
        return kind_of(branch) == "boolean"
    return isinstance(default, _JSON_KINDS.get(kind_of(branch), str))


_JSON_KINDS: Final[dict[str, Any]] = {
    "array": list,
    "boolean": bool,
    "double": int | float,
    "float": int | float,
    "int": int,
    "long": int,
    "map": dict,
    "null": type(None),
    "record": dict,
}
