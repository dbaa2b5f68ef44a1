"""Numbers and words of a whole column of text, eight characters at a time.

Each function takes where the texts start and end, and gives their values and which of them are what JSON allows there.
The words must reach 24 bytes before the first text.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.columnar import cut
from pravega_serde.columnar.arrays import Int64s, UInt8s, UInt64s

__all__ = ["FRONT", "Texts", "booleans", "doubles", "integers", "nulls"]

#: Bytes before the data that may be read, and are not used.
FRONT: Final = 24

Bools = npt.NDArray[np.bool_]

_U: Final = np.uint64
_ZEROS: Final = _U(0x3030303030303030)
_TOP_BITS: Final = _U(0x8080808080808080)
#: ``_HIGHEST[n]`` keeps the n highest bytes of a word: the last n characters of eight.
_HIGHEST: Final = np.array([((1 << (8 * n)) - 1) << (64 - 8 * n) for n in range(9)], _U)
_LOWEST: Final = np.array([(1 << (8 * n)) - 1 for n in range(9)], _U)
_MINUS: Final = 0x2D
_ZERO: Final = 0x30
_POINTS: Final = _U(0x2E2E2E2E2E2E2E2E)
#: Of a word with only the bit 8k set, times this, the top byte is k.
_INDEX: Final = _U(0x0001020304050607)
_POWERS: Final = np.array([10**n for n in range(20)], _U)
_EXACT_POWERS: Final = np.array([10.0**n for n in range(23)])
#: Up to here every whole number is a double, so that one division rounds correctly.
_EXACT: Final = _U(1 << 53)
_LONGEST: Final = 19


class Texts:
    """Stretches of a column's bytes, one a row."""

    __slots__ = ("data", "ends", "starts", "words")

    def __init__(self, data: UInt8s, words: UInt64s, starts: Int64s, ends: Int64s) -> None:
        self.data, self.words, self.starts, self.ends = data, words, starts, ends

    def cut(self) -> pa.BinaryArray:
        """The texts themselves."""
        return cut(self.data, self.starts, self.ends)

    def select(self, rows: Int64s) -> Texts:
        """Those of some rows."""
        return Texts(self.data, self.words, self.starts[rows], self.ends[rows])

    def equal(self, word: bytes) -> Bools:
        """Which of them are this word, of at most eight letters."""
        same: Bools = self.ends - self.starts == len(word)
        same &= (self.words[self.starts] & _LOWEST[len(word)]) == _U(int.from_bytes(word, "little"))
        return same


def nulls(texts: Texts) -> Bools:
    """Which texts are ``null``."""
    return texts.equal(b"null")


def booleans(texts: Texts) -> tuple[Bools, Bools]:
    """Booleans, and which texts are one."""
    true = texts.equal(b"true")
    return true, true | texts.equal(b"false")


def integers(texts: Texts) -> tuple[Int64s, Bools]:
    """Whole numbers of 64 bits, and which texts are one."""
    negative, starts = _sign(texts)
    value, good = _digits(texts.words, starts, texts.ends)
    good &= _no_leading_zero(texts.data, starts, texts.ends)
    limit = np.where(negative, _U(1 << 63), _U((1 << 63) - 1))
    good &= value <= limit
    number = value.view(np.int64)
    return np.where(negative, np.negative(number), number), good


def doubles(texts: Texts) -> tuple[npt.NDArray[np.float64], Bools]:
    """Floating-point numbers without exponent, rounded as ``float()`` does, and which texts are one."""
    negative, starts = _sign(texts)
    point = _find_point(texts.words, starts, texts.ends)
    whole, good = _digits(texts.words, starts, point)
    good &= _no_leading_zero(texts.data, starts, point)
    pointed = point < texts.ends
    fraction, fraction_good = _digits(texts.words, np.minimum(point + 1, texts.ends), texts.ends)
    good &= fraction_good | ~pointed
    places = np.where(pointed, texts.ends - point - 1, 0)
    # Kept to what 64 bits and one division hold exactly.
    short = good & (places <= _LONGEST) & (point - starts + places <= _LONGEST)
    mantissa = np.where(short, whole * _POWERS[np.minimum(places, _LONGEST)] + fraction, _U(0))
    short &= mantissa <= _EXACT
    value = mantissa.astype(np.float64) / _EXACT_POWERS[np.minimum(places, 22)]
    # Python, and Jackson, read -0 as a whole number, which has no sign; -0.0 has one.
    value = np.where(negative & (pointed | (value != 0)), -value, value)
    rest = np.flatnonzero(good & ~short)
    if len(rest):
        value[rest] = texts.select(rest).cut().cast(pa.string()).cast(pa.float64()).to_numpy()
    return value, good


def _sign(texts: Texts) -> tuple[Bools, Int64s]:
    negative = texts.data[texts.starts] == _MINUS
    return negative, texts.starts + negative


def _no_leading_zero(data: UInt8s, starts: Int64s, ends: Int64s) -> Bools:
    good: Bools = (data[starts] != _ZERO) | (ends - starts == 1)
    return good


def _find_point(words: UInt64s, starts: Int64s, ends: Int64s) -> Int64s:
    """Where the decimal point is; at the end, if there is none."""
    found = ends.copy()
    searched = np.arange(len(starts))
    at = starts
    while len(searched):
        x = words[at] ^ _POINTS
        # The lowest top bit that this leaves set is that of the first zero byte, the first point.
        hits = (x - _U(0x0101010101010101)) & ~x & _TOP_BITS
        hits &= _U(0) - hits
        index = (((hits >> _U(7)) * _INDEX) >> _U(56)).view(np.int64)
        hit = hits != 0
        found[searched[hit]] = np.minimum((at + index)[hit], found[searched[hit]])
        at = at + 8
        more = ~hit & (at < ends[searched])
        searched, at = searched[more], at[more]
    return found


def _digits(words: UInt64s, starts: Int64s, ends: Int64s) -> tuple[UInt64s, Bools]:
    """Numbers of 1 to 19 digits, and which texts are that."""
    lengths = ends - starts
    good = (lengths >= 1) & (lengths <= _LONGEST)
    lengths = np.where(good, lengths, 0)
    value, valid = _eight(words[ends - 8], np.minimum(lengths, 8))
    good &= valid
    longest = int(lengths.max(initial=0))
    for part, weight in ((8, 10**8), (16, 10**16)):
        if longest > part:
            more, valid = _eight(words[ends - 8 - part], np.clip(lengths - part, 0, 8))
            value = value + more * _U(weight)
            good &= valid
    return value, good


def _eight(words: UInt64s, count: Int64s) -> tuple[UInt64s, Bools]:
    """The number that the last ``count`` characters of each word are, and whether they are digits."""
    d = words ^ _ZEROS
    d &= _HIGHEST[count]
    valid = ((d + _U(0x7676767676767676)) | d) & _TOP_BITS == 0
    # Neighbours become pairs, pairs fours, fours eight: the first character is the lowest byte.
    d = d * _U(10) + (d >> _U(8))
    low = d & _U(0x000000FF000000FF)
    low *= _U(0x000F424000000064)
    d >>= _U(16)
    d &= _U(0x000000FF000000FF)
    d *= _U(0x0000271000000001)
    d += low
    d >>= _U(32)
    return d, valid
