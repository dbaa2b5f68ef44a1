"""Scenarios for two connectors, the official Scala connector and this one: the same faults, seen from outside.

The setting ``jar`` is pravega/spark-connectors with its dependencies; ``python`` has PySpark 3.5, as the jar needs.
Duplicates and losses of the official connector are results, not failures.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.faults.harness import Scenario, Table
from tests.faults.processes import ROOT, await_that
from tests.faults.record import PROOFS, Column, measured
from tests.faults.sink.setup import SinkSetup
from tests.faults.sink.trial import Job, Trial
from tests.faults.streams import count
from tests.faults.verdict import Verdict

_SECONDS: Final = 900.0
_APPLICATION: Final = Path(__file__).with_name("application.py")
#: Tries until a kill comes before Spark's commit log has the batch; a later one proves nothing.
_TRIES: Final = 5


@dataclass(frozen=True)
class PeerSettings:
    rows: int = 3000
    jar: str = ""
    python: str = ""


@dataclass(frozen=True)
class Connector:
    """A Python with PySpark, and the options with which it has a format ``pravega``."""

    python: str
    conf: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


class Copy(Trial):
    """A trial whose applications have one of the connectors."""

    def __init__(self, setup: SinkSetup, name: str, verdict: Verdict) -> None:
        super().__init__(setup.config, setup.client, setup.source, setup.new_folder(name), 120.0)
        self.connector, self.verdict = _connector(name, setup.settings), verdict

    def copy(self, *, slow_s: float = 0.0, **options: str) -> Job:
        """Start an application."""
        python = self.connector.python
        return self.start(
            command=[python, _APPLICATION],
            environment={"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python, **self.connector.environment},
            slow_s=slow_s,
            options=options,
            conf={"spark.ui.enabled": "false", "spark.log.level": "ERROR", **self.connector.conf},
        )

    @property
    def is_logged(self) -> bool:
        """True if Spark's commit log has the batch."""
        return (self.folder / "checkpoint" / "commits" / "0").exists()

    def count(self) -> dict[str, int]:
        """Count the events of the target when no more arrive."""
        sizes = [-1]

        def is_steady() -> bool:
            time.sleep(2.0)
            sizes.append(sum(1 for _ in self.client.read(self.target)))
            return sizes[-1] == sizes[-2]

        await_that("the target is at rest", is_steady)
        return count(map(int, self.client.read(self.target)), [self.source.numbers], ordered=False)


def _killed(trial: Copy) -> bool:
    """Kill the application when a reader gets the first events of the batch, and restart it."""
    with trial.client.follow(trial.target, start=trial.client.head(trial.target)) as reader:
        job = trial.copy()
        await_that("events are written", lambda: reader.poll(0.5) is not None or job.has_ended, _SECONDS)
    job.close()
    assert job.code in (0, -9), f"the application ended with {job.code}: {job.text()}"
    trial.verdict.measures["before"] = trial.count()["events"]
    if job.code == 0 or trial.is_logged:
        return False
    trial.copy().succeeds()
    trial.verdict.proofs = ["the driver ended by signal 9"]
    return True


def _commit_log_lost(trial: Copy) -> bool:
    trial.copy().succeeds()
    assert trial.is_logged, "Spark's commit log does not have the batch"
    trial.verdict.measures["before"] = trial.count()["events"]
    for name in ("0", ".0.crc"):
        (trial.folder / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    trial.copy().succeeds()
    trial.verdict.proofs = ["commits/0 removed"]
    return True


def _slow_task(trial: Copy) -> bool:
    job = trial.copy(slow_s=25.0, transaction_timeout_ms="10000", commit_timeout_ms="9000")
    code = job.wait(_SECONDS)
    trial.verdict.measures["before"] = trial.count()["events"]
    if code:
        trial.copy(transaction_timeout_ms="120000", commit_timeout_ms="100000").succeeds()
    trial.verdict.proofs = [f"the query ended with {code}"]
    return True


def _connector(name: str, settings: PeerSettings) -> Connector:
    """Return the connector of a scenario."""
    if not name.startswith("official-"):
        return Connector(sys.executable, environment={"PYTHONPATH": str(ROOT)})
    jar, python = Path(settings.jar).absolute(), Path(settings.python).absolute()
    assert jar.is_file(), "the official connector needs --set jar=FILE"
    assert python.is_file(), "the official connector needs --set python=FILE"
    return Connector(str(python), {"spark.jars": str(jar)})


class PeerSetup(SinkSetup):
    """A server, and a source stream that both connectors read."""

    def play(self, scenario: Any, verdict: Verdict) -> None:
        for _ in range(_TRIES):
            with Copy(self, scenario.name, verdict) as trial:
                if scenario.play(trial):
                    verdict.measures["rows"] = self.settings.rows
                    verdict.counts["client"] = trial.count()
                    if not scenario.name.startswith("official-"):
                        verdict.check_counts()
                    return
        raise AssertionError(f"the fault came too late {_TRIES} times")


def _scenarios() -> Iterator[Scenario]:
    for name, about, play in (
        ("killed", "`kill -9` when readers see the first rows of the batch; restarted", _killed),
        ("commit-log", "Spark's commit-log entry is lost after the commit; restarted", _commit_log_lost),
        ("slow-task", "lease of 10 s, one of two tasks takes 25 s longer; restarted if it failed", _slow_task),
    ):
        yield Scenario(f"official-{name}", f"official connector: {about}", play)
        yield Scenario(f"ours-{name}", f"pravega-serde: {about}", play)


TABLE: Final = Table(
    tuple(_scenarios()),
    PeerSetup,
    PeerSettings(),
    (Column("rows written", measured("rows")), PROOFS),
    "exactly-once-tables.md peer",
)
