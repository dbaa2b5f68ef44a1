"""JDK collections: lists, queues, sets and maps; wrappers, singletons, ``List.of``, ``Vector``, ``EnumSet``.

Most classes write their elements one after the other. They differ in the values before the elements, in the position of
the element count, and in an optional null at the end. A :class:`_Layout` holds these differences for each class, and
one reader and one writer follow it. The others hold another collection, or have a fixed content.
"""

from __future__ import annotations

import collections
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import LimitExceededError, SerializationError
from pravega_serde.java.hashing import (
    map_capacity,
    map_threshold,
    natural_order,
    put_all,
    put_each,
    set_capacity,
    table_order,
)
from pravega_serde.java.jdk_classes import Codec, Content, array_descriptor, block, content, jdk_descriptor
from pravega_serde.java.model import BlockData, ClassDescriptor, Instance, JavaClass, JavaEnum, JavaObject
from pravega_serde.java.values import INNER, Copies, JavaArray, JavaList, JavaMap, JavaSet, ListView, MapView, SetView

_DEQUE_BYTES: Final = 650
"""Memory of an empty deque in bytes. In a stream, it has 13 bytes."""

_SET_BYTES: Final = 320
"""Memory of an empty set in bytes. In a stream, it has 6 bytes."""

_SIZE: Final = struct.Struct(">i")
_TWO: Final = struct.Struct(">ii")
_HASH_SET: Final = struct.Struct(">ifi")
_LOAD_FACTOR: Final = 0.75

_Head = Callable[[int, dict[str, Any]], tuple[Any, ...]]


