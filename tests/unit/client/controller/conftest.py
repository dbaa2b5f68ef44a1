"""A controller that answers as it is told, and a client of it."""

from collections.abc import Iterator

import pytest

from connector.client import ControllerClient
from connector.config import PravegaConfig
from tests.fakes import FakeController


@pytest.fixture
def fake() -> Iterator[FakeController]:
    with FakeController() as server:
        yield server


@pytest.fixture
def client(fake: FakeController) -> Iterator[ControllerClient]:
    with ControllerClient(PravegaConfig(controller=fake.uri), timeout=5, failover_timeout=5) as made:
        yield made
