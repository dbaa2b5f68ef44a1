"""Values: from messages to natural values or to values for Arrow arrays, and single values back to messages.

Writing is strict if a wrong value would become a wrong event: a float is not an int, a bool is not an int, and a number
must fit its type.
"""

from __future__ import annotations

import enum as enums
import json
import math
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

import numpy as np
from google.protobuf import json_format
from google.protobuf.message import Message

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.bad_rows import in_utc, invalid, lone_surrogate, raw_bytes
from pravega_serde.protobuf.declared import natural
from pravega_serde.protobuf.plan import EnumPlan, FieldPlan, MessagePlan
from pravega_serde.text import java_decode

#: Reads the value of something in a message.
Read = Callable[[Any], Any]

_EPOCH: Final = datetime(1970, 1, 1)


def value_reader(plan: MessagePlan, *, arrow: bool) -> Read:
    """Return a reader of messages; it raises :class:`MalformedError` if Python or Arrow cannot hold one."""
    return _Compiler(arrow=arrow).message(plan)


class _Compiler:
    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        self._done: dict[str, Read] = {}

    def message(self, plan: MessagePlan) -> Read:
        if plan.name not in self._done:
            # A message inside itself finds its reader when it is first read.
            self._done[plan.name] = lambda value: self._done[plan.name](value)
            self._done[plan.name] = self._shape(plan)
        return self._done[plan.name]

    def _shape(self, plan: MessagePlan) -> Read:
        if plan.shape == "json":
            return _json_text if self._arrow else json_value
        if plan.shape == "wrapper":
            inner = self._item(plan.fields[0])
            return lambda value: inner(value.value)
        if plan.shape != "message":
            return micros_of if self._arrow else _NATURAL[plan.shape]
        return _read_fields([(plan.fields[i].name, self._field(plan.fields[i])) for i in plan.order])

    def _field(self, field: FieldPlan) -> Read:
        name = field.name
        if field.label == "map":
            return self._map(field)
        item = self._item(field)
        if field.label == "repeated":
            return _read_list(name, item)
        if field.label == "implicit":
            return lambda message: item(getattr(message, name))
        return lambda message: item(getattr(message, name)) if message.HasField(name) else None

    def _map(self, field: FieldPlan) -> Read:
        assert field.message is not None
        name, item = field.name, self._item(field.message.fields[1])
        if self._arrow:
            return lambda message: [(key, item(value)) for key, value in sorted(_pairs(message, name), key=_key)]
        return lambda message: {key: item(value) for key, value in _pairs(message, name)}

    def _item(self, field: FieldPlan) -> Read:
        if field.declared is not None and not self._arrow:
            return natural(field.declared) or _itself
        if field.message is not None:
            return self.message(field.message)
        if field.enum is not None:
            return _enum(field.enum)
        return _text if field.kind == "string" else _itself


_key: Final = itemgetter(0)


def _pairs(message: Message, name: str) -> list[tuple[Any, Any]]:
    try:
        return list(getattr(message, name).items())
    except UnicodeDecodeError as error:
        # Google's parser lets it pass in proto2, and then cannot find it.
        raise MalformedError("invalid UTF-8 in a key") from error


def _read_fields(fields: list[tuple[str, Read]]) -> Read:
    def read(message: Message) -> dict[str, Any]:
        values = {}
        for name, read_field in fields:
            try:
                values[name] = read_field(message)
            except MalformedError as error:
                raise error.within(f".{name}") from error
        return values

    return read


def _read_list(name: str, item: Read) -> Read:
    def read(message: Message) -> list[Any]:
        values: list[Any] = []
        try:
            for value in getattr(message, name):
                values.append(item(value))
        except MalformedError as error:
            raise error.within(f"[{len(values)}]") from error
        return values

    return read


def _itself(value: Any) -> Any:
    return value


def _text(value: Any) -> Any:
    """Return a string. A proto2 string is not validated as UTF-8.

    Java replaces invalid bytes when the string is accessed.
    """
    return java_decode(value) if isinstance(value, bytes) else value


def _enum(enum: EnumPlan) -> Read:
    names = dict(enum.names)

    def read(number: int) -> str:
        if number not in names and len(names) < _MOST_NAMES:
            names[number] = str(number)
        return names.get(number) or str(number)

    return read


#: Number of cached texts: one text for each number without a name, not one for each occurrence.
_MOST_NAMES: Final = 1 << 16


def micros_of(value: Any) -> int:
    """Return the microseconds of a timestamp or duration. Raises MalformedError if 64 bits cannot hold them.

    The rest of the nanoseconds is dropped, as Java divides.
    """
    nanos = value.nanos
    micros: int = value.seconds * 1_000_000 + (nanos // 1000 if nanos >= 0 else -(-nanos // 1000))
    if not -(1 << 63) <= micros < 1 << 63:
        raise MalformedError(f"invalid time: {value.seconds} seconds are beyond the range of microseconds")
    return micros


def _datetime(value: Any) -> datetime:
    micros = micros_of(value)
    try:
        return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=UTC)
    except OverflowError:
        raise MalformedError(
            f"invalid datetime: {value.seconds} seconds are outside the years of Python's datetime"
        ) from None


