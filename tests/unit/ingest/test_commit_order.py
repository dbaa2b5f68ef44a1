"""A store that makes commits visible late and in any order: what is in order in the files is so in the stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.errors import DeadlineExceededError
from pravega_connector.exactly_once.steps import Step, StepLog
from pravega_connector.operations.ingest import FileSource, Sizes, ingest
from pravega_connector.operations.ingest.run import open_steps, state_name
from pravega_connector.testing.requests import Append
from tests.support.fake_stream import FakeSegmentStore
from tests.support.ingest_steps import record
from tests.unit.ingest._servers import TARGET, Servers


@pytest.fixture
def servers(store: FakeSegmentStore) -> Servers:
    """Commits become visible at the fourth look."""
    return Servers(store, looks=3)


@pytest.mark.parametrize(
    "sizes", [Sizes(), Sizes(files=2), Sizes(variant="count", records=3), Sizes(variant="length", bytes=64)]
)
def test_steps_are_visible_in_their_order(servers, client, six_files, sizes):
    summary = ingest(six_files, TARGET, client=client, options={"routing_key_field": "key"}, sizes=sizes)
    assert servers.overtaken == []
    assert len(servers.committed) == summary.counts.transactions >= 3
    assert servers.numbers == list(range(30))


def test_the_next_step_is_written_while_one_becomes_visible(store, servers, client, six_files):
    meanwhile = []

    def see(session, request):
        if "#transaction" in session.writers[request.writer_id]:
            meanwhile.append(len(servers.committing))
        store.serve(session, request)

    store.on(Append, see, times=1000)
    ingest(six_files, TARGET, client=client)
    assert meanwhile == [0, 1, 1, 1, 1, 1]


def left(client: PravegaClient, steps: StepLog, path: Path, previous: Step | None = None) -> Step:
    """A step that was recorded and written by a run that has ended, after one that it had committed."""
    source = FileSource([path])
    transaction = client.transactions(TARGET).begin()
    step = record(steps, source, transaction.id, previous=previous)
    (chunk,) = source.read(source.ids()[0])
    for row in chunk.batch.to_pylist():
        transaction.write(json.dumps(row).encode(), "key")
    transaction.detach()
    return step


@pytest.fixture
def steps(client: PravegaClient) -> Iterator[StepLog]:
    with open_steps(client, TARGET, state_name(TARGET)) as opened:
        yield opened


def test_a_step_that_another_run_has_committed_comes_before_ours(servers, client, steps, six_files):
    step = left(client, steps, six_files / "0.csv")
    servers.commit_transaction(TARGET, step.transaction)
    summary = ingest(six_files, TARGET, client=client, options={"routing_key_field": "key"})
    assert summary.counts.recovered == 1
    assert servers.overtaken == []
    assert servers.numbers == list(range(30))


def test_so_does_the_one_before_a_step_that_is_done_again(servers, client, steps, six_files):
    """A run was killed while it wrote a step, and the one that it had committed before is not visible yet."""
    first = left(client, steps, six_files / "0.csv")
    servers.commit_transaction(TARGET, first.transaction)
    second = left(client, steps, six_files / "1.csv", first)
    ingest(six_files, TARGET, client=client, options={"routing_key_field": "key"})
    assert servers.target.transactions[second.transaction] is TransactionStatus.ABORTED
    assert servers.overtaken == []
    assert servers.numbers == list(range(30))


def test_nothing_left_to_do_means_visible(servers, client, steps, six_files):
    step = left(client, steps, six_files / "0.csv")
    servers.commit_transaction(TARGET, step.transaction)
    assert ingest(six_files / "0.csv", TARGET, client=client).counts.events == 0
    assert servers.numbers == list(range(5))


def test_what_does_not_become_visible_in_time(servers, client, six_files):
    servers.looks = 10**9
    late = pytest.raises(DeadlineExceededError, match=r"committed transaction .* is not visible within 5 s")
    with late, servers.client(failover_timeout=5.0) as impatient:
        ingest(six_files, TARGET, client=impatient, options={"routing_key_field": "key"})
    assert servers.overtaken == []
    servers.looks = 3
    ingest(six_files, TARGET, client=client, options={"routing_key_field": "key"})
    assert servers.overtaken == []
    assert servers.numbers == list(range(30))
