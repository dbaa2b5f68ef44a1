"""Compares decoded values with what Java saw, in the notation of tests/vectors/README.md.

The comparison walks Java's description and the Python value together, so it also sees which objects are one object:
an ``id`` binds a number to a Python object, and each ``ref`` must find that same object.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import uuid
import zoneinfo
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from pravega_serde import java

__all__ = ["assert_matches"]

_INSTANCES: Final = (java.JavaObject, java.ListView, java.SetView, java.MapView, java.Copies)
_BOXES: Final[dict[str, tuple[type[Any], ...]]] = {
    "java.lang.String": (str, java.String),
    "java.lang.Boolean": (bool, java.Boolean),
    "java.lang.Integer": (int, java.Integer),
    "java.lang.Long": (java.Long,),
    "java.lang.Short": (java.Short,),
    "java.lang.Byte": (java.Byte,),
    "java.lang.Character": (java.Character,),
    "java.lang.Double": (float, java.Double),
    "java.lang.Float": (java.Float,),
}
_PRIMITIVES: Final[dict[str, type[Any]]] = {"C": str, "D": float, "F": float, "Z": bool} | dict.fromkeys("BIJS", int)
_PLAIN: Final[dict[type[Any], str]] = {
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    deque: "java.util.ArrayDeque",
    set: "java.util.HashSet",
    frozenset: "java.util.HashSet",
    tuple: "java.util.ArrayList",
}
_ARRAYS: Final = {"char": "u2", "double": "f8", "float": "f4", "int": "i4", "long": "i8", "short": "i2", "boolean": "?"}
_RENAMED: Final = {
    # Collections that say in the stream what makes them, not what they are.
    "java.util.ImmutableCollections$List12": "java.util.ImmutableCollections$ListN",
    "java.util.ImmutableCollections$Set12": "java.util.ImmutableCollections$SetN",
    "java.util.ImmutableCollections$Map1": "java.util.ImmutableCollections$MapN",
    "java.util.Collections$UnmodifiableRandomAccessList": "java.util.Collections$UnmodifiableList",
    "java.util.Collections$SynchronizedRandomAccessList": "java.util.Collections$SynchronizedList",
    "java.util.RegularEnumSet": "java.util.EnumSet",
    "java.time.ZoneRegion": "java.time.ZoneRegion",
}

Unpack = Mapping[str, Callable[[java.JavaObject], Mapping[str, Any]]]


def assert_matches(expected: Any, value: Any, *, unpack: Unpack | None = None) -> None:
    """Fail unless ``value`` is what Java says; ``unpack`` reads classes that write themselves, by class name."""
    _Matcher(unpack or {}).check(expected, value, "$")


class _Matcher:
    def __init__(self, unpack: Unpack) -> None:
        self.unpack = unpack
        self.bound: dict[int, Any] = {}

    def check(self, expected: Any, value: Any, path: str, primitive: str | None = None) -> None:
        if isinstance(value, java.JavaKey):
            value = value.value
        if expected is None:
            assert value is None, path
        elif "ref" in expected:
            first = self.bound[expected["ref"]]
            # Java shares constants such as ZoneOffset.UTC, LocalTime.NOON and List.of() when it reads them.
            shared = not isinstance(value, (*_INSTANCES, np.ndarray, bytes)) and (not value or _is_constant(value))
            assert first is value or (shared and first == value), f"{path}: not the same object"
        elif "enum" in expected:
            assert (value.class_name, value.name) == (expected["t"], expected["enum"]), path
        elif expected["t"] in _BOXES:
            self.scalar(expected, value, path, primitive)
        elif expected["t"] == "java.lang.Class":
            assert isinstance(value, java.JavaClass), path
            assert value.class_name == expected["v"], path
        else:
            self.bound[expected["id"]] = value
            self.object(expected, value, path)

    def scalar(self, expected: Any, value: Any, path: str, primitive: str | None) -> None:
        kind = expected["t"]
        if primitive:
            assert type(value) is _PRIMITIVES[primitive], path
        elif kind == "java.lang.Long" and type(value) is int:
            assert not -(1 << 31) <= value < 1 << 31, f"{path}: a plain int becomes a Long by its range only"
        else:
            assert type(value) in _BOXES[kind], f"{path}: {type(value)} for {kind}"
        if "bits" in expected:
            packed = struct.pack(">d" if kind.endswith("Double") else ">f", value)
            assert packed.hex() == expected["bits"], path
        else:
            wanted = chr(expected["v"]) if kind.endswith("Character") else expected["v"]
            assert str(value) == str(wanted), f"{path}: {value!r} is not {wanted!r}"

    def object(self, expected: Any, value: Any, path: str) -> None:
        kind = _RENAMED.get(expected["t"], expected["t"])
        if "hex" in expected:
            assert isinstance(value, bytes), path
            assert value.hex() == expected["hex"], path
        elif kind.endswith("[]"):
            self.array(expected, value, path)
        elif "f" in expected:
            self.fields(expected, value, path)
        elif "entries" in expected:
            self.entries(expected["entries"], value, kind, path)
        elif isinstance(expected.get("v"), list):
            self.elements(expected["v"], value, kind, path)
        else:
            self.special(expected, value, path)

    def array(self, expected: Any, value: Any, path: str) -> None:
        dtype = _ARRAYS.get(expected["t"][:-2])
        if dtype is None:
            assert isinstance(value, java.JavaArray), path
            self.items(expected["v"], value, path)
        else:
            assert value.dtype == np.dtype(dtype), path
            wanted = [float(each) if isinstance(each, str) else each for each in expected["v"]]
            assert np.array_equal(value, np.array(wanted, dtype), equal_nan=dtype[0] == "f"), path

    def items(self, expected: list[Any], value: Any, path: str) -> None:
        assert len(value) == len(expected), path
        for at, (each, item) in enumerate(zip(expected, value, strict=True)):
            self.check(each, item, f"{path}[{at}]")

    def elements(self, expected: list[Any], value: Any, kind: str, path: str) -> None:
        self.class_of(value, kind, path)
        view = isinstance(value, java.SetView)
        if isinstance(value, java.SetView):
            value = value.target
        in_order = value.in_order() if isinstance(value, java.JavaSet) else list(value)
        if kind in _UNORDERED or view:
            in_order = self.sorted_like(expected, in_order, path)
        self.items(expected, in_order, path)

    def sorted_like(self, expected: list[Any], items: list[Any], path: str) -> list[Any]:
        """The items in Java's order: each in the place of the description that it fits."""
        left, found = list(items), []
        for each in expected:
            at = next((i for i, item in enumerate(left) if self.fits(each, item)), None)
            assert at is not None, f"{path}: nothing matches {each}"
            found.append(left.pop(at))
        return found + left

    def fits(self, expected: Any, value: Any) -> bool:
        before = dict(self.bound)
        try:
            self.check(expected, value, "")
        except (AssertionError, AttributeError, KeyError, struct.error, TypeError):
            self.bound = before
            return False
        return True

    def entries(self, expected: list[Any], value: Any, kind: str, path: str) -> None:
        self.class_of(value, kind, path)
        view = isinstance(value, java.MapView)
        if isinstance(value, java.MapView):
            value = value.target
        keys = list(value)
        if kind in _UNORDERED or view:
            keys = self.sorted_like([key for key, _ in expected], keys, path)
        assert len(keys) == len(expected), path
        for (key, item), found in zip(expected, keys, strict=True):
            self.check(key, found, f"{path}<key>")
            self.check(item, value[found], f"{path}[{key}]")

    def class_of(self, value: Any, kind: str, path: str) -> None:
        found = getattr(value, "java_class", None) or _PLAIN.get(type(value)) or getattr(value, "class_name", None)
        assert found == kind, f"{path}: {found} is not {kind}"

    def fields(self, expected: Any, value: Any, path: str) -> None:
        assert isinstance(value, java.JavaObject), path
        custom = self.unpack.get(value.class_name)
        found = custom(value) if custom else None
        for name, each in expected["f"].items():
            if found is not None:
                self.check(each, found[name], f"{path}.{name}", "I" if type(found[name]) is int else None)
            elif not name.startswith("transient:"):
                self.field(value, name, each, f"{path}.{name}")

    def field(self, value: java.JavaObject, name: str, expected: Any, path: str) -> None:
        """A field of the topmost class by its plain name; in a subclass again, it is ``SubClass.name``."""
        simple, _, bare = name.rpartition(".")
        for at, (owner, each) in enumerate(value.descriptor.all_fields):
            owner_name = owner.name.rpartition(".")[2].rpartition("$")[2]
            if each.name == bare and simple in ("", owner_name):
                self.check(expected, value.data[at], path, each.type if each.primitive else None)
                return
        raise AssertionError(f"{path}: no such field")

    def special(self, expected: Any, value: Any, path: str) -> None:
        if "unscaled" in expected:
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            assert (str(unscaled), -exponent) == (expected["unscaled"], expected["scale"]), path
        elif "n" in expected:
            assert len(value) == expected["n"], path
        elif "millis" in expected and isinstance(value, dt.datetime):
            since = value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
            assert since // dt.timedelta(milliseconds=1) == expected["millis"], path
            assert getattr(value, "nanosecond", expected.get("nanos")) == expected.get("nanos"), path
        elif "message" in expected:
            assert value["detailMessage"] == expected["message"], path
            assert len(value["stackTrace"]) == expected["frames"], path
            assert (value["cause"] is value) == (expected["cause"] is None), path
        elif isinstance(value, _INSTANCES):
            text = _RECORDS.get(value.class_name)
            assert text is None or text(value) == expected["v"], path
        else:
            assert _java_text(value) == expected["v"], f"{path}: {_java_text(value)} is not {expected['v']}"


