"""Bad input: each a one-line error with a code and what to do, before anything is written or read where that can be."""

import warnings
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.config import PravegaConfig
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.wire import StreamName
from tests.integration.spark._errors import last_and_once, one_line
from tests.support.stopwatch import Stopwatch

Load = Callable[..., DataFrame]
AVRO = '{"type":"record","name":"R","fields":[{"name":"n","type":"long"},{"name":"s","type":"string"}]}'


@pytest.fixture
def save(spark: SparkSession, config: PravegaConfig) -> Callable[..., None]:
    """``save(sql, stream, **options)``: a batch write of the rows of a query."""

    def save(query: str, stream: StreamName | str, **options: str) -> None:
        writer = spark.sql(query).write.format("pravega").option("controller", config.controller)
        writer.options(**options).mode("append").save(str(stream))

    return save


def test_wrong_controller_address_within_its_deadline(spark):
    begin = Stopwatch()
    reader = spark.read.format("pravega").option("controller", "tcp://127.0.0.1:1").option("timeout_ms", "1500")
    with pytest.raises(PySparkException) as error:
        reader.load("a/b").count()
    assert begin.within(12), "1.5 s is the deadline, the rest is Spark's"
    assert "127.0.0.1:1" in one_line(error, "PRAVEGA-CONTROLLER-UNAVAILABLE")


def test_reading_what_is_not_there_creates_nothing(load, client, stream_name):
    with pytest.raises(PySparkException) as error:
        load(stream_name).count()
    assert str(stream_name) in one_line(error, "PRAVEGA-STREAM-NOT-FOUND")
    assert not client.controller.scope_exists(stream_name.scope)
    client.controller.create_scope(stream_name.scope)
    with pytest.raises(PySparkException) as error:
        load(stream_name).count()
    one_line(error, "PRAVEGA-STREAM-NOT-FOUND")
    assert not client.controller.stream_exists(stream_name)


# The JVM reader parses options in this process, so it warns in this process.
@pytest.mark.filterwarnings("default::pravega_connector.rows.options.declaration.PravegaOptionWarning")
def test_a_misspelt_option_or_value_names_the_right_one(load, stream):
    for option, code, meant in (
        ({"startStreamCuts": "earliest"}, "PRAVEGA-UNKNOWN-OPTION", "start_stream_cut"),
        ({"start": "earliest"}, "PRAVEGA-UNKNOWN-OPTION", "start_stream_cut"),
        ({"start_stream_cut": "earlyest"}, "PRAVEGA-MALFORMED-STREAM-CUT", "earliest"),
        ({"format": "jsn"}, "PRAVEGA-UNSUPPORTED-FORMAT", "json"),
    ):
        with pytest.raises(PySparkException) as error:
            load(stream, **option).count()
        assert f"did you mean '{meant}'" in one_line(error, code)
    assert load(stream, start_streamcut="latest", ignore_unknown_options="true").count() > 0


def test_a_tables_options_are_for_both_sides(config, stream):
    options = {"controller": config.controller, "path": str(stream), "columns": "event", "max_event_size": "100"}
    source = PravegaDataSource(options)
    source.writer(source.schema(), overwrite=False)


@pytest.mark.parametrize("text", ["not a cut", "H4sIAAAAAAAA", "UNBOUNDEDX", "e30="])
def test_malformed_stream_cut(load, stream, text):
    with pytest.raises(PySparkException) as error:
        load(stream, start_stream_cut=text).count()
    one_line(error, "PRAVEGA-MALFORMED-STREAM-CUT")


def test_stream_cut_of_another_stream(load, client, stream):
    other = StreamName(stream.scope, "other")
    client.create_stream(other)
    with pytest.raises(PySparkException) as error:
        load(stream, start_stream_cut=client.head(other).to_text()).count()
    assert "other" in one_line(error, "PRAVEGA-MALFORMED-STREAM-CUT")


def test_truncated_range_is_data_loss_with_its_place(load, client, stream_name):
    client.create_stream(stream_name)
    head = client.head(stream_name)
    with client.writer(stream_name) as writer:
        writer.write_column(pa.array([b"x" * 92] * 10))
    client.controller.truncate_stream(client.tail(stream_name))
    with client.writer(stream_name) as writer:
        writer.write(b"later")
    with pytest.raises(PySparkException) as error:
        load(stream_name, start_stream_cut=head.to_text()).count()
    line = one_line(error, "PRAVEGA-DATA-LOSS")
    assert "segment 0, offset 0" in line
    assert "1,000 bytes" in line


