"""JSON values as values of Arrow types, one at a time. Types are strict: a string is not read as a number."""

from __future__ import annotations

import binascii
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.building import decimal_fitter, integer_bounds, millis, parse_times
from pravega_serde.errors import SchemaError

__all__ = ["Convert", "contains_decimal", "converter"]

#: Makes of a JSON value what ``pa.array`` takes, possibly in place.
Convert = Callable[[Any], Any]


def contains_decimal(kind: pa.DataType) -> bool:
    """Whether a type has decimals in it, so that numbers must keep all their digits."""
    inside = [kind.field(i).type for i in range(kind.num_fields)]
    return bool(pa.types.is_decimal(kind)) or any(contains_decimal(inner) for inner in inside)


def converter(kind: pa.DataType, path: str = "$") -> Convert:
    """Checked conversion to a type. Raises :class:`SchemaError`, with ``path``, for a type that JSON is not read as."""
    for fits, build in _BUILDERS:
        if fits(kind):
            return _nullable(build(kind, path))
    raise SchemaError(f"JSON cannot be read as {kind} (at {path})")


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _wrong(wanted: str, value: Any) -> MalformedError:
    names = {str: "a string", bool: "a boolean", list: "an array", dict: "an object", type(None): "null"}
    return MalformedError(f"{names.get(type(value), 'a number')} where {wanted} is expected")


def _boolean(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> bool:
        if not isinstance(value, bool):
            raise _wrong("a boolean", value)
        return value

    return convert


def _integer(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    low, high = integer_bounds(kind)

    def convert(value: Any) -> int:
        if type(value) is not int:
            raise _wrong("an integer", value)
        if not low <= value <= high:
            raise MalformedError(f"a number beyond the range of {kind}")
        return value

    return convert


#: Jackson's texts of numbers that JSON does not have.
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _float(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> float:
        if isinstance(value, str) and value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if isinstance(value, bool | str) or not isinstance(value, int | float | Decimal):
            raise _wrong("a number", value)
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    return convert


def _string(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise _wrong("a string", value)
        try:
            value.encode()
        except UnicodeEncodeError:
            # An unpaired surrogate, which Java keeps and writes as a question mark.
            return value.encode("utf-8", "replace").decode()
        return value

    return convert


def _binary(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> bytes:
        if not isinstance(value, str):
            raise _wrong("a Base64 string", value)
        try:
            return binascii.a2b_base64(value, strict_mode=True)
        except ValueError as error:
            raise MalformedError(f"invalid Base64: {error}") from error

    return convert


def _decimal(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    fit = decimal_fitter(kind)

    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise _wrong("a decimal number", value)
        try:
            number = Decimal(value)
        except InvalidOperation:
            raise MalformedError(f"invalid decimal number {str(value)[:40]!r}") from None
        return fit(number)

    return convert


def _date(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    return lambda value: _parsed(value, kind, "a date")


def _timestamp(kind: pa.DataType, path: str) -> Convert:  # noqa: ARG001
    def convert(value: Any) -> Any:
        if type(value) is int:
            return millis(value)
        return _parsed(value, kind, "a timestamp")

    return convert


def _parsed(value: Any, kind: pa.DataType, wanted: str) -> Any:
    if not isinstance(value, str):
        raise _wrong(wanted, value)
    try:
        return parse_times(pa.array([value]), kind).cast(pa.int64() if kind.bit_width == 64 else pa.int32())[0].as_py()
    except (pa.ArrowInvalid, UnicodeEncodeError):
        zone = "" if wanted == "a date" else " with its zone" if kind.tz else " without a zone"
        raise MalformedError(f"{value[:40]!r} is not {wanted} in ISO 8601{zone}") from None


def _list(kind: pa.DataType, path: str) -> Convert:
    inner = converter(kind.value_type, f"{path}[]")

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
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
    if not pa.types.is_string(kind.key_type):
        raise SchemaError(f"the keys of JSON objects are strings, not {kind.key_type} (at {path})")
    key_of, value_of = converter(kind.key_type), converter(kind.item_type, f"{path}{{}}")

    def convert(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        entries: list[tuple[str, Any]] = []
        key = ""
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
        if not isinstance(value, dict):
            raise _wrong("an object", value)
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
    (pa.types.is_boolean, _boolean),
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
