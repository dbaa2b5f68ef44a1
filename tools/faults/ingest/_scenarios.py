"""What is done to ingesters."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.faults.ingest._stage import Ingesters, Run, Verdict, await_that, judge, write_samples

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.errors import ConnectorError
from pravega_connector.exactly_once.steps import StepLog, StepsState
from pravega_connector.ingest.feed import Progress
from pravega_connector.ingest.run import open_steps, state_name
from tests.interop._java import JavaPeer
from tools.faults.ingest._faults import PLACES

__all__ = ["Scene", "kills", "zombies"]

#: Places where a killed process has committed nothing yet.
_BEFORE: Final = tuple(place for place in PLACES if "commit" not in place)
#: Records of a transaction that are not all of a file, roughly.
_STEP: Final = 400
_TAKEOVER_SECONDS: Final = 120.0
VARIANTS: Final = {
    "file": [],
    "count": ["--events-per-transaction", _STEP],
    "length": ["--bytes-per-transaction", 9000],
}


@dataclass
class Scene:
    """One stream, and what is to go into it."""

    client: PravegaClient
    java: JavaPeer
    folder: Path
    target: StreamName
    files: int
    samples: int
    random: random.Random
    _log: StepLog | None = field(default=None, init=False)

    def state(self) -> StepsState:
        """Return the state of the ingestion as it is now."""
        if self._log is None:
            self._log = open_steps(self.client, self.target, state_name(self.target))
        return self._log.read()

    def progress(self) -> list[Progress]:
        """Return the position of each source."""
        return [Progress.from_json(position) for position in self.state().positions.values()]

    def updates(self) -> int:
        """Return the number of updates that the log still has."""
        with self.client.revisioned(state_name(self.target)) as log:
            return sum(1 for _ in log.read_from(log.oldest_revision()))

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def steps(self, variant: str) -> float:
        """Roughly how many transactions are left to be made."""
        done = sum(1.0 if progress.finished else progress.offset / self.samples for progress in self.progress())
        return (self.files - done) * self.samples / (_STEP if variant != "file" else self.samples)

    def arguments(self, variant: str, *more: object) -> list[object]:
        """The command line of an ingester."""
        controller = self.client.config.controller
        given = ["--controller", controller, "--variant", variant, *VARIANTS[variant], "--quiet", *more]
        return [*given, self.folder / "data", self.target]

    def begin(self, name: str) -> Verdict:
        """Write the files and make the stream."""
        write_samples(self.folder / "data", self.files, self.samples)
        self.client.create_stream(self.target, 3)
        return Verdict(name, self.files * self.samples)

    def end(self, verdict: Verdict, began: float) -> Verdict:
        """Read everything by Java: segments in the order of their epochs, events as they lie in them."""
        found = sorted(self.java.read(self.target), key=lambda event: event.segment)
        judge(verdict, (event.payload for event in found), self.files, self.samples)
        assert self.state().steps == {}
        progress = self.progress()
        assert all(one.finished for one in progress)
        assert len(progress) == self.files
        verdict.seconds = round(time.monotonic() - began, 1)
        return verdict


def kills(scene: Scene, ingesters: Ingesters, variant: str, count: int, *, scaled: bool = False) -> Verdict:
    """Kill the only ingester again and again, at places and at random moments; then let it end."""
    verdict = scene.begin(f"kills, {variant}{', scaled' if scaled else ''}")
    began, faults = time.monotonic(), Counter[str]()
    arguments = scene.arguments(variant)
    with _scaling(scene, verdict) if scaled else _nothing():
        while verdict.kills < count:
            run, where = _start_doomed(scene, ingesters, arguments, scene.steps(variant) / (count - verdict.kills))
            verdict.runs += 1
            await_that("an ingester ends", lambda run=run: run.status is not None)
            if not run.killed:
                assert run.wait() == 0, run.text()
                break  # everything is done
            verdict.kills += 1
            faults[where] += 1
        last = ingesters.start(arguments)
        assert last.wait() == 0, last.text()
    verdict.faults = dict(sorted(faults.items()))
    verdict.transactions = scene.updates()
    return scene.end(verdict, began)


def _start_doomed(scene: Scene, ingesters: Ingesters, arguments: list[object], steps_left: float) -> tuple[Run, str]:
    """An ingester that will be killed before it has made more than so many steps, as far as that can be foreseen."""
    if steps_left > 2 and scene.random.random() < 0.4:
        run = ingesters.start(arguments)
        time.sleep(scene.random.uniform(0.0, 0.5))
        run.kill()
        return run, "at random"
    places = [*(PLACES if steps_left > 0.5 else _BEFORE)]
    if not scene.state().steps:
        places.remove("after decide")
    place = scene.random.choice(places)
    nth = scene.random.choice((1, 2)) if steps_left > 2 and place != "after decide" else 1
    run = ingesters.start(arguments, at=place, nth=nth, action="kill", seconds=scene.random.uniform(0, 0.03))
    return run, place


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _scaling(scene: Scene, verdict: Verdict) -> Iterator[None]:
    """Scale the stream again and again while the block runs."""
    done, refusals = threading.Event(), list[str]()

    def scale() -> None:
        pause = 1.0
        while not done.wait(pause):
            parts = scene.random.randint(1, 4)
            ranges = [(part / parts, (part + 1) / parts) for part in range(parts)]
            try:
                current = scene.client.controller.current_segments(scene.target)
                scene.client.controller.scale_stream(scene.target, [each.id for each in current], ranges)
            except ConnectorError as error:  # one at a time
                refusals.append(str(error))
                pause = 0.1
            else:
                verdict.scalings += 1
                pause = 1.0

    thread = threading.Thread(target=scale, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    # A scaling whose answer came too late has happened all the same: each makes an epoch.
    epochs = max(segment.id >> 32 for segment in scene.client.controller.current_segments(scene.target))
    verdict.scalings = max(verdict.scalings, min(epochs, 1))
    assert verdict.scalings, f"the stream was never scaled: {refusals}"


def zombies(
    scene: Scene,
    ingesters: Ingesters,
    variant: str,
    pauses: int,
    *,
    lease: float,
    takeover_after: float | None,
    late: bool = False,
) -> Verdict:
    """Three ingesters; whoever leads is stopped, and wakes up when another one has taken over.

    When ``late``, nobody looks before each has stopped itself and was followed by the next.
    """
    crossed = "a takeover" if takeover_after is not None else "a lease"
    verdict = scene.begin(f"three zombies, {variant}, pauses across {crossed}")
    began, faults = time.monotonic(), Counter[str]()
    suspicion = [] if takeover_after is None else ["--takeover-after", takeover_after]
    arguments = scene.arguments(variant, "--lease", lease, *suspicion)
    runs = [_start_sleeper(scene, ingesters, arguments) for _ in range(3)]
    if late:
        await_that("all ingesters stop", lambda: all(run.stopped for run in runs), _TAKEOVER_SECONDS)
    while verdict.pauses < pauses and (run := _pause_leader(scene, runs)) is not None:
        verdict.pauses += 1
        await_that("another ingester takes over", lambda p=run.pid: _leader(scene) != p, _TAKEOVER_SECONDS)
        verdict.takeovers += 1
        faults[_place(run)] += 1
        run.signal(signal.SIGCONT)
        if verdict.pauses < pauses and len([r for r in runs if r.status is None]) < 3:
            runs.append(_start_sleeper(scene, ingesters, arguments))
    await_that("all ingesters end", lambda: _all_ended(runs))
    for run in runs:
        assert run.wait() == 0, run.text()
    verdict.runs = len(runs)
    verdict.faults = dict(sorted(faults.items()))
    verdict.transactions = scene.updates()
    return scene.end(verdict, began)


def _all_ended(runs: list[Run]) -> bool:
    """Whether all have ended; those that have stopped themselves go on."""
    alive = [run for run in runs if run.status is None]
    for run in alive:
        if run.stopped:
            run.signal(signal.SIGCONT)
    return not alive


def _place(run: Run) -> str:
    return "stopped itself" if run.fired.exists() else "at random"


def _start_sleeper(scene: Scene, ingesters: Ingesters, arguments: list[object]) -> Run:
    """An ingester that stops itself where it hurts, once it leads; or is stopped at random."""
    place = scene.random.choice(("after record", "while writing", "after flush", "after commit"))
    return ingesters.start(arguments, at=place, nth=scene.random.randint(1, 3), action="stop", seconds=0.0)


def _pause_leader(scene: Scene, runs: list[Run]) -> Run | None:
    """One that was stopped while it led; None when all is done.

    Those that stop themselves do so behind a record of theirs. Others may have taken over by now.
    """
    while True:
        alive = {run.pid: run for run in runs if run.status is None}
        if not alive:
            return None
        for run in alive.values():
            if run.stopped:
                return run
        pid = _leader(scene)
        if pid in alive and scene.random.random() < 0.1:
            leader = alive[pid]
            leader.signal(signal.SIGSTOP)
            await_that("the leader stops, or has ended", lambda run=leader: run.stopped or run.status is not None)
            # Meanwhile it may have ended its work: nobody takes that over.
            if leader.status is None and _leader(scene) == leader.pid:
                return leader
            if leader.status is None:
                leader.signal(signal.SIGCONT)
        time.sleep(0.02)


def _leader(scene: Scene) -> int | None:
    """Return the process of the run that has recorded a step; None while there is no step."""
    for step in scene.state().steps.values():
        return int(step.note["pid"])
    return None
