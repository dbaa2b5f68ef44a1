"""Bytes of the Java Object Serialization Stream Protocol: constants, modified UTF-8, arrays of primitives.

Names and values are those of ``java.io.ObjectStreamConstants`` (Java 17). The grammar is in section 6.4 of the
specification. A Python string represents a Java string: astral characters are joined, and lone surrogates are kept.
Every Java string has exactly one Python string, and the reverse.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError

STREAM_HEADER: Final = b"\xac\xed\x00\x05"
"""Magic and version. Version 5 is the only released one."""

TC_NULL: Final = 0x70
TC_REFERENCE: Final = 0x71
TC_CLASSDESC: Final = 0x72
TC_OBJECT: Final = 0x73
TC_STRING: Final = 0x74
TC_ARRAY: Final = 0x75
TC_CLASS: Final = 0x76
TC_BLOCKDATA: Final = 0x77
TC_ENDBLOCKDATA: Final = 0x78
TC_RESET: Final = 0x79
TC_BLOCKDATALONG: Final = 0x7A
TC_EXCEPTION: Final = 0x7B
TC_LONGSTRING: Final = 0x7C
TC_PROXYCLASSDESC: Final = 0x7D
TC_ENUM: Final = 0x7E

SC_WRITE_METHOD: Final = 0x01
SC_SERIALIZABLE: Final = 0x02
SC_EXTERNALIZABLE: Final = 0x04
SC_BLOCK_DATA: Final = 0x08
SC_ENUM: Final = 0x10

BASE_HANDLE: Final = 0x7E0000
"""``baseWireHandle``: handle of the first object of a stream."""

MAX_BLOCK: Final = 1024
"""``BlockDataOutputStream.MAX_BLOCK_SIZE``: size at which Java splits its block data, in bytes."""

SHORT_BLOCK: Final = 255
"""Longest block that has a one-byte length (TC_BLOCKDATA), in bytes."""

SHORT_STRING: Final = 65535
"""Longest TC_STRING, in bytes of modified UTF-8."""

NULL_EVENT: Final = STREAM_HEADER + bytes([TC_NULL])
STRING_EVENT: Final = STREAM_HEADER + bytes([TC_STRING])
"""Start of an event that is one short string; its length (two bytes) and its text follow."""

PRIMITIVES: Final = "BCDFIJSZ"
"""Type codes of the primitive field types."""

STRUCT_CODES: Final = {"B": "b", "C": "H", "D": "d", "F": "f", "I": "i", "J": "q", "S": "h", "Z": "?"}
"""Type code of Java -> format character of :mod:`struct`, big-endian."""

DTYPES: Final = {
    code: np.dtype(name)
    for code, name in zip(PRIMITIVES, (">i1", ">u2", ">f8", ">f4", ">i4", ">i8", ">i2", ">u1"), strict=True)
}
"""Type code of Java -> NumPy's type of its bytes in a stream. A boolean is a byte, and any except 0 is true."""

NATIVE: Final = {code: np.dtype("?") if code == "Z" else dtype.newbyteorder("=") for code, dtype in DTYPES.items()}
"""Type code of Java -> NumPy's type of its values in memory."""


_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_FIRST_ASTRAL: Final = "\U00010000"


def decode_utf(raw: bytes) -> str:
    """Return the text of modified UTF-8, like ``DataInputStream.readUTF``, which accepts overlong forms too.

    Raises :class:`DeserializationError` for malformed bytes.
    """
    if raw.isascii():
        return raw.decode("ascii")
    # Python's decoder is used unless it rejects the bytes because of overlong forms other than NUL's.
    try:
        text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return from_units(_code_units(raw))
    if max(text) >= _FIRST_ASTRAL:
        msg = "malformed modified UTF-8: a four-byte sequence"
        raise DeserializationError(msg)
    # Surrogates are three bytes that begin with ED. Without such a byte, there is nothing to join.
    return _PAIR.sub(_join, text) if b"\xed" in raw else text


