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
from pravega_connector.errors import ConnectorError, MalformedStreamCutError, SegmentStoreError
from pravega_connector.stores.segment_stores import SegmentStores, error_of
from pravega_connector.wire import (
    SCOPES_TABLE,
    TABLES,
    SegmentRange,
    StreamCut,
    StreamName,
    TableRead,
    WrongHost,
    decode_sealed_lengths,
    metadata_table,
    read_table,
    sealed_key,
    segment_epoch,
    segment_name,
    streams_table,
)


class Lineage:
    """Cache of the successors of sealed segments, which never change.

    With ``key``, a position on the key line [0, 1), it has only the segments that own the key: one at a time.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, key: float | None = None) -> None:
        self._stores = stores
        self.stream = stream
        self._key = key
        self._successors: dict[int, dict[int, tuple[int, ...]]] = {}
        self._epochs: dict[int, list[SegmentRange]] = {}
        self._ranges: dict[int, SegmentRange] = {}

    def successors(self, segment_id: int) -> dict[int, tuple[int, ...]]:
        """Return successor id -> ids of all its predecessors; empty while the segment is open or the last one.

        With a key, return only the successor that owns the key, which follows no other segment of the key.
        """
        known = self._successors.get(segment_id)
        if known is None:
            found = self._stores.controller.successors(self.stream, segment_id)
            if self._key is None:
                known = {s.range.id: tuple(s.predecessors) for s in found}
            else:
                known = {s.range.id: (segment_id,) for s in found if self.includes(s.range.id)}
            if known:
                self._successors[segment_id] = known
        return known

    def advance(self, positions: dict[int, int], finished: set[int], among: set[int] | None = None) -> list[int]:
        """Replace finished segments by their successors. Return the ids that started, each at offset 0.

        The segments that one scaling sealed are replaced as a group, when all of them are finished. So the order per
        routing key holds across scaling, and ``positions``, which is changed in place, stays a valid cut. ``among`` are
        the segments that finished after the last call. Pass it only if the last call has checked the others. With a
        key, the positions of other segments stay, unless the new segment continues them, too.
        """
        started: list[int] = []
        for segment_id in sorted((finished if among is None else among) & positions.keys()):
            if segment_id in positions and (group := self._group(segment_id, finished)) is not None:
                predecessors, successors = group
                started += sorted(successors)
                if self._key is not None:
                    self._enter(positions, *successors)
                    continue
                for predecessor in predecessors:
                    positions.pop(predecessor, None)
                positions.update(dict.fromkeys(successors, 0))
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

    # ---- one routing key ----

    def range_of(self, segment_id: int) -> SegmentRange:
        """Return the routing keys that a segment owns. Raises MalformedStreamCutError for an unknown segment."""
        if segment_id not in self._ranges:
            self._ranges |= {each.id: each for each in self._epoch(segment_epoch(segment_id))}
        if segment_id not in self._ranges:
            raise MalformedStreamCutError(
                f"stream {self.stream} has no segment {segment_name(self.stream, segment_id)}"
            )
        return self._ranges[segment_id]

    def _epoch(self, epoch: int) -> list[SegmentRange]:
        if epoch not in self._epochs:
            self._epochs[epoch] = self._stores.controller.epoch_segments(self.stream, epoch)
        return self._epochs[epoch]

    def includes(self, segment_id: int) -> bool:
        """Return True if the segment owns the key, or if there is no key."""
        if self._key is None:
            return True
        owned = self.range_of(segment_id)
        return owned.low <= self._key < owned.high

    def included(self, cut: StreamCut) -> list[int]:
        """Return the segments of a cut that own the key, or all without a key.

        Raises MalformedStreamCutError if no segment of the cut, or several, own the key.
        """
        if self._key is None:
            return list(cut.positions)
        newest_first = sorted(cut.positions, key=segment_epoch, reverse=True)  # an epoch knows earlier segments, too
        found = [segment_id for segment_id in newest_first if self.includes(segment_id)]
        if len(found) != 1:
            raise MalformedStreamCutError(
                f"the stream cut {cut} does not cover stream {self.stream} exactly once: use a cut that Pravega "
                "returned"
            )
        return found

    def between(self, start: StreamCut, end: StreamCut) -> list[int]:
        """Return the ids of the segments from ``start`` to ``end`` inclusive, in a valid order to read them.

        Raises MalformedStreamCutError if ``end`` is before ``start``.
        """
        ids = self._stores.controller.segments_between(start, end)
        if self._key is None:
            return ids
        found: list[int] = []
        following = self.included(start)
        while following and following[0] in ids:
            (segment_id,) = following
            found.append(segment_id)
            following = [] if segment_id in end.positions else list(self.successors(segment_id))
        return found

    def _enter(self, positions: dict[int, int], owner: int) -> None:
        """Change a cut so that it has ``owner`` in place of its predecessors, and covers every key exactly once.

        The cut keeps its other segments, except those that ``owner`` continues. Their other keys go to segments of the
        epoch of ``owner``.
        """
        entered = {owner}
        while True:
            left = [i for i in positions if any(self._overlap(i, each) for each in entered)]
            more = {
                each.id
                for each in self._epoch(segment_epoch(owner))
                if each.id not in entered and any(self._overlap(each.id, i) for i in left)
            }
            if not more:
                break
            entered |= more
        for segment_id in left:
            del positions[segment_id]
        positions.update(dict.fromkeys(sorted(entered), 0))

    def _overlap(self, one: int, other: int) -> bool:
        first, second = self.range_of(one), self.range_of(other)
        return first.low < second.high and second.low < first.high


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
