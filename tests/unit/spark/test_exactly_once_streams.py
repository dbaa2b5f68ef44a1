"""Exactly once with the column ``target_stream``, by the sink's own writers: one decision over all streams."""

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import ConfigError, InvalidNameError, ReplayDiffersError, StreamNotFoundError
from pravega_connector.exactly_once.batch_commit import Ledger, Prepared
from pravega_connector.spark.sink import transactions
from pravega_connector.spark.sink.transactions import TaskPrepared
from pravega_connector.spark.sink.writers import PravegaStreamWriter
from pravega_connector.testing import InProcessPravega
from pyspark_pravega import DefaultSource

SCHEMA = StructType([StructField("event", BinaryType()), StructField("target_stream", StringType())])
Rows = Sequence[tuple[str, bytes]]
"""Stream and event of each row."""


class Query:
    """A streaming query whose batches are written by a worker in this process."""

    def __init__(self, pravega: InProcessPravega, client: PravegaClient) -> None:
        self.pravega, self.client = pravega, client
        self.scope, self.run = f"tenants-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
        client.create_scope(self.scope)
        for stream in ("orders", "audit", "letters"):
            client.create_stream(f"{self.scope}/{stream}", 1)
        self.context = TaskContext._getOrCreate()

    def writer(self, **options: str) -> PravegaStreamWriter:
        named = {"controller": self.pravega.uri, "scope": self.scope, "ledger": "decisions"} | options
        made = DefaultSource(named).streamWriter(SCHEMA, False)
        assert isinstance(made, PravegaStreamWriter)
        return made

    def write(self, batch: int, *tasks: Rows, run: str = "", **options: str) -> list[WriterCommitMessage]:
        self.context._localProperties = {
            "streaming.sql.batchId": str(batch),
            "sql.streaming.queryId": self.scope,
            "spark.jobGroup.id": run or self.run,
        }
        messages, writer = [], pickle.loads(pickle.dumps(self.writer(**options)))  # as Spark's workers get it
        for partition, rows in enumerate(tasks):
            self.context._partitionId = partition
            table = pa.table(
                {"event": pa.array([event for _, event in rows], pa.binary()), "target_stream": [to for to, _ in rows]}
            )
            messages.append(pickle.loads(pickle.dumps(writer.write(iter(table.to_batches())))))
        return messages

    def commit(self, batch: int, *tasks: Rows, run: str = "", **options: str) -> None:
        self.writer(**options).commit(self.write(batch, *tasks, run=run, **options), batch)

    def seen(self, *streams: str) -> dict[str, list[bytes]]:
        names = streams or ("orders", "audit", "letters")
        return {name: list(self.client.read(f"{self.scope}/{name}")) for name in names}


