"""The points of the matrix: what fails where, and what is to come of it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tools.faults.exactly_once._cluster import SparkCluster

from pravega_connector.client import StreamName
from pravega_connector.exactly_once.batches import Ledger, Outcome, Recovery, ledger_name
from tools.faults.exactly_once._scene import Fault, Scene, Source, application_environment

__all__ = ["POINTS", "Point"]

#: Seconds. Long enough for a restart, so that what is open stays so; and the shortest that servers allow.
_LONG: Final = 120.0
_SHORT: Final = 10.0


@dataclass(frozen=True)
class Point:
    """One way to fail."""

    name: str
    about: str
    play: Callable[[Scene], None]
    """Runs the applications, and asserts how they end."""
    lease: float = _LONG
    restarts: bool = False
    """Whether Pravega itself is restarted, which the standalone server cannot be."""


# ---- workers ---------------------------------------------------------------------------------------------------------


def _worker(at: str, **more: Any) -> Fault:
    return {"at": at, "action": "kill", "batch": 1, "partition": 1, **more}


def _query_fails(fault: Fault, *, late: bool = False) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.start(fault).fails("Python worker exited unexpectedly")
        if late:
            scene.outwait_lease()
        scene.start().succeeds()

    return play


def _query_goes_on(fault: Fault, **spec: Any) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.start(fault, **spec).succeeds()

    return play


def _retried(scene: Scene) -> None:
    scene.start(_worker("while writing", nth=2), master="local[2,3]").succeeds()
    tasks = {(line["partition"], line["attempt"]) for line in scene.told("begun") if line.get("batch") == 1}
    assert {(1, 0), (1, 1)} <= tasks, f"no second attempt of partition 1: {tasks}"


def _speculated(scene: Scene) -> None:
    conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.minTaskRuntime": "10ms",
        "spark.executor.memory": "512m",
    }
    fault = {"at": "while writing", "action": "sleep", "seconds": 60.0, "batch": 1, "partition": 0, "attempt": 0}
    with SparkCluster(scene.folder, application_environment(scene.folder, "1", fault)) as cluster:
        scene.start(fault, master=cluster.master, conf=conf).succeeds()
    tasks = {line["attempt"] for line in scene.told("begun") if line.get("batch") == 1 and line["partition"] == 0}
    assert len(tasks) > 1, "no attempt ran beside the slow one"


def _slow_sibling(scene: Scene) -> None:
    """The workers of the finished tasks live on, and keep their transactions open."""
    scene.start(_slow(3 * _SHORT)).succeeds()
    (finished,) = [line for line in scene.told("begun") if line.get("batch") == 1 and line["partition"] == 0]
    (committed,) = [line for line in scene.told("commit") if line["batch"] == 1]
    assert committed["time"] - finished["time"] > 2 * _SHORT, "the slow task was not slow"


def _idle_workers_ended(scene: Scene) -> None:
    """Spark ends workers after a minute without work, and the leases that they kept end a lease later."""
    scene.start(_slow(110.0)).fails("PRAVEGA-LEASE-EXPIRED")
    scene.start().succeeds()


def _worker_reuse_off(scene: Scene) -> None:
    """Nobody is left to keep the transactions of finished tasks."""
    conf = {"spark.python.worker.reuse": "false"}
    scene.start(_slow(150.0), conf=conf).fails("PRAVEGA-LEASE-EXPIRED")
    scene.start(conf=conf).succeeds()


def _slow(seconds: float) -> Fault:
    return {"at": "while writing", "action": "sleep", "seconds": seconds, "batch": 1, "partition": 2}


_WORKER: Final = {
    "begun": (_worker("after begin"), "its transaction is begun"),
    "writing": (_worker("while writing", nth=2), "some of its rows are written"),
    "flushed": (_worker("after flush"), "all of its rows are flushed"),
    "message": (_worker("after message"), "its message is not sent"),
}


# ---- the driver ------------------------------------------------------------------------------------------------------


def _driver(at: str, **more: Any) -> Fault:
    return {"at": at, "action": "kill-all", "batch": 1, **more}


def _dies(fault: Fault, *, late: bool = False, **spec: Any) -> Callable[[Scene], None]:
    """The application dies as a whole, and is started again: at once, or when every lease has ended."""

    def play(scene: Scene) -> None:
        scene.start(fault, **spec).is_killed()
        if late:
            scene.outwait_lease()
        scene.start(**spec).succeeds()
        assert 1 in scene.replayed(), "batch 1 was not replayed"

    return play


_DRIVER: Final = {
    "before-prepared": (_driver("before PREPARE"), "all tasks have flushed, nothing is recorded"),
    "in-prepared": (_driver("during PREPARE"), "PREPARED is on its way"),
    "prepared": (_driver("after PREPARE"), "PREPARED is recorded, nothing is committed"),
    "in-pilot": (_driver("during COMMIT_PILOT"), "the pilot's commit is on its way"),
    "pilot": (_driver("after COMMIT_PILOT"), "the pilot is committed, the others are not"),
    "second-of-three": (_driver("after one commit", nth=2), "two of three are committed"),
    "all-committed": (_driver("before RECORD"), "all are committed, COMMITTED is not recorded"),
    "committed": (_driver("after RECORD"), "COMMITTED is recorded, Spark's commit log has nothing"),
}


def _commit_log_deleted(scene: Scene, *, late: bool = False) -> None:
    scene.start().succeeds()
    scene.forget_batch(2)
    if late:
        scene.outwait_lease()
    scene.start().succeeds()
    if 2 in scene.replayed():
        scene.add_proof("commits/2 deleted, batch 2 seen twice")


def _two_drivers(at: str, *, late: bool = False) -> Callable[[Scene], None]:
    """The first is stopped, the second does all the work, the first goes on."""

    def play(scene: Scene) -> None:
        first = scene.start({"at": at, "action": "stop-all", "batch": 1})
        scene.await_fired(first)
        if late:
            scene.outwait_lease()
        scene.start().succeeds()
        first.signal(signal.SIGCONT)
        # A driver that slept for longer than a commit may take has no time left to learn who has taken over.
        first.fails("PRAVEGA-OUTCOME-UNKNOWN" if late else "PRAVEGA-FENCED")
        assert 1 in scene.replayed(), "batch 1 was not done by both"

    return play


# ---- in between ------------------------------------------------------------------------------------------------------


def _scale(scene: Scene) -> None:
    """Three segments become four."""
    before = scene.client.controller.current_segments(scene.target)
    bounds = [(i / 4, (i + 1) / 4) for i in range(4)]
    scene.client.controller.scale_stream(scene.target, [s.id for s in before], bounds)
    assert len(scene.client.controller.current_segments(scene.target)) == 4


def _scaled(at: str, **more: Any) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        job = scene.start({"at": at, "action": "hold", "batch": 1, **more})
        scene.await_fired(job)
        _scale(scene)
        scene.go()
        job.succeeds()

    return play


def _scaled_while_down(scene: Scene, *, late: bool = False) -> None:
    """A part of the batch is in the old segments, the rest is committed, or written again, behind the scaling."""
    scene.start(_driver("after COMMIT_PILOT")).is_killed()
    _scale(scene)
    if late:
        scene.outwait_lease()
    scene.start().succeeds()
    assert 1 in scene.replayed(), "batch 1 was not replayed"


def _pravega_restarted(at: str, **more: Any) -> Callable[[Scene], None]:
    """Controller and segment store are killed while the application waits, and started again."""

    def play(scene: Scene) -> None:
        # The leases are kept while the servers are away, for as long as a slow machine takes to start them.
        patient = {"timeout_ms": "180000"}
        job = scene.start({"at": at, "action": "hold", "batch": 1, **more}, client_options=patient)
        scene.await_fired(job)
        assert scene.restart is not None
        controller, store = scene.restart()
        scene.add_proof(f"controller {controller} and store {store} killed")
        scene.go()
        job.succeeds()

    return play


def _pravega_restarted_while_down(scene: Scene) -> None:
    scene.start(_driver("after COMMIT_PILOT")).is_killed()
    assert scene.restart is not None
    controller, store = scene.restart()
    scene.add_proof(f"controller {controller} and store {store} killed")
    scene.start().succeeds()
    assert 1 in scene.replayed(), "batch 1 was not replayed"


def _other_partitions(scene: Scene) -> None:
    """What was recorded is still there: it is the batch, and the replay's rows are dropped."""
    scene.start(_driver("after COMMIT_PILOT")).is_killed()
    scene.start(repartition=2).succeeds()
    assert 1 in scene.replayed(), "batch 1 was not replayed"


