"""A quick form of each scenario; ``python -m tests.faults ingest`` runs them at length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.faults.ingest.table import VARIANTS, IngestSettings, Trial, kills, kills_kafka, zombies
from tests.interop._java import JavaPeer

pytestmark = pytest.mark.long  # tests/unit/exactly_once explores a crash at each step
Start = Callable[..., Trial]


@pytest.fixture(scope="module")
def client(pravega: LocalPravega) -> Iterator[PravegaClient]:
    with PravegaClient(pravega.config, timeout=60.0) as opened:
        yield opened


@pytest.fixture(scope="module")
def java(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    with JavaPeer(pravega.controller_uri, tmp_path_factory.mktemp("java")) as peer:
        yield peer


@pytest.fixture
def trial(client: PravegaClient, java: JavaPeer, tmp_path: Path, stream_name: StreamName) -> Iterator[Start]:
    with ExitStack() as trials:

        def start(**settings: int) -> Trial:
            wanted = IngestSettings(**settings)
            return trials.enter_context(Trial(client, java, tmp_path, stream_name, wanted, random.Random(1)))

        yield start


@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_again_and_again(trial: Start, variant: str):
    verdict = kills(trial(files=8, samples=500, kills=9), variant, scaled=variant == "count")
    assert not verdict.failures, verdict
    assert verdict.measures["kills"] >= 7
    assert len(verdict.faults) >= 4


def test_woken_up_after_a_takeover(trial: Start):
    verdict = zombies(trial(files=10, samples=800, pauses=3), "count", takeover_after=0.5)
    assert not verdict.failures, verdict
    assert verdict.measures["pauses"] == verdict.measures["takeovers"] == 3


def test_woken_up_when_all_have_stopped(trial: Start):
    # No process makes a newer state then, before one of them continues.
    verdict = zombies(trial(files=10, samples=800, pauses=3), "count", takeover_after=0.5, late=True)
    assert not verdict.failures, verdict
    assert verdict.measures["pauses"] == verdict.measures["takeovers"] == 3


def test_woken_up_after_its_lease(trial: Start):
    verdict = zombies(trial(files=10, samples=800, pauses=1), "file", takeover_after=None)
    assert not verdict.failures, verdict
    assert verdict.measures["pauses"] == 1


def test_killed_while_a_topic_is_ingested(trial: Start):
    verdict = kills_kafka(trial(files=10, samples=200, kills=5))
    assert not verdict.failures, verdict
    assert verdict.measures["kills"] == 5
