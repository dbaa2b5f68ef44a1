"""Well-formedness of events, head by head and without their values, and the cost of large ones.

cbor2 decides which events are valid, but it does not report where an event is malformed. :func:`check` does. It is used
for events that cbor2 refused and for those with keys other than strings. :func:`check_cost` adds up, for all heads at
once, the cost of the values of a large event before any value is created.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from pravega_serde.columnar import MalformedError, MemoryLimit

#: Arrays, maps and tags inside each other; also cbor2's own limit.
MAX_DEPTH: Final = 400

#: Tags that let a few bytes represent any other part of the event. To follow them could multiply it.
REFERENCES: Final = {25: "string reference", 28: "shared value", 29: "shared reference", 256: "string namespace"}

_BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(2, 8)
_BREAK: Final = 0xFF
_INDEFINITE: Final = 31
_NAMES: Final = ("an integer", "an integer", "a byte string", "a text", "an array", "a map", "a tag", "a simple value")


# Cost

#: Size in bytes from which events are scanned before they are read: their memory could be a hundred times the size.
LARGE: Final = 512 * 1024

#: Memory allowed for the Python values of a large event. Dense but honest events need some 35 bytes for each byte.
ALLOWED: Final = MemoryLimit(per_byte=34, base=16 << 20)

#: Minimum number of bytes of a large event for each of its tags, since each tag needs a call. A useful date or decimal
#: number has as many.
_BYTES_PER_TAG: Final = 4


def _table(ranges: dict[tuple[int, int], int], otherwise: int) -> npt.NDArray[np.int64]:
    """Return a number for each byte: the number of the last range that contains the byte."""
    table = np.full(256, otherwise, np.int64)
    for (first, last), number in ranges.items():
        table[first : last + 1] = number
    return table


#: Bytes of a place in an array, of Python's objects and that place.
_PLACE: Final = 9
_NUMBER, _STRING, _LIST, _DICT, _TAGGED = 32 + _PLACE, 56 + _PLACE, 104 + _PLACE, 240 + _PLACE, 64 + _PLACE

#: Memory by the first byte of an item. Python has small integers, empty strings, booleans and null once; the array
#: inside a decimal fraction (tag 4) counts as the decimal number.
_MEMORY: Final = _table(
    {
        (0x18, 0x1B): _NUMBER,
        (0x38, 0x3B): _NUMBER,
        (0x42, 0x5F): _STRING,
        (0x62, 0x7F): _STRING,
        (0x80, 0x9F): _LIST,
        (0xA0, 0xA0): _LIST,
        (0xA1, 0xBF): _DICT,
        (0xC0, 0xDF): _TAGGED,
        (0xC4, 0xC4): _PLACE,
        (0xE0, 0xF3): _STRING,
        (0xF8, 0xF8): _STRING,
        (0xF9, 0xFB): _NUMBER,
    },
    _PLACE,
)
#: Memory of a letter at most, and of a text for each byte, which is at most that of two letters: 73 bytes for three.
_LETTER, _TEXT_BYTE = 4, 25

#: Maximum cost of each byte if it were a head; tags cost time, too.
_WORST: Final = np.maximum(_MEMORY, _TEXT_BYTE)
_WORST[:0x80] = _TEXT_BYTE
_WORST[0xC0:0xE0] = 2 * _TAGGED

#: Bytes of an item's head; of the whole item, as far as that byte says it.
_HEAD: Final = _table({}, 1)
for _width in range(4):
    _HEAD[24 + _width : 256 : 32] += 1 << _width
_STEP: Final = _HEAD.astype(np.int32)
for _short in range(24):
    _STEP[[0x40 + _short, 0x60 + _short]] += _short


def check_cost(event: bytes) -> None:
    """Raise :class:`MalformedError` if the values of a large event need more memory, or calls, than allowed."""
    data, size = np.frombuffer(event, np.uint8), len(event)
    if size < LARGE or int(_count(data) @ _WORST) <= ALLOWED.of(size):
        return
    heads = _count(data[_heads(data)])
    if int(heads[0xC0:0xE0].sum()) > size // _BYTES_PER_TAG:
        raise MalformedError(f"more than one tag for {_BYTES_PER_TAG} bytes", limit=True)
    letters = max(size - int(heads @ _HEAD), 0)
    if int(heads @ _MEMORY) + _LETTER * letters > ALLOWED.of(size):
        raise ALLOWED.exceeded(size)


def _count(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the number of occurrences of each byte."""
    return np.bincount(data, minlength=256)


