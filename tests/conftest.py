"""What every test may use. A test that needs a server fails where there is none: nothing is skipped."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.config import PravegaConfig
from connector.local import LocalPravega
from connector.wire import StreamName

_TESTS = Path(__file__).parent
_WITH_SERVERS = tuple(_TESTS / name for name in ("integration", "faults", "interop"))
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.parents for folder in _WITH_SERVERS):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def pravega() -> Iterator[LocalPravega]:
    """A Pravega server that the whole session shares; its storage is in memory, so keep streams small."""
    with LocalPravega() as server:
        yield server


@pytest.fixture
def config(pravega: LocalPravega, scope: str) -> PravegaConfig:
    """How to reach the shared server, with the test's own scope."""
    return PravegaConfig(controller=pravega.controller_uri, scope=scope)


@pytest.fixture
def scope() -> str:
    """A scope name of the test's own. Nothing is created."""
    return f"scope{next(_numbers)}"


@pytest.fixture
def stream_name(scope: str) -> StreamName:
    """A stream name of the test's own, in ``scope``. Nothing is created."""
    return StreamName(scope, f"stream{next(_numbers)}")
