"""The most telling points of the matrix; ``python -m tools.faults.exactly_once`` runs all of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pravega_connector.local import LocalPravega
from tools.faults.exactly_once._points import POINTS
from tools.faults.exactly_once._run import Stage


@pytest.fixture(scope="module")
def stage(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("kills")
    with Stage(pravega.config, folder, rows=300) as stage:
        yield stage


@pytest.mark.parametrize(
    "name",
    [
        "task-retry",  # what a killed worker wrote is never seen
        "driver-pilot",  # a batch of which a part is visible is finished, not repeated
        "two-drivers-prepared",  # one that was thought dead does no harm
        # A lost part is replaced by the same rows of the replay.
        pytest.param("late-second-of-three", marks=pytest.mark.long),
        # A number that Spark plans anew, with other rows, is not skipped.
        pytest.param("newest-removed", marks=pytest.mark.long),
    ],
)
def test_nothing_is_lost_and_nothing_twice(stage: Stage, name: str):
    # The shortest lease where nothing has to outlive a restart, so that what is left open is soon gone.
    point = POINTS[name]
    verdict = stage.run(replace(point, lease=10.0) if name == "task-retry" else point)
    assert not verdict.failures, verdict
    assert (verdict.read_back, verdict.follower) == (300, 300)


def test_no_transaction_is_left_open(stage: Stage):
    settled = stage.settle()
    assert settled, "nothing ran before"
    assert [verdict.left_open for verdict in settled] == [0] * len(settled)
