"""A quick form of each scenario; ``python -m tools.faults.ingest`` runs them at length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.interop._java import JavaPeer
from tools.faults.ingest._scenarios import VARIANTS, Scene, kills, zombies
from tools.faults.ingest._stage import Ingesters

Set = Callable[[int, int], Scene]


@pytest.fixture(scope="module")
def client(pravega: LocalPravega) -> Iterator[PravegaClient]:
    with PravegaClient(pravega.config, timeout=60.0) as opened:
        yield opened


@pytest.fixture(scope="module")
def java(pravega: LocalPravega, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPeer]:
    with JavaPeer(pravega.controller_uri, tmp_path_factory.mktemp("java")) as peer:
        yield peer


@pytest.fixture(scope="module")
def ingesters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingesters]:
    with Ingesters(tmp_path_factory.mktemp("ingesters")) as started:
        yield started


@pytest.fixture
def scene(client: PravegaClient, java: JavaPeer, tmp_path: Path, stream_name: StreamName) -> Iterator[Set]:
    made: list[Scene] = []

    def make(files: int, samples: int) -> Scene:
        made.append(Scene(client, java, tmp_path, stream_name, files, samples, random.Random(1)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_again_and_again(scene: Set, ingesters: Ingesters, variant: str):
    verdict = kills(scene(8, 500), ingesters, variant, 9, scaled=variant == "count")
    assert verdict.ok, verdict
    assert verdict.kills >= 7
    assert len(verdict.faults) >= 4


def test_woken_up_after_a_takeover(scene: Set, ingesters: Ingesters):
    verdict = zombies(scene(10, 800), ingesters, "count", 3, lease=10.0, takeover_after=0.5)
    assert verdict.ok, verdict
    assert verdict.pauses == verdict.takeovers == 3


@pytest.mark.long
def test_woken_up_when_all_have_stopped(scene: Set, ingesters: Ingesters):
    # Nobody makes a newer state then, before one of them goes on.
    verdict = zombies(scene(10, 800), ingesters, "count", 3, lease=10.0, takeover_after=0.5, late=True)
    assert verdict.ok, verdict
    assert verdict.pauses == verdict.takeovers == 3


@pytest.mark.long
def test_woken_up_after_its_lease(scene: Set, ingesters: Ingesters):
    verdict = zombies(scene(10, 800), ingesters, "file", 1, lease=10.0, takeover_after=None)
    assert verdict.ok, verdict
    assert verdict.pauses == 1
