"""Scenarios of exactly-once ingestion: ingesters are killed, stopped and raced while files become events."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.exactly_once.steps import StepLog, StepsState
from pravega_connector.exactly_once.steps.machine import transactions
from pravega_connector.exactly_once.steps.state import is_owed
from pravega_connector.operations.ingest.feed import Progress
from pravega_connector.operations.ingest.run import open_steps, state_name
from tests.faults.harness import Scenario, Setup, Table
from tests.faults.processes import await_that
from tests.faults.record import Column, measured
from tests.faults.steps_process import POINTS, StepsProcess
from tests.faults.streams import Scaling
from tests.faults.verdict import Tally, Verdict
from tests.interop._java import JavaPeer
from tests.support.kafka import kafka_broker

#: Points at which a killed process has committed nothing yet.
_BEFORE_COMMIT: Final = tuple(point for point in POINTS if "commit" not in point)
_PARTITIONS: Final = 3
_PHASES: Final = 5
#: Streams of a scenario with several, and the shortest lease that a server allows, in seconds.
_STREAMS: Final = 3
_SHORT_LEASE: Final = 10.0
_OPEN_SECONDS: Final = 60.0
#: Records of a transaction that has a part of a file, roughly.
_STEP: Final = 400
_TAKEOVER_SECONDS: Final = 120.0
_KAFKA_SECONDS: Final = 15.0
_BIG_SECONDS: Final = 3600.0
_BIG_LINE: Final = 1024
_BIG_KILLS: Final = 3
VARIANTS: Final[dict[str, list[object]]] = {
    "file": [],
    "count": ["--events-per-transaction", _STEP],
    "length": ["--bytes-per-transaction", 9000],
}


@dataclass(frozen=True)
class IngestSettings:
    kills: int = 110
    """Kills in a scenario of kills."""
    pauses: int = 10
    """Pauses in a scenario of zombies."""
    files: int = 50
    samples: int = 1000
    """Records of a file."""
    big_bytes: int = 2 << 30
    """Size of the large file."""


@dataclass
class Trial:
    """A stream, the files that become its events, and the ingesters. Context manager."""

    client: PravegaClient
    java: JavaPeer
    folder: Path
    target: StreamName
    settings: IngestSettings
    random: random.Random
    verdict: Verdict = field(default_factory=lambda: Verdict("ingest"))
    streams: int = 1
    """Number of streams to which the samples go in turn."""
    _log: StepLog | None = field(default=None, init=False)
    _ingesters: list[StepsProcess] = field(default_factory=list, init=False)

    def begin(self) -> None:
        """Write the files and create the stream."""
        folder = self.folder / "data"
        folder.mkdir(parents=True)
        names = ["", *(stream.stream for stream in self.targets[1:])]
        for file in range(self.settings.files):
            lines = "".join(
                f"{file},{sample},{sample * 0.5},{names[sample % self.streams]}\n"
                for sample in range(self.settings.samples)
            )
            (folder / f"samples-{file:05}.csv").write_text("file,sample,value,stream\n" + lines)
        for stream in self.targets:
            self.client.create_stream(stream, 3)
        self.verdict.measures = Counter()

    @property
    def targets(self) -> list[StreamName]:
        """Streams of the samples."""
        target = self.target
        return [target, *(StreamName(target.scope, f"{target.stream}-{n}") for n in range(1, self.streams))]

    def start(self, arguments: Iterable[object], **fault: Any) -> StepsProcess:
        """Start an ingester, with a fault if one is given."""
        self._ingesters.append(
            StepsProcess("ingest", arguments, self.folder / f"run-{len(self._ingesters) + 1}", **fault)
        )
        self.verdict.measures["runs"] += 1
        return self._ingesters[-1]

    def end(self) -> Verdict:
        """Read everything with Java, and check that each file is recorded as finished."""
        self.tally()
        progress = self.progress()
        assert self.state().steps == {}
        assert len(progress) == self.settings.files
        assert all(one.finished for one in progress)
        return self.conclude()

    def tally(self) -> None:
        """Count the events in Java: segments in the order of their epochs, the events of each in its order."""
        tally, streams = Tally(), self.streams
        for number, stream in enumerate(self.targets):
            for event in sorted(self.java.read(stream), key=lambda event: event.segment):
                value = json.loads(event.payload)
                assert value["sample"] % streams == number, f"{event.payload!r} is in {stream}"
                tally.add(f"file {value['file']} in {number}", value["sample"] // streams)
        last = self.settings.samples - 1
        marks = {
            f"file {file} in {number}": (last - number) // streams
            for file in range(self.settings.files)
            for number in range(streams)
        }
        self.verdict.counts["Java"] = tally.take(marks)
        self.verdict.check_counts()

    def conclude(self) -> Verdict:
        measures = self.verdict.measures
        with self.client.revisioned(state_name(self.target)) as log:
            updates = [bytes(value) for _, value in log.read_from(log.oldest_revision())]
        measures["updates"] = len(updates)
        measures["owed"] = sum(b'"owed":' in update for update in updates)
        self.verdict.proofs = [f"{measures[what]} {what}" for what in ("kills", "pauses") if measures[what]]
        return self.verdict

    def state(self) -> StepsState:
        """Return the present state of the ingestion."""
        if self._log is None:
            self._log = open_steps(self.client, self.target, state_name(self.target))
        return self._log.read()

    def progress(self) -> list[Progress]:
        """Return the position of each file."""
        return [Progress.from_json(at) for item, at in self.state().positions.items() if not is_owed(item)]

    def leader(self) -> int | None:
        """Return the process that has recorded a step; None before the first step."""
        return next((int(step.note["pid"]) for step in self.state().steps.values()), None)

    def has_open(self) -> bool:
        """Return True if a transaction of a step is open."""
        status = self.client.controller.transaction_status
        return any(
            status(StreamName.parse(named.stream), named.id) is TransactionStatus.OPEN
            for step in self.state().steps.values()
            for named in transactions(step)
        )

    def steps_left(self, variant: str) -> float:
        """Return the number of transactions that are missing, roughly."""
        files, samples = self.settings.files, self.settings.samples
        done = sum(1.0 if progress.finished else progress.offset / samples for progress in self.progress())
        return (files - done) * samples / (_STEP if variant != "file" else samples)

    def arguments(self, variant: str, *more: object) -> list[object]:
        """Return the command line of an ingester."""
        controller = self.client.config.controller
        given = ["--controller", controller, "--variant", variant, *VARIANTS[variant], "--quiet", *more]
        given += ["--target-column", "stream"] if self.streams > 1 else []
        return [*given, self.folder / "data", self.target]

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for ingester in self._ingesters:
            ingester.close()
        if self._log is not None:
            self._log.close()


# ---- kills -----------------------------------------------------------------------------------------------------------


def kills(trial: Trial, variant: str, *, scaled: bool = False, streams: int = 1) -> Verdict:
    """Kill the only ingester many times, at points and at random moments; then let it end.

    With several streams, every third kill is between the commits of a step, and the leases of its other transactions
    end before the next run.
    """
    trial.streams = streams
    trial.begin()
    verdict, faults, count = trial.verdict, Counter[str](), trial.settings.kills
    arguments = trial.arguments(variant, *(["--lease", _SHORT_LEASE] if streams > 1 else []))
    with _scaling(trial) if scaled else nullcontext():
        while verdict.measures["kills"] < count:
            steps = trial.steps_left(variant) / (count - verdict.measures["kills"])
            if between := streams > 1 and verdict.measures["kills"] % 3 == 0:
                run, where = (
                    trial.start(arguments, at="after commit", nth=1, action="kill", seconds=0.0),
                    "between commits",
                )
            else:
                run, where = _start_doomed(trial, arguments, steps)
            run.await_end()
            if not run.killed:
                run.succeeds()
                break  # everything is done
            verdict.measures["kills"] += 1
            faults[where] += 1
            if between:
                await_that("no transaction is open", lambda: not trial.has_open(), _OPEN_SECONDS)
        trial.start(arguments).succeeds()
    verdict.faults = dict(sorted(faults.items()))
    verdict = trial.end()
    assert streams == 1 or verdict.measures["owed"], "no part was written again"
    return verdict


def _start_doomed(trial: Trial, arguments: list[object], steps: float) -> tuple[StepsProcess, str]:
    """Start an ingester that is killed before it has made about `steps` steps; return it and the point."""
    if steps > 2 and trial.random.random() < 0.4:
        run = trial.start(arguments)
        time.sleep(trial.random.uniform(0.0, 0.5))
        run.kill()
        return run, "at random"
    points = [*(POINTS if steps > 0.5 else _BEFORE_COMMIT)]
    if not trial.state().steps:
        points.remove("after decide")
    point = trial.random.choice(points)
    nth = trial.random.choice((1, 2)) if steps > 2 and point != "after decide" else 1
    return trial.start(arguments, at=point, nth=nth, action="kill", seconds=trial.random.uniform(0, 0.03)), point


@contextmanager
def _scaling(trial: Trial) -> Iterator[None]:
    """Scale the stream repeatedly while the block runs."""
    with Scaling(trial.client, trial.target, trial.random) as scaling:
        yield
    trial.verdict.measures["scalings"] = scaling.count


# ---- zombies ---------------------------------------------------------------------------------------------------------


def zombies(
    trial: Trial, variant: str, *, lease: float = 10.0, takeover_after: float | None, late: bool = False
) -> Verdict:
    """Three ingesters: the leader is stopped, and continues when another one has taken over.

    ``late``: none continues before each has stopped itself and was followed by the next.
    """
    trial.begin()
    verdict, faults, pauses = trial.verdict, Counter[str](), trial.settings.pauses
    suspicion = [] if takeover_after is None else ["--takeover-after", takeover_after]
    arguments = trial.arguments(variant, "--lease", lease, *suspicion)
    runs = [_start_sleeper(trial, arguments) for _ in range(3)]
    if late:
        await_that("all ingesters stop", lambda: all(run.stopped for run in runs), _TAKEOVER_SECONDS)
    while verdict.measures["pauses"] < pauses and (run := _pause_leader(trial, runs)) is not None:
        verdict.measures["pauses"] += 1
        await_that("another ingester takes over", lambda p=run.pid: trial.leader() != p, _TAKEOVER_SECONDS)
        verdict.measures["takeovers"] += 1
        faults["stopped itself" if run.fired else "at random"] += 1
        run.signal(signal.SIGCONT)
        if verdict.measures["pauses"] < pauses and len([r for r in runs if r.code is None]) < 3:
            runs.append(_start_sleeper(trial, arguments))
    await_that("all ingesters end", lambda: _all_ended(runs), 300.0)
    for run in runs:
        run.succeeds()
    verdict.faults = dict(sorted(faults.items()))
    return trial.end()


def _all_ended(runs: list[StepsProcess]) -> bool:
    """Return True if all have ended; let those continue that have stopped themselves."""
    alive = [run for run in runs if run.code is None]
    for run in alive:
        if run.stopped:
            run.signal(signal.SIGCONT)
    return not alive


def _start_sleeper(trial: Trial, arguments: list[object]) -> StepsProcess:
    """Start an ingester that stops itself at a critical point after it has become the leader."""
    point = trial.random.choice(("after record", "while writing", "after flush", "after commit"))
    return trial.start(arguments, at=point, nth=trial.random.randint(1, 3), action="stop", seconds=0.0)


def _pause_leader(trial: Trial, runs: list[StepsProcess]) -> StepsProcess | None:
    """Return an ingester that was stopped while it was the leader; None when all work is done.

    An ingester stops itself after it has recorded a step. Another one may have taken over since.
    """
    while True:
        alive = {run.pid: run for run in runs if run.code is None}
        if not alive:
            return None
        pid = trial.leader()
        # If all have stopped, only one that is not the leader any more can continue and be taken over.
        if stopped := [run for run in alive.values() if run.stopped]:
            return min(stopped, key=lambda run: run.pid == pid)
        if pid in alive and trial.random.random() < 0.1:
            leader = alive[pid]
            leader.signal(signal.SIGSTOP)
            await_that("the leader stops, or has ended", lambda run=leader: run.stopped or run.code is not None)
            # It may have ended its work before the signal: then there is nothing to take over.
            if leader.code is None and trial.leader() == leader.pid:
                return leader
            if leader.code is None:
                leader.signal(signal.SIGCONT)
        time.sleep(0.02)


# ---- Kafka -----------------------------------------------------------------------------------------------------------


def kills_kafka(trial: Trial) -> Verdict:
    """Kill the ingester of a topic many times, while records arrive, and topic and stream get more parts.

    A file is a key, and its samples are the records of the key. The keys are written in phases, each after partitions
    were added, and in a part for each kill.
    """
    verdict, faults, settings = trial.verdict, Counter[str](), trial.settings
    verdict.measures, topic = Counter(), trial.target.stream
    assert settings.files % _PHASES == settings.kills % _PHASES == 0
    trial.client.create_stream(trial.target, 3)
    with kafka_broker() as broker:
        broker.create(topic, _PARTITIONS)
        given = ["--controller", trial.client.config.controller, "--quiet", "--events-per-transaction", _STEP]
        arguments: list[object] = [*given, broker.url(topic), trial.target]
        with _scaling(trial):
            for kill in range(settings.kills):
                phase, part = divmod(kill, settings.kills // _PHASES)
                if phase and not part:
                    verdict.measures["added partitions"] += 2
                    broker.add_partitions(topic, _PARTITIONS + verdict.measures["added partitions"])
                records = _part(phase, part, settings, _PARTITIONS + verdict.measures["added partitions"])
                config = {"enable.idempotence": True}
                with ThreadPoolExecutor(1) as pool:
                    written = pool.submit(broker.write, topic, records, **config)
                    run, where = _start_following(trial, [*arguments, "--follow"])
                    run.await_end()
                written.result()
                assert run.killed, f"an ingester ended with {run.code}: {run.text()}"
                verdict.measures["kills"] += 1
                faults[where] += 1
            trial.start(arguments).succeeds()
    verdict.faults = dict(sorted(faults.items()))
    trial.tally()
    assert trial.state().steps == {}
    taken = sum(one.offset for one in trial.progress())
    assert taken == settings.files * settings.samples, f"{taken} records were taken: {verdict}"
    return trial.conclude()


def _part(phase: int, part: int, settings: IngestSettings, partitions: int) -> Iterator[dict[str, Any]]:
    """Yield the records of one kill, round-robin over the keys of a phase. A key has one partition."""
    keys, parts = settings.files // _PHASES, settings.kills // _PHASES
    for number in range(part * keys * settings.samples // parts, (part + 1) * keys * settings.samples // parts):
        file, sample = phase * keys + number % keys, number // keys
        value = json.dumps({"file": file, "sample": sample})
        yield {"key": str(file), "value": value, "partition": file % partitions}


def _start_following(trial: Trial, arguments: list[object]) -> tuple[StepsProcess, str]:
    """Start an ingester that is killed at a point, at random, or while it waits; return it and the point."""
    if trial.random.random() < 0.4:
        run = trial.start(arguments)
        time.sleep(trial.random.uniform(0.0, 3.0))
        run.kill()
        return run, "at random"
    point = trial.random.choice([point for point in POINTS if point != "after decide"])
    nth = trial.random.randint(1, 5)
    run = trial.start(arguments, at=point, nth=nth, action="kill", seconds=trial.random.uniform(0, 0.03))
    if run.ends_within(_KAFKA_SECONDS):
        return run, point
    run.kill()
    return run, "while it waits"  # for records


# ---- one large file --------------------------------------------------------------------------------------------------


def _big(trial: Trial) -> None:
    """Ingest a large file with 100,000 lines a transaction at most, killed three times, and measure the memory."""
    size, measures = trial.settings.big_bytes, Counter[str]()
    trial.verdict.measures = measures
    count = size // _BIG_LINE
    (trial.folder / "data").mkdir()
    expected = _write_lines(trial.folder / "data" / "large.txt", count)
    trial.client.create_stream(trial.target, 1)
    arguments = trial.arguments("count")
    arguments[arguments.index("--events-per-transaction") + 1] = min(100_000, count // 20)
    for kill in range(1, _BIG_KILLS + 2):
        run, wanted = trial.start(arguments), kill * count // (_BIG_KILLS + 1)

        def advanced(run: StepsProcess = run, wanted: int = wanted, last: bool = kill > _BIG_KILLS) -> bool:
            measures["peak memory, MiB"] = max(measures["peak memory, MiB"], run.peak_memory() >> 20)
            return run.code is not None if last else sum(one.offset for one in trial.progress()) >= wanted

        await_that("the ingester advances", advanced, _BIG_SECONDS)
        if kill <= _BIG_KILLS:
            run.kill()
            run.await_end()
            measures["kills"] += run.killed
    run.succeeds()
    assert measures["kills"] == _BIG_KILLS, f"only {measures['kills']} kills"
    read, found = 0, hashlib.blake2b()
    for event in trial.client.read(trial.target):
        read += 1
        found.update(event)
    lost, repeated = max(0, count - read), max(0, read - count)
    wrong = int(found.hexdigest() != expected)
    trial.verdict.counts["client"] = {"events": read, "lost": lost, "duplicated": repeated, "out_of_order": wrong}
    trial.verdict.check_counts()
    trial.conclude()


def _write_lines(path: Path, count: int) -> str:
    """Write numbered lines; return the digest of all of them."""
    digest = hashlib.blake2b()
    with path.open("wb") as out:
        for number in range(count):
            line = b"%012d " % number + b"x" * (_BIG_LINE - 14)
            digest.update(line)
            out.write(line + b"\n")
    return digest.hexdigest()


# ---- the table -------------------------------------------------------------------------------------------------------


class IngestSetup(Setup):
    """A server and the Java client."""

    def open(self) -> None:
        config = self.server()
        self.client = self.stack.enter_context(PravegaClient(config, timeout=60.0))
        self.java = self.stack.enter_context(JavaPeer(config.controller, self.folder))
        self._scope = f"faults{time.time_ns()}"

    def play(self, scenario: Scenario, verdict: Verdict) -> None:
        folder = self.new_folder(scenario.name)
        choices = random.Random(f"{verdict.seed} {scenario.name}")
        target = StreamName(self._scope, f"ingest{time.time_ns()}")
        with Trial(self.client, self.java, folder, target, self.settings, choices, verdict) as trial:
            scenario.play(trial)
        assert verdict.proofs, "the fault did not happen"


def _scenarios() -> Iterator[Scenario]:
    for variant in VARIANTS:
        yield Scenario(f"kills-{variant}", "`kill -9` at points and at random", partial(kills, variant=variant))
    for variant in VARIANTS:
        play = partial(kills, variant=variant, scaled=True)
        yield Scenario(f"scaled-{variant}", "the same while the stream is scaled", play)
    for variant in VARIANTS:
        play = partial(zombies, variant=variant, takeover_after=1.0)
        yield Scenario(f"suspected-{variant}", "the leader stops until another one suspects it", play)
    for variant in VARIANTS:
        play = partial(kills, variant=variant, streams=_STREAMS)
        yield Scenario(f"streams-{variant}", "`kill -9` of an ingester into three streams", play)
    expired = partial(zombies, variant="count", takeover_after=None)
    yield Scenario("expired-count", "the leader stops until its lease ends", expired)
    about = "`kill -9` while records arrive in a Kafka topic, and topic and stream get more parts"
    yield Scenario("kills-kafka", about, kills_kafka)
    yield Scenario("big-count", "`kill -9` in the middle of a large file", _big)


TABLE: Final = Table(
    tuple(_scenarios()),
    IngestSetup,
    IngestSettings(),
    tuple(
        Column(what, measured(what)) for what in ("kills", "pauses", "takeovers", "scalings", "owed", "runs", "updates")
    ),
)
