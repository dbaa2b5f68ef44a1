"""Putting Java's map keys and set elements into Python's dicts and sets without losing or trusting any.

Three differences are bridged with :class:`JavaKey`: keys that Python cannot hash; keys that are equal in Python but
not in Java (``1``, ``1L``, ``1.0``, ``true``); and crafted keys of one hash, which would make a dict quadratic.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pravega_serde.java import _boxes as box
from pravega_serde.java._containers import JavaKey
from pravega_serde.java._limits import KEY_BYTES
from pravega_serde.java._model import JavaClass, JavaEnum, JavaObject
from pravega_serde.java._state import ReadState
from pravega_serde.java._temporal import NanoDatetime, NanoDuration, NanoTime

__all__ = ["put_all", "put_each"]

_KEYED: Final[frozenset[type[Any]]] = frozenset(
    {str, box.String, box.Character, bool, type(None), int, box.Integer, box.Long, box.Short, box.Byte, JavaObject}
)
"""Types whose hashes cannot be made to collide: keyed, too short, or by identity."""

_HASHABLE: Final[frozenset[type[Any]]] = _KEYED | {
    box.Boolean,
    float,
    box.Double,
    box.Float,
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
"""Up to here even the worst dict is fast enough."""

_MOST_COLLISIONS: Final = 32
"""Keys of one hash that a dict gets; honest keys do not come near."""

_LONGEST_NUMBER: Final = 64
"""Bits of a number that is hashed as it is: hashes of numbers are not keyed, and their cost grows with the length."""


def put_all(target: dict[Any, Any], keys: Sequence[Any], values: Iterable[Any], reader: ReadState) -> None:
    """Fill an empty dict with entries."""
    kinds = set(map(type, keys))
    if kinds <= _HASHABLE and (len(keys) <= _FEW or kinds <= _KEYED):
        values = list(values)
        target.update(zip(keys, values, strict=True))
        if len(target) == len(keys):
            return
        # Some keys were equal in Python: find out which of them Java tells apart.
        target.clear()
    put_each(target, keys, values, reader)


def put_each(
    target: dict[Any, Any], keys: Sequence[Any], values: Iterable[Any], reader: ReadState, *, by_identity: bool = False
) -> None:
    """Fill an empty dict entry by entry, keeping apart what Java keeps apart; equal keys replace each other."""
    known: dict[Any, Any] = {}
    hashes: Counter[int] = Counter()
    for key, value in zip(keys, values, strict=True):
        exact = (id(key),) if by_identity or not _hashable(key) else _exact(key)
        slot = known.get(exact)
        if slot is None:
            slot = key
            if not _hashable(key) or hashes[hash(key)] >= _MOST_COLLISIONS or key in target:
                reader.charge(KEY_BYTES)
                slot = JavaKey(key)
            hashes[hash(slot)] += 1
            known[exact] = slot
        target[slot] = value


def _hashable(key: Any) -> bool:
    kind = type(key)
    if kind in _HASHABLE:
        return True
    if kind is box.BigInteger:
        return bool(key.bit_length() <= _LONGEST_NUMBER)
    return kind is box.BigDecimal and len(key.as_tuple().digits) < _LONGEST_NUMBER // 4


def _exact(key: Any) -> tuple[Any, ...]:
    """Equal for two keys exactly if they are equal in Java (apart from types that compare by identity)."""
    # 0.0 and -0.0 are two keys in Java, NaN is one.
    if isinstance(key, float):
        return type(key), struct.pack(">d", key)
    # BigDecimal.equals compares the scale as well: 1.0 is not 1.00.
    if isinstance(key, decimal.Decimal):
        return decimal.Decimal, key.as_tuple()
    # A second object of a shared scalar has a type of its own (see _boxes), and is the same key.
    return _SAME.get(type(key), type(key)), key


_SAME: Final[dict[type[Any], type[Any]]] = {box.Integer: int, box.String: str, box.Boolean: bool}
