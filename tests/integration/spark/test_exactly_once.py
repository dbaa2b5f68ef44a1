"""Writes that are exactly once: replays, repeated batch writes, foreachBatch, and what is refused before it starts."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.exactly_once.batch_commit import Ledger, Prepared, ledger_name
from pravega_connector.wire import StreamName
from tests.integration.spark.test_streaming import KEYS, forget_batch, write_numbers

pytestmark = pytest.mark.each_spark

Copy = Callable[..., StreamingQuery]
Write = Callable[..., None]
NUMBER = "CAST(event AS STRING)"


@pytest.fixture
def target(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.controller.create_scope(stream_name.scope)
    target = StreamName(stream_name.scope, stream_name.stream + "-target")
    client.create_stream(target, 2)
    return target


@pytest.fixture
def source(client: PravegaClient, stream_name: StreamName, target: StreamName) -> StreamName:
    """The numbers 0 to 599 in a stream of two segments."""
    client.create_stream(stream_name, 2)
    write_numbers(client, stream_name, 0, 600)
    return stream_name


@pytest.fixture
def numbers(spark: SparkSession, config: PravegaConfig, source: StreamName) -> DataFrame:
    """The source as a streaming DataFrame, some 200 rows in a batch."""
    options = {"controller": config.controller, "start_stream_cut": "earliest", "max_rows_per_trigger": "200"}
    events = spark.readStream.format("pravega").options(**options).load(str(source))
    return events.selectExpr("event", f"CAST(CAST({NUMBER} AS INT) % {KEYS} AS STRING) AS routing_key")


@pytest.fixture
def copy(numbers: DataFrame, config: PravegaConfig, target: StreamName, checkpoint: str) -> Copy:
    """``copy(**options)``: a query that copies the source to the target, exactly once."""

    def copy(frame: DataFrame = numbers, **options: str) -> StreamingQuery:
        writer = frame.writeStream.format("pravega").option("controller", config.controller).options(**options)
        return writer.trigger(availableNow=True).start(str(target), checkpointLocation=checkpoint)

    return copy


@pytest.fixture
def write(config: PravegaConfig, target: StreamName) -> Write:
    """``write(frame, app, version)``: a batch write to the target, or another one, exactly once."""

    def write(frame: DataFrame, app: str, version: int, target: StreamName = target, **options: str) -> None:
        ids = {"controller": config.controller, "txn_app_id": app, "txn_version": str(version)}
        frame.write.format("pravega").mode("append").options(**(ids | options)).save(str(target))

    return write


@pytest.fixture
def holds(client: PravegaClient, target: StreamName, eventually: Callable[..., None]) -> Callable[..., None]:
    """Await that the target holds each number below ``count`` ``times`` times, in order for each key."""

    def check(count: int, *, times: int = 1) -> None:
        eventually(lambda: len(list(client.read(target))) >= count * times)
        by_key = defaultdict(list)
        for number in map(int, client.read(target)):
            by_key[number % KEYS].append(number)
        assert sorted(n for of_key in by_key.values() for n in of_key) == sorted([*range(count)] * times)
        if times == 1:
            assert all(of_key == sorted(of_key) for of_key in by_key.values())

    return check


def recorded(client: PravegaClient, target: StreamName) -> list[Prepared]:
    """Everything ever prepared for the target."""
    with Ledger(client.stores, ledger_name(target)) as ledger:
        return [entry for _, entry in ledger.history() if isinstance(entry, Prepared)]


def forget_newest(checkpoint: str, batch: int) -> dict[Path, bytes]:
    """Remove what a checkpoint has of a batch, which is its newest; the files, to put them back."""
    files = {}
    for folder in ("commits", "offsets"):
        for path in Path(checkpoint, folder).iterdir():
            number = path.name.lstrip(".").split(".")[0]
            assert not number.isdigit() or int(number) <= batch, f"{path} is newer"
            if number == str(batch):
                files[path] = path.read_bytes()
                path.unlink()
    assert len(files) >= 2, "there were no files of this batch"
    return files


def rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=2).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS event")


# ---- streaming queries -----------------------------------------------------------------------------------------------


def test_a_replayed_batch_is_not_written_again(client, target, copy, checkpoint, holds):
    copy().awaitTermination()
    holds(600)
    before = recorded(client, target)
    last = before[-1].batch
    assert last >= 2
    forget_batch(checkpoint, last)
    query = copy()
    query.awaitTermination()
    assert [progress.batchId for progress in query.recentProgress if progress.numInputRows] == [last], "it was replayed"
    holds(600)
    assert recorded(client, target) == before, "the ledger knew the batch already"
    ids = [part.transaction.id for entry in before for part in entry.parts]
    statuses = {client.controller.transaction_status(target, id_) for id_ in ids}
    assert statuses == {TransactionStatus.COMMITTED}


def test_a_batch_number_with_other_rows_is_not_skipped(client, source, target, copy, checkpoint, holds):
    """The newest files of a checkpoint were deleted, as after Spark's error about an emptied one: it plans again."""
    copy().awaitTermination()
    before = recorded(client, target)
    last = before[-1].batch
    files = forget_newest(checkpoint, last)
    write_numbers(client, source, 600, 700)
    with pytest.raises(Exception, match=rf"PRAVEGA-REPLAY-DIFFERS.*batch {last} .*accept_recorded_batch to {last} "):
        copy().awaitTermination()
    holds(600)
    assert recorded(client, target) == before, "nothing was recorded, and what was recorded is as it was"
    for file, content in files.items():
        file.write_bytes(content)
    copy().awaitTermination()
    holds(700)