# A user's dict or set need not have the order that Java gives it.
_UNORDERED: Final = {
    "java.util.TreeMap",
    "java.util.TreeSet",
    "java.util.concurrent.ConcurrentSkipListMap",
    "java.util.HashMap",
    "java.util.HashSet",
    "java.util.Hashtable",
    "java.util.IdentityHashMap",
    "java.util.Properties",
    "java.util.concurrent.ConcurrentHashMap",
    "java.util.concurrent.ConcurrentHashMap$KeySetView",
    "java.util.Collections$SetFromMap",
    "java.util.PriorityQueue",
    "java.util.concurrent.PriorityBlockingQueue",
    "java.util.Collections$AsLIFOQueue",
    "java.util.ImmutableCollections$SetN",
    "java.util.ImmutableCollections$MapN",
    "java.util.EnumMap",
    "java.util.EnumSet",
}

_RECORDS: Final[dict[str, Callable[[Any], str]]] = {
    "java.net.URI": lambda value: str(value["string"]),
    "java.util.concurrent.atomic.AtomicInteger": lambda value: str(value["value"]),
    "java.util.BitSet": lambda value: (
        "{"
        + ", ".join(str(64 * at + bit) for at, word in enumerate(value["bits"]) for bit in range(64) if word >> bit & 1)
        + "}"
    ),
    "java.lang.StringBuilder": lambda value: "".join(map(chr, value.annotations[0][1][:2])),
}