def _torn(scene: Scene) -> None:
    """A part is lost, and the replay has its rows elsewhere: the query stops, until an operator accepts the loss."""
    scene.start(_driver("after COMMIT_PILOT")).is_killed()
    scene.outwait_lease()
    error = scene.start(repartition=2).fails("PRAVEGA-TORN-BATCH").error
    scene.reported = sum(int(rows) for rows in re.findall(r"\((\d+) rows, abort", error))
    assert scene.reported, f"the error names no rows: {error}"
    with Ledger(scene.client, ledger_name(scene.target)) as ledger:
        recovery = Recovery(scene.client, scene.target, ledger)
        (finding,) = recovery.survey()
        assert recovery.finish(finding.app.app) is Outcome.TORN
        recovery.resolve(finding.app.app, "accept")
    scene.start(repartition=2).succeeds()


def _newest_removed(scene: Scene) -> None:
    """Spark plans the newest batch anew, with rows that came later; then its files are put back."""
    third = len(scene.source.numbers) // 3
    source = Source(scene.client, StreamName(scene.source.stream.scope, scene.target.stream + "-own"), 2 * third)
    scene.start(source=str(source.stream)).succeeds()
    newest, files = scene.remove_newest()
    source.add(scene.client, third)
    scene.expected = set(source.numbers)
    error = scene.start(source=str(source.stream), rows_per_batch=2 * third).fails("PRAVEGA-REPLAY-DIFFERS").error
    assert f"accept_recorded_batch to {newest} " in error, f"the error does not tell how to go on: {error}"
    assert newest in scene.replayed(), f"batch {newest} was not planned anew"
    for file, content in files.items():
        file.write_bytes(content)
    scene.start(source=str(source.stream)).succeeds()


