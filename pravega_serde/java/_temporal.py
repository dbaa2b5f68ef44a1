"""Java's dates and times as Python's, without losing nanoseconds, offsets or zones.

======================================  =============================================================
Java                                    Python
======================================  =============================================================
``Instant``                             aware ``datetime`` whose tzinfo is ``timezone.utc``
``LocalDateTime``                       naive ``datetime``
``OffsetDateTime``                      ``datetime`` with a :class:`ZoneOffset` (or any other fixed ``timezone``)
``ZonedDateTime``                       ``datetime`` with a :class:`ZoneRegion` (or a ``ZoneInfo``)
``LocalDate``, ``LocalTime``            ``date``, naive ``time``
``OffsetTime``                          ``time`` with a :class:`ZoneOffset`
``Duration``                            ``timedelta``
``Period``, ``Year``, ``YearMonth``,    small records of that name
``MonthDay``
``ZoneId``, ``ZoneOffset``              :class:`ZoneRegion`, :class:`ZoneOffset`
``java.util.Date``, ``java.sql.Date``,  :class:`Date`, :class:`SqlDate`, :class:`SqlTime`, :class:`Timestamp`:
``Time``, ``Timestamp``                 aware ``datetime`` in UTC
======================================  =============================================================

What Python's types cannot hold exactly is a subclass that can (:class:`NanoDatetime`, :class:`NanoTime`,
:class:`NanoDuration`), or stays a record (years beyond 1..9999).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final, Self

__all__ = [
    "Date",
    "MonthDay",
    "NanoDatetime",
    "NanoDuration",
    "NanoTime",
    "Period",
    "SqlDate",
    "SqlTime",
    "Timestamp",
    "Year",
    "YearMonth",
    "ZoneOffset",
    "ZoneRegion",
    "epoch_seconds",
]

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def epoch_seconds(value: dt.datetime) -> tuple[int, int]:
    """Whole seconds since 1970 of an aware datetime, and the nanoseconds beyond them."""
    since = value - EPOCH
    return since.days * 86_400 + since.seconds, nanoseconds(value)


def nanoseconds(value: dt.datetime | dt.time) -> int:
    """Nanosecond of the second."""
    return value.microsecond * 1000 + getattr(value, "nanos_beyond", 0)


class NanoDatetime(dt.datetime):
    """A ``datetime`` with nanoseconds: ``microsecond`` and, beyond it, ``nanos_beyond`` (0 to 999)."""

    nanos_beyond: int = 0

    @classmethod
    def of(cls, value: dt.datetime, nanos_beyond: int) -> Self:
        """That datetime, and some nanoseconds."""
        made = cls.combine(value.date(), value.timetz())
        made.nanos_beyond = nanos_beyond
        return made

    @property
    def nanosecond(self) -> int:
        """Nanosecond of the second."""
        return nanoseconds(self)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.nanos_beyond == getattr(other, "nanos_beyond", 0)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.isoformat()} + {self.nanos_beyond} ns>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        plain = dt.datetime.combine(self.date(), self.timetz())
        return type(self).of, (plain, self.nanos_beyond)


class NanoTime(dt.time):
    """A ``time`` with nanoseconds: ``microsecond`` and, beyond it, ``nanos_beyond`` (0 to 999)."""

    nanos_beyond: int = 0

    @classmethod
    def of(cls, value: dt.time, nanos_beyond: int) -> Self:
        """That time, and some nanoseconds."""
        made = cls(value.hour, value.minute, value.second, value.microsecond, value.tzinfo)
        made.nanos_beyond = nanos_beyond
        return made

    @property
    def nanosecond(self) -> int:
        """Nanosecond of the second."""
        return nanoseconds(self)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.nanos_beyond == getattr(other, "nanos_beyond", 0)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self).of, (
            dt.time(self.hour, self.minute, self.second, self.microsecond, self.tzinfo),
            self.nanos_beyond,
        )


class NanoDuration(dt.timedelta):
    """A ``timedelta`` with nanoseconds: ``microseconds`` and, beyond them, ``nanos_beyond`` (0 to 999)."""

    nanos_beyond: int = 0

    @classmethod
    def of(cls, value: dt.timedelta, nanos_beyond: int) -> Self:
        """That duration, and some nanoseconds."""
        made = cls(value.days, value.seconds, value.microseconds)
        made.nanos_beyond = nanos_beyond
        return made

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.nanos_beyond == getattr(other, "nanos_beyond", 0)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self).of, (dt.timedelta(self.days, self.seconds, self.microseconds), self.nanos_beyond)


class Date(dt.datetime):
    """``java.util.Date``: milliseconds, in UTC."""


class SqlDate(Date):
    """``java.sql.Date``."""


class SqlTime(Date):
    """``java.sql.Time``."""


class Timestamp(NanoDatetime):
    """``java.sql.Timestamp``: nanoseconds, in UTC."""


@dataclass(frozen=True, slots=True)
class ZoneOffset(dt.tzinfo):
    """A fixed offset from UTC (``java.time.ZoneOffset``)."""

    seconds: int
    """East of Greenwich is positive; at most 18 hours."""

    def utcoffset(self, _: dt.datetime | None, /) -> dt.timedelta:
        """The offset."""
        return dt.timedelta(seconds=self.seconds)

    def dst(self, _: dt.datetime | None, /) -> None:
        """Not known."""

    def tzname(self, _: dt.datetime | None, /) -> str:
        """``+02:00``, or ``Z``."""
        return self.id

    @property
    def id(self) -> str:
        """``+02:00``, or ``Z``."""
        if self.seconds == 0:
            return "Z"
        minutes, seconds = divmod(abs(self.seconds), 60)
        text = f"{'-' if self.seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
        return f"{text}:{seconds:02}" if seconds else text

    def __getinitargs__(self) -> tuple[int]:
        return (self.seconds,)


@dataclass(frozen=True, slots=True)
class ZoneRegion(dt.tzinfo):
    """A time zone by its id (``java.time.ZoneRegion``), with the offset that was valid at the datetime it belongs to.

    No time zone data is looked up for an id that stands in an event; for that: ``value.astimezone(ZoneInfo(zone.id))``.
    """

    id: str
    """``Europe/Paris``, ``UTC``, ..."""
    offset: ZoneOffset | None = None
    """Offset of the one datetime that this zone came with; None for a zone by itself."""

    def utcoffset(self, _: dt.datetime | None, /) -> dt.timedelta | None:
        """The offset, if there is one."""
        return self.offset.utcoffset(None) if self.offset else None

    def dst(self, _: dt.datetime | None, /) -> None:
        """Not known."""

    def tzname(self, _: dt.datetime | None, /) -> str:
        """The id."""
        return self.id

    def __getinitargs__(self) -> tuple[str, ZoneOffset | None]:
        return (self.id, self.offset)


@dataclass(frozen=True, slots=True, order=True)
class Year:
    """``java.time.Year``."""

    year: int
    """Proleptic ISO year."""


@dataclass(frozen=True, slots=True, order=True)
class YearMonth:
    """``java.time.YearMonth``."""

    year: int
    """Proleptic ISO year."""
    month: int
    """1 to 12."""


@dataclass(frozen=True, slots=True, order=True)
class MonthDay:
    """``java.time.MonthDay``."""

    month: int
    """1 to 12."""
    day: int
    """1 to 31."""


@dataclass(frozen=True, slots=True)
class Period:
    """``java.time.Period``: a date-based amount of time."""

    years: int = 0
    """May be negative, like the others."""
    months: int = 0
    """Not normalised to 12."""
    days: int = 0
    """Not normalised to a month."""
