"""A query on a standalone cluster of two workers; ``python -m tests.faults standalone`` runs it at length."""

from pathlib import Path

import pytest

from pravega_connector.local import LocalPravega
from tests.faults.standalone.table import TABLE, StandaloneSettings, StandaloneSetup

SMALL = StandaloneSettings(rows=360, rows_per_batch=120, pause_ms=40)


def assert_exact(pravega: LocalPravega, way: str, folder: Path, shipped: str) -> None:
    with StandaloneSetup("server", folder, SMALL, pravega.config) as setup:
        verdict = setup.run(TABLE.named[way])
    assert not verdict.failures, verdict
    assert [counts["events"] for counts in verdict.counts.values()] == [SMALL.rows] * 3
    assert verdict.measures["batches"] == 3
    # Executors had the project from the shipment, each from its own folder.
    modules = verdict.measures["modules"]
    assert modules
    assert all(shipped in file for file in modules), modules
    assert len(verdict.proofs) == 4, verdict.proofs


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_worker_and_the_driver_are_killed(pravega: LocalPravega, tmp_path: Path):
    assert_exact(pravega, "py-files", tmp_path, "pravega-serde.zip/pravega_connector")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_same_in_a_packed_environment(pravega: LocalPravega, tmp_path: Path):
    assert_exact(pravega, "archives", tmp_path, "/environment/lib/")
