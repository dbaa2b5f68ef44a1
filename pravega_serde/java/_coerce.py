"""Natural values for declared Java types: an ``int`` in a field of type ``Long`` is written as ``Long``.

Without that, the default box of a Python value would make Java fail with a ClassCastException. Only plain Python
values are adapted; values that remember their Java type are left as they are.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pravega_serde.errors import SerializationError
from pravega_serde.java import _boxes as box
from pravega_serde.java import _temporal as temporal
from pravega_serde.java._arrays import array_class
from pravega_serde.java._containers import JavaArray, JavaList, JavaMap, JavaSet
from pravega_serde.java._jdk_table import array_descriptor

__all__ = ["coerce", "is_coerced"]

_NUMPY: Final = {"C": "u2", "D": "f8", "F": "f4", "I": "i4", "J": "i8", "S": "i2", "Z": "?"}


def coerce(value: Any, signature: str) -> Any:
    """The value in the form that a field or array of this type needs; itself, if that is what it is."""
    if value is None:
        return None
    convert = _BY_TYPE.get(signature)
    if convert is not None:
        made = convert.get(type(value))
        return value if made is None else _made(made, value, signature)
    # A list in a field of an array type; a list elsewhere is an ArrayList.
    if signature.startswith("[") and type(value) in (list, tuple):
        return _array(value, signature)
    return value


def is_coerced(signature: str) -> bool:
    """Whether values of fields of this type may need another form."""
    return signature in _BY_TYPE or signature.startswith("[")


def _made(make: Callable[[Any], Any], value: Any, signature: str) -> Any:
    try:
        return make(value)
    except (ArithmeticError, ValueError, TypeError) as error:
        msg = f"{value!r} cannot be written as {signature}: {error}"
        raise SerializationError(msg) from error


def _array(value: Any, signature: str) -> Any:
    if signature == "[B":
        return _made(bytes, value, signature)
    code = _NUMPY.get(signature[1:])
    if code is None:
        return JavaArray(value, array_descriptor(signature.replace("/", ".")))
    return _made(lambda items: np.array(items, dtype=np.dtype(code)), value, signature)


def _utc(kind: type[Any]) -> Callable[[dt.datetime], dt.datetime]:
    def make(value: dt.datetime) -> Any:
        at = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        made = kind.combine(at.date(), at.timetz())
        beyond = getattr(value, "nanos_beyond", 0)
        return kind.of(made, beyond) if beyond and issubclass(kind, temporal.NanoDatetime) else made

    return make


def _instant(value: dt.datetime) -> dt.datetime:
    if value.tzinfo is None or value.tzinfo is dt.UTC:
        return value
    return _utc(type(value))(value)


def _offset(value: dt.datetime) -> dt.datetime:
    offset = value.utcoffset()
    if offset is None:
        msg = "it has no offset"
        raise ValueError(msg)
    return value.replace(tzinfo=temporal.ZoneOffset(offset // dt.timedelta(seconds=1)))


def _named(kind: type[Any], name: str) -> Callable[[Any], Any]:
    return lambda value: kind(value, name)


def _within_32_bits(value: int) -> int:
    """The number itself: a plain one that is an object of the stream twice has to stay one object."""
    if not -(1 << 31) <= value < 1 << 31:
        msg = "it is too large"
        raise ValueError(msg)
    return value


_DATETIMES: Final = (dt.datetime, temporal.NanoDatetime)
_LISTS: Final = ("LinkedList", "Vector", "Stack", "concurrent/CopyOnWriteArrayList")
_MAPS: Final = ("LinkedHashMap", "TreeMap", "SortedMap", "NavigableMap", "Hashtable", "Properties")
_CONCURRENT: Final = ("ConcurrentHashMap", "ConcurrentMap")
_SETS: Final = ("LinkedHashSet", "TreeSet", "SortedSet", "NavigableSet")
_CLASS_OF: Final = {"Sorted": "java.util.Tree", "Navigable": "java.util.Tree"}


def _concrete(name: str) -> str:
    """The class to make for a declared class or interface of ``java.util``."""
    for prefix, tree in _CLASS_OF.items():
        if name.startswith(prefix):
            return tree + name.removeprefix(prefix)
    return "java.util." + name.replace("/", ".")


_BY_TYPE: Final[dict[str, dict[type[Any], Callable[[Any], Any]]]] = {
    "Ljava/lang/Long;": {int: box.Long, box.Integer: box.Long},
    "Ljava/lang/Short;": {int: box.Short},
    "Ljava/lang/Byte;": {int: box.Byte},
    "Ljava/lang/Float;": {float: box.Float, int: box.Float},
    "Ljava/lang/Double;": {int: float},
    "Ljava/lang/Integer;": {bool: int, int: _within_32_bits},
    "Ljava/lang/Character;": {str: box.Character},
    "Ljava/math/BigInteger;": {int: box.BigInteger},
    "Ljava/math/BigDecimal;": {int: decimal.Decimal},
    "Ljava/util/Date;": dict.fromkeys(_DATETIMES, _utc(temporal.Date)),
    "Ljava/sql/Timestamp;": dict.fromkeys(_DATETIMES, _utc(temporal.Timestamp)),
    "Ljava/time/Instant;": dict.fromkeys(_DATETIMES, _instant),
    "Ljava/time/OffsetDateTime;": dict.fromkeys(_DATETIMES, _offset),
    **{f"Ljava/util/{name};": {list: _named(JavaList, _concrete(name))} for name in _LISTS},
    **{f"Ljava/util/{name};": {dict: _named(JavaMap, _concrete(name))} for name in _MAPS},
    **{
        f"Ljava/util/concurrent/{name};": {dict: _named(JavaMap, "java.util.concurrent.ConcurrentHashMap")}
        for name in _CONCURRENT
    },
    **{f"Ljava/util/{name};": dict.fromkeys((set, frozenset), _named(JavaSet, _concrete(name))) for name in _SETS},
    "Ljava/util/Collection;": {},
}
assert array_class(np.empty(0, np.int32)) == "[I"
