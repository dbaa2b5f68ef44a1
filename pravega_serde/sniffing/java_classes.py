"""Classes of Java objects in events, with their fields. No class is looked up or loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.java.descriptors import DescriptorCache, Limits
from pravega_serde.java.jdk_classes import array_descriptor
from pravega_serde.java.model import NOT_WRITTEN, ClassDescriptor, JavaEnum, JavaObject, OwnOrder
from pravega_serde.java.observed import ObservedPlace, Observer
from pravega_serde.java.protocol import (
    NULL_EVENT,
    SC_EXTERNALIZABLE,
    SC_WRITE_METHOD,
    STREAM_HEADER,
    STRING_EVENT,
    TC_CLASS,
    TC_LONGSTRING,
)
from pravega_serde.java.rows import Reader
from pravega_serde.java.values import JavaArray, JavaMap, JavaSet

#: Limits of an examined event, far below those of a reader.
_LIMITS: Final = Limits(depth=500, handles=100_000, size=1 << 20, classes=500)
#: Distinct classes that are kept, and distinct constants of an enum.
MAX_CLASSES: Final = 1000
MAX_CONSTANTS: Final = 1000
#: Flags of a class that writes contents in addition to its fields, or instead of them.
_CUSTOM: Final = SC_WRITE_METHOD | SC_EXTERNALIZABLE

STRING: Final = "java.lang.String"
_NULL: Final = "null"
#: In place of the class of an event that exceeds the limits.
_NOT_READABLE: Final = "(not readable)"


@dataclass(frozen=True, slots=True)
class SniffedClass:
    """Class of the objects in a stream."""

    descriptor: ClassDescriptor
    """Class as the events describe it: its own fields, flags and superclass."""
    places: Mapping[str, ObservedPlace]
    """Types of the values of the fields that it declares and that are objects, by the field's name."""
    constants: tuple[str, ...] = ()
    """Constants of an enum in the events, in an order that its maps and sets have."""
    is_public: bool = True
    """False if an array of the class is of a class that is not public."""
    ahead: frozenset[int | None] = frozenset()
    """Numbers of contents that its ``writeObject`` wrote before the fields; None if it did not write the fields."""
    writes_more: bool = False
    """True if its ``writeObject`` or ``writeExternal`` wrote contents in addition to the fields."""

    @property
    def name(self) -> str:
        """Full name, as ``com.example.Order``."""
        return self.descriptor.name

    @property
    def serial_version_uid(self) -> int:
        """Its serialVersionUID."""
        return self.descriptor.serial_version_uid

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Name and type, in Java source syntax, of each serializable field, also of superclasses."""
        return tuple((each.name, each.source_type) for _, each in self.descriptor.all_fields)


def is_java(data: bytes) -> bool:
    """True if an event is one object of Java's serialization, or exceeds the limits of an examined one."""
    if not data.startswith(STREAM_HEADER):
        return False
    if data.startswith(NULL_EVENT):
        return not data[len(NULL_EVENT) :].strip(b"\0")
    if data.startswith(STRING_EVENT) and data[7 + int.from_bytes(data[5:7], "big") :].strip(b"\0"):
        return False
    try:
        Reader(data, DescriptorCache(), _LIMITS).read_event()
    except LimitExceededError:
        return True
    except DeserializationError as error:
        return "Java writer failed" in error.reason
    return True


