"""CBOR values as values of Arrow types, one at a time. Types are strict: a text is not read as a number.

Dates and times come in many forms: by the tags of the standard, and as Jackson writes Java's, without tags. A
``java.util.Date`` is a number of milliseconds, an ``Instant`` a decimal number of seconds, a ``LocalDate`` and a
``LocalDateTime`` an array of its parts; each can also be text in ISO 8601.
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
from pravega_serde.columnar.building import decimal_fitter, integer_bounds, millis, parse_times
from pravega_serde.errors import SchemaError

__all__ = ["DATE_TEXT", "DATE_TIME", "EXACT", "Convert", "converter", "item_weight", "weigher"]

#: Makes of a CBOR value what ``pa.array`` takes, possibly in place.
Convert = Callable[[Any], Any]

#: Holds every decimal number that Python can have, exactly.
EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])

#: Tags of texts of instants and of dates; the other tags of dates and times, and that of UUIDs.
DATE_TIME, DATE_TEXT = 0, 1004
_SECONDS, _DAYS, _UUID = 1, 100, 37

#: Digits of the seconds that 64 bits of microseconds can reach.
_SECONDS_DIGITS: Final = 13


def converter(kind: pa.DataType, path: str = "$") -> Convert:
    """Checked conversion to a type. Raises :class:`SchemaError`, with ``path``, for a type that CBOR is not read as."""
    for fits, build in _BUILDERS:
        if fits(kind):
            return _nullable(build(kind, path))
    raise SchemaError(f"CBOR cannot be read as {kind} (at {path})")


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None or value is cbor2.undefined else convert(value)


_NAMES: Final[dict[type, str]] = {
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


def _wrong(wanted: str, value: Any) -> MalformedError:
    name = f"tag {value.tag}" if isinstance(value, cbor2.CBORTag) else _NAMES.get(type(value), "another value")
    return MalformedError(f"{name} where {wanted} is expected")


def _exactly(kind: type, wanted: str) -> Callable[[pa.DataType, str], Convert]:
    def build(_: pa.DataType, path: str) -> Convert:  # noqa: ARG001
        def convert(value: Any) -> Any:
            if type(value) is not kind:
                raise _wrong(wanted, value)
            return value

        return convert

    return build


def _integer(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    low, high = integer_bounds(kind)

    def convert(value: Any) -> int:
        if type(value) is not int:
            raise _wrong("an integer", value)
        if not low <= value <= high:
            raise MalformedError(f"a number beyond the range of {kind}")
        return value

    return convert


def _float(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> float:
        if type(value) is float:
            return value
        if type(value) is not int and type(value) is not Decimal:
            raise _wrong("a number", value)
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    return convert


def _string(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> str:
        if type(value) is str:
            return value
        return str(UUID(bytes=_uuid(value, "a text")))

    return convert


def _binary(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    return lambda value: value if type(value) is bytes else _uuid(value, "a byte string")


def _uuid(value: Any, wanted: str) -> bytes:
    """Bytes of a UUID."""
    if not isinstance(value, cbor2.CBORTag) or value.tag != _UUID:
        raise _wrong(wanted, value)
    if type(value.value) is not bytes or len(value.value) != 16:
        raise MalformedError("a UUID that is not of 16 bytes")
    return value.value


def _decimal(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    fit = decimal_fitter(kind)

    def convert(value: Any) -> Decimal:
        if type(value) is not Decimal and type(value) is not int:
            raise _wrong("a decimal number", value)
        return fit(Decimal(value))

    return convert


def _date(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    wanted = "a date"

    def convert(value: Any) -> Any:
        if type(value) is str:
            return _parsed(value, kind, wanted)
        if type(value) is list:
            return _of_parts(value, wanted, date, 3, 3)
        content = value.value if isinstance(value, cbor2.CBORTag) else None
        if isinstance(content, str) and value.tag == DATE_TEXT:
            return _parsed(content, kind, wanted)
        if type(content) is int and value.tag == _DAYS:
            if not -(1 << 31) <= content < 1 << 31:
                raise MalformedError("a date beyond the range of 32 bits of days")
            return content
        raise _wrong(wanted, value)

    return convert


def _timestamp(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    wanted = "a timestamp"

    def convert(value: Any) -> Any:
        if type(value) is int:
            return millis(value)
        if type(value) is str:
            return _parsed(value, kind, wanted)
        if type(value) is Decimal:
            return _micros(value)
        if type(value) is list and kind.tz is None:
            return _of_parts(value, wanted, _local, 5, 7)
        content = value.value if isinstance(value, cbor2.CBORTag) else None
        if isinstance(content, str) and value.tag == DATE_TIME:
            return _parsed(content, kind, wanted)
        if isinstance(content, int | float) and not isinstance(content, bool) and value.tag == _SECONDS:
            return _micros(content)
        raise _wrong(wanted, value)

    return convert


def _micros(seconds: float | Decimal) -> int:
    """Microseconds of seconds since 1970; of a decimal number rounded down, of a float to the nearest."""
    if not seconds:
        return 0
    size = seconds.adjusted() if isinstance(seconds, Decimal) else math.log10(abs(seconds))
    if not size < _SECONDS_DIGITS:  # nor is NaN
        raise MalformedError("a number of seconds beyond the range of a timestamp")
    if isinstance(seconds, int):
        return seconds * 1_000_000
    if isinstance(seconds, Decimal):
        # Of a number this small, which may have any exponent, only the sign counts.
        if size < -_SECONDS_DIGITS:
            return -int(seconds < 0)
        return int(seconds.scaleb(6, EXACT).to_integral_value(ROUND_FLOOR))
    whole = math.floor(seconds)
    return whole * 1_000_000 + round((seconds - whole) * 1_000_000)


def _of_parts(value: list[Any], wanted: str, make: Callable[..., Any], least: int, most: int) -> Any:
    """Date or time of Java's, whose parts are an array."""
    if not least <= len(value) <= most or not all(type(part) is int for part in value):
        raise _wrong(wanted, value)
    try:
        return make(*value)
    except (OverflowError, ValueError) as error:
        raise MalformedError(f"invalid parts of {wanted}: {error}") from None