def _random_rows(at: str) -> Callable[[Scene], None]:
    """What was recorded is finished, and the replay's rows are others: the query stops, until it may go on."""

    def play(scene: Scene) -> None:
        scene.start(_driver(at), random=True).is_killed()
        for _ in range(2):
            scene.start(random=True).fails("PRAVEGA-REPLAY-DIFFERS")
        scene.start(random=True, sink_options={"accept_recorded_batch": "1"}).succeeds()
        assert 1 in scene.replayed(), "batch 1 was not replayed"

    return play


def _two_plans(scene: Scene) -> None:
    """The second driver does not see the first one's plan, and makes another for the same number."""
    first = scene.start({"at": "before PREPARE", "action": "stop-all", "batch": 0})
    scene.await_fired(first)
    scene.remove_newest()
    scene.start(rows_per_batch=len(scene.source.numbers) // 2).succeeds()
    first.signal(signal.SIGCONT)
    first.fails("PRAVEGA-REPLAY-DIFFERS")
    assert 0 in scene.replayed(), "batch 0 was not done by both"


def _foreach_batch(fault: Fault) -> Callable[[Scene], None]:
    return _dies(fault, foreach_batch=True)


def _two_queries(scene: Scene) -> None:
    """Two queries of one application write to one stream; both are killed with it."""
    scope = scene.source.stream.scope
    first = scene.source.numbers.stop
    other = Source(scene.client, StreamName(scope, scene.target.stream + "-2"), len(scene.source.numbers), first)
    scene.expected |= set(other.numbers)
    queries = [{}, {"source": str(other.stream), "checkpoint": str(scene.folder / "checkpoint-2")}]
    scene.start(_driver("after COMMIT_PILOT"), queries=queries).is_killed()
    scene.start(queries=queries).succeeds()
    assert 1 in scene.replayed(), "batch 1 was not replayed"


def _chained(scene: Scene) -> None:
    """Source, Spark, a stream, Spark, the target: each half is killed once."""
    middle = scene.new_stream("middle")
    first: dict[str, Any] = {"target": str(middle), "checkpoint": str(scene.folder / "checkpoint-first")}
    second: dict[str, Any] = {"source": str(middle)}
    scene.start(_driver("after COMMIT_PILOT"), **first).is_killed()
    (scene.folder / "fired").rename(scene.folder / "fired-first")
    scene.start(_driver("after one commit", nth=2, batch=0), **second).is_killed()
    scene.start(**first).succeeds()
    scene.start(**second).succeeds()
    scene.start(**second).succeeds()  # a run whose first batch is a replay may see an older end of its source
    assert {0, 1} <= set(scene.replayed()), "a batch was not replayed"


def _all_points() -> dict[str, Point]:
    points = []
    for name, (fault, about) in _WORKER.items():
        points.append(Point(f"worker-{name}", f"a worker dies: {about}", _query_fails(fault), 20.0))
        points.append(
            Point(
                f"late-worker-{name}",
                f"… and the driver is down longer than the lease: {about}",
                _query_fails(fault, late=True),
                _SHORT,
            )
        )
    points += [
        Point(
            "worker-done",
            "a worker dies: its message was sent",
            # Spark may give the worker a further task before it dies, which is then tried again.
            _query_goes_on(_worker("after message", action="kill-later", partition=0), master="local[2,3]"),
        ),
        Point("task-retry", "… and Spark tries the task again", _retried, 20.0),
        Point("speculation", "a slow task gets a rival", _speculated, 20.0),
        Point("slow-sibling", "a task takes three leases longer than the others", _slow_sibling, _SHORT),
        Point("idle-workers", "… longer than Spark keeps idle workers", _idle_workers_ended, _SHORT),
        Point("worker-reuse-off", "… and the workers of the others are gone", _worker_reuse_off, 60.0),
    ]
    for name, (fault, about) in _DRIVER.items():
        points.append(Point(f"driver-{name}", f"the driver dies: {about}", _dies(fault)))
        points.append(
            Point(f"late-{name}", f"… and is down longer than the lease: {about}", _dies(fault, late=True), _SHORT)
        )
    points += [
        Point("commit-log", "Spark's commit-log entry is deleted", _commit_log_deleted),
        Point(
            "late-commit-log",
            "… and the driver is down longer than the lease",
            partial(_commit_log_deleted, late=True),
            _SHORT,
        ),
        Point("two-drivers-before", "two drivers; the first stops before PREPARED", _two_drivers("before PREPARE")),
        Point("two-drivers-prepared", "… after PREPARED", _two_drivers("after PREPARE")),
        Point("two-drivers-pilot", "… after the pilot's commit", _two_drivers("after COMMIT_PILOT")),
        Point(
            "late-two-drivers-before",
            "… before PREPARED, for longer than the lease",
            _two_drivers("before PREPARE", late=True),
            _SHORT,
        ),
        Point(
            "late-two-drivers-prepared",
            "… after PREPARED, for longer than the lease",
            _two_drivers("after PREPARE", late=True),
            _SHORT,
        ),
        Point(
            "late-two-drivers-pilot",
            "… after the pilot's commit, for longer than the lease",
            _two_drivers("after COMMIT_PILOT", late=True),
            _SHORT,
        ),
        Point("scaled-in-task", "the target is scaled while tasks write", _scaled("after begin", partition=1)),
        Point("scaled-in-commit", "the target is scaled before the pilot's commit", _scaled("before COMMIT_PILOT")),
        Point("scaled-down", "… while the driver is down, after the pilot's commit", _scaled_while_down),
        Point(
            "late-scaled-down", "… and it is down longer than the lease", partial(_scaled_while_down, late=True), _SHORT
        ),
        Point("other-partitions", "the replay has other partitions, nothing is lost", _other_partitions),
        Point("torn", "… and a part is lost: detected, reported, accepted", _torn, _SHORT),
        Point("newest-removed", "the checkpoint's newest files are removed: refused, then put back", _newest_removed),
        Point(
            "random-pilot",
            "the driver dies after the pilot, the replay has other rows: refused, then accepted",
            _random_rows("after COMMIT_PILOT"),
        ),
        Point("random-committed", "… after COMMITTED", _random_rows("after RECORD")),
        Point("two-plans", "two drivers have other rows for one number: the second to come is refused", _two_plans),
        Point(
            "foreach-batch",
            "the driver dies in foreachBatch, after the pilot",
            _foreach_batch(_driver("after COMMIT_PILOT")),
        ),
        Point("two-queries", "two queries write to one stream, and die", _two_queries),
        Point("chained", "stream, Spark, stream, Spark, stream; each half is killed", _chained),
    ]
    for name, about, play in (
        ("task", "while tasks write", _pravega_restarted("after begin", partition=1)),
        ("prepared", "after PREPARED", _pravega_restarted("after PREPARE")),
        ("pilot", "after the pilot's commit", _pravega_restarted("after COMMIT_PILOT")),
        ("down", "while the driver is down, after the pilot's commit", _pravega_restarted_while_down),
    ):
        points.append(Point(f"pravega-{name}", f"Pravega is killed and restarted {about}", play, restarts=True))
    return {point.name: point for point in points}


POINTS: Final = _all_points()
