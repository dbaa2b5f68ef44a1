"""How long segments were that are gone: the segment stores have forgotten it, the controller's tables have not.

A reader that finds a segment truncated away must know whether it had read it to its end. No call of the controller
tells; its own tables do, see ``connector.wire.internal_records``. They are asked only then; what they do not tell is
unknown.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import partial

from connector.client._connection import Endpoint
from connector.client._deadline import Deadline
from connector.client._stores import SegmentStores, error_of
from connector.errors import ConnectorError, SegmentStoreError
from connector.wire import (
    SCOPES_TABLE,
    TABLES,
    StreamName,
    TableRead,
    WrongHost,
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

    With authorization the tables are shown to those who may read the scope ``_system``. Raises retriable errors alone:
    when the servers stay away for longer than a call may take.
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
    except (ConnectorError, ValueError) as error:
        if isinstance(error, ConnectorError) and error.retriable:
            raise
        return {}
    return {i: found[i] for i in wanted if i in found}


def _uuid(value: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=value)  # ValueError for a value that is not there


class _Tables:
    """Looks keys up. Nobody says which store has a table: those are asked that have segments of the stream."""

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_ids: Iterable[int]) -> None:
        self._stores, self._stream = stores, stream
        current = [r.id for r in stores.controller.current_segments(stream)]
        self._ids = list(dict.fromkeys((*current, *segment_ids)))

    def value(self, table: str, key: str) -> bytes:
        """The value of a key; empty if there is none. Raises SegmentStoreError."""
        asked = set[Endpoint]()
        for segment_id in self._ids:
            ask = partial(self._ask, segment_id, asked, table, key)
            try:
                return self._stores.run(self._stream, segment_id, ask)
            except _NotHereError:
                continue
        raise _NotHereError(f"table {table} is on a segment store that has nothing of stream {self._stream}")

    def _ask(self, segment_id: int, asked: set[Endpoint], table: str, key: str, deadline: Deadline) -> bytes:
        """The value from the store of a segment, unless it was asked before."""
        endpoint = self._stores.endpoint(self._stream, segment_id, deadline)
        if endpoint in asked:
            raise _NotHereError(f"table {table} is on another segment store")
        token = self._stores.token(TABLES, write=False, deadline=deadline)
        with self._stores.pool.lease(endpoint, deadline) as connection:
            connection.send(encode(read_table(1, table, token, key)), deadline)
            reply = connection.receive(deadline)
        asked.add(endpoint)
        if isinstance(reply, WrongHost):
            raise _NotHereError(f"table {table} is on another segment store")
        if not isinstance(reply, TableRead):
            # Not NoSuchSegmentError, which would be taken for one about the stream.
            raise SegmentStoreError(error_of(reply, table).message)
        return bytes(reply.value)


class _NotHereError(SegmentStoreError):
    """The store has no such table."""
