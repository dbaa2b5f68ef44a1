"""Lists, queues, sets and maps of the JDK that write their elements one after the other.

They differ in small things: what stands before the elements, where the number of elements is, or whether a null ends
them. A :class:`_Layout` says so for each class, and one reader and one writer follow it.
"""

from __future__ import annotations

import collections
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pravega_serde.errors import SerializationError
from pravega_serde.java._containers import JavaList, JavaMap, JavaSet
from pravega_serde.java._content import Content, block, content
from pravega_serde.java._hashing import map_capacity, map_threshold, natural_order, set_capacity, table_order
from pravega_serde.java._keys import put_all, put_each
from pravega_serde.java._limits import DEQUE_BYTES, SET_BYTES
from pravega_serde.java._model import BlockData, ClassDescriptor
from pravega_serde.java._plans import Codec, MalformedError
from pravega_serde.java._segments import new_segments

__all__ = ["LAYOUTS", "READERS", "write_collection"]

_SIZE: Final = struct.Struct(">i")
_TWO: Final = struct.Struct(">ii")
_HASH_SET: Final = struct.Struct(">ifi")
_LOAD_FACTOR: Final = 0.75

Head = Callable[[int, dict[str, Any]], tuple[Any, ...]]


def _just_size(size: int, _: dict[str, Any]) -> tuple[Any, ...]:
    return (size,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How one class writes itself."""

    make: type[Any]
    """``list``, ``dict`` or ``deque`` itself, or the subclass that remembers its class."""
    head: struct.Struct | None = _SIZE
    """Numbers before the elements; None if a null ends the elements instead."""
    count: int = 0
    """Which of these numbers is the number of elements; -1 if it is the field ``size``."""
    numbers: Head = _just_size
    """(number of elements, extra fields) -> those numbers."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Usual values of the fields; unusual ones are kept in ``extra``."""
    derived: dict[str, Head] = field(default_factory=dict)
    """Fields that follow from the elements."""
    first: str | None = None
    """Name of an object that is written before everything else."""
    nulls: int = 1
    """Nulls after the last element, where there is no head."""


def _map_numbers(size: int, extra: dict[str, Any]) -> tuple[Any, ...]:
    return map_capacity(size, extra.get("loadFactor", _LOAD_FACTOR)), size


def _set_numbers(size: int, extra: dict[str, Any]) -> tuple[Any, ...]:
    factor = extra.get("loadFactor", _LOAD_FACTOR)
    return set_capacity(size, factor), factor, size


def _table_length(size: int, extra: dict[str, Any]) -> int:
    """``Hashtable.readHashtable``: what Java makes of a length that it reads."""
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
    """Fields of queues with locks: they are kept as they are, and a new queue cannot be made without them."""
    return {"capacity": _KEPT, **dict.fromkeys(locks, _KEPT)}


_KEPT: Final = object()
_COMPARATOR: Final = {"comparator": None}

LAYOUTS: Final[dict[str, _Layout]] = {
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
            "segments": lambda _, __: (new_segments(),),
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
            # A HashMap with an unusual load factor must remember it.
            # The shell may be referred to before the entries are read, so this cannot wait.
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
            # Java reads so many elements and skips the rest of the annotation.
            items = note[start + 1 : start + 1 + count * width] if count >= 0 else ()
            if len(items) != count * width:
                msg = f"{name} says {count} elements and has {(len(note) - start - 1) // width}"
                raise MalformedError(msg)
        fill(made, items, reader)
        if extra_of is not None:
            extra_of(made, values, note, head)
        return made

    made_size, extra_of = _size_position(name, layout), _extras(name, layout)
    return Codec(read, shell)


def _end(note: Sequence[Any], width: int) -> int:
    # Only a key ends the entries: a ConcurrentHashMap has two nulls there, the others one.
    for at in range(0, len(note), width):
        if note[at] is None:
            return at
    msg = "the null after the last element is missing"
    raise MalformedError(msg)


def _size_position(name: str, layout: _Layout) -> int:
    return content(name, ()).descriptor.positions["size"] if layout.count < 0 else 0


def _extras(name: str, layout: _Layout) -> Callable[[Any, list[Any], Sequence[Any], tuple[Any, ...]], None] | None:
    """What keeps the fields that have unusual values; None for classes that have no place for them."""
    positions = content(name, ()).descriptor.positions
    watched = [(key, positions[key], usual) for key, usual in layout.defaults.items()]

    def keep(made: Any, values: list[Any], note: Sequence[Any], head: tuple[Any, ...]) -> None:
        for key, at, usual in watched:
            # Comparing by type first: a comparator may be any value.
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
    reader.charge(DEQUE_BYTES)
    made.extend(items)


def _fill_map(made: Any, items: Sequence[Any], reader: Any) -> None:
    put_all(made, items[0::2], items[1::2], reader)


def _fill_identity_map(made: Any, items: Sequence[Any], reader: Any) -> None:
    put_each(made, items[0::2], items[1::2], reader, by_identity=True)


def _fill_set(made: Any, items: Sequence[Any], reader: Any) -> None:
    reader.charge(SET_BYTES)
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

READERS: Final[dict[str, Codec]] = {name: _codec(name, layout) for name, layout in LAYOUTS.items()}


def write_collection(name: str, value: Any, extra: dict[str, Any]) -> Content:
    """The content of a collection of a class in :data:`LAYOUTS`."""
    layout = LAYOUTS[name]
    size = len(value)
    descriptor = content(name, ()).descriptor
    values = []
    for _, each in descriptor.all_fields:
        derive = layout.derived.get(each.name)
        values.append(derive(size, extra)[0] if derive else extra.get(each.name, layout.defaults.get(each.name)))
    if any(each is _KEPT for each in values):
        msg = f"a {name} can only be written as it was read: Python cannot make its locks"
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
    """Elements, or keys and values in turn, in the order in which Java writes them."""
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