def encode_utf(text: str) -> bytes:
    """Return the modified UTF-8 of a text, like ``DataOutputStream.writeUTF``, without its length."""
    if text.isascii():
        raw = text.encode("ascii")
    else:
        if max(text) >= _FIRST_ASTRAL:
            text = _ASTRAL.sub(_split, text)
        raw = text.encode("utf-8", "surrogatepass")
    return raw.replace(b"\0", b"\xc0\x80") if b"\0" in raw else raw


def to_units(text: str) -> bytes:
    """Return the UTF-16 code units, little-endian, as in Java's ``char``, ``length`` and ``hashCode``."""
    return text.encode("utf-16-le", "surrogatepass")


def from_units(units: bytes) -> str:
    """Return the text of UTF-16 code units, little-endian. Lone surrogates stay."""
    return units.decode("utf-16-le", "surrogatepass")


def _join(pair: re.Match[str]) -> str:
    # Ten bits of the code point, less 0x10000, are in each half of a surrogate pair (Unicode 3.9, D91).
    both = pair.group()
    return chr(0x10000 + ((ord(both[0]) & 0x3FF) << 10) + (ord(both[1]) & 0x3FF))


def _split(astral: re.Match[str]) -> str:
    offset = ord(astral.group()) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


def _code_units(raw: bytes) -> bytes:
    """Return the UTF-16 code units of modified UTF-8.

    The loop is that of ``ObjectInputStream.readUTFChar``, overlong forms included. Raises :class:`DeserializationError`
    with the position of a malformed sequence.
    """
    units, at, size = bytearray(), 0, len(raw)
    while at < size:
        first = raw[at]
        # 0xxxxxxx, 110xxxxx 10xxxxxx or 1110xxxx 10xxxxxx 10xxxxxx: Java checks only these bits.
        length = 1 if first < 0x80 else 2 if first & 0xE0 == 0xC0 else 3 if first & 0xF0 == 0xE0 else 0
        tail = raw[at + 1 : at + length]
        if length == 0 or len(tail) != length - 1 or any(byte & 0xC0 != 0x80 for byte in tail):
            msg = f"malformed modified UTF-8 at byte {at} of a string"
            raise DeserializationError(msg)
        unit = first if length == 1 else first & (0x1F if length == 2 else 0x0F)
        for byte in tail:
            unit = unit << 6 | byte & 0x3F
        units += unit.to_bytes(2, "little")
        at += length
    return bytes(units)


_ARRAY_CLASSES: Final = {dtype: f"[{code}" for code, dtype in NATIVE.items()} | {np.dtype("u1"): "[B"}


def read_primitives(name: str, data: bytes, pos: int, count: int) -> tuple[Any, int]:
    """Return the array of ``count`` elements at ``pos``, and the position after it.

    ``byte[]`` is ``bytes``, and others are NumPy arrays. ``name`` is the array's class, ``[I``. Arrays of objects are
    read elsewhere. Raises :class:`MalformedError`.
    """
    if name == "[B":
        return data[pos : pos + count], pos + count
    wire = DTYPES.get(name[1:])
    if wire is None:
        msg = f"unknown array class {name!r}"
        raise MalformedError(msg)
    end = pos + count * wire.itemsize
    if end > len(data):
        msg = f"the bytes end inside an array of {count} elements at byte {pos}"
        raise MalformedError(msg)
    if wire.itemsize == 1:  # any byte except 0 is true, and NumPy must receive only 0 and 1
        return np.frombuffer(data, np.uint8, count, pos) != 0, end
    return np.frombuffer(data, wire, count, pos).astype(NATIVE[name[1:]]), end


def array_class(array: np.ndarray[Any, Any]) -> str | None:
    """Return the Java class of a one-dimensional array, or None if Java has none (unsigned integers, objects)."""
    return _ARRAY_CLASSES.get(array.dtype.newbyteorder("=")) if array.ndim == 1 else None


def wire_bytes(array: np.ndarray[Any, Any], name: str) -> bytes:
    """Return the elements of an array as Java writes them. ``name`` is its class, ``[I``."""
    return array.tobytes() if name == "[B" else array.astype(DTYPES[name[1:]]).tobytes()
