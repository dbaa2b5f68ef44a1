"""Varints as Avro and Protobuf write them, a whole column at a time; also zigzag.

A varint of up to eight bytes is one word: seven bits a byte, with the top bit set in all bytes but the last. Three
shifts that halve the gaps squeeze the seven-bit groups together, instead of one shift for each byte. Spreading does the
same backwards. Longer ones (numbers of more than 55 bits) are rare and use a second word.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pravega_serde.columnar.arrays import Int64s, UInt8s, UInt64s

_U: Final = np.uint64
_STOP_BITS: Final = _U(0x8080808080808080)
_LOW_7: Final = _U(0x7F7F7F7F7F7F7F7F)
#: Of a word with only the bit 8k set, times this, the top byte is k + 1.
_COUNT: Final = _U(0x0102030405060708)
#: ``_CONTINUED[n]`` has the top bits of all but the last of n bytes.
_CONTINUED: Final = np.array([sum(0x80 << (8 * i) for i in range(n - 1)) for n in range(9)], _U)


def squeeze(words: UInt64s) -> tuple[UInt64s, Int64s]:
    """Return the values (still zigzagged) of the varints at the start of words, and their sizes in bytes.

    A size of 0 marks a varint that is longer than the word.
    """
    # The top bit of a byte is clear in the last one of a varint.
    stops = ~words
    stops &= _STOP_BITS
    # Only the lowest stop bit; if there is none, 0 stays 0.
    other = np.negative(stops)
    stops &= other
    # One bit at 8k + 7, for k + 1 bytes: moved to 8k, and multiplied, it leaves k + 1 in the top byte.
    size = stops >> _U(7)
    size *= _COUNT
    size >>= _U(56)
    # All bits below the stop bit: those of the varint.
    stops -= _U(1)
    stops &= words
    _close_gaps(stops, other, int(size.max(initial=0)) or 8)
    return stops, size.view(np.int64)


def squeeze_long(words: UInt64s, next_words: UInt64s) -> tuple[UInt64s, Int64s]:
    """Return the values and sizes of varints of nine or ten bytes; size 0 if invalid or of more than 64 bits."""
    # Eight bytes hold bits 0 to 55, the ninth bits 56 to 62, and the tenth bit 63 alone.
    x = words.copy()
    _close_gaps(x, np.empty_like(x), 8)
    ninth = next_words & _U(0xFF)
    tenth = (next_words >> _U(8)) & _U(0xFF)
    nine = ninth < _U(0x80)
    ten = ~nine & (tenth <= _U(1))
    x |= (ninth & _U(0x7F)) << _U(56)
    x |= np.where(ten, tenth << _U(63), _U(0))
    return x, np.where(nine, 9, np.where(ten, 10, 0))


def _close_gaps(x: UInt64s, other: UInt64s, longest: int) -> None:
    """Move the seven-bit groups of each byte together, in place; temporaries would cost more than the sums."""
    x &= _LOW_7
    for reach, low, high, shift in _STEPS:
        if longest > reach:
            # The upper group of each pair moves down, onto the gap above the lower one.
            np.bitwise_and(x, high, out=other)
            other >>= shift
            x &= low
            x |= other


#: Bytes from which a step is needed; what it keeps, what it moves, how far.
_STEPS: Final = (
    (1, _U(0x007F007F007F007F), _U(0x7F007F007F007F00), _U(1)),
    (2, _U(0x00003FFF00003FFF), _U(0x3FFF00003FFF0000), _U(2)),
    (4, _U(0x000000000FFFFFFF), _U(0x0FFFFFFF00000000), _U(4)),
)


def from_zigzag(x: UInt64s) -> Int64s:
    """Return the signed numbers of zigzagged ones."""
    # The lowest bit is the sign: 1 becomes -1, all ones, which inverts the half; 0 leaves it.
    sign = (x & _U(1)).view(np.int64)
    np.negative(sign, out=sign)
    half = (x >> _U(1)).view(np.int64)
    half ^= sign
    return half


def from_short_zigzag(x: UInt8s) -> Int64s:
    """Return the signed numbers of zigzagged ones of a byte each, with an eighth of the memory."""
    sign = (x & np.uint8(1)).view(np.int8)
    np.negative(sign, out=sign)
    half = (x >> np.uint8(1)).view(np.int8)
    half ^= sign
    return half.astype(np.int64)


def to_zigzag(values: Int64s) -> UInt64s:
    """Return the zigzagged numbers of signed ones."""
    # Shifted by 63 a negative number is -1, which inverts the double; others are 0.
    x = values << 1
    x ^= values >> 63
    return x.view(_U)


def sizes(x: UInt64s) -> Int64s:
    """Return the number of bytes of each zigzagged number as a varint."""
    count = np.ones(len(x), np.int64)
    top = int(x.max()) if len(x) else 0
    for groups in range(1, 10):
        if top < 1 << (7 * groups):
            break
        count += x >= _U(1 << (7 * groups))
    return count


def words_of(x: UInt64s, size: Int64s) -> UInt64s:
    """Return the first eight bytes of each varint of ``size`` bytes, as a word; the bytes after its end are zero."""
    longest = int(size.max()) if len(size) else 0
    if longest <= 1:
        return x.copy()
    w = x & _U(0x00FFFFFFFFFFFFFF)
    other = np.empty_like(w)
    for reach, low, _, shift in reversed(_STEPS):
        if longest > reach:
            # The steps of _close_gaps backwards: what is above the lower group moves up.
            np.bitwise_and(w, low, out=other)
            w ^= other
            w <<= shift
            w |= other
    w |= _CONTINUED[size if longest <= 8 else np.minimum(size, 8)]
    if longest > 8:
        # The eighth byte of a longer varint is not its last one either.
        w |= np.where(size > 8, _U(0x80) << _U(56), _U(0))
    return w


def tail_of(x: UInt64s, size: Int64s) -> tuple[UInt8s, UInt8s]:
    """Return the ninth and tenth byte of each varint; meaningful if ``size`` reaches them."""
    # The ninth byte has bits 56 to 62, and the top bit set if the tenth follows, which has bit 63.
    ninth = (x >> _U(56)) & _U(0x7F)
    ninth |= np.where(size > 9, _U(0x80), _U(0))
    return ninth.astype(np.uint8), (x >> _U(63)).astype(np.uint8)
