"""Batches whose commits take long, are dropped or are forgotten, on servers in this process."""

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.controller.targets import target_of
from pravega_connector.exactly_once.batch_commit import (
    Commit,
    Content,
    Job,
    Ledger,
    Outcome,
    Part,
    Servers,
    TransactionId,
    carry_out,
    ledger_name,
)
from pravega_connector.testing import InProcessPravega

LEASE = 2.0


class Sink:
    """A stream and its ledger, and what a driver and its tasks do."""

    def __init__(self, server: InProcessPravega, client: PravegaClient) -> None:
        self.server, self.client, self.stream = server, client, StreamName("scope", "stream")
        client.create_stream(self.stream)
        self.ledger = Ledger(client.stores, ledger_name(self.stream))
        self.target = target_of(client.controller, self.stream)

    def write(self, event: bytes) -> Part:
        transaction = self.client.transactions(self.stream, lease=LEASE).begin()
        transaction.write(event)
        transaction.detach()
        return Part(TransactionId(self.target, transaction.id), Content(1, len(event), event[0]))

    def commit(self, batch: int, *own: Part) -> Outcome | None:
        job = Job("app", "query", "run", str(uuid.uuid4()), batch, own, target=self.target)
        servers = Servers(self.client.controller, self.ledger, lease=LEASE, timeout=30.0)
        return carry_out(Commit(job), servers).outcome

    def status(self, part: Part) -> TransactionStatus:
        return self.client.controller.transaction_status(self.stream, part.transaction.id)


@pytest.fixture
def sink() -> Iterator[Sink]:
    with InProcessPravega(shortest_lease=0.1) as server, server.client() as client:
        sink = Sink(server, client)
        with sink.ledger:
            yield sink


def test_a_batch_is_not_torn_by_a_pilot_that_takes_longer_than_a_lease(sink: Sink):
    pilot, other = sink.write(b"a"), sink.write(b"b")
    with ThreadPoolExecutor(1) as driver, sink.server.faults.commits_held():
        outcome = driver.submit(sink.commit, 0, pilot, other)
        threading.Event().wait(2 * LEASE)
        assert sink.status(pilot) is TransactionStatus.COMMITTING
        assert sink.status(other) is TransactionStatus.OPEN
        assert sink.server.faults.show_commit(pilot.transaction.id)
        assert outcome.result(120) is Outcome.COMMITTED
    assert sorted(sink.client.read(sink.stream)) == [b"a", b"b"]


def test_a_pilot_whose_commit_is_dropped_is_asked_for_again(sink: Sink):
    sink.server.faults.drop_commits()
    pilot, other = sink.write(b"a"), sink.write(b"b")
    assert sink.commit(0, pilot, other) is Outcome.COMMITTED
    assert sink.server.faults.pending == 0
    assert sorted(sink.client.read(sink.stream)) == [b"a", b"b"]


def test_the_own_transactions_outlive_a_last_batch_that_takes_longer_than_a_lease(sink: Sink):
    assert sink.commit(0, sink.write(b"a")) is Outcome.COMMITTED
    with ThreadPoolExecutor(1) as driver, sink.server.faults.commits_held():
        first = sink.write(b"b")
        assert sink.commit(1, first) is Outcome.COMMITTED
        second = sink.write(b"c")
        outcome = driver.submit(sink.commit, 2, second)
        threading.Event().wait(2 * LEASE)
        assert sink.status(second) is TransactionStatus.OPEN
        assert sink.server.faults.show_commit(first.transaction.id)
        assert outcome.result(120) is Outcome.COMMITTED
    assert list(sink.client.read(sink.stream)) == [b"a", b"b", b"c"]


def test_a_transaction_that_is_aborted_after_its_ping_ends_the_commit(sink: Sink):
    part, append = sink.write(b"a"), sink.ledger.append
    entries = []

    def lose(entry, revision, **more):
        entries.append(entry)
        if len(entries) == 1:
            assert sink.server.faults.end_leases(part.transaction.id) == 1
        return append(entry, revision, **more)

    sink.ledger.append = lose  # type: ignore[method-assign]
    assert sink.commit(0, part) is Outcome.EXPIRED
    assert len(entries) == 1, "the ledger does not grow in a circle"


def test_a_committed_batch_is_passed_over_after_its_transactions_are_forgotten(sink: Sink):
    part = sink.write(b"a")
    assert sink.commit(0, part) is Outcome.COMMITTED
    assert sink.server.faults.forget_transactions() == 1
    assert sink.commit(1, sink.write(b"b")) is Outcome.COMMITTED
    assert list(sink.client.read(sink.stream)) == [b"a", b"b"]
