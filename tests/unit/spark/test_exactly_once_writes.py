"""Writes exactly once by the sink's own writers, without Spark: shared ledgers, repetitions, deleted streams."""

import uuid
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StructField, StructType

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import ConfigError, DuplicateWriteError, LedgerFormatError, LedgerMissingError
from pravega_connector.exactly_once.batch_commit import Ledger, Recovery, TransactionId, ledger_name
from pravega_connector.spark.sink import transactions
from pravega_connector.testing import InProcessPravega
from pyspark_pravega import DefaultSource

SCHEMA = StructType([StructField("event", BinaryType())])
Save = Callable[..., None]


@pytest.fixture
def a(client: PravegaClient) -> StreamName:
    """One of two streams in a separate scope; the other is ``b``."""
    scope = f"shared-{uuid.uuid4().hex[:8]}"
    client.create_scope(scope)
    for stream in ("a", "b"):
        client.create_stream(f"{scope}/{stream}", 1)
    return StreamName(scope, "a")


@pytest.fixture
def b(a: StreamName) -> StreamName:
    return StreamName(a.scope, "b")


@pytest.fixture
def save(pravega: InProcessPravega, monkeypatch: pytest.MonkeyPatch) -> Iterator[Save]:
    """``save(stream, version, *events, query=…, run=…, **options)``: a write of one task and its commit.

    With ``run`` it is one of ``foreachBatch``, with ``streaming`` the batch of a streaming query.
    """
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # of this test: no Spark could be started here after it
    context = TaskContext._getOrCreate()
    context._partitionId = 0

    def save(
        stream: StreamName, version: int, *events: bytes, run: str = "", streaming: bool = False, **options: str
    ) -> None:
        context._localProperties = {"streaming.sql.batchId": str(version)}
        if run:
            context._localProperties |= {"sql.streaming.queryId": "a query", "spark.jobGroup.id": run}
        ids = {} if streaming else {"txn_app_id": "app", "txn_version": str(version)}
        source = DefaultSource({"controller": pravega.uri, "path": str(stream)} | ids | options)
        rows = pa.table({"event": pa.array(events, pa.binary())}).to_batches()
        if streaming:
            query = source.streamWriter(SCHEMA, False)
            query.commit([query.write(iter(rows))], version)
        else:
            writer = source.writer(SCHEMA, overwrite=False)
            writer.commit([writer.write(iter(rows))])

    yield save
    transactions._kept().close()  # no ping to the stopped server
    transactions._kept_of_process.clear()


def recreate(client: PravegaClient, *streams: StreamName) -> None:
    for stream in streams:
        client.delete_stream(stream)
        client.create_stream(stream, 1)


def test_one_write_to_two_targets_with_one_ledger_lands_in_both(client, save, a, b):
    for _ in range(2):
        for stream in (a, b):
            save(stream, 1, b"x", b"y", b"z", ledger="etl")
    assert sorted(client.read(a)) == sorted(client.read(b)) == [b"x", b"y", b"z"]


def test_a_restarted_foreach_batch_with_one_ledger_continues_in_each_target(client, save, a, b):
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    for batch in range(4):  # the run ends after the writes to one target
        save(a, batch, b"%d" % batch, run=first, ledger="etl")
    for batch in range(4):
        for stream in (a, b):
            save(stream, batch, b"%d" % batch, run=second, ledger="etl")
    assert sorted(client.read(a)) == sorted(client.read(b)) == [b"0", b"1", b"2", b"3"]


def test_recover_sees_the_batches_of_its_target_alone(client, save, a, b):
    save(a, 5, b"x", ledger="etl")
    save(b, 1, b"y", b"z", ledger="etl")
    with Ledger(client.stores, ledger_name(a, "etl")) as ledger:
        found = {stream: Recovery(client.stores, stream, ledger).survey() for stream in (a, b)}
        assert {stream.stream: [(f.app.app, f.app.last) for f in found[stream]] for stream in found} == {
            "a": [("app", 5)],
            "b": [("app", 1)],
        }
        assert Recovery(client.stores, b, ledger).left_open() == []
        with pytest.raises(ConfigError, match=rf"knows no 'else' of {b}; it knows: app"):
            Recovery(client.stores, b, ledger).finish("else")


def test_a_stream_is_not_its_own_ledger(client, save, a):
    with pytest.raises(ConfigError, match=f"{a} cannot be its own ledger"):
        save(a, 0, b"x", ledger="a")
    assert list(client.read(a)) == []


def test_a_stream_with_events_is_not_a_ledger(client, save, a, b):
    with client.writer(b) as writer:
        writer.write(b"an event")
    with pytest.raises(LedgerFormatError):
        save(a, 0, b"x", ledger="b")
    assert (list(client.read(a)), list(client.read(b))) == ([], [b"an event"])


