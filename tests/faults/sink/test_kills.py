"""Some scenarios of the sink; ``python -m tests.faults sink`` runs all of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pravega_connector.local import LocalPravega
from tests.faults.sink.setup import SinkSettings, SinkSetup
from tests.faults.sink.table import TABLE

pytestmark = pytest.mark.long  # tests/unit/exactly_once explores a crash at each step


@pytest.fixture(scope="module")
def setup(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SinkSetup]:
    folder: Path = tmp_path_factory.mktemp("kills")
    with SinkSetup("server", folder, SinkSettings(rows=300), pravega.config) as setup:
        yield setup


@pytest.mark.parametrize(
    "name",
    [
        "driver-pilot",  # a partly visible batch is finished, not repeated
        # The output of a killed worker is never seen.
        "task-retry",
        # A driver that was thought dead does no harm.
        "two-drivers-prepared",
        # A lost part is replaced by the same rows of the replay.
        "late-second-of-three",
        # A number that Spark plans again, with other rows, is not skipped.
        "newest-removed",
    ],
)
def test_nothing_is_lost_and_nothing_twice(setup: SinkSetup, name: str):
    # The shortest lease where nothing has to outlive a restart, so that what is left open is soon gone.
    scenario = TABLE.named[name]
    verdict = setup.run(replace(scenario, lease=10.0) if name == "task-retry" else scenario)
    assert not verdict.failures, verdict
    assert [counts["events"] for counts in verdict.counts.values()] == [300, 300]
    assert verdict.proofs


def test_no_transaction_is_left_open(setup: SinkSetup):
    settled = setup.complete(last=True)
    assert settled, "nothing ran before"
    assert [verdict.measures["left_open"] for verdict in settled] == [0] * len(settled)
