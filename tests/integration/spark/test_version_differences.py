"""Differences between versions of Spark. On each version, the tests here assert what docs/spark/versions.md says."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from pravega_connector.config import PravegaConfig
from pravega_connector.spark.dataframes import read
from pravega_connector.spark.jvm.session import use_jvm_reader
from pravega_connector.spark.versions import HAS_ADMISSION, HAS_FILTERS, HAS_JVM_WRITER, HAS_REAL_TIME, VERSION
from pravega_connector.wire import StreamName
from tests.integration.spark.conftest import AS_SPARK_DOES
from tests.integration.spark.test_streaming import assert_complete_and_in_order, scale, write_numbers

pytestmark = pytest.mark.each_spark
#: In 3.5, the source is that of the JVM reader.
BY_THE_JVM = VERSION < (4, 0)
ROOT = Path(__file__).parents[3]
SECONDS = 300

#: Application in which Spark's Python has the package, so that Spark finds the data source by itself.
APPLICATION = """
import sys
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pravega_connector import PravegaConfig
from pyspark_pravega import configure

controller, stream = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = configure(builder, PravegaConfig(controller=controller), jvm_reader=False, fork_server=False)
rows = spark.read.format("pravega").load(stream)
rows.selectExpr("event").write.format("pravega").mode("append").save(stream)
other = spark.newSession()
try:
    in_other = other.read.format("pravega").option("controller", controller).load(stream).count()
except Py4JJavaError as error:
    assert "DATA_SOURCE_NOT_FOUND" in str(error)
    in_other = "not found"
