"""The faults: each makes itself, proves that it was made, and waits until all clients have gone on."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

from tools.faults.cluster._disk import full_under_checkpoint, full_under_export, full_under_letters

from pravega_connector.client import PravegaClient
from pravega_connector.local import ClusterProcess
from pravega_connector.local.cluster import Cluster
from tools.faults.cluster._scene import Scene, await_that
from tools.faults.proxy import Proxy
from tools.processes import stat_of

__all__ = ["FAULTS", "LAG", "Fault", "Run", "Servers", "session"]

#: Seconds from the server's being well to a client's next success.
LAG: Final = 10.0

#: Seconds that a process stands still: longer than ZooKeeper's sessions (10 s) and a failover (25 to 30 s).
_FROZEN: Final = 60.0
#: Seconds in which all that goes on by itself must have done so.
_PATIENCE: Final = 240.0


@dataclass
class Run:
    """One run of one fault."""

    scene: Scene
    random: random.Random
    cluster: Cluster | None = None
    proxies: Sequence[Proxy] = ()
    moments: list[float] = field(default_factory=list)
    """When something was done to the servers."""
    frozen: float = _FROZEN

    def now(self) -> float:
        self.moments.append(time.monotonic())
        return self.moments[-1]

    def go_on(self) -> None:
        """Wait until a new client, and then everybody, has had a success since the last moment."""
        self.scene.await_done(self.moments[-1], _PATIENCE)

    def process(self, name: str) -> ClusterProcess:
        assert self.cluster is not None
        return self.cluster.processes[name]

    def place(self, store: str) -> tuple[str, int]:
        assert self.cluster is not None
        return next(place for place, name in self.cluster.stores.items() if name == store)

    def await_work(self, store: str, *, away: bool = False) -> None:
        """Wait until a segment store has containers (again), or has none any more."""
        place = self.place(store)
        # A store whose session has ended may end itself, and whoever runs it starts it again.
        if not away and not self.process(store).running:
            self.process(store).start()
        what = f"{store} has {'no ' * away}containers"
        await_that(what, lambda: (place in self.scene.places()) is not away, _PATIENCE)


class Servers(StrEnum):
    """Kinds of clusters, each with two segment stores, and of what works on them."""

    ONE = "one"
    """One controller."""
    TWO = "two"
    """Two controllers."""
    PROXIED = "proxied"
    """Clients reach all servers through proxies that can be cut."""
    TOKENS = "tokens"
    """Servers that ask for credentials, and whose tokens live for 20 s."""
    LEASE = "lease"
    """One controller; queries have a short lease."""


@dataclass(frozen=True)
class Fault:
    """One way to fail. ``play`` makes the fault, proves that it happened, ends it and waits for all clients."""

    about: str
    """What stands in the table of results."""
    play: Callable[[Run], str]
    """Returns the proof. Calls ``run.now()`` whenever it does something to the servers."""
    servers: Servers = Servers.ONE
    fails: tuple[str, ...] = ()
    """Clients whose users are to see an error."""
    allowed: float = LAG
    """Seconds that clients have after the first success of a new one."""
    commits: float = LAG
    """Those that clients have whose transactions the controller may have begun to commit."""

    def allows(self, client: str) -> float:
        """Seconds that a client has."""
        commits = client in ("transactions", "ingester") or client.startswith("query")
        return max(self.allowed, self.commits if commits else 0.0)

    @property
    def of_query(self) -> bool:
        """Whether it is a fault of Spark's."""
        return self.servers is Servers.LEASE or bool(self.fails)


def _kill(run: Run, process: ClusterProcess) -> str:
    pid = process.pid
    run.now()
    process.kill()
    assert process.exit_code == -signal.SIGKILL, f"{process.name} was to be killed and ended with {process.exit_code}"
    assert stat_of(pid)[:1] in ([], ["Z"]), f"process {pid} goes on"
    return f"{process.name} ended by signal 9"


def _freeze(run: Run, process: ClusterProcess, meanwhile: Callable[[], None] = lambda: None) -> str:
    """Pause a process, and resume it when the time is over and ``meanwhile`` has returned."""
    pid, since = process.pid, run.now()
    process.pause()
    try:
        meanwhile()
        time.sleep(max(0.0, since + run.frozen - time.monotonic()))
        assert stat_of(pid)[:1] == ["T"], f"{process.name} did not stand still: {stat_of(pid)[:1]}"
    finally:
        run.now()
        process.resume()
    return f"{process.name} in state T for {run.frozen:g} s"


