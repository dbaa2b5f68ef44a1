"""``java.time``: all its classes write themselves as ``java.time.Ser``, a type byte and a few numbers.

The type bytes and layouts are those of ``java.time.Ser`` and of each class's ``writeExternal``.
"""

from __future__ import annotations

import datetime as dt
import struct
import zoneinfo
from collections.abc import Callable
from typing import Any, Final

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import SerializationError
from pravega_serde.java.jdk_classes import Codec, Content, content
from pravega_serde.java.model import BlockData
from pravega_serde.java.protocol import decode_utf, encode_utf
from pravega_serde.java.values import (
    EPOCH,
    MonthDay,
    NanoDatetime,
    NanoDuration,
    NanoTime,
    Period,
    Year,
    YearMonth,
    ZoneOffset,
    ZoneRegion,
    epoch_seconds,
    nanoseconds,
)

_DURATION, _INSTANT, _DATE, _TIME, _DATETIME, _ZONED, _REGION, _OFFSET = 1, 2, 3, 4, 5, 6, 7, 8
_OFFSET_TIME, _OFFSET_DATETIME, _YEAR, _YEAR_MONTH, _MONTH_DAY, _PERIOD = 9, 10, 11, 12, 13, 14

_SECONDS_NANOS: Final = struct.Struct(">qi")
_INT: Final = struct.Struct(">i")
_YEAR_AND: Final = struct.Struct(">ibb")
_THREE_INTS: Final = struct.Struct(">iii")
_ODD_OFFSET: Final = 127
"""Byte of an offset that is not a multiple of 15 minutes; its seconds follow (``ZoneOffset.writeExternal``)."""
_MAX_OFFSET: Final = 18 * 3600


class _Input:
    """Numbers of one block, read one after the other."""

    __slots__ = ("at", "raw")

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw, self.at = raw, at

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the next numbers of a fixed layout."""
        numbers = layout.unpack_from(self.raw, self.at)
        self.at += layout.size
        return numbers

    def byte(self) -> int:
        """Return the next byte, signed."""
        value = self.raw[self.at]
        self.at += 1
        return value - 256 if value > 127 else value

    def text(self) -> str:
        """Return the next string of ``writeUTF``."""
        length = int.from_bytes(self.raw[self.at : self.at + 2], "big")
        raw = self.raw[self.at + 2 : self.at + 2 + length]
        self.at += 2 + length
        if len(raw) != length:
            msg = "the bytes end inside the name of a zone"
            raise MalformedError(msg)
        return decode_utf(raw)


class _BeyondPythonError(Exception):
    """Error for a valid value that Python's types cannot hold. It stays a record."""


def _read(_: Any, __: Any, notes: list[Any], ___: Any) -> Any:
    note = notes[0]
    if len(note) != 1 or type(note[0]) is not BlockData:
        msg = "invalid java.time value: one block of data is expected"
        raise MalformedError(msg)
    kind = note[0][0]
    reader = _READ.get(kind)
    if reader is None:
        return NotImplemented
    source = _Input(note[0], 1)
    try:
        value = reader(source)
    except (_BeyondPythonError, OverflowError):
        return NotImplemented
    # Remaining bytes would be lost in writing, so such a value stays a record.
    return NotImplemented if source.at != len(note[0]) else value


