"""Java object streams of about a mebibyte that want to be much more than that."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping
from typing import Final

from pravega_serde.java import JavaKey, JavaSerializer, dump_stream
from pravega_serde.java.jdk_classes import jdk_descriptor

__all__ = ["BOMBS"]

_SIZE: Final = (1 << 20) - 4096
_HEADER: Final = bytes.fromhex("aced0005")
#: The beginning of an ``Object[]``, up to its length.
_ARRAY: Final = _HEADER + bytes.fromhex("757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870")
#: The array's own descriptor and object take two handles, so the class of its first element has this one.
_CLASS: Final = bytes.fromhex("71007e0002")


def _descriptor(name: str) -> bytes:
    return dump_stream([jdk_descriptor(name)])[4:]


def _object(name: str) -> bytes:
    return b"\x73" + _descriptor(name)


def _repeated(first: bytes, again: bytes) -> bytes:
    """An ``Object[]`` of one object written in full and then as often as fits."""
    count = (_SIZE - len(_ARRAY) - 4 - len(first)) // len(again) + 1
    return _ARRAY + struct.pack(">i", count) + first + again * (count - 1)


def _many(name: str, data: bytes) -> bytes:
    return _repeated(_object(name) + data, b"\x73" + _CLASS + data)


def _deep_arrays() -> bytes:
    inner = bytes.fromhex("7571007e000000000001")
    return _ARRAY + struct.pack(">i", 1) + inner * (_SIZE // len(inner))


def _deep_lists() -> bytes:
    one = b"\0\0\0\1\x77\4\0\0\0\1"
    return _HEADER + _object("java.util.ArrayList") + (one + bytes.fromhex("7371007e0000")) * 60_000


def _colliding_numbers() -> bytes:
    """A HashMap of numbers that are one number modulo 2**61 - 1, and so have one hash in Python."""
    numbers = [(2**61 - 1) * (i + 2**70) for i in range(12_000)]
    return JavaSerializer().serialize({JavaKey(number): None for number in numbers})


def _colliding_strings() -> bytes:
    """A HashMap of strings that have one ``String.hashCode``."""
    strings = ("".join(pairs) for pairs in itertools.islice(itertools.product(("Aa", "BB"), repeat=16), 26_000))
    return JavaSerializer().serialize(dict.fromkeys(strings))


def _colliding_longs() -> bytes:
    """A HashMap of Longs whose halves are equal: ``Long.hashCode`` of each is 0."""
    return JavaSerializer().serialize({(i << 32) | i: None for i in range(1, 69_000)})


def _shared_list_in_vectors() -> bytes:
    """Many Vectors that share one long array."""
    array = b"\x75" + bytes.fromhex("71007e0000") + struct.pack(">i", 100_000) + b"\x70" * 100_000
    first = _object("java.util.Vector") + struct.pack(">ii", 0, 100_000) + array + b"\x78"
    data = struct.pack(">ii", 0, 100_000) + bytes.fromhex("71007e0005") + b"\x78"
    return _repeated(first, b"\x73" + _CLASS + data)


def _shared_magnitude() -> bytes:
    """Many BigIntegers that share one long byte array."""
    array = bytes.fromhex("757200025b42acf317f8060854e00200007870") + struct.pack(">i", 400_000) + b"\x7f" * 400_000
    numbers = struct.pack(">iiiii", -1, -1, -2, -2, 1)
    first = _object("java.math.BigInteger") + numbers + array + b"\x78"
    return _repeated(first, b"\x73" + _CLASS + numbers + bytes.fromhex("71007e0007") + b"\x78")


def _many_classes() -> bytes:
    classes = (b"\x72\0\x08" + f"c{i:07}".encode() + b"\0" * 11 + b"\x78\x70" for i in range(40_000))
    return _ARRAY + struct.pack(">i", 40_000) + b"".join(classes)


def _utf(length: int, text: bytes) -> bytes:
    return _HEADER + b"\x7c" + struct.pack(">q", length) + text


BOMBS: Final[Mapping[str, Callable[[], bytes]]] = {
    "nested arrays": _deep_arrays,
    "nested lists": _deep_lists,
    "colliding numbers": _colliding_numbers,
    "colliding strings": _colliding_strings,
    "colliding longs": _colliding_longs,
    "shared array": _shared_list_in_vectors,
    "shared magnitude": _shared_magnitude,
    "empty sets": lambda: _many("java.util.Collections$EmptySet", b""),
    "empty lists": lambda: _many("java.util.Collections$EmptyList", b""),
    "deques": lambda: _many("java.util.ArrayDeque", b"\x77\4\0\0\0\0\x78"),
    "hash sets": lambda: _many("java.util.HashSet", b"\x77\x0c\0\0\0\x10\x3f\x40\0\0\0\0\0\0\x78"),
    "maps": lambda: _many("java.util.LinkedHashMap", b"\x3f\x40\0\0\0\0\0\0\x77\x08\0\0\0\x10\0\0\0\0\x78\0"),
    "integers": lambda: _many("java.lang.Integer", b"\0\0\0\5"),
    "dates": lambda: _many("java.util.Date", b"\x77\x08" + b"\0" * 8 + b"\x78"),
    "uuids": lambda: _many("java.util.UUID", b"\1" * 16),
    "nulls": lambda: _repeated(b"\x70", b"\x70"),
    "empty strings": lambda: _repeated(b"\x74\0\0", b"\x74\0\0"),
    "short strings": lambda: _repeated(b"\x74\0\1x", b"\x74\0\1x"),
    "overlong text": lambda: _utf(_SIZE, b"\xc1\x81" * (_SIZE // 2)),
    "surrogates": lambda: _utf(3 * 340_000, b"\xed\xa0\x80" * 340_000),
    "classes": _many_classes,
    "ends of annotations": lambda: _HEADER + b"\x78" * _SIZE,
    "exceptions": lambda: _HEADER + b"\x7b" * _SIZE,
    "resets": lambda: _HEADER + b"\x79" * _SIZE,
    "blocks": lambda: _HEADER + _object("java.util.ArrayList") + b"\0\0\0\0" + b"\x77\0" * (_SIZE // 2),
    "copies": lambda: _HEADER + _object("java.util.Collections$CopiesList") + b"\x7f\xff\xff\xff\x70",
    "huge array": lambda: _HEADER + bytes.fromhex("757200025b494dba602676eab2a50200007870") + b"\x7f\xff\xff\xff",
    "huge text": lambda: _utf((1 << 62) + 1, b"x" * 9),
    "huge block": lambda: _HEADER + b"\x7a\x7f\xff\xff\xff" + b"x" * 9,
}
