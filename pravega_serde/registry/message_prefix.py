"""Bytes between a header and a Protobuf message that name the message type in the file of its schema.

| prefix | layout |
|---|---|
| Confluent's message indexes | count, then an index for each level, as zigzag varints; ``00`` is the first type |
| Apicurio's type reference | a length, then a Protobuf message whose field 1 is the name of the type |
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.arrays import Int64s, bools_of, select
from pravega_serde.errors import DeserializationError

#: Levels of types inside types, as many as protoc allows.
_MAX_LEVELS: Final = 32
_MAX_VARINT: Final = 5
#: Prefixes of a column whose rows are found at once. Rows with further ones are read one by one.
_FREQUENT: Final = 16
_NAME_TAG: Final = 0x0A

#: Message type in a file: its index at each level of nesting, or its name.
MessagePlace = tuple[int, ...] | str


class MessagePrefix(Protocol):
    """Kind of prefix. No prefix is the beginning of another one."""

    def size(self, payload: bytes) -> int:
        """Return the number of bytes of a payload's prefix. Raises :class:`DeserializationError`."""

    def place(self, prefix: bytes) -> MessagePlace:
        """Return the message type that a prefix names. Raises :class:`DeserializationError`."""

    def of(self, indexes: tuple[int, ...], name: str) -> bytes:
        """Return the prefix of a message type with these indexes and this name."""


class MessageIndexes:
    """Confluent's message indexes."""

    def size(self, payload: bytes) -> int:
        """Return the number of bytes of the indexes."""
        return self._read(payload)[1]

    def place(self, prefix: bytes) -> MessagePlace:
        """Return the indexes."""
        return self._read(prefix)[0]

    def of(self, indexes: tuple[int, ...], name: str) -> bytes:
        """Return the indexes; the first type of a file has the short form."""
        if indexes == (0,):
            return b"\0"
        return b"".join(_varint(2 * number) for number in (len(indexes), *indexes))

    def _read(self, payload: bytes) -> tuple[tuple[int, ...], int]:
        count, at = _index(payload, 0)
        if count > _MAX_LEVELS:
            raise DeserializationError(f"invalid message indexes: {count} levels of nesting")
        indexes = []
        for _ in range(count):
            index, at = _index(payload, at)
            indexes.append(index)
        return tuple(indexes) or (0,), at


class TypeReference:
    """Apicurio's type reference. It has the name of the type without its package."""

    def size(self, payload: bytes) -> int:
        """Return the number of bytes of the reference with its length."""
        length, at = _unsigned(payload, 0)
        if length > len(payload) - at:
            raise DeserializationError("invalid type reference: it is longer than the event")
        return at + length

    def place(self, prefix: bytes) -> MessagePlace:
        """Return the name."""
        _, at = _unsigned(prefix, 0)
        if prefix[at : at + 1] != bytes([_NAME_TAG]):
            raise DeserializationError("invalid type reference: it does not begin with a name")
        length, at = _unsigned(prefix, at + 1)
        try:
            return prefix[at : at + length].decode()
        except UnicodeDecodeError as error:
            raise DeserializationError("invalid type reference: the name is not UTF-8") from error

    def of(self, indexes: tuple[int, ...], name: str) -> bytes:
        """Return the reference, as ``writeDelimitedTo`` writes it."""
        text = name.rpartition(".")[2].encode()
        reference = bytes([_NAME_TAG]) + _varint(len(text)) + text
        return _varint(len(reference)) + reference


def split_column(
    events: pa.BinaryArray, header: int, kind: MessagePrefix
) -> tuple[dict[bytes, Int64s], dict[int, DeserializationError]]:
    """Return the rows of each prefix, and the errors of rows without a valid one.

    The events have the same header, of ``header`` bytes, and none is null.
    """
    found: dict[bytes, Int64s] = {}
    left, rest = np.arange(len(events)), events
    while len(left) and len(found) < _FREQUENT:
        first: bytes = rest[0].as_py()
        try:
            end = header + kind.size(first[header:])
        except DeserializationError:
            break
        same = bools_of(pc.starts_with(rest, pattern=first[:end]))
        found[first[header:end]] = left[same]
        left = left[~same]
        if len(left):
            rest = select(rest, np.flatnonzero(~same))
    rows: dict[bytes, list[int]] = {}
    errors: dict[int, DeserializationError] = {}
    for row, event in zip(left.tolist(), rest.to_pylist() if len(left) else (), strict=True):
        try:
            rows.setdefault(event[header : header + kind.size(event[header:])], []).append(row)
        except DeserializationError as error:
            errors[row] = error
    return found | {prefix: np.array(chosen) for prefix, chosen in rows.items()}, errors


def _index(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint that is not negative, and the position after it."""
    number, at = _unsigned(data, at)
    if number & 1:
        raise DeserializationError("invalid message indexes: an index is negative")
    return number >> 1, at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint, and the position after it."""
    value = 0
    for shift, byte in enumerate(data[at : at + _MAX_VARINT]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, at + shift + 1
    raise DeserializationError("the event ends in the name of its message type, or the name is invalid")


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])
