"""Delta tables in an object store, where a commit is a put that does not overwrite."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from deltalake import DeltaTable

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.errors import LakeTableError
from pravega_connector.operations.tier import TierSettings, read_table_and_tail, tier
from tests.integration.tier.conftest import Write
from tests.integration.tier.object_store import ObjectStore, object_store
from tests.integration.tier.test_tier import SMALL, all_of, numbers

TABLE = "s3://lake/shop/orders"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with object_store() as store:
        yield store


@pytest.fixture
def given(client: PravegaClient, store: ObjectStore) -> dict[str, Any]:
    return {"controller": client.config.controller, "format": "json", "storage": store.storage}


def test_a_commit_that_comes_too_late_is_refused_and_repeated(
    stream: StreamName, store: ObjectStore, given: dict[str, Any], write: Write
) -> None:
    name = f"delta:{TABLE}"
    write(10)
    first = tier(str(stream), name, **given)
    assert first.position is not None
    log = [f"/lake/shop/orders/_delta_log/{version:020}.json" for version in (2, 3)]
    foreign = {"commitInfo": {"timestamp": 1777636800000, "operation": "WRITE", "operationParameters": {}}}
    for path in log:
        store.put_first(path, json.dumps(foreign).encode())
    write(10)
    second = tier(str(stream), name, settings=TierSettings(target_bytes=SMALL), **given)
    assert store.refused()[:2] == log
    assert second.position is not None
    assert second.position.rows == 2 * first.position.rows
    assert numbers(DeltaTable(TABLE, storage_options=store.storage).to_pyarrow_table()) == all_of(20)
    write(5)
    assert numbers(read_table_and_tail(str(stream), name, **given).read_all()) == all_of(25)


def test_a_store_that_does_not_answer(stream: StreamName, given: dict[str, Any], write: Write) -> None:
    write(1)
    given["storage"] |= {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "max_retries": "0"}
    with pytest.raises(LakeTableError, match="delta:s3://lake/shop/orders: "):
        tier(str(stream), f"delta:{TABLE}", **given)