def _just_size(size: int, _: dict[str, Any]) -> tuple[Any, ...]:
    return (size,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Form of one class in a stream."""

    make: type[Any]
    """``list``, ``dict`` or ``deque`` itself, or the subclass that keeps its class."""
    head: struct.Struct | None = _SIZE
    """Numbers before the elements, or None if a null ends the elements instead."""
    count: int = 0
    """Position of the number of elements among these numbers, or -1 if it is the field ``size``."""
    numbers: _Head = _just_size
    """(number of elements, extra fields) -> those numbers."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Usual values of the fields. Unusual ones are kept in ``extra``."""
    derived: dict[str, _Head] = field(default_factory=dict)
    """Fields that follow from the elements."""
    first: str | None = None
    """Name of an object that is written before everything else."""
    nulls: int = 1
    """Nulls after the last element, if there is no head."""


def _map_numbers(size: int, extra: dict[str, Any]) -> tuple[Any, ...]:
    return map_capacity(size, extra.get("loadFactor", _LOAD_FACTOR)), size


def _set_numbers(size: int, extra: dict[str, Any]) -> tuple[Any, ...]:
    factor = extra.get("loadFactor", _LOAD_FACTOR)
    return set_capacity(size, factor), factor, size


def _table_length(size: int, extra: dict[str, Any]) -> int:
    """Return the table length of a ``Hashtable`` that Java has read (``Hashtable.readHashtable``)."""
    factor = extra.get("loadFactor", _LOAD_FACTOR)
    length = int((size + size // 20) / factor) + 3
    if length > size and length % 2 == 0:
        length -= 1
    return min(length, int(extra.get("length", length)))


def _table_numbers(size: int, extra: dict[str, Any]) -> tuple[Any, ...]:
    return _table_length(size, extra), size


def _table_threshold(size: int, extra: dict[str, Any]) -> tuple[Any, ...]:
    return (int(_table_length(size, extra) * extra.get("loadFactor", _LOAD_FACTOR)),)


def _properties_numbers(size: int, _: dict[str, Any]) -> tuple[Any, ...]:
    length = int(size / _LOAD_FACTOR) + size // 20 + 3
    return length - 1 if length > size and length % 2 == 0 else length, size


def _properties_threshold(size: int, extra: dict[str, Any]) -> tuple[Any, ...]:
    return (int(_properties_numbers(size, extra)[0] * _LOAD_FACTOR),)


def _hash_map(make: type[Any], **defaults: Any) -> _Layout:
    return _Layout(
        make=make,
        head=_TWO,
        count=1,
        numbers=_map_numbers,
        defaults={"loadFactor": _LOAD_FACTOR, **defaults},
        derived={"threshold": lambda size, extra: (map_threshold(size, extra.get("loadFactor", _LOAD_FACTOR)),)},
    )


def _locked(*locks: str) -> dict[str, Any]:
    """Return the fields of queues with locks. They are kept as read, because Python cannot create them."""
    return {"capacity": _KEPT, **dict.fromkeys(locks, _KEPT)}


_KEPT: Final = object()
_COMPARATOR: Final = {"comparator": None}

_LAYOUTS: Final[dict[str, _Layout]] = {
    "java.util.ArrayList": _Layout(make=list, count=-1, derived={"size": _just_size}),
    "java.util.LinkedList": _Layout(make=JavaList),
    "java.util.ArrayDeque": _Layout(make=collections.deque),
    "java.util.PriorityQueue": _Layout(
        make=JavaList,
        count=-1,
        numbers=lambda size, _: (max(2, size + 1),),
        defaults=_COMPARATOR,
        derived={"size": _just_size},
    ),
    "java.util.concurrent.CopyOnWriteArrayList": _Layout(make=JavaList),
    "java.util.concurrent.ConcurrentLinkedQueue": _Layout(make=JavaList, head=None),
    "java.util.concurrent.ConcurrentLinkedDeque": _Layout(make=JavaList, head=None),
    "java.util.concurrent.LinkedTransferQueue": _Layout(make=JavaList, head=None),
    "java.util.concurrent.LinkedBlockingQueue": _Layout(
        make=JavaList, head=None, defaults=_locked("count", "notEmpty", "notFull", "putLock", "takeLock")
    ),
    "java.util.concurrent.LinkedBlockingDeque": _Layout(
        make=JavaList, head=None, defaults=_locked("lock", "notEmpty", "notFull")
    ),
    "java.util.HashSet": _Layout(make=JavaSet, head=_HASH_SET, count=2, numbers=_set_numbers),
    "java.util.LinkedHashSet": _Layout(make=JavaSet, head=_HASH_SET, count=2, numbers=_set_numbers),
    "java.util.TreeSet": _Layout(make=JavaSet, first="comparator"),
    "java.util.HashMap": _hash_map(dict),
    "java.util.LinkedHashMap": _hash_map(JavaMap, accessOrder=False),
    "java.util.TreeMap": _Layout(make=JavaMap, defaults=_COMPARATOR),
    "java.util.IdentityHashMap": _Layout(make=JavaMap, derived={"size": _just_size}),
    "java.util.EnumMap": _Layout(make=JavaMap, defaults={"keyType": None}),
    "java.util.Hashtable": _Layout(
        make=JavaMap,
        head=_TWO,
        count=1,
        numbers=_table_numbers,
        defaults={"loadFactor": _LOAD_FACTOR},
        derived={"threshold": _table_threshold},
    ),
    "java.util.Properties": _Layout(
        make=JavaMap,
        head=_TWO,
        count=1,
        numbers=_properties_numbers,
        defaults={"loadFactor": _LOAD_FACTOR, "defaults": None},
        derived={"threshold": _properties_threshold},
    ),
    "java.util.concurrent.ConcurrentHashMap": _Layout(
        make=JavaMap,
        head=None,
        nulls=2,
        derived={
            "segments": lambda _, __: (_new_segments(),),
            "segmentShift": lambda _, __: (28,),
            "segmentMask": lambda _, __: (15,),
        },
    ),
    "java.util.concurrent.ConcurrentSkipListMap": _Layout(make=JavaMap, head=None, defaults=_COMPARATOR),
}


def _codec(name: str, layout: _Layout) -> Codec:
    is_map = issubclass(layout.make, dict)
    width = 2 if is_map else 1
    fill = _fill_identity_map if name == "java.util.IdentityHashMap" else _FILL[layout.make]

    def shell(_: ClassDescriptor, values: list[Any]) -> Any:
        if layout.make is dict:
            # A HashMap with an unusual load factor must keep it.
            # Objects may refer to the shell before the entries are read, so this cannot wait.
            usual = values[:1] == [_LOAD_FACTOR]
            return {} if usual else JavaMap((), name, {"loadFactor": values[0]})
        return layout.make((), name) if layout.make in (JavaList, JavaSet, JavaMap) else layout.make()

    def read(made: Any, values: list[Any], notes: list[tuple[Any, ...]], reader: Any) -> Any:
        note = notes[0]
        start = 1 if layout.first else 0
        head: tuple[Any, ...] = ()
        if layout.head is None:
            items = note[: _end(note, width)]
        else:
            head = block(note[start], layout.head)
            count = head[layout.count] if layout.count >= 0 else values[made_size]
            # Java reads this number of elements and skips the rest of the annotation.
            items = note[start + 1 : start + 1 + count * width] if count >= 0 else ()
            if len(items) != count * width:
                msg = f"invalid {name}: {count} elements claimed, {(len(note) - start - 1) // width} found"
                raise MalformedError(msg)
        fill(made, items, reader)
        if extra_of is not None:
            extra_of(made, values, note, head)
        return made

    made_size, extra_of = _size_position(name, layout), _extras(name, layout)
    return Codec(read, shell)


def _end(note: Sequence[Any], width: int) -> int:
    # Only a null key ends the entries. A ConcurrentHashMap has two nulls there, the others one.
    for at in range(0, len(note), width):
        if note[at] is None:
            return at
    msg = "no null after the last element"
    raise MalformedError(msg)


def _size_position(name: str, layout: _Layout) -> int:
    return content(name, ()).descriptor.positions["size"] if layout.count < 0 else 0


def _extras(name: str, layout: _Layout) -> Callable[[Any, list[Any], Sequence[Any], tuple[Any, ...]], None] | None:
    """Return a function that keeps the fields with unusual values, or None for Python types that cannot hold them."""
    positions = content(name, ()).descriptor.positions
    watched = [(key, positions[key], usual) for key, usual in layout.defaults.items()]

    def keep(made: Any, values: list[Any], note: Sequence[Any], head: tuple[Any, ...]) -> None:
        for key, at, usual in watched:
            # The type is compared first, because a comparator may be any value.
            if type(values[at]) is not type(usual) or values[at] != usual:
                made.extra[key] = values[at]
        if layout.first and note[0] is not None:
            made.extra[layout.first] = note[0]
        if layout.head is _HASH_SET and head[1] != _LOAD_FACTOR:
            made.extra["loadFactor"] = head[1]
        if name == "java.util.Hashtable" and _table_length(head[1], made.extra) != head[0]:
            made.extra["length"] = head[0]

    return keep if layout.make in (JavaList, JavaSet, JavaMap) else None


def _fill_list(made: Any, items: Sequence[Any], _: Any) -> None:
    made.extend(items)


def _fill_deque(made: Any, items: Sequence[Any], reader: Any) -> None:
    reader.charge(_DEQUE_BYTES)
    made.extend(items)


def _fill_map(made: Any, items: Sequence[Any], reader: Any) -> None:
    put_all(made, items[0::2], items[1::2], reader)


def _fill_identity_map(made: Any, items: Sequence[Any], reader: Any) -> None:
    put_each(made, items[0::2], items[1::2], reader, by_identity=True)


def _fill_set(made: Any, items: Sequence[Any], reader: Any) -> None:
    reader.charge(_SET_BYTES)
    keys: dict[Any, Any] = {}
    put_all(keys, items, items, reader)
    made.fill(tuple(keys))


_FILL: Final[dict[type[Any], Callable[[Any, Sequence[Any], Any], None]]] = {
    list: _fill_list,
    JavaList: _fill_list,
    collections.deque: _fill_deque,
    dict: _fill_map,
    JavaMap: _fill_map,
    JavaSet: _fill_set,
}

_LAYOUT_READERS: Final[dict[str, Codec]] = {name: _codec(name, layout) for name, layout in _LAYOUTS.items()}


def _write_collection(name: str, value: Any, extra: dict[str, Any]) -> Content:
    """Return the parts of a collection of a class in :data:`_LAYOUTS`."""
    layout = _LAYOUTS[name]
    size = len(value)
    descriptor = content(name, ()).descriptor
    values = []
    for _, each in descriptor.all_fields:
        derive = layout.derived.get(each.name)
        values.append(derive(size, extra)[0] if derive else extra.get(each.name, layout.defaults.get(each.name)))
    if any(each is _KEPT for each in values):
        msg = f"a {name} can only be written as it was read: Python cannot create its locks"
        raise SerializationError(msg)
    items = _items(name, layout, value, extra)
    if layout.head is None:
        return Content(descriptor, values, [[*_without_nulls(name, items), *[None] * layout.nulls]])
    head = BlockData(layout.head.pack(*layout.numbers(size, extra)))
    return Content(descriptor, values, [[*([extra.get(layout.first)] if layout.first else []), head, *items]])


_SORTED: Final = frozenset(
    {"java.util.TreeMap", "java.util.TreeSet", "java.util.concurrent.ConcurrentSkipListMap"},
)


def _items(name: str, layout: _Layout, value: Any, extra: dict[str, Any]) -> Iterable[Any]:
    """Return the elements, or alternating keys and values, in Java's order of writing."""
    if layout.make in (dict, JavaMap):
        keys: list[Any] = list(value)
        if layout.numbers is _map_numbers and name == "java.util.HashMap":
            keys = _hash_order(keys, layout.numbers(len(keys), extra)[0])
        elif name in _SORTED and extra.get("comparator") is None:
            keys = natural_order(keys)
        return [item for key in keys for item in (key, value[key])]
    if layout.make is JavaSet:
        elements = value.in_order() if isinstance(value, JavaSet) else list(value)
        if name == "java.util.HashSet":
            return _hash_order(elements, _set_numbers(len(elements), extra)[0])
        return natural_order(elements) if name in _SORTED and extra.get("comparator") is None else elements
    return list(value)


def _hash_order(keys: list[Any], capacity: int) -> list[Any]:
    order = table_order(keys, capacity)
    return keys if order is None else [keys[at] for at in order]


def _without_nulls(name: str, items: Iterable[Any]) -> Iterable[Any]:
    for item in items:
        if item is None:
            msg = f"{name} cannot hold null"
            raise SerializationError(msg)
        yield item


_SEGMENTS: Final = 16


def _new_segments() -> JavaArray:
    """Create the sixteen locks of a ``ConcurrentHashMap`` of JDK 7, which its successors still write.

    ``ConcurrentHashMap.writeObject`` creates new ones each time, too.
    """
    segment, sync = _class("java.util.concurrent.ConcurrentHashMap$Segment"), _class(_SYNC)
    array = array_descriptor(f"[L{segment.name};", public=False)
    # Fields: sync of ReentrantLock, loadFactor of Segment; state of AbstractQueuedSynchronizer.
    return JavaArray([JavaObject(segment, [JavaObject(sync, [0]), 0.75]) for _ in range(_SEGMENTS)], array)


_SYNC: Final = "java.util.concurrent.locks.ReentrantLock$NonfairSync"


def _class(name: str) -> ClassDescriptor:
    found = jdk_descriptor(name)
    assert found is not None, name
    return found


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
            msg = f"invalid {made.class_name}: no field for a wrapped collection"
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
    """Return the reader of an empty or singleton collection: the fields are the elements."""

    def read(made: Any, values: list[Any], _: Any, reader: Any) -> Any:
        if make is JavaList:
            made.extend(values)
        elif make is JavaMap:
            put_all(made, values[0::2], values[1::2], reader)
        else:
            reader.charge(_SET_BYTES)
            keys: dict[Any, Any] = {}
            put_all(keys, values, values, reader)
            made.fill(tuple(keys))
        return made

    return Codec(read, lambda _, __: make((), name))


def _copies(made: Any, values: list[Any], _: Any, __: Any) -> Any:
    if made.field("n", 0) < 0 or values[0] < 0:
        msg = f"invalid number of copies: {values[0]}"
        raise MalformedError(msg)
    made.data = values
    return made


def _vector(name: str) -> Codec:
    def read(made: JavaList, values: list[Any], _: Any, reader: Any) -> Any:
        increment, count, data = values
        if not isinstance(data, JavaArray) or not 0 <= count <= len(data):
            msg = f"invalid {name}: no array that holds {count} elements"
            raise MalformedError(msg)
        # Vector.writeObject clones its array, so a shared array was not written by it.
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
        msg = f"invalid immutable collection: {count} elements claimed, {len(items)} found"
        raise MalformedError(msg)
    if tag in (_LIST_TAG, _LIST_WITH_NULLS_TAG):
        return JavaList(items, _LISTS_OF, {"nulls": True} if tag == _LIST_WITH_NULLS_TAG else None)
    keys: dict[Any, Any] = {}
    if tag == _SET_TAG:
        reader.charge(_SET_BYTES)
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
    # Only the form that Java writes may become a set, because only that form is written again.
    if not all(isinstance(element, JavaEnum) for element in elements) or elements.java_class != "[Ljava.lang.Enum;":
        return NotImplemented
    reader.charge(_SET_BYTES)
    return JavaSet(elements, _ENUM_SET, {"elementType": element_type})


_WRAPPER_READERS: Final[dict[str, Codec]] = {
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
        msg = "an EnumSet contains enum constants, and an empty EnumSet requires extra={'elementType': JavaClass(...)}"
        raise SerializationError(msg)
    return JavaClass(constants[0].descriptor)


def _write_fixed(value: Any) -> Content:
    items = [item for entry in value.items() for item in entry] if isinstance(value, dict) else list(value)
    expected = len(content(value.java_class, ()).descriptor.all_fields)
    if len(items) != expected:
        msg = f"invalid {value.java_class}: {len(items)} items, {expected} are expected"
        raise SerializationError(msg)
    return content(value.java_class, items)


_BY_CLASS: Final[dict[str, Callable[[Any], Content]]] = {
    **{
        name: _write_fixed
        for name in _WRAPPER_READERS
        if name.startswith((f"{_COLLECTIONS}Empty", f"{_COLLECTIONS}Singleton"))
    },
    "java.util.Vector": _write_vector,
    "java.util.Stack": _write_vector,
    _LISTS_OF: _write_list_of,
    _SETS_OF: lambda value: _coll_ser(_SET_TAG, value.in_order()),
    _MAPS_OF: _write_map_of,
    _ENUM_SET: _write_enum_set,
}


def _write_named(value: JavaList | JavaMap | JavaSet) -> Content:
    """Return the parts of a collection that holds its class."""
    write = _BY_CLASS.get(value.java_class)
    if write is not None:
        return write(value)
    layout = _LAYOUTS.get(value.java_class)
    if layout is None or issubclass(layout.make, dict) != isinstance(value, dict):
        msg = f"a {type(value).__name__} cannot be written as {value.java_class}"
        raise SerializationError(msg)
    extra = value.extra
    if value.java_class == "java.util.EnumMap" and "keyType" not in extra:
        extra = {**extra, "keyType": _key_type(value)}
    return _write_collection(value.java_class, value, extra)


def _key_type(value: JavaMap | JavaSet | JavaList) -> JavaClass:
    for key in value:
        if isinstance(key, JavaEnum):
            return JavaClass(key.descriptor)
    msg = "an EnumMap contains enum constants, and an empty EnumMap requires extra={'keyType': JavaClass(...)}"
    raise SerializationError(msg)


def _plain(name: str) -> Callable[[Any], Content]:
    return lambda value: _write_collection(name, value, {})


READERS: Final[dict[str, Codec]] = {**_LAYOUT_READERS, **_WRAPPER_READERS}

WRITERS: Final[dict[type[Any], Callable[[Any], Content]]] = {
    JavaList: _write_named,
    JavaMap: _write_named,
    JavaSet: _write_named,
    list: _plain("java.util.ArrayList"),
    tuple: _plain("java.util.ArrayList"),
    dict: _plain("java.util.HashMap"),
    set: _plain("java.util.HashSet"),
    frozenset: _plain("java.util.HashSet"),
    collections.deque: _plain("java.util.ArrayDeque"),
}