@pytest.mark.long  # tests/integration/exactly_once/test_ledger.py has the same without Spark
def test_a_recorded_batch_is_accepted_by_its_number(client, source, target, numbers, copy, checkpoint, holds):
    """A query that cannot repeat its rows: they have zeros in front, another number of them each time."""
    frame = numbers.selectExpr(f"repeat('0', CAST(rand() * 1000 AS INT)) || {NUMBER} AS event", "routing_key")
    copy(frame).awaitTermination()
    last = recorded(client, target)[-1].batch
    before = sorted(client.read(target))
    forget_batch(checkpoint, last)
    for accepted in ({}, {"accept_recorded_batch": str(last - 1)}):
        with pytest.raises(Exception, match="PRAVEGA-REPLAY-DIFFERS"):
            copy(frame, **accepted).awaitTermination()
    copy(frame, accept_recorded_batch=str(last)).awaitTermination()
    assert sorted(client.read(target)) == before, "what was recorded counts, and nothing else"
    write_numbers(client, source, 600, 650)
    copy(frame, accept_recorded_batch=str(last)).awaitTermination()
    holds(650)


def test_tasks_and_batches_without_rows_need_no_transaction(client, target, numbers, copy):
    copy(numbers.where(f"{NUMBER} = '77'")).awaitTermination()
    assert list(client.read(target)) == [b"77"]
    assert [len(entry.parts) for entry in recorded(client, target)] == [1]
    with Ledger(client.stores, ledger_name(target)) as ledger:
        (app,) = ledger.read()[1].values()
    assert app.last >= 2, "the batches without rows are committed too"


@pytest.mark.long  # tests/integration/exactly_once has several drivers and applications
def test_two_queries_write_to_one_stream(client, target, copy, numbers, config, tmp_path, holds):
    writer = numbers.writeStream.format("pravega").option("controller", config.controller).trigger(availableNow=True)
    queries = [copy(), writer.start(str(target), checkpointLocation=str(tmp_path / "another"))]
    for query in queries:
        query.awaitTermination()
    holds(600, times=2)


# ---- batch writes and foreachBatch -----------------------------------------------------------------------------------


def test_a_version_that_is_committed_is_not_written_again(spark, client, target, write, holds):
    for parts in (2, 3):
        write(rows(spark, 10).repartition(parts), "loader", 1)
        holds(10)
    with pytest.raises(Exception, match=r"PRAVEGA-REPLAY-DIFFERS.*committed with 10 rows.*other rows \(9 rows"):
        write(rows(spark, 9), "loader", 1)
    with pytest.raises(Exception, match=r"PRAVEGA-REPLAY-DIFFERS.*this earlier batch is not in the ledger"):
        write(rows(spark, 10), "loader", 0)
    write(rows(spark, 10), "loader", 0, accept_recorded_batch="0")
    write(rows(spark, 9), "loader", 1, accept_recorded_batch="1")
    holds(10)
    write(rows(spark, 10), "loader", 2)
    write(rows(spark, 10), "another loader", 1)
    holds(10, times=3)
    write(rows(spark, 0), "loader", 3)
    assert len(recorded(client, target)) == 3


def test_foreach_batch_writes_each_batch_once(numbers, write, checkpoint, holds):
    written: list[int] = []

    def each(batch: DataFrame, number: int) -> None:
        write(batch, "each", number)
        written.append(number)

    def run() -> None:
        numbers.writeStream.foreachBatch(each).trigger(availableNow=True).start(
            checkpointLocation=checkpoint
        ).awaitTermination()

    run()
    holds(600)
    forget_batch(checkpoint, written[-1])
    run()
    assert written[-1] == written[-2], "the last batch was replayed"
    holds(600)


