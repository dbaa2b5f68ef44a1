"""JDK collections that hold others or a fixed content: wrappers, singletons, ``List.of``, ``Vector``, ``EnumSet``."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from pravega_serde.errors import LimitExceededError, SerializationError
from pravega_serde.java._containers import (
    INNER,
    Copies,
    JavaArray,
    JavaList,
    JavaMap,
    JavaSet,
    ListView,
    MapView,
    SetView,
)
from pravega_serde.java._content import Content, block, content
from pravega_serde.java._jdk_table import array_descriptor
from pravega_serde.java._keys import put_all
from pravega_serde.java._limits import SET_BYTES
from pravega_serde.java._model import BlockData, ClassDescriptor, Instance, JavaClass, JavaEnum
from pravega_serde.java._plans import Codec, MalformedError

__all__ = ["READERS", "WRITERS"]

_SIZE: Final = struct.Struct(">i")
_LIST_TAG, _SET_TAG, _MAP_TAG, _LIST_WITH_NULLS_TAG = 1, 2, 3, 4  # ``java.util.CollSer``
_LISTS_OF: Final = "java.util.ImmutableCollections$ListN"
_SETS_OF: Final = "java.util.ImmutableCollections$SetN"
_MAPS_OF: Final = "java.util.ImmutableCollections$MapN"
_ENUM_SET: Final = "java.util.EnumSet"
_COLLECTIONS: Final = "java.util.Collections$"


def _view(kind: type[Instance]) -> Codec:
    def shell(descriptor: ClassDescriptor, _: list[Any]) -> Any:
        return kind(descriptor)

    def read(made: Instance, values: list[Any], notes: list[tuple[Any, ...]], _: Any) -> Any:
        if not any(name in made.descriptor.positions for name in INNER):
            msg = f"{made.class_name} wraps nothing"
            raise MalformedError(msg)
        made.data, made.annotations = values, tuple(notes)
        return made

    return Codec(read, shell, any_form=True)


def _views() -> dict[str, Codec]:
    kinds = {
        ListView: ("Collection", "List", "RandomAccessList", "Queue", "SequencedCollection"),
        SetView: ("Set", "SortedSet", "NavigableSet", "SequencedSet"),
        MapView: ("Map", "SortedMap", "NavigableMap", "SequencedMap"),
    }
    names = {
        f"{_COLLECTIONS}{prefix}{suffix}": kind
        for kind, suffixes in kinds.items()
        for suffix in suffixes
        for prefix in ("Unmodifiable", "Synchronized", "Checked")
    }
    names |= {
        "java.util.Arrays$ArrayList": ListView,
        "java.util.concurrent.PriorityBlockingQueue": ListView,
        f"{_COLLECTIONS}AsLIFOQueue": ListView,
        f"{_COLLECTIONS}SetFromMap": SetView,
        "java.util.concurrent.ConcurrentHashMap$KeySetView": SetView,
        "java.util.concurrent.ConcurrentSkipListSet": SetView,
        "java.util.concurrent.CopyOnWriteArraySet": SetView,
    }
    return {name: _view(kind) for name, kind in names.items()}


def _fixed(name: str, make: type[Any]) -> Codec:
    """Empty and singleton collections: the fields are the content."""

    def read(made: Any, values: list[Any], _: Any, reader: Any) -> Any:
        if make is JavaList:
            made.extend(values)
        elif make is JavaMap:
            put_all(made, values[0::2], values[1::2], reader)
        else:
            reader.charge(SET_BYTES)
            keys: dict[Any, Any] = {}
            put_all(keys, values, values, reader)
            made.fill(tuple(keys))
        return made

    return Codec(read, lambda _, __: make((), name))


def _copies(made: Any, values: list[Any], _: Any, __: Any) -> Any:
    if made.field("n", 0) < 0 or values[0] < 0:
        msg = f"nCopies of {values[0]}"
        raise MalformedError(msg)
    made.data = values
    return made


def _vector(name: str) -> Codec:
    def read(made: JavaList, values: list[Any], _: Any, reader: Any) -> Any:
        increment, count, data = values
        if not isinstance(data, JavaArray) or not 0 <= count <= len(data):
            msg = f"{name} of {count} elements without an array that holds them"
            raise MalformedError(msg)
        # Vector.writeObject clones its array, so an array that is shared comes from somewhere else.
        if not reader.copies(len(data)):
            msg = f"many {name} objects share one array"
            raise LimitExceededError(msg)
        made.extend(data[:count])
        if increment:
            made.extra["capacityIncrement"] = increment
        if len(data) != count:
            made.extra["capacity"] = len(data)
        return made

    return Codec(read, lambda _, __: JavaList((), name))


def _immutable(_: Any, values: list[Any], notes: list[tuple[Any, ...]], reader: Any) -> Any:
    note, tag = notes[0], values[0] & 0xFF
    (count,) = block(note[0], _SIZE)
    items = note[1:]
    if count != len(items) or (tag == _MAP_TAG and count % 2):
        msg = f"an immutable collection says {count} elements and has {len(items)}"
        raise MalformedError(msg)
    if tag in (_LIST_TAG, _LIST_WITH_NULLS_TAG):
        return JavaList(items, _LISTS_OF, {"nulls": True} if tag == _LIST_WITH_NULLS_TAG else None)
    keys: dict[Any, Any] = {}
    if tag == _SET_TAG:
        reader.charge(SET_BYTES)
        put_all(keys, items, items, reader)
        return JavaSet(keys, _SETS_OF)
    if tag == _MAP_TAG:
        made = JavaMap((), _MAPS_OF)
        put_all(made, items[0::2], items[1::2], reader)
        return made
    return NotImplemented


def _enum_set(_: Any, values: list[Any], __: Any, reader: Any) -> Any:
    element_type, elements = values
    if (
        not isinstance(elements, JavaArray)
        or not isinstance(element_type, JavaClass)
        or not reader.copies(len(elements))
    ):
        return NotImplemented
    # Only the form that Java writes may become a set, since only that form is written again.
    if not all(isinstance(element, JavaEnum) for element in elements) or elements.java_class != "[Ljava.lang.Enum;":
        return NotImplemented
    reader.charge(SET_BYTES)
    return JavaSet(elements, _ENUM_SET, {"elementType": element_type})


READERS: Final[dict[str, Codec]] = {
    **_views(),
    **{
        f"{_COLLECTIONS}{prefix}{suffix}": _fixed(f"{_COLLECTIONS}{prefix}{suffix}", make)
        for prefix in ("Empty", "Singleton")
        for suffix, make in (("List", JavaList), ("Set", JavaSet), ("Map", JavaMap))
    },
    f"{_COLLECTIONS}CopiesList": Codec(_copies, lambda descriptor, values: Copies(descriptor, values[:1])),
    "java.util.Vector": _vector("java.util.Vector"),
    "java.util.Stack": _vector("java.util.Stack"),
    "java.util.CollSer": Codec(_immutable),
    "java.util.EnumSet$SerializationProxy": Codec(_enum_set),
}


def _write_vector(value: JavaList) -> Content:
    capacity = max(len(value), value.extra.get("capacity", 0))
    data = JavaArray([*value, *[None] * (capacity - len(value))], array_descriptor("[Ljava.lang.Object;"))
    return content(value.java_class, [value.extra.get("capacityIncrement", 0), len(value), data], [()])


def _coll_ser(tag: int, items: Sequence[Any]) -> Content:
    if tag != _LIST_WITH_NULLS_TAG and any(item is None for item in items):
        msg = "List.of, Set.of and Map.of cannot hold null"
        raise SerializationError(msg)
    return content("java.util.CollSer", [tag], [(BlockData(_SIZE.pack(len(items))), *items)])


def _write_list_of(value: JavaList) -> Content:
    return _coll_ser(_LIST_WITH_NULLS_TAG if value.extra.get("nulls") else _LIST_TAG, value)


def _write_map_of(value: JavaMap) -> Content:
    return _coll_ser(_MAP_TAG, [item for entry in value.items() for item in entry])


def _write_enum_set(value: JavaSet) -> Content:
    elements = value.in_order()
    element_type = value.extra.get("elementType") or _type_of(elements)
    array = JavaArray(elements, array_descriptor("[Ljava.lang.Enum;"))
    return content("java.util.EnumSet$SerializationProxy", [element_type, array])


def _type_of(constants: Sequence[Any]) -> JavaClass:
    if not constants or not isinstance(constants[0], JavaEnum):
        msg = "an EnumSet holds enum constants, and an empty one needs extra={'elementType': JavaClass(...)}"
        raise SerializationError(msg)
    return JavaClass(constants[0].descriptor)


def _write_fixed(value: Any) -> Content:
    items = [item for entry in value.items() for item in entry] if isinstance(value, dict) else list(value)
    expected = len(content(value.java_class, ()).descriptor.all_fields)
    if len(items) != expected:
        msg = f"{value.java_class} has {expected} items, not {len(items)}"
        raise SerializationError(msg)
    return content(value.java_class, items)


WRITERS: Final[dict[str, Callable[[Any], Content]]] = {
    **{name: _write_fixed for name in READERS if name.startswith((f"{_COLLECTIONS}Empty", f"{_COLLECTIONS}Singleton"))},
    "java.util.Vector": _write_vector,
    "java.util.Stack": _write_vector,
    _LISTS_OF: _write_list_of,
    _SETS_OF: lambda value: _coll_ser(_SET_TAG, value.in_order()),
    _MAPS_OF: _write_map_of,
    _ENUM_SET: _write_enum_set,
}
