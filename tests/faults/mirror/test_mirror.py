"""A quick form of each scenario; ``python -m tests.faults mirror`` runs them at length, between two clusters."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from tests.faults.mirror.table import MirrorSettings, Trial, kills, overlaps
from tests.interop._java import JavaPeer

pytestmark = pytest.mark.long  # tests/integration/mirror/test_recovery.py has each step
Start = Callable[..., Trial]


@pytest.fixture
def trial(pravega: LocalPravega, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        client = stack.enter_context(PravegaClient(pravega.config, timeout=60.0))
        java = stack.enter_context(JavaPeer(pravega.controller_uri, tmp_path))

        def start(**settings: int) -> Trial:
            wanted = MirrorSettings(**settings)
            return stack.enter_context(Trial(client, client, java, tmp_path, wanted, random.Random(1)))

        yield start


def test_killed_again_and_again(trial: Start):
    verdict = kills(trial(events=6_000, kills=4))
    assert not verdict.failures, verdict
    assert verdict.measures["kills"] == 4
    assert verdict.counts["Java"]["events"] == verdict.counts["client"]["events"] >= 6_000


def test_woken_up_after_a_takeover(trial: Start):
    verdict = overlaps(trial(events=6_000, pauses=2))
    assert not verdict.failures, verdict
    assert verdict.measures["takeovers"] == 2
