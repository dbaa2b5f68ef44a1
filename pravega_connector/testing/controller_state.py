"""State of a controller: scopes, streams, transactions and reader groups, over the segments of a store.

This module does not use gRPC. Methods return the name of an outcome, or raise :class:`RefusedError` with the gRPC
status that servers answer. Callers hold ``store.changing()``.
"""

from __future__ import annotations

import re
import struct
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.core.values import TransactionStatus
from pravega_connector.testing.event_time import EventTime
from pravega_connector.testing.history import StreamHistory, even_ranges
from pravega_connector.testing.requests import frame
from pravega_connector.testing.segment_store import SegmentStore
from pravega_connector.testing.table_segments import Table
from pravega_connector.wire import (
    SCOPES_TABLE,
    SegmentRange,
    StreamName,
    TableName,
    mark_stream,
    metadata_table,
    sealed_key,
    segment_id,
    segment_name,
    segment_number,
    streams_table,
    transaction_segment_name,
)
from pravega_connector.wire.names import group_stream

_NAME: Final = re.compile(r"[A-Za-z0-9.\-]{1,250}")
_SYSTEM: Final = "_system"
#: Milliseconds: controller.transaction.lease.count.min and .max.
SHORTEST_LEASE: Final = 10_000
LONGEST_LEASE: Final = 600_000
# A transaction can last this many times its first lease, and at most a day.
_LEASES: Final = 1000
_DAY: Final = 86_400.0
_OPEN: Final = TransactionStatus.OPEN


class RefusedError(Exception):
    """Call that servers answer with a gRPC status. ``code`` is its name."""

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(text)
        self.code = code


@dataclass
class TransactionState:
    """Transaction in any state."""

    id: uuid.UUID
    epoch: int
    """Epoch of the segments that it is merged into. Never a copied epoch."""
    parents: tuple[SegmentRange, ...]
    deadline: float
    """End of its lease, by the monotonic clock."""
    last_deadline: float
    """Latest end of its lease, after which no ping can move it."""
    status: TransactionStatus = _OPEN
    unmerged: tuple[SegmentRange, ...] = ()
    """Segments of a COMMITTING transaction with events that are not visible yet."""
    noted: tuple[str, int] | None = None
    """Writer and time that the commit notes."""
    dropped: bool = False
    """True if the commit was dropped from the work list. It stays COMMITTING until it is requested again."""


@dataclass
class StreamState:
    """Existing stream."""

    name: StreamName
    config: pb.StreamConfig
    history: StreamHistory
    id: uuid.UUID = field(default_factory=uuid.uuid4)
    subscribers: dict[str, tuple[int, dict[int, int] | None]] = field(default_factory=dict)
    """Generation and published position by the reader group's name."""

    def __post_init__(self) -> None:
        self.times = EventTime(self.history)

    def segment(self, number: int) -> str:
        """Name of a segment on the wire."""
        return segment_name(self.name, number)


@dataclass
class TableState:
    """Existing key-value table."""

    name: TableName
    config: pb.KeyValueTableConfig
    segments: tuple[SegmentRange, ...]

    def segment(self, number: int) -> str:
        """Name of a segment on the wire."""
        return segment_name(self.name.segments, number)


