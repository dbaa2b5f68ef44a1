"""Plays faults on servers with all clients at work, and measures what becomes of the clients."""

from __future__ import annotations

import json
import random
import shutil
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from tools.faults.cluster._notes import Timeline

from pravega_connector.config import PravegaConfig
from pravega_connector.local import ClusterOptions
from pravega_connector.local.cluster import Cluster, launch_cluster
from pravega_connector.ports import free_ports
from pravega_serde.errors import PravegaError
from tests.interop._java import JavaPeer
from tools.faults.cluster._faults import FAULTS, LAG, Run, Servers
from tools.faults.cluster._scene import Audit, Scene
from tools.faults.proxy import Proxy
from tools.processes import holds_connection

__all__ = ["Record", "Stage", "Verdict", "table"]

_TOKEN_SECONDS: Final = 20


@dataclass
class Verdict:
    """One run of one fault."""

    fault: str
    seed: str
    proof: str = ""
    seconds: float = 0.0
    recovery: float = 0.0
    """Seconds from the fault to the first success of a new client; the most over its moments."""
    stalls: dict[str, float] = field(default_factory=dict)
    """Of each client: its longest time without a success."""
    lags: dict[str, float] = field(default_factory=dict)
    """Of each client: how long after the first success of a new client it had its own."""
    behind: dict[str, float] = field(default_factory=dict)
    """The same after the last new client that had to wait: what is the client's, and not the servers', own."""
    errors: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of each client: the errors that its user saw, and how often."""
    audit: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    usable: bool = True
    """Whether servers and clients are well, so that another run may follow on them."""

    def sum(self, what: str) -> int:
        return sum(counts[what] for counts in self.audit.values())


class Stage:
    """Servers of one kind with a scene on them, for many runs. Context manager."""

    def __init__(
        self, servers: Servers, folder: Path, *, queries: int = 1, ingester: bool = True, logs: Path | None = None
    ) -> None:
        self.servers, self._folder, self._stack = servers, folder, ExitStack()
        self._options: dict[str, Any] = {"queries": queries, "ingester": ingester, "logs": logs}
        self.cluster: Cluster | None = None
        self.proxies: list[Proxy] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            config = self._start(stack)
            lease_ms = 20_000 if self.servers is Servers.LEASE else 120_000
            self.scene = stack.enter_context(Scene(config, lease_ms=lease_ms, **self._options))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.cluster is not None and (logs := self._options["logs"]) is not None:
            kept = logs / self.scene.streams["events"].scope  # where the scene leaves its own
            kept.mkdir(parents=True)
            for file in self.cluster.folder.glob("*.log"):
                shutil.copy(file, kept)
        self._stack.close()

    def _start(self, stack: ExitStack) -> PravegaConfig:
        options = ClusterOptions(controllers=2 if self.servers is Servers.TWO else 1)
        if self.servers is Servers.TOKENS:
            options = ClusterOptions(username="ann", password="secret", token_seconds=_TOKEN_SECONDS)
        if self.servers is Servers.PROXIED:
            ports = dict(zip(("store-1", "store-2"), free_ports(2), strict=True))
            self.proxies = [
                stack.enter_context(Proxy(("127.0.0.1", port), spared=self._is_servers)) for port in ports.values()
            ]
            published = {name: proxy.endpoint[1] for name, proxy in zip(ports, self.proxies, strict=True)}
            options = ClusterOptions(ports=ports, published=published)
        self.cluster = stack.enter_context(_running(options))
        if not self.proxies:
            return self.cluster.config
        controller = stack.enter_context(Proxy(self.cluster.config.endpoints[0]))
        self.proxies.append(controller)
        return self.cluster.config.with_controller(f"tcp://127.0.0.1:{controller.endpoint[1]}")

    def _is_servers(self, port: int) -> bool:
        """Whether a connection is the controller's own: the network that is harmed is the one of the clients."""
        return self.cluster is None or holds_connection(self.cluster.processes["controller-1"].pid, port)

    def play(
        self,
        name: str,
        seed: str,
        *,
        fault: Callable[[Run], str] | None = None,
        java: JavaPeer | None = None,
        **options: Any,
    ) -> Verdict:
        """One run, of a fault without a name if one is given; what went wrong is in the verdict.

        ``java`` reads what has come since it last did.
        """
        verdict, timeline, begin = Verdict(name, seed), self.scene.timeline(), time.monotonic()
        run = Run(self.scene, random.Random(f"{seed} {name}"), self.cluster, self.proxies, **options)
        try:
            time.sleep(run.random.uniform(0.0, 3.0))
            verdict.proof = (fault or FAULTS[name].play)(run)
            audited = time.monotonic()
            verdict.audit = self.scene.audit(java)
            verdict.failures += complaints(verdict.audit)
        except (AssertionError, PravegaError, OSError) as error:
            audited, verdict.usable = time.monotonic(), False
            verdict.failures.append(f"{type(error).__name__}: {error}"[:1000])
        self._measure(verdict, timeline.refresh(), run, begin, audited)
        verdict.seconds = round(time.monotonic() - begin, 1)
        return verdict

    def _measure(self, verdict: Verdict, timeline: Timeline, run: Run, begin: float, end: float) -> None:
        wells = [(moment, timeline.well(moment)) for moment in run.moments]
        # A moment before the servers were made well again tells nothing of their recovery.
        verdict.recovery = round(max((well - moment for moment, well in wells if well is not None), default=0.0), 1)
        fault = FAULTS.get(verdict.fault)
        for client in self.scene.clients:
            verdict.stalls[client] = round(timeline.stall(client, begin, end), 1)
            lag, behind = timeline.lag(client, run.moments), timeline.behind(client, run.moments)
            if lag is None:
                verdict.failures.append(f"{client} has not gone on")
                verdict.usable = False
            else:
                verdict.lags[client], verdict.behind[client] = round(lag, 1), round(behind, 1)
            if lag is not None and behind > (fault.allows(client) if fault else LAG):
                verdict.failures.append(f"{client} went on {behind:.1f} s after new clients")
            if shown := [text for _, text in timeline.errors[client]]:
                verdict.errors[client] = dict(Counter(shown))
            if shown and client not in (FAULTS[verdict.fault].fails if verdict.fault in FAULTS else ()):
                verdict.failures.append(f"{client} showed {len(shown)} errors, the first: {shown[0][:200]}")

    def java_verdict(self) -> Verdict:
        """Everything that was written since the stage began, as the Java client reads it."""
        verdict, begin = Verdict("java", ""), time.monotonic()
        config = self.scene.config
        env = {"pravega_client_auth_method": config.auth_method, "pravega_client_auth_token": config.auth_token}
        known = {name: value for name, value in env.items() if value is not None}
        with JavaPeer(config.controller, self._folder, env=known) as java:
            verdict.audit = self.scene.java_audit(java)
        verdict.seconds = round(time.monotonic() - begin, 1)
        verdict.failures += complaints(verdict.audit)
        return verdict


