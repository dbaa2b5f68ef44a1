"""Servers in the test's process, and tests that depend on the version of Spark."""

from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.spark.versions import HAS_FILTERS
from pravega_connector.testing import InProcessPravega

#: Tests of what this Spark does not have. tests/integration/spark/test_version_differences.py asserts the difference.
collect_ignore = [] if HAS_FILTERS else ["test_pushdown.py"]


@pytest.fixture(scope="module")
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        yield client
    pravega.faults.clear()
