"""Classes of Java objects in events, with their fields. No class is looked up or loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pravega_serde.errors import DeserializationError, LimitExceededError
from pravega_serde.java.descriptors import DescriptorCache, Limits
from pravega_serde.java.model import ClassDescriptor
from pravega_serde.java.protocol import NULL_EVENT, STREAM_HEADER, STRING_EVENT, TC_CLASS, TC_LONGSTRING
from pravega_serde.java.rows import Reader

#: Limits of an examined event, far below those of a reader.
_LIMITS: Final = Limits(depth=500, handles=100_000, size=1 << 20, classes=500)
#: Distinct classes that are kept.
MAX_CLASSES: Final = 100

STRING: Final = "java.lang.String"
_NULL: Final = "null"


@dataclass(frozen=True, slots=True)
class SniffedClass:
    """Class of the objects in a stream."""

    name: str
    """Full name, as ``com.example.Order``."""
    serial_version_uid: int
    """Its serialVersionUID."""
    fields: tuple[tuple[str, str], ...]
    """Name and type, in Java source syntax, of each serializable field, with those of superclasses."""


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
    """Classes of many events: the number of events of each class, and the fields of all classes in them."""

    def __init__(self) -> None:
        self.events: dict[str, int] = {}
        self.classes: dict[tuple[str, int], SniffedClass] = {}
        self.is_complete = True
        """False if there were more than ``MAX_CLASSES`` classes."""
        self._cache = DescriptorCache()

    def add(self, data: bytes) -> None:
        """Add an event for which :func:`is_java` is true."""
        reader = Reader(data, self._cache, _LIMITS)
        try:
            reader.read_event()
        except DeserializationError:
            self._count("(not readable)")
            return
        described = [each for each in reader.handles if isinstance(each, ClassDescriptor)]
        self._count(_name_of(data, described))
        for each in described:
            self._describe(each)

    def _count(self, name: str) -> None:
        if name in self.events or len(self.events) < MAX_CLASSES:
            self.events[name] = self.events.get(name, 0) + 1
        else:
            self.is_complete = False

    def _describe(self, found: ClassDescriptor) -> None:
        key = found.name, found.serial_version_uid
        if key in self.classes:
            return
        if len(self.classes) == MAX_CLASSES:
            self.is_complete = False
            return
        fields = tuple((each.name, each.source_type) for _, each in found.all_fields)
        self.classes[key] = SniffedClass(found.name, found.serial_version_uid, fields)


def _name_of(data: bytes, described: list[ClassDescriptor]) -> str:
    """Return the name of the class of an event's object, which is the first one that the event describes."""
    if data.startswith(STRING_EVENT) or data[4:5] == bytes([TC_LONGSTRING]):
        return STRING
    if data[4:5] == bytes([TC_CLASS]):
        return "java.lang.Class"
    return described[0].name if described else _NULL