def _local(*parts: int) -> datetime:
    """Date and time of year, month, day, hour, minute and perhaps second and nanosecond."""
    year, month, day, hour, minute, second, nano = (*parts, 0, 0)[:7]
    return datetime(year, month, day, hour, minute, second, nano // 1000)


def _parsed(value: str, kind: pa.DataType, wanted: str) -> Any:
    try:
        return parse_times(pa.array([value]), kind).cast(pa.int64() if kind.bit_width == 64 else pa.int32())[0].as_py()
    except pa.ArrowInvalid:
        zone = "" if wanted == "a date" else " with its zone" if kind.tz else " without a zone"
        raise MalformedError(f"{value[:40]!r} is not {wanted} in ISO 8601{zone}") from None


def _list(kind: pa.DataType, path: str) -> Convert:
    inner = converter(kind.value_type, f"{path}[]")

    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _wrong("an array", value)
        index = 0
        try:
            for index, item in enumerate(value):
                # In place: a list may be as large as the event, and a second one would double the memory.
                value[index] = inner(item)
        except MalformedError as error:
            raise error.within(f"[{index}]") from error
        return value

    return convert


def _map(kind: pa.DataType, path: str) -> Convert:
    t = pa.types
    if not (t.is_string(kind.key_type) or t.is_binary(kind.key_type) or t.is_integer(kind.key_type)):
        raise SchemaError(
            f"the keys of CBOR maps are texts, byte strings and integers, not {kind.key_type} (at {path})"
        )
    key_of, value_of = converter(kind.key_type), converter(kind.item_type, f"{path}{{}}")

    def convert(value: Any) -> list[tuple[Any, Any]]:
        if type(value) is not dict:
            raise _wrong("a map", value)
        entries: list[tuple[Any, Any]] = []
        key: Any = ""
        try:
            for key, inner in value.items():
                entries.append((key_of(key), value_of(inner)))
        except MalformedError as error:
            raise error.within(f"[{key!r}]") from error
        return entries

    return convert


def _struct(kind: pa.DataType, path: str) -> Convert:
    fields = [(entry.name, converter(entry.type, f"{path}.{entry.name}")) for entry in kind]

    def convert(value: Any) -> tuple[Any, ...]:
        if type(value) is not dict:
            raise _wrong("a map", value)
        name = ""
        record: list[Any] = []
        try:
            for name, inner in fields:
                record.append(inner(value.get(name)))
        except MalformedError as error:
            raise error.within(f".{name}") from error
        return tuple(record)

    return convert


def _null(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> None:
        raise _wrong("null", value)

    return convert


_BUILDERS: Final[list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, str], Convert]]]] = [
    (pa.types.is_null, _null),
    (pa.types.is_boolean, _exactly(bool, "a boolean")),
    (pa.types.is_integer, _integer),
    (lambda kind: pa.types.is_float32(kind) or pa.types.is_float64(kind), _float),
    (pa.types.is_string, _string),
    (pa.types.is_binary, _binary),
    (pa.types.is_date32, _date),
    (lambda kind: pa.types.is_timestamp(kind) and kind.unit == "us", _timestamp),
    (pa.types.is_decimal128, _decimal),
    (pa.types.is_list, _list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
]


# What an event's items weigh as columns: a null is one byte, and as a struct a null in each of its columns.

#: Bytes of a tuple, and of one of its places; of a cell of an Arrow column, null or not.
_TUPLE: Final = 56
_PLACE: Final = 8
_CELL: Final = 9


def item_weight(kind: pa.DataType) -> int:
    """Bytes of the heaviest struct in a type that is an item of a list or map; 0 if there is none."""
    inside = [kind.field(i).type for i in range(kind.num_fields)]
    # A struct outside lists and maps comes once, however wide it is: that is the type's own size.
    own = [_weight(inner) for inner in inside] if pa.types.is_list(kind) or pa.types.is_map(kind) else []
    return max([*own, *map(item_weight, inside)], default=0)


def _weight(kind: pa.DataType) -> int:
    """Bytes of a struct that is null or empty, and of those in it; 0 for other types."""
    if not pa.types.is_struct(kind):
        return 0
    inside = [entry.type for entry in kind]
    return _TUPLE + _PLACE * len(inside) + _CELL * (1 + len(inside)) + sum(map(_weight, inside))


def weigher(kind: pa.DataType) -> Callable[[Any], int] | None:
    """Bytes of all structs that are items of lists and maps in a value to be read as a type; None if it has none."""
    t = pa.types
    if t.is_struct(kind):
        parts = [(entry.name, weigh) for entry in kind if (weigh := weigher(entry.type)) is not None]
        if not parts:
            return None
        return lambda value: sum(weigh(value.get(name)) for name, weigh in parts) if isinstance(value, dict) else 0
    if not (t.is_list(kind) or t.is_map(kind)):
        return None
    item = kind.value_type if t.is_list(kind) else kind.item_type
    own, inside = _weight(item), weigher(item)
    if not own and inside is None:
        return None

    def weigh_items(value: Any) -> int:
        items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        return len(items) * own + (sum(map(inside, items)) if inside is not None else 0)

    return weigh_items
