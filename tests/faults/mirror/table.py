"""Scenarios of mirrors: runs are killed, stopped and raced while events arrive and both streams are scaled."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.exactly_once.steps import Life, StepLog, StepsState
from pravega_connector.local import LocalPravega
from tests.faults.harness import Scenario, Setup, Table
from tests.faults.processes import await_that
from tests.faults.record import Column, measured
from tests.faults.steps_process import BARRIER_POINTS, POINTS, StepsProcess
from tests.faults.streams import KEYS, Scaling, Source, count
from tests.faults.verdict import Verdict
from tests.interop._java import JavaPeer
from tests.support.jvm import SOON_READY

_WRITE_SECONDS: Final = 0.2
#: Bytes of a transaction, so that a run makes many steps.
_STEP: Final = 20_000
#: Seconds after which a run that has not reached its point is killed: it may be where no step needs the point.
_POINT_SECONDS: Final = 10.0
_TAKEOVER_SECONDS: Final = 120.0
_RUNS: Final = 3


@dataclass(frozen=True)
class MirrorSettings:
    events: int = 100_000
    """Events of the source, at least."""
    kills: int = 20
    """Kills in the scenario of kills."""
    pauses: int = 10
    """Pauses in the scenario of several runs."""


@dataclass
class Trial:
    """A source in one cluster, a destination in another one, and the runs of a mirror. Context manager."""

    client: PravegaClient
    other: PravegaClient
    java: JavaPeer
    """Java's client of the destination."""
    folder: Path
    settings: MirrorSettings
    random: random.Random
    verdict: Verdict = field(default_factory=lambda: Verdict("mirror"))
    _runs: list[StepsProcess] = field(default_factory=list, init=False)
    _log: StepLog | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Create the source."""
        scope = f"mirror{time.time_ns()}"
        self.target = StreamName(scope, "copy")
        self.source = Source(self.client, StreamName(scope, "source"), KEYS)
        self.other.controller.create_scope(scope)
        self.verdict.measures = Counter()

    @contextmanager
    def writing(self, turns: int) -> Iterator[None]:
        """Write events, and scale both streams, while the block runs: about all events in a number of turns."""
        done, rows = threading.Event(), max(1, self.settings.events // (turns * 20 * KEYS)) * KEYS

        def write() -> None:
            while not done.wait(_WRITE_SECONDS):
                self.source.add(self.client, rows)

        writer = threading.Thread(target=write, daemon=True)
        await_that("the destination exists", lambda: self.other.stream_exists(self.target))
        with (
            Scaling(self.client, self.source.stream, self.random) as one,
            Scaling(self.other, self.target, self.random) as two,
        ):
            writer.start()
            try:
                yield
            finally:
                done.set()
                writer.join()
        self.verdict.measures |= {"source scaled": one.count, "destination scaled": two.count}
        assert one.count, "the source was not scaled"
        assert two.count, "the destination was not scaled"
        left = self.settings.events - len(self.source.numbers)
        self.source.add(self.client, max(KEYS, -(-left // KEYS) * KEYS))

    def start(self, *arguments: object, **fault: Any) -> StepsProcess:
        """Start a run, with a fault if one is given."""
        given: list[object] = ["--controller", self.other.config.controller]
        given += ["--source-controller", self.client.config.controller, "--bytes-per-transaction", _STEP, "--quiet"]
        folder = self.folder / f"run-{len(self._runs) + 1}"
        self._runs.append(
            StepsProcess("mirror", [*given, *arguments, self.source.stream, self.target], folder, **fault)
        )
        self.verdict.measures["runs"] += 1
        return self._runs[-1]

    def state(self) -> StepsState:
        """Return the present state of the mirror."""
        if self._log is None:
            name = StreamName(self.target.scope, f"{self.target.stream}-mirror")
            await_that("the mirror has a state", lambda: self.other.stream_exists(name))
            self._log = StepLog(self.other.stores, name, Life("a reader of the state"))
        return self._log.read()

    def leader(self) -> int | None:
        """Return the process of the open step; None without an open step."""
        return next((int(step.note["pid"]) for step in self.state().steps.values()), None)

    def end(self) -> Verdict:
        """Copy the rest, and read the destination with both clients: keys in their order."""
        self.start().succeeds()
        assert self.state().steps == {}
        numbers = self.source.numbers
        events = sorted(self.java.read(self.target), key=lambda event: event.segment)
        found = {
            "Java": [int(event.payload) for event in events],
            "client": [int(event) for event in self.other.read(self.target)],
        }
        for reader, seen in found.items():
            self.verdict.counts[reader] = count(seen, [numbers])
        self.verdict.check_counts()
        measures = self.verdict.measures
        self.verdict.proofs = [f"{measures[what]} {what}" for what in ("kills", "takeovers") if measures[what]]
        return self.verdict

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for run in self._runs:
            run.close()
        if self._log is not None:
            self._log.close()


# ---- kills -----------------------------------------------------------------------------------------------------------


def kills(trial: Trial) -> Verdict:
    """Kill the only run many times, at points and at random moments; then let it end."""
    faults, settings = Counter[str](), trial.settings
    trial.start().succeeds()
    with trial.writing(settings.kills):
        while trial.verdict.measures["kills"] < settings.kills:
            faults[_kill(trial)] += 1
            trial.verdict.measures["kills"] += 1
    trial.verdict.faults = dict(sorted(faults.items()))
    return trial.end()


def _kill(trial: Trial) -> str:
    """Start a run, kill it, and return where."""
    if trial.random.random() < 0.3:
        run, where = trial.start("--follow"), "at random"
        time.sleep(trial.random.uniform(0.0, 2.0))
        run.kill()
    else:
        where = trial.random.choice((*POINTS, *BARRIER_POINTS))
        nth = 1 if where == "after decide" else trial.random.randint(1, 3)
        seconds = trial.random.uniform(0, 0.03)
        run = trial.start("--follow", at=where, nth=nth, action="kill", seconds=seconds)
        if not run.ends_within(_POINT_SECONDS):
            run.kill()
            where = "while it copies"
    run.await_end()
    assert run.killed, f"a run ended with {run.code}: {run.text()}"
    return where


# ---- several runs ----------------------------------------------------------------------------------------------------


def overlaps(trial: Trial) -> Verdict:
    """Three runs of one name: the leader is stopped, and continues when another one has taken over."""
    settings, verdict, runs = trial.settings, trial.verdict, list[StepsProcess]()
    trial.start().succeeds()
    with trial.writing(settings.pauses):
        for _ in range(settings.pauses):
            alive = sum(run.code is None for run in runs)
            runs += [trial.start("--follow", "--takeover-after", 0.5) for _ in range(_RUNS - alive)]
            leader = await_that("one of the runs has a step", partial(_leading, trial, runs), _TAKEOVER_SECONDS)
            leader.signal(signal.SIGSTOP)
            await_that("the leader stops", lambda run=leader: run.stopped)
            await_that("another run takes over", partial(_is_followed, trial, leader), _TAKEOVER_SECONDS)
            verdict.measures["takeovers"] += 1
            leader.signal(signal.SIGCONT)
            if trial.random.random() < 0.3:
                leader.kill()
                leader.await_end()
                verdict.measures["kills"] += 1
    for run in runs:
        if run.code is None:
            run.signal(signal.SIGTERM)
    for run in runs:
        run.await_end()
        assert run.code in (-signal.SIGKILL, 128 + signal.SIGTERM), f"a run ended with {run.code}: {run.text()}"
    verdict.faults = {"stopped": settings.pauses}
    return trial.end()


def _is_followed(trial: Trial, leader: StepsProcess) -> bool:
    return trial.leader() not in (None, leader.pid)


def _leading(trial: Trial, runs: list[StepsProcess]) -> StepsProcess | None:
    leader = trial.leader()
    return next((run for run in runs if run.code is None and run.pid == leader), None)


# ---- the table -------------------------------------------------------------------------------------------------------


class MirrorSetup(Setup):
    """Servers of two clusters, and the Java client of the second one."""

    def open(self) -> None:
        config = self.server()
        self.client = self.stack.enter_context(PravegaClient(config, timeout=60.0))
        second = LocalPravega(heap_mb=1024, cache_mb=512, java_options=SOON_READY)
        other = self.stack.enter_context(second).config
        self.other = self.stack.enter_context(PravegaClient(other, timeout=60.0))
        self.java = self.stack.enter_context(JavaPeer(other.controller, self.folder))

    def play(self, scenario: Scenario, verdict: Verdict) -> None:
        folder, choices = self.new_folder(scenario.name), random.Random(f"{verdict.seed} {scenario.name}")
        with ExitStack() as stack:
            trial = Trial(self.client, self.other, self.java, folder, self.settings, choices, verdict)
            scenario.play(stack.enter_context(trial))
        assert verdict.proofs, "the fault did not happen"


_MEASURES: Final = ("kills", "takeovers", "source scaled", "destination scaled", "runs")
TABLE: Final = Table(
    (
        Scenario("kills", "`kill -9` at points and at random, while events arrive and both streams are scaled", kills),
        Scenario("overlaps", "three runs: the leader stops until another one takes over, and continues", overlaps),
    ),
    MirrorSetup,
    MirrorSettings(),
    tuple(Column(what, measured(what)) for what in _MEASURES),
)
