"""Event time in Spark: watermarks as columns, noted times of the sink; and filters that are pushed down."""

import dataclasses
import datetime
import json
import re

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pravega_connector.client import PravegaClient, StreamConfig
from pravega_connector.config import PravegaConfig
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.wire import StreamName
from tests.support.micro_batches import MicroBatches

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
EPOCH = datetime.datetime(1970, 1, 1)


@pytest.fixture
def load(spark: SparkSession, config: PravegaConfig):
    def load(stream: StreamName, **options: str) -> DataFrame:
        return spark.read.format("pravega").option("controller", config.controller).options(**options).load(str(stream))

    return load


@pytest.fixture
def has_come_to(client: PravegaClient, stream_name: StreamName, eventually):
    """Await the watermark of a time."""

    def wait(low: int) -> None:
        eventually(lambda: any(mark.low == low for mark in client.watermarks(stream_name)))

    return wait


def millis(time: datetime.datetime | None) -> int | None:
    return None if time is None else (time - EPOCH) // datetime.timedelta(milliseconds=1)


def write_until(client: PravegaClient, stream: StreamName, *times: int, writer: str = "w") -> None:
    """Ten events before each time, which say their time, and the times noted."""
    with client.writer(stream, writer_id=writer) as out:
        for time in times:
            for number in range(10):
                out.write(b"%d" % (time - 9 + number), f"key {number}")
            out.note_time(time)


def test_watermarks_are_columns_and_the_same_in_a_replay(
    spark, client, config, stream_name, load, has_come_to, tmp_path
):
    client.create_stream(stream_name, 2)
    assert load(stream_name, columns="event_time_low").schema.simpleString() == "struct<event_time_low:timestamp>"
    for time in (1000, 2000, 3000):
        write_until(client, stream_name, time)
        has_come_to(time)

    columns = "event,segment_id,offset,event_time_low,event_time_high"
    rows = load(stream_name, columns=columns).collect()
    found = {int(row.event): (millis(row.event_time_low), millis(row.event_time_high)) for row in rows}
    assert len(found) == 30
    assert {bounds for time, bounds in found.items() if time <= 1000} == {(None, 1000)}
    assert {bounds for time, bounds in found.items() if 1000 < time <= 2000} == {(1000, 2000)}
    assert {bounds for time, bounds in found.items() if time > 2000} == {(2000, 3000)}

    # The same watermarks are what a time to start or end at is found by.
    window = {"start_stream_cut": "timestamp:2001", "end_stream_cut": "timestamp:1970-01-01T00:00:02Z"}
    rows = load(stream_name, columns="event", **window).collect()
    assert sorted(int(row.event) for row in rows) == list(range(1991, 2001))
    options = {"controller": config.controller, "path": str(stream_name)} | window
    batches = MicroBatches().run(available_now=True, **options)
    assert sorted(int(row.event) for batch in batches for row in batch.rows) == list(range(1991, 2001))

    def read_on(sink: dict[int, list]) -> None:
        def keep(batch: DataFrame, number: int) -> None:
            sink[number] = sorted(tuple(row) for row in batch.collect())

        frame = spark.readStream.format("pravega").option("controller", config.controller)
        frame = frame.options(start_stream_cut="earliest", columns=columns, max_rows_per_trigger="20")
        query = frame.load(str(stream_name)).writeStream.foreachBatch(keep).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    write_until(client, stream_name, 4000)
    first: dict[int, list] = {}
    read_on(first)
    last = max(first)
    offset = json.loads((tmp_path / "checkpoint" / "offsets" / str(last)).read_text().splitlines()[-1])
    assert offset["marks"].keys() == {str(stream_name)}
    # More is known now than when the batch was planned.
    has_come_to(4000)
    for name in (str(last), f".{last}.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    again: dict[int, list] = {}
    read_on(again)
    assert again[last] == first[last]
    # Events that were read at once had no upper bound.
    assert {millis(row.event_time_high) for row in load(stream_name, columns=columns).collect()} == {
        1000,
        2000,
        3000,
        4000,
    }


@pytest.mark.parametrize(
    ("condition", "most_tasks"),
    [
        ("segment_id = 1", 1),
        ("segment_id in (0, 2)", 2),
        ("stream = 'other'", 0),
        ("scope like 'scope%' and segment_id >= 2", 1),
        ("segment_id = 1 and offset < 500", 1),
        ("offset >= 20000", 0),
        ("offset between 100 and 200 and segment_id <= 1", 2),
        ("segment_id is not null and offset is not null", 3),
    ],
)
def test_filters_on_metadata_leave_out_whole_tasks_and_change_nothing(spark, load, stream, condition, most_tasks):
    frame = load(stream).where(condition)
    expected = sorted(tuple(row) for row in frame.collect())
    spark.conf.set(PUSHDOWN, "true")
    try:
        pushed = load(stream).where(condition)
        assert sorted(tuple(row) for row in pushed.collect()) == expected
        assert max(pushed.rdd.getNumPartitions() - (most_tasks == 0), 0) <= most_tasks
    finally:
        spark.conf.unset(PUSHDOWN)


def test_a_field_that_is_called_like_a_metadata_column_is_no_such_column(spark, client, config, stream_name):
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        for number in range(5):
            writer.write(b'{"offset": %d, "segment_id": 9}' % (1000 + number))
    spark.conf.set(PUSHDOWN, "true")
    try:
        frame = spark.read.format("pravega").schema("offset BIGINT, segment_id BIGINT")
        frame = frame.option("controller", config.controller).option("format", "json").load(str(stream_name))
        assert frame.where("segment_id = 9 and offset > 1002").count() == 2
    finally:
        spark.conf.unset(PUSHDOWN)


@pytest.mark.parametrize("mode", ["exactly_once", "at_least_once"])
def test_a_query_brings_its_times_to_the_stream(spark, client, config, stream_name, mode, load, has_come_to, tmp_path):
    client.create_stream(stream_name, 2)
    source = tmp_path / "source"
    source.mkdir()

    def run(number: int, times: list[int]) -> None:
        lines = [json.dumps({"event": f"event {time}", "routing_key": f"key {time}", "at": time}) for time in times]
        (source / f"{number}.json").write_text("\n".join(lines))
        frame = spark.readStream.schema("event STRING, routing_key STRING, at BIGINT").json(str(source))
        frame = frame.selectExpr("event", "routing_key", "timestamp_millis(at) as at")
        query = frame.writeStream.format("pravega").option("controller", config.controller)
        query = query.options(writer_mode=mode, event_time_column="at", event_time_delay_ms="100")
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(stream_name))
        query.trigger(availableNow=True).start().awaitTermination()

    for number, latest in enumerate((5000, 7000)):
        run(number, list(range(latest - 50, latest + 1)))
        has_come_to(latest - 100)
        mark = client.watermarks(stream_name)[-1]
        # One writer, and nothing of the batch is after its time.
        assert (mark.low, mark.high, mark.cut) == (latest - 100, latest - 100, client.tail(stream_name))
    assert load(stream_name).count() == 102
    # Times that go back are as they are, and take nothing back.
    run(2, [10])
    assert client.watermarks(stream_name)[-1].low == 6900


