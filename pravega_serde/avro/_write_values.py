"""How single primitive values are written, and what logical types become before that.

Strict where a wrong value would become a wrong event: a float is no int, a bool is no int, a number must fit its type.
"""

from __future__ import annotations

import operator
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from pravega_serde.avro._model import Fixed, Logical, Primitive
from pravega_serde.avro._values import is_decimal, is_uuid
from pravega_serde.columnar import MalformedError

__all__ = [
    "PRIMITIVES",
    "Write",
    "columnar",
    "natural",
    "signed_bytes",
    "varint",
    "write_fixed",
    "write_long",
    "write_string",
    "wrong",
]

#: Writes a value behind what is there already.
Write = Callable[[Any, bytearray], None]

_pack_float: Final = struct.Struct("<f").pack
_pack_double: Final = struct.Struct("<d").pack

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = 86_400_000_000


def write_long(value: int, out: bytearray) -> None:
    """A 64-bit number as a zigzag varint."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def varint(value: int) -> bytes:
    """A number's varint."""
    out = bytearray()
    write_long(value, out)
    return bytes(out)


def wrong(wanted: str, value: object) -> MalformedError:
    """The error of a value of a wrong type."""
    text = repr(value)
    return MalformedError(f"{text if len(text) < 60 else text[:57] + '...'} ({type(value).__name__}) is no {wanted}")


def _write_null(value: Any, out: bytearray) -> None:  # noqa: ARG001
    if value is not None:
        raise wrong("null", value)


def _write_boolean(value: Any, out: bytearray) -> None:
    if value is not True and value is not False:
        if type(value).__name__ not in ("bool", "bool_"):
            raise wrong("boolean", value)
        value = bool(value)
    out.append(value)


def _integer(value: Any, wanted: str) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise wrong(wanted, value)
    try:
        return operator.index(value)
    except TypeError:
        raise wrong(wanted, value) from None


def _write_int(value: Any, out: bytearray) -> None:
    number = _integer(value, "int")
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise wrong("32-bit int", value)
    write_long(number, out)


def _write_long(value: Any, out: bytearray) -> None:
    number = _integer(value, "long")
    if not -(1 << 63) <= number < 1 << 63:
        raise wrong("64-bit long", value)
    write_long(number, out)


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    if hasattr(value, "__float__") and not isinstance(value, bool | str | Decimal):
        return float(value)
    raise wrong("number", value)


def _write_float(value: Any, out: bytearray) -> None:
    try:
        out += _pack_float(_number(value))
    except OverflowError:
        raise wrong("32-bit float", value) from None


def _write_double(value: Any, out: bytearray) -> None:
    try:
        out += _pack_double(_number(value))
    except OverflowError:
        raise wrong("64-bit double", value) from None


def _raw(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise wrong("bytes", value)
    return bytes(value)


def _write_bytes(value: Any, out: bytearray) -> None:
    data = _raw(value)
    write_long(len(data), out)
    out += data


def write_string(value: Any, out: bytearray) -> None:
    """A string, with its length in bytes before it."""
    if not isinstance(value, str):
        raise wrong("string", value)
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise MalformedError("a surrogate without its partner cannot be written as UTF-8") from None
    write_long(len(data), out)
    out += data


PRIMITIVES: Final[Mapping[str, Write]] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _write_int,
    "long": _write_long,
    "float": _write_float,
    "double": _write_double,
    "bytes": _write_bytes,
    "string": write_string,
}


def write_fixed(size: int) -> Write:
    """Writes bytes that must be so many."""

    def write(value: Any, out: bytearray) -> None:
        data = _raw(value)
        if len(data) != size:
            raise MalformedError(f"{len(data)} bytes where {size} are needed")
        out += data

    return write


def _from_datetime(value: Any, micros_per_unit: int, *, local: bool) -> Any:
    if not isinstance(value, datetime):
        return value
    if (value.tzinfo is None) != local:
        raise MalformedError(f"{value!r} {'has a' if local else 'needs a'} time zone")
    return (value - (_LOCAL_EPOCH if local else _EPOCH)) // _MICROSECOND // micros_per_unit


