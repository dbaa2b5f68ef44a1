"""Raw events written inside Spark's JVM: the same events, totals and errors as in Python, through faults."""

import itertools
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.exactly_once.batch_commit import Content, Ledger, Prepared, ledger_name
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from tests.conftest import Eventually

Save = Callable[..., None]


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega, target: StreamName) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        client.create_stream(target, 3)
        yield client


@pytest.fixture
def target(own_scope: str) -> StreamName:
    return StreamName(own_scope, "target")


@pytest.fixture
def save(pravega: InProcessPravega, client: PravegaClient, target: StreamName) -> Save:
    """``save(frame, version, **options)`` writes by the JVM: exactly once with a version, at least once without."""

    def save(frame: DataFrame, version: int | None = None, **options: object) -> None:
        ids = {} if version is None else {"txn_app_id": "app", "txn_version": version}
        given = {"controller": pravega.uri, "raw_writer": "jvm"} | ids | options
        frame.write.format("pravega").mode("append").options(**given).save(str(target))

    return save


def frame_of(spark: SparkSession, rows: list[tuple[str | None, bytes]], partitions: int = 2) -> DataFrame:
    schema = "routing_key STRING, event BINARY"
    frame = spark.createDataFrame([(key, bytearray(event)) for key, event in rows], schema)
    return frame.coalesce(1) if partitions == 1 else frame.repartition(partitions)  # the first keeps the order


def events(count: int, *, keys: int = 50, size: int = 100, seed: int = 1) -> list[tuple[str | None, bytes]]:
    chance = random.Random(seed)
    return [
        (f"key-{chance.randrange(keys)}", b"%d " % i + chance.randbytes(chance.randrange(size))) for i in range(count)
    ]


def prepared(client: PravegaClient, target: StreamName, app: str = "app") -> list[Content]:
    """Return the content of each batch that an application has prepared."""
    with Ledger(client.stores, ledger_name(target)) as ledger:
        entries = [each for _, each in ledger.history() if isinstance(each, Prepared) and each.app == app]
    return [sum((part.content for part in entry.parts), Content()) for entry in entries]


def in_order(client: PravegaClient, target: StreamName, rows: list[tuple[str | None, bytes]]) -> None:
    """Assert that the target has the rows once each, in order for each key."""
    found = [bytes(event) for event in client.read(target)]
    assert sorted(found) == sorted(event for _, event in rows)
    places = {event: place for place, event in enumerate(found)}
    by_key = defaultdict(list)
    for key, event in rows:
        by_key[key].append(places[event])
    assert all(each == sorted(each) for key, each in by_key.items() if key is not None)


VALUES: list[tuple[str | None, bytes]] = [
    *((f"key-{size}", (b"\xfe\x01%d" % size) + b"\xff" * size) for size in range(1, 1100, 7)),
    *((key, f"of {key}".encode()) for key in ("", "ключ", "😀 é", "k" * 1023, "k" * 1024, "k" * 1025, "ß" * 2000)),
    (None, b"without a key"), (None, b""), ("e", b""), ("e", bytes(1024)), ("e", bytes(1025)), ("e", bytes(70_000)),
]  # fmt: skip


@pytest.mark.parametrize("columns", ["event, routing_key", "event", "CAST('é' || hex(event) AS STRING) AS event"])
def test_totals_and_segments_are_those_of_the_python_writer(
    jvm_session: SparkSession,
    save: Save,
    client: PravegaClient,
    target: StreamName,
    pravega: InProcessPravega,
    columns: str,
) -> None:
    frame = frame_of(jvm_session, VALUES, 3).selectExpr(*columns.split(", "))
    save(frame, 1)
    save(frame, 1, txn_app_id="python", raw_writer="python")
    (by_jvm,), (by_python,) = prepared(client, target), prepared(client, target, "python")
    assert by_jvm == by_python
    assert by_jvm.rows == len(VALUES)
    if "routing_key" in columns:
        segments = defaultdict(set)
        for row in jvm_session.read.format("pravega").option("controller", pravega.uri).load(str(target)).collect():
            segments[bytes(row.event)].add(row.segment_id)
        keyed = {event for key, event in VALUES if key is not None} - {event for key, event in VALUES if key is None}
        assert all(len(segments[event]) == 1 for event in keyed)


