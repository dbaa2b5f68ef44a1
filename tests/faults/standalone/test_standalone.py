"""A query on a standalone cluster of two workers; ``python -m tools.faults.standalone`` runs it at length."""

from pathlib import Path

import pytest

from pravega_connector.local import LocalPravega
from tools.faults.standalone._run import Settings, play

SMALL = Settings(rows=360, rows_per_batch=120, pause_ms=40)


def assert_exact(pravega: LocalPravega, way: str, folder: Path, shipped: str, settings: Settings = SMALL) -> None:
    outcome = play(pravega.config, way, folder, settings)
    assert outcome.is_exact, outcome
    assert outcome.batches == 3
    # Executors had the project from the shipment, each from its own folder.
    assert outcome.modules
    assert all(shipped in file for file in outcome.modules), outcome.modules
    assert len(outcome.proofs) == 4, outcome.proofs


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_worker_and_the_driver_are_killed(pravega: LocalPravega, tmp_path: Path):
    assert_exact(pravega, "py-files", tmp_path, "pravega-serde.zip/connector")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_same_in_a_packed_environment(pravega: LocalPravega, tmp_path: Path):
    assert_exact(pravega, "archives", tmp_path, "/environment/lib/")
