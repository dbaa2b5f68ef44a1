"""Scenarios of a cluster: servers, networks, disks, tokens and drivers fail, and every kind of client must recover."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from pravega_connector.client import PravegaClient
from pravega_connector.local import ClusterProcess
from tests.faults.cluster.clients import Clients
from tests.faults.cluster.disks import full_under_checkpoint, full_under_export, full_under_letters
from tests.faults.cluster.setup import COLUMNS, LAG, ClusterScenario, ClusterSettings, ClusterSetup, Servers, Trial
from tests.faults.harness import Table
from tests.faults.processes import Outage, await_that, kill_server, pause_server

#: Seconds until a driver gives up.
_PATIENCE: Final = 240.0


def _kill(trial: Trial, process: ClusterProcess) -> str:
    trial.mark()
    return kill_server(process)


def _freeze(trial: Trial, process: ClusterProcess, meanwhile: Callable[[], None] = lambda: None) -> str:
    """Pause a process, and resume it when the time is over and ``meanwhile`` has returned."""
    trial.mark()
    with pause_server(process, trial.settings.frozen):
        meanwhile()
    trial.mark()
    return f"{process.name} in state T for {trial.settings.frozen:g} s"


# ---- segment stores --------------------------------------------------------------------------------------------------


def _kill_store(trial: Trial, name: str) -> str:
    trial.await_containers(name)
    proof = _kill(trial, trial.process(name))
    trial.recover()
    trial.await_containers(name, none=True)
    trial.mark()
    trial.process(name).start()
    trial.await_containers(name)
    trial.recover()
    return f"{proof}; its containers moved away and back"


def _freeze_store(trial: Trial, name: str) -> str:
    trial.await_containers(name)
    # Resumed in time, even if clients have not recovered: the controller waits 120 s for an answer of the frozen store.
    proof = _freeze(trial, trial.process(name), lambda: trial.await_containers(name, none=True))
    trial.recover()
    trial.await_containers(name)
    return f"{proof}; its containers moved away and back"


def _stores_and_controller(trial: Trial) -> str:
    names = ("store-1", "store-2", "controller-1")
    proofs = [_kill(trial, trial.process(name)) for name in names]
    trial.mark()
    for name in names:
        trial.process(name).start()
    for name in names[:2]:
        trial.await_containers(name)
    trial.recover()
    return ", ".join(proofs)


# ---- controllers, bookies, ZooKeeper ---------------------------------------------------------------------------------


def _restart(trial: Trial, name: str) -> str:
    process = trial.process(name)
    before = process.pid
    proof = _kill(trial, process)
    time.sleep(trial.random.uniform(0.0, 5.0))
    trial.mark()
    process.start()
    assert process.pid != before
    trial.recover()
    return f"{proof}; started again"


def _freeze_first_controller(trial: Trial) -> str:
    """Freeze the first of two controllers after a successful call: all clients must use the other one."""
    assert len(trial.cluster.of("controller")) == 2
    proof = _freeze(trial, trial.process("controller-1"), trial.recover)
    trial.recover()
    return f"{proof}; all clients recovered before it resumed"


def _busy_bookie(trial: Trial) -> ClusterProcess:
    """Return a bookie that is being written to."""
    folder, names = trial.cluster.folder, trial.cluster.of("bookie")

    def written() -> dict[str, int]:
        return {name: sum(file.stat().st_mtime_ns for file in (folder / name).rglob("*.txn")) for name in names}

    before = written()
    busy = await_that("a bookie is written to", lambda: [n for n, at in written().items() if at > before[n]])
    return trial.process(trial.random.choice(busy))


def _kill_bookie(trial: Trial) -> str:
    bookie = _busy_bookie(trial)
    proof = _kill(trial, bookie)
    trial.recover()
    trial.mark()
    bookie.start()
    trial.recover()
    return proof.replace(bookie.name, "a bookie with open ledgers")


def _freeze_server(trial: Trial, *, bookie: bool) -> str:
    server = _busy_bookie(trial) if bookie else trial.process("controller-1")
    proof = _freeze(trial, server)
    trial.recover()
    return proof.replace(server.name, "a bookie with open ledgers") if bookie else proof


# ---- the network -----------------------------------------------------------------------------------------------------


def _cut(trial: Trial) -> str:
    before, times = sum(proxy.cuts for proxy in trial.proxies), 5
    for _ in range(times):
        for proxy in trial.proxies:
            proxy.cut()
        trial.mark()
        trial.recover()
    cuts = sum(proxy.cuts for proxy in trial.proxies) - before
    assert cuts >= times, f"only {cuts} cuts"
    return "all connections cut 5 times"


def _half_open(trial: Trial) -> str:
    trial.mark()
    before = [proxy.open for proxy in trial.proxies]
    assert all(before), f"connections through each proxy: {before}"
    for proxy in trial.proxies:
        proxy.stall_open()
    trial.recover()
    return "all connections half open"


def _throttled(trial: Trial) -> str:
    before = sum(proxy.sent + proxy.returned for proxy in trial.proxies)
    trial.mark()
    try:
        for proxy in trial.proxies:
            proxy.throttle(1e6)
            proxy.delay(0.1)
        time.sleep(trial.settings.frozen)
        trial.recover()
    finally:
        for proxy in trial.proxies:
            proxy.throttle(float("inf"))
            proxy.delay(0.0)
        trial.mark()
    trial.recover()
    through = sum(proxy.sent + proxy.returned for proxy in trial.proxies) - before
    assert through, "nothing went through"
    return f"1 MB/s and 100 ms for {trial.settings.frozen:g} s"


# ---- tokens, drivers, disks ------------------------------------------------------------------------------------------


def _short_tokens(trial: Trial) -> str:
    """Nothing fails; tokens expire while they are in use."""
    life = _token_life(trial.clients)
    assert life <= 20, f"tokens live for {life} s"
    for _ in range(4):
        trial.mark()
        time.sleep(life)
        trial.recover()
    return f"tokens of {life} s, all in use for {4 * life} s and longer"


def _token_life(clients: Clients) -> int:
    with PravegaClient(clients.config, timeout=20.0) as client:
        claims = client.controller.delegation_token(clients.streams["probe"], write=True).split(".")[1]
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    return round(decoded["exp"] - time.time())


def _driver_stopped(trial: Trial) -> str:
    """Pause the driver for longer than its lease, while another driver takes over its checkpoint; then resume it."""
    clients = trial.clients
    first = clients.processes["query"]
    first.pause()
    since = time.monotonic()
    clients.take_over()
    # The time that another driver needs to start is not measured here.
    clients.await_done(since, _PATIENCE)
    lease = clients.lease_ms / 1000
    time.sleep(max(0.0, since + lease + 10.0 - time.monotonic()))
    assert time.monotonic() - since > lease
    proof = first.resume()
    woken = trial.mark()
    error = await_that("the first driver gives up", lambda: clients.retired_error(woken), _PATIENCE)
    clients.end_retired()
    trial.recover()
    return f"driver {proof} past its lease of {lease:g} s; then: {error[:60]}"


def _checkpoint_full(trial: Trial) -> str:
    pids = trial.clients.processes["query"].processes()
    jvms = [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    proof = full_under_checkpoint(trial.clients, jvms)
    trial.mark()
    trial.recover()
    return proof


# ---- random faults, and no faults
# -----------------------------------------------------------------------------------------


def _soak(trial: Trial) -> str:
    """Kill and freeze one to three servers at random times, and wait until all clients recover."""
    names = trial.random.sample(sorted(trial.cluster.processes), trial.random.choice((1, 1, 2, 3)))
    outages = [
        Outage(
            trial.process(name),
            kill=trial.random.random() < 0.6,
            after=trial.random.uniform(0, 15),
            seconds=trial.random.uniform(1, 45),
        )
        for name in names
    ]
    steps = [(outage.after, outage.begin) for outage in outages]
    steps += [(outage.after + outage.seconds, outage.end) for outage in outages]
    begin = time.monotonic()
    for at, step in sorted(steps, key=lambda one: one[0]):
        time.sleep(max(0.0, begin + at - time.monotonic()))
        step()
    trial.mark()
    for process in trial.cluster.processes.values():
        # A server may end itself after its session has ended; an operator starts it again.
        process.start()
    trial.recover()
    return "; ".join(map(str, outages))


def _micro_batches(trial: Trial) -> str:
    """Run a query for many micro-batches, without faults."""
    timeline, begin, wanted = trial.clients.timeline(), time.monotonic(), trial.settings.batches
    await_that(
        f"{wanted} micro-batches are done",
        lambda: len(timeline.refresh().done["query1"]) >= wanted,
        30.0 * wanted,
        poll=5.0,
    )
    return f"{wanted} micro-batches in {time.monotonic() - begin:.0f} s"


# ---- the table -------------------------------------------------------------------------------------------------------


def _scenarios() -> Iterator[ClusterScenario]:
    one = ClusterScenario
    for n in (1, 2):
        yield one(f"kill-store-{n}", f"`kill -9` of segment store {n}", partial(_kill_store, name=f"store-{n}"))
    for n in (1, 2):
        # The controller waits up to 120 s for the frozen store; later commits of that stream wait for it as well.
        play = partial(_freeze_store, name=f"store-{n}")
        about = f"segment store {n} is paused for 60 s"
        yield one(f"freeze-store-{n}", about, play, commits=ClusterSettings.frozen + LAG)
    restart = partial(_restart, name="controller-1")
    yield one("kill-controller", "`kill -9` of the controller, started again", restart)
    yield one("freeze-controller", "the controller is paused for 60 s", partial(_freeze_server, bookie=False))
    yield one("kill-bookie", "`kill -9` of a bookie that holds ledgers", _kill_bookie)
    yield one("freeze-bookie", "a bookie that holds ledgers is paused for 60 s", partial(_freeze_server, bookie=True))
    restart = partial(_restart, name="zookeeper")
    yield one("restart-zookeeper", "`kill -9` of ZooKeeper, started again", restart)
    yield one("stores-and-controller", "both segment stores and the controller at once", _stores_and_controller)
    about = "the first of two controllers is paused for 60 s"
    yield one("freeze-first-controller", about, _freeze_first_controller, Servers.TWO)
    yield one("cut", "all connections of clients are cut, five times", _cut, Servers.PROXIED)
    # New clients are not affected. Each old process must detect the fault in up to 10 s of silence; a query has four
    # of them, one after another.
    about = "all connections of clients become half open"
    yield one("half-open", about, _half_open, Servers.PROXIED, allowed=45.0)
    yield one("throttled", "1 MB/s and 100 ms more for clients, for 60 s", _throttled, Servers.PROXIED)
    yield one("short-tokens", "tokens that live for 20 s", _short_tokens, Servers.TOKENS)
    yield one("full-checkpoint", "no room for a query's checkpoint", _checkpoint_full, fails=("query1",))
    about = "no room for the dead letters of an ingestion"
    yield one("full-letters", about, lambda trial: full_under_letters(trial.clients))
    yield one("full-export", "no room for an export", lambda trial: full_under_export(trial.clients))
    about = "a driver is paused past its lease, and another one takes over"
    yield one("driver-stopped", about, _driver_stopped, Servers.LEASE)
    about = "one to three servers are killed or paused at random times"
    yield one("soak", about, _soak, Servers.SAMPLED, by_name=True)
    yield one("micro-batches", "none, for many micro-batches", _micro_batches, Servers.SAMPLED, by_name=True)


TABLE: Final = Table(tuple(_scenarios()), ClusterSetup, ClusterSettings(), COLUMNS, "cluster-faults.md cluster")
