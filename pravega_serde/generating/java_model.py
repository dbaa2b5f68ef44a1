"""Classes of an application, as events describe them, prepared for generators: names, nesting and interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pravega_serde.errors import SchemaError
from pravega_serde.generating.identifiers import is_java_identifier, is_java_type_name
from pravega_serde.java.model import ClassDescriptor, Field
from pravega_serde.java.observed import OBJECT, ObservedPlace, source_name
from pravega_serde.java.protocol import SC_EXTERNALIZABLE, SC_SERIALIZABLE
from pravega_serde.sniffing.java_classes import SniffedClass

#: Packages whose classes a JDK has.
_JDK: Final = ("java.", "javax.", "jdk.", "sun.")
PRIMITIVES: Final = frozenset(["boolean", "byte", "char", "double", "float", "int", "long", "short", "void"])
_SERIALIZABLE: Final = SC_SERIALIZABLE | SC_EXTERNALIZABLE
#: Declared types that every object has.
_ANY: Final = frozenset({OBJECT, "java.io.Serializable"})
#: Interfaces of the JDK without methods.
_MARKERS: Final = frozenset({"java.lang.Cloneable", "java.util.EventListener", "java.rmi.Remote"})
#: Parts of a name between `$`: more would be nested deeper than a compiler reads.
_MOST_ENCLOSING: Final = 64
_NOTHING: Final = ObservedPlace()


@dataclass(slots=True)
class Type:
    """Class or interface to generate. An interface is a declared type that no event describes."""

    name: str
    """Full name: ``com.example.Order$Line``."""
    package: str
    """``com.example``, or an empty string."""
    path: tuple[str, ...]
    """Names of the enclosing classes and of the class: ``("Order", "Line")``."""
    found: SniffedClass | None = None
    """Class of the events. None for an interface, and for a class that only encloses others."""
    is_interface: bool = False
    interfaces: dict[str, None] = field(default_factory=dict)
    """Names of the interfaces to implement: declared types of fields with objects of this class."""
    nested: list[Type] = field(default_factory=list)
    """Types inside this one."""

    @property
    def source_name(self) -> str:
        """Name in Java's source: ``com.example.Order.Line``."""
        return ".".join(([self.package] if self.package else []) + list(self.path))

    @property
    def super_name(self) -> str:
        """Name of the superclass, or an empty string."""
        above = None if self.found is None else self.found.descriptor.super_class
        return "" if above is None or self.is_enum else above.name

    @property
    def is_enum(self) -> bool:
        """True for an enum."""
        return self.found is not None and self.found.descriptor.is_enum


def is_jdk(name: str) -> bool:
    """Return True if a JDK has the class."""
    return name.startswith(_JDK)


