"""Values in Spark's VARIANT, the binary form of JSON values that Parquet has, too.

A VARIANT is a struct of two binary fields: the value, and the names of the objects in it. Numbers stay exact: integers
and decimals have up to 38 digits.
"""

from __future__ import annotations

import itertools
import struct
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.bad_rows import MalformedError, in_utc

#: Arrow type of a VARIANT column. Spark marks it with metadata of its second field.
VARIANT: Final = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)

#: Kinds of values, in the two low bits of the first byte; the other bits are the type of a primitive value.
_PRIMITIVE, _SHORT, _OBJECT, _ARRAY = range(4)
_NULL, _TRUE, _FALSE, _DOUBLE, _DATE, _INSTANT, _LOCAL, _FLOAT, _BINARY, _STRING, _UUID = (
    *(0, 1, 2, 7, 11),
    *(12, 13, 14, 15, 16, 20),
)
#: Type and bytes of integers; type, bytes and digits of decimals.
_INTEGERS: Final = {3: 1, 4: 2, 5: 4, 6: 8}
_DECIMALS: Final = {8: (4, 9), 9: (8, 18), 10: (16, 38)}
_DIGITS: Final = 38
#: Bytes of a value, and of its names: Spark's limit.
_LARGEST: Final = 16 << 20
_EPOCH: Final = datetime(1970, 1, 1)
_DAY_0: Final = _EPOCH.toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)


def encode(value: Any, natural: Callable[[Any], Any]) -> tuple[bytes, bytes]:
    """Return a parsed value as VARIANT: the value and its names.

    ``natural`` replaces values of types that VARIANT does not have, or raises. Raises MalformedError for a number
    with too many digits, and for a value over the limits.
    """
    names: dict[str, int] = {}
    try:
        data = _encoded(value, names, natural)
    except RecursionError:
        raise MalformedError("nested too deeply for a VARIANT", limit=True) from None
    texts = [_utf8(name) for name in names]
    joined = b"".join(texts)
    if max(len(data), len(joined)) > _LARGEST:
        raise MalformedError(f"over the {_LARGEST >> 20} MiB of a VARIANT", limit=True)
    width = _width(max(len(joined), len(texts)))
    numbers = [len(texts), *_ends(texts)]
    return data, bytes([1 | (width - 1) << 6]) + _numbers(numbers, width) + joined


def decode(value: bytes, names: bytes) -> Any:
    """Return the Python value of a VARIANT, with Decimal for decimals. Raises MalformedError."""
    try:
        width = (names[0] >> 6) + 1
        count = _unsigned(names, 1, width)
        ends = [_unsigned(names, 1 + (1 + i) * width, width) for i in range(count + 1)]
        start = 1 + (count + 2) * width
        texts = [_bytes(names, start + a, b - a).decode() for a, b in itertools.pairwise(ends)]
        return _decoded(value, 0, texts)
    except RecursionError:
        raise MalformedError("a VARIANT that is nested too deeply", limit=True) from None
    except (ArithmeticError, IndexError, ValueError, struct.error) as error:
        raise MalformedError(f"invalid VARIANT: {error}") from error


def decoded(column: pa.Array) -> Iterator[Any]:
    """Yield the Python values of a VARIANT column; None for null."""
    there = column.is_valid().to_pylist()
    for value, names, valid in zip(column.field(0).to_pylist(), column.field(1).to_pylist(), there, strict=True):
        yield decode(value, names) if valid else None


# ---- writing ---------------------------------------------------------------------------------------------------------


def _encoded(value: Any, names: dict[str, int], natural: Callable[[Any], Any]) -> bytes:
    kind = type(value)
    if kind is dict:
        return _object(value, names, natural)
    if kind is list:
        items = []
        for index, item in enumerate(value):
            try:
                items.append(_encoded(item, names, natural))
            except MalformedError as error:
                raise error.within(f"[{index}]") from error
        data, large = b"".join(items), len(items) > 255
        width = _width(len(data))
        header = bytes([(large << 2 | width - 1) << 2 | _ARRAY]) + len(items).to_bytes(4 if large else 1, "little")
        return header + _numbers(_ends(items), width) + data
    write = _WRITERS.get(kind)
    return write(value) if write is not None else _encoded(natural(value), names, natural)


def _object(value: dict[Any, Any], names: dict[str, int], natural: Callable[[Any], Any]) -> bytes:
    fields: list[tuple[bytes, int, bytes]] = []
    for name, inner in value.items():
        if type(name) is not str:
            raise MalformedError(f"the key {name!r} where a VARIANT has a text")
        try:
            encoded = _encoded(inner, names, natural)
        except MalformedError as error:
            raise error.within(f".{name}") from error
        # Spark searches names in the order of Java's strings.
        fields.append((name.encode("utf-16-be", "replace"), names.setdefault(name, len(names)), encoded))
    fields.sort()
    items = [data for _, _, data in fields]
    data, large = b"".join(items), len(items) > 255
    width, id_width = _width(len(data)), _width(max((number for _, number, _ in fields), default=0))
    first = (large << 4 | (id_width - 1) << 2 | width - 1) << 2 | _OBJECT
    header = bytes([first]) + len(items).to_bytes(4 if large else 1, "little")
    return header + _numbers([number for _, number, _ in fields], id_width) + _numbers(_ends(items), width) + data


