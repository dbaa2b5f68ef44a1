"""Entries of a key-value table as columns: blocks of a segment, and the segments of a column of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_connector.core.values import TableConfig
from pravega_connector.tables.keys import C1, C2, SEED
from pravega_connector.tables.requests import SegmentRequests
from pravega_connector.wire import SegmentRange

# Entries of one request. A server ends an answer after 2 MiB.
_BLOCK: Final = 2000
_U64 = npt.NDArray[np.uint64]
#: Rows of bytes: a column of keys of one length.
KeyBytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class EntryBlock:
    """Entries of a segment, in the order of their keys."""

    keys: pa.FixedSizeBinaryArray
    """Primary and secondary key, one after the other."""
    versions: pa.Int64Array
    """Numbers of the versions."""
    values: pa.BinaryArray
    """Values."""

    def filter(self, rows: pa.BooleanArray) -> EntryBlock:
        """Return the entries of some rows."""
        return EntryBlock(self.keys.filter(rows), self.versions.filter(rows), self.values.filter(rows))

    def slice(self, start: int, count: int | None = None) -> EntryBlock:
        """Return ``count`` entries from row ``start``, by default all."""
        columns = (self.keys, self.versions, self.values)
        return EntryBlock(*(column.slice(start, count) for column in columns))


def read_blocks(
    requests: SegmentRequests, segment_id: int, config: TableConfig, size: int = _BLOCK
) -> Iterator[EntryBlock]:
    """Yield all entries of a segment, about ``size`` or 2 MiB at a time. The result is not a snapshot.

    Raises the errors of SegmentRequests.
    """
    length = config.primary_key + config.secondary_key
    for page in requests.pages(segment_id, bytes(length), b"\xff" * length, size):
        keys, versions, values = zip(*page, strict=True)
        yield EntryBlock(
            pa.array(keys, pa.binary(length)), pa.array(versions, pa.int64()), pa.array(values, pa.binary())
        )


class KeySegments:
    """Segments of a table by columns of primary keys, as :class:`~pravega_connector.tables.keys.TableSegments`."""

    def __init__(self, ranges: Sequence[SegmentRange]) -> None:
        ordered = sorted(ranges, key=lambda each: each.high)
        self._highs = np.array([each.high for each in ordered])
        self._ids = np.array([each.id for each in ordered], np.int64)

    def of(self, primary: KeyBytes) -> npt.NDArray[np.int64]:
        """Return the id of the segment of each primary key."""
        if len(self._ids) == 1:
            return np.full(len(primary), self._ids[0])
        positions = (key_hashes(primary) >> np.uint64(12)).astype(np.float64) * 2.0**-52
        return self._ids[np.searchsorted(self._highs, positions, side="left")]


def key_rows(keys: pa.Array, length: int) -> KeyBytes:
    """Return binary keys of one length as rows of bytes."""
    fixed = keys.cast(pa.binary(length))
    data = np.frombuffer(fixed.buffers()[1], np.uint8)
    return data[fixed.offset * length : (fixed.offset + len(fixed)) * length].reshape(len(fixed), length)


def key_hashes(keys: KeyBytes) -> _U64:
    """Return the lower half of the hash of each key: see :func:`~pravega_connector.tables.keys.key_position`."""
    count, length = keys.shape
    padded = np.zeros((count, length // 16 * 16 + 16), np.uint8)
    padded[:, :length] = keys
    blocks = padded.view("<u8").astype(np.uint64)
    h1 = h2 = np.full(count, SEED, np.uint64)
    for at in range(0, length // 16 * 2, 2):
        h1 = (_rotate(h1 ^ _mix(blocks[:, at], C1, 31, C2), 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
        h2 = (_rotate(h2 ^ _mix(blocks[:, at + 1], C2, 33, C1), 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
    h1 = h1 ^ _mix(blocks[:, -2], C1, 31, C2) ^ np.uint64(length)
    h2 = h2 ^ _mix(blocks[:, -1], C2, 33, C1) ^ np.uint64(length)
    h1 = h1 + h2
    h2 = h2 + h1
    return _final(h1) + _final(h2)


def _rotate(x: _U64, by: int) -> _U64:
    return x << np.uint64(by) | x >> np.uint64(64 - by)


def _mix(k: _U64, first: int, by: int, second: int) -> _U64:
    return _rotate(k * np.uint64(first), by) * np.uint64(second)


def _final(k: _U64) -> _U64:
    k = (k ^ k >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    k = (k ^ k >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return k ^ k >> np.uint64(33)