def _timedelta(value: Any) -> timedelta:
    micros = micros_of(value)
    try:
        return timedelta(microseconds=micros)
    except OverflowError:
        raise MalformedError(
            f"invalid timedelta: {value.seconds} seconds are outside the range of Python's timedelta"
        ) from None


_NATURAL: Final = {"timestamp": _datetime, "duration": _timedelta}


def json_value(message: Message) -> Any:
    """Return the value of a Struct, Value or ListValue. Raises MalformedError for numbers that JSON does not have."""
    try:
        return json_format.MessageToDict(message)
    except (json_format.Error, ValueError) as error:
        raise MalformedError(f"invalid JSON: {error}") from error


def _json_text(message: Message) -> str:
    """Return JSON without spaces and with sorted keys, since the order of a Struct's fields varies."""
    return json.dumps(json_value(message), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


#: Returns the value to put into a message; raises :class:`MalformedError` for one that does not fit.
Convert = Callable[[Any], Any]

_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_FLOAT: Final = float(np.finfo(np.float32).max)


def converter(kind: str, enum: EnumPlan | None) -> Convert:
    """Return the conversion of values to a field's kind."""
    return _CONVERTERS[kind] if enum is None else _enum_number(enum)


def _integer(kind: str, low: int, high: int) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not int:
            if isinstance(value, bool | np.bool_):
                raise invalid(kind, value)
            if isinstance(value, Decimal) and value == value.to_integral_value():
                value = int(value)
            try:
                value = int(operator.index(value))
            except TypeError:
                raise invalid(kind, value) from None
        if not low <= value < high:
            raise invalid(kind, value)
        return value

    return convert


def _bool(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise invalid("bool", value)
    return bool(value)


def _double(value: Any) -> float:
    if isinstance(value, float):
        return value
    if not isinstance(value, int | np.integer | np.floating) or isinstance(value, bool):
        raise invalid("double", value)
    try:
        return float(value)
    except OverflowError:
        raise invalid("double", value) from None


def _float(value: Any) -> float:
    number = _double(value)
    if math.isfinite(number) and abs(number) > _MAX_FLOAT:
        raise invalid("float", value)
    return number


def _string(value: Any) -> str:
    if type(value) is not str:
        if isinstance(value, enums.Enum):
            value = value.name
        if not isinstance(value, str):
            raise invalid("string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise lone_surrogate() from None
    return value


_CONVERTERS: Final[Mapping[str, Convert]] = {
    "bool": _bool,
    "bytes": raw_bytes,
    "double": _double,
    "float": _float,
    "string": _string,
    **{kind: _integer(kind, -(1 << 31), 1 << 31) for kind in ("int32", "sint32", "sfixed32")},
    **{kind: _integer(kind, -(1 << 63), 1 << 63) for kind in ("int64", "sint64", "sfixed64")},
    **{kind: _integer(kind, 0, 1 << 32) for kind in ("uint32", "fixed32")},
    **{kind: _integer(kind, 0, 1 << 64) for kind in ("uint64", "fixed64")},
}


def _enum_number(enum: EnumPlan) -> Convert:
    """Return the number of a name, a number, or a number as text.

    A number without a name is read as text.
    """
    numbers, integer = dict(enum.numbers), _integer(f"number of {enum.name}", -(1 << 31), 1 << 31)

    def convert(value: Any) -> int:
        if type(value) is not str and isinstance(value, enums.Enum):
            value = value.name
        if isinstance(value, str):
            if value in numbers:
                return numbers[value]
            if not _is_number(value):
                raise invalid(f"value of the enum {enum.name}", value)
            value = int(value)
        number: int = integer(value)
        if enum.closed and number not in enum.names:
            raise invalid(f"value of the enum {enum.name}", value)
        return number

    return convert


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 11


def from_timestamp(value: Any) -> int:
    """Return the microseconds since 1970 of a datetime."""
    if not isinstance(value, datetime):
        raise invalid("datetime", value)
    if value.tzinfo is None:
        raise MalformedError(f"{value!r} needs a time zone")
    return (in_utc(value) - _EPOCH) // _MICROSECOND


def from_duration(value: Any) -> int:
    """Return the microseconds of a timedelta."""
    if not isinstance(value, timedelta):
        raise invalid("timedelta", value)
    return value // _MICROSECOND


#: Lowest and highest number of seconds that Protobuf allows: the years 1 to 9999, and some 10,000 years.
SECONDS: Final[Mapping[str, tuple[int, int]]] = {
    "timestamp": (-62_135_596_800, 253_402_300_799),
    "duration": (-315_576_000_000, 315_576_000_000),
}


def from_micros(shape: str, micros: int) -> tuple[int, int]:
    """Return the seconds and nanoseconds. Raises MalformedError if they are beyond the range of Protobuf.

    Nanoseconds of a timestamp are never negative; those of a duration have its sign.
    """
    low, high = SECONDS[shape]
    if not low <= micros // 1_000_000 <= high:
        years = "the years 1 to 9999" if shape == "timestamp" else "the 10,000 years"
        raise MalformedError(f"invalid {shape}: {micros} microseconds are beyond {years} that Protobuf allows")
    seconds, rest = divmod(micros, 1_000_000)
    if shape == "duration" and micros < 0 and rest:
        seconds, rest = seconds + 1, rest - 1_000_000
    return seconds, rest * 1000