def _primitive(kind: int, data: bytes = b"") -> bytes:
    return bytes([kind << 2]) + data


def _integer(value: int) -> bytes:
    for kind, size in _INTEGERS.items():
        if -(1 << 8 * size - 1) <= value < 1 << 8 * size - 1:
            return _primitive(kind, value.to_bytes(size, "little", signed=True))
    return _scaled(value, 0)


def _scaled(unscaled: int, scale: int) -> bytes:
    for kind, (size, digits) in _DECIMALS.items():
        if abs(unscaled) < 10**digits and scale <= digits:
            return _primitive(kind, bytes([scale]) + unscaled.to_bytes(size, "little", signed=True))
    raise MalformedError(f"a number with more digits than the {_DIGITS} of a VARIANT")


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    is_plain = isinstance(exponent, int) and -_DIGITS <= exponent <= 0 and len(digits) <= _DIGITS
    if is_plain and (value or not sign):
        unscaled = int("".join(map(str, digits)))
        return _scaled(-unscaled if sign else unscaled, -int(exponent))
    # A number with an exponent, or -0.0: a double, if it has the same digits.
    number = float(value)
    if Decimal(repr(number)) != value:
        raise MalformedError(f"a number with more digits than the {_DIGITS} of a VARIANT")
    return _double(number)


def _double(value: float) -> bytes:
    return _primitive(_DOUBLE, struct.pack("<d", value))


def _string(value: str) -> bytes:
    text = _utf8(value)
    if len(text) < 64:
        return bytes([len(text) << 2 | _SHORT]) + text
    return _primitive(_STRING, struct.pack("<I", len(text)) + text)


def _time(value: datetime) -> bytes:
    local = value.tzinfo is None
    at = value if local else in_utc(value)
    micros = (at - _EPOCH) // _MICROSECOND
    return _primitive(_LOCAL if local else _INSTANT, struct.pack("<q", micros))


_WRITERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: _primitive(_NULL),
    bool: lambda value: _primitive(_TRUE if value else _FALSE),
    int: _integer,
    float: _double,
    Decimal: _decimal,
    str: _string,
    bytes: lambda value: _primitive(_BINARY, struct.pack("<I", len(value)) + value),
    date: lambda value: _primitive(_DATE, struct.pack("<i", value.toordinal() - _DAY_0)),
    datetime: _time,
}


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # an unpaired surrogate, which Java writes as a question mark


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _ends(items: list[bytes]) -> list[int]:
    ends = [0]
    for item in items:
        ends.append(ends[-1] + len(item))
    return ends


def _numbers(numbers: list[int], width: int) -> bytes:
    return b"".join(number.to_bytes(width, "little") for number in numbers)


# ---- reading ---------------------------------------------------------------------------------------------------------


def _unsigned(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise ValueError("too few bytes")
    return int.from_bytes(data[at : at + size], "little")


def _decoded(data: bytes, at: int, names: list[str]) -> Any:
    basic, kind = data[at] & 3, data[at] >> 2
    if basic == _SHORT:
        return _bytes(data, at + 1, kind).decode()
    if basic == _PRIMITIVE:
        return _scalar(data, at + 1, kind)
    width = (kind & 3) + 1
    id_width = (kind >> 2 & 3) + 1 if basic == _OBJECT else 0
    size = 4 if kind >> (4 if basic == _OBJECT else 2) & 1 else 1
    count = _unsigned(data, at + 1, size)
    ids = at + 1 + size
    offsets = ids + count * id_width
    start = offsets + (count + 1) * width
    if start > len(data):
        raise ValueError("too few bytes")
    values = (_decoded(data, start + _unsigned(data, offsets + i * width, width), names) for i in range(count))
    if basic == _ARRAY:
        return list(values)
    return {names[_unsigned(data, ids + i * id_width, id_width)]: value for i, value in enumerate(values)}


def _scalar(data: bytes, at: int, kind: int) -> Any:
    if kind in (_NULL, _TRUE, _FALSE):
        return None if kind == _NULL else kind == _TRUE
    if kind in _INTEGERS:
        return _signed(data, at, _INTEGERS[kind])
    if kind in _DECIMALS:
        unscaled, scale = _signed(data, at + 1, _DECIMALS[kind][0]), data[at]
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale)) if scale else unscaled
    if kind in (_BINARY, _STRING):
        found = _bytes(data, at + 4, _unsigned(data, at, 4))
        return found if kind == _BINARY else found.decode()
    read = _READERS.get(kind)
    if read is None:
        raise ValueError(f"unknown type {kind}")
    return read(data, at)


def _signed(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(_bytes(data, at, size), "little", signed=True)


def _bytes(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError("too few bytes")
    return data[at : at + size]


def _local(data: bytes, at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=_signed(data, at, 8))


_READERS: Final[dict[int, Callable[[bytes, int], Any]]] = {
    _DOUBLE: lambda data, at: struct.unpack_from("<d", data, at)[0],
    # The double with the digits of the float.
    _FLOAT: lambda data, at: float(str(np.float32(struct.unpack_from("<f", data, at)[0]))),
    _DATE: lambda data, at: date.fromordinal(_DAY_0 + _signed(data, at, 4)),
    _INSTANT: lambda data, at: _local(data, at).replace(tzinfo=UTC),
    _LOCAL: _local,
    _UUID: lambda data, at: uuid.UUID(bytes=_bytes(data, at, 16)),
}
