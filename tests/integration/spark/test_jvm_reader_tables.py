"""SQL tables, views, patterns, partitions, event times and filters with the JVM reader."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName
from tests.integration.spark._jvm import is_read_by_the_jvm

COUNT = 2002
COLUMNS = "event,scope,stream,segment_id,offset"
EVENT_TIMES = "event,event_time_low,event_time_high"


@pytest.fixture
def database(jvm_session: SparkSession) -> Iterator[str]:
    jvm_session.sql("CREATE DATABASE jvm")
    yield "jvm"
    jvm_session.sql("DROP DATABASE jvm CASCADE")


@pytest.fixture
def table(jvm_session: SparkSession, database: str, config: PravegaConfig, stream: StreamName) -> str:
    """A table of the test's stream without declared columns."""
    name = f"{database}.events"
    options = f"controller '{config.controller}', stream '{stream}', columns '{COLUMNS}'"
    jvm_session.sql(f"CREATE TABLE {name} USING pravega OPTIONS ({options})")
    return name


@pytest.fixture
def read(jvm_session: SparkSession, config: PravegaConfig) -> Callable[..., DataFrame]:
    """``read(**options)`` reads with the JVM reader, or with the one that ``raw_reader`` selects."""

    def read(**options: object) -> DataFrame:
        given = {"controller": config.controller, "raw_reader": "jvm"} | options
        return jvm_session.read.format("pravega").options(**given).load()

    return read


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def both(read: Callable[..., DataFrame], condition: str = "true", **options: object) -> list[tuple[object, ...]]:
    """Return the rows of both readers, which must be equal; the JVM must have read the first ones."""
    frame = read(**options).where(condition)
    assert is_read_by_the_jvm(frame)
    found = rows(frame)
    assert found == rows(read(raw_reader="python", **options).where(condition))
    return found


def test_a_table_and_its_count(jvm_session, table, events):
    frame = jvm_session.sql(f"SELECT * FROM {table}")
    assert is_read_by_the_jvm(frame)
    assert sorted(bytes(row.event) for row in frame.collect()) == sorted(event for _, event in events)
    count = jvm_session.sql(f"SELECT count(*) FROM {table}")
    assert is_read_by_the_jvm(count)
    assert count.collect() == [(COUNT,)]


def test_views(jvm_session, table, config, stream):
    jvm_session.sql(f"CREATE VIEW jvm.longer AS SELECT event FROM {table} WHERE length(event) > 0")
    options = f"controller '{config.controller}', path '{stream}'"
    jvm_session.sql(f"CREATE TEMPORARY VIEW jvm_direct USING pravega OPTIONS ({options})")
    for view, count in (("jvm.longer", COUNT - 1), ("jvm_direct", COUNT)):
        frame = jvm_session.table(view)
        assert is_read_by_the_jvm(frame)
        assert frame.count() == count
    jvm_session.catalog.dropTempView("jvm_direct")


def test_a_table_is_read_as_a_stream(jvm_session, table, checkpoint, events):
    seen: list[bytes] = []

    def keep(batch: DataFrame, _: int) -> None:
        seen.extend(bytes(row.event) for row in batch.collect())

    frame = jvm_session.readStream.option("start_stream_cut", "earliest").table(table)
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    assert sorted(seen) == sorted(event for _, event in events)
    assert query.recentProgress[0]["sources"][0]["description"].startswith("pravega, read by the JVM: ")


def test_a_pattern_reads_all_its_streams(jvm_session, read, client, config, scope, checkpoint):
    for name in ("orders-a", "orders-b", "bills"):
        client.create_stream(StreamName(scope, name), 2)
        with client.writer(StreamName(scope, name)) as writer:
            for number in range(50):
                writer.write(f"{name} {number}".encode(), routing_key=str(number))
    options = {"stream_pattern": f"{scope}/orders-*"}
    found = both(read, columns="event,stream", **options)
    assert len(found) == 100
    assert {row[1] for row in found} == {"orders-a", "orders-b"}
    frame = jvm_session.readStream.format("pravega").options(
        controller=config.controller, raw_reader="jvm", start_stream_cut="earliest", columns="event,stream", **options
    )
    writer = frame.load().writeStream.format("memory").queryName("jvm_pattern")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    assert rows(jvm_session.table("jvm_pattern")) == found
    assert query.recentProgress[0]["sources"][0]["description"] == f"pravega, read by the JVM: streams {scope}/orders-*"


@pytest.mark.parametrize("parts", [4, 13])
def test_min_partitions(read, stream, parts):
    frame = read(path=str(stream), min_partitions=parts)
    assert frame.rdd.getNumPartitions() >= parts
    assert len(both(read, path=str(stream), min_partitions=parts)) == COUNT


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("segment_id = 1", None),
        ("segment_id IN (0, 2) AND offset < 2000", None),
        ("segment_id <> 0", None),
        ("NOT (segment_id = 0 OR offset > 900)", None),
        ("offset = 0", 3),
        ("offset BETWEEN 100 AND 5000", None),
        ("offset <> 0", COUNT - 3),
        ("stream = 'other'", 0),
        ("scope <=> 'other' OR segment_id = 2", None),
        ("length(event) = 0", 1),
    ],
)
def test_filters_on_metadata_columns(read, stream, condition, count):
    found = both(read, condition, path=str(stream))
    assert len(found) == count if count is not None else 0 < len(found) < COUNT


def test_event_times(read, client, stream_name, eventually):
    client.create_stream(stream_name, 2)
    for time in (1000, 2000):
        with client.writer(stream_name, writer_id="w") as writer:
            for number in range(10):
                writer.write(b"%d" % (time - number), f"key {number}")
            writer.note_time(time)
        eventually(lambda low=time: any(mark.low == low for mark in client.watermarks(stream_name)))
    found = both(read, path=str(stream_name), columns=EVENT_TIMES)
    assert len(found) == 20
    assert {row[1] for row in found if int(row[0]) <= 1000} == {None}
    late = both(read, "event_time_low >= timestamp '1970-01-01 00:00:01'", path=str(stream_name), columns=EVENT_TIMES)
    assert sorted(int(row[0]) for row in late) == list(range(1991, 2001))