def test_a_constant_key_is_part_of_the_total(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName
) -> None:
    frame = frame_of(jvm_session, VALUES).select("event")
    save(frame, 1, routing_key="é")
    save(frame, 1, routing_key="é", txn_app_id="python", raw_writer="python")
    assert prepared(client, target) == prepared(client, target, "python")


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize("fault", ["drop_before", "drop_after", "segment_moved", "repeat_reply"])
def test_faults_of_the_stores_lose_and_repeat_nothing(
    jvm_session: SparkSession,
    save: Save,
    client: PravegaClient,
    target: StreamName,
    pravega: InProcessPravega,
    fault: str,
    version: int | None,
) -> None:
    rows = events(3000, size=8000)
    frame = frame_of(jvm_session, rows, 1)
    for request in ("append", "any"):
        getattr(pravega.faults, fault)(request, times=2)
    save(frame, version)
    assert pravega.faults.pending == 0
    in_order(client, target, rows)


def test_a_segment_that_is_sealed_during_a_write_is_followed(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName, pravega: InProcessPravega
) -> None:
    rows, controller = events(6000, size=2000), pravega.uri

    def scaled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 3:  # the rows before have filled blocks
                with PravegaClient(controller) as own:
                    own.scale_stream(str(target), 5)
            yield batch

    jvm_session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    save(frame_of(jvm_session, rows, 1).mapInArrow(scaled, "routing_key STRING, event BINARY"))
    assert len(client.controller.current_segments(target)) == 5
    in_order(client, target, rows)


@pytest.mark.parametrize("cut", [False, True])
def test_a_task_that_fails_leaves_no_rows(
    jvm_session: SparkSession,
    save: Save,
    client: PravegaClient,
    target: StreamName,
    pravega: InProcessPravega,
    eventually: Eventually,
    cut: bool,
) -> None:
    """Its next attempt has another transaction. The connections of the first one may be lost, too."""
    rows = events(4000, size=2000)
    if cut:
        pravega.faults.drop_after("append", times=1)

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number == 3 and context.attemptNumber() == 0:
                raise RuntimeError("the first attempt fails")
            yield batch

    jvm_session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    save(frame_of(jvm_session, rows, 2).mapInArrow(failing, "routing_key STRING, event BINARY"), 1)
    found = Counter(map(bytes, client.read(target)))
    assert found == Counter(event for _, event in rows), (len(rows), found.total(), len(found))
    eventually(lambda: not pravega.faults.open_transactions)


