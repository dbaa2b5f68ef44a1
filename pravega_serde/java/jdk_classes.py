"""Class descriptors of the JDK's own classes, as JDK 17 writes them, and the two forms of their objects.

Natural values are read with a :class:`Codec` and written as a :class:`Content`. The modules ``jdk``, ``jdk_time`` and
``jdk_collections`` define those for the classes in the table.

The table has one class a line: name, serialVersionUID in hex, flags, superclass or ``-``, fields as ``name:signature``.
A line that begins with a space continues the line before. ``tests/interop/java_serde/DumpDescriptors.java`` prints the
table, and a test compares the two.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pravega_serde.columnar import MalformedError
from pravega_serde.java.model import BlockData, ClassDescriptor, Field, ProxyDescriptor


class Codec(NamedTuple):
    """Reader of the objects of one JDK class: from their parts to a natural Python value."""

    read: Callable[[Any, list[Any], list[tuple[Any, ...]], Any], Any]
    """(shell, field values, annotations of each class, reader) -> value; NotImplemented keeps it as a record."""
    shell: Callable[[Any, list[Any]], Any] | None = None
    """(class, its leading primitive fields) -> empty value, if others may refer to it before it is complete."""
    any_form: bool = False
    """True if descriptors may differ from JDK 17's, because the value keeps its own."""


class Content(NamedTuple):
    """Parts of an object to write: its class, its values, and the annotations of each class."""

    descriptor: ClassDescriptor | ProxyDescriptor
    values: Sequence[Any]
    notes: Sequence[Iterable[Any]]


def content(name: str, values: Sequence[Any], notes: Sequence[Iterable[Any]] = ()) -> Content:
    """Return the parts of an object of a JDK class by its name."""
    descriptor = jdk_descriptor(name)
    assert descriptor is not None, name
    return Content(descriptor, values, notes)


def block(item: Any, layout: struct.Struct) -> tuple[Any, ...]:
    """Return the numbers at the start of block data.

    Raises :class:`MalformedError` if it is shorter or not block data.
    """
    if type(item) is not BlockData or len(item) < layout.size:
        msg = f"{layout.size} bytes of primitive data are expected"
        raise MalformedError(msg)
    return layout.unpack_from(item)


_ABSTRACT_FINAL: Final = 0x410
"""Modifiers that the JVM gives to every array class: ``Modifier.ABSTRACT | Modifier.FINAL``."""

_PUBLIC: Final = 0x001


@functools.lru_cache(maxsize=1024)
def array_descriptor(name: str, *, public: bool = True) -> ClassDescriptor:
    """Return the descriptor of an array class, with a UID like that of ``ObjectStreamClass.computeDefaultSUID``.

    An array class has no members, so the hash depends only on its name and on the visibility of its element. Java does
    not compare the UIDs of arrays.
    """
    raw = name.encode()
    modifiers = _ABSTRACT_FINAL | (_PUBLIC if public else 0)
    digest = hashlib.sha1(len(raw).to_bytes(2, "big") + raw + modifiers.to_bytes(4, "big"), usedforsecurity=False)
    return ClassDescriptor(name, int.from_bytes(digest.digest()[:8], "little", signed=True))


def jdk_descriptor(name: str) -> ClassDescriptor | None:
    """Return the descriptor of a JDK class, or None if it is not in the table."""
    return _descriptors().get(name)


def jdk_names() -> tuple[str, ...]:
    """Return the names of all classes in the table."""
    return tuple(_descriptors())


@functools.cache
def _descriptors() -> Mapping[str, ClassDescriptor]:
    rows: dict[str, list[str]] = {}
    for row in _TABLE.strip().replace("\n ", " ").splitlines():
        words = row.split()
        rows[words[0]] = words
    found: dict[str, ClassDescriptor] = {}
    for name in rows:
        _add(name, rows, found)
    return found


def _add(name: str, rows: Mapping[str, list[str]], found: dict[str, ClassDescriptor]) -> ClassDescriptor:
    if name not in found:
        _, uid, flags, above, *fields = rows[name]
        unsigned = int(uid, 16)  # a Java long: its top bit is the sign
        found[name] = ClassDescriptor(
            name,
            unsigned - (unsigned >> 63 << 64),
            int(flags),
            tuple(Field(*each.split(":")) for each in fields),
            None if above == "-" else _add(above, rows, found),
        )
    return found[name]


