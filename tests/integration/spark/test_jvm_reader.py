"""Raw events read inside Spark's JVM: the same rows, offsets and errors as with the Python reader, through faults."""

import json
import random
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.spark.query_metrics import QueryMetrics
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from tests.integration.spark._jvm import RECEIVED, is_read_by_the_jvm, shown_metrics, shown_queries
from tests.support.measured import of_stream, value

CUTS = 20


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega, source: StreamName) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        client.create_stream(source, 2)
        yield client


@pytest.fixture
def source(own_scope: str) -> StreamName:
    return StreamName(own_scope, "source")


@pytest.fixture
def write(client: PravegaClient, source: StreamName) -> Callable[..., list[bytes]]:
    """``write(sizes)`` writes events of these sizes under random keys, and returns them."""

    def write(sizes: list[int], seed: int = 0) -> list[bytes]:
        chance = random.Random(seed)
        events = [chance.randbytes(size) for size in sizes]
        with client.writer(source) as writer:
            writer.write_column(pa.array(events, pa.binary()), pa.array([str(chance.randrange(50)) for _ in events]))
        return events

    return write


@pytest.fixture
def load(jvm_session: SparkSession, pravega: InProcessPravega, source: StreamName) -> Callable[..., DataFrame]:
    """``load(**options)`` reads the source with the JVM reader; ``raw_reader="python"`` with the other one."""

    def load(name: object = source, **options: object) -> DataFrame:
        return jvm_session.read.format("pravega").option("controller", pravega.uri).options(**options).load(str(name))

    return load


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted((row.segment_id, row.offset, row.scope, row.stream, bytes(row.event)) for row in frame.collect())


def test_rows_are_those_of_the_python_reader(write, client, load):
    sizes = [0, 1, 7, 8, 9, 100, 5_000_000, 1 << 20, (1 << 20) - 8, 0, 3, *range(0, 3000, 3), *[70_000] * 40]
    events = write(sizes)
    found, expected = load(), load(raw_reader="python")
    assert (is_read_by_the_jvm(found), is_read_by_the_jvm(expected)) == (True, False)
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)
    assert sorted(row[-1] for row in rows(found)) == sorted(events)
    assert found.count() == len(events)
    assert {row.stream for row in found.select("stream").collect()} == {"source"}


def test_ranges_between_random_cuts_are_equal(write, source, client, load):
    write([random.Random(1).randrange(2000) for _ in range(3000)], seed=1)
    client.scale_stream(source, 3)
    write([random.Random(2).randrange(2000) for _ in range(3000)], seed=2)
    everything = rows(load(raw_reader="python"))
    chance = random.Random(3)
    for _ in range(CUTS):
        segment, offset = chance.choice(everything)[:2]
        parts = chance.choice([1, 4, 9])
        text = f"segment_id = {segment} AND offset >= {offset}"
        found = rows(load(min_partitions=parts).where(text))
        assert found == [row for row in everything if row[0] == segment and row[1] >= offset]


def test_reads_continue_through_faults_of_the_stores(write, client, load, pravega):
    events = write([50_000] * 200)
    pravega.faults.drop_before("read", times=2)
    pravega.faults.drop_after("read", times=2)
    pravega.faults.segment_moved("read", times=2)
    pravega.faults.fail("read", times=2)
    pravega.faults.repeat_reply("read", times=1)
    assert sorted(row[-1] for row in rows(load())) == sorted(events)
    assert pravega.faults.pending == 0


def test_metrics_of_the_tasks_are_in_the_plan_and_in_the_ui(
    write, source, client, load, pravega, jvm_session, eventually
):
    write([992] * 1000)
    before = shown_queries(jvm_session)
    pravega.faults.drop_before("read", times=1)
    frame = load().select("event")
    assert len(frame.collect()) == 1000
    scan = frame._jdf.queryExecution().executedPlan()
    while scan.children().size():
        scan = scan.children().apply(0)
    names = ("eventsReceived", "bytesReceived", "retries", "reconnects", "lostBytes")
    assert [scan.metrics().apply(name).value() for name in names] == [1000, 1_000_000, 1, 1, 0]
    eventually(lambda: len(shown_metrics(jvm_session, before)) == 1)
    (shown,) = shown_metrics(jvm_session, before)
    assert (shown[RECEIVED], shown["failed attempts that were retried"]) == ("1000", "1")


def test_data_that_a_task_skips_is_counted(write, source, client, load):
    write([992] * 500)
    middle = client.tail(source)
    write([992] * 500, seed=1)
    frame = load(fail_on_data_loss=False)
    scan = frame._jdf.queryExecution().executedPlan()
    scan.execute().partitions()  # Spark keeps the tasks of this plan, which then lose a half of their data
    client.truncate(source, middle)
    assert len(scan.executeCollect()) == 500
    while scan.children().size():
        scan = scan.children().apply(0)
    assert [scan.metrics().apply(name).value() for name in ("eventsReceived", "lostBytes")] == [500, 500_000]


def test_metrics_of_a_stream_are_in_the_ui_and_its_progress(write, source, jvm_session, pravega, eventually, tmp_path):
    write([992] * 1000)
    before = shown_queries(jvm_session)
    frame = jvm_session.readStream.format("pravega").option("controller", pravega.uri)
    frame = frame.options(start_stream_cut="earliest", max_bytes_per_trigger="600000").load(str(source))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    sources = [each["sources"][0] for each in query.recentProgress if each["sources"][0]["numInputRows"]]
    assert {each["description"] for each in sources} == {f"pravega, read by the JVM: {source}"}
    lags = [int(each["metrics"]["lagBytes"]) for each in sources]
    assert lags == [json.loads(each["latestOffset"])["behind"]["bytes"] for each in sources]
    assert (len(lags), lags[-1]) == (2, 0)
    assert lags[0] > 300_000
    assert {(each["metrics"]["reader"], each["metrics"]["lostBytes"]) for each in sources} == {("jvm", "0")}
    eventually(lambda: sum(int(each[RECEIVED]) for each in shown_metrics(jvm_session, before)) == 1000)


