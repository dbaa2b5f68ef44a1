"""A store and a controller of two streams, an ingestion's and its state's; commits are visible when the test wants."""

from __future__ import annotations

import json
import threading
import uuid

from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import STATE_TAG, CreatedTransaction, StreamConfig, Successor
from pravega_connector.operations.ingest.run import state_name
from pravega_connector.wire import SegmentRange, StreamCut, StreamName
from tests.support.fake_stream import FakeSegmentStore, FakeStream

__all__ = ["TARGET", "Servers"]

TARGET = StreamName("scope", "stream")


class Servers(ControllerClient):
    """It takes the place of a client's controller: ``with servers.client() as client``.

    Transactions that are COMMITTING at the same time become visible together and in the opposite order, as a store may
    do that merges a batch of them side by side. That happens once ``looks`` looks were taken at the last one's status.
    """

    def __init__(self, store: FakeSegmentStore, *, looks: int = 0) -> None:
        self.store, self.looks = store, looks
        self.target = FakeStream(store, name=TARGET)
        self.streams = {TARGET: self.target, state_name(TARGET): FakeStream(store, name=state_name(TARGET))}
        self.committing: list[uuid.UUID] = []
        self.committed: list[uuid.UUID] = []
        self.overtaken: list[tuple[uuid.UUID, uuid.UUID]] = []
        """Transactions that were COMMITTING when the commit of another one was asked for, and that one."""
        self._looked = 0
        self._order = threading.RLock()

    def client(self, *, failover_timeout: float = 60.0) -> PravegaClient:
        client = PravegaClient("tcp://127.0.0.1:1", failover_timeout=failover_timeout, service=True)
        client.stores.controller = self
        self.health = client.health
        return client

    @property
    def events(self) -> list[bytes]:
        """Events for readers of the target."""
        return self.store.segments[self.target.segment(0)].events

    @property
    def numbers(self) -> list[int]:
        """The field ``number`` of what readers see."""
        return [json.loads(event)["number"] for event in self.events]

    def make_visible(self) -> None:
        """End the commits that are under way."""
        with self._order:
            for transaction in reversed(self.committing):
                self.target.end(transaction, TransactionStatus.COMMITTED)
                self.committed.append(transaction)
            self.committing, self._looked = [], 0

    # ---------------------------------------------------------------- what a client asks

    def create_scope(self, scope: str) -> bool:
        return False

    def stream_exists(self, stream: StreamName) -> bool:
        return stream in self.streams and self.streams[stream].stream_exists(stream)

    def stream_config(self, stream: StreamName) -> StreamConfig:
        return StreamConfig(tags=() if stream == TARGET else (STATE_TAG,))

    def current_segments(self, stream: StreamName, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        return self.streams[stream].current_segments(stream)

    def head_cut(self, stream: StreamName, *, deadline: Deadline | None = None) -> StreamCut:
        return self.streams[stream].head_cut(stream)

    def successors(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> list[Successor]:
        return self.streams[stream].successors(stream, segment_id)

    def segments_between(self, start: StreamCut, end: StreamCut, *, deadline: Deadline | None = None) -> list[int]:
        return self.streams[start.stream].segments_between(start, end)

    def endpoint(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> tuple[str, int]:
        return self.store.endpoint

    def delegation_token(self, stream: StreamName, *, write: bool, deadline: Deadline | None = None) -> str:
        return ""

    def create_transaction(self, stream: StreamName, lease_ms: int) -> CreatedTransaction:
        return self.streams[stream].create_transaction(stream, lease_ms)

    def ping_transaction(
        self, stream: StreamName, transaction: uuid.UUID, lease_ms: int, *, timeout: float | None = None
    ) -> None:
        self.streams[stream].ping_transaction(stream, transaction, lease_ms)

    def abort_transaction(
        self, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        return self.streams[stream].abort_transaction(stream, transaction)

    def transaction_status(
        self, stream: StreamName, transaction: uuid.UUID, *, deadline: Deadline | None = None
    ) -> TransactionStatus:
        with self._order:
            if transaction in self.committing:
                self._looked += 1
                if self._looked > self.looks:
                    self.make_visible()
            return self.streams[stream].transaction_status(stream, transaction)

    def commit_transaction(
        self,
        stream: StreamName,
        transaction: uuid.UUID,
        noted: tuple[str, int] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> TransactionStatus:
        with self._order:
            if not self.target.transactions[transaction].is_committed:
                self.target._check_open(transaction, "commit")
                self.overtaken += [(each, transaction) for each in self.committing]
                self.target.transactions[transaction] = TransactionStatus.COMMITTING
                self.committing.append(transaction)
                self._looked = 0
            if wait:
                self.make_visible()
            return self.target.transactions[transaction]

    def repeat_commit(
        self, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        return self.commit_transaction(stream, transaction)

    def close(self) -> None:
        pass

    def __repr__(self) -> str:
        return f"Servers({list(self.streams)})"
