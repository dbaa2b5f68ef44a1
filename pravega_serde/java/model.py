"""Records of a Java stream: class descriptors, objects, enum constants, classes and block data.

A class of the stream is a :class:`ClassDescriptor`, and its objects are :class:`JavaObject`: names and values, without
executable code. A class is never looked up by a name in a stream.
"""

from __future__ import annotations

import enum
import functools
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from numbers import Number
from typing import Any, Final, Self

from pravega_serde.errors import SerializationError
from pravega_serde.java.protocol import PRIMITIVES, SC_ENUM, SC_EXTERNALIZABLE, SC_SERIALIZABLE

_PRIMITIVE_NAMES: Final = {
    "boolean": "Z",
    "byte": "B",
    "char": "C",
    "double": "D",
    "float": "F",
    "int": "I",
    "long": "J",
    "short": "S",
}
_NAMES_OF_PRIMITIVES: Final = {code: name for name, code in _PRIMITIVE_NAMES.items()}
_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_MAX_UID: Final = 1 << 63


def signature(java_type: str) -> str:
    """Return the signature of a type in Java source syntax: ``int[]`` -> ``[I``, ``a.B`` -> ``La/B;``."""
    dimensions = java_type.count("[]")
    name = java_type[: len(java_type) - 2 * dimensions]
    element = _PRIMITIVE_NAMES.get(name) or f"L{name.replace('.', '/')};"
    return "[" * dimensions + element


@dataclass(frozen=True, slots=True)
class Field:
    """Serializable field."""

    name: str
    """Name in the class."""
    type: str
    """Signature: one of ``BCDFIJSZ``, ``Ljava/lang/String;``, ``[I``, ..."""

    @property
    def source_type(self) -> str:
        """Type of the field in Java source syntax: ``long``, ``java.lang.String``, ``int[]``."""
        element = self.type.lstrip("[")
        name = _NAMES_OF_PRIMITIVES.get(element) or element[1:-1].replace("/", ".")
        return name + "[]" * (len(self.type) - len(element))

    @property
    def primitive(self) -> bool:
        """True if the value is in the object's own bytes, not a separate object of the stream."""
        return self.type in PRIMITIVES


