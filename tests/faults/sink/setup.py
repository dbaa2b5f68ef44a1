"""Setup for exactly-once queries, and their verdict: two readers count, and no transaction is left open."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from itertools import chain
from typing import Final

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.errors import ConnectorError
from pravega_connector.exactly_once.batch_commit import Ledger
from pravega_connector.local import ClusterOptions
from pravega_connector.local.cluster import Cluster
from tests.faults.harness import Scenario, Setup
from tests.faults.processes import await_that, running_cluster
from tests.faults.sink.trial import Trial
from tests.faults.streams import Source, count
from tests.faults.verdict import Verdict
from tests.interop._java import JavaPeer

#: Seconds. Longer than a restart, so that open transactions stay open; and the shortest that servers accept.
LONG_LEASE: Final = 120.0
SHORT_LEASE: Final = 10.0
#: Kind of servers that can be killed; the standalone server loses its events when it ends.
CLUSTER: Final = "cluster"
#: Cluster whose containers move when a segment store fails.
TWO_STORES: Final = "cluster with two segment stores"
_CLUSTERS: Final = {
    CLUSTER: ClusterOptions(stores=1, bookies=2, containers=2, heap_mb=512, cache_mb=256),
    TWO_STORES: ClusterOptions(stores=2, bookies=3, containers=4, heap_mb=512, cache_mb=256),
}
#: Seconds after a lease in which a server may abort a transaction.
_DELTA: Final = 15.0
#: Seconds after that in which a server must report the status.
_PATIENCE: Final = 600.0


@dataclass(frozen=True)
class SinkScenario(Scenario):
    lease: float = LONG_LEASE
    by_python: bool = False
    """Whether only Python writes such rows, or only Python has such processes."""

    def fits(self, settings: SinkSettings) -> bool:
        return settings.raw_writer == "python" or not self.by_python


@dataclass(frozen=True)
class SinkSettings:
    rows: int = 900
    encrypted: int = 0
    """1: a field of the target's events is encrypted."""
    raw_writer: str = "python"
    """jvm: events are written inside Spark's JVM."""


class SinkSetup(Setup):
    """A server, a source stream and the Java client. A verdict is complete when the leases of its run are over."""

    def open(self) -> None:
        self.cluster: Cluster | None = None
        if self.servers in _CLUSTERS:
            self.cluster = self.stack.enter_context(running_cluster(_CLUSTERS[self.servers]))
        self.config = self.server() if self.cluster is None else self.cluster.config
        self.client = self.stack.enter_context(PravegaClient(self.config, timeout=90.0))
        self.java = self.stack.enter_context(JavaPeer(self.config.controller, self.folder))
        scope = f"kills{time.time_ns()}"
        self.source = Source(self.client, StreamName(scope, "source"), self.settings.rows)
        self._ended: list[tuple[Verdict, Trial, float]] = []

    def trial(self, scenario: SinkScenario) -> Trial:
        folder = self.new_folder(scenario.name)
        given = {"encrypted": bool(self.settings.encrypted), "raw_writer": self.settings.raw_writer}
        return Trial(self.config, self.client, self.source, folder, scenario.lease, self.cluster, **given)

    def play(self, scenario: SinkScenario, verdict: Verdict) -> None:
        with self.trial(scenario) as trial:
            try:
                scenario.play(trial)
                verdict.proofs = trial.prove()
                assert verdict.proofs, "the fault did not happen"
            except AssertionError as error:
                verdict.failures.append(str(error))
        self._ended.append((verdict, trial, time.monotonic()))
        self.judge(verdict, trial)
        verdict.check_counts()

    def judge(self, verdict: Verdict, trial: Trial) -> None:
        await_that("commits are complete", lambda: TransactionStatus.COMMITTING not in trial.statuses().values())
        by_java = {target: [bytes(event.payload) for event in self.java.read(target)] for target in trial.followers}
        followed_by = {target: trial.followers[target].seen(len(events)) for target, events in by_java.items()}
        for readers in (by_java, followed_by):
            if misplaced := sum(
                trial.misplaced(target, map(trial.number, events)) for target, events in readers.items()
            ):
                verdict.failures.append(f"{misplaced} events are in another stream")
        found, followed = (list(chain.from_iterable(events.values())) for events in (by_java, followed_by))
        sources = [source.numbers for source in trial.sources]
        # Java's batch client reads segments side by side, without an order.
        verdict.counts["Java"] = count(map(trial.number, found), sources, ordered=False)
        verdict.counts["follower"] = count(map(trial.number, followed), sources)
        for counts in verdict.counts.values():
            counts["lost"] -= trial.reported
        statuses = trial.statuses()
        verdict.measures = {"reported": trial.reported, "transactions": len(statuses), "replayed": trial.replayed()}
        signed = found + followed if statuses and not trial.by_jvm else []
        if aborted := sum(not statuses[_transaction(event)].is_committed for event in signed):
            verdict.failures.append(f"{aborted} events of aborted transactions were read")
        with Ledger(self.client.stores, trial.ledger) as ledger:
            apps = ledger.read()[1].values()
        verdict.failures += [f"{app.app} has an open batch {app.open.batch}" for app in apps if app.open is not None]

    def complete(self, *, last: bool = False) -> list[Verdict]:
        """Return the verdicts of runs whose transactions have ended, or are open although the lease is over."""
        self._ended = [one for one in self._ended if not self._is_settled(*one)]
        while last and self._ended:
            time.sleep(0.5)
            self._ended = [one for one in self._ended if not self._is_settled(*one)]
        waiting = [verdict for verdict, _, _ in self._ended]
        complete = [verdict for verdict in self._complete if not any(verdict is one for one in waiting)]
        self._complete = waiting
        return complete

    @staticmethod
    def _is_settled(verdict: Verdict, trial: Trial, ended: float) -> bool:
        over = time.monotonic() - ended - trial.lease - _DELTA
        try:
            left = sum(status is TransactionStatus.OPEN for status in trial.statuses().values())
        except ConnectorError:
            if over > _PATIENCE:
                raise
            return False
        if left and over < 0 and not trial.leaves_orphans:
            return False
        verdict.measures["left_open"] = left
        if left and not trial.leaves_orphans:
            verdict.failures.append(f"{left} transactions left open")
        return True


def _transaction(event: bytes) -> uuid.UUID:
    return uuid.UUID(event.partition(b"|")[2].decode())
