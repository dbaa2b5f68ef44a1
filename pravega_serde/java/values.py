"""Java's values in Python: natural types, and subclasses of them that keep their Java class.

**Boxes.** A plain ``int``, ``float``, ``bool`` or ``str`` is written as ``Integer`` (``Long`` or ``BigInteger`` by
range), ``Double``, ``Boolean``, ``String``. A value in another box is read as a subclass of the natural type, and
written in that box again. The subclasses for the four default boxes exist for one reason: CPython has one object for
each small number, but a stream may hold two different ``Integer`` objects with one value. The second is then an
:class:`Integer`.

**Containers.** ``ArrayList``, ``HashMap``, ``ArrayDeque`` are plain ``list``, ``dict``, ``deque``. A plain ``set`` is
written as ``HashSet``. Every other class is a subclass of these with ``java_class`` and with ``extra``, the fields in
addition to the elements (comparator, load factor, capacity). Wrappers such as ``Collections.unmodifiableList`` are
views, as in Java: they hold the wrapped collection and copy nothing.

**Dates and times** keep nanoseconds, offsets and zones:

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

Values outside the exact range of Python's types are a subclass that can hold them (:class:`NanoDatetime`,
:class:`NanoTime`, :class:`NanoDuration`), or stay a record (years beyond 1..9999).
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Self

from pravega_serde.errors import SerializationError
from pravega_serde.java.jdk_classes import jdk_descriptor
from pravega_serde.java.model import ClassDescriptor, Instance


class Integer(int):
    """``java.lang.Integer``."""

    __slots__ = ()


class Long(int):
    """``java.lang.Long``."""

    __slots__ = ()


class Short(int):
    """``java.lang.Short``."""

    __slots__ = ()


class Byte(int):
    """``java.lang.Byte``."""

    __slots__ = ()


class BigInteger(int):
    """``java.math.BigInteger``."""

    __slots__ = ()


class BigDecimal(decimal.Decimal):
    """``java.math.BigDecimal``: a ``Decimal`` with the ``BigInteger`` object of its digits, which others may share."""

    __slots__ = ("unscaled",)

    unscaled: BigInteger | None
    """The digits as an integer."""

    @classmethod
    def of(cls, value: decimal.Decimal, unscaled: BigInteger) -> Self:
        """Create a decimal with that object as its digits."""
        made = cls(value)
        made.unscaled = unscaled
        return made


class Boolean(int):
    """``java.lang.Boolean``: 0 or 1, equal to ``False`` or ``True``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(bool(self))


class Double(float):
    """``java.lang.Double``."""

    __slots__ = ()


class Float(float):
    """``java.lang.Float``: a float with single precision."""

    __slots__ = ()

    def __new__(cls, value: float | str = 0.0) -> Float:
        """Create the number, rounded to single precision."""
        return super().__new__(cls, struct.unpack(">f", struct.pack(">f", float(value)))[0])


class Character(str):
    """``java.lang.Character``: one UTF-16 code unit."""

    __slots__ = ()


class String(str):
    """``java.lang.String``: a separate string object, also if CPython shares one."""

    __slots__ = ()


class ByteArray(bytes):
    """``byte[]``: a separate bytes object, also if CPython shares one."""

    __slots__ = ()


class JavaKey:
    """Map key or set element that Python cannot hash, or that equals another one in Python but not in Java.

    Java's ``1``, ``1L``, ``1.0`` and ``true`` are four different keys, and two arrays are two. Equality is identity.
    """

    __slots__ = ("value",)

    value: Any
    """The key itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"JavaKey({self.value!r})"


class JavaArray(list[Any]):
    """Array of objects. Arrays of primitives are NumPy arrays, and ``byte[]`` is ``bytes``."""

    __slots__ = ("descriptor",)

    descriptor: ClassDescriptor | None
    """Class of the array; None for ``Object[]``."""

    def __init__(self, items: Iterable[Any] = (), descriptor: ClassDescriptor | None = None) -> None:
        super().__init__(items)
        self.descriptor = descriptor

    @property
    def java_class(self) -> str:
        """Name of the class, as Java's ``getName`` returns it: ``[Ljava.lang.String;``."""
        return self.descriptor.name if self.descriptor else "[Ljava.lang.Object;"


