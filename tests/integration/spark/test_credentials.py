"""Queries whose credentials end: on the controller and on the registry, through ten lives of a token."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega, LocalSchemaRegistry, RegistryUser
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_serde import Credential
from pravega_serde.registry import RegistryConfig, serializer
from tests.support.keycloak import SECRET, Keycloak

#: Seconds that a token is valid; a query runs for ten of them.
LIFE: Final = float(os.environ.get("PRAVEGA_TEST_TOKEN_LIFE", "4"))
LIVES: Final = 10
USER, PASSWORD = "ann", "hunter2"


def of_a_user() -> Credential:
    """Return a credential that the clients renew like a token."""
    return Credential.basic(USER, PASSWORD, expires_in=LIFE)


@pytest.fixture
def keycloak() -> Iterator[Keycloak]:
    server = Keycloak()
    server.life = LIFE
    yield server
    server.close()


def schema(version: int) -> dict[str, Any]:
    """A schema with one field more for each version, so that each event makes the readers ask the registry."""
    more = [{"name": f"f{number}", "type": "int", "default": 0} for number in range(version)]
    return {"type": "record", "name": "shop.Count", "fields": [{"name": "id", "type": "long"}, *more]}


def write(client: PravegaClient, schemas: RegistryConfig, number: int) -> None:
    new: dict[str, Any] = {"create_group": True, "register_schema": True}
    writer = serializer(schemas, group="counts", schema=schema(number), format="avro", **new)
    client.write("shop/counts", {"id": number} | {f"f{i}": i for i in range(number)}, writer)


def run(
    spark: SparkSession,
    config: PravegaConfig,
    schemas: RegistryConfig,
    checkpoint: str,
    eventually: Callable[..., None],
    **credentials: str,
) -> str:
    """Copy a stream of a registry's events while its tokens end. Return what Spark shows of the query."""
    with PravegaClient(config) as client:
        for name in ("shop/counts", "shop/copies"):
            client.create_stream(name)
        write(client, schemas, 0)
        options = {**config.options(), "registry": schemas.uri, "start_stream_cut": "earliest", **credentials}
        frame = spark.readStream.format("pravega").options(**options).load("shop/counts")
        sink = frame.writeStream.format("pravega").options(**config.options(), format="json", path="shop/copies")
        query = sink.option("checkpointLocation", checkpoint).trigger(processingTime="500 milliseconds").start()
        began, number = time.monotonic(), 0

        def is_copied() -> bool:
            assert query.exception() is None
            return list(client.read("shop/copies", "json")) == [{"id": each} for each in range(number + 1)]

        try:
            while time.monotonic() < began + LIVES * LIFE:
                eventually(is_copied)
                number += 1
                time.sleep(LIFE / 4)  # the life of a token is what is tested
                write(client, schemas, number)
            eventually(is_copied)
            return f"{frame._jdf.queryExecution()}{query._jsq}"
        finally:
            query.stop()


@pytest.mark.long
def test_a_query_outlives_ten_tokens_of_keycloak(
    spark: SparkSession, keycloak: Keycloak, tmp_path: Path, checkpoint: str, eventually: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = keycloak.file(tmp_path)
    with InProcessPravega(accepts=keycloak.accepts) as pravega, InProcessRegistry(accepts=keycloak.accepts) as registry:
        config = PravegaConfig(controller=pravega.uri, keycloak_file=file)
        schemas = RegistryConfig(uri=registry.uri, keycloak_file=file)
        shown = run(spark, config, schemas, checkpoint, eventually, registry_keycloak_file=file)
    # Each process renews its own, with two requests to Keycloak. No call was sent with a token that had ended.
    assert len(keycloak.ends) / 2 >= LIVES
    assert keycloak.refused == []
    shown += "".join(capfd.readouterr())
    assert SECRET not in shown
    assert "Bearer" not in shown


@pytest.mark.long
@pytest.mark.real_servers("delegation tokens that end")
def test_a_query_outlives_ten_delegation_tokens(spark, checkpoint, eventually, capfd):
    place = f"{__name__}:of_a_user"
    with (
        LocalPravega(username=USER, password=PASSWORD, token_seconds=max(int(LIFE), 2)) as pravega,
        LocalSchemaRegistry(users=[RegistryUser(USER, PASSWORD)]) as registry,
    ):
        config = pravega.config.with_credential_provider(place)
        schemas = RegistryConfig(uri=registry.uri, credential_provider=place)
        shown = run(spark, config, schemas, checkpoint, eventually, registry_credential_provider=place)
    shown += "".join(capfd.readouterr())
    assert PASSWORD not in shown
