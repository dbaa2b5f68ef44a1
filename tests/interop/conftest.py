"""The other clients, and ours, against the shared server."""

import os
import sys
import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.testing import InProcessPravega
from tests.interop._java import JavaPeer
from tests.interop._rust import RustPeer, rust_python


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
    """A session of two cores; the one of the other Spark tests, where these run in the same process."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def client(pravega: LocalPravega) -> Iterator[PravegaClient]:
    with PravegaClient(pravega.config.controller) as client:
        yield client
