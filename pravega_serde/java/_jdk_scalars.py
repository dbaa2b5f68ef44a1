"""Boxes, big numbers, dates and UUIDs: JDK objects that are one Python value."""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pravega_serde.errors import SerializationError
from pravega_serde.java import _boxes as box
from pravega_serde.java import _temporal as temporal
from pravega_serde.java._content import Content, block, content
from pravega_serde.java._jdk_table import jdk_descriptor
from pravega_serde.java._limits import MAX_DECIMAL_BITS
from pravega_serde.java._model import BlockData, ClassDescriptor
from pravega_serde.java._plans import Codec, MalformedError

__all__ = ["BOXES", "READERS", "WRITERS"]

_EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_LONG: Final = struct.Struct(">q")
_MAX_INT: Final = (1 << 31) - 1


def _integer(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    value = values[0]
    # CPython shares exactly the integers from -5 to 256.
    return reader.unique(value, box.Integer) if -6 < value < 257 else value


def _boolean(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    return reader.unique(values[0], box.Boolean)


def _float(_: Any, values: list[Any], __: Any, ___: Any) -> Any:
    return float.__new__(box.Float, values[0])


def _wrap(kind: type[Any]) -> Codec:
    return Codec(lambda _, values, __, ___: kind(values[0]))


def _big_integer(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    # The first four fields are leftovers of JDK 1.1 that Java ignores, too.
    *_unused, signum, magnitude = values
    if type(magnitude) is not bytes and not isinstance(magnitude, box.ByteArray):
        return NotImplemented
    if signum not in (-1, 0, 1) or (signum == 0) != (not magnitude):
        msg = f"a BigInteger of sign {signum} with {len(magnitude)} bytes"
        raise MalformedError(msg)
    # Leading zeros are legal, but Java would not write them again: such a number stays a record.
    if magnitude[:1] == b"\0" or not reader.copies(len(magnitude)):
        return NotImplemented
    return box.BigInteger(signum * int.from_bytes(magnitude, "big"))


def _big_decimal(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    scale, unscaled = values
    if type(unscaled) is not box.BigInteger:
        return NotImplemented
    bits = unscaled.bit_length()
    if bits > MAX_DECIMAL_BITS or not reader.copies(bits >> 3):
        return NotImplemented
    return box.BigDecimal.of(decimal.Decimal(int(unscaled)).scaleb(-scale, _EXACT), unscaled)


def _from_millis(kind: type[dt.datetime]) -> Codec:
    def read(_: Any, __: Any, notes: list[Any], ___: Any) -> Any:
        (millis,) = block(notes[0][0], _LONG)
        return _moment(kind, millis)

    return Codec(read)


def _moment(kind: type[dt.datetime], millis: int) -> Any:
    try:
        at = temporal.EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return NotImplemented  # a year that Python's dates do not reach
    return kind.combine(at.date(), at.timetz())


def _timestamp(_: Any, values: list[Any], notes: list[Any], __: Any) -> Any:
    (millis,) = block(notes[0][0], _LONG)
    moment = _moment(temporal.Timestamp, millis)
    if moment is NotImplemented or millis % 1000:
        return NotImplemented  # Java writes whole seconds here
    nanos = values[0]
    if not 0 <= nanos < 1_000_000_000:
        msg = f"a Timestamp with {nanos} nanoseconds"
        raise MalformedError(msg)
    return temporal.Timestamp.of(moment.replace(microsecond=nanos // 1000), nanos % 1000)


def _uuid(_: Any, values: list[Any], __: Any, ___: Any) -> uuid.UUID:
    # Fields are sorted by name: leastSigBits comes first.
    least, most = values
    return uuid.UUID(int=(most & (1 << 64) - 1) << 64 | least & (1 << 64) - 1)


READERS: Final[dict[str, Codec]] = {
    "java.lang.Integer": Codec(_integer),
    "java.lang.Long": _wrap(box.Long),
    "java.lang.Short": _wrap(box.Short),
    "java.lang.Byte": _wrap(box.Byte),
    "java.lang.Character": _wrap(box.Character),
    "java.lang.Double": Codec(lambda _, values, __, ___: values[0]),
    "java.lang.Float": Codec(_float),
    "java.lang.Boolean": Codec(_boolean),
    "java.math.BigInteger": Codec(_big_integer),
    "java.math.BigDecimal": Codec(_big_decimal),
    "java.util.Date": _from_millis(temporal.Date),
    "java.sql.Date": _from_millis(temporal.SqlDate),
    "java.sql.Time": _from_millis(temporal.SqlTime),
    "java.sql.Timestamp": Codec(_timestamp),
    "java.util.UUID": Codec(_uuid),
}


def _fits(name: str, bits: int) -> Callable[[int], Content]:
    """Writer of an integer box."""
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
    # The four fields before them are what BigInteger.writeObject puts there for readers of JDK 1.1.
    return content("java.math.BigInteger", [-1, -1, -2, -2, signum, box.ByteArray(raw)])


def _write_decimal(value: decimal.Decimal) -> Content:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        msg = f"BigDecimal has no {value}"
        raise SerializationError(msg)
    if not -_MAX_INT - 1 <= -exponent <= _MAX_INT:
        msg = f"the scale {-exponent} does not fit into a BigDecimal"
        raise SerializationError(msg)
    if len(digits) * 3 > MAX_DECIMAL_BITS:
        msg = f"a decimal number of {len(digits)} digits is beyond the {MAX_DECIMAL_BITS // 4} that can be written"
        raise SerializationError(msg)
    unscaled = getattr(value, "unscaled", None)
    if unscaled is None:
        unscaled = box.BigInteger(value.scaleb(-exponent, _EXACT))
    return content("java.math.BigDecimal", [-exponent, unscaled])


def _millis(name: str) -> Callable[[dt.datetime], Content]:
    def write(value: dt.datetime) -> Content:
        if value.microsecond % 1000:
            msg = f"{value!r} has microseconds, {name} has milliseconds: round it"
            raise SerializationError(msg)
        return content(name, (), [(BlockData(_packed_millis(value)),)])

    return write


def _packed_millis(value: dt.datetime) -> bytes:
    since = value - temporal.EPOCH if value.tzinfo else value.replace(tzinfo=dt.UTC) - temporal.EPOCH
    return _LONG.pack((since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000)


def _write_timestamp(value: temporal.Timestamp) -> Content:
    return content(
        "java.sql.Timestamp", [value.nanosecond], [(BlockData(_packed_millis(value.replace(microsecond=0))),)]
    )


def _write_uuid(value: uuid.UUID) -> Content:
    most, least = _LONG.unpack(value.bytes[:8])[0], _LONG.unpack(value.bytes[8:])[0]
    return content("java.util.UUID", [least, most])


def _write_character(value: str) -> Content:
    if len(value) != 1 or ord(value) > 0xFFFF:
        msg = f"a Java char is one UTF-16 code unit, not {value!r}"
        raise SerializationError(msg)
    return content("java.lang.Character", [str(value)])


class Box(NamedTuple):
    """A box that is one primitive field, and how it is written."""

    descriptor: ClassDescriptor
    pack: Callable[[Any], bytes]


def _box(name: str, layout: str) -> Box:
    descriptor = jdk_descriptor(f"java.lang.{name}")
    assert descriptor is not None
    return Box(descriptor, struct.Struct(layout).pack)


BOXES: Final[dict[type[Any], Box]] = {
    bool: _box("Boolean", ">?"),
    box.Boolean: _box("Boolean", ">?"),
    int: _box("Integer", ">i"),
    box.Integer: _box("Integer", ">i"),
    box.Long: _box("Long", ">q"),
    box.Short: _box("Short", ">h"),
    box.Byte: _box("Byte", ">b"),
    float: _box("Double", ">d"),
    box.Double: _box("Double", ">d"),
    box.Float: _box("Float", ">f"),
}
"""Type -> its box, for the values that fit it; the others are left to :data:`WRITERS`."""


WRITERS: Final[dict[type[Any], Callable[[Any], Content]]] = {
    bool: lambda value: content("java.lang.Boolean", [value]),
    box.Boolean: lambda value: content("java.lang.Boolean", [bool(value)]),
    int: _write_int,
    box.Integer: _fits("java.lang.Integer", 32),
    box.Long: _fits("java.lang.Long", 64),
    box.Short: _fits("java.lang.Short", 16),
    box.Byte: _fits("java.lang.Byte", 8),
    box.BigInteger: _write_big,
    float: lambda value: content("java.lang.Double", [value]),
    box.Double: lambda value: content("java.lang.Double", [float(value)]),
    box.Float: lambda value: content("java.lang.Float", [float(value)]),
    box.Character: _write_character,
    decimal.Decimal: _write_decimal,
    box.BigDecimal: _write_decimal,
    uuid.UUID: _write_uuid,
    temporal.Date: _millis("java.util.Date"),
    temporal.SqlDate: _millis("java.sql.Date"),
    temporal.SqlTime: _millis("java.sql.Time"),
    temporal.Timestamp: _write_timestamp,
}