def _from_time(value: Any, micros_per_unit: int) -> Any:
    if not isinstance(value, time):
        if isinstance(value, int) and not 0 <= value * micros_per_unit < _DAY:
            raise MalformedError(f"{value} is not a time of day")
        return value
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return (seconds * 1_000_000 + value.microsecond) // micros_per_unit


def _from_date(value: Any) -> Any:
    return value.toordinal() - _FIRST_DAY if isinstance(value, date) and not isinstance(value, datetime) else value


def _from_uuid(value: Any) -> Any:
    if isinstance(value, str) and not is_uuid(value):
        raise wrong("UUID", value)
    return str(value) if isinstance(value, uuid.UUID) else value


def _uuid_bytes(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = uuid.UUID(value)
        except ValueError:
            raise wrong("UUID", value) from None
    return value.bytes if isinstance(value, uuid.UUID) else value


def _from_decimal(logical: Logical, size: int | None) -> Callable[[Any], bytes]:
    limit = 10**logical.precision

    def convert(value: Any) -> bytes:
        if isinstance(value, int) and not isinstance(value, bool):
            value = Decimal(value)
        if not isinstance(value, Decimal) or not value.is_finite():
            raise wrong("decimal", value)
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        shift = exponent + logical.scale
        # Checked before any power of ten is computed: an exponent can be as large as one likes.
        if len(digits) + shift > logical.precision and any(digits):
            raise MalformedError(
                f"{str(value)[:40]} has more than {logical.precision - logical.scale} digits before the point"
            )
        unscaled = int("".join(map(str, digits)))
        if shift >= 0:
            unscaled *= 10**shift if unscaled else 1
        else:
            unscaled, lost = divmod(unscaled, 10 ** min(-shift, len(digits) + 1))
            if lost:
                raise MalformedError(f"{str(value)[:40]} has more than {logical.scale} digits behind the point")
        assert unscaled < limit
        return signed_bytes(-unscaled if sign else unscaled, size)

    return convert


def signed_bytes(number: int, size: int | None) -> bytes:
    """Two's complement, big-endian; in as few bytes as Java's BigInteger takes, if no size is given."""
    least = (number if number >= 0 else ~number).bit_length() // 8 + 1
    if size is not None and least > size:
        raise MalformedError(f"a decimal that does not fit {size} bytes")
    return number.to_bytes(least if size is None else size, "big", signed=True)


def natural(target: Primitive | Fixed) -> Callable[[Any], Any] | None:
    """What turns a natural value into what its primitive writes; numbers and bytes pass as they are."""
    logical = target.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        return _from_decimal(logical, target.size if isinstance(target, Fixed) else None)
    if logical.name == "uuid" and isinstance(target, Fixed):
        return _uuid_bytes
    return _CONVERTERS.get(logical.name)


_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "date": _from_date,
    "local-timestamp-micros": lambda value: _from_datetime(value, 1, local=True),
    "local-timestamp-millis": lambda value: _from_datetime(value, 1000, local=True),
    "time-micros": lambda value: _from_time(value, 1),
    "time-millis": lambda value: _from_time(value, 1000),
    "timestamp-micros": lambda value: _from_datetime(value, 1, local=False),
    "timestamp-millis": lambda value: _from_datetime(value, 1000, local=False),
    "uuid": _from_uuid,
}


def columnar(target: Primitive | Fixed) -> Callable[[Any], Any] | None:
    """The same for values of an Arrow column: numbers of microseconds, and Decimals."""
    logical = target.logical
    if logical is not None and is_decimal(logical):
        return _from_decimal(logical, target.size if isinstance(target, Fixed) else None)
    if logical is not None and logical.name in ("timestamp-millis", "local-timestamp-millis"):
        return lambda micros: micros // 1000
    return None
