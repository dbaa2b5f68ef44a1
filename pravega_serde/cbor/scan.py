"""Well-formedness of events, head by head and without their values.

cbor2 decides what is read; it does not say where an event is malformed. This walk does, and it is taken for events that
cbor2 refused, for those with keys other than strings, and for large ones, whose memory it adds up before any is taken.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from pravega_serde.columnar import MalformedError, MemoryLimit

__all__ = ["MAX_DEPTH", "REFERENCES", "check", "weighs_much"]

#: Arrays, maps and tags inside each other; also cbor2's own limit.
MAX_DEPTH: Final = 400

#: Tags by which a few bytes stand for any other part of the event. To follow them could multiply it.
REFERENCES: Final = {25: "string reference", 28: "shared value", 29: "shared reference", 256: "string namespace"}

#: Memory that the Python values of a large event may take. Dense but honest events take some 35 bytes for each byte.
_ALLOWED: Final = MemoryLimit(per_byte=34, base=16 << 20)

_BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(2, 8)
_BREAK: Final = 0xFF
_BREAK_BYTE: Final = b"\xff"
_INDEFINITE: Final = 31
_NAMES: Final = ("an integer", "an integer", "a byte string", "a text", "an array", "a map", "a tag", "a simple value")

#: Bytes of Python's objects: of an integer, float or simple value, string, array, map, a tag kept as one; of a place in
#: an array.
_INTEGER, _FLOAT, _STRING, _LIST, _DICT, _TAGGED, _PLACE = 32, 32, 56, 104, 240, 64, 9
_DECIMAL_TAG: Final = 4

#: Items of one byte that Python has once: small integers, empty strings, booleans, null.
_SMALL: Final = re.compile(rb"[\x00-\x17\x20-\x37\x40\x60\xf4-\xf7]+")

#: What each byte could cost at most if it were a head. Strings, numbers and what is in them are far below that of two
#: letters, which take 67 bytes for three.
_WORST: Final = np.full(256, 22, np.int64)
_WORST[0x80:0xA0], _WORST[0xA0:0xC0], _WORST[0xC0:0xE0] = _LIST + _PLACE, _DICT + _PLACE, _TAGGED + _PLACE
_WORST[0xE0:0xF4] = _WORST[0xF8] = _FLOAT + _PLACE


def weighs_much(event: bytes) -> bool:
    """Whether an event could take more memory than it may; :func:`check` knows."""
    return int(np.bincount(np.frombuffer(event, np.uint8), minlength=256) @ _WORST) > _ALLOWED.of(len(event))


def check(event: bytes) -> None:
    """Raise :class:`MalformedError`, with the position, unless an event is one well-formed item within the limits."""
    size, at, memory = len(event), 0, 0
    allowed = _ALLOWED.of(size)
    # Items left in what is open, and whether it is a map, whose keys and values both count. Without a given length it
    # is -1, -2, …: less by one with each item.
    left, in_map = 1, False
    outside: list[tuple[int, bool]] = []
    while left or outside:
        if not left:
            left, in_map = outside.pop()
            continue
        if not in_map and (run := _SMALL.match(event, at, size if left < 0 else min(size, at + left))):
            count = run.end() - at
            at, left, memory = run.end(), left - count, memory + count * _PLACE
            continue
        start, is_key = at, in_map and (left % 2 == 0) == (left > 0)
        if left < 0 and (is_key or not in_map) and event[at : at + 1] == _BREAK_BYTE:
            left, at = 0, at + 1
            continue
        number, at = _argument(event, at)
        head, left = event[start], left - 1
        memory += _PLACE
        major = head >> 5
        if is_key and major > _TEXT:
            raise MalformedError(f"{_NAMES[major]} as a key of a map, at byte {start}")
        if major < _BYTES:
            memory += _INTEGER if number >= 24 else 0
        elif major <= _TEXT:
            at, cost = _string(event, major, number, at)
            memory += cost
        elif major == _SIMPLE:
            memory += 0 if 20 <= head & 31 < 24 else _FLOAT
        else:
            if len(outside) == MAX_DEPTH:
                raise MalformedError(f"nested more than {MAX_DEPTH} deep", limit=True)
            outside.append((left, in_map))
            left, in_map, cost = _opened(event, major, number, at, start)
            memory += cost
        if memory > allowed:
            raise _ALLOWED.exceeded(size)
    if at < size:
        raise MalformedError(f"{size - at} bytes behind the value, from byte {at} on")


def _argument(event: bytes, at: int) -> tuple[int, int]:
    """Number that the head at a position has, -1 for one without a length, and the position behind it."""
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


def _string(event: bytes, major: int, size: int, at: int) -> tuple[int, int]:
    """Position behind a string whose head ends at ``at``, and its memory."""
    if size >= 0:
        return _chunk(event, major, size, at)
    memory = 0
    while True:
        head = event[at] if at < len(event) else _BREAK
        if head == _BREAK:
            if at == len(event):
                raise MalformedError(f"truncated at byte {at}")
            return at + 1, memory
        if head >> 5 != major or head & 31 == _INDEFINITE:
            raise MalformedError(f"no part of {_NAMES[major]}, at byte {at}")
        size, at = _argument(event, at)
        at, cost = _chunk(event, major, size, at)
        memory += cost + _PLACE


def _chunk(event: bytes, major: int, size: int, at: int) -> tuple[int, int]:
    end = at + size
    if end > len(event):
        raise MalformedError(f"{_NAMES[major]} of {size} bytes, from byte {at} on: {len(event) - at} are left")
    if size < 2 and (major == _BYTES or not size):
        return end, 0
    data = event[at:end]
    if major == _TEXT and not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise MalformedError(f"invalid UTF-8 at byte {at + error.start}") from None
        # With a letter beyond 16 bits, each takes four bytes.
        return end, _STRING + 4 * size
    return end, _STRING + size if size > 1 else 0


def _opened(event: bytes, major: int, number: int, at: int, start: int) -> tuple[int, bool, int]:
    """Items of an array, map or tag, whether it is a map, and its own memory."""
    if major == _TAG:
        if number in REFERENCES:
            raise MalformedError(f"tag {number} ({REFERENCES[number]}), at byte {start}, is not read")
        # The array inside a decimal fraction stands for the decimal number.
        return 1, False, 0 if number == _DECIMAL_TAG else _TAGGED
    items = 2 * number if major == _MAP and number > 0 else number
    if items > len(event) - at:
        raise MalformedError(f"{_NAMES[major]} of {number} items, at byte {start}: {len(event) - at} bytes are left")
    return items, major == _MAP, _DICT if major == _MAP and items else _LIST