@dataclass(frozen=True)
class ClassDescriptor:
    """Class as a stream describes it (``java.io.ObjectStreamClass``).

    ``serial_version_uid`` is either the constant that the class declares, or a hash that the JVM computes over the
    members of the compiled class. Python cannot compute that hash. Use ``serialver <class>``, or any event with such an
    object (:meth:`JavaSerializer.learn`).
    """

    name: str
    """``com.example.Order``, ``com.example.Order$Line``, ``[I``, ..."""
    serial_version_uid: int
    """Declared by the class, or computed by its JVM. 0 for enums, and for records without one."""
    flags: int = SC_SERIALIZABLE
    """``SC_...`` bits."""
    fields: tuple[Field, ...] = ()
    """In stream order: primitive fields first, both parts sorted by name."""
    super_class: ClassDescriptor | ProxyDescriptor | None = None
    """Nearest serializable superclass."""
    annotations: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """Contents that ``annotateClass`` wrote: none, except by RMI."""

    def __post_init__(self) -> None:
        if not -_MAX_UID <= self.serial_version_uid < _MAX_UID:
            msg = f"invalid serialVersionUID of {self.name}: {self.serial_version_uid} is not a Java long"
            raise SerializationError(msg)
        # Descriptors are looked up for each written object, and hashing all fields takes as long as the rest.
        self.__dict__["_hash"] = hash((self.name, self.serial_version_uid))

    def __hash__(self) -> int:
        known: int = self.__dict__["_hash"]
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the plans that readers and writers keep in __dict__.
        fields = self.name, self.serial_version_uid, self.flags, self.fields, self.super_class, self.annotations
        return ClassDescriptor, fields

    @classmethod
    def of(
        cls,
        name: str,
        serial_version_uid: int,
        fields: Mapping[str, str] | None = None,
        super_class: ClassDescriptor | None = None,
        *,
        flags: int = SC_SERIALIZABLE,
    ) -> ClassDescriptor:
        """Return a descriptor from the field types in Java source syntax, in Java's order of fields.

        ``ClassDescriptor.of("com.example.Event", 42, {"id": "long", "name": "java.lang.String", "tags": "int[]"})``
        """
        all_fields = [Field(key, signature(java_type)) for key, java_type in (fields or {}).items()]
        all_fields.sort(key=lambda each: (not each.primitive, each.name))
        return cls(name, serial_version_uid, flags, tuple(all_fields), super_class)

    @property
    def is_enum(self) -> bool:
        """True if constants of this class are written by name."""
        return bool(self.flags & SC_ENUM)

    @property
    def is_external(self) -> bool:
        """True if the class writes itself (``Externalizable``), so that all its data is in the annotations."""
        return bool(self.flags & SC_EXTERNALIZABLE)

    @functools.cached_property
    def hierarchy(self) -> tuple[ClassDescriptor, ...]:
        """The class and its superclasses, topmost first, which is the order of their data."""
        chain: list[ClassDescriptor] = []
        at: ClassDescriptor | ProxyDescriptor | None = self
        while isinstance(at, ClassDescriptor):
            chain.append(at)
            at = at.super_class
        return tuple(reversed(chain))

    @functools.cached_property
    def all_fields(self) -> tuple[tuple[ClassDescriptor, Field], ...]:
        """All fields with their classes, in the order of :attr:`JavaObject.data`."""
        if self.is_external:
            return ()
        return tuple((owner, each) for owner in self.hierarchy for each in owner.fields)

    @functools.cached_property
    def positions(self) -> dict[str, int]:
        """Field name -> position in :attr:`JavaObject.data`. A hidden field is ``package.Class.name``."""
        found: dict[str, int] = {}
        for at, (owner, each) in enumerate(self.all_fields):
            found[each.name] = found[f"{owner.name}.{each.name}"] = at
        return found

    @functools.cached_property
    def field_names(self) -> tuple[str, ...]:
        """Distinct names of all fields. A field that a subclass hides is ``package.Class.name``."""
        return tuple(
            each.name if self.positions[each.name] == at else f"{owner.name}.{each.name}"
            for at, (owner, each) in enumerate(self.all_fields)
        )

    def new(self, **fields: Any) -> JavaObject:
        """Create an object of this class. Other fields have Java's default: 0, false or null.

        Raises :class:`SerializationError` for a name that is not a field.
        """
        values = [_DEFAULTS.get(each.type) for _, each in self.all_fields]
        for name, value in fields.items():
            if name not in self.positions:
                msg = f"{self.name} has no serializable field {name!r}; it has {', '.join(self.field_names) or 'none'}"
                raise SerializationError(msg)
            values[self.positions[name]] = value
        return JavaObject(self, values)


_DEFAULTS: Final[dict[str, Any]] = {**dict.fromkeys("BIJS", 0), **dict.fromkeys("DF", 0.0), "C": "\0", "Z": False}


@dataclass(frozen=True)
class ProxyDescriptor:
    """Class of a dynamic proxy (``java.lang.reflect.Proxy``), which has interfaces but no name."""

    interfaces: tuple[str, ...]
    """Names of the interfaces in their order."""
    super_class: ClassDescriptor | ProxyDescriptor | None = None
    """``java.lang.reflect.Proxy``, whose field ``h`` is the invocation handler."""
    annotations: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """Contents that ``annotateProxyClass`` wrote: none, except by RMI."""

    flags = SC_SERIALIZABLE
    fields: tuple[Field, ...] = field(default=(), init=False, repr=False)
    is_enum = False
    is_external = False

    def __reduce__(self) -> tuple[Any, ...]:
        return ProxyDescriptor, (self.interfaces, self.super_class, self.annotations)

    @property
    def name(self) -> str:
        """Readable placeholder, because proxies have no name."""
        return f"proxy({', '.join(self.interfaces)})"

    @functools.cached_property
    def hierarchy(self) -> tuple[ClassDescriptor, ...]:
        """Classes that own data, topmost first."""
        return self.super_class.hierarchy if self.super_class else ()

    @functools.cached_property
    def all_fields(self) -> tuple[tuple[ClassDescriptor, Field], ...]:
        """Same as for a class descriptor."""
        return self.super_class.all_fields if self.super_class else ()

    @functools.cached_property
    def positions(self) -> dict[str, int]:
        """Same as for a class descriptor."""
        return self.super_class.positions if self.super_class else {}

    @functools.cached_property
    def field_names(self) -> tuple[str, ...]:
        """Same as for a class descriptor."""
        return self.super_class.field_names if self.super_class else ()


class NotWritten(enum.Enum):
    """Marker for a field that ``writeObject`` did not write. Its value may be in the annotations."""

    NOT_WRITTEN = "not written"


NOT_WRITTEN: Final = NotWritten.NOT_WRITTEN


