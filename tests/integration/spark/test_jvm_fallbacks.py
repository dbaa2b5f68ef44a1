"""Reads that the JVM reader cannot do: one log line has the reason, and ``raw_reader=jvm`` raises an error."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.config import PravegaConfig
from pravega_connector.spark import versions
from pravega_connector.spark.jvm import session
from pravega_connector.spark.session import configure
from pravega_connector.wire import StreamName
from tests.integration.spark._jvm import is_read_by_the_jvm

COUNT = 2002
#: Options of a session and of a read.
NOTES = ("does without: JVM reader", "read by Python, not inside the JVM")
NOT_LOADED = "the JVM reader is not loaded in this session: call configure"
INFO = "INFO"
CONNECT_SECONDS = 250
CONNECT = """
import logging, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark_pravega.session import configure

logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
spark = SparkSession.builder.remote("local[2]").getOrCreate()
configure(spark, controller=sys.argv[1])
print("rows", spark.read.format("pravega").load(sys.argv[2]).count())
try:
    spark.read.format("pravega").option("raw_reader", "jvm").load(sys.argv[2]).count()
except PySparkException as error:
    print("error", str(error).replace("\\n", " "))
spark.stop()
"""


@pytest.fixture
def read(config: PravegaConfig, stream: StreamName) -> Callable[..., DataFrame]:
    """``read(session, **options)`` reads the test's stream."""

    def read(spark: SparkSession, **options: str) -> DataFrame:
        return spark.read.format("pravega").option("controller", config.controller).options(**options).load(str(stream))

    return read


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """``lines()`` returns the log lines about the reader."""
    caplog.set_level(INFO, "pravega_connector.spark")
    return lambda: [each.message for each in caplog.records if any(part in each.message for part in NOTES)]


def is_read_by_python(read: Callable[..., DataFrame], spark: SparkSession) -> None:
    """Assert that Python reads in a session, and that the JVM reader cannot be demanded."""
    frame = read(spark)
    assert not is_read_by_the_jvm(frame)
    assert frame.count() == COUNT
    with pytest.raises(PySparkException, match=NOT_LOADED):
        read(spark, raw_reader="jvm").count()


def test_without_the_jar(spark, read, caplog, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "JAR", tmp_path / "pravega-reader.jar")
    own = spark.newSession()
    configure(own, fork_server=False, unix_sockets=False)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.message == (
        "this Spark session does without: JVM reader, local checkpoint files (pravega-reader.jar was not built: run "
        "./run jvm in the checkout, or install the wheel)"
    )
    is_read_by_python(read, own)


def test_with_another_spark(jvm_session, read, lines, monkeypatch):
    own = jvm_session.newSession()
    with monkeypatch.context() as patch:
        patch.setattr(pyspark, "__version__", "4.9.1")
        patch.setattr(versions, "VERSION", (4, 9))
        configure(own)
    assert "JVM reader, local checkpoint files (it is for Spark 3.5 to 4.3, not for 4.9.1)" in lines()[0]
    is_read_by_python(read, own)


def test_a_session_that_was_not_set_up(jvm_session, read, lines):
    own = jvm_session.newSession()
    assert read(own).count() == COUNT
    (line,) = lines()
    assert line.endswith("this session was not set up: call configure(spark) with it")
    is_read_by_python(read, own)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"format": "java", "java_type": "java.lang.Long"}, "is read with JavaSerializer"),
        ({"columns": "event,encoding_id"}, "is read with column 'encoding_id'"),
        ({"raw_reader": "python"}, "is read with option 'raw_reader'"),
    ],
)
def test_an_option_that_the_jvm_reader_does_not_have(jvm_session, stream, read, lines, options, reason):
    frame = read(jvm_session, **options)
    assert not is_read_by_the_jvm(frame)
    assert lines() == [f"events are read by Python, not inside the JVM: {stream} {reason}"]


@pytest.fixture
def java_lines(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """``java_lines()`` returns the log of the JVM part."""
    log4j, writer = spark._jvm.org.apache.logging.log4j, spark._jvm.java.io.StringWriter()
    name = "pravegaserde.spark.PravegaSource"
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, writer, "test", False, True)
    appender.start()
    logger = log4j.LogManager.getLogger(name)
    log4j.core.config.Configurator.setLevel(name, log4j.Level.INFO)
    logger.addAppender(appender)
    yield writer.toString
    logger.removeAppender(appender)


def test_without_a_python_driver(jvm_session, read, java_lines):
    planning = jvm_session._jvm.pravegaserde.spark.Planning
    planning.set(None)  # as in a driver in Scala that has the jar
    try:
        is_read_by_python(read, jvm_session)
    finally:
        planning.set(session._planner)
    assert "the driver is not a Python program that has called configure(spark)" in java_lines()
    assert is_read_by_the_jvm(read(jvm_session))


@pytest.mark.long
def test_with_spark_connect(config, client, stream, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(CONNECT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), config.controller, str(stream)],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_TESTING": "1"},
        timeout=CONNECT_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    reason = "JVM reader, fork server, local checkpoint files (this is a session of Spark Connect)"
    assert [line for line in done.stdout.splitlines() if reason in line]
    assert f"rows {COUNT}" in done.stdout
    assert NOT_LOADED in done.stdout.partition("error ")[2]