def complaints(audit: Audit) -> list[str]:
    """What is wrong in what readers have counted."""
    return [
        f"{count} {what} in {name}"
        for name, counts in audit.items()
        for what, count in counts.items()
        if count and what != "events"
    ]


@contextmanager
def _running(options: ClusterOptions) -> Iterator[Cluster]:
    cluster = launch_cluster(options)
    try:
        yield cluster
    finally:
        cluster.process.close()


class Record:
    """Verdicts, in a file that is whole at any time if there is one."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        known = json.loads(file.read_text()) if file is not None and file.exists() else []
        self.verdicts = [Verdict(**verdict) for verdict in known]

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict, and show it."""
        self.verdicts.append(verdict)
        if self._file is not None:
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps([asdict(one) for one in self.verdicts], indent=1) + "\n")
            new.replace(self._file)
        counts = f"lost {verdict.sum('lost')}, twice {verdict.sum('duplicated')}, order {verdict.sum('out_of_order')}"
        slow = max(verdict.lags.items(), key=lambda item: item[1], default=("nobody", 0.0))
        behind = max(verdict.behind.values(), default=0.0)
        print(
            f"{verdict.fault:24} {verdict.seconds:6.1f} s  servers {verdict.recovery:5.1f} s, then {slow[0]} "
            f"{slow[1]:.1f} s ({behind:.1f}); {verdict.sum('events')} events, {counts}; {verdict.proof}",
            flush=True,
        )
        for failure in verdict.failures:
            print(f"    FAILED: {failure}", flush=True)

    def missing(self, names: Sequence[str], runs: int) -> list[str]:
        """What is still to be played so that each has ``runs`` runs: every fault once before any again."""
        done = defaultdict(int)
        for verdict in self.verdicts:
            done[verdict.fault] += 1
        return [name for number in range(runs) for name in names if done[name] <= number]


_HEAD: Final = (
    "| fault | runs | events read back | lost | twice | out of order | errors shown | servers away, s (median, most) "
    "| slowest client after a new one, s: after the first, after the last that had to wait | longest stall, s | proof |"
    "\n|---|--:|--:|--:|--:|--:|--:|--:|---|--:|---|"
)


def table(verdicts: Sequence[Verdict]) -> str:
    """A Markdown table: sums over the runs of a fault."""
    by_fault: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_fault[verdict.fault].append(verdict)
    rows = [_row(name, by_fault[name]) for name in FAULTS if name in by_fault]
    return "\n".join([_HEAD, *rows])


def _row(name: str, verdicts: Sequence[Verdict]) -> str:
    failed = sum(bool(verdict.failures) for verdict in verdicts)
    counts = [f"{sum(verdict.sum(what) for verdict in verdicts):,}" for what in _COUNTS]
    recoveries = [verdict.recovery for verdict in verdicts]
    lag, client = max(
        ((lag, client) for verdict in verdicts for client, lag in verdict.lags.items()), default=(0.0, "none")
    )
    behind = max((seconds for verdict in verdicts for seconds in verdict.behind.values()), default=0.0)
    stall = max((stall for verdict in verdicts for stall in verdict.stalls.values()), default=0.0)
    shown = sum(count for verdict in verdicts for texts in verdict.errors.values() for count in texts.values())
    cells = [
        FAULTS[name].about,
        f"{len(verdicts)}" + (f", **{failed} failed**" if failed else ""),
        *counts,
        f"{shown}",
        f"{statistics.median(recoveries):.0f}, {max(recoveries):.0f}",
        f"{lag:.1f} ({client}), {behind:.1f}",
        f"{stall:.0f}",
        next((verdict.proof for verdict in reversed(verdicts) if verdict.proof), "none"),
    ]
    return "| " + " | ".join(cells) + " |"


_COUNTS: Final = ("events", "lost", "duplicated", "out_of_order")
