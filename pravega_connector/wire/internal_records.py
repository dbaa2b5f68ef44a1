"""Records of Pravega's own streams and tables: watermarks, lengths of sealed segments.

The controller writes watermarks into the stream ``_MARK<stream>`` (Watermark.java, a VersionedSerializer)::

    0 0 1 0 length | i64 low, i64 high, compact count, then for each segment:
                         0 0 1 0 length | i64 id, f64 low, f64 high
                         i64 offset

Lengths of sealed segments are only in the controller's private tables, which are segments of keys and values
(``PravegaTablesScope``, ``PravegaTablesStream``, ``SealedSegmentsMapShard`` of 0.13). Another version may store them
differently, and a server with authorization shows them to few clients. So callers must work without them.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pravega_connector.errors import ConnectorError
from pravega_connector.wire.cuts import StreamCut
from pravega_connector.wire.messages import ReadTable
from pravega_connector.wire.names import SegmentRange, StreamName, segment_epoch
from pravega_connector.wire.table_lists import WireKey
from pravega_connector.wire.versioned import CompactReader
from pravega_serde.errors import DeserializationError

# ---- watermarks ----

MARK_PREFIX: Final = "_MARK"  # NameUtils.MARK_PREFIX
_TIMES: Final = struct.Struct(">qq")
_RANGE: Final = struct.Struct(">qdd")
_OFFSET: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Watermark:
    """Common noted times of a stream's writers, and a cut after the events of those times.

    Times are milliseconds as the writers count them. Events that a writer wrote before it noted its time are before
    ``cut``.
    """

    low: int
    """Earliest of the writers' latest noted times: every writer has noted it or a later one."""
    high: int
    """Latest time that any writer has noted."""
    cut: StreamCut
    """Cut after all positions at which the writers noted these times."""
    ranges: tuple[SegmentRange, ...]
    """Segments of the cut with their key ranges, by id."""


def mark_stream(stream: StreamName) -> StreamName:
    """Return the stream with the watermarks of a stream."""
    return StreamName(stream.scope, MARK_PREFIX + stream.stream)


def decode_watermark(data: bytes, stream: StreamName) -> Watermark:
    """Return the watermark of these bytes. Raises DeserializationError."""
    try:
        _, (body, *_) = CompactReader(data).versioned()
        low, high = _TIMES.unpack(body.take(_TIMES.size))
        entries = dict(_entries(body, body.compact_int()))
        if low > high or not entries:
            raise ValueError(f"times {low} to {high}, {len(entries)} segments")
        ranges = tuple(sorted(entries, key=lambda segment: segment.id))
        return Watermark(low, high, StreamCut(stream, {r.id: at for r, at in entries.items()}), ranges)
    except (ValueError, ConnectorError) as error:
        raise DeserializationError(f"invalid watermark of stream {stream} ({len(data)} bytes): {error}") from None


def _entries(body: CompactReader, count: int) -> Iterator[tuple[SegmentRange, int]]:
    for _ in range(count):
        _, (inner, *_) = body.versioned()
        segment = SegmentRange(*_RANGE.unpack(inner.take(_RANGE.size)))
        (offset,) = _OFFSET.unpack(body.take(_OFFSET.size))
        yield segment, max(0, offset)  # -1: Java's writers have not written to the segment


# ---- tables of the controller ----

#: Stream of the tables in a request for a delegation token.
TABLES: Final = StreamName("_system", "_tables")
#: Scope -> its UUID.
SCOPES_TABLE: Final = "_system/_tables/scopes"
_EPOCHS_OF_SHARD: Final = 1000  # SealedSegmentsMapShard.SHARD_SIZE


def streams_table(scope: str, scope_id: uuid.UUID) -> str:
    """Return the table of a scope's streams: name -> UUID."""
    return f"_system/_tables/{scope}/streamsInScope.#.{scope_id}"


def metadata_table(stream: StreamName, stream_id: uuid.UUID) -> str:
    """Return the table of a stream's records."""
    return f"_system/_tables/{stream}/metadata.#.{stream_id}"


def sealed_key(segment_id: int) -> str:
    """Return the key of the record with the lengths of the segments sealed in the segment's thousand epochs."""
    return f"segmentsSealedSizeMapShard-{segment_epoch(segment_id) // _EPOCHS_OF_SHARD}"


def read_table(request_id: int, table: str, token: str, key: str) -> ReadTable:
    """Return the request for the value of one key."""
    return ReadTable(request_id, table, token, (WireKey(key.encode()),))


def decode_sealed_lengths(value: bytes) -> dict[int, int]:
    """Return a record of sealed lengths: segment id -> length in bytes. Raises ValueError."""
    _, (body, *_) = CompactReader(value).versioned()
    return {body.fixed(8): body.fixed(8) for _ in range(body.compact_int())}
