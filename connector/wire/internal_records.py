"""Records of Pravega's own streams and tables: watermarks, states of reader groups, lengths of sealed segments.

Watermarks are written by the controller into the stream ``_MARK<stream>`` (Watermark.java, a VersionedSerializer)::

    0 0 1 0 length | i64 low, i64 high, compact count, then for each segment:
                         0 0 1 0 length | i64 id, f64 low, f64 high
                         i64 offset

The state of a reader group is in the stream ``_RG<group>``, one of a state synchronizer: ``i32 1 | initial value``, or
``i32 2 | (i32 length | update)*``. An initial value may stand in the place of an update: it replaces the whole state
(ReaderGroupState.ReaderGroupStateInit and its serializer, ReaderGroupConfig's serializer,
RevisionDataOutputStream.java)::

    0 type 0, version 0, 3 revisions:   0: configuration, start offsets, end offsets
                                        1: start offsets with key ranges (which the client leaves empty)
                                        2: whether the configuration is being changed
    configuration, version 0, 3 revisions:
                                        0: i64 checkpoint interval, i64 refresh time, start and end cut of each stream
                                        1: all of this again, i32 maximum of outstanding checkpoints
                                        2: retention type, i64 generation, i64 i64 id

An unbounded cut has no bytes.

Lengths of sealed segments are only in the controller's private tables, segments of keys and values
(``PravegaTablesScope``, ``PravegaTablesStream``, ``SealedSegmentsMapShard`` of 0.13). Another version may store them
differently, and a server with authorization shows them to few clients: callers must do without them.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pravega_serde.errors import DeserializationError

from ..errors import ConnectorError
from .cuts import StreamCut
from .messages import ReadTable
from .names import SegmentRange, StreamName, segment_epoch, segment_name
from .versioned import CompactReader, put_compact_int

__all__ = [
    "MARK_PREFIX",
    "SCOPES_TABLE",
    "TABLES",
    "SubscriberConfig",
    "Watermark",
    "decode_sealed_lengths",
    "decode_watermark",
    "encode_group_init",
    "group_stream",
    "mark_stream",
    "metadata_table",
    "read_table",
    "sealed_key",
    "streams_table",
]

# ---- watermarks ----

MARK_PREFIX: Final = "_MARK"  # NameUtils.MARK_PREFIX
_TIMES: Final = struct.Struct(">qq")
_RANGE: Final = struct.Struct(">qdd")
_OFFSET: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Watermark:
    """Times that the writers of a stream have noted, together, and a cut behind the events of those times.

    Times are milliseconds as the writers count them. What a writer wrote before it noted its time lies before ``cut``.
    """

    low: int
    """Earliest of the writers' latest noted times: every writer had noted it or a later one."""
    high: int
    """Latest time that any writer had noted."""
    cut: StreamCut
    """A cut behind all positions at which the writers noted these times."""
    ranges: tuple[SegmentRange, ...]
    """Segments of the cut with their key ranges, by id."""


def mark_stream(stream: StreamName) -> StreamName:
    """Stream with the watermarks of a stream."""
    return StreamName(stream.scope, MARK_PREFIX + stream.stream)


def decode_watermark(data: bytes, stream: StreamName) -> Watermark:
    """Decode a watermark of a stream. Raises DeserializationError."""
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


# ---- reader groups ----

GROUP_PREFIX: Final = "_RG"  # NameUtils.READER_GROUP_STREAM_PREFIX
_INITIAL: Final = struct.pack(">i", 1)
_UPDATES: Final = struct.pack(">i", 2)
_STATE_INIT: Final = 0  # type of ReaderGroupStateInit
_NO_RANGE: Final = struct.pack(">dd", -1.0, -1.0)
_MANUAL: Final = 1  # StreamDataRetention.MANUAL_RELEASE_AT_USER_STREAMCUT


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberConfig:
    """Configuration of a reader group of one unbounded stream whose position is published explicitly."""

    stream: StreamName
    id: uuid.UUID
    generation: int
    checkpoint_ms: int
    refresh_ms: int
    checkpoints: int


def group_stream(scope: str, group: str) -> StreamName:
    """Stream with the state of a reader group."""
    return StreamName(scope, GROUP_PREFIX + group)


def encode_group_init(config: SubscriberConfig, start: StreamCut, *, again: bool) -> bytes:
    """Entry that begins a group's state at a cut; with ``again`` it replaces the present state."""
    segments = [(_utf(segment_name(start.stream, i)), struct.pack(">q", at)) for i, at in start.positions.items()]
    data = _encode_config(config)
    body = (
        put_compact_int(len(data)) + data + _map(segments) + _map(()),
        _map((name + _NO_RANGE, at) for name, at in segments),
        b"\0",
    )
    value = bytes((0, _STATE_INIT)) + _frame(body)
    return _UPDATES + struct.pack(">i", len(value)) + value if again else _INITIAL + value


def _encode_config(config: SubscriberConfig) -> bytes:
    unbounded = _map([(_utf(str(config.stream)), put_compact_int(0))])
    first = struct.pack(">qq", config.checkpoint_ms, config.refresh_ms) + unbounded + unbounded
    identity = put_compact_int(_MANUAL) + struct.pack(">q", config.generation) + config.id.bytes
    return b"\0" + _frame((first, first + struct.pack(">i", config.checkpoints), identity))


def _frame(revisions: tuple[bytes, ...]) -> bytes:
    """Version 0 and its revisions, without the format byte."""
    parts = (bytes((number,)) + struct.pack(">i", len(body)) + body for number, body in enumerate(revisions))
    return bytes((0, len(revisions))) + b"".join(parts)


def _utf(name: str) -> bytes:
    data = name.encode("ascii")  # as all names of scopes, streams and segments are
    return struct.pack(">H", len(data)) + data


def _map(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    pairs = [key + value for key, value in entries]
    return put_compact_int(len(pairs)) + b"".join(pairs)


# ---- tables of the controller ----

#: Stream that the tables belong to in a request for a delegation token.
TABLES: Final = StreamName("_system", "_tables")
#: Scope -> its UUID.
SCOPES_TABLE: Final = "_system/_tables/scopes"
_EPOCHS_OF_SHARD: Final = 1000  # SealedSegmentsMapShard.SHARD_SIZE
_ANY_VERSION: Final = -(2**63)  # TableKey.NO_VERSION


def streams_table(scope: str, scope_id: uuid.UUID) -> str:
    """Table of a scope's streams: name -> UUID."""
    return f"_system/_tables/{scope}/streamsInScope.#.{scope_id}"


def metadata_table(stream: StreamName, stream_id: uuid.UUID) -> str:
    """Table of a stream's records."""
    return f"_system/_tables/{stream}/metadata.#.{stream_id}"


def sealed_key(segment_id: int) -> str:
    """Key of the record with the lengths of the sealed segments of a thousand epochs, this one's included."""
    return f"segmentsSealedSizeMapShard-{segment_epoch(segment_id) // _EPOCHS_OF_SHARD}"


def read_table(request_id: int, table: str, token: str, key: str) -> ReadTable:
    """Request for the value of one key."""
    encoded = key.encode()
    return ReadTable(request_id, table, token, 1, 4 + len(encoded) + 8, encoded, _ANY_VERSION)


def decode_sealed_lengths(value: bytes) -> dict[int, int]:
    """Decode a record of sealed lengths: segment id -> length in bytes. Raises ValueError."""
    _, (body, *_) = CompactReader(value).versioned()
    return {body.fixed(8): body.fixed(8) for _ in range(body.compact_int())}