# ---- segment stores --------------------------------------------------------------------------------------------------


def _kill_store(run: Run, name: str) -> str:
    run.await_work(name)
    proof = _kill(run, run.process(name))
    run.go_on()
    run.await_work(name, away=True)
    run.now()
    run.process(name).start()
    run.await_work(name)
    run.go_on()
    return f"{proof}; its containers moved away and back"


def _freeze_store(run: Run, name: str) -> str:
    run.await_work(name)
    # Resumed in time, whoever has gone on: the controller itself waits 120 s for what it has asked the frozen one.
    proof = _freeze(run, run.process(name), lambda: run.await_work(name, away=True))
    run.go_on()
    run.await_work(name)
    return f"{proof}; its containers moved away and back"


def _stores_and_controller(run: Run) -> str:
    names = ("store-1", "store-2", "controller-1")
    proofs = [_kill(run, run.process(name)) for name in names]
    run.now()
    for name in names:
        run.process(name).start()
    for name in names[:2]:
        run.await_work(name)
    run.go_on()
    return ", ".join(proofs)


# ---- controllers, bookies, ZooKeeper ---------------------------------------------------------------------------------


def _restart(run: Run, name: str) -> str:
    process = run.process(name)
    before = process.pid
    proof = _kill(run, process)
    time.sleep(run.random.uniform(0.0, 5.0))
    run.now()
    process.start()
    assert process.pid != before
    run.go_on()
    return f"{proof}; started again"


def _freeze_and_go_on(run: Run, name: str) -> str:
    proof = _freeze(run, run.process(name))
    run.go_on()
    return proof


def _first_controller(run: Run) -> str:
    """A good call has been made, then the first of two stands still: nobody may wait for its return."""
    assert run.cluster is not None
    assert len(run.cluster.of("controller")) == 2
    proof = _freeze(run, run.process("controller-1"), run.go_on)
    run.go_on()
    return f"{proof}; all went on before it did"


def _busy_bookie(run: Run) -> ClusterProcess:
    """One that is being written to."""
    assert run.cluster is not None
    folder, names = run.cluster.folder, run.cluster.of("bookie")

    def written() -> dict[str, int]:
        return {name: sum(file.stat().st_mtime_ns for file in (folder / name).rglob("*.txn")) for name in names}

    before = written()
    busy = await_that("a bookie is written to", lambda: [n for n, at in written().items() if at > before[n]])
    return run.process(run.random.choice(busy))


def _kill_bookie(run: Run) -> str:
    bookie = _busy_bookie(run)
    proof = _kill(run, bookie)
    run.go_on()
    run.now()
    bookie.start()
    run.go_on()
    return f"{proof.replace(bookie.name, 'a bookie with open ledgers')}"


def _freeze_bookie(run: Run) -> str:
    bookie = _busy_bookie(run)
    proof = _freeze(run, bookie)
    run.go_on()
    return f"{proof.replace(bookie.name, 'a bookie with open ledgers')}"


# ---- the network -----------------------------------------------------------------------------------------------------


def _cut(run: Run) -> str:
    before, times = sum(proxy.cuts for proxy in run.proxies), 5
    for _ in range(times):
        for proxy in run.proxies:
            proxy.cut()
        run.now()
        run.go_on()
    cuts = sum(proxy.cuts for proxy in run.proxies) - before
    assert cuts >= times, f"only {cuts} cuts"
    return "all connections cut 5 times"


def _half_open(run: Run) -> str:
    run.now()
    before = [proxy.open for proxy in run.proxies]
    assert all(before), f"connections through each proxy: {before}"
    for proxy in run.proxies:
        proxy.stall_open()
    run.go_on()
    return "all connections half open"


def _throttled(run: Run) -> str:
    before = sum(proxy.sent + proxy.returned for proxy in run.proxies)
    run.now()
    try:
        for proxy in run.proxies:
            proxy.throttle(1e6)
            proxy.delay(0.1)
        time.sleep(run.frozen)
        run.go_on()
    finally:
        for proxy in run.proxies:
            proxy.throttle(float("inf"))
            proxy.delay(0.0)
        run.now()
    run.go_on()
    through = sum(proxy.sent + proxy.returned for proxy in run.proxies) - before
    assert through, "nothing went through"
    return f"1 MB/s and 100 ms for {run.frozen:g} s"


# ---- tokens and drivers ----------------------------------------------------------------------------------------------


