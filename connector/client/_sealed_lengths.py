"""How long segments were that are gone: the segment stores have forgotten it, the controller's tables have not.

A reader that finds a segment truncated away must know whether it had read it to its end. No call of the controller
tells; its own tables do, see ``connector.wire._tables``. They are asked only then; what they do not tell is unknown.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from connector.client._connection import Endpoint
from connector.client._deadline import Deadline
from connector.client._stores import SegmentStores, error_of
from connector.errors import ConnectorError, WrongHostError
from connector.wire import (
    SCOPES_TABLE,
    TABLES,
    StreamName,
    TableRead,
    decode_sealed_lengths,
    encode,
    metadata_table,
    read_table,
    sealed_key,
    streams_table,
)

__all__ = ["sealed_lengths"]


def sealed_lengths(stores: SegmentStores, stream: StreamName, segment_ids: Iterable[int]) -> dict[int, int]:
    """Bytes that sealed segments had, those included that were truncated away; what nobody tells is left out.

    Never fails: with authorization the tables are shown to those who may read the scope ``_system``.
    """
    wanted = sorted(segment_ids)
    if not wanted:
        return {}
    try:
        tables = _Tables(stores, stream, wanted)
        scope_id = _uuid(tables.value(SCOPES_TABLE, stream.scope))
        table = metadata_table(stream, _uuid(tables.value(streams_table(stream.scope, scope_id), stream.stream)))
        found: dict[int, int] = {}
        for key in dict.fromkeys(map(sealed_key, wanted)):
            if value := tables.value(table, key):
                found |= decode_sealed_lengths(value)
    except (ConnectorError, ValueError):
        return {}
    return {i: found[i] for i in wanted if i in found}


def _uuid(value: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=value)  # ValueError for a value that is not there


class _Tables:
    """Looks keys up. Nobody says which store has a table: those are asked that have segments of the stream."""

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_ids: Iterable[int]) -> None:
        self._stores, self._stream = stores, stream
        current = [r.id for r in stores.controller.current_segments(stream)]
        self._endpoints = list(dict.fromkeys(stores.endpoint(stream, i) for i in (*current, *segment_ids)))

    def value(self, table: str, key: str) -> bytes:
        """The value of a key; empty if there is none. Raises SegmentStoreError."""
        for endpoint in self._endpoints:
            try:
                return self._ask(endpoint, table, key)
            except WrongHostError:
                continue
        raise WrongHostError(f"table {table} is on a segment store that has nothing of stream {self._stream}")

    def _ask(self, endpoint: Endpoint, table: str, key: str) -> bytes:
        deadline = Deadline(self._stores.timeout)
        token = self._stores.token(TABLES, write=False)
        with self._stores.pool.lease(endpoint, deadline) as connection:
            connection.send(encode(read_table(1, table, token, key)), deadline)
            reply = connection.receive(deadline)
            if not isinstance(reply, TableRead):
                raise error_of(reply, table)
            return bytes(reply.value)
