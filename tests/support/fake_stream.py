"""Segment store that records its requests, and the controller calls of one stream that readers and writers make.

They are for events that a complete server cannot produce at a chosen moment. For other faults, use
``pravega_connector.testing``.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Callable

from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import CreatedTransaction, Successor, status_error
from pravega_connector.errors import StreamNotFoundError
from pravega_connector.testing.requests import Append, Request, split_events
from pravega_connector.testing.segment_store import SegmentStore, Session
from pravega_connector.wire import (
    SegmentRange,
    StreamCut,
    StreamName,
    segment_id,
    segment_name,
    split_transaction,
    transaction_segment_name,
)


class FakeSegmentStore(SegmentStore):
    """Segment store that records its requests, and asserts that writers append only whole events."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []

    def count(self, kind: type) -> int:
        return sum(isinstance(request, kind) for request in self.requests)

    def _treat(self, session: Session, request: Request) -> None:
        with self.lock:
            self.requests.append(request)
        if isinstance(request, Append):
            assert request.event_count == len(split_events(request.data)), "the number of events is wrong"
        super()._treat(session, request)


class FakeStream(ControllerClient):
    """Stream on a fake store: epochs of key ranges, scaled by :meth:`scale`. It counts its calls.

    It replaces the controller of a client: ``with stream.client() as client``.
    """

    def __init__(self, store: FakeSegmentStore, segments: int = 1, name: StreamName | None = None) -> None:
        self.store = store
        self.name = name or StreamName("scope", "stream")
        self.asked: Counter[str] = Counter()
        self.exists = True
        self.places: dict[int, FakeSegmentStore] = {}
        """Stores of the segments that were moved from ``store``."""
        self.on_endpoint: Callable[[int], None] = lambda number: None
        """Called with a segment before the controller returns its store."""
        self.valid_token = ""
        self.transactions: dict[uuid.UUID, TransactionStatus] = {}
        bounds = [i / segments for i in range(segments + 1)]
        self.ranges = [SegmentRange(i, bounds[i], bounds[i + 1]) for i in range(segments)]
        self.head = {r.id: 0 for r in self.ranges}
        self._followers: dict[int, list[Successor]] = {}
        self._epoch = 0
        for r in self.ranges:
            store.create(self.segment(r.id))

    def client(self, *, timeout: float = 5.0) -> PravegaClient:
        client = PravegaClient("tcp://127.0.0.1:1", timeout=timeout, failover_timeout=timeout)
        client.stores.controller = self
        self.health = client.health
        return client

    def segment(self, number: int) -> str:
        return segment_name(self.name, number)

    def scale(self, seal: list[int], *bounds: float, sealed: bool = True) -> list[int]:
        """Replace segments by new ones between the bounds. Return the ids of the new segments.

        With ``sealed=False``, the old segments stay open for a while, as on a real server.
        """
        self._epoch += 1
        old = [r for r in self.ranges if r.id in seal]
        first = max(r.id & 0xFFFFFFFF for r in self.ranges) + 1
        pairs = list(itertools.pairwise(bounds))
        new = [SegmentRange(segment_id(first + i, self._epoch), low, high) for i, (low, high) in enumerate(pairs)]
        for r in new:
            self.store.create(self.segment(r.id))
        for r in old:
            self._followers[r.id] = [
                Successor(n, tuple(o.id for o in old if o.low < n.high and n.low < o.high))
                for n in new
                if n.low < r.high and r.low < n.high
            ]
        self.ranges = sorted([r for r in self.ranges if r.id not in seal] + new, key=lambda r: r.low)
        if sealed:
            for number in seal:
                self.store.seal(self.segment(number))
        return [r.id for r in new]

    def seal_all(self) -> None:
        numbers = [r.id for r in self.ranges]
        self.ranges = []
        for number in numbers:
            self.store.seal(self.segment(number))

    def recreate(self) -> None:
        """Delete the stream and create it again. The numbers of its segments continue."""
        first = 1 + max(r.id & 0xFFFFFFFF for r in self.ranges)
        self.store.segments.clear()
        self.ranges = [SegmentRange(first + i, r.low, r.high) for i, r in enumerate(self.ranges)]
        self._followers, self._epoch, self.head = {}, 0, {r.id: 0 for r in self.ranges}
        for r in self.ranges:
            self.store.create(self.segment(r.id))

    # ---------------------------------------------------------------- calls of a client

    def current_segments(self, stream: StreamName, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        self._ask("current_segments")
        return self.ranges

    def head_cut(self, stream: StreamName, *, deadline: Deadline | None = None) -> StreamCut:
        self._ask("head_cut")
        return StreamCut(self.name, self.head)

    def successors(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> list[Successor]:
        self._ask("successors")
        return self._followers.get(segment_id, [])

    def segments_between(self, start: StreamCut, end: StreamCut, *, deadline: Deadline | None = None) -> list[int]:
        self._ask("segments_between")
        found, frontier = set[int](), list(start.positions)
        while frontier:
            number = frontier.pop()
            found.add(number)
            if number not in end.positions:
                frontier += [s.range.id for s in self._followers.get(number, [])]
        return sorted(found)

    def endpoint(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> tuple[str, int]:
        self._ask("endpoint")
        self.on_endpoint(segment_id)
        return self.places.get(segment_id, self.store).endpoint

    def delegation_token(self, stream: StreamName, *, write: bool, deadline: Deadline | None = None) -> str:
        self._ask("delegation_token")
        return self.valid_token

    def ever_had(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> bool:
        self._ask("ever_had")
        return segment_id in self._followers or any(r.id == segment_id for r in self.ranges)

    def stream_exists(self, stream: StreamName) -> bool:
        self._ask("stream_exists")
        return self.exists

    # ---------------------------------------------------------------- transactions

    def create_transaction(self, stream: StreamName, lease_ms: int) -> CreatedTransaction:
        self._ask("create_transaction")
        transaction = uuid.UUID(int=len(self.transactions) + 1)
        self.transactions[transaction] = TransactionStatus.OPEN
        created = CreatedTransaction(transaction, list(self.ranges))
        for r in created.segments:
            self.store.create(self.transaction_segment(r.id, transaction))
        return created

    def transaction_segment(self, number: int, transaction: uuid.UUID) -> str:
        return transaction_segment_name(self.segment(number), transaction)

    def transaction_status(
        self, stream: StreamName, transaction: uuid.UUID, *, deadline: Deadline | None = None
    ) -> TransactionStatus:
        self._ask("transaction_status")
        return self.transactions.get(transaction, TransactionStatus.UNKNOWN)

    def ping_transaction(
        self, stream: StreamName, transaction: uuid.UUID, lease_ms: int, *, timeout: float | None = None
    ) -> None:
        self._ask("ping_transaction")
        self._check_open(transaction, "ping")

    def commit_transaction(
        self,
        stream: StreamName,
        transaction: uuid.UUID,
        noted: tuple[str, int] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> TransactionStatus:
        self._ask("commit_transaction")
        if self.transactions.get(transaction) is not TransactionStatus.COMMITTED:
            self._check_open(transaction, "commit")
            self.end(transaction, TransactionStatus.COMMITTED)
        return TransactionStatus.COMMITTED

    def abort_transaction(
        self, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        self._ask("abort_transaction")
        if self.transactions.get(transaction) is not TransactionStatus.ABORTED:
            self._check_open(transaction, "abort")
            self.end(transaction, TransactionStatus.ABORTED)
        return TransactionStatus.ABORTED

    def end(self, transaction: uuid.UUID, status: TransactionStatus) -> None:
        """Merge a transaction's segments into the stream, or drop them."""
        self.transactions[transaction] = status
        with self.store.lock:
            for name in [name for name in self.store.segments if name.endswith(f"{transaction.int:032x}")]:
                data = self.store.segments.pop(name).data
                if status is TransactionStatus.COMMITTED:
                    self.store.append(split_transaction(name)[0], bytes(data))

    def _check_open(self, transaction: uuid.UUID, action: str) -> None:
        status = self.transactions.get(transaction, TransactionStatus.UNKNOWN)
        if status is not TransactionStatus.OPEN:
            raise status_error(status, action, self.name, transaction)

    def __repr__(self) -> str:
        return f"FakeStream({self.ranges})"

    def close(self) -> None:
        pass

    def _ask(self, what: str) -> None:
        self.asked[what] += 1
        if not self.exists and what not in ("stream_exists", "endpoint", "delegation_token"):
            raise StreamNotFoundError.of(self.name)