class JavaModel:
    """Types to generate for the classes in events. Raises :class:`SchemaError` for what Java's source cannot have."""

    def __init__(self, found: Iterable[SniffedClass]) -> None:
        self.types: dict[str, Type] = {}
        classes = sorted(found, key=lambda each: each.name)
        for each in classes:
            if not is_jdk(each.name) and each.descriptor.flags & _SERIALIZABLE and not each.name.startswith("["):
                self._add(each)
        if not self.types:
            raise SchemaError("the events have no objects of an application's classes")
        for each in classes:
            self._declare(each)
        self._nest()
        self._check_names()

    @property
    def described(self) -> list[Type]:
        """Classes of the events, each after its superclass."""
        classes = [each for each in self.types.values() if each.found is not None]
        return sorted(classes, key=lambda each: (len(each.found.descriptor.hierarchy) if each.found else 0, each.name))

    @property
    def top_level(self) -> list[Type]:
        """Types that no other one encloses."""
        return [each for each in self.types.values() if len(each.path) == 1]

    def fields(self, found: SniffedClass) -> Iterator[tuple[Field, ObservedPlace]]:
        """Yield the own fields of a class with the types of their values."""
        for each in found.descriptor.fields:
            yield each, found.places.get(each.name, _NOTHING)

    def _add(self, found: SniffedClass) -> None:
        if found.name in self.types:
            raise SchemaError(
                f"the events have objects of two versions of {found.name}, whose fields or serialVersionUIDs differ; "
                "generate the classes from events of one version"
            )
        self.types[found.name] = Type(found.name, *split_name(found.name), found)

    def _declare(self, found: SniffedClass) -> None:
        """Add the types that a class names, and note which classes implement them."""
        if found.name not in self.types:  # the class of an array, or the value of a field
            self._name(source_name(found.name))
            return
        for each, place in self.fields(found):
            if not is_java_identifier(each.name):
                raise SchemaError(f"the field {each.name!r:.200} of {found.name} is not an identifier of Java")
            self._name(each.source_type)
            self._implement(each.source_type, place, f"{found.name}.{each.name}")
        for constant in found.constants:
            if not is_java_identifier(constant):
                raise SchemaError(f"the constant {constant!r:.200} of {found.name} is not an identifier of Java")
        above = found.descriptor.super_class
        if above is not None and not (isinstance(above, ClassDescriptor) and self._is_known(above.name)):
            raise SchemaError(f"the superclass {above.name} of {found.name} is not among the classes of the events")

    def _is_known(self, name: str) -> bool:
        return is_jdk(name) or name in self.types

    def _name(self, source_type: str) -> None:
        """Add an interface for a type, or the type of an array's elements, that no event describes."""
        name = source_type.partition("[")[0]
        if name in PRIMITIVES:
            return
        package, path = split_name(name)
        if not self._is_known(name):
            self.types[name] = Type(name, package, path, is_interface=True)

    def _implement(self, declared: str, place: ObservedPlace, where: str) -> None:
        """Note the interfaces that the classes of values must implement to be in a place of a declared type."""
        for name, kind in place.types.items():
            if kind.kind == "array":
                self._name(name)
            for inside in kind.inside:
                self._implement(name.removesuffix("[]") if kind.kind == "array" else OBJECT, inside, where)
            value = self.types.get(name)
            if value is None or value.found is None or declared in _ANY:
                continue
            if any(above.name == declared for above in value.found.descriptor.hierarchy):
                continue
            if is_jdk(declared) and declared not in _MARKERS:
                raise SchemaError(
                    f"{name} must have the methods of {declared}, the type of {where}, and events do not show them"
                )
            value.interfaces[declared] = None

    def _nest(self) -> None:
        """Add the enclosing classes that no event describes, and put each type into its enclosing one."""
        for each in list(self.types.values()):
            for depth in range(1, len(each.path)):
                name = _joined(each.package, each.path[:depth])
                self.types.setdefault(name, Type(name, each.package, each.path[:depth]))
        for each in self.types.values():
            if len(each.path) > 1:
                self.types[_joined(each.package, each.path[:-1])].nested.append(each)

    def _check_names(self) -> None:
        """Raise :class:`SchemaError` if the source cannot name a type."""
        packages = {"java"} | {each.package.partition(".")[0] for each in self.types.values()}
        in_packages = any(each.package for each in self.types.values())
        for each in self.types.values():
            if each.path[-1] in packages:
                raise SchemaError(f"the class {each.name} hides the package {each.path[-1]} in Java's source")
            if in_packages and not each.package:
                raise SchemaError(f"{each.name} is in no package, and classes in packages cannot name it in Java")


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the package of a class, and its name with the enclosing ones. Raises :class:`SchemaError`.

    A ``$`` that does not separate identifiers, as in the names of anonymous classes, is a part of the name.
    """
    package, _, simple = name.rpartition(".")
    path = tuple(simple.split("$"))
    if not all(map(is_java_type_name, path)) or len(set(path)) < len(path):
        path = (simple,)
    if not is_java_type_name(simple) or not all(map(is_java_identifier, package.split(".") if package else ())):
        raise SchemaError(f"{name!r:.200} is not the name of a class in Java's source")
    if len(path) > _MOST_ENCLOSING:
        raise SchemaError(
            f"{name!r:.200} is inside {len(path) - 1} classes; at most {_MOST_ENCLOSING - 1} are generated"
        )
    return package, path


def _joined(package: str, path: Iterable[str]) -> str:
    simple = "$".join(path)
    return f"{package}.{simple}" if package else simple
