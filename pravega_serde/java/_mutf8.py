"""Java's modified UTF-8: NUL is ``C0 80``, astral characters are two surrogates of three bytes each.

A Python string stands for a Java string: astral characters are joined, lone surrogates are kept as they are, so that
every Java string has exactly one Python string and back.
"""

from __future__ import annotations

import re
from typing import Final

from pravega_serde.errors import DeserializationError

__all__ = ["decode", "encode", "from_units", "to_units"]

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_FIRST_ASTRAL: Final = "\U00010000"


def decode(raw: bytes) -> str:
    """Text of modified UTF-8, as ``DataInputStream.readUTF`` reads it; overlong forms are accepted as there."""
    if raw.isascii():
        return raw.decode("ascii")
    try:
        text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return from_units(_code_units(raw))
    if max(text) >= _FIRST_ASTRAL:
        msg = "malformed modified UTF-8: a four-byte sequence"
        raise DeserializationError(msg)
    return _PAIR.sub(_join, text) if b"\xed" in raw else text


def encode(text: str) -> bytes:
    """Modified UTF-8 of a text, as ``DataOutputStream.writeUTF`` writes it, without its length."""
    if text.isascii():
        raw = text.encode("ascii")
    else:
        if max(text) >= _FIRST_ASTRAL:
            text = _ASTRAL.sub(_split, text)
        raw = text.encode("utf-8", "surrogatepass")
    return raw.replace(b"\0", b"\xc0\x80") if b"\0" in raw else raw


def to_units(text: str) -> bytes:
    """UTF-16 code units, little-endian: what Java's ``char``, ``length`` and ``hashCode`` see."""
    return text.encode("utf-16-le", "surrogatepass")


def from_units(units: bytes) -> str:
    """Text of UTF-16 code units, little-endian; lone surrogates stay."""
    return units.decode("utf-16-le", "surrogatepass")


def _join(pair: re.Match[str]) -> str:
    both = pair.group()
    return chr(0x10000 + ((ord(both[0]) & 0x3FF) << 10) + (ord(both[1]) & 0x3FF))


def _split(astral: re.Match[str]) -> str:
    offset = ord(astral.group()) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


def _code_units(raw: bytes) -> bytes:
    """The loop of ``ObjectInputStream.readUTFChar``, for overlong forms and to say where malformed input is."""
    units, at, size = bytearray(), 0, len(raw)
    while at < size:
        first = raw[at]
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
