"""Head and tail of a stream as cuts, the successors of a segment, and the lengths of sealed segments.

A reader that finds a segment truncated away must know if it had read the segment to its end. Segment stores forget the
length of a deleted segment. The controller keeps it in its own tables, but no call returns it. So the tables
are read directly, only in this case. See ``pravega_connector.wire.internal_records``. A length that the tables do not
have is unknown.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from functools import partial

from pravega_connector.core.connection import Endpoint
from pravega_connector.core.deadline import Deadline
from pravega_connector.errors import ConnectorError, SegmentStoreError
from pravega_connector.stores.segment_stores import SegmentStores, error_of
from pravega_connector.wire import (
    SCOPES_TABLE,
    TABLES,
    StreamCut,
    StreamName,
    TableRead,
    WrongHost,
    decode_sealed_lengths,
    metadata_table,
    read_table,
    sealed_key,
    streams_table,
)


class Lineage:
    """Cache of the successors of sealed segments, which never change."""

    def __init__(self, stores: SegmentStores, stream: StreamName) -> None:
        self._stores = stores
        self.stream = stream
        self._successors: dict[int, dict[int, tuple[int, ...]]] = {}

    def successors(self, segment_id: int) -> dict[int, tuple[int, ...]]:
        """Return successor id -> ids of all its predecessors; empty while the segment is open or the last one."""
        known = self._successors.get(segment_id)
        if known is None:
            found = self._stores.controller.successors(self.stream, segment_id)
            known = {s.range.id: tuple(s.predecessors) for s in found}
            if known:
                self._successors[segment_id] = known
        return known

    def advance(self, positions: dict[int, int], finished: set[int], among: set[int] | None = None) -> list[int]:
        """Replace finished segments by their successors. Return the ids that started, each at offset 0.

        The segments that one scaling sealed are replaced as a group, when all of them are finished. So the order per
        routing key holds across scaling, and ``positions``, which is changed in place, stays a valid cut. ``among`` are
        the segments that finished after the last call. Pass it only if the last call has checked the others.
        """
        started: list[int] = []
        for segment_id in sorted((finished if among is None else among) & positions.keys()):
            if segment_id in positions and (group := self._group(segment_id, finished)) is not None:
                predecessors, successors = group
                for predecessor in predecessors:
                    positions.pop(predecessor, None)
                positions.update(dict.fromkeys(successors, 0))
                started += sorted(successors)
        return started

    def _group(self, segment_id: int, finished: set[int]) -> tuple[set[int], set[int]] | None:
        """Return the predecessors and successors of the scaling that sealed a segment; None until all are finished."""
        predecessors, successors, frontier = {segment_id}, set[int](), [segment_id]
        while frontier:
            for successor, others in self.successors(frontier.pop()).items():
                successors.add(successor)
                if not finished.issuperset(others):
                    return None
                frontier += set(others) - predecessors
                predecessors.update(others)
        return (predecessors, successors) if successors else None


def tail_cut(stores: SegmentStores, stream: StreamName) -> StreamCut:
    """Return the end of a stream at this moment: the length of each current segment.

    A sealed stream has no current segments, so its tail is found by following successors from the head. (Java's client
    returns an empty cut in this case, which it cannot parse itself.)
    """
    current = [r.id for r in stores.controller.current_segments(stream)]
    if not current:
        current = _last_segments(stores, stream)
    infos = stores.segment_infos(stream, current)
    return StreamCut(stream, {i: infos[i].write_offset for i in current})


def _last_segments(stores: SegmentStores, stream: StreamName) -> list[int]:
    lineage = Lineage(stores, stream)
    frontier, last, seen = list(stores.controller.head_cut(stream).positions), [], set[int]()
    while frontier:
        segment_id = frontier.pop()
        if segment_id in seen:
            continue
        seen.add(segment_id)
        after = lineage.successors(segment_id)
        if after:
            frontier.extend(after)
        else:
            last.append(segment_id)
    return sorted(last)


def sealed_lengths(stores: SegmentStores, stream: StreamName, segment_ids: Iterable[int]) -> dict[int, int]:
    """Return the lengths of sealed segments in bytes, including truncated bytes. Unknown lengths are left out.

    With authorization, the tables require permission to read the scope ``_system``. Raises only retriable errors, if
    the servers stay unavailable for longer than a call may take.
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
    return uuid.UUID(bytes=value)  # ValueError for a missing value


class _Tables:
    """Reader of tables. The store of a table is unknown, so the stores of the stream's segments are asked."""

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_ids: Iterable[int]) -> None:
        self._stores, self._stream = stores, stream
        current = [r.id for r in stores.controller.current_segments(stream)]
        self._ids = list(dict.fromkeys((*current, *segment_ids)))

    def value(self, table: str, key: str) -> bytes:
        """Return the value of a key; empty if absent. Raises SegmentStoreError."""
        asked = set[Endpoint]()
        for segment_id in self._ids:
            ask = partial(self._ask, segment_id, asked, table, key)
            try:
                return self._stores.run(self._stream, segment_id, ask)
            except _NotHereError:
                continue
        raise _NotHereError(f"table {table} is on a segment store that has no segment of stream {self._stream}")

    def _ask(self, segment_id: int, asked: set[Endpoint], table: str, key: str, deadline: Deadline) -> bytes:
        """Return the value from the store of a segment. Raises _NotHereError if that store was asked before."""
        endpoint = self._stores.endpoint(self._stream, segment_id, deadline)
        if endpoint in asked:
            raise _NotHereError(f"table {table} is on another segment store")
        token = self._stores.token(TABLES, write=False, deadline=deadline)
        with self._stores.pool.lease(endpoint, deadline) as connection:
            reply = connection.ask(read_table(connection.next_request_id(), table, token, key), deadline)
        asked.add(endpoint)
        if isinstance(reply, WrongHost):
            raise _NotHereError(f"table {table} is on another segment store")
        if not isinstance(reply, TableRead):
            # Not NoSuchSegmentError, which the caller would attribute to the stream.
            raise SegmentStoreError(error_of(reply, table).message)
        return reply.entries[0].value if reply.entries else b""


class _NotHereError(SegmentStoreError):
    """The store does not have the table."""
