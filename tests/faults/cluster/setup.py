"""Cluster setup: servers, clients that work on them, and the measures of a run: outages, stalls, lags and errors."""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pravega_connector.config import PravegaConfig
from pravega_connector.local import ClusterOptions, ClusterProcess
from pravega_connector.local.cluster import Cluster
from pravega_connector.tcp_ports import free_ports
from pravega_serde.errors import PravegaError
from tests.faults.cluster.clients import Clients
from tests.faults.cluster.resources import Sampler
from tests.faults.cluster.timeline import Timeline
from tests.faults.harness import Scenario, Setup
from tests.faults.processes import await_that, running_cluster
from tests.faults.record import PROOFS, Column
from tests.faults.verdict import Verdict
from tests.interop._java import JavaPeer
from tests.support.processes import holds_connection
from tests.support.proxy import Proxy

#: Seconds from a new client's success to the next success of an old client.
LAG: Final = 10.0
#: Seconds in which clients and servers must recover.
_PATIENCE: Final = 240.0
_TOKEN_SECONDS: Final = 20


class Servers(StrEnum):
    """Kinds of clusters, each with two segment stores, and of the clients that work on them."""

    ONE = "one"
    """One controller."""
    TWO = "two"
    """Two controllers."""
    PROXIED = "proxied"
    """Clients reach all servers through proxies that can be cut."""
    TOKENS = "tokens"
    """Servers with authentication, and tokens that expire after 20 s."""
    LEASE = "lease"
    """One controller; queries have a short lease."""
    SAMPLED = "sampled"
    """One controller; memory, threads and descriptors of the clients are sampled, and Java counts in every run."""


@dataclass(frozen=True)
class ClusterSettings:
    queries: int = 1
    """Exactly-once queries in a chain; two at least for the soak."""
    frozen: float = 60.0
    """Seconds of a pause: longer than ZooKeeper's sessions (10 s) and a failover (25 to 30 s)."""
    batches: int = 500
    """Micro-batches of the scenario of that name."""
    ingester: int = 1
    raw_reader: str = "python"
    """``jvm``: the queries read inside Spark's JVM."""


@dataclass(frozen=True)
class ClusterScenario(Scenario):
    """``play`` causes the fault, proves that it happened, ends it, waits for all clients, and returns the proof.

    It calls ``trial.mark()`` whenever it does something to the servers.
    """

    servers: str = Servers.ONE
    fails: tuple[str, ...] = ()
    """Clients that may show an error."""
    allowed: float = LAG
    """Seconds that clients have after the first success of a new one."""
    commits: float = LAG
    """The same for clients with transactions that the controller may have begun to commit."""

    def allows(self, client: str) -> float:
        """Return the seconds that a client has."""
        commits = client in ("transactions", "ingester") or client.startswith("query")
        return max(self.allowed, self.commits if commits else 0.0)


@dataclass
class Trial:
    """One run of one scenario."""

    clients: Clients
    random: random.Random
    settings: ClusterSettings
    cluster: Cluster
    proxies: Sequence[Proxy] = ()
    moments: list[float] = field(default_factory=list)
    """Times at which something was done to the servers."""

    def mark(self) -> float:
        self.moments.append(time.monotonic())
        return self.moments[-1]

    def recover(self) -> None:
        """Wait until a new client, and then every client, has had a success since the last moment."""
        self.clients.await_done(self.moments[-1], _PATIENCE)

    def process(self, name: str) -> ClusterProcess:
        return self.cluster.processes[name]

    def await_containers(self, store: str, *, none: bool = False) -> None:
        """Wait until a segment store has containers again, or has none any more."""
        place = next(place for place, name in self.cluster.stores.items() if name == store)
        # A store may end itself after its session has ended; an operator starts it again.
        if not none and not self.process(store).running:
            self.process(store).start()
        what = f"{store} has {'no ' * none}containers"
        await_that(what, lambda: (place in self.clients.places()) is not none, _PATIENCE)


