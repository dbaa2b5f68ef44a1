"""Pravega's VersionedSerializer: its frame, and numbers of variable width (RevisionDataOutputStream.java).

A frame is ``format, version, count``, one byte each, then for each revision ``its number, i32 length | body``. Later
writers add revisions, and still write the revisions that earlier readers know.

The first bits of a compact number's first byte are the code of its width. The value follows, big-endian. Readers accept
wider forms than needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

COMPACT_INT_MAX: Final = 0x3FFF_FFFF - 1
COMPACT_LONG_MAX: Final = 0x3FFF_FFFF_FFFF_FFFF - 1
COMPACT_SIGNED_MAX: Final = 0x1FFF_FFFF_FFFF_FFFF - 1

_MAX_REVISIONS: Final = 127
_WIDTHS: Final = (1, 2, 4, 8)  # by the two bits that encode the width


def _put(value: int, *, code_bits: int, sign: int = 0) -> bytes:
    """Return ``value`` after ``code_bits`` bits.

    These are the sign, if there are three bits, and the code of the width.
    """
    for code, width in enumerate(_WIDTHS):
        value_bits = 8 * width - code_bits
        if value < 1 << value_bits:
            return ((sign << 2 | code) << value_bits | value).to_bytes(width, "big")
    raise ValueError(f"{value} is too large for a compact number")


def put_compact_int(value: int) -> bytes:
    """Return a count in 1, 2 or 4 bytes. Raises ValueError outside [0, COMPACT_INT_MAX]."""
    if not 0 <= value <= COMPACT_INT_MAX:
        raise ValueError(f"{value} is outside the range of a compact int")
    # The top bits encode the width: 0 one byte, 10 two, 11 four.
    if value < 0x80:
        return value.to_bytes(1, "big")
    return (value | 0x8000).to_bytes(2, "big") if value < 0x4000 else (value | 0xC000_0000).to_bytes(4, "big")


def put_compact_long(value: int) -> bytes:
    """Return a non-negative number in 1, 2, 4 or 8 bytes. Raises ValueError outside [0, COMPACT_LONG_MAX]."""
    if not 0 <= value <= COMPACT_LONG_MAX:
        raise ValueError(f"{value} is outside the range of a compact long")
    return _put(value, code_bits=2)


def put_compact_signed(value: int) -> bytes:
    """Return a number in 1, 2, 4 or 8 bytes, a negative one as its complement.

    Raises ValueError for a number larger than COMPACT_SIGNED_MAX, also as a complement.
    """
    if not ~COMPACT_SIGNED_MAX <= value <= COMPACT_SIGNED_MAX:
        raise ValueError(f"{value} is outside the range of a compact signed long")
    return _put(~value, code_bits=3, sign=1) if value < 0 else _put(value, code_bits=3)


def put_revisions(bodies: Iterable[bytes], version: int = 0) -> bytes:
    """Return the revisions of a version, as :meth:`CompactReader.revisions` reads them."""
    parts = [number.to_bytes(1, "big") + len(body).to_bytes(4, "big") + body for number, body in enumerate(bodies)]
    return bytes((version, len(parts))) + b"".join(parts)


def put_versioned(bodies: Iterable[bytes], version: int = 0) -> bytes:
    """Return a frame, as :meth:`CompactReader.versioned` reads it."""
    return b"\0" + put_revisions(bodies, version)


class CompactReader:
    """Reader of consecutive numbers and strings. Raises ValueError if the bytes end too early."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        """Number of bytes not read yet."""
        return len(self._data) - self._position

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if not 0 <= count <= self.remaining:
            raise ValueError(f"{count - self.remaining} bytes are missing at its end, byte {len(self._data)}")
        start = self._position
        self._position += count
        return self._data[start : self._position]

    def fixed(self, width: int) -> int:
        """Return the unsigned number of the next ``width`` bytes."""
        return int.from_bytes(self.take(width), "big")

    def utf(self) -> str:
        """Return a string with its length before it in two bytes."""
        return self.take(self.fixed(2)).decode()

    def versioned(self, newest: int = 0) -> tuple[int, list[CompactReader]]:
        """Read the next frame to its end. Return its version and the bodies of its revisions.

        There may be more revisions than the caller knows. Raises ValueError for a version after ``newest``.
        """
        if (form := self.fixed(1)) != 0:
            raise ValueError(f"unknown format {form}")
        return self.revisions(newest)

    def revisions(self, newest: int = 0) -> tuple[int, list[CompactReader]]:
        """Read a frame without its first byte, as in frames with a type in front. See :meth:`versioned`."""
        version, count = self.fixed(1), self.fixed(1)
        if version > newest or not 1 <= count <= _MAX_REVISIONS:
            raise ValueError(f"unknown version {version} with {count} revisions")
        return version, [self._revision(number) for number in range(count)]

    def _revision(self, expected: int) -> CompactReader:
        number = self.fixed(1)
        if number != expected:
            raise ValueError(f"found revision {number}, expected revision {expected}")
        return CompactReader(self.take(self.fixed(4)))

    def _number(self, width: int, code_bits: int) -> int:
        first = self.fixed(1) & (0xFF >> code_bits)  # without the code
        return first << 8 * (width - 1) | self.fixed(width - 1)

    def _peek(self) -> int:
        if not self.remaining:
            self.take(1)
        return self._data[self._position]

    def compact_int(self) -> int:
        """Return a count that :func:`put_compact_int` wrote."""
        first = self._peek()
        if first < 0x80:
            return self.fixed(1)
        return self._number(2 if first < 0xC0 else 4, 2)

    def compact_long(self) -> int:
        """Return a number that :func:`put_compact_long` wrote."""
        return self._number(_WIDTHS[self._peek() >> 6], 2)

    def compact_signed(self) -> int:
        """Return a number that :func:`put_compact_signed` wrote."""
        first = self._peek()
        value = self._number(_WIDTHS[first >> 5 & 3], 3)
        if value > COMPACT_SIGNED_MAX:
            raise ValueError(f"{value} is outside the range of a compact signed long")
        return ~value if first & 0x80 else value