def test_a_killed_task_leaves_no_rows_and_no_transaction(
    jvm_session: SparkSession,
    save: Save,
    client: PravegaClient,
    target: StreamName,
    pravega: InProcessPravega,
    eventually: Eventually,
    tmp_path: Path,
) -> None:
    running = tmp_path / "running"

    def endless(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in itertools.cycle(list(batches)):
            running.touch()
            yield batch
            time.sleep(0.02)  # the in-process server keeps all rows in its memory

    rows, context = events(100), jvm_session.sparkContext

    def write() -> None:
        context.setInterruptOnCancel(True)
        save(frame_of(jvm_session, rows, 1).mapInArrow(endless, "routing_key STRING, event BINARY"), 1)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(write)
        try:
            # The driver, too, begins a transaction, before the job: to cancel all jobs then would cancel none.
            eventually(lambda: running.exists() and pravega.faults.open_transactions)
        finally:  # py4j can give a thread a new thread of the JVM, without its job group
            context.cancelAllJobs()
        with pytest.raises(Exception, match="cancelled"):
            done.result(120)
    eventually(lambda: not pravega.faults.open_transactions)
    save(frame_of(jvm_session, rows, 1), 1)
    in_order(client, target, rows)


def test_a_task_whose_python_process_ends_runs_again(
    jvm_session: SparkSession,
    save: Save,
    client: PravegaClient,
    target: StreamName,
    pravega: InProcessPravega,
    eventually: Eventually,
) -> None:
    """The process has begun the transaction, so a new one would report a task without rows."""
    save(frame_of(jvm_session, [("k", b"first")]), 0)  # the process runs
    (helper,) = helpers(jvm_session)
    rows, process = events(4000, size=2000), f"/proc/{helper}"

    def waiting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number == 6 and context.attemptNumber() == 0:  # the JVM has the rows of the batches before
                deadline = time.monotonic() + 60
                while os.path.exists(process) and time.monotonic() < deadline:
                    time.sleep(0.01)
            yield batch

    jvm_session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    with ThreadPoolExecutor(1) as pool:
        frame = frame_of(jvm_session, rows, 1).mapInArrow(waiting, "routing_key STRING, event BINARY")
        done = pool.submit(save, frame, 1)
        eventually(lambda: len(pravega.faults.open_transactions) == 1)
        os.kill(helper, signal.SIGKILL)
        done.result()
    in_order(client, target, [(None, b"first"), *rows])


def helpers(spark: SparkSession) -> list[int]:
    """Return the process ids of the Python processes that help the JVM."""
    assert spark._jvm is not None
    children = spark._jvm.java.lang.ProcessHandle.current().children().toArray()
    lines = {int(each.pid()): Path(f"/proc/{each.pid()}/cmdline").read_bytes() for each in children}
    return [process for process, line in lines.items() if b"pravega_connector.spark.jvm.support" in line]


def test_the_session_of_the_rows_counts_not_the_active_one(
    spark: SparkSession, jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName
) -> None:
    rows = jvm_session.range(3).selectExpr("CAST(id AS STRING) AS event")
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
    save(rows)
    assert sorted(client.read(target)) == [b"0", b"1", b"2"]


def test_foreach_batch_reads_and_writes_inside_the_jvm(
    jvm_session: SparkSession, pravega: InProcessPravega, client: PravegaClient, target: StreamName, tmp_path: Path
) -> None:
    """Spark gives it a copy of the session."""
    source, rows = StreamName(target.scope, "source"), events(300)
    client.create_stream(source, 2)
    with client.writer(source) as writer:
        for key, event in rows:
            writer.write(event, key)
    given = {"controller": pravega.uri, "start_stream_cut": "earliest", "columns": "event"}

    def write(batch: DataFrame, number: int) -> None:
        options = {"controller": pravega.uri, "txn_app_id": "app", "txn_version": str(number), "raw_writer": "jvm"}
        batch.write.format("pravega").mode("append").options(**options).save(str(target))
        again = batch.sparkSession.read.format("pravega").options(**given, raw_reader="jvm").load(str(source))
        assert again.count() == len(rows)

    stream = jvm_session.readStream.format("pravega").options(**given).load(str(source))
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(map(bytes, client.read(target))) == sorted(event for _, event in rows)


def test_a_repeated_write_is_skipped_and_other_rows_are_refused(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName
) -> None:
    rows = events(500)
    save(frame_of(jvm_session, rows, 2), 1)
    save(frame_of(jvm_session, rows, 3), 1)
    with pytest.raises(PySparkException, match=r"PRAVEGA-REPLAY-DIFFERS"):
        save(frame_of(jvm_session, rows[1:], 2), 1)
    assert sorted(client.read(target)) == sorted(event for _, event in rows)


@pytest.mark.parametrize("version", [None, 1])
def test_large_events_keep_their_order(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName, version: int | None
) -> None:
    rows: list[tuple[str | None, bytes]] = []
    for size in (10, 9 << 20, 20, (8 << 20) + 1, 8 << 20, 30):
        rows += [("a", b"%d" % len(rows) + bytes(size)), ("b", b"%d" % len(rows))]
    save(frame_of(jvm_session, rows, 1), version, max_event_size=10 << 20)
    in_order(client, target, rows)


def test_errors_of_rows_are_those_of_the_python_writer(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName
) -> None:
    with pytest.raises(PySparkException, match=r"(?s)write.*PRAVEGA-EVENT-TOO-LARGE.*max_event_size"):
        save(frame_of(jvm_session, [("k", bytes(101))]), max_event_size=100)
    with pytest.raises(PySparkException, match=r"PRAVEGA-NULL-EVENT"):
        save(frame_of(jvm_session, [("k", b"x")]).selectExpr("CAST(NULL AS BINARY) AS event"), 1)
    for writer in ("jvm", "python"):
        frame = frame_of(jvm_session, [("k", b"x")]).selectExpr("event", "CAST(X'41FF' AS STRING) AS routing_key")
        with pytest.raises(PySparkException, match=r"PRAVEGA-SERIALIZATION.* row 0: the routing key is not UTF-8"):
            save(frame, 1, raw_writer=writer)
    assert list(client.read(target)) == []


def test_writes_that_are_not_raw_are_refused_if_the_jvm_is_demanded(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName
) -> None:
    frame = frame_of(jvm_session, [("k", b"1")])
    for options in ({"format": "json"}, {"writer_mode": "best_effort"}):
        with pytest.raises(PySparkException, match=r"PRAVEGA-CONFIG.*raw_writer=jvm.*cannot write with"):
            save(frame, **options)
        save(frame, raw_writer="auto", **options)
    assert len(list(client.read(target))) == 2


def test_tasks_without_rows_begin_no_transaction(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName, pravega: InProcessPravega
) -> None:
    save(frame_of(jvm_session, [("k", b"1")]).where("false"), 1)
    save(frame_of(jvm_session, [("k", b"1")], 4), 2)
    assert list(client.read(target)) == [b"1"]
    assert not pravega.faults.open_transactions


@pytest.mark.parametrize("version", [None, 1])
def test_events_are_written_once(
    jvm_session: SparkSession, save: Save, client: PravegaClient, target: StreamName, version: int | None
) -> None:
    rows = events(5000)
    save(frame_of(jvm_session, rows), version)
    assert sorted(client.read(target)) == sorted(event for _, event in rows)
