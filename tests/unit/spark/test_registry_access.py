"""Access to a registry: no pickle of a query has a secret that the driver found in its environment or profile."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.rows.options.registry_access import registry_access
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_serde.registry import RegistryConfig, serializer

USER, PASSWORD = "ann", "s3cret-word"
ROWS = StructType([StructField("id", LongType()), StructField("item", StringType())])
#: A task, which reads rows, and may pickle its reader again.
TASK = f"""
import pickle, sys
reader = pickle.load(sys.stdin.buffer)
print([row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()])
print({PASSWORD!r}.encode() in pickle.dumps(reader))
"""
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Registry with one user, whose credentials are in the environment."""
    with InProcessRegistry(username=USER, password=PASSWORD) as server:
        monkeypatch.setenv("PRAVEGA_REGISTRY_URI", server.uri)
        monkeypatch.setenv("PRAVEGA_REGISTRY_USERNAME", USER)
        monkeypatch.setenv("PRAVEGA_REGISTRY_PASSWORD", PASSWORD)
        yield server.uri


@pytest.fixture
def config(registry: str) -> Iterator[PravegaConfig]:
    """Cluster with a stream of one order, whose schema is in the registry."""
    with InProcessPravega() as pravega, PravegaClient(pravega.config) as client:
        client.create_stream("shop/orders")
        client.create_stream("shop/copies")
        new: dict[str, Any] = {"create_group": True, "register_schema": True}
        client.write(
            "shop/orders",
            {"id": 1, "item": "tea"},
            serializer(RegistryConfig.from_env(), group="orders", schema=SCHEMA, format="avro", **new),
        )
        yield pravega.config


def planned(config: PravegaConfig) -> tuple[Any, Any]:
    """Return a reader and a writer with schemas of the registry, as the driver sends them to tasks."""
    place = {"controller": config.controller, "group": "orders"}
    reader = PravegaDataSource({**place, "path": "shop/orders"}).reader(ROWS)
    writer = PravegaDataSource({**place, "path": "shop/copies"}).writer(ROWS, overwrite=False)
    return reader, writer


def test_no_task_gets_a_secret_of_the_environment(config: PravegaConfig):
    for each in planned(config):
        assert PASSWORD.encode() not in pickle.dumps(each)


def run_task(carried: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Read all partitions in another process, which has only these variables of a registry."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRAVEGA_REGISTRY_")}
    command = [sys.executable, "-c", TASK]
    return subprocess.run(command, input=carried, env=kept | environment, capture_output=True, timeout=60, check=False)


def test_a_task_reads_the_secret_of_its_own_environment(config: PravegaConfig):
    done = run_task(
        pickle.dumps(planned(config)[0]), PRAVEGA_REGISTRY_USERNAME=USER, PRAVEGA_REGISTRY_PASSWORD=PASSWORD
    )
    assert done.stdout == b"[{'id': 1, 'item': 'tea'}]\nFalse\n", done.stderr


def test_a_task_without_the_secret_is_refused(config: PravegaConfig):
    done = run_task(pickle.dumps(planned(config)[0]))
    assert b"PRAVEGA-REGISTRY-AUTHENTICATION" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    "found", [{"USERNAME": USER, "PASSWORD": PASSWORD}, {"TOKEN": PASSWORD}, {"CA_PASSWORD": PASSWORD}]
)
def test_each_secret_is_renewed_where_it_is_restored(found: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    for name, value in found.items():
        monkeypatch.setenv(f"PRAVEGA_REGISTRY_{name}", value)
    access = registry_access({"uri": "http://driver:1"}, timeout=2.0)
    carried = pickle.dumps(access)
    assert PASSWORD.encode() not in carried
    assert pickle.loads(carried) == access
    *_, secret = found
    monkeypatch.setenv(f"PRAVEGA_REGISTRY_{secret}", "renewed")
    assert access is not None
    assert pickle.loads(carried) == replace(access, **{secret.lower(): "renewed"})


def test_a_secret_of_a_profile_is_not_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "pravega-serde" / "config.toml"
    file.parent.mkdir()
    file.write_text(f'[one]\nregistry = "http://driver:1"\nregistry_token = "{PASSWORD}"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PRAVEGA_PROFILE", "one")
    access = registry_access({}, timeout=2.0)
    assert access is not None
    assert access.token == PASSWORD
    carried = pickle.dumps(access)
    assert PASSWORD.encode() not in carried
    assert pickle.loads(carried) == access


def test_settings_of_the_options_are_carried(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRAVEGA_REGISTRY_TOKEN", PASSWORD)
    access = registry_access({"uri": "http://h:1", "username": "bob", "password": "given"}, timeout=2.0)
    carried = pickle.dumps(access)
    monkeypatch.setenv("PRAVEGA_REGISTRY_TOKEN", "other")
    assert pickle.loads(carried) == access