class JavaClasses:
    """Classes of many events: the number of events of each class, and all classes in them."""

    def __init__(self) -> None:
        self.events: dict[str, int] = {}
        self.smallest: bytes | None = None
        """Smallest event that could be read, if any."""
        self._classes: dict[ClassDescriptor, _Found] = {}
        self._is_complete = True
        self._observer = Observer()
        self._cache = DescriptorCache()

    @property
    def is_complete(self) -> bool:
        """False if a limit was reached, such as ``MAX_CLASSES``."""
        return self._is_complete and self._observer.is_complete

    @property
    def names(self) -> list[str]:
        """Names of the classes of the events that could be read."""
        return [name for name in self.events if name != _NOT_READABLE]

    @property
    def classes(self) -> tuple[SniffedClass, ...]:
        """Classes in the order of their first event. A class with other fields is another one."""
        return tuple(each.result() for each in self._classes.values())

    def add(self, data: bytes) -> None:
        """Add an event for which :func:`is_java` is true."""
        reader = Reader(data, self._cache, _LIMITS)
        try:
            reader.read_event()
        except DeserializationError:
            self._count(_NOT_READABLE)
            return
        if self.smallest is None or len(data) < len(self.smallest):
            self.smallest = data
        described = [each for each in reader.handles if isinstance(each, ClassDescriptor)]
        self._count(_name_of(data, described))
        for each in described:
            self._describe(each)
        self._observer.begin_event()
        for each in reader.handles:
            self._observe(each)

    def _count(self, name: str) -> None:
        if name in self.events or len(self.events) < MAX_CLASSES:
            self.events[name] = self.events.get(name, 0) + 1
        else:
            self._is_complete = False

    def _describe(self, found: ClassDescriptor) -> None:
        if found not in self._classes:
            if len(self._classes) == MAX_CLASSES:
                self._is_complete = False
                return
            self._classes[found] = _Found(found)

    def _observe(self, value: Any) -> None:
        """Observe one object of an event."""
        if isinstance(value, JavaObject):
            self._object(value)
        elif isinstance(value, JavaEnum):
            self._constants((value,))
        elif isinstance(value, JavaMap) and value.java_class == "java.util.EnumMap":
            self._constants(tuple(value))
        elif isinstance(value, JavaSet) and value.java_class == "java.util.EnumSet":
            self._constants(value.in_order())
        elif isinstance(value, JavaArray) and value.descriptor is not None:
            self._array(value.descriptor)

    def _object(self, value: JavaObject) -> None:
        for at, (owner, each) in enumerate(value.descriptor.all_fields):
            found = self._classes.get(owner)
            if found is not None and not each.primitive and value.data[at] is not NOT_WRITTEN:
                place = found.places.setdefault(each.name, ObservedPlace())
                self._observer.observe(place, value.data[at])
        hierarchy = value.descriptor.hierarchy
        custom = [each for each in hierarchy if each.flags & _CUSTOM][-1 if value.descriptor.is_external else None :]
        for owner, contents in zip(custom, value.annotations, strict=False):
            found = self._classes.get(owner)
            if found is not None:
                found.add_contents(contents)

    def _constants(self, constants: Iterable[Any]) -> None:
        """Add constants of one enum, in their order."""
        before = None
        for each in constants:
            found = self._classes.get(each.descriptor) if isinstance(each, JavaEnum) else None
            if found is None:
                return
            if each.name not in found.constants and len(found.constants) == MAX_CONSTANTS:
                self._is_complete = False
                return
            after = found.constants.setdefault(each.name, set())
            if before is not None:
                after.add(before)
            before = each.name

    def _array(self, array: ClassDescriptor) -> None:
        """Note that the class of an array's elements is not public. The array's serialVersionUID shows it."""
        name = array.name.lstrip("[")[1:-1]
        if array.serial_version_uid == array_descriptor(array.name, public=False).serial_version_uid:
            for found in self._classes.values():
                found.is_public = found.is_public and found.descriptor.name != name


class _Found:
    """Class that is being described."""

    def __init__(self, descriptor: ClassDescriptor) -> None:
        self.descriptor = descriptor
        self.places: dict[str, ObservedPlace] = {}
        self.constants: dict[str, set[str]] = {}
        """Constant of an enum -> constants that come before it."""
        self.is_public = True
        self._ahead: set[int | None] = set()
        self._writes_more = False

    def add_contents(self, contents: tuple[Any, ...]) -> None:
        """Add the contents that the class wrote in one object."""
        self._ahead.add(contents.ahead if isinstance(contents, OwnOrder) else 0)
        self._writes_more = self._writes_more or bool(contents)

    def result(self) -> SniffedClass:
        """Return the class."""
        return SniffedClass(
            self.descriptor,
            self.places,
            self._ordered(),
            is_public=self.is_public,
            ahead=frozenset(self._ahead),
            writes_more=self._writes_more,
        )

    def _ordered(self) -> tuple[str, ...]:
        before = {name: sorted(self.constants[name]) for name in sorted(self.constants)}
        try:
            return tuple(TopologicalSorter(before).static_order())
        except CycleError:  # different versions of the enum
            return tuple(before)


def _name_of(data: bytes, described: list[ClassDescriptor]) -> str:
    """Return the name of the class of an event's object, which is the first one that the event describes."""
    if data.startswith(STRING_EVENT) or data[4:5] == bytes([TC_LONGSTRING]):
        return STRING
    if data[4:5] == bytes([TC_CLASS]):
        return "java.lang.Class"
    return described[0].name if described else _NULL