@pytest.fixture
def query(pravega: InProcessPravega, client: PravegaClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # of this test: no Spark could be started here after it
    yield Query(pravega, client)
    transactions._kept().close()  # no ping to the stopped server
    transactions._kept_of_process.clear()


def test_rows_of_a_batch_are_in_their_streams_once(query: Query):
    tasks = [("orders", b"1"), ("audit", b"1"), ("orders", b"2")], [("letters", b"bad"), ("audit", b"2")]
    for _ in range(2):
        query.commit(0, *tasks)
        query.run = str(uuid.uuid4())
    assert query.seen() == {"orders": [b"1", b"2"], "audit": [b"1", b"2"], "letters": [b"bad"]}
    query.commit(1, [("letters", b"worse")])
    query.commit(2, [])
    query.commit(3, [("orders", b"3")], [])
    assert query.seen() == {"orders": [b"1", b"2", b"3"], "audit": [b"1", b"2"], "letters": [b"bad", b"worse"]}


def test_one_entry_names_the_transactions_of_all_streams(query: Query):
    query.commit(0, [("orders", b"1"), ("audit", b"1")], [("orders", b"2")])
    with Ledger(query.client.stores, StreamName(query.scope, "decisions")) as ledger:
        (prepared, _) = (entry for _, entry in ledger.history())
    assert isinstance(prepared, Prepared)
    named = [part.transaction.stream for part in prepared.parts]
    assert named == [f"{query.scope}/{stream}#0" for stream in ("orders", "audit", "orders")]
    assert [part.content.rows for part in prepared.parts] == [1, 1, 1]


def test_a_batch_that_fails_is_in_no_stream(query: Query, client: PravegaClient):
    messages = query.write(0, [("orders", b"1"), ("audit", b"1")])
    query.writer().abort(messages, 0)
    (message,) = messages
    assert isinstance(message, TaskPrepared)
    for part in message.parts:
        status = client.controller.transaction_status(part.stream, part.transaction)
        assert status in (TransactionStatus.ABORTING, TransactionStatus.ABORTED)
    assert query.seen() == {"orders": [], "audit": [], "letters": []}


def test_a_replay_with_a_row_in_another_stream_is_refused(query: Query):
    query.commit(0, [("orders", b"1"), ("audit", b"1")])
    with pytest.raises(ReplayDiffersError, match=rf"ledger {query.scope}/decisions"):
        query.commit(0, [("orders", b"1"), ("letters", b"1")], run=str(uuid.uuid4()))
    assert query.seen() == {"orders": [b"1"], "audit": [b"1"], "letters": []}


@pytest.mark.parametrize("named", ["decisions", "orders-ingest", "_MARKorders", "_RGreaders", "own"])
@pytest.mark.parametrize("options", [{}, {"writer_mode": "at_least_once"}], ids=str)
def test_a_row_for_a_stream_without_events_is_refused(query: Query, named: str, options: dict[str, str]):
    """An event in a ledger would be an invalid entry, for all queries of the ledger."""
    query.commit(0, [("orders", b"1")])
    for stream in ("orders-ingest", "own"):
        query.client.create_stream(f"{query.scope}/{stream}", 1, tags=[STATE_TAG])
    with pytest.raises(InvalidNameError, match=rf"row 2 of column 'target_stream': stream {query.scope}/{named}"):
        query.commit(1, [("orders", b"2"), ("audit", b"2"), (named, b"2")], **options)
    assert query.seen() == {"orders": [b"1"], "audit": [], "letters": []}
    query.commit(1, [("orders", b"2")])
    assert query.seen()["orders"] == [b"1", b"2"]


def test_a_row_for_a_ledger_that_was_created_after_a_refused_row_is_refused(query: Query):
    for error in (StreamNotFoundError, InvalidNameError):
        with pytest.raises(error):
            query.commit(0, [("later", b"1")])
        query.client.create_stream(f"{query.scope}/later", 1, tags=[STATE_TAG], if_exists="ignore")
    assert query.seen("later") == {"later": []}


@pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])
def test_a_target_without_events_is_refused(query: Query, mode: str):
    query.commit(0, [("orders", b"1")])
    named = {"controller": query.pravega.uri, "path": f"{query.scope}/decisions", "ledger": "other"}
    source = DefaultSource(named | {"writer_mode": mode})
    with pytest.raises(InvalidNameError, match="decisions has the state of exactly-once writes"):
        source.streamWriter(StructType(SCHEMA[:1]), False)


def test_a_stream_that_a_row_names_is_created_if_the_options_allow_it(query: Query):
    with pytest.raises(StreamNotFoundError):
        query.commit(0, [("orders", b"1"), ("new", b"1")])
    query.commit(0, [("orders", b"1"), ("new", b"1")], allow_create_stream="true")
    assert query.seen("orders", "new") == {"orders": [b"1"], "new": [b"1"]}


def test_transactions_begin_before_the_first_row_on_the_streams_of_the_last_task(
    query: Query, eventually: Callable[..., None]
):
    calls = query.pravega.controller.calls
    query.commit(0, [("orders", b"1"), ("audit", b"1")])
    begun = calls["createTransaction"]

    def rows() -> Iterator[pa.RecordBatch]:
        eventually(lambda: calls["createTransaction"] == begun + 2)
        yield from pa.table({"event": [b"2", b"2"], "target_stream": ["orders", "audit"]}).to_batches()

    writer = query.writer()
    query.context._localProperties |= {"streaming.sql.batchId": "1"}
    writer.commit([writer.write(rows())], 1)
    assert calls["createTransaction"] == begun + 2
    assert query.seen("orders", "audit") == {"orders": [b"1", b"2"], "audit": [b"1", b"2"]}


def test_a_task_has_a_limited_number_of_streams(query: Query, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(transactions, "MAX_TARGETS", 2)
    with pytest.raises(ConfigError, match=r"more than 2 streams, such as .*letters"):
        query.write(0, [("orders", b"1"), ("audit", b"1"), ("letters", b"1")])
    assert query.pravega.faults.open_transactions == []


def test_the_ledger_must_be_named(query: Query):
    with pytest.raises(ConfigError, match="requires option 'ledger'"):
        DefaultSource({"controller": query.pravega.uri, "scope": query.scope}).streamWriter(SCHEMA, False)
