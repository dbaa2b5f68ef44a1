"""Values of each type in Python and in Arrow, and their conversion from the one bytes format. Also defaults.

*Natural* values are those of ``deserialize``: ``datetime``, ``date``, ``time``, ``Decimal``, ``UUID``. *Arrow* values
are those that ``pa.array(..., type)`` accepts without loss: a timestamp after Python's year 9999 stays a number there.

| Avro | natural | Arrow |
|---|---|---|
| int, long, float, double, boolean, null | int, float, bool, None | int32, int64, float32, float64, bool, null |
| string, enum | str | string |
| bytes, fixed | bytes | binary |
| date | date | date32 |
| timestamp-millis, -micros | datetime in UTC | timestamp[us, tz=UTC] |
| local-timestamp-millis, -micros | datetime without zone | timestamp[us] |
| timestamp-nanos, local- | int | int64: microseconds would lose digits, and Spark has no finer type |
| time-millis, time-micros | time | int32, int64, as in Spark's own Avro reader; Spark's time type is new |
| decimal | Decimal | decimal128; string for more than 38 digits, Spark's limit |
| uuid | UUID | string, or binary if it annotates a fixed |
| duration | bytes | binary |
| array, map | list, dict | list<element>, map<key, value> |
| record | dict | struct |
| union with null | value or None | nullable value |
| any other union | value, see ``rows`` | struct of member0, member1, …: all are null except the chosen one |
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
    PRIMITIVES,
    Array,
    Enum,
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
from pravega_serde.columnar.bad_rows import has_surrogate, invalid_utf8
from pravega_serde.columnar.types import ROWS

Converter = Callable[[Any], Any]

#: Maximum digits of a decimal in Spark, and of a decimal128.
MAX_DECIMAL_DIGITS: Final = 38

INT64_MAX: Final = (1 << 63) - 1

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()

#: More digits than any event has, so that creating a decimal never rounds.
_EXACT: Final = Context(prec=1_000_000)

#: Arrow types of the primitives. Of several Arrow types with one form, the last one of the table counts.
PRIMITIVE_TYPES: Final = {
    row.avro: row.stored for row in ROWS.values() if row.stored is not None and row.avro in PRIMITIVES
}
#: Arrow types of logical types. Columns have times of day as numbers.
_LOGICAL_TYPES: Final = {
    row.avro.partition(", ")[2]: row.stored for row in ROWS.values() if row.family in ("date", "timestamp")
}


def is_decimal(logical: Logical | None) -> bool:
    """Return True if a type is a decimal that Arrow and Spark can hold."""
    return logical is not None and logical.name == "decimal" and logical.precision <= MAX_DECIMAL_DIGITS


def is_long_decimal(logical: Logical | None) -> bool:
    """Return True if a type is a decimal with more digits than that: its column is text."""
    return logical is not None and logical.name == "decimal" and logical.precision > MAX_DECIMAL_DIGITS


def arrow_leaf_type(target: Primitive | Fixed) -> pa.DataType:
    """Return the Arrow type of a primitive or fixed."""
    logical = target.logical
    if logical is not None and is_decimal(logical):
        return pa.decimal128(logical.precision, logical.scale)
    if is_long_decimal(logical):
        return pa.string()
    if isinstance(target, Fixed):
        return pa.binary()
    return _LOGICAL_TYPES.get(logical.name if logical else "", PRIMITIVE_TYPES[target.name])


def list_type(item: pa.DataType) -> pa.DataType:
    """Return the type of lists, with Spark's name for their items."""
    return pa.list_(pa.field("element", item))


def promoter(wire: str, target: Primitive | Fixed) -> Converter | None:
    """Return the conversion of the writer's primitive to the reader's, or None if values stay unchanged."""
    if isinstance(target, Fixed) or wire == target.name:
        return None
    if target.name == "float":
        # Java's (float) rounds once. A conversion through a double would round twice.
        return lambda value: float(np.int64(value).astype(np.float32))
    return _PROMOTERS.get(target.name)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise invalid_utf8(error) from error


_PROMOTERS: Final[dict[str, Converter]] = {"double": float, "bytes": str.encode, "string": _text}


#: RFC 4122's text of a UUID. Java and Python accept further forms, but different ones.
UUID_PATTERN: Final = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"
is_uuid: Final = re.compile(UUID_PATTERN.replace("$", r"\Z")).match


