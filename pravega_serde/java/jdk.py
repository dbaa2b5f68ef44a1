"""JDK classes with a natural Python form: boxes, big numbers, dates, UUIDs. It also has the table of all classes.

A class counts as the JDK's own only if its descriptor in the stream equals JDK 17's, field by field. Any other class of
that name stays a record, without loss. ``java.time`` is in ``jdk_time``, collections are in ``jdk_collections``.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import SerializationError
from pravega_serde.java import jdk_collections, jdk_time
from pravega_serde.java.jdk_classes import Codec, Content, block, content, jdk_descriptor
from pravega_serde.java.model import BlockData, ClassDescriptor
from pravega_serde.java.values import (
    EPOCH,
    BigDecimal,
    BigInteger,
    Boolean,
    Byte,
    ByteArray,
    Character,
    Date,
    Double,
    Float,
    Integer,
    Long,
    Short,
    SqlDate,
    SqlTime,
    Timestamp,
)

_EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_LONG: Final = struct.Struct(">q")
_MAX_DECIMAL_BITS: Final = 32_768
"""Maximum bits of a ``BigDecimal`` that becomes a ``Decimal``, because the conversion takes quadratic time."""

_MAX_INT: Final = (1 << 31) - 1


def _integer(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    value = values[0]
    # The integers from -5 to 256 are one object each in CPython.
    return reader.unique(value, Integer) if -6 < value < 257 else value


def _boolean(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    return reader.unique(values[0], Boolean)


def _float(_: Any, values: list[Any], __: Any, ___: Any) -> Any:
    return float.__new__(Float, values[0])


def _wrap(kind: type[Any]) -> Codec:
    return Codec(lambda _, values, __, ___: kind(values[0]))


def _big_integer(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    # BigInteger.readObject ignores the first four fields too, which are leftovers of JDK 1.1.
    *_unused, signum, magnitude = values
    if type(magnitude) is not bytes and not isinstance(magnitude, ByteArray):
        return NotImplemented
    if signum not in (-1, 0, 1) or (signum == 0) != (not magnitude):
        msg = f"invalid BigInteger: sign {signum} and {len(magnitude)} bytes"
        raise MalformedError(msg)
    # Leading zeros are legal, but Java would not write them again. Such a number stays a record.
    if magnitude[:1] == b"\0" or not reader.copies(len(magnitude)):
        return NotImplemented
    return BigInteger(signum * int.from_bytes(magnitude, "big"))


def _big_decimal(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    scale, unscaled = values
    if type(unscaled) is not BigInteger:
        return NotImplemented
    bits = unscaled.bit_length()
    if bits > _MAX_DECIMAL_BITS or not reader.copies(bits >> 3):
        return NotImplemented
    return BigDecimal.of(decimal.Decimal(int(unscaled)).scaleb(-scale, _EXACT), unscaled)


def _from_millis(kind: type[dt.datetime]) -> Codec:
    def read(_: Any, __: Any, notes: list[Any], ___: Any) -> Any:
        (millis,) = block(notes[0][0], _LONG)
        return _moment(kind, millis)

    return Codec(read)


def _moment(kind: type[dt.datetime], millis: int) -> Any:
    try:
        at = EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return NotImplemented  # a year outside the range of Python's dates
    return kind.combine(at.date(), at.timetz())


def _timestamp(_: Any, values: list[Any], notes: list[Any], __: Any) -> Any:
    (millis,) = block(notes[0][0], _LONG)
    moment = _moment(Timestamp, millis)
    if moment is NotImplemented or millis % 1000:
        return NotImplemented  # Java writes whole seconds here
    nanos = values[0]
    if not 0 <= nanos < 1_000_000_000:
        msg = f"invalid Timestamp: {nanos} nanoseconds"
        raise MalformedError(msg)
    return Timestamp.of(moment.replace(microsecond=nanos // 1000), nanos % 1000)


def _uuid(_: Any, values: list[Any], __: Any, ___: Any) -> uuid.UUID:
    # Fields are sorted by name: leastSigBits comes first. Both are signed in Java, and unsigned halves here.
    least, most = values
    return uuid.UUID(int=(most & (1 << 64) - 1) << 64 | least & (1 << 64) - 1)


_READERS: Final[dict[str, Codec]] = {
    "java.lang.Integer": Codec(_integer),
    "java.lang.Long": _wrap(Long),
    "java.lang.Short": _wrap(Short),
    "java.lang.Byte": _wrap(Byte),
    "java.lang.Character": _wrap(Character),
    "java.lang.Double": Codec(lambda _, values, __, ___: values[0]),
    "java.lang.Float": Codec(_float),
    "java.lang.Boolean": Codec(_boolean),
    "java.math.BigInteger": Codec(_big_integer),
    "java.math.BigDecimal": Codec(_big_decimal),
    "java.util.Date": _from_millis(Date),
    "java.sql.Date": _from_millis(SqlDate),
    "java.sql.Time": _from_millis(SqlTime),
    "java.sql.Timestamp": Codec(_timestamp),
    "java.util.UUID": Codec(_uuid),
    **jdk_time.READERS,
    **jdk_collections.READERS,
}


def codec_of(descriptor: ClassDescriptor) -> Codec | None:
    """Return the reader of objects of this class, or None if they are read as records."""
    codec = _READERS.get(descriptor.name)
    if codec is None or (not codec.any_form and descriptor != jdk_descriptor(descriptor.name)):
        return None
    return codec


def _fits(name: str, bits: int) -> Callable[[int], Content]:
    """Return the writer of an integer box of ``bits`` bits."""
    lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1

    def write(value: int) -> Content:
        if not lowest <= value <= highest:
            msg = f"{value} does not fit into {name}"
            raise SerializationError(msg)
        return content(name, [int(value)])

    return write


def _write_int(value: int) -> Content:
    if -(1 << 31) <= value < 1 << 31:
        return content("java.lang.Integer", [value])
    if -(1 << 63) <= value < 1 << 63:
        return content("java.lang.Long", [value])
    return _write_big(value)


def _write_big(value: int) -> Content:
    magnitude = abs(value)
    raw = magnitude.to_bytes((magnitude.bit_length() + 7) // 8, "big")
    signum = (value > 0) - (value < 0)
    # BigInteger.writeObject writes the four fields before them for readers of JDK 1.1.
    return content("java.math.BigInteger", [-1, -1, -2, -2, signum, ByteArray(raw)])


def _write_decimal(value: decimal.Decimal) -> Content:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        msg = f"invalid BigDecimal: {value}"
        raise SerializationError(msg)
    if not -_MAX_INT - 1 <= -exponent <= _MAX_INT:
        msg = f"the scale {-exponent} does not fit into a BigDecimal"
        raise SerializationError(msg)
    if len(digits) * 3 > _MAX_DECIMAL_BITS:
        msg = f"invalid BigDecimal: {len(digits)} digits, at most {_MAX_DECIMAL_BITS // 3} can be written"
        raise SerializationError(msg)
    unscaled = getattr(value, "unscaled", None)
    if unscaled is None:
        unscaled = BigInteger(value.scaleb(-exponent, _EXACT))
    return content("java.math.BigDecimal", [-exponent, unscaled])


def _millis(name: str) -> Callable[[dt.datetime], Content]:
    def write(value: dt.datetime) -> Content:
        if value.microsecond % 1000:
            msg = f"{value!r} has microseconds, {name} has milliseconds: round it"
            raise SerializationError(msg)
        return content(name, (), [(BlockData(_packed_millis(value)),)])

    return write


def _packed_millis(value: dt.datetime) -> bytes:
    since = value - EPOCH if value.tzinfo else value.replace(tzinfo=dt.UTC) - EPOCH
    return _LONG.pack((since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000)


def _write_timestamp(value: Timestamp) -> Content:
    return content(
        "java.sql.Timestamp", [value.nanosecond], [(BlockData(_packed_millis(value.replace(microsecond=0))),)]
    )


def _write_uuid(value: uuid.UUID) -> Content:
    most, least = _LONG.unpack(value.bytes[:8])[0], _LONG.unpack(value.bytes[8:])[0]
    return content("java.util.UUID", [least, most])


def _write_character(value: str) -> Content:
    if len(value) != 1 or ord(value) > 0xFFFF:
        msg = f"invalid char {value!r}: one UTF-16 code unit is expected"
        raise SerializationError(msg)
    return content("java.lang.Character", [str(value)])


class Box(NamedTuple):
    """Class of a box with one primitive field, and the writer of that field."""

    descriptor: ClassDescriptor
    pack: Callable[[Any], bytes]


def _box(name: str, layout: str) -> Box:
    descriptor = jdk_descriptor(f"java.lang.{name}")
    assert descriptor is not None
    return Box(descriptor, struct.Struct(layout).pack)


BOXES: Final[dict[type[Any], Box]] = {
    bool: _box("Boolean", ">?"),
    Boolean: _box("Boolean", ">?"),
    int: _box("Integer", ">i"),
    Integer: _box("Integer", ">i"),
    Long: _box("Long", ">q"),
    Short: _box("Short", ">h"),
    Byte: _box("Byte", ">b"),
    float: _box("Double", ">d"),
    Double: _box("Double", ">d"),
    Float: _box("Float", ">f"),
}
"""Python type -> its box, for values that fit. :data:`WRITERS` has the others."""


WRITERS: Final[dict[type[Any], Callable[[Any], Content]]] = {
    bool: lambda value: content("java.lang.Boolean", [value]),
    Boolean: lambda value: content("java.lang.Boolean", [bool(value)]),
    int: _write_int,
    Integer: _fits("java.lang.Integer", 32),
    Long: _fits("java.lang.Long", 64),
    Short: _fits("java.lang.Short", 16),
    Byte: _fits("java.lang.Byte", 8),
    BigInteger: _write_big,
    float: lambda value: content("java.lang.Double", [value]),
    Double: lambda value: content("java.lang.Double", [float(value)]),
    Float: lambda value: content("java.lang.Float", [float(value)]),
    Character: _write_character,
    decimal.Decimal: _write_decimal,
    BigDecimal: _write_decimal,
    uuid.UUID: _write_uuid,
    Date: _millis("java.util.Date"),
    SqlDate: _millis("java.sql.Date"),
    SqlTime: _millis("java.sql.Time"),
    Timestamp: _write_timestamp,
    **jdk_time.WRITERS,
    **jdk_collections.WRITERS,
}
"""Python type -> function that creates the parts of its Java object."""
