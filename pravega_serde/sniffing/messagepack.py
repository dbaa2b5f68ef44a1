"""Well-formedness of MessagePack, head by head and without its values. It is recognized only, not read."""

from __future__ import annotations

from typing import Final

_MAX_DEPTH: Final = 64

#: First byte of an item -> bytes after it that are a number, a date or a float.
_FIXED: Final = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 0),
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xD4: 2,
    0xD5: 3,
    0xD6: 5,
    0xD7: 9,
    0xD8: 17,
}
#: First byte of a string -> bytes of its length, and of an extension's type.
_STRINGS: Final = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)} | {
    0xD9: (1, 0),
    0xDA: (2, 0),
    0xDB: (4, 0),
}
#: First byte of an array or a map -> bytes of its length.
_NESTED: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def text_keys(data: bytes) -> list[bytes] | None:
    """Return the keys of an event that is one map with texts for keys; None for any other event."""
    keys: list[bytes] = []
    open_items: list[int] = []
    at, size = 0, len(data)
    if not _is_map(data[:1]):
        return None
    left = 1
    while True:
        while left == 0:
            if not open_items:
                return keys if at == size and keys else None
            left = open_items.pop()
        if at >= size or len(open_items) > _MAX_DEPTH:
            return None
        start, head = at, data[at]
        at, inside = _item(data, at)
        if at < 0 or at > size or inside > size - at:
            return None
        # In the outermost map, every other item is a key.
        if len(open_items) == 1 and left % 2 == 0:
            if not (0xA0 <= head < 0xC0 or head in (0xD9, 0xDA)):
                return None
            keys.append(data[start + (1 if head < 0xC0 else head - 0xD9 + 2) : at])
        left -= 1
        if inside:
            open_items.append(left)
            left = inside


def _is_map(head: bytes) -> bool:
    return len(head) == 1 and (0x80 <= head[0] < 0x90 or head[0] in (0xDE, 0xDF))


def _item(data: bytes, at: int) -> tuple[int, int]:
    """Return the position after the head, or after a whole scalar, and the number of items inside; -1 if invalid."""
    head = data[at]
    at += 1
    if head < 0x80 or head >= 0xE0:
        return at, 0
    if head < 0xC0:
        return (at, (head & 15) * (2 if head < 0x90 else 1)) if head < 0xA0 else (at + (head & 31), 0)
    if head in _FIXED:
        return at + _FIXED[head], 0
    if head in _STRINGS:
        width, more = _STRINGS[head]
        return at + width + more + int.from_bytes(data[at : at + width], "big"), 0
    if head in _NESTED:
        width = _NESTED[head]
        count = int.from_bytes(data[at : at + width], "big")
        return at + width, count * (2 if head >= 0xDE else 1)
    return -1, 0