def _duration(source: _Input) -> dt.timedelta:
    seconds, nanos = _checked_nanos(*source.take(_SECONDS_NANOS))
    value = dt.timedelta(seconds=seconds, microseconds=nanos // 1000)
    return NanoDuration.of(value, nanos % 1000) if nanos % 1000 else value


def _instant(source: _Input) -> dt.datetime:
    seconds, nanos = _checked_nanos(*source.take(_SECONDS_NANOS))
    return _with_nanos(EPOCH + dt.timedelta(seconds=seconds), nanos)


def _checked_nanos(seconds: int, nanos: int) -> tuple[int, int]:
    if not 0 <= nanos < 1_000_000_000:
        msg = f"invalid nanosecond of a second: {nanos}"
        raise MalformedError(msg)
    return seconds, nanos


def _with_nanos(value: dt.datetime, nanos: int) -> dt.datetime:
    value = value.replace(microsecond=nanos // 1000)
    return NanoDatetime.of(value, nanos % 1000) if nanos % 1000 else value


def _date(source: _Input) -> dt.date:
    year, month, day = source.take(_YEAR_AND)
    if not 1 <= year <= 9999:
        raise _BeyondPythonError
    return dt.date(year, month, day)


def _clock(source: _Input) -> tuple[int, int, int, int]:
    """Return the hour, minute, second and nanosecond of the next time."""
    # LocalTime.readExternal: ~hour, or hour ~minute, or hour minute ~second, or all and the nanoseconds. The last part
    # that is not 0 is written as its complement, which is negative, and the zeros after it are left out.
    parts = [source.byte()]
    while parts[-1] >= 0 and len(parts) < 3:
        parts.append(source.byte())
    nanos = 0
    if parts[-1] < 0:
        parts[-1] = ~parts[-1]
    else:
        (nanos,) = source.take(_INT)
        _checked_nanos(0, nanos)
    hour, minute, second = (*parts, 0, 0)[:3]
    return hour, minute, second, nanos


def _time(source: _Input) -> dt.time:
    hour, minute, second, nanos = _clock(source)
    value = dt.time(hour, minute, second, nanos // 1000)
    return NanoTime.of(value, nanos % 1000) if nanos % 1000 else value


def _datetime(source: _Input) -> dt.datetime:
    date = _date(source)
    hour, minute, second, nanos = _clock(source)
    return _with_nanos(dt.datetime.combine(date, dt.time(hour, minute, second)), nanos)


def _in_zone(value: Any, zone: dt.tzinfo) -> Any:
    placed = value.replace(tzinfo=zone)
    beyond = getattr(value, "nanos_beyond", 0)
    return type(value).of(placed, beyond) if beyond else placed


def _offset(source: _Input) -> ZoneOffset:
    quarters = source.byte()
    seconds = source.take(_INT)[0] if quarters == _ODD_OFFSET else quarters * 900
    if abs(seconds) > _MAX_OFFSET:
        msg = f"invalid zone offset: {seconds} seconds"
        raise MalformedError(msg)
    return ZoneOffset(seconds)


def _zoned(source: _Input) -> dt.datetime:
    local, offset = _datetime(source), _offset(source)
    kind = source.byte()
    if kind == _OFFSET:
        # A ZonedDateTime with a bare offset as its zone. The id identifies the class.
        zone = _offset(source)
        if zone != offset:
            raise _BeyondPythonError
        return _as_datetime(_in_zone(local, ZoneRegion(zone.id, zone)))
    if kind != _REGION:
        msg = f"invalid type of a zone: {kind}"
        raise MalformedError(msg)
    return _as_datetime(_in_zone(local, ZoneRegion(source.text(), offset)))


def _as_datetime(value: Any) -> dt.datetime:
    assert isinstance(value, dt.datetime)
    return value


_READ: Final[dict[int, Callable[[_Input], Any]]] = {
    _DURATION: _duration,
    _INSTANT: _instant,
    _DATE: _date,
    _TIME: _time,
    _DATETIME: _datetime,
    _ZONED: _zoned,
    _REGION: lambda source: ZoneRegion(source.text()),
    _OFFSET: _offset,
    _OFFSET_TIME: lambda source: _in_zone(_time(source), _offset(source)),
    _OFFSET_DATETIME: lambda source: _in_zone(_datetime(source), _offset(source)),
    _YEAR: lambda source: Year(*source.take(_INT)),
    _YEAR_MONTH: lambda source: YearMonth(source.take(_INT)[0], source.byte()),
    _MONTH_DAY: lambda source: MonthDay(source.byte(), source.byte()),
    _PERIOD: lambda source: Period(*source.take(_THREE_INTS)),
}

READERS: Final = {"java.time.Ser": Codec(_read)}


def _ser(kind: int, *parts: bytes) -> Content:
    return content("java.time.Ser", (), [(BlockData(bytes([kind]) + b"".join(parts)),)])


def _pack_date(value: dt.date) -> bytes:
    return _YEAR_AND.pack(value.year, value.month, value.day)


def _pack_clock(value: dt.datetime | dt.time) -> bytes:
    nanos = nanoseconds(value)
    parts = [value.hour, value.minute, value.second]
    if nanos:
        return bytes(parts) + _INT.pack(nanos)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return bytes([*parts[:-1], ~parts[-1] & 0xFF])


def _pack_offset(offset: dt.timedelta | None) -> bytes:
    seconds = (offset or dt.timedelta()) // dt.timedelta(seconds=1)
    if abs(seconds) > _MAX_OFFSET:
        msg = f"invalid zone offset: {seconds} seconds, at most 18 hours"
        raise SerializationError(msg)
    if seconds % 900:
        return bytes([_ODD_OFFSET]) + _INT.pack(seconds)
    return (seconds // 900 & 0xFF).to_bytes(1, "big")


def _pack_zone(zone: ZoneRegion | zoneinfo.ZoneInfo) -> bytes:
    name = zone.id if isinstance(zone, ZoneRegion) else str(zone.key or "UTC")
    if isinstance(zone, ZoneRegion) and zone.offset is not None and zone.offset.id == name:
        return bytes([_OFFSET]) + _pack_offset(zone.offset.utcoffset(None))
    raw = encode_utf(name)
    return bytes([_REGION]) + len(raw).to_bytes(2, "big") + raw


def _write_datetime(value: dt.datetime) -> Content:
    zone = value.tzinfo
    # The UTC singleton means an Instant. A ZoneOffset of 0 means an OffsetDateTime.
    if zone is dt.UTC:
        return _ser(_INSTANT, _SECONDS_NANOS.pack(*epoch_seconds(value)))
    local = _pack_date(value) + _pack_clock(value)
    if zone is None:
        return _ser(_DATETIME, local)
    offset = _pack_offset(value.utcoffset())
    if isinstance(zone, (ZoneRegion, zoneinfo.ZoneInfo)):
        return _ser(_ZONED, local, offset, _pack_zone(zone))
    return _ser(_OFFSET_DATETIME, local, offset)


def _write_time(value: dt.time) -> Content:
    if value.tzinfo is None:
        return _ser(_TIME, _pack_clock(value))
    return _ser(_OFFSET_TIME, _pack_clock(value), _pack_offset(value.utcoffset()))


def _write_duration(value: dt.timedelta) -> Content:
    nanos = value.microseconds * 1000 + getattr(value, "nanos_beyond", 0)
    return _ser(_DURATION, _SECONDS_NANOS.pack(value.days * 86_400 + value.seconds, nanos))


def _write_region(value: ZoneRegion) -> Content:
    raw = encode_utf(value.id)
    return _ser(_REGION, len(raw).to_bytes(2, "big"), raw)


WRITERS: Final[dict[type[Any], Callable[[Any], Content]]] = {
    dt.datetime: _write_datetime,
    NanoDatetime: _write_datetime,
    dt.date: lambda value: _ser(_DATE, _pack_date(value)),
    dt.time: _write_time,
    NanoTime: _write_time,
    dt.timedelta: _write_duration,
    NanoDuration: _write_duration,
    ZoneOffset: lambda value: _ser(_OFFSET, _pack_offset(value.utcoffset(None))),
    ZoneRegion: _write_region,
    Year: lambda value: _ser(_YEAR, _INT.pack(value.year)),
    YearMonth: lambda value: _ser(_YEAR_MONTH, _INT.pack(value.year), bytes([value.month])),
    MonthDay: lambda value: _ser(_MONTH_DAY, bytes([value.month, value.day])),
    Period: lambda value: _ser(_PERIOD, _THREE_INTS.pack(value.years, value.months, value.days)),
}