configure(other, PravegaConfig(controller=controller), jvm_reader=False, fork_server=False)
print(*(each.read.format("pravega").load(stream).count() for each in (spark, other)), in_other)
"""

Run = Callable[..., list[Any]]


@pytest.fixture
def source(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    """A session with the format."""
    return request.getfixturevalue("jvm_session") if BY_THE_JVM else spark


@pytest.fixture
def run(source: SparkSession, config: PravegaConfig, checkpoint: str) -> Run:
    """``run(stream, **options)``: one run with trigger AvailableNow, as Spark does it; the rows of its batches."""

    def run(stream: StreamName, session: SparkSession = source, **options: str) -> list[Any]:
        batches: list[Any] = []

        def keep(batch: DataFrame, batch_id: int) -> None:
            batches.append((batch_id, [(row.segment_id, row.offset, bytes(row.event)) for row in batch.collect()]))

        reader = session.readStream.format("pravega").option("controller", config.controller)
        frame = reader.options(**({"start_stream_cut": "earliest"} | options)).load(str(stream))
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
        trigger, awaited = AS_SPARK_DOES or (DataStreamWriter.trigger, StreamingQuery.awaitTermination)
        assert awaited(trigger(writer, availableNow=True).start(), 120)
        return batches

    return run


@pytest.mark.skipif(BY_THE_JVM, reason="test_dataframes.py has the error of configure without the JVM reader")
def test_configure_replaces_the_source_that_spark_found(client, config, stream_name, tmp_path):
    client.create_stream(stream_name, 1)
    write_numbers(client, stream_name, 0, 10)
    folder = str(Path(sys.executable).parent)  # has python3
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    environment |= {"PATH": os.pathsep.join([folder, os.environ["PATH"]]), "PYTHONPATH": str(ROOT)}
    (tmp_path / "application.py").write_text(APPLICATION)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "application.py"), config.controller, str(stream_name)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split() == ["20", "20", *(["not", "found"] if VERSION < (4, 1) else ["20"])]


def test_available_now_with_limits(client, stream_name, run):
    client.create_stream(stream_name, 2)
    write_numbers(client, stream_name, 0, 500)
    runs = [run(stream_name, max_rows_per_trigger="200") for _ in range(3)]
    sizes = [[len(rows) for _, rows in batches] for batches in runs]
    if HAS_ADMISSION or BY_THE_JVM:
        assert sizes == [[200, 200, 100], [], []]
    else:
        assert sizes == [[200], [200], [100]], "each run is one batch within the limits"
    assert_complete_and_in_order([batch for batches in runs for batch in batches], 500)


def test_available_now_of_a_scaled_stream(client, stream_name, run):
    client.create_stream(stream_name, 1)
    write_numbers(client, stream_name, 0, 100)
    scale(client, stream_name, 2)
    write_numbers(client, stream_name, 100, 200)
    runs = [run(stream_name) for _ in range(3)]
    sizes = [[len(rows) for _, rows in batches] for batches in runs]
    assert sizes == ([[100, 100], [], []] if HAS_ADMISSION or BY_THE_JVM else [[100], [100], []])
    assert_complete_and_in_order([batch for batches in runs for batch in batches], 200)


def test_available_now_of_the_jvm_reader(client, stream_name, run, jvm_session):
    client.create_stream(stream_name, 1)
    write_numbers(client, stream_name, 0, 500)
    sizes = [len(rows) for _, rows in run(stream_name, jvm_session, max_rows_per_trigger="200", raw_reader="jvm")]
    assert sizes == [200, 200, 100], "on each version"


def test_the_first_batch_after_a_restart_is_limited(client, stream_name, source, config, checkpoint):
    client.create_stream(stream_name, 1)
    write_numbers(client, stream_name, 0, 500)
    sizes: list[int] = []
    reader = source.readStream.format("pravega").option("controller", config.controller)
    frame = reader.options(start_stream_cut="earliest", max_rows_per_trigger="100").load(str(stream_name))
    writer = frame.writeStream.foreachBatch(lambda batch, _: sizes.append(batch.count()))
    for end in (500, 800):
        write_numbers(client, stream_name, 500, end)
        query = writer.option("checkpointLocation", checkpoint).start()
        query.processAllAvailable()
        query.stop()
    assert sizes == [100] * 8


def test_the_lag_in_the_progress(client, stream_name, source, config, tmp_path):
    client.create_stream(stream_name, 1)
    write_numbers(client, stream_name, 0, 100)
    reader = source.readStream.format("pravega").options(controller=config.controller, start_stream_cut="earliest")
    writer = reader.load(str(stream_name)).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.start()
    query.processAllAvailable()
    query.stop()
    assert ("behind" in (query.lastProgress["sources"][0]["latestOffset"] or {})) == (HAS_ADMISSION or BY_THE_JVM)


def test_real_time_mode(spark, config):
    stream = spark.readStream.format("rate").load().writeStream
    if HAS_REAL_TIME:
        stream.trigger(realTime="1 minute")
        return
    with pytest.raises(TypeError, match="realTime"):
        stream.trigger(realTime="1 minute")


def test_filters_on_metadata_columns(client, stream_name, source, config):
    client.create_stream(stream_name, 1)
    write_numbers(client, stream_name, 0, 100)
    setting = "spark.sql.python.filterPushdown.enabled"
    source.conf.set(setting, "true")
    try:
        frame = source.read.format("pravega").option("controller", config.controller).load(str(stream_name))
        one = frame.where("segment_id = 0 AND offset < 9")
        assert [bytes(row.event) for row in one.select("event").collect()] == [b"0"], "on each version"
        plan = one._jdf.queryExecution().executedPlan().toString()
    finally:
        source.conf.unset(setting)
    assert ("segment_id" in plan.partition("Filter (")[2].partition("\n")[0]) != HAS_FILTERS, "the source applies it"


def test_the_jvm_reader_is_on_each_version(spark, caplog):
    with caplog.at_level(logging.INFO):
        assert use_jvm_reader(spark.newSession()), pyspark.__version__


def test_the_jvm_writer(client, stream_name, jvm_session, config):
    client.create_stream(stream_name, 1)
    writer = jvm_session.range(3).selectExpr("CAST(id AS STRING) AS event").write.format("pravega").mode("append")
    writer = writer.options(controller=config.controller, raw_writer="jvm")
    if HAS_JVM_WRITER:
        writer.save(str(stream_name))
        assert sorted(client.read(stream_name)) == [b"0", b"1", b"2"]
        return
    with pytest.raises(Exception, match=r"\[PRAVEGA-(CONFIG|UNSUPPORTED-MODE)\].*Spark"):
        writer.save(str(stream_name))


def test_tables_in_sql(client, stream_name, source, config):
    client.create_stream(stream_name, 1)
    client.write(stream_name, b"one")
    name = f"t_{stream_name.stream}".replace("-", "_")
    create = f"CREATE TABLE {name} USING pravega OPTIONS (controller '{config.controller}', stream '{stream_name}')"
    if not BY_THE_JVM:
        source.sql(create)
        assert source.table(name).count() == 1
        source.sql(f"DROP TABLE {name}")
        return
    source.sql(create)
    try:
        with pytest.raises(Exception, match="pravega is not a valid Spark SQL Data Source"):
            source.table(name)
    finally:
        source.sql(f"DROP TABLE {name}")
    read(source, str(stream_name), controller=config.controller).createOrReplaceTempView(name)
    assert source.sql(f"SELECT count(*) FROM {name}").first()[0] == 1
    source.catalog.dropTempView(name)
