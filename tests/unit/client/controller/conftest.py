"""A controller with scripted answers, and a client of it."""

import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pravega_connector.config import PravegaConfig
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core.retry import Attempts
from tests.support.fakes import FakeController


@pytest.fixture
def fake() -> Iterator[FakeController]:
    with FakeController() as server:
        yield server


@pytest.fixture
def client(fake: FakeController) -> Iterator[ControllerClient]:
    with ControllerClient(PravegaConfig(controller=fake.uri), timeout=30, failover_timeout=30) as made:
        yield made


@pytest.fixture
def five_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is up with the fifth failure of something in the test's thread, at any time of the clock."""
    note = Attempts.failed
    mine = threading.get_ident()  # a client that another test has left may continue with its attempts

    def failed(self: Attempts, *given: Any) -> None:
        note(self, *given)
        if self._failures >= 5 and threading.get_ident() == mine:
            monkeypatch.setattr("pravega_connector.core.retry._LAST_ATTEMPT", math.inf)

    monkeypatch.setattr(Attempts, "failed", failed)
