"""Watermarks as the controller writes them into the stream ``_MARK<stream>`` (Watermark.java, a VersionedSerializer).

::

    0 0 1 0 length | i64 low, i64 high, compact count, then for each segment:
                         0 0 1 0 length | i64 id, f64 low, f64 high
                         i64 offset
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from connector.errors import ConnectorError
from connector.wire._compact import CompactReader
from connector.wire._cuts import StreamCut
from connector.wire._names import SegmentRange, StreamName
from pravega_serde.errors import DeserializationError

MARK_PREFIX: Final = "_MARK"  # NameUtils.MARK_PREFIX
_TIMES: Final = struct.Struct(">qq")
_SEGMENT: Final = struct.Struct(">qdd")
_OFFSET: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Watermark:
    """What the writers of a stream have said about time, all together, at some moment.

    Every writer had noted ``low`` or a later time, and ``high`` was the latest that any had noted; milliseconds, as
    the writers count them. What was written by then for which they said so lies before ``cut``.
    """

    low: int
    """The earliest of the times that the writers had noted last."""
    high: int
    """The latest of them."""
    cut: StreamCut
    """A cut behind all the places at which they noted them."""
    ranges: tuple[SegmentRange, ...]
    """The segments of the cut with their key ranges, by id."""


def mark_stream(stream: StreamName) -> StreamName:
    """The stream that holds the watermarks of a stream."""
    return StreamName(stream.scope, MARK_PREFIX + stream.stream)


def decode_watermark(data: bytes, stream: StreamName) -> Watermark:
    """A watermark of a stream. Raises DeserializationError for anything else."""
    try:
        _, body = CompactReader(data).versioned()
        low, high = _TIMES.unpack(body.take(_TIMES.size))
        entries = dict(_entries(body, body.compact_int()))
        if low > high or not entries:
            raise ValueError(f"it spans times {low} to {high} and has {len(entries)} segments")
        ranges = tuple(sorted(entries, key=lambda segment: segment.id))
        return Watermark(low, high, StreamCut(stream, {r.id: at for r, at in entries.items()}), ranges)
    except (ValueError, ConnectorError) as error:
        raise DeserializationError(f"{len(data)} bytes are not a watermark of stream {stream}: {error}") from None


def _entries(body: CompactReader, count: int) -> Iterator[tuple[SegmentRange, int]]:
    for _ in range(count):
        _, inner = body.versioned()
        segment = SegmentRange(*_SEGMENT.unpack(inner.take(_SEGMENT.size)))
        (offset,) = _OFFSET.unpack(body.take(_OFFSET.size))
        yield segment, max(0, offset)  # Java's writers put -1 for a segment that they have not written to
