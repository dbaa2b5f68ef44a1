"""A Spark session for all Spark tests, and a stream with known events."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from pravega_connector.client import PravegaClient, shared
from pravega_connector.config import PravegaConfig
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.fork_server.session import UnavailableError, register
from pravega_connector.spark.jvm.session import JAR, leave_to_python, use_jvm_reader, use_local_checkpoint_files
from pravega_connector.spark.versions import HAS_ADMISSION, HAS_JVM_WRITER, HAS_REAL_TIME, VERSION, register_source
from pravega_connector.wire import StreamName
from tests.integration.spark._cases import Case, cases
from tests.support.spark_session import spark_session
from tools import jvm

#: Tests of what this Spark does not have. test_version_differences.py asserts what users get instead.
collect_ignore = [
    *([] if HAS_REAL_TIME else ["test_real_time.py"]),
    *([] if HAS_JVM_WRITER else ["test_jvm_writer.py"]),
]

#: Before 4.2, the driver leaves the socket of each ``collect`` to the garbage collector.
_UNCLOSED = r"ignore:unclosed <socket\.socket:ResourceWarning"


#: The methods that ``available_now_reads_all`` has replaced: ``DataStreamWriter.trigger`` and ``awaitTermination``.
AS_SPARK_DOES: list[Any] = []


def pytest_configure(config: pytest.Config) -> None:
    if VERSION < (4, 2):
        config.addinivalue_line("filterwarnings", _UNCLOSED)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if VERSION < (4, 0):  # PySpark's own: modules that Python has dropped, and sockets that it does not close
        for warning in ("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"):
            for item in items:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture
def scope(own_scope: str) -> str:
    """A scope of the test's own: streams are named alike, and patterns look at all."""
    return own_scope


@pytest.fixture(scope="module", autouse=True)
def no_client_is_left() -> Iterator[None]:
    """Close the clients with which a file's queries were planned: one that is left would ask its server for minutes."""
    yield
    shared._clients.clear()


@pytest.fixture(scope="session", autouse=True)
def available_now_reads_all() -> Iterator[None]:
    """Let queries with trigger AvailableNow read all that is available, on each version of Spark.

    Before 4.2, Spark ends them after one batch, see test_version_differences.py. Here they run without that trigger,
    and end when all is read.
    """
    if HAS_ADMISSION:
        yield
        return
    trigger, start, awaited = DataStreamWriter.trigger, DataStreamWriter.start, StreamingQuery.awaitTermination

    def without_available_now(self: DataStreamWriter, **given: Any) -> DataStreamWriter:
        self.reads_all = given.pop("availableNow", None) is True
        return trigger(self, **given) if given else self

    def started(self: DataStreamWriter, *args: Any, **options: Any) -> StreamingQuery:
        query = start(self, *args, **options)
        query.reads_all = getattr(self, "reads_all", False)
        return query

    def read_all(self: StreamingQuery, timeout: int | None = None) -> bool | None:
        if not getattr(self, "reads_all", False):
            return awaited(self, timeout)
        self.processAllAvailable()
        self.stop()
        return True

    AS_SPARK_DOES.extend((trigger, awaited))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataStreamWriter, "trigger", without_available_now)
        patch.setattr(DataStreamWriter, "start", started)
        patch.setattr(StreamingQuery, "awaitTermination", read_all)
        yield


@pytest.fixture(scope="session")
def choose_processes(pytestconfig: pytest.Config) -> Callable[[SparkSession], None]:
    """Start the format's Python processes in a session as ``--spark-python`` says.

    A query starts sooner with forks, where these are possible. test_configured.py compares both.
    """

    def choose(session: SparkSession) -> None:
        if pytestconfig.getoption("--spark-python") == "forks":
            with suppress(UnavailableError):
                register(session, PravegaDataSource)

    return choose


@pytest.fixture(scope="session")
def choose_reader(pytestconfig: pytest.Config) -> Callable[[SparkSession], None]:
    """Read raw events in a session as ``--reader`` says."""

    def choose(session: SparkSession) -> None:
        if pytestconfig.getoption("--reader") != "jvm":
            leave_to_python(session)
            return
        assert jvm.main() == 0, "the JVM reader needs a JDK"
        assert use_jvm_reader(session)

    return choose


def _register(session: SparkSession) -> None:
    """Register the format where ``configure`` of another session lets Spark forget the source that it found."""
    if (4, 0) <= VERSION < (4, 1):
        register_source(session, PravegaDataSource)


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory,
    choose_processes: Callable[[SparkSession], None],
    choose_reader: Callable[[SparkSession], None],
) -> Iterator[SparkSession]:
    session = spark_session(tmp_path_factory.mktemp("warehouse"))
    _register(session)
    choose_processes(session)
    choose_reader(session)
    yield session
    session.stop()


@pytest.fixture
def restored(
    spark: SparkSession, choose_processes: Callable[[SparkSession], None], choose_reader: Callable[[SparkSession], None]
) -> Iterator[None]:
    """Undo what a program of the test changes with ``configure(SparkSession.builder)``: it gets the shared session."""
    yield
    spark.conf.unset("spark.pravega.controller.uri")
    spark.conf.unset("spark.sql.execution.pandas.udf.buffer.size")
    if VERSION >= (4, 0):
        use_local_checkpoint_files(spark, False)
        spark.dataSource.register(PravegaDataSource)
        choose_processes(spark)
        choose_reader(spark)


@pytest.fixture(scope="module")
def jvm_session(spark: SparkSession, choose_processes: Callable[[SparkSession], None]) -> SparkSession:
    """A session with the JVM reader; other sessions of the application keep the Python reader."""
    assert jvm.main() == 0, "the tests need a JDK"
    own = spark.newSession()
    _register(own)
    choose_processes(own)
    assert use_jvm_reader(own), f"{JAR} is not usable"
    if VERSION < (4, 0):  # a read does not make its session the active one
        own._jvm.SparkSession.setActiveSession(own._jsparkSession)
    return own


@pytest.fixture
def events() -> list[tuple[str, bytes]]:
    """(routing key, event): text that is not ASCII, an empty event, every byte."""
    return [(f"ключ-{i % 50}", f"event {i} ✓".encode()) for i in range(2000)] + [("k", b""), ("k", bytes(range(256)))]


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName, events: list[tuple[str, bytes]]) -> StreamName:
    """A stream of three segments that holds ``events``."""
    client.create_stream(stream_name, 3)
    with client.writer(stream_name) as writer:
        keys, values = zip(*events, strict=True)
        writer.write_column(pa.array(values, pa.binary()), pa.array(keys, pa.string()))
    return stream_name


@pytest.fixture
def load(spark: SparkSession, config: PravegaConfig) -> Callable[..., DataFrame]:
    """``load(stream, **options)``: a batch read."""

    def load(stream: StreamName | str, **options: str) -> DataFrame:
        reader = spark.read.format("pravega").option("controller", config.controller)
        return reader.options(**options).load(str(stream))

    return load


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture(scope="session")
def all_cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Every format with the widest rows that it can hold, by name."""
    return {case.name: case for case in cases(tmp_path_factory.mktemp("cases"))}


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[None]:
    """A session whose local time is not UTC, so that a time zone lost or taken twice is seen."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")
