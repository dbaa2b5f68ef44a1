"""Java types of the values in events: what a class descriptor does not declare.

A descriptor declares a field as ``java.util.List`` or ``java.lang.Object``. The values show the elements of the list,
and the class of the object.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from pravega_serde.java.model import ClassDescriptor, Field, JavaClass, JavaEnum, JavaObject
from pravega_serde.java.protocol import array_class
from pravega_serde.java.types import scalar_signature
from pravega_serde.java.values import (
    Copies,
    JavaArray,
    JavaKey,
    ListView,
    MonthDay,
    Period,
    SqlDate,
    SqlTime,
    Year,
    YearMonth,
    ZoneOffset,
    ZoneRegion,
)

#: Form of a value in Python and in Java's source.
Kind = Literal["array", "enum", "list", "map", "null", "object", "scalar", "set"]

NULL: Final = "null"
OBJECT: Final = "java.lang.Object"

#: Depth of collections in collections.
_DEEPEST: Final = 8
#: Places of all values of a stream, types of one place, and values of one event.
_MAX_PLACES: Final = 10_000
_MAX_TYPES: Final = 100
_MAX_VISITS: Final = 200_000


@dataclass(slots=True)
class ObservedType:
    """Type of some values in a place."""

    kind: Kind
    inside: tuple[ObservedPlace, ...] = ()
    """Place of the elements of a list, set or array; places of the keys and the values of a map."""


@dataclass(slots=True)
class ObservedPlace:
    """Types of the values of one field, or of the elements, keys or values of a collection."""

    types: dict[str, ObservedType] = field(default_factory=dict)
    """Type, in Java source syntax and with ``null`` for null -> its form."""

    @property
    def names(self) -> list[str]:
        """Types of the values that are not null, in the order of their names."""
        return sorted(name for name in self.types if name != NULL)


class Observer:
    """Observer of values. It stops at limits, because an event can contain the same collection many times."""

    def __init__(self) -> None:
        self._places = 0
        self.is_complete = True
        """False if a limit was reached."""
        self._visits = 0
        self._seen: set[tuple[int, int]] = set()

    def begin_event(self) -> None:
        """Begin the values of another event."""
        self._visits = 0
        self._seen = set()

    def observe(self, place: ObservedPlace, value: Any) -> None:
        """Add the type of a value to a place, and the types inside it. ``value`` stays referenced by its event."""
        waiting = [(place, value, 0)]
        while waiting:
            at, each, depth = waiting.pop()
            self._visits += 1
            if self._visits > _MAX_VISITS:
                self.is_complete = False
                return
            for inner, values in self._add(at, each, depth):
                waiting += [(inner, item, depth + 1) for item in values]

    def _add(self, place: ObservedPlace, value: Any, depth: int) -> Iterable[tuple[ObservedPlace, Iterable[Any]]]:
        """Add the type of a value. Return the places inside it with their values."""
        value = value.value if isinstance(value, JavaKey) else value
        name, kind = type_of(value)
        known = place.types.get(name)
        if known is None:
            if len(place.types) == _MAX_TYPES or self._places + 2 > _MAX_PLACES:
                self.is_complete = False
                return ()
            count = (2 if kind == "map" else 1) if kind in _PARTS and depth < _DEEPEST else 0
            self._places += count
            known = place.types[name] = ObservedType(kind, tuple(ObservedPlace() for _ in range(count)))
        key = id(place), id(value)
        if not known.inside or key in self._seen:
            return ()
        self._seen.add(key)
        return zip(known.inside, _PARTS[kind](value), strict=True)


_PARTS: Final[dict[str, Any]] = {
    "array": lambda value: (value if isinstance(value, JavaArray) else (),),
    "list": lambda value: ((value.field("element"),) if isinstance(value, Copies) else value,),
    "map": lambda value: (value.keys(), value.values()),
    "set": lambda value: (value,),
}


def source_name(jvm_name: str) -> str:
    """Return the type in Java source syntax: ``[Ljava.lang.String;`` -> ``java.lang.String[]``."""
    return Field("", jvm_name).source_type if jvm_name.startswith("[") else jvm_name


def type_of(value: Any) -> tuple[str, Kind]:
    """Return the Java type of a value, and its form."""
    if value is None:
        return NULL, "null"
    if isinstance(value, JavaObject):
        is_class = isinstance(value.descriptor, ClassDescriptor)
        return value.descriptor.name if is_class else "java.lang.reflect.Proxy", "object"
    if isinstance(value, JavaEnum):
        return value.descriptor.name, "enum"
    scalar = scalar_signature(value)
    if scalar:
        return Field("", scalar).source_type, "array" if scalar == "[B" else "scalar"
    return _collection(value) or (_OTHERS.get(type(value)) or _zoned(value), "scalar")


def _collection(value: Any) -> tuple[str, Kind] | None:
    if isinstance(value, np.ndarray):
        return source_name(array_class(value) or "[Ljava/lang/Object;"), "array"
    for form, kind, default in _COLLECTIONS:
        if isinstance(value, form):
            return source_name(getattr(value, "java_class", default)), kind
    return None


#: Python class -> form, and the Java class of values that do not keep theirs. The first that fits is used.
_COLLECTIONS: Final[tuple[tuple[Any, Kind, str], ...]] = (
    (JavaArray, "array", ""),
    (Mapping, "map", "java.util.HashMap"),
    (Set, "set", "java.util.HashSet"),
    (Copies, "list", "java.util.Collections$CopiesList"),
    (deque, "list", "java.util.ArrayDeque"),
    (list | ListView, "list", "java.util.ArrayList"),
)
_OTHERS: Final[dict[type[Any], str]] = {
    JavaClass: "java.lang.Class",
    MonthDay: "java.time.MonthDay",
    Period: "java.time.Period",
    SqlDate: "java.sql.Date",
    SqlTime: "java.sql.Time",
    Year: "java.time.Year",
    YearMonth: "java.time.YearMonth",
    ZoneOffset: "java.time.ZoneOffset",
    ZoneRegion: "java.time.ZoneId",
}


def _zoned(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return "java.time.ZonedDateTime" if isinstance(value.tzinfo, ZoneRegion) else "java.time.OffsetDateTime"
    return "java.time.OffsetTime" if isinstance(value, dt.time) else OBJECT
