"""A client of the shared server."""

from collections.abc import Iterator

import pytest

from connector.client import PravegaClient
from connector.config import PravegaConfig


@pytest.fixture
def client(config: PravegaConfig) -> Iterator[PravegaClient]:
    with PravegaClient(config) as client:
        yield client