class SpelledUUID(uuid.UUID):
    """UUID that was written in capitals. It equals any other UUID, and is written again with its original spelling."""

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
    """Return the conversion of the reader's primitive to its natural value, or None if values stay unchanged."""
    logical = target.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        return lambda data: _decimal(data, logical)
    if logical.name == "uuid":
        return _uuid if isinstance(target, Primitive) else lambda data: uuid.UUID(bytes=data)
    return _NATURAL.get(logical.name)


def arrow_converter(target: Primitive | Fixed) -> Converter | None:
    """Return the conversion of the reader's primitive to pyarrow's value, or None if values stay unchanged.

    It rejects the same values as :func:`natural_converter`.
    """
    logical = target.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        read = partial(_decimal, logical=logical)
        return read if is_decimal(logical) else lambda data: format(read(data), "f")
    if logical.name == "uuid" and isinstance(target, Primitive):
        return _unchanged(_uuid)
    return _ARROW.get(logical.name)


def _unchanged(check: Converter) -> Converter:
    """Return a converter that returns its argument if ``check`` accepts it."""

    def convert(value: Any) -> Any:
        check(value)
        return value

    return convert


def _decimal(data: bytes, logical: Logical) -> Decimal:
    if not data:
        raise MalformedError("invalid decimal: no bytes")
    unscaled = int.from_bytes(data, "big", signed=True)
    # Java does not check this. But a decimal128 with too many digits is invalid in Arrow and null in Spark.
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
            f"{micros} µs is outside the range of Python's datetime; read it as a column or without logical type"
        ) from error


def _day(days: int) -> date:
    try:
        return date.fromordinal(_FIRST_DAY + days)
    except (OverflowError, ValueError) as error:
        raise MalformedError(
            f"day {days} is outside the range of Python's date; read it as a column or without logical type"
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


def shape_of(target: Type) -> str:
    """Return the Python type of natural values. Types of one shape cannot be distinguished by their values."""
    if isinstance(target, Enum):
        return "str"
    if not isinstance(target, Primitive | Fixed):
        return "list" if isinstance(target, Array) else "dict"
    logical = target.logical.name if target.logical else ""
    if logical in _NATURAL:
        return logical.rpartition("-")[0] or logical
    if logical in ("decimal", "uuid"):
        return logical
    if isinstance(target, Fixed) or target.name == "bytes":
        return "bytes"
    return _SHAPES.get(target.name, "str")


def default_value(schema: Type, default: Any) -> Any:
    """Return the natural value of a default. The writer rejects a default that does not fit."""
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
        return {_plain_text(key): default_value(schema.values, value) for key, value in default.items()}
    if isinstance(schema, Primitive | Fixed) and isinstance(default, str):
        return _of_text(schema, default)
    return default


def _of_union(schema: Union, default: Any) -> Any:
    """Return the default of the first branch that accepts it. Before Avro 1.12, only the very first branch could."""
    labelled = sum(label_of(branch) != "null" for branch in schema.branches) > 1
    for branch in schema.branches:
        if _may_be(branch, default):
            value = default_value(branch, default)
            return (label_of(branch), value) if labelled and value is not None else value
    raise MalformedError(f"the default {default!r} belongs to no branch of its union")


#: Texts that Java's ``Double.valueOf`` accepts, without hexadecimal ones.
_JAVA_NUMBER: Final = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?", re.ASCII)


def java_number(default: str) -> float:
    """Return the number of a text, which Java accepts as the default of a float or double."""
    if _JAVA_NUMBER.fullmatch(default.strip()) is None:
        raise MalformedError(f"the default {default!r} is not a number")
    return float(default.strip().rstrip("fFdD"))


def _of_text(schema: Primitive | Fixed, default: str) -> Any:
    """Convert text to bytes, one byte for each character."""
    if isinstance(schema, Primitive) and schema.name in ("float", "double"):
        return java_number(default)
    if isinstance(schema, Primitive) and schema.name != "bytes":
        return _plain_text(default)
    try:
        data = default.encode("latin-1")
    except UnicodeEncodeError:
        raise MalformedError(f"the default {default!r} is not a text of bytes") from None
    convert = natural_converter(schema) if schema.logical and schema.logical.name == "decimal" else None
    return convert(data) if convert else data


def _plain_text(default: str) -> str:
    if has_surrogate(default):
        raise MalformedError(f"the default {default!r} has an unpaired surrogate")
    return default


def _may_be(branch: Type, default: Any) -> bool:
    """Return True if JSON of this kind can be the default of a branch."""
    if isinstance(default, bool):
        # Checked first, because Python's bool is an int.
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