class JavaList(list[Any]):
    """List or queue of a class other than ``ArrayList``."""

    __slots__ = ("extra", "java_class")

    java_class: str
    """Full name of the class in the stream."""
    extra: dict[str, Any]
    """Fields in addition to the elements, only those with unusual values."""

    def __init__(
        self, items: Iterable[Any] = (), java_class: str = "java.util.ArrayList", extra: dict[str, Any] | None = None
    ) -> None:
        super().__init__(items)
        self.java_class = java_class
        self.extra = extra if extra is not None else {}


class JavaMap(dict[Any, Any]):
    """Map of a class other than ``HashMap``, or with an unusual load factor, in the stream's order."""

    __slots__ = ("extra", "java_class")

    java_class: str
    """Full name of the class in the stream."""
    extra: dict[str, Any]
    """Fields in addition to the entries, only those with unusual values."""

    def __init__(
        self,
        entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (),
        java_class: str = "java.util.HashMap",
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(entries)
        self.java_class = java_class
        self.extra = extra if extra is not None else {}


class JavaSet(set[Any]):
    """Set that keeps its class and the stream's order. It iterates in Python's order."""

    __slots__ = ("_order", "extra", "java_class")

    java_class: str
    """Full name of the class in the stream."""
    extra: dict[str, Any]
    """Fields in addition to the elements, only those with unusual values."""

    def __init__(
        self, elements: Iterable[Any] = (), java_class: str = "java.util.HashSet", extra: dict[str, Any] | None = None
    ) -> None:
        self._order: tuple[Any, ...] = tuple(elements)
        super().__init__(self._order)
        self.java_class = java_class
        self.extra = extra if extra is not None else {}

    def in_order(self) -> list[Any]:
        """Return the elements: first those of the stream, in its order, then the ones added since."""
        kept = [element for element in self._order if element in self]
        if len(kept) == len(self):
            return kept
        known = set(kept)
        return list(dict.fromkeys(kept)) + [element for element in self if element not in known]

    def fill(self, elements: Sequence[Any]) -> None:
        """Set elements and their order, once."""
        self._order = tuple(elements)
        self.update(elements)


class _View(Instance):
    """Wrapper around another collection, which receives the reads."""

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of(cls, java_class: str, *values: Any) -> Self:
        """Create a wrapper of a JDK class from its fields in stream order. The last value fills all remaining fields.

        ``ListView.of("java.util.Collections$UnmodifiableList", [1, 2])``
        """
        descriptor = jdk_descriptor(java_class)
        if descriptor is None or not values:
            msg = f"invalid wrapper class {java_class}: not one of the JDK's, or without a collection"
            raise SerializationError(msg)
        missing = len(descriptor.all_fields) - len(values)
        return cls(descriptor, (*values, *[values[-1]] * missing))

    @property
    def inner(self) -> Any:
        """Wrapped collection."""
        return next(self.field(name) for name in INNER if name in self.descriptor.positions)

    @property
    def java_class(self) -> str:
        """Full name of the wrapper's class."""
        return self.class_name

    @property
    def target(self) -> Any:
        """Innermost collection of all wrappers. Raises :class:`TypeError` if that is a record."""
        at, steps = self.inner, 0
        while isinstance(at, _View) and steps < _MAX_WRAPPERS:
            at, steps = at.inner, steps + 1
        if not isinstance(at, (Sequence, Mapping, Set, deque)):
            msg = f"{self.class_name} wraps a {type(at).__name__}, not a Python collection: see .inner"
            raise TypeError(msg)
        return at

    def __len__(self) -> int:
        return len(self.target)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.target)

    def __contains__(self, item: object) -> bool:
        return item in self.target

    def __bool__(self) -> bool:
        return len(self) > 0

    def __repr__(self) -> str:
        return f"<{self.class_name} of a {type(self.inner).__name__}>"


_MAX_WRAPPERS: Final = 10_000
"""Maximum wrappers around one collection. More can only be a cycle."""

INNER: Final = ("c", "m", "a", "al", "q", "map")
"""Names of the fields that hold the wrapped collection in the various wrappers."""