def test_a_loss_that_planning_skips_is_counted_once(write, source, client, jvm_session, pravega, eventually, tmp_path):
    listener = QueryMetrics()
    jvm_session.streams.addListener(listener)

    def run(name: str) -> None:
        frame = jvm_session.readStream.format("pravega").option("controller", pravega.uri)
        frame = frame.options(start_stream_cut="earliest", fail_on_data_loss="false").load(str(source))
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).queryName(name)
        writer.trigger(availableNow=True).start().awaitTermination()

    write([992] * 10)
    run("before")
    write([992] * 30)
    client.truncate(source, client.tail(source))
    write([992] * 5)
    run("after")
    # The planner is in this process, and so is the listener.
    eventually(lambda: value("pravega.query.rows", pravega__query="after", pravega__direction="read") == 5)
    jvm_session.streams.removeListener(listener)
    assert of_stream("pravega.loss.size", source) == 30_000


def test_the_plan_shows_filters_and_columns(write, source, client, load, capsys):
    write([10] * 10)
    load().where("segment_id = 1 AND offset >= 50").select("event").explain()
    plan = capsys.readouterr().out
    assert f"pravega, read by the JVM: {source}, PushedFilters: [" in plan
    assert "EqualTo(segment_id,1)" in plan
    assert "GreaterThanOrEqual(offset,50)" in plan
    assert "ReadSchema: struct<event:binary,segment_id:bigint,offset:bigint>" in plan
    load().groupBy().count().explain()
    assert "ReadSchema: struct<>" in capsys.readouterr().out


def test_truncated_data_is_an_error_or_skipped(write, source, client, load):
    write([1000] * 500)
    frames = [load(raw_reader=reader) for reader in ("jvm", "python")]
    head = client.head(source)
    middle = client.tail(source)
    write([1000] * 500, seed=1)
    client.truncate(source, middle)
    errors = []
    for frame in [load(raw_reader=reader, start_stream_cut=head.to_text()) for reader in ("jvm", "python")]:
        with pytest.raises(PySparkException) as raised:
            frame.collect()
        text = str(raised.value).partition("[PRAVEGA-DATA-LOSS]")[2]
        errors.append(text.splitlines()[0])
    assert errors[0] == errors[1] != ""
    skipping = [
        rows(load(raw_reader=reader, start_stream_cut=head.to_text(), fail_on_data_loss=False))
        for reader in ("jvm", "python")
    ]
    assert skipping[0] == skipping[1] == rows(load())
    assert len(skipping[0]) == 500
    assert all(is_read_by_the_jvm(frame) == (number == 0) for number, frame in enumerate(frames))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"format": "java", "java_type": "java.lang.Long", "mode": "PERMISSIVE"},
            "cannot read with JavaSerializer",
        ),
        ({"columns": "event,encoding_id"}, "reads raw events only: leave out column 'encoding_id'"),
    ],
)
def test_a_read_that_only_python_can_do(write, client, load, options, expected):
    write([3] * 10)
    assert not is_read_by_the_jvm(load(**options))
    assert load(**options).count() == 10
    with pytest.raises(PySparkException, match=rf"raw_reader=jvm.*{expected}"):
        load(raw_reader="jvm", **options).count()


def test_a_session_without_the_reader_reports_it(write, source, spark, pravega, client):
    write([3] * 10)
    frame = spark.newSession().read.format("pravega").option("controller", pravega.uri).option("raw_reader", "jvm")
    with pytest.raises(PySparkException, match="the JVM reader is not loaded in this session"):
        frame.load(str(source)).count()


def test_a_stream_that_does_not_exist(source, load):
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-STREAM-NOT-FOUND\] stream \S+/none does not exist"):
        load(StreamName(source.scope, "none")).count()


@pytest.mark.parametrize("runs", [2, pytest.param(6, marks=pytest.mark.long)])
def test_a_query_changes_its_reader_at_every_restart(source, jvm_session, client, pravega, tmp_path, runs):
    target = StreamName(source.scope, "target")
    client.create_stream(target, 2)
    seen = []
    for run in range(runs):
        with client.writer(source) as writer:
            for number in range(100 * run, 100 * (run + 1)):
                writer.write(str(number).encode(), routing_key=str(number % 10))
        if run == runs // 2:
            client.scale_stream(source, 4)
        reader = "jvm" if run % 2 else "python"
        frame = jvm_session.readStream.format("pravega").option("controller", pravega.uri).option("raw_reader", reader)
        frame = frame.option("start_stream_cut", "earliest").load(str(source))
        keyed = frame.selectExpr("event", "right(CAST(event AS STRING), 1) AS routing_key").writeStream
        keyed = keyed.format("pravega").option("controller", pravega.uri).option("path", str(target))
        query = keyed.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()
        seen.append((query.lastProgress or {})["sources"][0]["metrics"].get("reader", "python"))
    assert seen == ["python", "jvm"] * (runs // 2)
    copied = [int(event) for event in client.read(target)]
    assert sorted(copied) == list(range(100 * runs))
    for key in range(10):
        assert [number for number in copied if number % 10 == key] == list(range(key, 100 * runs, 10))
