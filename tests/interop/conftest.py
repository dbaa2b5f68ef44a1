"""The other clients, and ours, against the shared server."""

from collections.abc import Iterator

import pytest

from connector.client import PravegaClient
from connector.local import LocalPravega
from tests.interop._java import JavaPeer
from tests.interop._rust import RustPeer


@pytest.fixture(scope="session")
def java(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    with JavaPeer(pravega.controller_uri, tmp_path_factory.mktemp("java")) as java:
        yield java


@pytest.fixture(scope="session")
def rust(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> RustPeer:
    return RustPeer(pravega.controller_uri, tmp_path_factory.mktemp("rust"))


@pytest.fixture(scope="session")
def client(pravega: LocalPravega) -> Iterator[PravegaClient]:
    with PravegaClient(pravega.controller_uri) as client:
        yield client