class ListView(_View, Sequence[Any]):
    """Read-only view of a list: ``Collections.unmodifiableList``, ``Arrays.asList``, ..."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> Any:
        return self.target[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ListView):
            other = other.target
        return list(self.target) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class SetView(_View, Set[Any]):
    """Read-only view of a set, or of the keys of a map: ``Collections.unmodifiableSet``, ``newSetFromMap``, ..."""

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return set(it)


class MapView(_View, Mapping[Any, Any]):
    """Read-only view of a map: ``Collections.unmodifiableMap``, ..."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return self.target[key]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MapView):
            other = other.target
        return dict(self.target) == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class Copies(Instance, Sequence[Any]):
    """``Collections.nCopies``: the same element any number of times, stored once."""

    __slots__ = ()

    def __len__(self) -> int:
        return int(self.field("n", 0))

    def __getitem__(self, at: Any) -> Any:
        picked = range(len(self))[at]
        return [self.field("element")] * len(picked) if isinstance(picked, range) else self.field("element")

    def __iter__(self) -> Iterator[Any]:
        return (self.field("element") for _ in range(len(self)))

    def __contains__(self, item: object) -> bool:
        return len(self) > 0 and (self.field("element") is item or self.field("element") == item)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(item == self.field("element") for item in other)

    __hash__ = None  # type: ignore[assignment]


EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def epoch_seconds(value: dt.datetime) -> tuple[int, int]:
    """Return the whole seconds since 1970 of an aware datetime, and the nanoseconds within the second."""
    since = value - EPOCH
    return since.days * 86_400 + since.seconds, nanoseconds(value)


def nanoseconds(value: dt.datetime | dt.time) -> int:
    """Return the nanosecond of the second."""
    return value.microsecond * 1000 + getattr(value, "nanos_beyond", 0)


class NanoDatetime(dt.datetime):
    """``datetime`` with nanoseconds: ``microsecond``, and ``nanos_beyond`` (0 to 999) for the rest."""

    nanos_beyond: int = 0

    @classmethod
    def of(cls, value: dt.datetime, nanos_beyond: int) -> Self:
        """Return a datetime that is ``nanos_beyond`` nanoseconds later."""
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
    """``time`` with nanoseconds: ``microsecond``, and ``nanos_beyond`` (0 to 999) for the rest."""

    nanos_beyond: int = 0

    @classmethod
    def of(cls, value: dt.time, nanos_beyond: int) -> Self:
        """Return a time that is ``nanos_beyond`` nanoseconds later."""
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
    """``timedelta`` with nanoseconds: ``microseconds``, and ``nanos_beyond`` (0 to 999) for the rest."""

    nanos_beyond: int = 0

    @classmethod
    def of(cls, value: dt.timedelta, nanos_beyond: int) -> Self:
        """Return a duration that is ``nanos_beyond`` nanoseconds longer."""
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
    """Fixed offset from UTC (``java.time.ZoneOffset``)."""

    seconds: int
    """Seconds, positive east of Greenwich; at most 18 hours."""

    def utcoffset(self, _: dt.datetime | None, /) -> dt.timedelta:
        """Return the offset."""
        return dt.timedelta(seconds=self.seconds)

    def dst(self, _: dt.datetime | None, /) -> None:
        """Return None: daylight saving time is unknown."""

    def tzname(self, _: dt.datetime | None, /) -> str:
        """Return ``+02:00``, or ``Z``."""
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
    """Time zone by its id (``java.time.ZoneRegion``), with the offset of its datetime.

    No time zone data is looked up for an id in an event. For that, use ``value.astimezone(ZoneInfo(zone.id))``.
    """

    id: str
    """``Europe/Paris``, ``UTC``, ..."""
    offset: ZoneOffset | None = None
    """Offset of that datetime, or None for a zone without one."""

    def utcoffset(self, _: dt.datetime | None, /) -> dt.timedelta | None:
        """Return the offset, or None for a zone without a datetime."""
        return self.offset.utcoffset(None) if self.offset else None

    def dst(self, _: dt.datetime | None, /) -> None:
        """Return None: daylight saving time is unknown."""

    def tzname(self, _: dt.datetime | None, /) -> str:
        """Return the id."""
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
    """Not normalized to 12."""
    days: int = 0
    """Not normalized to a month."""