def test_a_batch_write_notes_its_time_and_leaves_nobody_to_wait_for(spark, client, config, stream_name, has_come_to):
    client.create_stream(stream_name)
    frame = spark.range(100).selectExpr("cast(id as string) as event", "id as at")
    write = frame.write.format("pravega").mode("append").option("controller", config.controller)
    write.option("event_time_column", "at").save(str(stream_name))
    has_come_to(99)
    assert client.watermarks(stream_name)[-1].cut == client.tail(stream_name)


def test_a_stream_whose_watermarks_wait_for_nobody_is_warned_of(client, config, stream_name, caplog):
    def prepare(stream: StreamName, **options: str) -> str:
        raw = {"controller": config.controller, "path": str(stream), "writer_mode": "at_least_once", **options}
        columns = [StructField("event", StringType()), *([StructField("at", LongType())] if options else [])]
        caplog.clear()
        PravegaDataSource(raw).streamWriter(StructType(columns), overwrite=False)
        return caplog.text

    create = {"allow_create_scope": "true", "allow_create_stream": "true"}
    assert prepare(stream_name, event_time_column="at", **create) == ""
    assert client.controller.stream_config(stream_name).timestamp_aggregation_timeout_ms == 60_000
    java = StreamName(stream_name.scope, "java")  # with what other clients set unless told otherwise
    client.controller.create_stream_with(java, StreamConfig(timestamp_aggregation_timeout_ms=0))
    told = prepare(java, event_time_column="at")
    assert f"the watermarks of stream {java} do not wait for slow writers" in told
    [statement] = re.findall(r"client\.controller\.update_stream\(.*\)", told)
    eval(statement, {"client": client, "stream": java, "dataclasses": dataclasses})  # what it says to do
    assert client.controller.stream_config(java).timestamp_aggregation_timeout_ms == 60_000
    assert prepare(java, event_time_column="at") == ""
    silent = StreamName(stream_name.scope, "silent")
    client.controller.create_stream_with(silent, StreamConfig(timestamp_aggregation_timeout_ms=0))
    assert prepare(silent) == ""
