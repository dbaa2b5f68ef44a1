"""Batch reads and writes."""

from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from pravega_connector.wire import StreamName

pytestmark = pytest.mark.each_spark
Load = Callable[..., DataFrame]
Events = list[tuple[str, bytes]]


def test_reads_every_event_with_its_coordinates(load, client, stream, events):
    frame = load(stream)
    assert frame.columns == ["event", "scope", "stream", "segment_id", "offset"]
    rows = frame.collect()
    assert Counter(bytes(row.event) for row in rows) == Counter(event for _, event in events)
    assert {(row.scope, row.stream) for row in rows} == {(stream.scope, stream.stream)}
    expected = {
        (batch.segment_id, int(offset)): event.as_py()
        for batch in client.read_columns(stream)
        for offset, event in zip(batch.offsets, batch.events, strict=True)
    }
    assert {(row.segment_id, row.offset): bytes(row.event) for row in rows} == expected


def test_delivers_only_the_columns_asked_for(load, stream, events):
    frame = load(stream, columns="offset, event")
    assert frame.columns == ["offset", "event"]
    assert frame.count() == len(events)


def test_reads_between_stream_cuts(load, client, stream):
    before = client.tail(stream)
    with client.writer(stream) as writer:
        for i in range(100):
            writer.write(b"between %d" % i, routing_key=str(i))
    after = client.tail(stream)
    with client.writer(stream) as writer:
        writer.write(b"later")
    rows = load(stream, start_stream_cut=before.to_text(), end_stream_cut=after.to_text()).collect()
    assert sorted(bytes(row.event) for row in rows) == sorted(b"between %d" % i for i in range(100))
    assert [bytes(row.event) for row in load(stream, start_stream_cut=after.to_text()).collect()] == [b"later"]


def test_range_spans_scaling(load, client, stream, events):
    start = client.head(stream)
    current = client.controller.current_segments(stream)
    client.controller.scale_stream(stream, [r.id for r in current], [(0.0, 0.2), (0.2, 0.5), (0.5, 0.9), (0.9, 1.0)])
    with client.writer(stream) as writer:
        writer.write(b"after the scaling")
    rows = load(stream, start_stream_cut=start.to_text()).collect()
    assert len(rows) == len(events) + 1
    assert len({row.segment_id for row in rows}) >= 4


def test_empty_range_has_no_rows(load, stream):
    assert load(stream, start_stream_cut="latest").collect() == []


@pytest.mark.parametrize("kind", ["binary", "string"])
def test_writes_events_with_routing_keys(spark, config, client, stream_name, kind):
    client.create_stream(stream_name, 4)
    frame = spark.range(0, 5000, 1, 3).selectExpr(
        f"CAST(CAST(id AS STRING) AS {kind}) AS event", "CONCAT('ключ-', id % 97) AS routing_key"
    )
    frame.write.format("pravega").option("controller", config.controller).mode("append").save(str(stream_name))
    by_segment: dict[str, set[int]] = {}
    values = []
    for batch in client.read_columns(stream_name):
        for event in batch.events.to_pylist():
            values.append(int(event))
            by_segment.setdefault(f"ключ-{int(event) % 97}", set()).add(batch.segment_id)
    assert sorted(values) == list(range(5000))
    assert all(len(segments) == 1 for segments in by_segment.values()), "a routing key lies in one segment only"


def test_writes_of_one_session_outlive_a_scaling_and_the_stream(spark, config, client, stream_name):
    """The workers keep the writers of earlier jobs."""

    def write(first: int) -> None:
        rows = spark.range(first, first + 1000, 1, 1)
        frame = rows.selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS event", "CAST(id % 7 AS STRING) AS routing_key")
        frame.write.format("pravega").option("controller", config.controller).mode("append").save(str(stream_name))

    client.create_stream(stream_name, 1)
    for first in (0, 1000):
        write(first)
    client.scale_stream(stream_name, 3)
    for first in (2000, 3000):
        write(first)
    found = [int(event) for event in client.read(stream_name)]
    assert sorted(found) == list(range(4000))
    for key in range(7):
        of_key = [number for number in found if number % 7 == key]
        assert of_key == sorted(of_key)
    client.seal_stream(stream_name)
    with pytest.raises(PySparkException, match="PRAVEGA-STREAM-SEALED"):
        write(4000)
    client.delete_stream(stream_name)
    client.create_stream(stream_name, 2)
    for first in (4000, 5000):
        write(first)
    assert sorted(int(event) for event in client.read(stream_name)) == list(range(4000, 6000))


