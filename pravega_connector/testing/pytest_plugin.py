"""Fixtures for tests that need Pravega or a schema registry. pytest finds them if the package is installed.

No module of Pravega is imported before a test requests a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pravega_connector import testing

if TYPE_CHECKING:
    from pravega_connector.client.pravega_client import PravegaClient
    from pravega_connector.testing import InProcessPravega, InProcessRegistry
    from pravega_connector.wire import StreamName

_SEGMENTS = "pravega_segments"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", f"{_SEGMENTS}(count): number of segments of the fixture pravega_stream")


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    """In-process Pravega for one test.

    The test fails if a requested fault has not happened.
    """
    with testing.InProcessPravega() as server:
        yield server
        if server.faults.pending:
            pytest.fail(
                f"{server.faults.pending} faults that the test asked for have not happened; if that is right, end it "
                "with pravega.faults.clear()",
                pytrace=False,
            )


@pytest.fixture
def pravega_client(pravega: InProcessPravega) -> Iterator[PravegaClient]:
    """Client of ``pravega``."""
    with pravega.client() as client:
        yield client


@pytest.fixture
def pravega_stream(pravega_client: PravegaClient, request: pytest.FixtureRequest) -> StreamName:
    """Empty stream of ``pravega`` with one segment.

    The marker ``pravega_segments`` sets another number of segments.
    """
    marker = request.node.get_closest_marker(_SEGMENTS)
    pravega_client.create_stream("test/stream", 1 if marker is None else marker.args[0])
    return pravega_client.describe("test/stream").stream


@pytest.fixture
def schema_registry() -> Iterator[InProcessRegistry]:
    """In-process schema registry for one test, with an HTTP address."""
    with testing.InProcessRegistry() as server:
        yield server
