"""Java's arrays, collections and maps as Python containers that remember their class.

``ArrayList``, ``HashMap``, ``ArrayDeque`` are plain ``list``, ``dict``, ``deque``; a plain ``set`` is written as
``HashSet``. Every other class is a subclass of these with ``java_class`` and with ``extra``, the fields beyond the
elements (comparator, load factor, capacity). Wrappers such as ``Collections.unmodifiableList`` are views, as in Java:
they hold the wrapped collection, and copying nothing they cost nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, Self

from pravega_serde.errors import SerializationError
from pravega_serde.java._jdk_table import jdk_descriptor
from pravega_serde.java._model import ClassDescriptor, Instance

__all__ = ["Copies", "JavaArray", "JavaKey", "JavaList", "JavaMap", "JavaSet", "ListView", "MapView", "SetView"]


class JavaKey:
    """A map key or set element that Python cannot hash, or that equals another one in Python though not in Java.

    Java's ``1``, ``1L``, ``1.0`` and ``true`` are four different keys; so are two arrays. Equality is identity.
    """

    __slots__ = ("value",)

    value: Any
    """The key itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"JavaKey({self.value!r})"


class JavaArray(list[Any]):
    """An array of objects; arrays of primitives are NumPy arrays, ``byte[]`` is ``bytes``."""

    __slots__ = ("descriptor",)

    descriptor: ClassDescriptor | None
    """Class of the array; None if only the name is known (the JVM computes the UID of array classes itself)."""

    def __init__(self, items: Iterable[Any] = (), descriptor: ClassDescriptor | None = None) -> None:
        super().__init__(items)
        self.descriptor = descriptor

    @property
    def java_class(self) -> str:
        """``[Ljava.lang.String;`` and so on."""
        return self.descriptor.name if self.descriptor else "[Ljava.lang.Object;"


class JavaList(list[Any]):
    """A list or queue of a class other than ``ArrayList``."""

    __slots__ = ("extra", "java_class")

    java_class: str
    """Full name of the class, as the stream has it."""
    extra: dict[str, Any]
    """Fields beyond the elements, those with unusual values only."""

    def __init__(
        self, items: Iterable[Any] = (), java_class: str = "java.util.ArrayList", extra: dict[str, Any] | None = None
    ) -> None:
        super().__init__(items)
        self.java_class = java_class
        self.extra = extra if extra is not None else {}


class JavaMap(dict[Any, Any]):
    """A map of a class other than ``HashMap``, or with an unusual load factor; in the stream's order."""

    __slots__ = ("extra", "java_class")

    java_class: str
    """Full name of the class, as the stream has it."""
    extra: dict[str, Any]
    """Fields beyond the entries, those with unusual values only."""

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
    """A set that remembers its class and the stream's order; it iterates in Python's."""

    __slots__ = ("_order", "extra", "java_class")

    java_class: str
    """Full name of the class, as the stream has it."""
    extra: dict[str, Any]
    """Fields beyond the elements, those with unusual values only."""

    def __init__(
        self, elements: Iterable[Any] = (), java_class: str = "java.util.HashSet", extra: dict[str, Any] | None = None
    ) -> None:
        self._order: tuple[Any, ...] = tuple(elements)
        super().__init__(self._order)
        self.java_class = java_class
        self.extra = extra if extra is not None else {}

    def in_order(self) -> list[Any]:
        """The elements: first those of the stream, in its order, then the ones added since."""
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
    """A wrapper around another collection: reads go through to it."""

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def of(cls, java_class: str, *values: Any) -> Self:
        """A wrapper of a JDK class around a collection: its fields in stream order, the last one for all that are left.

        ``ListView.of("java.util.Collections$UnmodifiableList", [1, 2])``
        """
        descriptor = jdk_descriptor(java_class)
        if descriptor is None or not values:
            msg = f"{java_class} is not a wrapper of the JDK that is known here"
            raise SerializationError(msg)
        missing = len(descriptor.all_fields) - len(values)
        return cls(descriptor, (*values, *[values[-1]] * missing))

    @property
    def inner(self) -> Any:
        """The collection that is wrapped."""
        return next(self.field(name) for name in INNER if name in self.descriptor.positions)

    @property
    def java_class(self) -> str:
        """Full name of the wrapper's class."""
        return self.class_name

    @property
    def target(self) -> Any:
        """The collection at the bottom of all wrappers."""
        at, steps = self.inner, 0
        while isinstance(at, _View) and steps < _MAX_WRAPPERS:
            at, steps = at.inner, steps + 1
        if not isinstance(at, (Sequence, Mapping, Set, deque)):
            msg = f"{self.class_name} wraps a {type(at).__name__}, which is no Python collection: see .inner"
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
"""More wrappers than that around one collection can only be a cycle."""

INNER: Final = ("c", "m", "a", "al", "q", "map")
"""Names of the fields in which the wrappers have what they wrap."""


class ListView(_View, Sequence[Any]):
    """A read-only view of a list: ``Collections.unmodifiableList``, ``Arrays.asList``, ..."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> Any:
        return self.target[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ListView):
            other = other.target
        return list(self.target) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class SetView(_View, Set[Any]):
    """A read-only view of a set, or of the keys of a map: ``Collections.unmodifiableSet``, ``newSetFromMap``, ..."""

    __slots__ = ()

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return set(it)


class MapView(_View, Mapping[Any, Any]):
    """A read-only view of a map: ``Collections.unmodifiableMap``, ..."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return self.target[key]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MapView):
            other = other.target
        return dict(self.target) == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class Copies(Instance, Sequence[Any]):
    """``Collections.nCopies``: one element any number of times, stored once."""

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