def _heads(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """Return the positions of the heads of all items, ascending, as far as the event is well-formed.

    First, each byte is read as a head, to find the next head after it. Then each pass doubles the known heads, with a
    jump from each over twice as many items as before.
    """
    size = len(data)
    jump = np.arange(size + 1, dtype=np.int32)
    jump[:-1] += _STEP[data]
    for width in range(4):
        at = np.flatnonzero((data == 0x58 + width) | (data == 0x78 + width))
        at = at[at + (1 << width) < size]
        length = np.zeros(len(at), np.uint64)
        for step in range(1 << width):
            length = length << np.uint64(8) | data[at + 1 + step]
        jump[at] += np.minimum(length, size).astype(np.int32)
    np.minimum(jump, size, out=jump)
    found = np.zeros(1, np.int32)
    while (more := jump[found])[0] < size:
        found = np.concatenate((found, more[: np.searchsorted(more, size)]))
        jump = jump[jump]
    return found[: np.searchsorted(found, size)]


# Form

#: Items of one byte that need no check of the map around them.
_SMALL: Final = re.compile(rb"[\x00-\x17\x20-\x37\x40\x60\xe0-\xf7]+")

#: Bytes of an item that is only a head: an integer, float or simple value. 0 for others, and for those to be checked.
_ALONE: Final = bytes(
    0 if 0x40 <= head < 0xE0 or head == 0xF8 or head & 31 > 27 else int(_HEAD[head]) for head in range(256)
)


def check(event: bytes) -> None:
    """Raise :class:`MalformedError`, with the position, unless an event is one well-formed item."""
    size, at = len(event), 0
    # Items left in what is open, and whether it is a map; its keys and values both count. Without a length it
    # is -1, -2, …: less by one with each item.
    left, in_map = 1, False
    outside: list[tuple[int, bool]] = []
    while left or outside:
        if not left:
            left, in_map = outside.pop()
            continue
        if at >= size:
            raise MalformedError(f"truncated at byte {size}")
        head = event[at]
        alone = _ALONE[head]
        is_key = in_map and (left % 2 == 0) == (left > 0)
        if alone and (head < 0x40 or not is_key):
            end = at + alone
            if alone == 1 and not in_map:
                run = _SMALL.match(event, at, size if left < 0 else min(size, at + left))
                end = run.end() if run is not None else end
                left -= end - at
            else:
                left -= 1
            at = end
            continue
        start = at
        if left < 0 and head == _BREAK and (is_key or not in_map):
            left, at = 0, at + 1
            continue
        number, at = _argument(event, at)
        major, left = head >> 5, left - 1
        if is_key and major > _TEXT:
            raise MalformedError(f"{_NAMES[major]} as a key of a map, at byte {start}")
        if major in (_BYTES, _TEXT):
            at = _string(event, major, number, at)
        elif major != _SIMPLE:
            if len(outside) == MAX_DEPTH:
                raise MalformedError(f"nested more than {MAX_DEPTH} levels deep", limit=True)
            outside.append((left, in_map))
            left, in_map = _opened(event, major, number, at, start)
    if at != size:
        raise MalformedError(
            f"{size - at} bytes after the value, from byte {at} on" if at < size else f"truncated at byte {size}"
        )


def _argument(event: bytes, at: int) -> tuple[int, int]:
    """Return the number of the head at a position, or -1 if it has no length, and the position after it."""
    if at >= len(event):
        raise MalformedError(f"truncated at byte {len(event)}")
    head = event[at]
    major, info = head >> 5, head & 31
    if info < 24:
        return info, at + 1
    if info < 28:
        end = at + 1 + (1 << (info - 24))
        if end > len(event):
            raise MalformedError(f"truncated at byte {len(event)}")
        number = int.from_bytes(event[at + 1 : end], "big")
        if major == _SIMPLE and info == 24 and number < 32:
            raise MalformedError(f"a reserved head, at byte {at}")
        return number, end
    if info == _INDEFINITE and _BYTES <= major <= _MAP:
        return -1, at + 1
    what = "a break outside of what it could end" if head == _BREAK else "a reserved head"
    raise MalformedError(f"{what}, at byte {at}")


def _string(event: bytes, major: int, size: int, at: int) -> int:
    """Return the position after a string with a head that ends at ``at``."""
    if size >= 0:
        return _chunk(event, major, size, at)
    while True:
        head = event[at] if at < len(event) else _BREAK
        if head == _BREAK:
            if at == len(event):
                raise MalformedError(f"truncated at byte {at}")
            return at + 1
        if head >> 5 != major or head & 31 == _INDEFINITE:
            raise MalformedError(f"no part of {_NAMES[major]}, at byte {at}")
        size, at = _argument(event, at)
        at = _chunk(event, major, size, at)


def _chunk(event: bytes, major: int, size: int, at: int) -> int:
    end = at + size
    if end > len(event):
        raise MalformedError(f"{_NAMES[major]} of {size} bytes, from byte {at} on: {len(event) - at} remain")
    if major == _TEXT and not (data := event[at:end]).isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise MalformedError(f"invalid UTF-8 at byte {at + error.start}") from None
    return end


def _opened(event: bytes, major: int, number: int, at: int, start: int) -> tuple[int, bool]:
    """Return the number of items of an array, map or tag, and True if it is a map."""
    if major == _TAG:
        if number in REFERENCES:
            raise MalformedError(f"tag {number} ({REFERENCES[number]}), at byte {start}, is not supported")
        return 1, False
    items = 2 * number if major == _MAP and number > 0 else number
    if items > len(event) - at:
        raise MalformedError(f"{_NAMES[major]} of {number} items, at byte {start}: {len(event) - at} bytes remain")
    return items, major == _MAP
