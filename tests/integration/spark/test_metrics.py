"""Metrics of Spark's queries in the program that starts them."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pravega_connector import metrics
from pravega_connector.config import PravegaConfig
from pravega_connector.spark.query_metrics import QueryMetrics
from pravega_connector.spark.versions import HAS_ADMISSION
from pravega_connector.wire import StreamName
from tests.integration._events import SIZE, write_events
from tests.support.measured import of_stream, value

Start = Callable[..., StreamingQuery]


@pytest.fixture
def listener(spark: SparkSession) -> Iterator[QueryMetrics]:
    found = QueryMetrics()
    spark.streams.addListener(found)
    yield found
    spark.streams.removeListener(found)


@pytest.fixture
def start(spark: SparkSession, config: PravegaConfig, stream_name: StreamName, checkpoint: str) -> Iterator[Start]:
    """``start(name, sink, **options)``: a query from the test's stream to another one."""
    queries: list[StreamingQuery] = []

    def start(name: str, sink: StreamName, **options: str) -> StreamingQuery:
        frame = spark.readStream.format("pravega").option("controller", config.controller)
        frame = frame.option("start_stream_cut", "earliest").options(**options).load(str(stream_name))
        writer = frame.select("event").writeStream.format("pravega").queryName(name)
        writer = writer.option("controller", config.controller).option("checkpointLocation", checkpoint)
        queries.append(writer.start(str(sink)))
        return queries[-1]

    yield start
    for query in queries:
        query.stop()


def rows(query: str) -> tuple[int, int]:
    """(read, written)."""
    found = [value("pravega.query.rows", pravega__query=query, pravega__direction=each) for each in ("read", "written")]
    return found[0], found[1]


def test_a_query_is_counted_as_spark_reports_it(client, stream_name, start, listener, eventually):
    client.create_stream(stream_name, 2)
    sink = StreamName(stream_name.scope, f"{stream_name.stream}-copy")
    client.create_stream(sink)
    write_events(client, stream_name, 500)
    losses = of_stream("pravega.losses", stream_name)
    query = start("copy", sink, max_rows_per_trigger="200", fail_on_data_loss="false")
    eventually(lambda: rows("copy") == (500, 500))
    eventually(lambda: lag(stream_name) == (0 if HAS_ADMISSION else None))
    assert value("pravega.query.active", pravega__query="copy") == 1
    assert value("pravega.query.trouble", pravega__query="copy") == 0
    assert value("pravega.query.batches", pravega__query="copy") == 3
    durations = {"pravega__query": "copy", "pravega__phase": "addBatch"}
    assert value("pravega.query.batch.duration", **durations) == 3
    assert of_stream("pravega.losses", stream_name) == losses

    query.stop()
    eventually(lambda: value("pravega.query.active", pravega__query="copy") == 0)
    assert lag(stream_name) is None  # no query measures it any more
    assert value("pravega.query.failures", pravega__query="copy") == 0

    # Truncation while the query is down is a loss, which it passes over and counts once.
    lost = write_events(client, stream_name, 30)
    client.truncate(stream_name, lost)
    write_events(client, stream_name, 10)
    start("copy", sink, fail_on_data_loss="false")
    eventually(lambda: rows("copy") == (510, 510))
    if not HAS_ADMISSION:  # Spark does not ask the source for it
        assert of_stream("pravega.losses", stream_name) == losses
        return
    eventually(lambda: of_stream("pravega.loss.size", stream_name) == 30 * SIZE)
    assert 1 <= of_stream("pravega.losses", stream_name) - losses <= 2


def lag(stream: StreamName) -> int | None:
    wanted = {"messaging.destination.name": str(stream), "messaging.consumer.group.name": "copy"}
    found = [each["value"] for each in metrics.snapshot()["pravega.consumer.lag"] if each["attributes"] == wanted]
    return found[0] if found else None


def test_a_query_that_fails_is_counted(spark, config, client, stream_name, checkpoint, listener, eventually):
    client.create_stream(stream_name)
    write_events(client, stream_name, 5)  # which are not JSON
    frame = spark.readStream.format("pravega").option("controller", config.controller).option("format", "json")
    numbers = frame.schema("n INT").option("start_stream_cut", "earliest").load(str(stream_name))
    query = numbers.writeStream.format("noop").option("checkpointLocation", checkpoint).queryName("fails").start()
    with pytest.raises(StreamingQueryException, match="PRAVEGA-DESERIALIZATION"):
        query.awaitTermination()
    eventually(lambda: value("pravega.query.failures", pravega__query="fails") == 1)
    eventually(lambda: value("pravega.query.active", pravega__query="fails") == 0)
