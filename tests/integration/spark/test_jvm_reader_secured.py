"""The JVM reader and writer with TLS, users, and delegation tokens that expire after the plan."""

import time
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from pravega_serde import Credential
from tests.integration.spark._real_time import ENDLESS, Run, load_sink
from tests.support.jvm import SOON_READY

pytestmark = [pytest.mark.real_servers("TLS, users and tokens that expire"), pytest.mark.long]
USER, PASSWORD = "admin", "k2-jW.quz9"
TOKEN_SECONDS = 4
EVENTS = 500
BY_PASSWORD: Final = {"username": USER, "password": PASSWORD}
BY_PROVIDER: Final = {"credential_provider": f"{__name__}:of_the_user"}


def of_the_user() -> Credential:
    """Return a credential that each process renews like a token."""
    return Credential.basic(USER, PASSWORD, expires_in=TOKEN_SECONDS)


@pytest.fixture(scope="module")
def server() -> Iterator[PravegaConfig]:
    with LocalPravega(
        username=USER, password=PASSWORD, tls=True, token_seconds=TOKEN_SECONDS, heap_mb=512, java_options=SOON_READY
    ) as started:
        ((_, port),) = started.config.endpoints
        yield PravegaConfig(controller=f"tls://localhost:{port}", tls_ca_file=started.config.tls_ca_file)


@pytest.fixture(scope="module")
def stream(server: PravegaConfig) -> StreamName:
    name = StreamName("secured", "raw")
    with PravegaClient(server.with_credentials(USER, PASSWORD)) as client:
        client.create_stream(name, 2)
        with client.writer(name, "string") as writer:
            for number in range(EVENTS):
                writer.write(f"event {number} " + "x" * (number * 37 % 4000), routing_key=str(number))
    return name


def load(
    session: SparkSession,
    server: PravegaConfig,
    stream: StreamName,
    credentials: Mapping[str, str] = BY_PASSWORD,
    **options: str,
) -> DataFrame:
    reader = session.read.format("pravega").option("controller", server.controller)
    given = {"tls_ca_file": str(server.tls_ca_file), **credentials, **options}
    return reader.options(**given).load(str(stream))


def test_events_are_read_over_tls_with_tokens(jvm_session, server, stream):
    found = load(jvm_session, server, stream, raw_reader="jvm")
    expected = load(jvm_session, server, stream, raw_reader="python")
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, expected.collect()))
    assert found.count() == EVENTS


@pytest.mark.parametrize("credentials", [BY_PASSWORD, BY_PROVIDER], ids=lambda given: next(iter(given)))
def test_a_token_that_has_expired_since_the_plan_is_renewed(jvm_session, server, stream, credentials):
    """The provider's credential ends at the same time."""
    frame = load(jvm_session, server, stream, credentials, raw_reader="jvm", min_partitions="4")
    found = []
    for row in frame.toLocalIterator():  # the task of a partition begins when the one before has been read
        if not found:
            time.sleep(TOKEN_SECONDS + 2)  # the time itself is what is tested: a token expires
        found.append(row)
    assert len({(row.segment_id, row.offset) for row in found}) == len(found) == EVENTS


@pytest.mark.parametrize("ids", [{}, {"txn_app_id": "app", "txn_version": "1"}], ids=["at_least_once", "exactly_once"])
def test_events_are_written_over_tls_through_the_end_of_a_token(
    jvm_session: SparkSession, server: PravegaConfig, ids: Mapping[str, str]
) -> None:
    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 1:
                time.sleep(TOKEN_SECONDS + 2)  # the time itself is what is tested: a token expires
            yield batch

    target = StreamName("secured", f"written-{len(ids)}")
    jvm_session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "4000")  # more than a block for each segment
    with PravegaClient(server.with_credentials(USER, PASSWORD)) as client:
        client.create_stream(target, 2)
        rows = jvm_session.range(8000, numPartitions=1).selectExpr("rpad(CAST(id AS STRING), 1000, 'x') AS event")
        given = {"controller": server.controller, "tls_ca_file": str(server.tls_ca_file), "raw_writer": "jvm"}
        writer = rows.mapInArrow(slow, "event STRING").write.format("pravega").mode("append")
        writer.options(**given, **BY_PASSWORD, **ids).save(str(target))
        found = sorted(int(event.rstrip("x")) for event in client.read(target, "string"))
    assert found == [*range(8000)]


def test_an_untrusted_server_is_an_error(jvm_session, server, stream):
    with pytest.raises(PySparkException, match=r"PRAVEGA-AUTHENTICATION"):
        load(jvm_session, server, stream, {**BY_PASSWORD, "password": "wrong"}, raw_reader="jvm").count()


def test_events_arrive_in_real_time_over_tls_with_tokens_that_expire(jvm_session, server, tmp_path, eventually):
    name, secured = StreamName("secured", "live"), server.with_credentials(USER, PASSWORD)
    given = {"controller": server.controller, "tls_ca_file": str(server.tls_ca_file)}
    (tmp_path / "sink").mkdir()
    load_sink(jvm_session, tmp_path / "sink")
    run = Run(jvm_session, given | {"username": USER, "password": PASSWORD}, name, tmp_path)
    with PravegaClient(secured) as client:
        client.create_stream(name, 2)
        query = run.start(ENDLESS)
        written: list[str] = []
        with client.writer(name, "string") as writer:
            for number in range(4):
                written.append(f"event {number}")
                writer.write(written[-1], routing_key=str(number % 2))
                writer.flush()
                eventually(lambda: len(run.rows) >= len(written) or query.exception())
                assert query.exception() is None
                if number == 1:
                    time.sleep(TOKEN_SECONDS + 2)  # the time itself is what is tested: a token expires
    query.stop()
    assert run.events == written
