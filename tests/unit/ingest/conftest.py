"""A store and a controller that do what a test wants, and files to be ingested."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from tests.support.fake_stream import FakeSegmentStore
from tests.unit.client.conftest import again_soon  # noqa: F401 - a fixture
from tests.unit.ingest._servers import Servers


@pytest.fixture
def store() -> Iterator[FakeSegmentStore]:
    with FakeSegmentStore() as store:
        yield store


@pytest.fixture
def servers(store: FakeSegmentStore) -> Servers:
    return Servers(store)


@pytest.fixture
def client(servers: Servers) -> Iterator[PravegaClient]:
    with servers.client() as client:
        yield client


@pytest.fixture
def six_files(tmp_path: Path) -> Path:
    """A folder of six files with five numbered records of one key in each."""
    folder = tmp_path / "six"
    folder.mkdir()
    for file in range(6):
        lines = "".join(f"key,{file * 5 + sample}\n" for sample in range(5))
        (folder / f"{file}.csv").write_text("key,number\n" + lines)
    return folder
