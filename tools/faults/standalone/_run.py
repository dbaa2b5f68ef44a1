"""A query on two workers, exactly once from stream to stream; a worker and then the driver are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from tools.faults.exactly_once._cluster import HOSTS, SparkCluster
from tools.faults.standalone._ship import bare_python, ship

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName
from pravega_connector.config import PravegaConfig
from tests.interop._java import JavaPeer
from tools.faults.exactly_once._scene import JOB, KEYS, Follower, Job, Source, await_that

__all__ = ["Outcome", "Settings", "play"]

#: Seconds until a batch, or a part of it, is through: on a busy machine it takes minutes.
_BATCH: Final = 600.0
_STARTED: Final = re.compile(r"Starting task \S+ in stage \S+ \(TID (\d+)\) \(([\d.]+),")
_FINISHED: Final = re.compile(r"(?:Finished|Lost) task \S+ in stage \S+ \(TID (\d+)\)")
#: What Spark says of a task whose executor was lost with its worker.
_LOST: Final = re.compile(
    r"task (\S+ in stage \S+) \(TID (\d+)\) failed because while it was being computed, its executor"
)


@dataclass(frozen=True)
class Settings:
    """How large a run is, and what of it is made elsewhere."""

    rows: int = 1200
    rows_per_batch: int = 200
    pause_ms: int = 30
    """Of a task after each row: a task takes rows_per_batch / 3 of them."""
    kill_worker: bool = True
    kill_driver: bool = True
    python: Path | None = None
    """The cluster's Python; by default one is made of the running environment."""
    artefact: Path | None = None
    """A zip for ``--py-files``, or an archive for ``--archives``."""


@dataclass
class Outcome:
    """What readers found, and how the faults are known to have happened."""

    way: str
    rows: int = 0
    read: dict[str, int] = field(default_factory=dict)
    """Events by reader."""
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    batches: int = 0
    modules: list[str] = field(default_factory=list)
    """The files of this project that the executors have loaded."""
    proofs: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_exact(self) -> bool:
        found = set(self.read.values()) == {self.rows}
        return found and not (self.lost or self.duplicated or self.out_of_order)


def play(config: PravegaConfig, way: str, folder: Path, settings: Settings) -> Outcome:
    """Run the query on a cluster of its own with these faults. Raises AssertionError for one that did not happen."""
    began = time.monotonic()
    outcome = Outcome(way, settings.rows)
    with _Query(config, way, folder, settings) as query:
        _await_work(query.job, query, 1)
        if settings.kill_worker:
            outcome.proofs.append(query.kill_worker(HOSTS[0]))
        if settings.kill_driver:
            outcome.proofs.append(query.kill_driver())
        query.job.succeeds()
        outcome.modules = query.job.answer["modules"]
        outcome.batches = len(query.committed())
        outcome.proofs += query.proofs_of_the_log(settings)
        _count(outcome, query)
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