def test_a_target_that_was_created_again_is_another_one(client, save, a):
    save(a, 1, b"x")
    recreate(client, a)
    save(a, 1, b"x")
    save(a, 1, b"x")
    assert list(client.read(a)) == [b"x"]


def test_a_query_does_not_continue_in_a_target_that_was_created_again(client, save, a):
    run = str(uuid.uuid4())
    save(a, 0, b"x", run=run, streaming=True)
    recreate(client, a)
    with pytest.raises(LedgerMissingError, match="ledger_adopt"):
        save(a, 1, b"y", run=run, streaming=True)
    assert list(client.read(a)) == []


def test_a_process_outlives_targets_and_ledgers(client, save, a):
    for _ in range(3):
        run = str(uuid.uuid4())
        for batch in range(2):
            save(a, batch, b"%d" % batch, run=run, streaming=True)
            save(a, batch, b"%d" % batch, ledger="etl")
        assert sorted(client.read(a)) == [b"0", b"0", b"1", b"1"]
        recreate(client, a)
        for name in (None, "etl"):
            client.delete_stream(ledger_name(a, name))


def test_a_query_whose_ledger_is_deleted_reports_it(client, save, a):
    run = str(uuid.uuid4())
    save(a, 0, b"x", run=run, streaming=True)
    client.delete_stream(ledger_name(a))
    with pytest.raises(LedgerMissingError, match="ledger_adopt"):
        save(a, 1, b"y", run=run, streaming=True)
    assert list(client.read(a)) == [b"x"]


def test_two_writes_of_a_batch_with_equal_rows_are_an_error_that_stays(client, save, a):
    runs = [str(uuid.uuid4()) for _ in range(3)]
    save(a, 0, b"x", b"y", run=runs[0])  # the run ends between the two writes
    for run in runs[1:]:
        save(a, 0, b"x", b"y", run=run)
        for _ in range(2):
            with pytest.raises(DuplicateWriteError, match="a separate txn_app_id"):
                save(a, 0, b"y", b"x", run=run)
    assert sorted(client.read(a)) == [b"x", b"y"]
    save(a, 0, b"x", b"y", run=str(uuid.uuid4()))
    save(a, 1, b"z", run=str(uuid.uuid4()))
    assert sorted(client.read(a)) == [b"x", b"y", b"z"]


def test_an_older_batch_is_written_twice_by_no_run(client, save, a):
    """A checkpoint was put back from an older copy, after the second write was added to the function."""
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    for batch in range(3):
        save(a, batch, b"%d" % batch, run=first)
    save(a, 1, b"1", run=second)
    with pytest.raises(DuplicateWriteError):
        save(a, 1, b"1", run=second)
    assert sorted(client.read(a)) == [b"0", b"1", b"2"]


def test_a_write_outside_of_a_query_can_be_repeated_at_will(client, save, a):
    for _ in range(3):
        save(a, 1, b"x")
    assert list(client.read(a)) == [b"x"]


def test_a_batch_waits_to_be_visible_as_long_as_its_commit_may_take(client, save, a, monkeypatch):
    awaited: list[tuple[int, float]] = []
    real = transactions.await_visible

    def noting(controller: ControllerClient, ids: Sequence[TransactionId], timeout: float) -> None:
        awaited.append((len(ids), timeout))
        real(controller, ids, timeout)

    monkeypatch.setattr(transactions, "await_visible", noting)
    save(a, 0, b"x")
    save(a, 0, b"x")  # another driver may have committed it a moment ago
    save(a, 1, b"y", commit_timeout_ms="20000")
    save(a, 0, b"z", streaming=True, run=str(uuid.uuid4()))
    assert [count for count, _ in awaited] == [1] * 4
    assert [290 < awaited[i][1] <= 300 for i in (0, 1, 3)] == [True] * 3
    assert 10 < awaited[2][1] <= 20


def test_a_batch_that_is_not_visible_in_time_reports_it(save, a, monkeypatch, caplog):
    monkeypatch.setattr(transactions, "_LOOK_SECONDS", 0.05)
    save(a, 0, b"x")
    monkeypatch.setattr(
        "pravega_connector.controller.transactions.CommitWatch.status", lambda *_, **__: TransactionStatus.COMMITTING
    )
    save(a, 0, b"x", commit_timeout_ms="1000")
    assert "1 transactions were not visible" in caplog.text
    assert "they will be committed" in caplog.text


def test_a_target_is_looked_up_once_as_long_as_it_is_the_same(pravega, client, save, a):
    def asked() -> int:
        return pravega.controller.calls["getEpochSegments"]

    before = asked()
    for _ in range(2):
        for batch in range(3):
            save(a, batch, b"x")
        before += 1
        assert asked() == before
        recreate(client, a)