class OwnOrder(tuple[Any, ...]):
    """Annotations of a ``writeObject`` that does not begin with ``defaultWriteObject``.

    ``ahead`` is the number of contents before the fields, or None if the fields are not written.
    """

    ahead: int | None

    def __new__(cls, items: Iterable[Any], ahead: int | None) -> Self:
        """Create the annotations from contents, in their order."""
        made = super().__new__(cls, items)
        made.ahead = ahead
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnOrder, (tuple(self), self.ahead)


class Instance:
    """Data of one object in a stream. Base of :class:`JavaObject` and of the views of wrapped collections."""

    __slots__ = ("annotations", "data", "descriptor")

    descriptor: ClassDescriptor | ProxyDescriptor
    """Its class."""
    data: list[Any]
    """Values of the fields of the whole hierarchy, topmost class first (:attr:`ClassDescriptor.all_fields`)."""
    annotations: tuple[tuple[Any, ...], ...]
    """Contents (:class:`BlockData` and values) that each class wrote in ``writeObject`` or ``writeExternal``.

    They are in the order of the hierarchy. Classes without such a method have no entry.
    """

    def __init__(
        self,
        descriptor: ClassDescriptor | ProxyDescriptor,
        values: Sequence[Any] = (),
        annotations: Sequence[tuple[Any, ...]] = (),
    ) -> None:
        self.descriptor = descriptor
        self.data = list(values)
        self.annotations = tuple(annotations)

    @property
    def class_name(self) -> str:
        """Full name of the Java class."""
        return self.descriptor.name

    def field(self, name: str, default: Any = None) -> Any:
        """Return the value of a field, or ``default`` if the class has no such field."""
        at = self.descriptor.positions.get(name)
        return default if at is None or at >= len(self.data) else self.data[at]


class JavaObject(Instance):
    """Object of a class without a natural Python form: its class and its values, without executable code.

    Fields are items: ``order["id"]``. Equality is identity, as in ``java.lang.Object``.
    """

    __slots__ = ()

    @property
    def fields(self) -> dict[str, Any]:
        """Name -> value, in stream order."""
        return dict(zip(self.descriptor.field_names, self.data, strict=False))

    def __getitem__(self, name: str) -> Any:
        return self.data[self.descriptor.positions[name]]

    def __setitem__(self, name: str, value: Any) -> None:
        self.data[self.descriptor.positions[name]] = value

    def __contains__(self, name: object) -> bool:
        return name in self.descriptor.positions

    def __iter__(self) -> Iterator[str]:
        return iter(self.descriptor.field_names)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the fields, so that ``dict(order)`` works. Objects inside stay unchanged."""
        return self.descriptor.field_names

    def __repr__(self) -> str:
        # Only short values, because others may contain this object again, or be huge.
        fields = ", ".join(f"{name}={_short(value)}" for name, value in self.fields.items())
        return f"<{type(self).__name__} {self.class_name} ({fields})>"


def _short(value: Any) -> str:
    """Return the text of a field's value: an enum constant's name, an object's class, nothing for collections."""
    if isinstance(value, JavaEnum):
        return value.name
    if isinstance(value, JavaObject):
        return f"<{value.class_name}>"
    if isinstance(value, str):
        return _SHORT.repr_str(value, 1)
    if value is None or isinstance(value, Number | date | time | timedelta):
        return _SHORT.repr_instance(value, 1)  # also for a number with too many digits for a text
    return "…"


@dataclass(frozen=True, slots=True, repr=False)
class JavaEnum:
    """Constant of an enum."""

    descriptor: ClassDescriptor
    """Class of the constant. For a constant with a body, the enum that declares it."""
    name: str
    """Name of the constant. A stream has no ordinal and no fields."""

    @property
    def class_name(self) -> str:
        """Full name of the enum."""
        return self.descriptor.name

    def __repr__(self) -> str:
        return f"<JavaEnum {self.class_name}.{self.name}>"


@dataclass(frozen=True, slots=True)
class JavaClass:
    """``java.lang.Class`` object: the class itself as a value."""

    descriptor: ClassDescriptor | ProxyDescriptor
    """The class. If it is not serializable, only the name has a meaning."""

    @property
    def class_name(self) -> str:
        """Full name of the Java class."""
        return self.descriptor.name


class BlockData(bytes):
    """Bytes that a class wrote with ``DataOutput``, in ``writeObject`` or ``writeExternal``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"BlockData({bytes(self)!r})"
