"""A registry that keeps its schemas in Pravega, over TLS and with users; one that is killed while a query runs."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega, LocalSchemaRegistry, RegistryUser
from pravega_connector.tcp_ports import free_ports
from pravega_connector.wire import StreamName
from pravega_serde.registry import Compatibility, GroupProperties, SchemaRegistryClient, SerializationFormat, serializer
from tests.integration.spark._registry_proxy import RegistryProxy

# tests/unit/registry has TLS, users and refusals, tests/integration/local/test_registry.py a server that has both.
pytestmark = [pytest.mark.long, pytest.mark.real_servers("a registry that keeps its schemas in Pravega")]
NEW = {"register_schema": "true", "create_group": "true"}
ADMIN = RegistryUser("admin", "pass:word")
READER = RegistryUser("reader", "only", ("prn::/*,READ",))
QUERY = "SELECT id, CONCAT('n', id) AS name, id / 4 AS share FROM RANGE(0, 500, 1, 2)"


@pytest.fixture(scope="module")
def secured(pravega: LocalPravega) -> Iterator[LocalSchemaRegistry]:
    with LocalSchemaRegistry(controller=pravega.config, users=[ADMIN, READER], tls=True) as registry:
        yield registry


@pytest.fixture
def place(secured: LocalSchemaRegistry, config: PravegaConfig) -> Callable[..., dict[str, str]]:
    """Options of a user: ``place(ADMIN)``."""

    def place(user: RegistryUser | None, **more: str) -> dict[str, str]:
        options = {"controller": config.controller, "registry": secured.uri, "registry_ca_file": str(secured.ca_file)}
        known = {} if user is None else {"registry_username": user.name, "registry_password": user.password}
        return options | known | more

    return place


def write(frame: DataFrame, stream: StreamName, options: dict[str, str]) -> None:
    frame.write.format("pravega").options(**options).mode("append").save(str(stream))


def said(run: Callable[[], object], code: str) -> str:
    """The line of an error with a code."""
    with pytest.raises(PySparkException) as error:
        run()
    (*_, line) = [line for line in str(error.value).splitlines() if f"[{code}]" in line] or [""]
    assert line, f"no {code} in: {error.value}"
    return line


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_typed_columns_over_tls_with_users(
    spark: SparkSession, client: PravegaClient, stream_name: StreamName, place: Callable[..., dict[str, str]],
    checkpoint: str, name: str,
):  # fmt: skip
    client.create_stream(stream_name, 2)
    original = spark.sql(QUERY)
    write(original, stream_name, place(ADMIN, format=name, registry_type="shop.Share", **NEW))
    found = spark.read.format("pravega").options(**place(READER)).load(str(stream_name))
    assert found.schema.simpleString() == original.schema.simpleString()
    assert sorted(found.collect()) == sorted(original.collect())

    # The same as a streaming query; who writes has to register nothing any more.
    copy = StreamName(stream_name.scope, "copy")
    client.create_stream(copy, 2)
    options = place(READER, group=stream_name.stream, start_stream_cut="earliest")
    frame = spark.readStream.format("pravega").options(**options).load(str(stream_name))
    writer = frame.writeStream.format("pravega").options(**place(READER, group=stream_name.stream), path=str(copy))
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    assert sorted(client.read(copy)) == sorted(client.read(stream_name))


def test_401_and_403_are_told_apart(
    spark: SparkSession, client: PravegaClient, stream_name: StreamName, place: Callable[..., dict[str, str]],
    secured: LocalSchemaRegistry, checkpoint: str,
):  # fmt: skip
    client.create_stream(stream_name)
    frame = spark.sql(QUERY)
    write(frame, stream_name, place(ADMIN, format="avro", registry_type="shop.Share", **NEW))

    def load(options: dict[str, str]) -> DataFrame:
        return spark.read.format("pravega").options(**options).load(str(stream_name))

    for user in (None, RegistryUser(ADMIN.name, "wrong"), RegistryUser("nobody", "x")):
        line = said(lambda user=user: load(place(user)), "PRAVEGA-REGISTRY-AUTHENTICATION")
        assert "status 401" in line
        assert "check username and password" in line
        said(lambda user=user: write(frame, stream_name, place(user)), "PRAVEGA-REGISTRY-AUTHENTICATION")
        assert "pass:word" not in line
    assert load(place(READER)).count() == 500
    wider = frame.selectExpr("*", "1L AS more")
    line = said(lambda: write(wider, stream_name, place(READER, **NEW)), "PRAVEGA-REGISTRY-PERMISSION")
    assert "status 403" in line
    assert "not permitted" in line
    # A streaming query, whose writer is made where no user sees it.
    source = frame.sparkSession.readStream.format("pravega").options(**place(READER)).load(str(stream_name))
    options = place(RegistryUser(READER.name, "wrong"), path=str(stream_name))
    query = source.writeStream.format("pravega").options(**options).option("checkpointLocation", checkpoint).start()
    said(lambda: query.awaitTermination(60), "PRAVEGA-REGISTRY-AUTHENTICATION")
    # Without the certificate it is neither.
    untrusted = {name: value for name, value in place(READER).items() if name != "registry_ca_file"}
    assert "ca_file" in said(lambda: load(untrusted), "PRAVEGA-REGISTRY-PROTOCOL")


A, B = {"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "none"}
VERSIONS = [{"type": "record", "name": "shop.Count", "fields": fields} for fields in ([A], [A, B])]


def test_a_registry_killed_and_started_again_stops_no_query(
    spark: SparkSession, pravega: LocalPravega, config: PravegaConfig, client: PravegaClient, stream_name: StreamName,
    checkpoint: str, eventually: Callable[..., None],
):  # fmt: skip
    client.create_stream(stream_name, 2)
    settings: dict[str, Any] = {"controller": pravega.config, "port": free_ports(1)[0]}

    def write_version(uri: str, version: int, count: int) -> Callable[[], None]:
        """Ready to write, also if the registry fails."""
        made = serializer(uri, group=stream_name.stream, schema=VERSIONS[version], format="avro", register_schema=True)

        def run() -> None:
            with client.writer(stream_name, made) as writer:
                for i in range(count):
                    writer.write({"a": i, "b": "x"} if version else {"a": i}, routing_key=str(i))

        return run

    rows: list[Any] = []
    with LocalSchemaRegistry(**settings) as registry:
        with SchemaRegistryClient(registry.uri) as schemas:
            properties = GroupProperties(SerializationFormat.AVRO, Compatibility.BACKWARD, True)
            schemas.add_group(stream_name.stream, properties)
        first, second = (write_version(registry.uri, version, 100) for version in (0, 1))
        first()
        proxy = RegistryProxy(registry.uri)
        options = {"controller": config.controller, "registry": proxy.uri, "start_stream_cut": "earliest"}
        reader = spark.readStream.format("pravega").options(**options, mode="PERMISSIVE", timeout_ms="60000")
        writer = reader.load(str(stream_name)).writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        query = writer.option("checkpointLocation", checkpoint).start()
        query.processAllAvailable()
        assert len(rows) == 100
        os.kill(registry.pid, signal.SIGKILL)
    before = Counter(proxy.calls)
    # The id of these events is known to no worker yet, and the registry is down.
    second()
    eventually(lambda: proxy.calls - before)
    assert len(rows) == 100
    with LocalSchemaRegistry(**settings):
        query.processAllAvailable()
    assert query.exception() is None
    query.stop()
    proxy.close()
    assert sorted((row.a, row._corrupt_record) for row in rows) == sorted((i % 100, None) for i in range(200))
    asked = proxy.calls - before
    # Two workers, each at most as often as the pauses of up to two seconds allow.
    assert set(asked) == {f"GET /v1/groups/{stream_name.stream}/encodings/1"}
    assert 2 <= sum(asked.values()) <= 60