@pytest.mark.long  # tests/unit/exactly_once/batch_commit/test_entries.py keeps them apart
def test_targets_of_one_ledger_are_kept_apart(numbers, client, target, write, checkpoint, holds, eventually):
    """Each batch goes to two streams with one ledger; the first run ends between the two writes of a batch."""
    other = StreamName(target.scope, f"{target.stream}-other")
    client.create_stream(other, 2)
    ends = ["between the two"]

    def each(batch: DataFrame, number: int) -> None:
        write(batch, "each", number, ledger="both")
        if number == 1 and ends:
            raise RuntimeError(ends.pop())
        write(batch, "each", number, ledger="both", target=other)

    def run() -> None:
        numbers.writeStream.foreachBatch(each).trigger(availableNow=True).start(
            checkpointLocation=checkpoint
        ).awaitTermination()

    with pytest.raises(Exception, match="between the two"):
        run()
    run()
    holds(600)
    eventually(lambda: len(list(client.read(other))) >= 600)
    assert sorted(map(int, client.read(other))) == [*range(600)]


@pytest.mark.long  # the next test has no restart
def test_two_writes_of_a_batch_with_equal_rows_fail_after_a_restart_too(numbers, write, checkpoint):
    def each(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            write(batch, "each", number)

    for _ in range(2):
        query = numbers.writeStream.foreachBatch(each).trigger(availableNow=True).start(checkpointLocation=checkpoint)
        with pytest.raises(Exception, match=r"PRAVEGA-DUPLICATE-WRITE.*a separate txn_app_id"):
            query.awaitTermination()


def test_two_writes_of_a_batch_must_not_share_their_ids(numbers, write, checkpoint):
    def each(batch: DataFrame, number: int) -> None:
        write(batch.where(f"{NUMBER} < '3'"), "each", number)
        write(batch.where(f"{NUMBER} >= '3'"), "each", number)

    query = numbers.writeStream.foreachBatch(each).trigger(availableNow=True).start(checkpointLocation=checkpoint)
    with pytest.raises(Exception, match=r"PRAVEGA-DUPLICATE-WRITE.*a separate txn_app_id"):
        query.awaitTermination()


# ---- what cannot work is said before the first event -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ({"writer_mode": "exactly_once"}, "requires txn_app_id and txn_version"),
        ({"txn_app_id": "a"}, "must be set together"),
        ({"txn_version": "1"}, "must be set together"),
    ],
)
def test_a_batch_write_needs_both_ids(spark, config, target, ids, message):
    writer = rows(spark, 1).write.format("pravega").mode("append").option("controller", config.controller)
    with pytest.raises(Exception, match=rf"PRAVEGA-CONFIG.*{message}"):
        writer.options(**ids).save(str(target))


def test_a_query_needs_a_checkpoint(numbers, config, target):
    writer = numbers.writeStream.format("pravega").option("controller", config.controller)
    with pytest.raises(Exception, match="checkpointLocation"):
        writer.trigger(availableNow=True).start(str(target))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transaction_timeout_ms": "9000", "commit_timeout_ms": "5000"}, "PRAVEGA-LEASE-RANGE.*10"),
        ({"transaction_timeout_ms": "9000"}, "PRAVEGA-LEASE-RANGE.*commit_timeout_ms 300000, which is failover"),
        ({"transaction_timeout_ms": "600001"}, "PRAVEGA-LEASE-RANGE"),
        ({"txn_app_id": "a", "txn_version": "1"}, "PRAVEGA-CONFIG.*a streaming query has its own ids"),
    ],
)
def test_a_query_that_cannot_work_ends_before_its_first_event(client, target, copy, options, message):
    with pytest.raises(Exception, match=message):
        copy(**options).awaitTermination()
    assert not list(client.read(target))
    assert not recorded(client, target)


def test_a_target_that_is_missing_is_not_made(numbers, config, client, target, checkpoint):
    missing = StreamName(target.scope, "missing")
    writer = numbers.writeStream.format("pravega").option("controller", config.controller).trigger(availableNow=True)
    with pytest.raises(Exception, match="PRAVEGA-STREAM-NOT-FOUND"):
        writer.start(str(missing), checkpointLocation=checkpoint).awaitTermination()
    assert not client.controller.stream_exists(missing)
    assert not client.controller.stream_exists(ledger_name(missing)), "nor is a ledger"