class ClusterSetup(Setup):
    """A cluster with clients at work."""

    settings: ClusterSettings

    def open(self) -> None:
        began = time.monotonic()
        self.proxies: list[Proxy] = []
        config = self._start_servers()
        self.stack.callback(self._keep_logs)
        sampled = self.servers == Servers.SAMPLED
        queries = max(2, self.settings.queries) if sampled else self.settings.queries
        lease_ms = 20_000 if self.servers == Servers.LEASE else 120_000
        clients = Clients(
            config,
            self.folder,
            queries=queries,
            ingester=bool(self.settings.ingester),
            lease_ms=lease_ms,
            raw_reader=self.settings.raw_reader,
        )
        self.clients = self.stack.enter_context(clients)
        self._java = self.stack.enter_context(self._java_peer()) if sampled else None
        pids = {name: process.pid for name, process in self.clients.processes.items() if name != "probe"}
        self._sampler = self.stack.enter_context(Sampler(pids)) if sampled else None
        print(f"{self.servers}: servers and clients work after {time.monotonic() - began:.0f} s", flush=True)

    def _start_servers(self) -> PravegaConfig:
        options = ClusterOptions(controllers=2 if self.servers == Servers.TWO else 1)
        if self.servers == Servers.TOKENS:
            options = ClusterOptions(username="ann", password="secret", token_seconds=_TOKEN_SECONDS)
        if self.servers == Servers.PROXIED:
            ports = dict(zip(("store-1", "store-2"), free_ports(2), strict=True))
            self.proxies = [
                self.stack.enter_context(Proxy(("127.0.0.1", port), spared=self._is_servers)) for port in ports.values()
            ]
            published = {name: proxy.endpoint[1] for name, proxy in zip(ports, self.proxies, strict=True)}
            options = ClusterOptions(ports=ports, published=published)
        self.cluster: Cluster | None = None
        self.cluster = self.stack.enter_context(running_cluster(options))
        if not self.proxies:
            return self.cluster.config
        controller = self.stack.enter_context(Proxy(self.cluster.config.endpoints[0]))
        self.proxies.append(controller)
        return self.cluster.config.with_controller(f"tcp://127.0.0.1:{controller.endpoint[1]}")

    def _is_servers(self, port: int) -> bool:
        """Return True for a connection of the controller: faults are in the network of the clients."""
        return self.cluster is None or holds_connection(self.cluster.processes["controller-1"].pid, port)

    def _keep_logs(self) -> None:
        assert self.cluster is not None
        for file in self.cluster.folder.glob("*.log"):
            shutil.copy(file, self.folder)

    def _java_peer(self) -> JavaPeer:
        config = self.clients.config
        env = {"pravega_client_auth_method": config.auth_method, "pravega_client_auth_token": config.auth_token}
        known = {name: value for name, value in env.items() if value is not None}
        return JavaPeer(config.controller, self.folder, env=known)

    def play(self, scenario: ClusterScenario, verdict: Verdict) -> None:
        assert self.cluster is not None
        choices = random.Random(f"{verdict.seed} {scenario.name}")
        trial = Trial(self.clients, choices, self.settings, self.cluster, self.proxies)
        timeline, begin = self.clients.timeline(), time.monotonic()
        audited = begin
        try:
            time.sleep(choices.uniform(0.0, 3.0))
            verdict.proofs = [scenario.play(trial)]
            audited = time.monotonic()
            verdict.counts = self.clients.audit(self._java)
            verdict.check_counts()
        except (AssertionError, PravegaError, OSError):
            audited, self.usable = time.monotonic(), False
            raise
        finally:
            self._measure(scenario, verdict, timeline.refresh(), trial, begin, audited)

    def _measure(
        self, scenario: ClusterScenario, verdict: Verdict, timeline: Timeline, trial: Trial, begin: float, end: float
    ) -> None:
        # A moment before the servers were restored has no new client's success, and says nothing of their recovery.
        wells = [(moment, timeline.well(moment)) for moment in trial.moments]
        recovery = max((well - moment for moment, well in wells if well is not None), default=0.0)
        stalls, lags, behinds, errors = {}, {}, {}, {}
        for client in self.clients.names:
            stalls[client] = round(timeline.stall(client, begin, end), 1)
            lag, behind = timeline.lag(client, trial.moments), timeline.behind(client, trial.moments)
            if lag is None:
                verdict.failures.append(f"{client} has not continued")
                self.usable = False
            else:
                lags[client], behinds[client] = round(lag, 1), round(behind, 1)
            if lag is not None and behind > scenario.allows(client):
                verdict.failures.append(f"{client} continued {behind:.1f} s after new clients")
            if shown := [text for _, text in timeline.errors[client]]:
                errors[client] = dict(Counter(shown))
            if shown and client not in scenario.fails:
                verdict.failures.append(f"{client} showed {len(shown)} errors, the first: {shown[0][:200]}")
        verdict.measures = {
            "recovery": round(recovery, 1),
            "stalls": stalls,
            "lags": lags,
            "behind": behinds,
            "errors": errors,
        }

    def java_verdict(self) -> Verdict:
        """Return the Java client's counts of all events since it last counted."""
        verdict, begin = Verdict("java"), time.monotonic()
        with self._java_peer() as java:
            verdict.counts = self.clients.java_audit(java)
        verdict.seconds = round(time.monotonic() - begin, 1)
        verdict.check_counts()
        return verdict

    def complete(self, *, last: bool = False) -> list[Verdict]:
        complete = super().complete()
        if last and self.usable and self._java is None:
            complete.append(self.java_verdict())
        if last and self._sampler is not None:
            complete.append(self._sampler.verdict(self.folder))
        return complete


def _shown(verdicts: Sequence[Verdict]) -> str:
    of_clients = [texts for verdict in verdicts for texts in verdict.measures["errors"].values()]
    return f"{sum(number for texts in of_clients for number in texts.values())}"


def _recovery(verdicts: Sequence[Verdict]) -> str:
    recoveries = [verdict.measures["recovery"] for verdict in verdicts]
    return f"{statistics.median(recoveries):.0f}, {max(recoveries):.0f}"


def _slowest(verdicts: Sequence[Verdict]) -> str:
    lags = [(lag, client) for verdict in verdicts for client, lag in verdict.measures["lags"].items()]
    lag, client = max(lags, default=(0.0, "none"))
    behind = max((lag for verdict in verdicts for lag in verdict.measures["behind"].values()), default=0.0)
    return f"{lag:.1f} ({client}), {behind:.1f}"


def _stall(verdicts: Sequence[Verdict]) -> str:
    stalls = [stall for verdict in verdicts for stall in verdict.measures["stalls"].values()]
    return f"{max(stalls, default=0.0):.0f}"


COLUMNS: Final = (
    Column("errors shown", _shown),
    Column("outage for new clients, s (median, most)", _recovery),
    Column("slowest client after a new one, s: after the first, after the last that had to wait", _slowest),
    Column("longest stall, s", _stall),
    PROOFS,
)
