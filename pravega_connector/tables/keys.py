"""Keys of a table as bytes, their ranges, and the segment of a primary key.

The bytes of a key are its primary key, followed by its secondary key. Both have fixed lengths, so the order of keys is
the order of their bytes. The hash of the primary key selects the segment. (Java: ``TableEntryHelper`` and
``KeyValueTableSegments``.)
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final, Protocol

from pravega_connector.core.values import TableConfig
from pravega_connector.errors import ConfigError, TableLimitError
from pravega_connector.wire import SegmentRange, TableName
from pravega_serde.errors import SerializationError

#: ``"KeyValueTableRouter".hashCode()`` as an unsigned 64-bit number: Java extends the sign of the seed, mmh3 does not.
SEED: Final = -2020233499 % 2**64
_MASK: Final = 2**64 - 1
C1: Final = 0x87C37B91114253D5
C2: Final = 0x4CF5AD432745937F
_QUOTED: Final = 40  # bytes of a key that an error quotes


class SupportsBoth(Protocol):
    """Methods of a serializer that a table uses."""

    def serialize(self, value: Any, /) -> bytes:
        """Return the bytes of a value."""
        ...

    def deserialize(self, data: bytes, /) -> Any:
        """Return the value of bytes."""
        ...


def _rotate(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & _MASK


def _mix1(k: int) -> int:
    return _rotate(k * C1 & _MASK, 31) * C2 & _MASK


def _mix2(k: int) -> int:
    return _rotate(k * C2 & _MASK, 33) * C1 & _MASK


def _final(k: int) -> int:
    k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & _MASK
    k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return k ^ k >> 33


def key_position(primary: bytes) -> float:
    """Return the position of a primary key on the key line [0, 1): Guava's ``murmur3_128``, as in Java."""
    h1 = h2 = SEED
    whole = len(primary) & ~15
    for k1, k2 in struct.iter_unpack("<QQ", primary[:whole]):
        h1 = ((_rotate(h1 ^ _mix1(k1), 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 = ((_rotate(h2 ^ _mix2(k2), 31) + h1) * 5 + 0x38495AB5) & _MASK
    k1, k2 = struct.unpack("<QQ", primary[whole:].ljust(16, b"\0"))  # without a rest, both are 0 and change nothing
    h1 ^= _mix1(k1) ^ len(primary)
    h2 ^= _mix2(k2) ^ len(primary)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    low = (_final(h1) + _final(h2)) & _MASK
    return float(low >> 12) * 2.0**-52


class TableSegments:
    """Segments of a table by position of the primary key."""

    def __init__(self, ranges: Sequence[SegmentRange]) -> None:
        ordered = sorted(ranges, key=lambda each: each.high)
        self._highs = [each.high for each in ordered]
        self.ids = [each.id for each in ordered]

    def of(self, primary: bytes) -> int:
        """Return the id of the segment of a primary key. The upper bound of a segment belongs to it, as in Java."""
        return self.ids[bisect_left(self._highs, key_position(primary))]


class KeyCodec:
    """Encoder and decoder of a table's keys."""

    def __init__(self, table: TableName, config: TableConfig, primary: SupportsBoth, secondary: SupportsBoth) -> None:
        self._table, self._config = table, config
        self._primary, self._secondary = primary, secondary

    def encode(self, key: Any) -> tuple[bytes, bytes]:
        """Return the primary and the secondary key as bytes; the latter is empty in a table without secondary keys.

        Raises TableLimitError, ConfigError, SerializationError.
        """
        if not self._config.secondary_key:
            return self.primary(key), b""
        if not isinstance(key, tuple) or len(key) != 2:
            raise ConfigError(
                f"table {self._table} has secondary keys: a key must be a tuple (primary, secondary), not {key!r}"
            )
        return self.primary(key[0]), self.secondary(key[1])

    def decode(self, data: bytes) -> Any:
        """Return the key of bytes. Raises DeserializationError."""
        size = self._config.primary_key
        primary = self._primary.deserialize(data[:size])
        return (primary, self._secondary.deserialize(data[size:])) if self._config.secondary_key else primary

    def primary(self, value: Any) -> bytes:
        """Return a primary key as bytes. Raises TableLimitError, SerializationError."""
        key = encoded(self._primary, value, "key")
        if len(key) != self._config.primary_key:
            raise self._wrong("primary", key, f"{self._config.primary_key}")
        return key

    def secondary(self, value: Any) -> bytes:
        """Return a secondary key as bytes. Raises TableLimitError, SerializationError."""
        key = encoded(self._secondary, value, "key")
        if len(key) != self._config.secondary_key:
            raise self._wrong("secondary", key, f"{self._config.secondary_key}")
        return key

    def range(self, primary: Any, start: Any, end: Any, prefix: bytes | str | None) -> tuple[bytes, bytes]:
        """Return the first and the last possible key of a range, both as bytes: see :meth:`Table.entries`.

        Raises TableLimitError, ConfigError, SerializationError.
        """
        if prefix is not None and (start is not None or end is not None):
            raise ConfigError("pass either 'prefix', or 'start' and 'end'")
        if primary is None:
            size, kind, encode = self._config.primary_key, "primary", self.primary
        else:
            size, kind, encode = self._config.secondary_key, "secondary", self.secondary
            if not size and (start is not None or end is not None or prefix is not None):
                raise ConfigError(
                    f"table {self._table} has no secondary keys: pass only 'primary', or 'start' and 'end'"
                )
        if prefix is None:
            first = bytes(size) if start is None else encode(start)
            last = b"\xff" * size if end is None else encode(end)
        else:
            raw = _prefix(prefix)
            if len(raw) > size:
                raise self._wrong(kind, raw, f"at most {size}")
            first, last = raw.ljust(size, b"\0"), raw.ljust(size, b"\xff")
        if primary is not None:
            before = self.primary(primary)
            return before + first, before + last
        rest = self._config.secondary_key
        return first + bytes(rest), last + b"\xff" * rest

    def _wrong(self, kind: str, key: bytes, size: str) -> TableLimitError:
        return TableLimitError(
            f"the {kind} key {key[:_QUOTED]!r} has {len(key)} bytes; in table {self._table} it must have {size}"
        )


def _prefix(prefix: bytes | str) -> bytes:
    if not isinstance(prefix, bytes | str):
        raise ConfigError(f"argument 'prefix' must be bytes or a str, not a {type(prefix).__name__}")
    return prefix.encode() if isinstance(prefix, str) else prefix


def encoded(serializer: SupportsBoth, value: Any, what: str) -> bytes:
    """Return the bytes of a key or a value. Raises SerializationError."""
    data = serializer.serialize(value)
    if type(data) is bytes:
        return data
    if not isinstance(data, bytes | bytearray | memoryview):
        raise SerializationError(
            f"a {what} of a table must be bytes, not {type(data).__name__}: pass a serializer, such as 'string', for "
            f"argument {what!r}"
        )
    return bytes(data)


def after(key: bytes) -> bytes | None:
    """Return the next key of the same length; None after the last one."""
    following = int.from_bytes(key, "big") + 1
    return following.to_bytes(len(key), "big") if following < 1 << (8 * len(key)) else None
