"""Scenarios of a standalone Spark cluster: a worker and the driver of a query that was shipped to it are killed."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tests.faults.harness import Scenario, Table
from tests.faults.processes import await_that
from tests.faults.record import PROOFS, Column, measured
from tests.faults.sink.setup import SinkSetup
from tests.faults.sink.trial import APPLICATION, Job, Trial
from tests.faults.spark_cluster import HOSTS, SparkCluster
from tests.faults.standalone.shipment import WAYS, bare_python, ship
from tests.faults.streams import count
from tests.faults.verdict import Verdict

#: Seconds until a batch, or a part of it, is complete: on a busy machine it takes minutes.
_BATCH: Final = 600.0
_STARTED: Final = re.compile(r"Starting task \S+ in stage \S+ \(TID (\d+)\) \(([\d.]+),")
_FINISHED: Final = re.compile(r"(?:Finished|Lost) task \S+ in stage \S+ \(TID (\d+)\)")
#: Spark's message about a task whose executor was lost with its worker.
_LOST: Final = re.compile(
    r"task (\S+ in stage \S+) \(TID (\d+)\) failed because while it was being computed, its executor"
)


@dataclass(frozen=True)
class StandaloneSettings:
    rows: int = 1200
    rows_per_batch: int = 200
    pause_ms: int = 30
    """Pause of a task after each row; a task has a third of the rows of a batch."""
    python: str = ""
    """The cluster's Python; if empty, one is made from the running environment."""
    artefact: str = ""
    """A zip for ``--py-files``, or an archive for ``--archives``; if empty, it is built."""


class Query(Trial):
    """A trial on a Spark cluster. The application is shipped, and continues from its checkpoint after a restart."""

    def __init__(self, setup: SinkSetup, way: str) -> None:
        super().__init__(setup.config, setup.client, setup.source, setup.new_folder(way), 120.0)
        self._settings: StandaloneSettings = setup.settings
        made, self._spark = bare_python(self.folder / "cluster")
        python, artefact = (Path(path) if path else None for path in (self._settings.python, self._settings.artefact))
        self._shipment = ship(way, self.folder, python or made, artefact)
        _assert_without_project(python or made, self.folder)
        # Executors have the project from the shipment, not from the checkout.
        self.cluster = SparkCluster(self.folder, {"PYTHONPATH": ""}, memory="1g", spark=self._spark)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.cluster)
        self.submit()
        return self

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        self._stack.close()

    @property
    def job(self) -> Job:
        return self.jobs[-1]

    def submit(self) -> None:
        """Submit the application."""
        memory = ["--driver-memory", "1g", "--executor-memory", "700m"]
        submit = [self._spark / "bin" / "spark-submit", "--master", self.cluster.master, *memory]
        self.start(
            command=[*submit, *self._shipment.options, APPLICATION],
            environment={"SPARK_HOME": str(self._spark), "SPARK_LOCAL_IP": "127.0.0.1", **self._shipment.environment},
            master=self.cluster.master,
            rows_per_batch=self._settings.rows_per_batch,
            pause_ms=self._settings.pause_ms,
            tell_modules=True,
            # On a busy machine the first contact takes longer than a user would wait.
            client_options={"timeout_ms": "120000"},
            conf={"spark.log.level": "INFO"},
        )

    def kill_worker(self, host: str) -> None:
        """Kill a worker and its executor while one of its tasks runs; start another worker."""
        batch = self.await_work(1, host)
        killed = self.cluster.kill(host)
        assert len(killed) > 1, f"worker {host} had no executor"
        self.cluster.start_worker(host)
        await_that("the batch of the killed worker is committed", lambda: batch in self.committed(), _BATCH)
        log = self.job.log.read_text(errors="replace")
        lost = re.search(rf"Lost executor \d+ on {re.escape(host)}", log)
        assert lost, "the driver did not see that the executor was lost"
        ran_on = dict(_STARTED.findall(log))
        tasks = [task for task, number in _LOST.findall(log) if ran_on[number] == host]
        assert tasks, "no task of the killed executor was lost"
        worker = f"worker {host} killed in batch {batch}: {len(killed)} processes"
        self.proofs += [worker, lost.group(), f"task {tasks[0]} was repeated"]

    def kill_driver(self) -> None:
        """Kill the driver in the middle of a batch, and submit the application again."""
        batch = self.await_work(1 + max(self.committed()))
        self.job.kill()
        assert batch not in self.committed(), f"batch {batch} was committed before the driver was killed"
        # On a busy machine the application would end before the new worker is ready.
        for host in HOSTS:
            self.cluster.await_worker(host)
        self.submit()
        self.proofs.append(f"driver killed in batch {batch}")

    def committed(self) -> set[int]:
        return self._batches("commits")

    def _batches(self, part: str) -> set[int]:
        folder = self.folder / "checkpoint" / part
        return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.exists() else set()

    def await_work(self, least: int, host: str | None = None) -> int:
        """Wait until a task of batch `least` or a later one runs, on that host; return the batch."""

        def working() -> set[int]:
            assert not self.job.has_ended, f"the application has ended: {self.job.error or self.job.text()}"
            batches = {batch for batch in self._batches("offsets") - self.committed() if batch >= least}
            return batches if any(host in (None, at) for at in self._running()) else set()

        return max(await_that(f"a task of batch {least} or later runs on {host or 'a worker'}", working, _BATCH))

    def _running(self) -> list[str]:
        """Return the hosts of the tasks that run, according to the driver's log."""
        log = self.job.log.read_text(errors="replace")
        ended = {*_FINISHED.findall(log), *(number for _, number in _LOST.findall(log))}
        return [host for task, host in _STARTED.findall(log) if task not in ended]

    def hosts(self) -> set[str]:
        """Return the hosts on which tasks ran."""
        return {host for job in self.jobs for _, host in _STARTED.findall(job.log.read_text(errors="replace"))}


def _assert_without_project(python: Path, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": ""}
    tried = subprocess.run(
        [python, "-c", "import pravega_connector"], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert b"No module named 'pravega_connector'" in tried.stderr, f"{python} of the cluster has this project"


class StandaloneSetup(SinkSetup):
    """A Pravega server; each run has a Spark cluster."""

    def trial(self, scenario: Any) -> Trial:
        return Query(self, scenario.name)

    def judge(self, verdict: Verdict, trial: Trial) -> None:
        super().judge(verdict, trial)
        assert isinstance(trial, Query)
        assert trial.hosts() == set(HOSTS), f"tasks ran on {sorted(trial.hosts())} only"
        verdict.measures = {"batches": len(trial.committed()), "modules": trial.job.result.get("modules", [])}
        verdict.counts["client.read"] = count(map(int, self.client.read(trial.target)), [self.source.numbers])


def _worker_and_driver(query: Query) -> None:
    query.await_work(1)
    query.kill_worker(HOSTS[0])
    query.kill_driver()
    query.job.succeeds()


TABLE: Final = Table(
    [Scenario(way, f"a worker, then the driver; shipped with `--{way}`", _worker_and_driver) for way in WAYS],
    StandaloneSetup,
    StandaloneSettings(),
    (Column("batches", measured("batches")), PROOFS),
)
