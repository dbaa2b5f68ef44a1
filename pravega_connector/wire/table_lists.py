"""Lists in the messages of table segments: keys, entries and versions.

A key is ``i32 size of the rest | i32 length | bytes | i64 version``, and a value ``i32 size of the rest | i32 length |
bytes``. A list has an i32 count before it. An empty key has no version. (Java: ``WireCommands.TableKey`` and
``TableValue``.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

#: Version of a key in an unconditional update, and in a request for a value (TableKey.NO_VERSION).
ANY_VERSION: Final = -(2**63)
#: Version of a key that must not exist, or does not (TableKey.NOT_EXISTS).
NO_ENTRY: Final = -1

_KEY: Final = struct.Struct(">ii")
_I64: Final = struct.Struct(">q")
_KEY_REST: Final = 4 + _I64.size  # bytes that the size of a key counts in addition to the key
_VALUE_REST: Final = 4
_ENTRY_SIZE: Final = 2 * _KEY.size + _I64.size  # bytes of an entry in addition to key and value


class WireKey(NamedTuple):
    """Key of a table segment, with the version that it has or must have."""

    key: bytes
    """Primary and secondary key, one after the other."""
    version: int = ANY_VERSION
    """Number that grows with each change in the segment; ANY_VERSION, NO_ENTRY."""


class WireEntry(NamedTuple):
    """Key of a table segment, with its version and value."""

    key: bytes
    """Primary and secondary key, one after the other."""
    version: int
    """Number that grows with each change in the segment; ANY_VERSION, NO_ENTRY."""
    value: bytes
    """Value; empty if there is no entry."""


def key_size(key: bytes) -> int:
    """Return the number of bytes of a key in a message."""
    return _KEY.size + len(key) + _I64.size


def entry_size(key: bytes, value: bytes) -> int:
    """Return the number of bytes of an entry in a message."""
    return _ENTRY_SIZE + len(key) + len(value)


def _pack_key(key: bytes, version: int) -> tuple[bytes, bytes, bytes]:
    return _KEY.pack(_KEY_REST + len(key), len(key)), key, _I64.pack(version) if key else b""


def _pack_keys(keys: Iterable[WireKey]) -> bytes:
    pieces: list[bytes] = []
    for key, version in keys:
        pieces += _pack_key(key, version)
    return b"".join(pieces)


def _pack_entries(entries: Iterable[WireEntry]) -> bytes:
    pieces: list[bytes] = []
    for key, version, value in entries:
        pieces += _pack_key(key, version)
        pieces += _KEY.pack(_VALUE_REST + len(value), len(value)), value
    return b"".join(pieces)


def _pack_versions(versions: Sequence[int]) -> bytes:
    return struct.pack(f">{len(versions)}q", *versions)


def _take(body: memoryview, at: int) -> tuple[bytes, int]:
    """Return the bytes after two lengths, and their end. Raises struct.error if they run past the end of the body."""
    _, length = _KEY.unpack_from(body, at)
    at += _KEY.size
    if not 0 <= length <= len(body) - at:
        raise struct.error(f"{length} bytes")
    return bytes(body[at : at + length]), at + length


def _take_key(body: memoryview, at: int) -> tuple[WireKey, int]:
    key, at = _take(body, at)
    if not key:
        return WireKey(key), at
    return WireKey(key, _I64.unpack_from(body, at)[0]), at + _I64.size


def _take_entry(body: memoryview, at: int) -> tuple[WireEntry, int]:
    key, at = _take_key(body, at)
    value, at = _take(body, at)
    return WireEntry(*key, value), at


def _take_keys(body: memoryview, at: int, count: int) -> tuple[tuple[WireKey, ...], int]:
    keys = list[WireKey]()
    for _ in range(count):
        key, at = _take_key(body, at)
        keys.append(key)
    return tuple(keys), at


def _take_entries(body: memoryview, at: int, count: int) -> tuple[tuple[WireEntry, ...], int]:
    """Take entries. All keys of a table have one length, which the first entry shows."""
    entries, data, length, head = list[WireEntry](), bytes(body), 0, _entry_head(0)
    for _ in range(count):
        begin = at + head.size
        if length and begin <= len(data):
            _, found, key, version, _, size = head.unpack_from(data, at)
            if found == length and 0 <= size <= len(data) - begin:
                at = begin + size
                entries.append(WireEntry(key, version, data[begin:at]))
                continue
        entry, at = _take_entry(body, at)
        entries.append(entry)
        length = len(entry.key)
        head = _entry_head(length)
    return tuple(entries), at


@lru_cache
def _entry_head(length: int) -> struct.Struct:
    """Return the struct of an entry up to its value, if the key has this length."""
    return struct.Struct(f">ii{length}sqii")


def _take_versions(body: memoryview, at: int, count: int) -> tuple[tuple[int, ...], int]:
    return struct.unpack_from(f">{count}q", body, at), at + count * _I64.size


class _Kind(NamedTuple):
    """Functions that pack a list of one kind, and that take the members of one, and its end, from a body."""

    pack: Callable[[Any], bytes]
    take: Callable[[memoryview, int, int], tuple[tuple[Any, ...], int]]


#: Kinds of lists, by their letters in a layout.
LISTS: Final = {
    "k": _Kind(_pack_keys, _take_keys),
    "t": _Kind(_pack_entries, _take_entries),
    "v": _Kind(_pack_versions, _take_versions),
}


def take_list(kind: str, body: memoryview, at: int, count: int) -> tuple[tuple[Any, ...], int]:
    """Return the members of a list, and its end. Raises struct.error if they run past the end of the body."""
    if count < 0:
        raise struct.error(f"{count} members")
    return LISTS[kind].take(body, at, count)
