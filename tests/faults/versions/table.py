"""Scenarios of one exactly-once query under two versions of Spark, with one checkpoint, on in-process servers.

The setting ``other`` is the Python of the other version. ``./run test-spark 4.0`` makes the default one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.testing import InProcessPravega
from tests.faults.harness import Scenario, Table
from tests.faults.processes import ROOT
from tests.faults.record import PROOFS
from tests.faults.sink.setup import SinkScenario, SinkSettings, SinkSetup
from tests.faults.sink.trial import APPLICATION, Fault, Job, Trial, fault_environment
from tests.faults.streams import Source, count
from tests.faults.verdict import Verdict
from tools import jvm

_LEASE: Final = 20.0
_ADDED: Final = 300
_AFTER_PILOT: Final[Fault] = {"at": "after COMMIT_PILOT", "action": "kill-all", "batch": 1}
_PREPARED: Final[Fault] = {"at": "after PREPARE", "action": "kill-all", "batch": 1}


@dataclass(frozen=True)
class VersionsSettings(SinkSettings):
    other: str = str(ROOT / ".venv-spark-4.0/bin/python")


class Query(Trial):
    """A query that runs under either version, and continues from its checkpoint under the other one."""

    def __init__(self, setup: SinkSetup, scenario: SinkScenario) -> None:
        super().__init__(
            setup.config, setup.client, setup.source, setup.new_folder(scenario.name), scenario.lease, setup.cluster
        )
        self.other, self.own = setup.settings.other, sys.executable
        self.versions: list[str] = []

    def run(self, python: str, fault: Fault | None = None, *, by_jvm: bool = False) -> Job:
        """Start the application with a Python."""
        environment = fault_environment(self.folder, str(len(self.jobs) + 1), fault) | {"PYSPARK_PYTHON": python}
        if by_jvm:  # the faults are those of the Python writer
            environment["PYTHONPATH"] = str(ROOT)
        options = {"client_options": {"raw_reader": "jvm"}} if by_jvm else {}
        return self.start(command=[python, APPLICATION], environment=environment, repeated=True, **options)

    def copies(self, python: str, *, by_jvm: bool = False) -> None:
        """Let a version copy all that is in the source."""
        self.versions.append(self.run(python, by_jvm=by_jvm).succeeds().result["spark"])
        if self.proofs and self.proofs[-1].startswith("continued by"):
            self.proofs[-1] += f", {self.versions[-1]}"
        else:
            self.proofs.append(f"continued by {self.versions[-1]}")

    def grow(self) -> None:
        """Scale the source, from three segments to four or back, and add events."""
        segments = len(self.client.controller.current_segments(self.source.stream))
        self.client.scale_stream(self.source.stream, 7 - segments)
        self.source.add(self.client, _ADDED)


def _back_and_forth(*, by_jvm: bool) -> Callable[[Query], None]:
    def play(query: Query) -> None:
        for python in (query.other, query.own, query.other, query.own):
            query.grow()
            query.copies(python, by_jvm=by_jvm)

    return play


def _killed(fault: Fault, *, first_other: bool) -> Callable[[Query], None]:
    def play(query: Query) -> None:
        first, second = (query.other, query.own) if first_other else (query.own, query.other)
        query.run(first, fault).is_killed()
        query.copies(second)
        query.grow()
        query.copies(first)

    return play


class VersionsSetup(SinkSetup):
    """A server in this process, a source stream, and the other version of Spark."""

    def open(self) -> None:
        self.cluster = None
        self.config = PravegaConfig(controller=self.stack.enter_context(InProcessPravega()).uri)
        self.client = self.stack.enter_context(PravegaClient(self.config))
        self.source = Source(self.client, StreamName("versions", "source"), self.settings.rows)
        self._ended = []

    def trial(self, scenario: Any) -> Trial:
        assert Path(self.settings.other).is_file(), (
            f"there is no {self.settings.other}: make it with ./run test-spark 4.0 -m 'each_spark and not long' "
            "--pravega=kit, or name a Python of another Spark with --set other=FILE"
        )
        assert jvm.main() == 0, "the JVM reader needs a JDK"
        return Query(self, scenario)

    def judge(self, verdict: Verdict, trial: Trial) -> None:
        assert isinstance(trial, Query)
        assert len(set(trial.versions)) == 2, f"both Pythons have Spark {trial.versions[0]}"
        read = [bytes(event) for event in self.client.read(trial.target)]
        for reader, events in (("client.read", read), ("follower", trial.followers[trial.target].seen(len(read)))):
            numbers = (int(bytes(event).partition(b"|")[0]) for event in events)
            verdict.counts[reader] = count(numbers, [self.source.numbers])


def _scenarios() -> list[Scenario]:
    found = [
        SinkScenario(f"{reader}-back-and-forth", about, _back_and_forth(by_jvm=reader == "jvm"), lease=_LEASE)
        for reader, about in (
            ("python", "four runs, of two versions in turn"),
            ("jvm", "the same with the JVM reader, and its writer where it exists"),
        )
    ]
    for name, fault in (("prepared", _PREPARED), ("pilot", _AFTER_PILOT)):
        for first in ("other", "own"):
            about = f"the {first} version dies {fault['at']}, and the next one repeats its batch"
            play = _killed(fault, first_other=first == "other")
            found.append(SinkScenario(f"{name}-{first}", about, play, lease=_LEASE))
    return found


TABLE: Final = Table(_scenarios(), VersionsSetup, VersionsSettings(), (PROOFS,), page="exactly-once-tables.md versions")