@pytest.mark.parametrize(
    ("query", "options", "words"),
    [
        ("SELECT 1 AS event", {}, "'event' is int32"),
        ("SELECT 'x' AS evnt", {}, "no column 'event'"),
        ("SELECT 'x' AS event, 1D AS routing_key", {}, "'routing_key' is double"),
        ("SELECT 'x' AS event, 2 AS other", {}, "other"),
        ("SELECT 'x' AS event", {"routing_key_field": "key"}, "'key'"),
        ("SELECT 1L AS n, 2 AS s", {"format": "avro", "avro_schema": AVRO}, "s"),
        ("SELECT 1L AS n", {"format": "avro", "avro_schema": AVRO}, "s"),
    ],
)
def test_wrong_columns_before_any_task(spark, save, stream, query, options, words):
    before = set(spark.sparkContext.statusTracker().getJobIdsForGroup())
    with pytest.raises(PySparkException) as error:
        save(query, stream, **options)
    assert words in one_line(error, "PRAVEGA-COLUMN-TYPE")
    assert set(spark.sparkContext.statusTracker().getJobIdsForGroup()) == before, "a task was started"


def test_null_event(save, stream):
    with pytest.raises(PySparkException) as error:
        save("SELECT IF(id = 3, NULL, 'x') AS event FROM range(0, 5, 1, 1)", stream)
    assert "row 3" in one_line(error, "PRAVEGA-NULL-EVENT")


def test_event_too_large(save, stream, client):
    with pytest.raises(PySparkException) as error:
        save("SELECT REPEAT('x', 9000000) AS event", stream)
    assert "9000000" in one_line(error, "PRAVEGA-EVENT-TOO-LARGE")
    save("SELECT REPEAT('x', 9000000) AS event", stream, max_event_size="10000000")
    assert max(len(event) for event in client.read(stream)) == 9_000_000


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"writer_mode": "exactly_once"}, "PRAVEGA-CONFIG"),
        ({"writer_mode": "perhaps"}, "PRAVEGA-CONFIG"),
        ({"format": "xml"}, "PRAVEGA-UNSUPPORTED-FORMAT"),
        ({"format": "avro"}, "PRAVEGA-CONFIG"),
        ({"format": "avro", "avro_schema": "{"}, "PRAVEGA-SCHEMA"),
    ],
)
def test_options_that_cannot_be(save, stream, options, code):
    with pytest.raises(PySparkException) as error:
        save("SELECT 'x' AS event", stream, **options)
    one_line(error, code)


def test_the_line_comes_last_and_once(spark, load, save, config, stream, checkpoint):
    queries = spark.readStream.format("pravega").option("controller", config.controller).option("metadata", "Streams")
    query = queries.load(str(stream)).writeStream.format("noop").option("checkpointLocation", checkpoint)
    for code, run in (
        ("PRAVEGA-STREAM-NOT-FOUND", lambda: load("a/b").count()),
        ("PRAVEGA-CONFIG", lambda: load(stream, group="g").count()),
        ("PRAVEGA-MALFORMED-STREAM-CUT", lambda: load(stream, start_stream_cut="no cut").count()),
        ("PRAVEGA-DESERIALIZATION", lambda: load(stream, format="java", java_type="long").count()),
        ("PRAVEGA-COLUMN-TYPE", lambda: save("SELECT 1 AS event", stream)),
        ("PRAVEGA-NULL-EVENT", lambda: save("SELECT CAST(NULL AS STRING) AS event", stream)),
        ("PRAVEGA-UNSUPPORTED-MODE", lambda: query.start().awaitTermination()),
    ):
        with pytest.raises(PySparkException) as error:
            run()
        last_and_once(error, code)


def test_overwrite_is_refused(spark, config, stream):
    writer = spark.sql("SELECT 'x' AS event").write.format("pravega").option("controller", config.controller)
    with pytest.raises(PySparkException) as error:
        writer.mode("overwrite").save(str(stream))
    assert "append" in one_line(error, "PRAVEGA-UNSUPPORTED-MODE")


def test_a_query_that_reads_another_stream_needs_another_checkpoint(spark, config, client, stream, checkpoint):
    other = StreamName(stream.scope, "other")
    client.create_stream(other)
    with client.writer(other) as writer:
        writer.write(b"x")

    def run(name: StreamName) -> None:
        frame = spark.readStream.format("pravega").option("controller", config.controller)
        frame = frame.option("start_stream_cut", "earliest").load(str(name))
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True)
        query.start().awaitTermination()

    run(stream)
    with pytest.raises(PySparkException) as error:
        run(other)
    assert "checkpoint" in one_line(error, "PRAVEGA-CONFIG")


def test_credentials_are_in_no_error(load, pravega):
    with warnings.catch_warnings(), pytest.raises(PySparkException) as error:
        load("no/such", username="me", password="s3cret-word").count()
    assert "s3cret-word" not in str(error.value)
