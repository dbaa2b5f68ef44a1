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

from pravega_serde.columnar.arrays import Int64s, select
from pravega_serde.errors import DeserializationError

#: Levels of types inside types, as many as protoc allows.
_MAX_LEVELS: Final = 32
_MAX_VARINT: Final = 5
_INT32_MAX: Final = 2**31 - 1
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

    def of(self, indexes: tuple[int, ...], name: str) -> bytes:  # noqa: ARG002 - see MessagePrefix
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

    def of(self, indexes: tuple[int, ...], name: str) -> bytes:  # noqa: ARG002 - see MessagePrefix
        """Return the reference, as ``writeDelimitedTo`` writes it."""
        text = name.rpartition(".")[2].encode()
        reference = bytes([_NAME_TAG]) + _varint(len(text)) + text
        return _varint(len(reference)) + reference


def split_column(
    payloads: pa.BinaryArray, kind: MessagePrefix
) -> tuple[list[tuple[bytes, Int64s, pa.BinaryArray]], dict[int, DeserializationError]]:
    """Return the rows of each prefix with their messages, and the errors of rows without a valid prefix."""
    if len(payloads) and not payloads.null_count and (same := _same_prefix(payloads, kind)) is not None:
        messages = pc.binary_slice(payloads, len(same), _INT32_MAX)
        return [(same, np.arange(len(payloads)), messages)], {}
    rows: dict[bytes, list[int]] = {}
    errors: dict[int, DeserializationError] = {}
    for row, payload in enumerate(payloads.to_pylist()):
        try:
            rows.setdefault(payload[: kind.size(payload)], []).append(row)
        except DeserializationError as error:
            errors[row] = error
    return [_part(payloads, prefix, np.array(chosen)) for prefix, chosen in rows.items()], errors


def _part(payloads: pa.BinaryArray, prefix: bytes, rows: Int64s) -> tuple[bytes, Int64s, pa.BinaryArray]:
    return prefix, rows, pc.binary_slice(select(payloads, rows), len(prefix), _INT32_MAX)


def _same_prefix(payloads: pa.BinaryArray, kind: MessagePrefix) -> bytes | None:
    """Return the prefix that all payloads have, or None."""
    first: bytes = payloads[0].as_py()
    try:
        prefix = first[: kind.size(first)]
    except DeserializationError:
        return None
    return prefix if pc.all(pc.starts_with(payloads, pattern=prefix)).as_py() else None


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
