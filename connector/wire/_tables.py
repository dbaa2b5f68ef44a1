"""What the controller keeps of a stream in tables of its own, as far as it is told nowhere else: sealed lengths.

A table is a segment of keys and values. These are the controller's private ones (``PravegaTablesScope``,
``PravegaTablesStream``, ``SealedSegmentsMapShard`` of 0.13): another version may keep them otherwise, and a server
with authorization shows them to few. Whoever asks must be able to do without.
"""

from __future__ import annotations

import uuid
from typing import Final

from connector.wire._compact import CompactReader
from connector.wire._messages_segment import ReadTable
from connector.wire._names import StreamName, segment_epoch

__all__ = [
    "SCOPES_TABLE",
    "TABLES",
    "decode_sealed_lengths",
    "metadata_table",
    "read_table",
    "sealed_key",
    "streams_table",
]

#: What the servers take the tables for when a delegation token is asked for.
TABLES: Final = StreamName("_system", "_tables")
#: Scope -> its UUID.
SCOPES_TABLE: Final = "_system/_tables/scopes"
_EPOCHS_OF_SHARD: Final = 1000  # SealedSegmentsMapShard.SHARD_SIZE
_ANY_VERSION: Final = -(2**63)  # TableKey.NO_VERSION


def streams_table(scope: str, scope_id: uuid.UUID) -> str:
    """The table of a scope's streams: name -> UUID."""
    return f"_system/_tables/{scope}/streamsInScope.#.{scope_id}"


def metadata_table(stream: StreamName, stream_id: uuid.UUID) -> str:
    """The table of a stream's records."""
    return f"_system/_tables/{stream}/metadata.#.{stream_id}"


def sealed_key(segment_id: int) -> str:
    """Key of the record that has the length of a sealed segment, with those of a thousand epochs."""
    return f"segmentsSealedSizeMapShard-{segment_epoch(segment_id) // _EPOCHS_OF_SHARD}"


def read_table(request_id: int, table: str, token: str, key: str) -> ReadTable:
    """The request for one key's value."""
    encoded = key.encode()
    return ReadTable(request_id, table, token, 1, 4 + len(encoded) + 8, encoded, _ANY_VERSION)


def decode_sealed_lengths(value: bytes) -> dict[int, int]:
    """Segment id -> length in bytes, out of the record. Raises ValueError for anything else."""
    _, body = CompactReader(value).versioned()
    return {body.fixed(8): body.fixed(8) for _ in range(body.compact_int())}
