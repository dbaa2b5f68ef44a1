"""Events that are one box, which are always the same bytes but for the value: no reader, no writer."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pravega_serde.java import _boxes as box
from pravega_serde.java._column_values import object_prefix
from pravega_serde.java._constants import STRUCT_CODES
from pravega_serde.java._jdk_table import jdk_descriptor

__all__ = ["QUICK_READS", "QUICK_WRITES", "QuickRead"]


class QuickRead(NamedTuple):
    """An event of one box."""

    prefix: bytes
    """All but the value."""
    start: int
    """Length of the prefix."""
    unpack: Callable[[bytes, int], tuple[Any, ...]]
    """Reads the value."""
    make: Callable[[Any], Any]
    """Puts it into its Python type."""


def _itself(value: Any) -> Any:
    return value


_KINDS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "Boolean": ("Z", _itself),
    "Byte": ("B", box.Byte),
    "Double": ("D", _itself),
    "Float": ("F", box.Float),
    "Integer": ("I", _itself),
    "Long": ("J", box.Long),
    "Short": ("S", box.Short),
}
_RANGES: Final = {"B": 8, "S": 16, "I": 32, "J": 64}


def _prefix(name: str) -> bytes:
    descriptor = jdk_descriptor(f"java.lang.{name}")
    assert descriptor is not None
    return object_prefix(descriptor)


def _read(name: str) -> QuickRead:
    code, make = _KINDS[name]
    prefix = _prefix(name)
    return QuickRead(prefix, len(prefix), struct.Struct(">" + STRUCT_CODES[code]).unpack_from, make)


def _length(name: str) -> int:
    return len(_prefix(name)) + struct.calcsize(STRUCT_CODES[_KINDS[name][0]])


QUICK_READS: Final = {_length(name): _read(name) for name in _KINDS}
"""Length of an event -> the box that it may be; the lengths are all different."""
assert len(QUICK_READS) == len(_KINDS)


def _write(name: str) -> Callable[[Any], bytes | None]:
    prefix, code = _prefix(name), _KINDS[name][0]
    pack = struct.Struct(">" + STRUCT_CODES[code]).pack
    limit = 1 << _RANGES.get(code, 64) - 1
    if code in _RANGES:
        return lambda value: prefix + pack(value) if -limit <= value < limit else None
    return lambda value: prefix + pack(value)


_int, _long = _write("Integer"), _write("Long")
QUICK_WRITES: Final[dict[type[Any], Callable[[Any], bytes | None]]] = {
    bool: _write("Boolean"),
    int: lambda value: _int(value) or _long(value),
    float: _write("Double"),
    box.Byte: _write("Byte"),
    box.Float: _write("Float"),
    box.Long: _long,
    box.Short: _write("Short"),
}
"""Python type -> its event, or None: the writer will say why not."""