def test_write_creates_the_stream_only_if_allowed(spark, config, stream_name, client):
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS event")
    writer = frame.write.format("pravega").option("controller", config.controller).mode("append")
    with pytest.raises(PySparkException, match="PRAVEGA-SCOPE-NOT-FOUND"):
        writer.save(str(stream_name))
    options = {"allow_create_scope": "true", "allow_create_stream": "true", "default_num_segments": "5"}
    writer.options(**options).save(str(stream_name))
    assert len(client.controller.current_segments(stream_name)) == 5
    assert len(list(client.read(stream_name))) == 10


def test_best_effort_writes_too(spark, config, stream_name, client):
    client.create_stream(stream_name)
    frame = spark.range(1000).selectExpr("CAST(id AS STRING) AS event")
    frame.write.format("pravega").option("controller", config.controller).option("writer_mode", "best_effort").mode(
        "append"
    ).save(str(stream_name))
    assert sorted(map(int, client.read(stream_name))) == list(range(1000))


def test_sql(spark, config, stream, events):
    name = f"t_{stream.stream}"
    options = f"controller '{config.controller}', stream '{stream}', columns 'event'"
    spark.sql(f"CREATE TABLE {name} USING pravega OPTIONS ({options})")
    try:
        assert spark.sql(f"SELECT COUNT(*) FROM {name}").first()[0] == len(events)
        # No column is text: nothing but the options given here says which table is meant.
        given = f"controller = '{config.controller}', stream = '{stream}'"
        spark.sql(f"INSERT INTO {name} WITH ({given}) VALUES (CAST('from SQL' AS BINARY))")
        assert spark.sql(f"SELECT COUNT(*) FROM {name} WHERE event = CAST('from SQL' AS BINARY)").first()[0] == 1
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_the_scala_connectors_tables_of_metadata(spark, load, client, stream, events):
    (row,) = load(stream, metadata="StreamInfo").collect()
    assert client.head(stream).to_text() == row.head_stream_cut
    assert client.tail(stream).to_text() == row.tail_stream_cut
    assert load(stream, start_stream_cut=row.head_stream_cut, end_stream_cut=row.tail_stream_cut).count() == len(events)
    other = StreamName(stream.scope, "another")
    client.create_stream(other)
    for place in (stream.scope, stream):
        names = load(place, metadata="Streams").collect()
        assert names == sorted((name.scope, name.stream) for name in (stream, other))
    with pytest.raises(PySparkException, match="PRAVEGA-SCOPE-NOT-FOUND"):
        load("no-such-scope", metadata="Streams").collect()
    columns = spark.range(0).selectExpr("'' AS name").schema
    reader = spark.read.format("pravega").option("controller", client.config.controller).schema(columns)
    with pytest.raises(PySparkException, match="head_stream_cut, tail_stream_cut"):
        reader.option("metadata", "StreamInfo").load(str(stream)).collect()


def test_rows_go_to_the_streams_that_they_name(spark, config, scope, client, checkpoint):
    names = [StreamName(scope, name) for name in "ab"]
    for name in names:
        client.create_stream(name, 2)
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "CAST(id AS STRING) AS event", f"CONCAT('{scope}/', IF(id % 2 = 0, 'a', 'b')) AS target_stream"
    )
    writer = rows.write.format("pravega").option("controller", config.controller).mode("append")
    writer.save()
    assert [sorted(map(int, client.read(name))) for name in names] == [[*range(0, 100, 2)], [*range(1, 100, 2)]]
    writer = rows.selectExpr("event", f"'{scope}/c' AS target_stream").write.format("pravega").mode("append")
    with pytest.raises(PySparkException, match=r"STREAM-NOT-FOUND.* stream .*/c does not exist"):
        writer.option("controller", config.controller).save()
    # A streaming query is exactly once unless it says otherwise.
    source = spark.readStream.format("pravega").option("controller", config.controller)
    copied = (
        source.option("start_stream_cut", "earliest")
        .load(str(names[0]))
        .selectExpr("event", f"'{names[1]}' AS target_stream")
    )
    query = copied.writeStream.format("pravega").option("controller", config.controller).trigger(availableNow=True)
    with pytest.raises(PySparkException, match="writer_mode=at_least_once"):
        query.option("checkpointLocation", checkpoint).start().awaitTermination()
    query.option("writer_mode", "at_least_once").start().awaitTermination()
    assert sorted(map(int, client.read(names[1]))) == [*range(100)]
