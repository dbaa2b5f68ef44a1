"""A digest of rows: of their routing keys and events in order, however they come in batches."""

from __future__ import annotations

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import as_column

__all__ = ["RowDigest"]


class RowDigest:
    """Equal for equal rows in equal order, and for others only by an accident of one in 2**128 (MurmurHash3).

    Lengths and contents of the events, and of the keys, are hashed as streams of their own, so that the digest does
    not depend on where one batch ends and the next begins; nor does it on routing, which a scaling may change.
    """

    def __init__(self) -> None:
        self.rows = self.bytes = 0
        self._hashers = [mmh3.mmh3_x64_128() for _ in range(4)]

    def add(self, events: pa.Array, keys: pa.Array | None) -> None:
        """Add rows: serialized events without nulls, and their routing keys, null where there is none."""
        lengths, contents, key_lengths, key_contents = self._hashers
        self.rows += len(events)
        self.bytes += _add(events, lengths, contents)
        if keys is None or keys.null_count == len(keys):
            key_lengths.update(np.full(len(events), -1, np.int64).tobytes())
        else:
            _add(keys, key_lengths, key_contents)

    def hex(self) -> str:
        """The digest of all rows so far, 32 hexadecimal digits."""
        whole = mmh3.mmh3_x64_128()
        for hasher in self._hashers:
            whole.update(hasher.digest())
        return str(whole.digest().hex())


def _add(column: pa.Array, lengths: mmh3.mmh3_x64_128, contents: mmh3.mmh3_x64_128) -> int:
    column = as_column(column)
    sizes = pc.binary_length(column).fill_null(-1).to_numpy().astype(np.int64, copy=False)
    lengths.update(sizes.tobytes())
    data = _contents(column.drop_null() if column.null_count else column)
    if len(data):
        contents.update(data)
    return len(data)


def _contents(column: pa.Array) -> memoryview:
    """The bytes of all values, one after the other, as they lie in memory."""
    offsets, data = column.buffers()[1:]
    if data is None or not len(column):
        return memoryview(b"")
    width = np.int64 if column.type in (pa.large_binary(), pa.large_string()) else np.int32
    bounds = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    return memoryview(data)[int(bounds[0]) : int(bounds[-1])]
