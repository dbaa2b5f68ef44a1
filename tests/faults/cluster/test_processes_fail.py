"""Parts of a cluster fail while plain clients and an exactly-once query work on it."""

from collections.abc import Iterator

import pytest

from tests.faults.cluster.setup import ClusterSettings, ClusterSetup, Servers
from tests.faults.cluster.table import TABLE

# Longer than ZooKeeper's sessions, so that the containers move.
FROZEN = 25.0
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterSetup]:
    settings = ClusterSettings(ingester=0, frozen=FROZEN)
    with ClusterSetup(Servers.ONE, tmp_path_factory.mktemp("cluster"), settings) as setup:
        yield setup


@pytest.mark.parametrize("fault", ["kill-store-1", "freeze-store-2", "kill-controller"])
@pytest.mark.timeout(300)
def test_all_clients_continue_by_themselves_and_nothing_is_lost_or_repeated(setup: ClusterSetup, fault: str):
    verdict = setup.run(TABLE.named[fault])
    assert verdict.proofs
    assert verdict.failures == []
    assert verdict.counts["copy"]["events"] > 0


@pytest.mark.timeout(300)
def test_the_java_client_reads_the_same(setup: ClusterSetup):
    verdict = setup.java_verdict()
    assert verdict.failures == []
    assert verdict.counts["copy, by Java"]["events"] > 0
