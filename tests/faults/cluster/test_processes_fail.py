"""The short form: parts of a cluster fail while plain clients and an exactly-once query are at work on it."""

from collections.abc import Iterator

import pytest

from tools.faults.cluster._faults import Servers
from tools.faults.cluster._stage import Stage

# Longer than ZooKeeper's sessions, so that the containers move.
FROZEN = 25.0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(Servers.ONE, tmp_path_factory.mktemp("cluster"), ingester=False) as stage:
        yield stage


@pytest.mark.parametrize(
    "fault",
    ["kill-store-1", *(pytest.param(name, marks=pytest.mark.long) for name in ("freeze-store-2", "kill-controller"))],
)
@pytest.mark.timeout(300)
def test_all_clients_go_on_by_themselves_and_nothing_is_lost_or_repeated(stage: Stage, fault: str):
    verdict = stage.play(fault, "short", frozen=FROZEN)
    assert verdict.proof
    assert verdict.failures == []
    assert verdict.audit["copy"]["events"] > 0


@pytest.mark.timeout(300)
def test_the_java_client_reads_the_same(stage: Stage):
    verdict = stage.java_verdict()
    assert verdict.failures == []
    assert verdict.audit["copy, by Java"]["events"] > 0
