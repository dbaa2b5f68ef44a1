"""Scenarios of the exactly-once sink: where a worker, a driver or Pravega fails, and the result that follows."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from random import Random
from typing import Any, Final

from pravega_connector.client import StreamName
from pravega_connector.exactly_once.batch_commit import Ledger, Outcome, Recovery, ledger_name
from tests.faults.harness import Table
from tests.faults.processes import Outage, await_that
from tests.faults.record import PROOFS, Column, measured
from tests.faults.sink.setup import CLUSTER, LONG_LEASE, SHORT_LEASE, TWO_STORES, SinkScenario, SinkSettings, SinkSetup
from tests.faults.sink.trial import Fault, Job, Trial, fault_environment
from tests.faults.spark_cluster import SparkCluster
from tests.faults.streams import KEYS, Source

Play = Callable[[Trial], None]

_READERS: Final = ("jvm", "python")
_RESTARTS_OF_READERS: Final = 50
_SEED: Final = 7


def _assert_replayed(trial: Trial, *batches: int) -> None:
    assert {*batches} <= {*trial.replayed()}, f"batches {batches} were not replayed: {trial.replayed()}"


# ---- workers ---------------------------------------------------------------------------------------------------------


def _worker(at: str, **more: Any) -> Fault:
    return {"at": at, "action": "kill", "batch": 1, "partition": 1, **more}


def _query_fails(fault: Fault, *, late: bool = False) -> Play:
    def play(trial: Trial) -> None:
        trial.start(fault).fails(trial.worker_error)
        if late:
            trial.outwait_lease()
        trial.start().succeeds()

    return play


def _worker_done(trial: Trial) -> None:
    """Spark may give the worker another task before it dies, and then repeats that task."""
    trial.start(_worker("after message", action="kill-later", partition=0), master="local[2,3]").succeeds()


def _retried(trial: Trial) -> None:
    trial.start(_worker("while writing", nth=2), master="local[2,3]").succeeds()
    tasks = {(line["partition"], line["attempt"]) for line in trial.noted("begun") if line.get("batch") == 1}
    assert {(1, 0), (1, 1)} <= tasks, f"no second attempt of partition 1: {tasks}"


def _speculated(trial: Trial) -> None:
    conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "10ms",
        "spark.executor.memory": "512m",
    }
    fault = _slow(60.0) | {"partition": 0, "attempt": 0}
    with SparkCluster(trial.folder, fault_environment(trial.folder, "1", fault)) as cluster:
        trial.start(fault, master=cluster.master, conf=conf).succeeds()
    tasks = {line["attempt"] for line in trial.noted("begun") if line.get("batch") == 1 and line["partition"] == 0}
    assert len(tasks) > 1, "no attempt ran next to the slow one"


def _slow(seconds: float) -> Fault:
    return {"at": "while writing", "action": "sleep", "seconds": seconds, "batch": 1, "partition": 2}


def _slow_sibling(trial: Trial) -> None:
    """The workers of the finished tasks stay alive, and keep their transactions open."""
    trial.start(_slow(3 * SHORT_LEASE)).succeeds()
    (finished,) = [line for line in trial.noted("begun") if line.get("batch") == 1 and line["partition"] == 0]
    (committed,) = [line for line in trial.noted("commit") if line["batch"] == 1]
    assert committed["time"] - finished["time"] > 2 * SHORT_LEASE, "the slow task was not slow"


def _idle_workers_ended(trial: Trial) -> None:
    """Spark ends workers after a minute without work, and their transactions expire a lease later."""
    trial.start(_slow(110.0)).fails("PRAVEGA-LEASE-EXPIRED")
    trial.start().succeeds()


def _worker_reuse_off(trial: Trial) -> None:
    """No process keeps the transactions of finished tasks."""
    conf = {"spark.python.worker.reuse": "false"}
    trial.start(_slow(150.0), conf=conf).fails("PRAVEGA-LEASE-EXPIRED")
    trial.start(conf=conf).succeeds()


# ---- the driver ------------------------------------------------------------------------------------------------------


def _driver(at: str, **more: Any) -> Fault:
    return {"at": at, "action": "kill-all", "batch": 1, **more}


_AFTER_PILOT: Final = _driver("after COMMIT_PILOT")


def _dies(
    fault: Fault,
    *,
    late: bool = False,
    meanwhile: Callable[[Trial], None] = lambda trial: None,
    again: Fault | None = None,
    **spec: Any,
) -> Play:
    """The whole application dies and is started again: at once, or after the end of every lease.

    ``meanwhile``: something else happens before the restart. ``again``: options of the restart.
    """

    def play(trial: Trial) -> None:
        trial.start(fault, **spec).is_killed()
        meanwhile(trial)
        if late:
            trial.outwait_lease()
        trial.start(**(spec if again is None else again)).succeeds()
        _assert_replayed(trial, 1)

    return play


def _commit_log_deleted(*, late: bool = False) -> Play:
    def play(trial: Trial) -> None:
        trial.start().succeeds()
        trial.forget_batch(2)
        if late:
            trial.outwait_lease()
        trial.start().succeeds()
        _assert_replayed(trial, 2)

    return play


def _two_drivers(at: str, *, late: bool = False) -> Play:
    """The first driver stops, the second does all the work, the first continues."""

    def play(trial: Trial) -> None:
        first = trial.start({"at": at, "action": "stop-all", "batch": 1})
        trial.await_fired(first)
        if late:
            trial.outwait_lease()
        trial.start().succeeds()
        first.resume()
        # A driver that stopped for longer than a commit may last has no time left to learn who took over.
        first.fails("PRAVEGA-OUTCOME-UNKNOWN" if late else "PRAVEGA-FENCED")
        _assert_replayed(trial, 1)

    return play


# ---- scaling and restarted servers -----------------------------------------------------------------------------------


def _scale(trial: Trial) -> None:
    """Three segments become four."""
    before = trial.client.controller.current_segments(trial.target)
    bounds = [(i / 4, (i + 1) / 4) for i in range(4)]
    trial.client.controller.scale_stream(trial.target, [s.id for s in before], bounds)
    assert len(trial.client.controller.current_segments(trial.target)) == 4


def _held(at: str, meanwhile: Callable[[Trial], None], *, spec: Fault | None = None, **more: Any) -> Play:
    """Something happens while the application waits at a point."""

    def play(trial: Trial) -> None:
        job = trial.start({"at": at, "action": "hold", "batch": 1, **more}, **(spec or {}))
        trial.await_fired(job)
        meanwhile(trial)
        trial.go()
        job.succeeds()

    return play


def _restarted(at: str, **more: Any) -> Play:
    # The leases are kept while the servers are down, for as long as a slow machine needs to start them.
    return _held(at, Trial.restart_servers, spec={"client_options": {"timeout_ms": "180000"}}, **more)


# ---- replays that differ ---------------------------------------------------------------------------------------------


def _torn(trial: Trial) -> None:
    """A part is lost, and the replay has other parts: the query stops until an operator accepts the loss."""
    trial.start(_AFTER_PILOT).is_killed()
    trial.outwait_lease()
    error = trial.start(repartition=2).fails("PRAVEGA-TORN-BATCH").error
    trial.reported = sum(int(rows) for rows in re.findall(r"\((\d+) rows, abort", error))
    assert trial.reported, f"the error names no rows: {error}"
    with Ledger(trial.client.stores, ledger_name(trial.target)) as ledger:
        recovery = Recovery(trial.client.stores, trial.target, ledger)
        (finding,) = recovery.survey()
        assert recovery.finish(finding.app.app) is Outcome.TORN
        recovery.resolve(finding.app.app, "accept")
    trial.start(repartition=2).succeeds()


def _newest_removed(trial: Trial) -> None:
    """Spark plans the newest batch again, with rows that came later; then its files are put back."""
    third = len(trial.source.numbers) // 3
    source = Source(trial.client, StreamName(trial.source.stream.scope, trial.target.stream + "-own"), 2 * third)
    trial.sources = [source]
    trial.start(source=str(source.stream)).succeeds()
    newest, files = trial.remove_newest()
    source.add(trial.client, third)
    error = trial.start(source=str(source.stream), rows_per_batch=2 * third).fails("PRAVEGA-REPLAY-DIFFERS").error
    assert f"accept_recorded_batch to {newest} " in error, f"the error does not say how to continue: {error}"
    _assert_replayed(trial, newest)
    for file, content in files.items():
        file.write_bytes(content)
    trial.start(source=str(source.stream)).succeeds()


def _random_rows(at: str) -> Play:
    """The recorded batch is finished, and the replay has other rows: the query stops until it may continue."""

    def play(trial: Trial) -> None:
        trial.start(_driver(at), random=True).is_killed()
        for _ in range(2):
            trial.start(random=True).fails("PRAVEGA-REPLAY-DIFFERS")
        trial.start(random=True, sink_options={"accept_recorded_batch": "1"}).succeeds()
        _assert_replayed(trial, 1)

    return play


def _two_plans(trial: Trial) -> None:
    """The second driver does not see the plan of the first, and makes another one for the same number."""
    first = trial.start({"at": "before PREPARE", "action": "stop-all", "batch": 0})
    trial.await_fired(first)
    trial.remove_newest()
    trial.start(rows_per_batch=len(trial.source.numbers) // 2).succeeds()
    first.resume()
    first.fails("PRAVEGA-REPLAY-DIFFERS")
    _assert_replayed(trial, 0)


# ---- several queries -------------------------------------------------------------------------------------------------


def _two_queries(trial: Trial) -> None:
    """Two queries of one application write to one stream; both are killed with it."""
    stream = StreamName(trial.source.stream.scope, trial.target.stream + "-2")
    other = Source(trial.client, stream, len(trial.source.numbers), trial.source.numbers.stop)
    trial.sources.append(other)
    queries = [{}, {"source": str(other.stream), "checkpoint": str(trial.folder / "checkpoint-2")}]
    _dies(_AFTER_PILOT, queries=queries)(trial)


def _chained(trial: Trial) -> None:
    """Source, Spark, a stream, Spark, the target: each half is killed once."""
    middle = trial.new_stream("middle")
    first: dict[str, Any] = {"target": str(middle), "checkpoint": str(trial.folder / "checkpoint-first")}
    second: dict[str, Any] = {"source": str(middle), "reads_target": True}
    trial.start(_AFTER_PILOT, **first).is_killed()
    (trial.folder / "fired").rename(trial.folder / "fired-first")
    trial.start(_driver("after one commit", nth=2, batch=0), **second).is_killed()
    trial.start(**first).succeeds()
    trial.start(**second).succeeds()
    trial.start(**second).succeeds()  # a run whose first batch is a replay may see an older end of its source
    _assert_replayed(trial, 0, 1)


def _readers_changed(trial: Trial) -> None:
    """Each of 50 runs dies in another batch, and the next one has the other reader."""
    faults, choose = [fault for fault, _ in _DRIVERS.values()], Random(_SEED)
    size = len(trial.source.numbers) // (_RESTARTS_OF_READERS + 1)
    for batch in range(_RESTARTS_OF_READERS):
        fault = choose.choice(faults) | {"batch": batch}
        trial.start(fault, rows_per_batch=size, client_options={"raw_reader": _READERS[batch % 2]}).is_killed()
        (trial.folder / "fired").rename(trial.folder / f"fired-{batch}")
    trial.start(rows_per_batch=size).succeeds()
    trial.proofs.append(f"{_RESTARTS_OF_READERS} kills, the readers in turn")


# ---- several streams -------------------------------------------------------------------------------------------------


def _three_streams(trial: Trial) -> Fault:
    """Return the settings of a query that writes to three streams."""
    return trial.spread_over(trial.source, [trial.target, trial.new_stream("second"), trial.new_stream("third")])


def _streams_differ(trial: Trial) -> None:
    """Assert that the batch is committed in a part of its streams only."""
    counts = trial.committed(1).values()
    assert 0 < sum(map(bool, counts)) < len(counts), f"the fault was not between the commits of streams: {counts}"
    trial.proofs.append(f"committed in {sum(map(bool, counts))} of {len(counts)} streams")


def _streams_die(fault: Fault, *, late: bool = False, between: bool = False) -> Play:
    def play(trial: Trial) -> None:
        checked = _streams_differ if between else (lambda trial: None)
        _dies(fault, late=late, meanwhile=checked, **_three_streams(trial))(trial)

    return play


def _streams_worker_dies(trial: Trial) -> None:
    """Two of its three transactions are begun."""
    spec = _three_streams(trial)
    trial.start(_worker("after begin", nth=2), **spec).fails("Python worker exited unexpectedly")
    trial.start(**spec).succeeds()


def _streams_two_drivers(trial: Trial) -> None:
    spec = _three_streams(trial)
    first = trial.start({"at": "after COMMIT_PILOT", "action": "stop-all", "batch": 1}, **spec)
    trial.await_fired(first)
    _streams_differ(trial)
    trial.start(**spec).succeeds()
    first.resume()
    first.fails("PRAVEGA-FENCED")
    _assert_replayed(trial, 1)


def _sharing_queries(trial: Trial, source: Source, other: Source) -> list[Fault]:
    """Return the settings of two queries of three streams each, which share one stream and the ledger."""
    trial.sources = [source, other]
    first = [trial.target, trial.new_stream("second"), trial.new_stream("shared")]
    second = [first[2], trial.new_stream("fourth"), trial.new_stream("fifth")]
    return [
        trial.spread_over(source, first),
        trial.spread_over(other, second) | {"checkpoint": str(trial.folder / "checkpoint-2")},
    ]


def _own_source(trial: Trial, name: str, rows: int, first: int) -> Source:
    return Source(trial.client, StreamName(trial.target.scope, f"{trial.target.stream}-{name}"), rows, first)


def _streams_shared(trial: Trial) -> None:
    numbers = trial.source.numbers
    other = _own_source(trial, "2", len(numbers), numbers.stop)
    _dies(_AFTER_PILOT, queries=_sharing_queries(trial, trial.source, other))(trial)


def _streams_soak(trial: Trial) -> None:
    """Two queries that share a stream die at random times, until the time is over."""
    random, ends = Random(trial.folder.name), time.monotonic() + _SOAK_SECONDS
    sources = [_own_source(trial, name, KEYS, first) for name, first in (("1", 0), ("2", KEYS * 10**6))]
    spec: Fault = {"queries": _sharing_queries(trial, *sources), "rows_per_batch": 5 * KEYS}
    ended = Counter[str]()
    with nullcontext() if trial.cluster is None else _failing_servers(trial):
        while time.monotonic() < ends:
            for source in sources:
                source.add(trial.client, KEYS * random.randrange(10, 40))
            ended[_killed_at_random(trial, trial.start(**spec), random)] += 1
    trial.start(**spec).succeeds()
    trial.proofs.append(", ".join(f"{count} × {how}" for how, count in sorted(ended.items())))


def _killed_at_random(trial: Trial, job: Job, random: Random) -> str:
    """Kill an application after it has begun a transaction; return how it ended."""
    await_that("the application works", lambda: trial.has_begun(job) or job.has_ended, 300.0)
    time.sleep(random.uniform(0.0, 8.0))
    if not job.has_ended:
        return f"{job.kill()} at a random time"
    if trial.cluster is not None and not trial.has_begun(job):
        # A new query does not wait for a controller that never answered it: its address may be wrong.
        job.fails("PRAVEGA-CONTROLLER-UNAVAILABLE")
        return "no controller at the start"
    job.succeeds()
    return "ended by itself"


@contextmanager
def _failing_servers(trial: Trial) -> Iterator[None]:
    """Kill and pause the servers of a cluster one by one while the block runs, each several times."""
    random, over, happened = Random(trial.folder.name), threading.Event(), Counter[str]()
    cluster, trial.leaves_orphans = trial.cluster, True
    assert cluster is not None

    def fail() -> None:
        while True:
            for name, kill in random.sample(_SERVER_FAULTS, len(_SERVER_FAULTS)):
                if over.wait(random.uniform(2.0, 10.0)):
                    return
                outage = Outage(cluster.processes[name], kill=kill, seconds=random.uniform(1.0, 25.0))
                outage.begin()
                over.wait(outage.seconds)
                outage.end()
                happened[f"{name} {'killed' if kill else 'paused'}"] += 1
                for process in cluster.processes.values():
                    process.start()  # a segment store ends itself when its session has ended
                cluster.await_ready(_READY_SECONDS)

    with ThreadPoolExecutor(1) as pool:
        failing = pool.submit(fail)
        try:
            yield
        finally:
            over.set()
        failing.result()
    wanted = {f"{name} {'killed' if kill else 'paused'}" for name, kill in _SERVER_FAULTS}
    assert happened.keys() == wanted, f"these faults did not happen: {wanted - happened.keys()}"
    trial.proofs.append(", ".join(f"{count} × {what}" for what, count in sorted(happened.items())))


# ---- the table -------------------------------------------------------------------------------------------------------

_WORKERS: Final = {
    "begun": (_worker("after begin"), "its transaction is begun"),
    "writing": (_worker("while writing", nth=2), "some of its rows are written"),
    "flushed": (_worker("after flush"), "all of its rows are flushed"),
    "message": (_worker("after message"), "its message is not sent"),
}
_DRIVERS: Final = {
    "before-prepared": (_driver("before PREPARE"), "all tasks have flushed, nothing is recorded"),
    "in-prepared": (_driver("during PREPARE"), "PREPARED is in flight"),
    "prepared": (_driver("after PREPARE"), "PREPARED is recorded, nothing is committed"),
    "in-pilot": (_driver("during COMMIT_PILOT"), "the pilot's commit is in flight"),
    "pilot": (_AFTER_PILOT, "the pilot is committed, the others are not"),
    "second-of-three": (_driver("after one commit", nth=2), "two of three are committed"),
    "all-committed": (_driver("before RECORD"), "all are committed, COMMITTED is not recorded"),
    "committed": (_driver("after RECORD"), "COMMITTED is recorded, Spark's commit log has nothing"),
}
_STREAMS: Final = {
    "prepared": (_streams_die(_driver("after PREPARE")), "PREPARED is recorded, nothing is committed in any stream"),
    "in-pilot": (_streams_die(_driver("during COMMIT_PILOT")), "the pilot's commit is in flight"),
    "pilot": (_streams_die(_AFTER_PILOT, between=True), "the pilot is committed, in one of three streams"),
    "between": (
        _streams_die(_driver("after one commit", nth=2), between=True),
        "two of three streams have a committed transaction",
    ),
    "each-stream": (_streams_die(_driver("after one commit", nth=3)), "each stream has a committed transaction"),
    "before-last": (_streams_die(_driver("after one commit", nth=8)), "all transactions but one are committed"),
    "all-committed": (_streams_die(_driver("before RECORD")), "all are committed, COMMITTED is not recorded"),
    "committed": (_streams_die(_driver("after RECORD")), "COMMITTED is recorded, Spark's commit log has nothing"),
}
_LATE_STREAMS: Final = {
    "pilot": _streams_die(_AFTER_PILOT, late=True, between=True),
    "between": _streams_die(_driver("after one commit", nth=2), late=True, between=True),
    "before-last": _streams_die(_driver("after one commit", nth=8), late=True),
}
#: Seconds of the scenario with random kills.
_SOAK_SECONDS: Final = 1200.0
#: Servers that fail in the meantime; True if killed.
_SERVER_FAULTS: Final = (
    *((name, True) for name in ("store-1", "store-2", "controller-1", "bookie-1", "zookeeper")),
    *((name, False) for name in ("store-1", "store-2", "controller-1", "bookie-2")),
)
_READY_SECONDS: Final = 300.0
_SECOND: Final = {"before": "before PREPARE", "prepared": "after PREPARE", "pilot": "after COMMIT_PILOT"}
_LATE: Final = "… and everything is down longer than the lease"
#: Name, fault, play; those whose names begin with "late-" have the short lease.
_OTHERS: Final[tuple[tuple[str, str, Play], ...]] = (
    ("worker-done", "a worker dies: its message was sent", _worker_done),
    ("commit-log", "Spark's commit-log entry is deleted", _commit_log_deleted()),
    ("late-commit-log", _LATE, _commit_log_deleted(late=True)),
    ("scaled-in-task", "the target is scaled while tasks write", _held("after begin", _scale, partition=1)),
    ("scaled-in-commit", "the target is scaled before the pilot's commit", _held("before COMMIT_PILOT", _scale)),
    ("scaled-down", "the target is scaled while the driver is down", _dies(_AFTER_PILOT, meanwhile=_scale)),
    ("late-scaled-down", _LATE, _dies(_AFTER_PILOT, meanwhile=_scale, late=True)),
    (
        "other-partitions",
        "the replay has other partitions, nothing is lost",
        _dies(_AFTER_PILOT, again={"repartition": 2}),
    ),
    ("newest-removed", "the checkpoint's newest files are removed: refused, then put back", _newest_removed),
    (
        "random-pilot",
        "the driver dies after the pilot, the replay has other rows: refused, then accepted",
        _random_rows("after COMMIT_PILOT"),
    ),
    ("random-committed", "… after COMMITTED", _random_rows("after RECORD")),
    ("two-plans", "two drivers have other rows for one number: the second is refused", _two_plans),
    ("readers-changed", "the driver dies 50 times, and each restart changes the reader", _readers_changed),
    ("foreach-batch", "the driver dies in foreachBatch, after the pilot", _dies(_AFTER_PILOT, foreach_batch=True)),
    ("two-queries", "two queries write to one stream, and die", _two_queries),
    ("chained", "stream, Spark, stream, Spark, stream; each half is killed", _chained),
)
_RESTARTS: Final = {
    "task": ("while tasks write", _restarted("after begin", partition=1)),
    "prepared": ("after PREPARED", _restarted("after PREPARE")),
    "pilot": ("after the pilot's commit", _restarted("after COMMIT_PILOT")),
    "down": (
        "while the driver is down, after the pilot's commit",
        _dies(_AFTER_PILOT, meanwhile=Trial.restart_servers),
    ),
}


def _scenarios() -> list[SinkScenario]:
    found = []
    for name, (fault, about) in _WORKERS.items():
        play, late = _query_fails(fault), _query_fails(fault, late=True)
        found.append(SinkScenario(f"worker-{name}", f"a worker dies: {about}", play, lease=20.0))
        found.append(SinkScenario(f"late-worker-{name}", f"{_LATE}: {about}", late, lease=SHORT_LEASE))
    found += [
        SinkScenario("task-retry", "a worker dies, and Spark repeats the task", _retried, lease=20.0),
        SinkScenario("speculation", "Spark starts a second attempt of a slow task", _speculated, lease=20.0),
        SinkScenario(
            "slow-sibling", "a task lasts three leases longer than the others", _slow_sibling, lease=SHORT_LEASE
        ),
        SinkScenario(
            "idle-workers",
            "… longer than Spark keeps idle workers",
            _idle_workers_ended,
            lease=SHORT_LEASE,
            by_python=True,
        ),
        SinkScenario(
            "worker-reuse-off",
            "… and the workers of the others have ended",
            _worker_reuse_off,
            lease=60.0,
            by_python=True,
        ),
        SinkScenario("torn", "other partitions, and a part is lost: reported, accepted", _torn, lease=SHORT_LEASE),
    ]
    for name, (fault, about) in _DRIVERS.items():
        found.append(SinkScenario(f"driver-{name}", f"the driver dies: {about}", _dies(fault)))
        found.append(SinkScenario(f"late-{name}", f"{_LATE}: {about}", _dies(fault, late=True), lease=SHORT_LEASE))
    for name, (play, about) in _STREAMS.items():
        found.append(SinkScenario(f"streams-{name}", f"three streams, the driver dies: {about}", play, by_python=True))
    for name, play in _LATE_STREAMS.items():
        found.append(
            SinkScenario(
                f"late-streams-{name}", f"{_LATE}: {_STREAMS[name][1]}", play, lease=SHORT_LEASE, by_python=True
            )
        )
    found += [
        SinkScenario(
            "streams-worker",
            "three streams, a worker dies: two are begun",
            _streams_worker_dies,
            lease=20.0,
            by_python=True,
        ),
        SinkScenario(
            "streams-two-drivers", "three streams, two drivers; the first stops", _streams_two_drivers, by_python=True
        ),
        SinkScenario(
            "streams-shared", "two queries share one of three streams, and die", _streams_shared, by_python=True
        ),
        SinkScenario("streams-soak", "… at random times, for 20 minutes", _streams_soak, by_name=True, by_python=True),
        SinkScenario(
            "streams-cluster",
            "… on a cluster whose servers are killed and paused in turn",
            _streams_soak,
            servers=TWO_STORES,
            by_name=True,
            by_python=True,
        ),
    ]
    for name, at in _SECOND.items():
        about = f"two drivers; the first stops {at}"
        found.append(SinkScenario(f"two-drivers-{name}", about, _two_drivers(at)))
        late = _two_drivers(at, late=True)
        found.append(SinkScenario(f"late-two-drivers-{name}", f"{_LATE}: {about}", late, lease=SHORT_LEASE))
    for name, about, play in _OTHERS:
        found.append(SinkScenario(name, about, play, lease=SHORT_LEASE if name.startswith("late-") else LONG_LEASE))
    for name, (about, play) in _RESTARTS.items():
        killed = f"Pravega is killed and restarted {about}"
        found.append(SinkScenario(f"pravega-{name}", killed, play, servers=CLUSTER))
    return found


TABLE: Final = Table(
    _scenarios(),
    SinkSetup,
    SinkSettings(),
    (Column("reported lost", measured("reported")), Column("left open", measured("left_open")), PROOFS),
    "exactly-once-tables.md kills",
)