def _short_tokens(run: Run) -> str:
    """Nothing fails; tokens end while they are in use."""
    life = _token_life(run.scene)
    assert life <= 20, f"tokens live for {life} s"
    for _ in range(4):
        run.now()
        time.sleep(life)
        run.go_on()
    return f"tokens of {life} s, all in use for {4 * life} s and longer"


def _token_life(scene: Scene) -> int:
    with PravegaClient(scene.config, timeout=20.0) as client:
        claims = client.controller.delegation_token(scene.streams["probe"], write=True).split(".")[1]
    told = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    return round(told["exp"] - time.time())


def _driver_stopped(run: Run) -> str:
    """The driver of the query stands still past its lease, another one takes over on its checkpoint; then it wakes."""
    scene = run.scene
    first = scene.processes["query"].pid
    pids = session(first)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # the tasks' processes come and go
            os.kill(pid, signal.SIGSTOP)
    since = time.monotonic()
    scene.take_over()
    # How long another driver takes to start is not what is measured here.
    scene.await_done(since, _PATIENCE)
    time.sleep(max(0.0, since + scene.lease_ms / 1000 + 10.0 - time.monotonic()))
    assert stat_of(first)[:1] == ["T"]
    stopped = time.monotonic() - since
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    woken = run.now()
    error = await_that("the first driver gives up", lambda: scene.retired_error(woken), _PATIENCE)
    scene.end_retired()
    run.go_on()
    assert stopped > scene.lease_ms / 1000
    return f"driver in state T past its lease of {scene.lease_ms / 1000:g} s; then: {error[:60]}"


def session(leader: int) -> list[int]:
    """All processes of a session."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if (stat := stat_of(pid)) and stat[0] != "Z" and int(stat[3]) == leader]


# ---- disks -----------------------------------------------------------------------------------------------------------


def _checkpoint_full(run: Run) -> str:
    jvms = [
        pid for pid in session(run.scene.processes["query"].pid) if Path(f"/proc/{pid}/comm").read_text() == "java\n"
    ]
    proof = full_under_checkpoint(run.scene, jvms)
    run.now()
    run.go_on()
    return proof


FAULTS: Final[dict[str, Fault]] = {
    **{
        f"kill-store-{n}": Fault(f"`kill -9` of segment store {n}", partial(_kill_store, name=f"store-{n}"))
        for n in (1, 2)
    },
    **{
        # The controller waits for the frozen store, up to 120 s, with whatever it has asked it for; the next commits of
        # that stream wait behind it, while those of another one go on.
        f"freeze-store-{n}": Fault(
            f"segment store {n} stands still for 60 s",
            partial(_freeze_store, name=f"store-{n}"),
            commits=_FROZEN + LAG,
        )
        for n in (1, 2)
    },
    "kill-controller": Fault("`kill -9` of the controller, started again", partial(_restart, name="controller-1")),
    "freeze-controller": Fault("the controller stands still for 60 s", partial(_freeze_and_go_on, name="controller-1")),
    "kill-bookie": Fault("`kill -9` of a bookie that holds ledgers", _kill_bookie),
    "freeze-bookie": Fault("a bookie that holds ledgers stands still for 60 s", _freeze_bookie),
    "restart-zookeeper": Fault("`kill -9` of ZooKeeper, started again", partial(_restart, name="zookeeper")),
    "stores-and-controller": Fault("both segment stores and the controller at once", _stores_and_controller),
    "freeze-first-controller": Fault(
        "the first of two controllers stands still for 60 s", _first_controller, Servers.TWO
    ),
    "cut": Fault("all connections of clients are cut, five times", _cut, Servers.PROXIED),
    # New clients are not harmed, and each process has to find out by itself, in up to 10 s of silence: a query has
    # four of them, one after the other.
    "half-open": Fault("all connections of clients become half open", _half_open, Servers.PROXIED, allowed=45.0),
    "throttled": Fault("1 MB/s and 100 ms more for clients, for 60 s", _throttled, Servers.PROXIED),
    "short-tokens": Fault("tokens that live for 20 s", _short_tokens, Servers.TOKENS),
    "full-checkpoint": Fault("no room under a query's checkpoint", _checkpoint_full, fails=("query1",)),
    "full-letters": Fault("no room for an ingestion's dead letters", lambda run: full_under_letters(run.scene)),
    "full-export": Fault("no room for an export", lambda run: full_under_export(run.scene)),
    "driver-stopped": Fault(
        "a driver stands still past its lease, another one took over", _driver_stopped, Servers.LEASE
    ),
}