class Cluster:
    """State of the controller of an in-process Pravega."""

    def __init__(self, store: SegmentStore, *, shortest_lease: int = SHORTEST_LEASE) -> None:
        self.store = store
        self.shortest_lease = shortest_lease
        self.scopes: dict[str, uuid.UUID] = {}
        self.streams: dict[StreamName, StreamState] = {}
        self.groups: dict[tuple[str, str], pb.ReaderGroupConfiguration] = {}
        self.tables: dict[TableName, TableState] = {}
        self._transactions: dict[StreamName, dict[uuid.UUID, TransactionState]] = {}
        self._numbers: dict[StreamName, int] = {}
        self._count = 0
        self.commits_held = False
        """True if commits are only decided. Call :meth:`merge_one` to merge them."""
        self.commits_to_drop = 0
        """Number of next commits that are decided, but dropped from the work list."""
        self._table(SCOPES_TABLE)

    # ---- scopes ----

    def create_scope(self, scope: str) -> str:
        """Create a scope. Return the name of the outcome."""
        if scope in self.scopes:
            return "SCOPE_EXISTS"
        if not _NAME.fullmatch(scope):
            return "INVALID_SCOPE_NAME"
        self.scopes[scope] = uuid.uuid4()
        self._table(SCOPES_TABLE).put(scope, self.scopes[scope].bytes)
        return "SUCCESS"

    def delete_scope(self, scope: str) -> str:
        """Delete an empty scope. Return the name of the outcome."""
        if scope not in self.scopes:
            return "SCOPE_NOT_FOUND"
        if self.stream_names(scope) or self.table_names(scope):
            return "SCOPE_NOT_EMPTY"
        self.store.tables.pop(streams_table(scope, self.scopes.pop(scope)), None)
        self._table(SCOPES_TABLE).remove(scope)
        return "SUCCESS"

    def scope_names(self) -> list[str]:
        """Return the names of all scopes."""
        return sorted([*self.scopes, _SYSTEM])

    # ---- streams ----

    def create_stream(self, config: pb.StreamConfig) -> str:
        """Create a stream and the stream of its watermarks. Return the name of the outcome."""
        name = _stream(config.streamInfo)
        if name.scope not in self.scopes:
            return "SCOPE_NOT_FOUND"
        if name in self.streams:
            return "STREAM_EXISTS"
        if not _NAME.fullmatch(name.stream):
            return "INVALID_STREAM_NAME"
        self._create(name, config)
        return "SUCCESS"

    def _create(self, name: StreamName, config: pb.StreamConfig) -> None:
        history = StreamHistory(max(1, config.scalingPolicy.minNumSegments), self._numbers.get(name, 0))
        stream = self.streams[name] = StreamState(name, config, history)
        for segment in history.current:
            self.store.create(stream.segment(segment.id))
        self._table(streams_table(name.scope, self.scopes[name.scope])).put(name.stream, stream.id.bytes)
        self._table(metadata_table(name, stream.id))
        if not name.is_internal:
            self._create(mark_stream(name), pb.StreamConfig(streamInfo=_info(mark_stream(name))))

    def require(self, name: StreamName) -> StreamState:
        """Return the stream of a name. Raises RefusedError."""
        if name not in self.streams:
            raise RefusedError("NOT_FOUND", f"stream {name} not found")
        return self.streams[name]

    def stream_names(self, scope: str) -> list[str]:
        """Return the names of a scope's streams, internal ones included."""
        return sorted(name.stream for name in self.streams if name.scope == scope)

    def tagged_names(self, scope: str, tag: str) -> list[str]:
        """Return the names of a scope's streams that have a tag."""
        return [
            name for name in self.stream_names(scope) if tag in self.streams[StreamName(scope, name)].config.tags.tag
        ]

    def update_stream(self, config: pb.StreamConfig) -> str:
        """Replace the configuration. Return the name of the outcome.

        A different fixed number of segments, or a larger minimum, scales the stream at once.
        """
        stream = self.streams.get(_stream(config.streamInfo))
        if stream is None or stream.history.sealed:
            return "STREAM_NOT_FOUND" if stream is None else "STREAM_SEALED"
        stream.config = config
        policy, count = config.scalingPolicy, len(stream.history.current)
        wanted = max(1, policy.minNumSegments)
        if wanted > count or (policy.scaleType == pb.ScalingPolicy.FIXED_NUM_SEGMENTS and wanted != count):
            self._scale(stream, [segment.id for segment in stream.history.current], even_ranges(wanted))
        return "SUCCESS"

    def truncate_stream(self, name: StreamName, cut: Mapping[int, int]) -> str:
        """Delete the events before a stream cut. Return the name of the outcome."""
        stream = self.streams.get(name)
        if stream is None or stream.history.sealed:
            return "STREAM_NOT_FOUND" if stream is None else "STREAM_SEALED"
        history = stream.history
        if not history.covers(cut) or not history.precedes(history.head, cut):
            return "FAILURE"
        history.head = dict(cut)
        for number in history.before(cut):
            self.store.delete(stream.segment(number))
        for number, offset in cut.items():
            if stream.segment(number) in self.store.segments:
                self.store.truncate(stream.segment(number), offset)
        return "SUCCESS"

    def seal_stream(self, name: StreamName) -> str:
        """Seal a stream, and abort its open transactions. Return the name of the outcome."""
        stream = self.streams.get(name)
        if stream is None:
            return "STREAM_NOT_FOUND"
        for transaction in self._transactions.get(name, {}).values():
            self._abort(stream, transaction)
        current, stream.history.sealed = stream.history.current, True
        self._seal(stream, [segment.id for segment in current])
        return "SUCCESS"

    def delete_stream(self, name: StreamName) -> str:
        """Delete a sealed stream. Return the name of the outcome."""
        stream = self.streams.get(name)
        if stream is None:
            return "STREAM_NOT_FOUND"
        if not stream.history.sealed:
            return "STREAM_NOT_SEALED"
        self._delete(stream)
        if not name.is_internal:
            self._delete(self.streams[mark_stream(name)])
        return "SUCCESS"

    def _delete(self, stream: StreamState) -> None:
        name = stream.name
        for number in stream.history.segments():
            self.store.delete(stream.segment(number))
        self._numbers[name] = stream.history.next_number
        self._table(streams_table(name.scope, self.scopes[name.scope])).remove(name.stream)
        self.store.tables.pop(metadata_table(name, stream.id), None)
        del self.streams[name]

    # ---- scaling ----

    def scale(self, name: StreamName, seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> str:
        """Replace segments by others. Return the name of the outcome."""
        stream = self.require(name)
        current = {segment.id for segment in stream.history.current}
        after = len(current) - len(seal) + len(ranges)
        if not current.issuperset(seal) or after < stream.config.scalingPolicy.minNumSegments:
            return "PRECONDITION_FAILED"
        if not stream.history.can_scale(seal, ranges):
            return "FAILURE"
        self._scale(stream, seal, ranges)
        return "STARTED"

    def _scale(self, stream: StreamState, seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> None:
        before = stream.history.segments().keys()
        for segment in stream.history.scale(seal, ranges).segments:
            if segment.id not in before:
                self.store.create(stream.segment(segment.id))
        self._seal(stream, seal)

    def _seal(self, stream: StreamState, segments: Sequence[int]) -> None:
        for number in segments:
            self.store.seal(stream.segment(number))
        table = self._table(metadata_table(stream.name, stream.id))
        for key in {sealed_key(number) for number in segments}:
            _, record = table.entries.get(key.encode(), (0, b""))
            known = dict(struct.iter_unpack(">qq", record[_SEALED_HEADER:])) if record else {}
            known |= {i: self._length(stream, i) for i in segments if sealed_key(i) == key}
            table.put(key, _encode_sealed(known))

    def _length(self, stream: StreamState, number: int) -> int:
        return self.store.segments[stream.segment(number)].length

    # ---- transactions ----

    def create_transaction(self, name: StreamName, lease_ms: int) -> TransactionState:
        """Begin a transaction. Raises RefusedError."""
        stream = self.require(name)
        if stream.history.sealed:
            raise RefusedError("INTERNAL", "stream is sealed")
        if lease_ms < self.shortest_lease:
            raise RefusedError("UNKNOWN", "lease should be greater than minimum lease")
        if lease_ms > LONGEST_LEASE:
            raise RefusedError("UNKNOWN", f"lease value too large, max value is {LONGEST_LEASE}")
        active, now, lease = stream.history.active, time.monotonic(), lease_ms / 1000
        parents = active.segments
        if active.reference != active.number:
            # Their names have the number of the copied epoch.
            numbers = ((segment_number(each.id), each) for each in parents)
            parents = tuple(SegmentRange(segment_id(n, active.reference), each.low, each.high) for n, each in numbers)
        made = uuid.UUID(int=active.reference << 96 | self._count)
        self._count += 1
        transaction = TransactionState(made, active.reference, parents, now + lease, now + min(lease * _LEASES, _DAY))
        self._transactions.setdefault(name, {})[made] = transaction
        for segment in parents:
            self.store.create(self._segment_of(stream, segment, transaction))
        return transaction

    def transaction(self, name: StreamName, which: uuid.UUID) -> TransactionState | None:
        """Return a transaction, or None if it never existed.

        The stream of the transaction may have been deleted.
        """
        return self._transactions.get(name, {}).get(which)

    def ping_transaction(self, name: StreamName, which: uuid.UUID, lease_ms: int) -> str:
        """Renew a lease. Return the name of the outcome."""
        transaction = self.transaction(name, which)
        if transaction is None:
            return "UNKNOWN"
        if transaction.status is not _OPEN:
            return "COMMITTED" if transaction.status.is_committed else "ABORTED"
        if lease_ms > LONGEST_LEASE:
            return "LEASE_TOO_LARGE"
        deadline = time.monotonic() + lease_ms / 1000
        if deadline > transaction.last_deadline:
            return "MAX_EXECUTION_TIME_EXCEEDED"
        transaction.deadline = deadline
        return "OK"

    def commit_transaction(self, name: StreamName, which: uuid.UUID, noted: tuple[str, int] | None) -> str:
        """Commit a transaction. Return the name of the outcome.

        Its events are visible on return, unless commits are held.
        """
        transaction, stream = self.transaction(name, which), self.streams.get(name)
        if transaction is None or transaction.status.is_aborted or stream is None:
            return "FAILURE"
        if transaction.status is _OPEN:
            transaction.status, transaction.noted = TransactionStatus.COMMITTING, noted
            transaction.unmerged = transaction.parents
            if self.commits_to_drop:
                self.commits_to_drop -= 1
                transaction.dropped = True
                return "SUCCESS"
        transaction.dropped = False
        if not self.commits_held:
            self._finish(stream, transaction)
        return "SUCCESS"

    def committing(self) -> list[tuple[StreamName, uuid.UUID, int]]:
        """Return the merges in progress, each as a stream, a transaction, and a segment of the stream."""
        return [
            (name, transaction.id, parent.id)
            for name, transactions in self._transactions.items()
            for transaction in transactions.values()
            if not transaction.dropped
            for parent in transaction.unmerged
        ]

    def merge_one(self, name: StreamName, which: uuid.UUID, segment: int) -> None:
        """Do one merge of :meth:`committing`. After its last merge, the transaction is COMMITTED."""
        stream, transaction = self.streams[name], self._transactions[name][which]
        if stream.history.active.reference != transaction.epoch:
            self._finish(
                stream, transaction
            )  # the stream was scaled: all segments of a new epoch become visible at once
            return
        (parent,) = (each for each in transaction.unmerged if each.id == segment)
        target = stream.history.active.by_number(segment_number(parent.id))
        self.store.merge(stream.segment(target.id), self._segment_of(stream, parent, transaction))
        transaction.unmerged = tuple(each for each in transaction.unmerged if each is not parent)
        if not transaction.unmerged:
            self._finish(stream, transaction)

    def forget_transactions(self, *ids: uuid.UUID) -> int:
        """Forget these committed or aborted transactions, or all, as servers do after a day. Return their number."""
        ended = [
            (transactions, which)
            for transactions in self._transactions.values()
            for which, transaction in transactions.items()
            if transaction.status in (TransactionStatus.COMMITTED, TransactionStatus.ABORTED)
            if not ids or which in ids
        ]
        for transactions, which in ended:
            del transactions[which]
        return len(ended)

    def _finish(self, stream: StreamState, transaction: TransactionState) -> None:
        """Make all events of a decided transaction visible."""
        if transaction.status is not TransactionStatus.COMMITTING:
            return
        transaction.status = TransactionStatus.COMMITTED
        cut = self._merge(stream, transaction)
        if transaction.noted is not None:
            stream.times.note(*transaction.noted, cut)

    def _merge(self, stream: StreamState, transaction: TransactionState) -> dict[int, int]:
        """Merge a transaction's segments into the stream. Return the stream cut after them."""
        history = stream.history
        epoch, old = history.active, history.active.segments
        rolls = epoch.reference != transaction.epoch  # the stream was scaled since the transaction began
        if rolls:
            present = epoch.reference
            epoch = history.copy(transaction.epoch)
            for segment in (*epoch.segments, *history.copy(present).segments):
                self.store.create(stream.segment(segment.id))
        unmerged, transaction.unmerged = transaction.unmerged, ()
        for parent in unmerged:
            target = epoch.by_number(segment_number(parent.id))
            self.store.merge(stream.segment(target.id), self._segment_of(stream, parent, transaction))
        if rolls:
            self._seal(stream, [segment.id for segment in (*old, *epoch.segments)])
        return {segment.id: self._length(stream, segment.id) for segment in epoch.segments}

    def abort_transaction(self, name: StreamName, which: uuid.UUID) -> str:
        """Abort a transaction. Return the name of the outcome."""
        transaction, stream = self.transaction(name, which), self.streams.get(name)
        if transaction is None or transaction.status.is_committed:
            return "FAILURE"
        if stream is not None:
            self._abort(stream, transaction)
        return "SUCCESS"

    def _abort(self, stream: StreamState, transaction: TransactionState) -> None:
        if transaction.status is _OPEN:
            transaction.status = TransactionStatus.ABORTED
            for segment in transaction.parents:
                self.store.delete(self._segment_of(stream, segment, transaction))

    def open_transactions(self) -> Iterator[tuple[StreamState, TransactionState]]:
        """Yield the transactions that are neither committed nor aborted, each with its stream."""
        for name, transactions in self._transactions.items():
            for transaction in transactions.values():
                if transaction.status is _OPEN and name in self.streams:
                    yield self.streams[name], transaction

    @staticmethod
    def _segment_of(stream: StreamState, parent: SegmentRange, transaction: TransactionState) -> str:
        return transaction_segment_name(stream.segment(parent.id), transaction.id)

    # ---- reader groups ----

    def create_group(self, config: pb.ReaderGroupConfiguration) -> tuple[str, pb.ReaderGroupConfiguration]:
        """Create a reader group, or find it. Return the name of the outcome and the group's configuration."""
        key = config.scope, config.readerGroupName
        if config.scope not in self.scopes:
            return "SCOPE_NOT_FOUND", config
        if not _NAME.fullmatch(config.readerGroupName):
            return "INVALID_RG_NAME", config
        if key not in self.groups:
            made = pb.ReaderGroupConfiguration()
            made.CopyFrom(config)
            if uuid.UUID(config.readerGroupId or _NO_ID).int == 0:
                made.readerGroupId = str(uuid.uuid4())
            self.groups[key] = made
            name = group_stream(*key)
            if name not in self.streams:
                self._create(name, pb.StreamConfig(streamInfo=_info(name)))
            self._subscribe(made)
        return "SUCCESS", self.groups[key]

    def update_group(self, config: pb.ReaderGroupConfiguration) -> tuple[str, int]:
        """Replace a reader group's configuration. Return the name of the outcome and the generation."""
        known = self.groups.get((config.scope, config.readerGroupName))
        if known is None:
            return "RG_NOT_FOUND", 0
        if (known.generation, known.readerGroupId) != (config.generation, config.readerGroupId):
            return "INVALID_CONFIG", known.generation
        made = pb.ReaderGroupConfiguration()
        made.CopyFrom(config)
        made.generation += 1
        self.groups[config.scope, config.readerGroupName] = made
        self._subscribe(made)
        return "SUCCESS", made.generation

    def _subscribe(self, config: pb.ReaderGroupConfiguration) -> None:
        group = f"{config.scope}/{config.readerGroupName}"
        wanted = {_stream(cut.streamInfo) for cut in config.startingStreamCuts}
        subscribes = config.retentionType != pb.ReaderGroupConfiguration.NONE
        for name, stream in self.streams.items():
            _, position = stream.subscribers.pop(group, (0, None))
            if subscribes and name in wanted:
                stream.subscribers[group] = config.generation, position

    def delete_group(self, scope: str, group: str) -> str:
        """Delete a reader group. Return the name of the outcome."""
        if self.groups.pop((scope, group), None) is None:
            return "RG_NOT_FOUND"
        for stream in self.streams.values():
            stream.subscribers.pop(f"{scope}/{group}", None)
        if (name := group_stream(scope, group)) in self.streams:
            self.seal_stream(name)
            self.delete_stream(name)
        return "SUCCESS"

    def update_subscriber(self, name: StreamName, group: str, generation: int, cut: Mapping[int, int]) -> str:
        """Publish a subscriber's position. Return the name of the outcome."""
        stream = self.streams.get(name)
        if stream is None or group not in stream.subscribers:
            return "STREAM_NOT_FOUND" if stream is None else "SUBSCRIBER_NOT_FOUND"
        known, position = stream.subscribers[group]
        if known != generation:
            return "GENERATION_MISMATCH"
        if not stream.history.covers(cut) or (position is not None and not stream.history.precedes(position, cut)):
            return "STREAM_CUT_NOT_VALID"
        stream.subscribers[group] = generation, dict(cut)
        return "SUCCESS"

    # ---- key-value tables ----

    def create_table(self, config: pb.KeyValueTableConfig) -> str:
        """Create a key-value table. Return the name of the outcome."""
        if config.scope not in self.scopes:
            return "SCOPE_NOT_FOUND"
        if not _NAME.fullmatch(config.kvtName):
            return "INVALID_TABLE_NAME"
        name = TableName(config.scope, config.kvtName)
        if name in self.tables:
            return "TABLE_EXISTS"
        first, ranges = self._numbers.get(name.segments, 0), even_ranges(config.partitionCount)
        segments = tuple(SegmentRange(segment_id(first + i, 0), *each) for i, each in enumerate(ranges))
        table = self.tables[name] = TableState(name, config, segments)
        for each in segments:
            wire = table.segment(each.id)
            self.store.tables[wire] = Table(wire, config.primaryKeyLength + config.secondaryKeyLength)
        return "SUCCESS"

    def delete_table(self, name: TableName) -> str:
        """Delete a key-value table. Return the name of the outcome."""
        table = self.tables.pop(name, None)
        if table is None:
            return "TABLE_NOT_FOUND"
        for each in table.segments:
            self.store.tables.pop(table.segment(each.id), None)
        # As for streams, the segments of a later table of this name get other numbers.
        self._numbers[name.segments] = segment_number(table.segments[-1].id) + 1
        return "SUCCESS"

    def table_names(self, scope: str) -> list[str]:
        """Return the names of a scope's key-value tables."""
        return sorted(name.table for name in self.tables if name.scope == scope)

    # ---- timed work ----

    def tick(self) -> None:
        """Expire leases, write watermarks, and answer reads that have waited for long."""
        now = time.monotonic()
        for stream, transaction in list(self.open_transactions()):
            if transaction.deadline < now:
                self._abort(stream, transaction)
        for stream in list(self.streams.values()):
            mark = stream.times.look(now, stream.config.timestampAggregationTimeout)
            if mark is not None:
                marks = self.streams[mark_stream(stream.name)]
                self.store.append(marks.segment(marks.history.current[0].id), frame(mark))
        self.store.answer_parked()

    def _table(self, name: str) -> Table:
        return self.store.tables.setdefault(name, Table(name))


_NO_ID: Final = str(uuid.UUID(int=0))
_SEALED_HEADER: Final = 8 + 4  # the frame, and the count in its longest form


def _encode_sealed(lengths: Mapping[int, int]) -> bytes:
    """Encode a record of sealed lengths, which :func:`pravega_connector.wire.decode_sealed_lengths` decodes."""
    count = (0xC000_0000 | len(lengths)).to_bytes(4, "big")
    body = count + b"".join(struct.pack(">qq", i, length) for i, length in lengths.items())
    return b"\0\0\1\0" + struct.pack(">i", len(body)) + body


def _stream(info: pb.StreamInfo) -> StreamName:
    return StreamName(info.scope, info.stream)


def _info(name: StreamName) -> pb.StreamInfo:
    return pb.StreamInfo(scope=name.scope, stream=name.stream)
