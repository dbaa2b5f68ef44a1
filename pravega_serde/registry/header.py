"""Headers of registry events: a first byte and the id of an encoding or a schema, big-endian.

| framing | first byte | id |
|---|---|---|
| Pravega | 01 | encoding id of 4 bytes: a schema and a codec of the group |
| Confluent | 00 | schema id of 4 bytes, from 1 |
| Apicurio 2 | 00 | global id of 8 bytes; the first 4 are zero |

No event has two of these headers. Java's readers of Pravega's registry ignore the first byte. Here, another byte is an
error, because the event most likely has no header.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import as_binary, cut, number_column, valid_rows
from pravega_serde.columnar.arrays import Int64s, UInt8s, offsets_of, select
from pravega_serde.errors import DeserializationError

_INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Framing:
    """Layout of a header: a first byte, and an id of ``id_bytes`` bytes between ``least_id`` and 2³¹ - 1.

    ``ascending`` is true if no id after an unknown one is known.
    """

    first_byte: int
    id_bytes: int
    least_id: int
    ascending: bool = False

    @property
    def size(self) -> int:
        """Bytes of the header."""
        return 1 + self.id_bytes

    def header(self, encoding_id: int) -> bytes:
        """Return the header of an id."""
        return bytes([self.first_byte]) + encoding_id.to_bytes(self.id_bytes, "big")

    def find(self, event: bytes) -> int | None:
        """Return the id in the header of an event, or None if the event does not begin with this header."""
        if len(event) < 1 + self.id_bytes or event[0] != self.first_byte:
            return None
        found = int.from_bytes(event[1 : 1 + self.id_bytes], "big", signed=True)
        return found if self.least_id <= found <= _INT32_MAX else None

    def ids(self, data: UInt8s, starts: Int64s) -> Int64s:
        """Return the number after the first byte of each event. Each has at least the header's length."""
        if not len(starts):
            return np.empty(0, np.int64)
        # A view with a stride of one byte reads the number at any offset.
        shape, kind = len(data) - self.id_bytes + 1, f">i{self.id_bytes}"
        numbers: Int64s = np.ndarray((shape,), dtype=kind, buffer=data, strides=(1,))
        return numbers[starts + 1].astype(np.int64)


PRAVEGA: Final = Framing(first_byte=1, id_bytes=4, least_id=0, ascending=True)
CONFLUENT: Final = Framing(first_byte=0, id_bytes=4, least_id=1)
APICURIO: Final = Framing(first_byte=0, id_bytes=8, least_id=1)


def read_header(event: bytes, framings: Sequence[Framing] = (PRAVEGA,)) -> tuple[Framing, int]:
    """Return the framing and the id of an event. Raises :class:`DeserializationError` if it has no such header."""
    for framing in framings:
        if (found := framing.find(event)) is not None:
            return framing, found
    size = min(framing.size for framing in framings)
    if len(event) < size:
        raise DeserializationError(f"an event of {len(event)} bytes is too short for a registry header")
    raise DeserializationError(f"invalid registry header: the event begins with {event[:size].hex()}")


def with_header(header: bytes, payloads: pa.BinaryArray) -> pa.BinaryArray:
    """Add the header before each payload. A null stays null."""
    parts = (pa.scalar(header, pa.binary()), payloads, pa.scalar(b"", pa.binary()))
    return pc.binary_join_element_wise(*parts)


class SameId(NamedTuple):
    """Rows of a column, ascending, whose headers have the same framing and id."""

    framing: Framing
    id: int
    rows: Int64s


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """Headers of a column of events, read at once."""

    found: tuple[tuple[Framing, Int64s, Int64s], ...]
    """Each framing with the rows that have it, ascending, and their ids. Other rows are null or malformed."""
    bad: Int64s
    """Rows that are not null but do not begin with a header, ascending."""
    _column: pa.BinaryArray

    @classmethod
    def of(cls, column: pa.Array, framings: Sequence[Framing] = (PRAVEGA,)) -> HeaderColumn:
        """Read the headers of a binary column. Raises :class:`SchemaError` if its type cannot hold events."""
        column = as_binary(column)
        if (common := _common(column, framings)) is not None:
            framing, found = common
            rows = np.arange(len(column))
            return cls(((framing, rows, np.full(len(column), found)),), rows[:0], column)
        data, starts, ends = bytes_of(column)
        left = valid_rows(column)
        parts = []
        for framing in framings:
            rows = np.flatnonzero(left & (ends - starts >= framing.size))
            ids = framing.ids(data, starts[rows])
            good = (data[starts[rows]] == framing.first_byte) & (ids >= framing.least_id) & (ids <= _INT32_MAX)
            if not good.all():
                rows, ids = rows[good], ids[good]
            left[rows] = False
            parts.append((framing, rows, ids))
        return cls(tuple(parts), np.flatnonzero(left), column)

    def groups(self) -> list[SameId]:
        """Return the rows of each framing and id. The ids of a framing are ascending."""
        return [group for framing, rows, ids in self.found for group in _grouped(framing, rows, ids)]

    def events(self, group: SameId) -> pa.BinaryArray:
        """Return the events of some rows."""
        return self._column if len(group.rows) == len(self._column) else select(self._column, group.rows)

    def payloads(self, group: SameId, prefix: int = 0) -> pa.BinaryArray:
        """Return the bytes of some rows after the header and ``prefix`` more bytes. Arrow copies them in one pass."""
        framing, _, rows = group
        skipped = framing.size + prefix
        if len(rows) == len(self._column):
            return pc.binary_slice(self._column, skipped, _INT32_MAX)  # overflows without an end
        data, starts, ends = bytes_of(self._column)
        return cut(data, starts[rows] + skipped, ends[rows])


def _grouped(framing: Framing, rows: Int64s, ids: Int64s) -> list[SameId]:
    if not len(ids):
        return []
    if (ids == ids[0]).all():
        return [SameId(framing, int(ids[0]), rows)]
    order = np.argsort(ids, kind="stable")
    distinct, first = np.unique(ids[order], return_index=True)
    parts = np.split(rows[order], first[1:])
    return [SameId(framing, each, part) for each, part in zip(distinct.tolist(), parts, strict=True)]


def encoding_ids(column: pa.Array, framings: Sequence[Framing] = (PRAVEGA,)) -> pa.Int32Array:
    """Return the id in the header of each event, or null without an event or one of these headers."""
    ids, none = np.zeros(len(column), np.int32), np.ones(len(column), np.bool_)
    for _, rows, found in HeaderColumn.of(column, framings).found:
        ids[rows], none[rows] = found, False
    return number_column(ids, valid=~none)


def _common(column: pa.BinaryArray, framings: Sequence[Framing]) -> tuple[Framing, int] | None:
    """Return the framing and id if no event is null and all have the same header, as in most columns."""
    if not len(column) or column.null_count:
        return None
    first = column[0].as_py()
    for framing in framings:
        if (found := framing.find(first)) is not None:
            same = pc.all(pc.starts_with(column, pattern=first[: framing.size])).as_py()
            return (framing, found) if same else None
    return None


def bytes_of(column: pa.BinaryArray) -> tuple[UInt8s, Int64s, Int64s]:
    """Return all bytes of a column, and the start and end of each event in them."""
    offsets = offsets_of(column).astype(np.int64)
    return np.frombuffer(column.buffers()[2] or b"", np.uint8), offsets[:-1], offsets[1:]
