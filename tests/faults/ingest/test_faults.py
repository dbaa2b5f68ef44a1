"""A quick form of each scenario; ``python -m tests.faults.ingest`` runs them at length."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connector.client import PravegaClient
from connector.local import LocalPravega
from connector.wire import StreamName
from tests.faults.ingest._scenarios import VARIANTS, Scene, kills, zombies
from tests.faults.ingest._stage import Ingesters, await_that
from tests.interop._java import JavaPeer
from tests.processes import stat_of

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


def test_woken_up_after_its_lease(scene: Set, ingesters: Ingesters):
    verdict = zombies(scene(10, 800), ingesters, "file", 1, lease=10.0, takeover_after=None)
    assert verdict.ok, verdict
    assert verdict.pauses == 1


def test_servers_that_are_frozen_are_waited_for(
    scene: Set, ingesters: Ingesters, pravega: LocalPravega, client: PravegaClient
):
    """Longer than an error used to take, and than it takes until the log is told."""
    frozen = scene(12, 300)
    verdict = frozen.begin("frozen servers")
    data = frozen.folder / "data"
    later = [path.rename(path.with_suffix(".later")) for path in sorted(data.iterdir())[4:]]
    run = ingesters.start(frozen.arguments("file", "--follow", "--settle", 0))
    await_that("the first files are there", lambda: len(frozen.state().sources) >= 4 and frozen.state().step is None)
    os.kill(pravega.pid, signal.SIGSTOP)
    try:
        assert stat_of(pravega.pid)[0] == "T"
        for path in later:
            path.rename(path.with_suffix(".csv"))
        await_that("the log is told", lambda: "in trouble for" in run.text() or "stands still" in run.text())
        assert run.status is None, run.text()
    finally:
        os.kill(pravega.pid, signal.SIGCONT)
    await_that("all files are there", lambda: len(frozen.state().sources) == 12 and frozen.state().step is None)
    await_that("the log is told", lambda: "goes on after" in run.text())
    run.signal(signal.SIGTERM)
    assert run.wait() == 143, run.text()
    frozen.end(verdict, time.monotonic())
    assert verdict.ok, verdict
