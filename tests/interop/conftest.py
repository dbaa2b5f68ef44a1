"""The other clients, and ours, against the shared server."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.testing import InProcessPravega
from tests.interop._java import JavaPeer
from tests.interop._rust import RustPeer, rust_python
from tests.support.spark_session import spark_session


@pytest.fixture
def scope(own_scope: str) -> str:
    return own_scope  # streams are named alike


@pytest.fixture(scope="session")
def pravega(request: pytest.FixtureRequest) -> LocalPravega | InProcessPravega:
    """The shared server: the other clients' processes serve all files."""
    kind = "kit" if request.config.getoption("--pravega") == "kit" else "real"
    server: LocalPravega | InProcessPravega = request.getfixturevalue(f"{kind}_pravega")
    return server


@pytest.fixture(scope="session")
def java(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    with JavaPeer(pravega.config.controller, tmp_path_factory.mktemp("java")) as java:
        yield java


@pytest.fixture(scope="session")
def rust(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> RustPeer:
    if rust_python() is None:
        pytest.skip("the Rust client needs Python 3.11")
    return RustPeer(pravega.config.controller, tmp_path_factory.mktemp("rust"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the other Spark tests, where these run in the same process."""
    session = spark_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def client(pravega: LocalPravega) -> Iterator[PravegaClient]:
    with PravegaClient(pravega.config.controller) as client:
        yield client
