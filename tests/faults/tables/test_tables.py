"""A quick form of the scenario of key-value tables; ``python -m tests.faults tables`` runs it at length."""

from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from tests.faults.tables.table import TableSettings, kills
from tests.faults.verdict import Verdict


@pytest.mark.long
def test_clients_that_are_killed_lose_and_repeat_no_update(pravega: LocalPravega, tmp_path: Path) -> None:
    verdict = Verdict("kills", seed=1)
    with PravegaClient(pravega.config, timeout=60.0) as client:
        kills(client, tmp_path, TableSettings(updates=400, kills=3, interrupts=3, cuts=3), verdict)
    assert not verdict.failures, verdict
    assert verdict.sum("events") >= 400
    assert verdict.faults == {"cut off": 3, "interrupted": 3, "killed java": 1, "killed python": 2}
