"""Java's ``hashCode``, the order of its maps, and its equality of keys.

A ``HashMap`` is written in Java's order, which follows from the hash codes. Keys and elements are stored in Python's
dicts and sets without loss and without trust. :class:`JavaKey` handles three differences:
- Python cannot hash some keys.
- Some keys are equal in Python but not in Java (``1``, ``1L``, ``1.0``, ``true``).
- Crafted keys with the same hash would make a dict quadratic.

The order of a ``HashMap`` with a table of 16 buckets, for the keys "b", "a" and "r", in this order of insertion::

    hashCode            "b" = 98    "a" = 97    "r" = 114     s[0] * 31^(n-1) + ... + s[n-1]
    h ^ h >>> 16             98          97          114      HashMap.hash: the high bits take part
    & 15                      2           1            2      bucket
    written                 "a" (bucket 1), "b", "r" (bucket 2, in the order of insertion)
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import math
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from pravega_serde.java.descriptors import ReadState
from pravega_serde.java.model import JavaClass, JavaEnum, JavaObject
from pravega_serde.java.protocol import to_units
from pravega_serde.java.values import (
    BigDecimal,
    BigInteger,
    Boolean,
    Byte,
    Character,
    Double,
    Float,
    Integer,
    JavaKey,
    Long,
    NanoDatetime,
    NanoDuration,
    NanoTime,
    Short,
    String,
)

_MASK: Final = 0xFFFFFFFF
_LONG_STRING: Final = 64
"""Minimum characters for which NumPy is faster than a loop."""

_MAXIMUM_CAPACITY: Final = 1 << 30
_DEFAULT_CAPACITY: Final = 16
_MAX_INT: Final = (1 << 31) - 1


# The functions below are Java's hashCode methods of the named classes, as unsigned 32-bit numbers.


def _of_string(text: str) -> int:
    return _string_hash(text) if len(text) < _LONG_STRING else _long_string_hash(text)


@functools.lru_cache(maxsize=4096)
def _string_hash(text: str) -> int:
    # String: s[0] * 31^(n-1) + s[1] * 31^(n-2) + ... + s[n-1] over UTF-16 code units, modulo 2^32.
    units = to_units(text)
    result = 0
    for at in range(0, len(units), 2):
        result = result * 31 + units[at] + (units[at + 1] << 8) & _MASK
    return result


def _long_string_hash(text: str) -> int:
    units = np.frombuffer(to_units(text), "<u2").astype(np.uint32)
    # The same sum as one product with the powers of 31; uint32 overflows as Java's int does.
    powers = np.full(len(units), 31, np.uint32)
    powers[-1] = 1
    return int((units * powers[::-1].cumprod(dtype=np.uint32)[::-1]).sum(dtype=np.uint32))


def _of_int(value: int) -> int:
    if -(1 << 31) <= value < 1 << 31:
        return value & _MASK
    return _of_long(value) if -(1 << 63) <= value < 1 << 63 else _of_big(value)


def _of_long(value: int) -> int:
    # Long: the halves, one xor the other.
    return (value ^ value >> 32) & _MASK


def _of_double(value: float) -> int:
    # Double: as Long, of doubleToLongBits, which has one NaN for all.
    bits = 0x7FF8000000000000 if math.isnan(value) else int(struct.unpack(">Q", struct.pack(">d", value))[0])
    return (bits ^ bits >> 32) & _MASK


def _of_float(value: float) -> int:
    return 0x7FC00000 if math.isnan(value) else int(struct.unpack(">I", struct.pack(">f", value))[0])


def _of_big(value: int) -> int:
    # BigInteger: as String, over the 32-bit words of the magnitude; then times the sign.
    magnitude, result = abs(value), 0
    raw = magnitude.to_bytes((magnitude.bit_length() + 31) // 32 * 4, "big")
    for (word,) in struct.iter_unpack(">I", raw):
        result = (31 * result + word) & _MASK
    return (-result if value < 0 else result) & _MASK


def _of_uuid(value: uuid.UUID) -> int:
    # UUID: as Long, of the halves xored.
    both = value.int >> 64 ^ value.int & (1 << 64) - 1
    return (both >> 32 ^ both) & _MASK


_HASHES: Final[dict[type[Any], Callable[[Any], int]]] = {
    type(None): lambda _: 0,
    bool: lambda value: 1231 if value else 1237,
    Boolean: lambda value: 1231 if value else 1237,
    str: _of_string,
    String: _of_string,
    Character: ord,
    int: _of_int,
    Integer: _of_int,
    Short: _of_int,
    Byte: _of_int,
    Long: _of_long,
    BigInteger: _of_big,
    float: _of_double,
    Double: _of_double,
    Float: _of_float,
    uuid.UUID: _of_uuid,
}


def java_hash(value: Any) -> int | None:
    """Return the unsigned ``hashCode`` of a value, or None if only Java can compute it (enums, objects)."""
    if type(value) is JavaKey:
        value = value.value
    function = _HASHES.get(type(value))
    return None if function is None else function(value)


def table_order(keys: Iterable[Any], capacity: int) -> list[int] | None:
    """Return the positions of the keys in the order of a ``HashMap`` of that capacity.

    The keys are inserted in the given order. Return None if the hash of a key is unknown: Java accepts any order,
    because it rehashes on reading.
    """
    buckets = []
    mask = capacity - 1
    for key in keys:
        hashed = java_hash(key)
        if hashed is None:
            return None
        # HashMap.hash spreads the high bits, and the table's mask takes the low ones.
        buckets.append((hashed ^ hashed >> 16) & mask)
    # Sorting is stable, as a bucket's list is: entries of one bucket stay in the order of insertion.
    return sorted(range(len(buckets)), key=buckets.__getitem__)


def natural_order(keys: list[Any]) -> list[Any]:
    """Return the keys in the order of ``compareTo``, or unchanged if that is unknown (enums, objects, mixed types).

    ``TreeMap`` does not sort on reading: it uses the order of the stream as the order of the keys.
    """
    try:
        return sorted(keys, key=_sort_key)
    except TypeError:
        return keys


def _sort_key(key: Any) -> Any:
    if type(key) is JavaKey:
        key = key.value
    if isinstance(key, str):
        return key.encode("utf-16-be", "surrogatepass")
    if isinstance(key, float):
        return math.isnan(key), key, math.copysign(1, key)
    if isinstance(key, uuid.UUID):
        return struct.unpack(">qq", key.bytes)
    return key


def _table_size(capacity: int) -> int:
    """Return the result of ``HashMap.tableSizeFor``."""
    return 1 if capacity <= 1 else min(1 << (capacity - 1).bit_length(), _MAXIMUM_CAPACITY)


def map_capacity(size: int, load_factor: float) -> int:
    """Return the table size of a ``HashMap`` that Java has read (``HashMap.readObject``), and will write again."""
    if size == 0:
        return _DEFAULT_CAPACITY
    factor = np.float32(min(max(0.25, load_factor), 4.0))
    needed = np.float32(size) / factor + np.float32(1)
    return _DEFAULT_CAPACITY if needed < _DEFAULT_CAPACITY else _table_size(int(needed))


def map_threshold(size: int, load_factor: float) -> int:
    """Return the number of entries at which that table would grow. 0 for an empty map, which has no table yet."""
    if size == 0:
        return 0
    limit = float(np.float32(map_capacity(size, load_factor)) * np.float32(min(max(0.25, load_factor), 4.0)))
    return int(limit) if limit < _MAXIMUM_CAPACITY else _MAX_INT


def set_capacity(size: int, load_factor: float) -> int:
    """Return the table size of a ``HashSet`` that Java has read (``HashSet.readObject``)."""
    factor = np.float32(min(max(0.25, load_factor), 4.0))
    capacity = _table_size(int(np.float32(size) * min(np.float32(1) / factor, np.float32(4))))
    # HashSet.readObject requests too small a table, so the table grows while it is filled (HashMap.resize).
    threshold = int(np.float32(capacity) * factor)
    while threshold < size and capacity < _MAXIMUM_CAPACITY:
        capacity *= 2
        threshold = threshold * 2 if capacity > _DEFAULT_CAPACITY else int(np.float32(capacity) * factor)
    return capacity


_KEY_BYTES: Final = 160
"""Memory of a wrapped key in bytes. In a stream, it has 3 bytes."""

_KEYED: Final[frozenset[type[Any]]] = frozenset(
    {str, String, Character, bool, type(None), int, Integer, Long, Short, Byte, JavaObject}
)
"""Types without many values of one hash: the hash is keyed, too short for that, or the identity."""

_HASHABLE: Final[frozenset[type[Any]]] = _KEYED | {
    Boolean,
    float,
    Double,
    Float,
    dt.date,
    dt.time,
    dt.datetime,
    dt.timedelta,
    NanoDatetime,
    NanoDuration,
    NanoTime,
    uuid.UUID,
    JavaEnum,
    JavaClass,
}

_FEW: Final = 512
"""Maximum keys of a dict that is fast enough even if all have one hash."""

_MOST_COLLISIONS: Final = 32
"""Maximum keys of one hash in a dict. Further ones are wrapped. Normal keys stay far below."""

_LONGEST_NUMBER: Final = 64
"""Maximum bits of a number that is hashed unwrapped. Hashes of numbers are not keyed, and long numbers cost more."""


def put_all(target: dict[Any, Any], keys: Sequence[Any], values: Iterable[Any], reader: ReadState) -> None:
    """Fill an empty dict with entries. Keys that differ in Java stay separate; equal ones replace each other."""
    kinds = set(map(type, keys))
    if kinds <= _HASHABLE and (len(keys) <= _FEW or kinds <= _KEYED):
        values = list(values)
        target.update(zip(keys, values, strict=True))
        if len(target) == len(keys):
            return
        # Some keys were equal in Python. Separate those that differ in Java.
        target.clear()
    put_each(target, keys, values, reader)


def put_each(
    target: dict[Any, Any], keys: Sequence[Any], values: Iterable[Any], reader: ReadState, *, by_identity: bool = False
) -> None:
    """Fill an empty dict entry by entry, like :func:`put_all`.

    With ``by_identity``, only the same object is an equal key.
    """
    known: dict[Any, Any] = {}
    hashes: Counter[int] = Counter()
    for key, value in zip(keys, values, strict=True):
        exact = (id(key),) if by_identity or not _hashable(key) else _exact(key)
        slot = known.get(exact)
        if slot is None:
            slot = key
            if not _hashable(key) or hashes[hash(key)] >= _MOST_COLLISIONS or key in target:
                reader.charge(_KEY_BYTES)
                slot = JavaKey(key)
            hashes[hash(slot)] += 1
            known[exact] = slot
        target[slot] = value


def _hashable(key: Any) -> bool:
    kind = type(key)
    if kind in _HASHABLE:
        return True
    if kind is BigInteger:
        return bool(key.bit_length() <= _LONGEST_NUMBER)
    return kind is BigDecimal and len(key.as_tuple().digits) < _LONGEST_NUMBER // 4


def _exact(key: Any) -> tuple[Any, ...]:
    """Return a value that is equal for two keys exactly if Java's ``equals`` is true.

    Only for types that compare by value.
    """
    # 0.0 and -0.0 are two keys in Java, NaN is one.
    if isinstance(key, float):
        return type(key), struct.pack(">d", key)
    # BigDecimal.equals compares the scale as well: 1.0 is not 1.00.
    if isinstance(key, decimal.Decimal):
        return decimal.Decimal, key.as_tuple()
    # A second object of a shared scalar has a separate type (see values), and is the same key.
    return _SAME.get(type(key), type(key)), key


_SAME: Final[dict[type[Any], type[Any]]] = {Integer: int, String: str, Boolean: bool}
