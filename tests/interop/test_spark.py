"""Spark exchanges events with applications in Java and in Rust."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.interop._events import Events, assert_same, numbered, read_here, sample_events, sample_keys, segments_here

KEYS = 12_000
SEGMENTS = 5
Options = dict[str, str]


@pytest.fixture
def options(pravega: LocalPravega, stream_name: StreamName) -> Options:
    return {"controller": pravega.config.controller, "scope": stream_name.scope, "stream": stream_name.stream}


@pytest.fixture
def frame(spark: SparkSession) -> Callable[[Events], DataFrame]:
    """Events as a frame with the columns that the sink takes."""

    def frame(events: Events) -> DataFrame:
        keys, payloads = zip(*events, strict=True)
        table = pa.table({"routing_key": pa.array(keys, pa.string()), "event": pa.array(payloads, pa.binary())})
        return spark.createDataFrame(table)

    return frame


def payloads(frame: DataFrame) -> list[bytes]:
    return [bytes(row["event"]) for row in frame.select("event").collect()]


def test_spark_reads_what_java_writes(client, java, spark, stream_name, options):
    client.create_stream(stream_name, SEGMENTS)
    events = sample_events()
    java.write(stream_name, events)
    rows = spark.read.format("pravega").options(**options).load().collect()
    assert_same((bytes(row["event"]) for row in rows), events)
    here = [(row["segment_id"], row["offset"], bytes(row["event"])) for row in rows]
    assert sorted(here) == sorted(tuple(event) for event in java.read(stream_name))
    assert {(row["scope"], row["stream"]) for row in rows} == {(stream_name.scope, stream_name.stream)}


def test_spark_reads_what_rust_writes(client, rust, spark, stream_name, options):
    client.create_stream(stream_name, SEGMENTS)
    events = sample_events()
    rust.write(stream_name, events)
    assert_same(payloads(spark.read.format("pravega").options(**options).load()), events)


def test_java_and_rust_read_what_spark_writes(client, java, rust, frame, stream_name, options):
    client.create_stream(stream_name, SEGMENTS)
    events = [event for event in sample_events() if event[1]]  # the Rust reader waits for ever on an empty one
    frame(events).coalesce(1).write.format("pravega").options(**options).mode("append").save()
    assert_same((event.payload for event in java.read(stream_name)), events)
    assert_same((event.payload for event in java.read_group(stream_name, len(events))), events)
    assert_same(rust.read(stream_name, len(events)), events)


def test_spark_puts_keys_where_java_does(client, java, frame, stream_name, options):
    client.create_stream(stream_name, SEGMENTS)
    by_java = StreamName(stream_name.scope, f"{stream_name.stream}java")
    client.create_stream(by_java, SEGMENTS)
    events = numbered(sample_keys(KEYS))
    java.write(by_java, events)
    frame(events).write.format("pravega").options(**options).mode("append").save()
    expected = segments_here(client, by_java)
    assert len(expected) == KEYS
    assert len(set(expected.values())) == SEGMENTS
    assert {int(event.payload): event.segment for event in java.read(stream_name)} == expected


def test_spark_reads_between_the_cuts_of_java(client, java, spark, stream_name, options):
    client.create_stream(stream_name, SEGMENTS)
    parts = [[(f"key {number}", f"{part} {number}".encode()) for number in range(300)] for part in range(3)]
    cuts = []
    for part in parts:
        java.write(stream_name, part)
        cuts.append(java.cuts(stream_name)[1].text)
    middle = {"start_stream_cut": cuts[0], "end_stream_cut": cuts[1]}
    assert_same(payloads(spark.read.format("pravega").options(**options, **middle).load()), parts[1])


@pytest.mark.long
def test_a_spark_query_between_two_java_applications(client, java, spark, stream_name, options, tmp_path):
    target = StreamName(stream_name.scope, f"{stream_name.stream}out")
    for stream in (stream_name, target):
        client.create_stream(stream, SEGMENTS)
    events = sample_events()
    for part in (events[: len(events) // 2], events[len(events) // 2 :]):
        java.write(stream_name, part)
        source = spark.readStream.format("pravega").options(**options, start_stream_cut="earliest").load()
        writer = source.select("event").writeStream.format("pravega").options(**options | {"stream": target.stream})
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(120)
    read = [event.payload for event in java.read(target)]
    assert sorted(read) == sorted(payload for _, payload in events)
    assert sorted(read) == sorted(event.payload for event in read_here(client, stream_name))