class _Query:
    """The cluster, the streams, and the application that runs at present. Context manager."""

    def __init__(self, config: PravegaConfig, way: str, folder: Path, settings: Settings) -> None:
        self.folder, self.config, self.client = folder, config, PravegaClient(config, timeout=90.0)
        self.source = Source(self.client, StreamName(f"standalone{time.time_ns()}", "source"), settings.rows)
        self.target = StreamName(self.source.stream.scope, f"target-{uuid.uuid4().hex[:12]}")
        self.client.create_stream(self.target, ScalingPolicy.fixed(3))
        self.follower = Follower(config, self.target)
        python, self._spark = bare_python(folder / "cluster")
        self._shipment = ship(way, folder, settings.python or python, settings.artefact)
        _assert_without_project(settings.python or python, folder)
        self._settings, self._jobs = settings, list[Job]()
        # Not the checkout: what executors have of this project, they have from the shipment.
        self.cluster = SparkCluster(folder, {"PYTHONPATH": ""}, memory="1g", spark=self._spark)

    def __enter__(self) -> Self:
        try:
            self.cluster.__enter__()
        except BaseException:
            self.__exit__()
            raise
        self.submit()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        for job in self._jobs:
            job.kill()
        self.cluster.__exit__(None, None, None)
        self.client.close()

    @property
    def job(self) -> Job:
        return self._jobs[-1]

    def submit(self) -> None:
        """Submit the application: it goes on from the checkpoint, if there is one."""
        spec = {
            "master": self.cluster.master,
            "controller": self.config.controller,
            "source": str(self.source.stream),
            "target": str(self.target),
            "checkpoint": str(self.folder / "checkpoint"),
            "rows_per_batch": self._settings.rows_per_batch,
            "pause_ms": self._settings.pause_ms,
            "keys": KEYS,
            "lease": 120.0,
            "tell_modules": True,
            # On a busy machine the first contact takes longer than a person would wait.
            "client_options": {"timeout_ms": "120000"},
            "conf": {"spark.log.level": "INFO"},
        }
        memory = ["--driver-memory", "1g", "--executor-memory", "700m"]
        submit = [self._spark / "bin" / "spark-submit", "--master", self.cluster.master, *memory]
        environment = {"SPARK_HOME": str(self._spark), "SPARK_LOCAL_IP": "127.0.0.1", **self._shipment.environment}
        command = [*submit, *self._shipment.options, JOB]
        self._jobs.append(Job(self.folder, str(len(self._jobs) + 1), spec, command, environment))

    def kill_worker(self, host: str) -> str:
        """Kill a worker and its executor while a task is theirs; start another worker in its place."""
        batch = _await_work(self.job, self, 1, host)
        killed = self.cluster.kill(host)
        assert len(killed) > 1, f"worker {host} had no executor"
        self.cluster.start_worker(host)
        self.cluster.await_worker(host)
        await_that("the batch of the killed worker is committed", lambda: batch in self.committed(), _BATCH)
        return f"worker {host} killed in batch {batch}: {len(killed)} processes"

    def kill_driver(self) -> str:
        """Kill the application's driver in the middle of a batch, and submit it again."""
        batch = _await_work(self.job, self, 1 + max(self.committed()))
        self.job.signal(signal.SIGKILL)
        self.job.is_killed()
        assert batch not in self.committed(), f"batch {batch} was committed before the driver was killed"
        self.submit()
        return f"driver killed in batch {batch}"

    def begun(self) -> set[int]:
        return self._batches("offsets")

    def committed(self) -> set[int]:
        return self._batches("commits")

    def _batches(self, part: str) -> set[int]:
        folder = self.folder / "checkpoint" / part
        return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.exists() else set()

    def proofs_of_the_log(self, settings: Settings) -> list[str]:
        """What Spark itself says of the faults. Raises AssertionError where it says nothing."""
        proofs = []
        if settings.kill_worker:
            log = self._jobs[0].log.read_text(errors="replace")
            lost = re.search(rf"Lost executor \d+ on {re.escape(HOSTS[0])}", log)
            assert lost, "the driver did not see that the executor was lost"
            ran_on = dict(_STARTED.findall(log))
            tasks = [task for task, number in _LOST.findall(log) if ran_on[number] == HOSTS[0]]
            assert tasks, "no task of the killed executor was lost"
            proofs += [lost.group(), f"task {tasks[0]} was done again"]
        hosts = {host for job in self._jobs for _, host in _STARTED.findall(job.log.read_text(errors="replace"))}
        assert hosts == set(HOSTS), f"tasks ran on {sorted(hosts)} only"
        return proofs


def _assert_without_project(python: Path, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": ""}
    tried = subprocess.run(
        [python, "-c", "import connector"], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert b"No module named 'connector'" in tried.stderr, f"the cluster's Python {python} has this project itself"


def _await_work(job: Job, query: _Query, least: int, host: str | None = None) -> int:
    """Until a task of a batch from that number on is running, on that host: the batch."""
    batches: set[int] = set()

    def works() -> bool:
        nonlocal batches
        assert not job.has_ended, f"the application has ended: {job.error or job.log.read_text()[-2000:]}"
        batches = {batch for batch in query.begun() - query.committed() if batch >= least}
        return bool(batches) and any(host in (None, at) for at in _running(job))

    await_that(f"a task of batch {least} or later runs on {host or 'a worker'}", works, _BATCH)
    return max(batches)


def _running(job: Job) -> list[str]:
    """The hosts of the tasks that run, as the driver's log has it."""
    log = job.log.read_text(errors="replace")
    ended = {*_FINISHED.findall(log), *(number for _, number in _LOST.findall(log))}
    return [host for task, host in _STARTED.findall(log) if task not in ended]


def _count(outcome: Outcome, query: _Query) -> None:
    """Compare what three readers find: the plain client, a reader that followed all the time, and the Java client."""
    with JavaPeer(query.config.controller, query.folder) as java:
        by_java = [bytes(event.payload) for event in java.read(query.target)]
    found = {
        "client.read": list(query.client.read(query.target)),
        "client.follow": query.follower.seen(outcome.rows),
        "Java": by_java,
    }
    outcome.read = {reader: len(events) for reader, events in found.items()}
    for events in found.values():
        numbers = Counter(map(int, events))
        outcome.lost += len(set(query.source.numbers) - numbers.keys())
        outcome.duplicated += sum(count - 1 for count in numbers.values())
    # Java's batch client reads the segments side by side, so it has no order.
    outcome.out_of_order = sum(_out_of_order(found[reader]) for reader in ("client.read", "client.follow"))


def _out_of_order(events: list[bytes]) -> int:
    last: dict[int, int] = defaultdict(lambda: -1)
    wrong = 0
    for number in map(int, events):
        wrong += number < last[number % KEYS]
        last[number % KEYS] = number
    return wrong