def _is_constant(value: Any) -> bool:
    return not isinstance(value, (list, dict, set, deque))


def _fraction(nanos: int) -> str:
    """Java's digits of a second: none, or as many groups of three as are needed."""
    text = f"{nanos:09}"
    while text and text.endswith("000"):
        text = text[:-3]
    return f".{text}" if text else ""


def _nanos(value: Any) -> int:
    return int(value.microsecond) * 1000 + getattr(value, "nanos_beyond", 0)


def _clock(value: Any, always_seconds: bool = False) -> str:
    text = f"{value.hour:02}:{value.minute:02}"
    if value.second or _nanos(value) or always_seconds:
        text += f":{value.second:02}{_fraction(_nanos(value))}"
    return text


def _datetime(value: dt.datetime) -> str:
    zone = value.tzinfo
    day = f"{value.year:04}-{value.month:02}-{value.day:02}"
    if zone is dt.UTC:
        return f"{day}T{_clock(value, always_seconds=True)}Z"
    text = f"{day}T{_clock(value)}"
    if isinstance(zone, java.ZoneRegion):
        assert zone.offset is not None
        return text + zone.offset.id + (f"[{zone.id}]" if zone.id != zone.offset.id else "")
    if isinstance(zone, zoneinfo.ZoneInfo):
        offset = java.ZoneOffset(value.utcoffset() // dt.timedelta(seconds=1))
        return f"{text}{offset.id}[{zone.key}]"
    return text + (zone.id if isinstance(zone, java.ZoneOffset) else "")


def _duration(value: dt.timedelta) -> str:
    nanos = (
        (value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000 + getattr(value, "nanos_beyond", 0)
    )
    if not nanos:
        return "PT0S"
    sign = -1 if nanos < 0 else 1
    seconds, rest = divmod(abs(nanos), 10**9)
    hours, minutes, seconds = sign * (seconds // 3600), sign * (seconds // 60 % 60), seconds % 60
    text = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "")
    if seconds or rest:
        digits = f".{rest:09}".rstrip("0") if rest else ""
        text += f"{'-' if sign < 0 else ''}{seconds}{digits}S"
    return "PT" + text


def _period(value: java.Period) -> str:
    parts = ((value.years, "Y"), (value.months, "M"), (value.days, "D"))
    return "P" + ("".join(f"{number}{unit}" for number, unit in parts if number) or "0D")


def _java_text(value: Any) -> str:
    """``toString`` of Java."""
    match value:
        case dt.datetime():
            return _datetime(value)
        case dt.date():
            return value.isoformat()
        case dt.time():
            return _clock(value) + (value.tzinfo.id if isinstance(value.tzinfo, java.ZoneOffset) else "")
        case dt.timedelta():
            return _duration(value)
        case java.Period():
            return _period(value)
        case java.Year():
            return str(value.year)
        case java.YearMonth():
            return f"{'-' if value.year < 0 else ''}{abs(value.year):04}-{value.month:02}"
        case java.MonthDay():
            return f"--{value.month:02}-{value.day:02}"
        case java.ZoneOffset() | java.ZoneRegion():
            return value.id
        case uuid.UUID() | int() | decimal.Decimal():
            return str(value)
    raise AssertionError(f"no text for {type(value)}")
