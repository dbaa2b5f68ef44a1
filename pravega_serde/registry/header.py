"""Header of every event: a protocol byte and the encoding id, which identifies a schema and a codec.

The layout is ``01 | int32 big-endian encoding id | payload``, as Java's ``AbstractSerializer`` writes it. Java's
readers ignore the protocol byte. Here, another byte is an error, because the event most likely has no header.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import as_binary, cut, number_column, valid_rows
from pravega_serde.columnar.arrays import Int64s, UInt8s, offsets_of
from pravega_serde.errors import DeserializationError

_HEADER: Final = struct.Struct(">Bi")
_PROTOCOL: Final = 1
HEADER_SIZE: Final = _HEADER.size
_INT32_MAX: Final = 2**31 - 1


def header_of(encoding_id: int) -> bytes:
    """Return the header of an encoding id."""
    return _HEADER.pack(_PROTOCOL, encoding_id)


def read_header(event: bytes) -> int:
    """Return the encoding id of an event. Raises :class:`DeserializationError` if it does not begin with a header."""
    if len(event) < HEADER_SIZE:
        raise DeserializationError(f"an event of {len(event)} bytes is too short for a registry header")
    protocol, encoding_id = _HEADER.unpack_from(event)
    if protocol != _PROTOCOL or encoding_id < 0:
        raise DeserializationError(f"invalid registry header: the event begins with {event[:HEADER_SIZE].hex()}")
    return int(encoding_id)


def with_header(header: bytes, payloads: pa.BinaryArray) -> pa.BinaryArray:
    """Add the header before each payload. A null stays null."""
    parts = (pa.scalar(header, pa.binary()), payloads, pa.scalar(b"", pa.binary()))
    return pc.binary_join_element_wise(*parts)


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """Headers of a column of events, read at once."""

    rows: Int64s
    """Rows that have a header, ascending. The others are null or malformed."""
    ids: npt.NDArray[np.int32]
    """The encoding id of each of these rows."""
    bad: Int64s
    """Rows that are not null but do not begin with a header, ascending."""
    _column: pa.BinaryArray

    @classmethod
    def of(cls, column: pa.Array) -> HeaderColumn:
        """Read the headers of a binary column. Raises :class:`SchemaError` if its type cannot hold events."""
        column = as_binary(column)
        if (common := _common_id(column)) is not None:
            rows = np.arange(len(column))
            return cls(rows, np.full(len(column), common, np.int32), rows[:0], column)
        data, starts, ends = _bytes_of(column)
        there = valid_rows(column)
        rows = np.flatnonzero(there & (ends - starts >= HEADER_SIZE))
        ids = _ids(data, starts[rows])
        good = (data[starts[rows]] == _PROTOCOL) & (ids >= 0)
        if not good.all():
            rows, ids = rows[good], ids[good]
        there[rows] = False
        return cls(rows, ids, np.flatnonzero(there), column)

    def groups(self) -> list[tuple[int, Int64s]]:
        """Yield each encoding id, ascending, with its rows, ascending."""
        if len(self.ids) and (self.ids == self.ids[0]).all():
            return [(int(self.ids[0]), self.rows)]
        order = np.argsort(self.ids, kind="stable")
        ids, first = np.unique(self.ids[order], return_index=True)
        parts = np.split(self.rows[order], first[1:])
        return list(zip(ids.tolist(), parts, strict=False))

    def payloads(self, rows: Int64s) -> pa.BinaryArray:
        """Return the payloads after the headers of some rows. Arrow copies them in one pass."""
        if len(rows) == len(self._column):
            return pc.binary_slice(self._column, HEADER_SIZE, _INT32_MAX)  # overflows without an end
        data, starts, ends = _bytes_of(self._column)
        return cut(data, starts[rows] + HEADER_SIZE, ends[rows])


def encoding_ids(column: pa.Array) -> pa.Int32Array:
    """Return the encoding id of each event, or null if there is no event or no header."""
    headers = HeaderColumn.of(column)
    ids, none = np.zeros(len(column), np.int32), np.ones(len(column), np.bool_)
    ids[headers.rows], none[headers.rows] = headers.ids, False
    return number_column(ids, valid=~none)


def _common_id(column: pa.BinaryArray) -> int | None:
    """Return the encoding id if no event is null and all have the same header, as in most columns."""
    if not len(column) or column.null_count:
        return None
    first = column[0].as_py()[:HEADER_SIZE]
    try:
        encoding_id = read_header(first)
    except DeserializationError:
        return None
    return encoding_id if pc.all(pc.starts_with(column, pattern=first)).as_py() else None


def _bytes_of(column: pa.BinaryArray) -> tuple[UInt8s, Int64s, Int64s]:
    """Return all bytes of a column, and the start and end of each event in them."""
    offsets = offsets_of(column).astype(np.int64)
    return np.frombuffer(column.buffers()[2] or b"", np.uint8), offsets[:-1], offsets[1:]


def _ids(data: UInt8s, starts: Int64s) -> npt.NDArray[np.int32]:
    """Return the big-endian number after the first byte of each row with at least a header's length."""
    if not len(starts):
        return np.empty(0, np.int32)
    # A view with a stride of one byte reads the number at any offset.
    numbers: npt.NDArray[np.int32] = np.ndarray((len(data) - 3,), dtype=">i4", buffer=data, strides=(1,))
    return numbers[starts + 1].astype(np.int32)