_TABLE: Final = """
java.lang.Boolean cd207280d59cfaee 2 - value:Z
java.lang.Byte 9c4e6084ee50f51c 2 java.lang.Number value:B
java.lang.Character 348b47d96b1a2678 2 - value:C
java.lang.Double 80b3c24a296bfb04 2 java.lang.Number value:D
java.lang.Enum 0 18 -
java.lang.Float daedc9a2db3cf0ec 2 java.lang.Number value:F
java.lang.Integer 12e2a0a4f7818738 2 java.lang.Number value:I
java.lang.Long 3b8be490cc8f23df 2 java.lang.Number value:J
java.lang.Number 86ac951d0b94e08b 2 -
java.lang.Short 684d37133460da52 2 java.lang.Number value:S
java.math.BigDecimal 54c71557f981284f 3 java.lang.Number scale:I intVal:Ljava/math/BigInteger;
java.math.BigInteger 8cfc9f1fa93bfb1d 3 java.lang.Number bitCount:I bitLength:I firstNonzeroByteNum:I lowestSetBit:I
  signum:I magnitude:[B
java.sql.Date 14fa46683f356697 2 java.util.Date
java.sql.Time 74894a0dd932c471 2 java.util.Date
java.sql.Timestamp 2618d5c80153bf65 2 java.util.Date nanos:I
java.time.Ser 955d84ba1b2248b2 12 -
java.util.AbstractList 0 0 -
java.util.ArrayDeque 207cda2e240da08b 3 -
java.util.ArrayList 7881d21d99c7619d 3 - size:I
java.util.Arrays$ArrayList d9a43cbecd8806d2 2 - a:[Ljava/lang/Object;
java.util.CollSer 578eabb63a1ba811 3 - tag:I
java.util.Collections$AsLIFOQueue 19020d92eca0694c 2 - q:Ljava/util/Deque;
java.util.Collections$CheckedCollection 15e96dfd18e6cc6f 2 - c:Ljava/util/Collection; type:Ljava/lang/Class;
  zeroLengthElementArray:[Ljava/lang/Object;
java.util.Collections$CheckedList e7ce7692c45f7c 2 java.util.Collections$CheckedCollection list:Ljava/util/List;
java.util.Collections$CheckedMap 4fb2bcdf0d186368 2 - keyType:Ljava/lang/Class; m:Ljava/util/Map;
  valueType:Ljava/lang/Class;
java.util.Collections$CheckedNavigableMap bca896e4074cacb0 2 java.util.Collections$CheckedSortedMap
  nm:Ljava/util/NavigableMap;
java.util.Collections$CheckedNavigableSet b4a7e3f3bbbed836 2 java.util.Collections$CheckedSortedSet
  ns:Ljava/util/NavigableSet;
java.util.Collections$CheckedQueue 13e39424e458cbb7 2 java.util.Collections$CheckedCollection
  queue:Ljava/util/Queue;
java.util.Collections$CheckedRandomAccessList 16bc0e55a2d7f2f1 2 java.util.Collections$CheckedList
java.util.Collections$CheckedSet 41249ba27ad9ffab 2 java.util.Collections$CheckedCollection
java.util.Collections$CheckedSortedMap 16332c973afe036e 2 java.util.Collections$CheckedMap sm:Ljava/util/SortedMap;
java.util.Collections$CheckedSortedSet 163406ba7362eb0f 2 java.util.Collections$CheckedSet ss:Ljava/util/SortedSet;
java.util.Collections$CopiesList 26033c45b17003f8 2 - n:I element:Ljava/lang/Object;
java.util.Collections$EmptyList 7ab817b43ca79ede 2 -
java.util.Collections$EmptyMap 593614855adce7d0 2 -
java.util.Collections$EmptySet 15f5721db403cb28 2 -
java.util.Collections$SetFromMap 2210b25045f21fc4 2 - m:Ljava/util/Map;
java.util.Collections$SingletonList 2aef29103ca79b97 2 - element:Ljava/lang/Object;
java.util.Collections$SingletonMap 9f230991717f6b91 2 - k:Ljava/lang/Object; v:Ljava/lang/Object;
java.util.Collections$SingletonSet 2c52419829c0b1bf 2 - element:Ljava/lang/Object;
java.util.Collections$SynchronizedCollection 2a61f84d099c99b5 3 - c:Ljava/util/Collection; mutex:Ljava/lang/Object;
java.util.Collections$SynchronizedList 9463efe38344107c 2 java.util.Collections$SynchronizedCollection
  list:Ljava/util/List;
java.util.Collections$SynchronizedMap 1b73f9094b4b397b 3 - m:Ljava/util/Map; mutex:Ljava/lang/Object;
java.util.Collections$SynchronizedNavigableMap 9b4bd8b2cd84ef7 2 java.util.Collections$SynchronizedSortedMap
  nm:Ljava/util/NavigableMap;
java.util.Collections$SynchronizedNavigableSet b3986dcd38b04d9a 2 java.util.Collections$SynchronizedSortedSet
  ns:Ljava/util/NavigableSet;
java.util.Collections$SynchronizedRandomAccessList 153e0c6c865668d2 2 java.util.Collections$SynchronizedList
java.util.Collections$SynchronizedSet 6c3c27902eedf3c 2 java.util.Collections$SynchronizedCollection
java.util.Collections$SynchronizedSortedMap 85e6b420b72e0c2f 2 java.util.Collections$SynchronizedMap
  sm:Ljava/util/SortedMap;
java.util.Collections$SynchronizedSortedSet 78adb1384b50312e 2 java.util.Collections$SynchronizedSet
  ss:Ljava/util/SortedSet;
java.util.Collections$UnmodifiableCollection 19420080cb5ef71e 2 - c:Ljava/util/Collection;
java.util.Collections$UnmodifiableList fc0f2531b5ec8e10 2 java.util.Collections$UnmodifiableCollection
  list:Ljava/util/List;
java.util.Collections$UnmodifiableMap f1a5a8fe74f50742 2 - m:Ljava/util/Map;
java.util.Collections$UnmodifiableMap$UnmodifiableEntrySet 6d0066a59f08eab5 2 java.util.Collections$UnmodifiableSet
java.util.Collections$UnmodifiableNavigableMap bc943925819d6a1b 2 java.util.Collections$UnmodifiableSortedMap
  nm:Ljava/util/NavigableMap;
java.util.Collections$UnmodifiableNavigableSet ac5a33cb96748287 2 java.util.Collections$UnmodifiableSortedSet
  ns:Ljava/util/NavigableSet;
java.util.Collections$UnmodifiableRandomAccessList dcb7e7951f48464f 2 java.util.Collections$UnmodifiableList
java.util.Collections$UnmodifiableSet 801d92d18f9b8055 2 java.util.Collections$UnmodifiableCollection
java.util.Collections$UnmodifiableSortedMap 85c82928d3a5d70a 2 java.util.Collections$UnmodifiableMap
  sm:Ljava/util/SortedMap;
java.util.Collections$UnmodifiableSortedSet bb98248febecef03 2 java.util.Collections$UnmodifiableSet
  ss:Ljava/util/SortedSet;
java.util.Date 686a81014b597419 3 -
java.util.EnumMap 65d7df7be907ca1 3 - keyType:Ljava/lang/Class;
java.util.EnumSet e03216acd8c29dd 2 -
java.util.EnumSet$SerializationProxy 507d3db7654cad1 2 - elementType:Ljava/lang/Class; elements:[Ljava/lang/Enum;
java.util.HashMap 507dac1c31660d1 3 - loadFactor:F threshold:I
java.util.HashSet ba44859596b8b734 3 -
java.util.Hashtable 13bb0f25214ae4b8 3 - loadFactor:F threshold:I
java.util.IdentityHashMap 71a2650133f2e980 3 - size:I
java.util.LinkedHashMap 34c04e5c106cc0fb 2 java.util.HashMap accessOrder:Z
java.util.LinkedHashSet d86cd75a95dd2a1e 2 java.util.HashSet
java.util.LinkedList c29535d4a608822 3 -
java.util.PriorityQueue 94da30b4fb3f82b1 3 - size:I comparator:Ljava/util/Comparator;
java.util.Properties 3912d07a70363e98 2 java.util.Hashtable defaults:Ljava/util/Properties;
java.util.Stack 10fe2ac2bb09861d 2 java.util.Vector
java.util.TreeMap cc1f63e2d256ae6 3 - comparator:Ljava/util/Comparator;
java.util.TreeSet dd98509395ed875b 3 -
java.util.UUID bc9903f7986d852f 2 - leastSigBits:J mostSigBits:J
java.util.Vector d9977d5b803baf01 3 - capacityIncrement:I elementCount:I elementData:[Ljava/lang/Object;
java.util.concurrent.ConcurrentHashMap 6499de129d87293d 3 - segmentMask:I segmentShift:I
  segments:[Ljava/util/concurrent/ConcurrentHashMap$Segment;
java.util.concurrent.ConcurrentHashMap$CollectionView 6499de129d87293d 2 -
  map:Ljava/util/concurrent/ConcurrentHashMap;
java.util.concurrent.ConcurrentHashMap$KeySetView 6499de129d87293d 2
  java.util.concurrent.ConcurrentHashMap$CollectionView value:Ljava/lang/Object;
java.util.concurrent.ConcurrentHashMap$Segment 1f364c905893293d 2 java.util.concurrent.locks.ReentrantLock
  loadFactor:F
java.util.concurrent.ConcurrentLinkedDeque c29535d4a608822 3 -
java.util.concurrent.ConcurrentLinkedQueue 2bafb2a664c708c 3 -
java.util.concurrent.ConcurrentSkipListMap 884675ae061146a7 3 - comparator:Ljava/util/Comparator;
java.util.concurrent.ConcurrentSkipListSet dd985079bdcff15b 2 - m:Ljava/util/concurrent/ConcurrentNavigableMap;
java.util.concurrent.CopyOnWriteArrayList 785d9fd546ab90c3 3 -
java.util.concurrent.CopyOnWriteArraySet 4bbdd092901569d7 2 - al:Ljava/util/concurrent/CopyOnWriteArrayList;
java.util.concurrent.LinkedBlockingDeque fa9ddc6ce257fe26 3 - capacity:I
  lock:Ljava/util/concurrent/locks/ReentrantLock; notEmpty:Ljava/util/concurrent/locks/Condition;
  notFull:Ljava/util/concurrent/locks/Condition;
java.util.concurrent.LinkedBlockingQueue a0304ca040e581f6 3 - capacity:I
  count:Ljava/util/concurrent/atomic/AtomicInteger; notEmpty:Ljava/util/concurrent/locks/Condition;
  notFull:Ljava/util/concurrent/locks/Condition; putLock:Ljava/util/concurrent/locks/ReentrantLock;
  takeLock:Ljava/util/concurrent/locks/ReentrantLock;
java.util.concurrent.LinkedTransferQueue d345336e1f5c3e9a 3 -
java.util.concurrent.PriorityBlockingQueue 4da73f88e6712814 3 - lock:Ljava/util/concurrent/locks/ReentrantLock;
  notEmpty:Ljava/util/concurrent/locks/Condition; q:Ljava/util/PriorityQueue;
java.util.concurrent.locks.AbstractOwnableSynchronizer 33dfafb9ad6d6fa9 2 -
java.util.concurrent.locks.AbstractQueuedSynchronizer 6655a843753f52e3 2
  java.util.concurrent.locks.AbstractOwnableSynchronizer state:I
java.util.concurrent.locks.ReentrantLock 6655a82c2cc86aeb 2 - sync:Ljava/util/concurrent/locks/ReentrantLock$Sync;
java.util.concurrent.locks.ReentrantLock$NonfairSync 658832e7537bbf0b 2
  java.util.concurrent.locks.ReentrantLock$Sync
java.util.concurrent.locks.ReentrantLock$Sync b81ea294aa445a7c 2
  java.util.concurrent.locks.AbstractQueuedSynchronizer
"""
