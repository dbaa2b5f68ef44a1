"""``read`` and ``write`` of pyspark_pravega, which need no data source in Spark: any Spark from 3.5 on."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import (
    ColumnTypeError,
    ConfigError,
    DuplicateWriteError,
    StreamNotFoundError,
    UnknownOptionError,
    UnsupportedModeError,
)
from pravega_connector.spark import session
from pravega_connector.spark.dataframes import read, write
from pravega_connector.spark.sink.writers import PravegaBatchWriter
from pravega_connector.spark.versions import VERSION
from pravega_connector.wire import StreamName

pytestmark = pytest.mark.each_spark
Events = list[tuple[str, bytes]]


@pytest.fixture
def options(config: PravegaConfig) -> dict[str, Any]:
    return {"controller": config.controller}


def counted(client: PravegaClient, stream: StreamName) -> Counter[bytes]:
    return Counter(bytes(event) for event in client.read(stream))


# ---- read ------------------------------------------------------------------------------------------------------------


def test_a_read_has_each_event_once_with_its_position(spark, stream, events, options):
    frame = read(spark, str(stream), **options, min_partitions=5)
    assert frame.rdd.getNumPartitions() >= 5
    rows = frame.collect()
    assert Counter(bytes(row.event) for row in rows) == Counter(event for _, event in events)
    assert {row.scope for row in rows} == {stream.scope}
    assert {row.stream for row in rows} == {stream.stream}
    assert len({(row.segment_id, row.offset) for row in rows}) == len(events)
    only = read(spark, str(stream), **options, columns="offset,event")
    assert only.columns == ["offset", "event"]


def test_a_read_stays_between_the_cuts_of_its_call(spark, client, stream, events, options):
    frame = read(spark, str(stream), **options)
    end = client.tail(stream).to_text()
    client.write(stream, b"later", routing_key="k")
    assert frame.count() == frame.count() == len(events)
    assert read(spark, str(stream), **options, end_stream_cut=end).count() == len(events)
    rest = read(spark, str(stream), **options, start_stream_cut=end, columns="event").collect()
    assert [bytes(row.event) for row in rest] == [b"later"]
    assert read(spark, str(stream), **options, start_stream_cut="latest").collect() == []


def test_malformed_events(spark, client, stream_name, options):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        for event in (b'{"id": 1, "at": "1500-01-01T00:00:00.000001Z"}', b'{"id": "x"}', b"{"):
            writer.write(event, routing_key="k")
    form = {"format": "json", "schema": "id BIGINT, at TIMESTAMP"}
    wider = {**form, "schema": form["schema"] + ", _corrupt_record BINARY"}
    kept = read(spark, str(stream_name), **options, **wider, mode="PERMISSIVE")
    found = kept.selectExpr("id", "CAST(at AS STRING) AS at", "_corrupt_record AS bad").collect()
    assert sorted(map(tuple, found), key=repr) == sorted(
        [(1, "1500-01-01 00:00:00.000001", None), (None, None, b'{"id": "x"}'), (None, None, b"{")], key=repr
    )
    dropped = read(spark, str(stream_name), **options, **form, mode="DROPMALFORMED")
    assert [row.id for row in dropped.collect()] == [1]
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-DESERIALIZATION\]"):
        read(spark, str(stream_name), **options, **form, mode="FAILFAST").collect()


def test_several_streams_and_metadata(spark, client, scope, options):
    for name in ("a1", "a2", "b"):
        client.create_stream(StreamName(scope, name))
        client.write(StreamName(scope, name), name.encode())
    rows = read(spark, stream_pattern="a*", scope=scope, **options).collect()
    assert sorted((row.stream, bytes(row.event)) for row in rows) == [("a1", b"a1"), ("a2", b"a2")]
    names = read(spark, metadata="Streams", scope=scope, **options)
    assert sorted(row.stream_name for row in names.collect()) == ["a1", "a2", "b"]


def test_a_table_is_written_and_read(spark, client, scope, options):
    named = {**options, "table": f"{scope}/counts", "format": "json", "key_format": "string"}
    rows = spark.range(20).selectExpr("LPAD(id, 4, '0') AS key", "id * 2 AS pieces")
    write(rows, **named, allow_create_scope=True, allow_create_table=True, primary_key_length=4)
    found = read(spark, **named, schema="key STRING, pieces BIGINT")
    assert sorted(map(tuple, found.collect())) == [(f"{i:04}", i * 2) for i in range(20)]


def test_errors_are_raised_in_the_call(spark, stream, options):
    with pytest.raises(StreamNotFoundError, match="does not exist"):
        read(spark, f"{stream}x", **options)
    with pytest.raises(StreamNotFoundError, match="does not exist"):
        write(spark.range(1).selectExpr("CAST(id AS STRING) AS event"), f"{stream}x", **options)
    with pytest.raises(UnknownOptionError, match="did you mean"):
        read(spark, str(stream), **options, start_stream_cot="earliest")
    with pytest.raises(ColumnTypeError, match="no column 'event'"):
        write(spark.range(1), str(stream), **options)
    with pytest.raises(ConfigError, match="two streams"):
        read(spark, str(stream), path=str(stream), **options)
    with pytest.raises(ConfigError, match="not a list of columns"):
        read(spark, str(stream), format="json", schema="array<int>", **options)
    endless = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS event")
    with pytest.raises(UnsupportedModeError, match="in foreachBatch"):
        write(endless, str(stream), **options)


# ---- write -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def target(client: PravegaClient, stream_name: StreamName) -> StreamName:
    client.create_stream(stream_name, 2)
    return stream_name


def numbered(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last, 1, 3).selectExpr(
        "CAST(id AS STRING) AS event", "CAST(id % 7 AS STRING) AS routing_key"
    )


def texts(first: int, last: int) -> Counter[bytes]:
    return Counter(str(number).encode() for number in range(first, last))


@pytest.mark.parametrize("mode", ["at_least_once", "best_effort", "exactly_once"])
def test_each_mode_writes_all_rows(spark, client, target, options, mode):
    version = {"txn_app_id": "app", "txn_version": 0} if mode == "exactly_once" else {}
    write(numbered(spark, 0, 500), str(target), **options, writer_mode=mode, **version)
    assert counted(client, target) == texts(0, 500)
    by_key: dict[int, list[int]] = {}
    for event in client.read(target):
        by_key.setdefault(int(bytes(event)) % 7, []).append(int(bytes(event)))
    assert sorted(by_key) == list(range(7))


def test_typed_rows_come_back(spark, target, options):
    rows = spark.sql("SELECT 9007199254740993L AS id, TIMESTAMP'1500-01-01T00:00:00.000001Z' AS at, 1.5BD AS price")
    write(rows, str(target), **options, format="json")
    back = read(spark, str(target), **options, format="json", schema="id BIGINT, at TIMESTAMP, price DECIMAL(2, 1)")
    assert back.select("id", "at", "price").collect() == rows.collect()


def test_a_version_is_written_once(spark, client, target, options):
    once = {**options, "writer_mode": "exactly_once", "txn_app_id": "app"}
    for version in (0, 0, 1, 1):
        write(numbered(spark, version * 100, version * 100 + 100), str(target), **once, txn_version=version)
    assert counted(client, target) == texts(0, 200)
    with pytest.raises(ConfigError, match="txn_version"):
        write(numbered(spark, 0, 1), str(target), **once)


def test_a_repeated_task_is_written_once(spark, client, target, options):
    def fails_once(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1 and context.attemptNumber() == 0:
            raise ValueError("the first attempt has written its rows")

    rows = numbered(spark, 0, 300)
    rows = rows.mapInArrow(fails_once, rows.schema)
    write(rows, str(target), **options, writer_mode="exactly_once", txn_app_id="app", txn_version=0)
    assert counted(client, target) == texts(0, 300)


def test_a_failed_write_writes_nothing(spark, client, target, options, monkeypatch):
    aborted: list[Any] = []
    usual = PravegaBatchWriter.abort

    def abort(writer: PravegaBatchWriter, messages: list[Any]) -> None:
        aborted.extend(part for message in messages for part in message.parts)
        usual(writer, messages)

    monkeypatch.setattr(PravegaBatchWriter, "abort", abort)
    once = {**options, "writer_mode": "exactly_once", "txn_app_id": "app", "txn_version": 0}
    rows = numbered(spark, 0, 300)
    bad = rows.selectExpr("IF(event = '299', NULL, event) AS event", "routing_key")
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-NULL-EVENT\]"):
        write(bad, str(target), **once)
    assert counted(client, target) == Counter()
    assert aborted, "the tasks that had finished do not keep their transactions open"
    for part in aborted:
        status = client.controller.transaction_status(part.stream, part.transaction)
        assert status in {TransactionStatus.ABORTING, TransactionStatus.ABORTED}
    write(rows, str(target), **once)
    assert counted(client, target) == texts(0, 300)


# ---- a sink in foreachBatch ------------------------------------------------------------------------------------------


def test_foreach_batch_is_an_exactly_once_sink(spark, client, target, options, tmp_path):
    source = tmp_path / "source"
    source.mkdir()

    def run(*, fails_after: int | None = None) -> None:
        def save(batch: DataFrame, number: int) -> None:
            once = {"writer_mode": "exactly_once", "txn_app_id": "copy", "txn_version": number}
            write(batch, str(target), **options, **once)
            if number == fails_after:
                raise ValueError("the batch is committed, and Spark does not know it")

        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))
        query = lines.selectExpr("value AS event", "value AS routing_key").writeStream.foreachBatch(save)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination()

    for file in range(4):
        (source / str(file)).write_text("\n".join(str(file * 10 + line) for line in range(10)))
    with pytest.raises(PySparkException, match="Spark does not know it"):
        run(fails_after=1)
    assert counted(client, target).total() == 20
    run()
    assert counted(client, target) == texts(0, 40)


def test_options_come_from_configure(spark, client, config, target, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_sources", WeakKeyDictionary())  # other tests share the context
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    configured = session.configure(
        spark.newSession(), config, jvm_reader=VERSION < (4, 0), fork_server=False, unix_sockets=False, columns="event"
    )

    def save(frame: DataFrame, version: int) -> None:  # Spark gives it a clone of the session
        write(frame.selectExpr("value AS event"), str(target))

    query = configured.readStream.format("text").load(str(tmp_path)).writeStream.foreachBatch(save)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert counted(client, target) == Counter([b"one", b"two"])
    assert read(configured, str(target)).columns == ["event"]


@pytest.mark.skipif(VERSION >= (4, 0), reason="later versions have data sources in Python")
def test_configure_of_spark_3_5_needs_the_jvm_reader(spark, config):
    with pytest.raises(UnsupportedModeError, match=r"configure without jvm_reader.*docs/spark/spark-3.5.md"):
        session.configure(spark.newSession(), config, jvm_reader=False)


def test_two_writes_of_one_batch_need_two_names(spark, target, options, tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "1").write_text("a\nb")
    once = {**options, "writer_mode": "exactly_once", "txn_app_id": "copy"}

    def save(batch: DataFrame, number: int) -> None:
        write(batch, str(target), **once, txn_version=number)
        with pytest.raises(DuplicateWriteError):
            write(batch, str(target), **once, txn_version=number)

    lines = spark.readStream.format("text").load(str(tmp_path / "source")).selectExpr("value AS event")
    query = lines.writeStream.foreachBatch(save).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
