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


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried to the end of its time has enough of it for the last attempt, on a machine that is busy as well."""
    monkeypatch.setattr("connector.client.health._LAST_ATTEMPT", 1.5)


@pytest.fixture
def again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between attempts stay short, so that there are many of them in a second."""
    monkeypatch.setattr("connector.client.health._LONGEST_PAUSE", 0.05)
