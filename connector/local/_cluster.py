"""Starts Pravega as a cluster of processes on this machine: ZooKeeper, bookies, controllers and segment stores."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from connector.config import PravegaConfig
from connector.errors import ConfigError, LocalServerError
from connector.local import _keeper
from connector.local._cluster_process import ClusterProcess, cluster_processes, is_kept
from connector.local._jars import PRAVEGA_JARS, ensure_jars
from connector.local._java import Java, find_java
from connector.local._jvm import HOST, PortTakenError, check_port, last_words, port_taken, write_configuration
from connector.local._ports import free_ports, listens
from connector.local._process import SupervisedProcess
from connector.local._ready import NotReadyError, await_ready, start_until_ready

__all__ = ["Cluster", "ClusterOptions", "launch_cluster"]

_ZOOKEEPER: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_FORMAT: Final = ("org.apache.bookkeeper.bookie.BookieShell", "-conf", "bookie.conf", "initnewcluster")
_BOOKIE: Final = "org.apache.bookkeeper.server.Main"
_CONTROLLER: Final = "io.pravega.controller.server.Main"
_STORE: Final = "io.pravega.segmentstore.server.host.ServiceStarter"

_LEDGERS: Final = "/ledgers"
#: Copies of what a store logs. With one bookie more than that, a ledger goes on elsewhere when one of them is away.
_COPIES: Final = 2
#: MiB of Java heap, and of memory outside of it.
_ZOOKEEPER_MB: Final = (64, 64)
_BOOKIE_MB: Final = (160, 128)
_CONTROLLER_MB: Final = (256, 64)
# Buffers of the network layer, beside the cache.
_STORE_DIRECT_MB: Final = 256
_POLL_SECONDS: Final = 0.05
#: Of the tool that writes the first entries into ZooKeeper.
_FORMAT_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What a cluster consists of.

    ``containers`` are what the segment stores share among them, at least one for each. ``heap_mb`` and ``cache_mb`` are
    upper bounds for each segment store, in MiB; ``port`` is the first controller's, 0 for any free one;
    ``start_timeout`` is in seconds, after the jars are there. ``java_options`` are for controllers and segment stores.
    ``ports`` fixes those of processes by name, and ``published`` gives others that segment stores are to name to
    clients instead of their own: those of proxies.
    """

    controllers: int = 1
    stores: int = 2
    bookies: int = 3
    containers: int = 4
    heap_mb: int = 384
    cache_mb: int = 128
    port: int = 0
    start_timeout: float = 300.0
    java_options: tuple[str, ...] = ()
    ports: Mapping[str, int] = field(default_factory=dict)
    published: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.controllers < 1 or self.stores < 1 or self.bookies < _COPIES or self.containers < self.stores:
            raise ConfigError(
                f"a local cluster needs a controller, a segment store, {_COPIES} bookies, and a container for each "
                f"store at least: {self.controllers}, {self.stores}, {self.bookies}, {self.containers} were given"
            )
        if self.heap_mb < 128 or self.cache_mb < 64:
            raise ConfigError("a local cluster needs heap_mb of 128 and cache_mb of 64 at least")
        if not 0 <= self.port < 1 << 16:
            raise ConfigError(f"port {self.port} is not a TCP port")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: what supervises it, its folder (configuration, logs, what is stored), its processes."""

    process: SupervisedProcess
    folder: Path
    options: ClusterOptions
    ports: Mapping[str, int]
    processes: Mapping[str, ClusterProcess]

    @property
    def controller_uri(self) -> str:
        """Address for clients: all controllers."""
        return "tcp://" + ",".join(f"{HOST}:{self.ports[name]}" for name in self.of("controller"))

    @property
    def uri(self) -> str:
        """As ``controller_uri``."""
        return self.controller_uri

    @property
    def config(self) -> PravegaConfig:
        """What clients need."""
        return PravegaConfig(controller=self.controller_uri)

    @property
    def log(self) -> Path:
        """The first controller's log; each process has its own."""
        return self.processes["controller-1"].log

    @property
    def stores(self) -> dict[tuple[str, int], str]:
        """The segment stores' names, by the addresses that clients get."""
        return {(HOST, self.options.published.get(name, self.ports[name])): name for name in self.of("store")}

    def of(self, kind: str) -> list[str]:
        """Names of the processes of a kind: ``zookeeper``, ``bookie``, ``controller``, ``store``."""
        return [name for name in self.processes if name.partition("-")[0] == kind]

    def check(self) -> None:
        """Raise LocalServerError if a process has ended, PortTakenError if it cannot have its ports."""
        for process in self.processes.values():
            if process.exit_code is None:
                continue
            printed = process.log.read_bytes()
            if port_taken(printed):
                raise PortTakenError(f"a port of {process.name} was taken by another process; see {process.log}")
            raise LocalServerError(
                f"{process.name} ended with exit code {process.exit_code} ({last_words(printed)}); see {process.log}"
            )

    def await_ready(self, timeout: float) -> None:
        """Wait until every segment store takes events and gives them back; raises LocalServerError.

        A bookie or a controller may be away, as far as the others do without it.
        """
        await_ready(self.config, self.stores, deadline=time.monotonic() + timeout, check=self._check_stores)

    def _check_stores(self) -> None:
        for name in self.of("store"):
            _ = self.processes[name].pid


def launch_cluster(options: ClusterOptions, *, lock: Path | None = None) -> Cluster:
    """Start a cluster and wait until every segment store takes events and gives them back.

    The jars are fetched before if need be. ``lock`` is a file that stays locked while the cluster runs. Raises
    JavaNotFoundError, JarDownloadError, LocalServerError; nothing is left running then, and the text names a log.
    """
    java = find_java()
    jars = ensure_jars(PRAVEGA_JARS)
    plan = partial(_Plan, options, java, jars)
    return start_until_ready(lambda: _spawn(plan, lock), _bring_up, seconds=options.start_timeout)


def _spawn(plan: partial[_Plan], lock: Path | None) -> Cluster:
    folder = Path(tempfile.mkdtemp(prefix="pravega-cluster-"))
    try:
        made = plan(folder)
        made.write()
        os.mkfifo(folder / "control")
        # Its words are errors of its own; the processes have logs.
        with open(folder / "keeper.log", "wb") as log:
            command = [sys.executable, "-I", "-S", _keeper.__file__, str(folder)]
            process = SupervisedProcess(command, output=log, folder=folder, lock=lock)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Cluster(process, folder, made.options, made.ports, cluster_processes(folder))


def _bring_up(cluster: Cluster, deadline: float) -> None:
    """Start the processes, each when those that it needs do listen."""
    while not is_kept(cluster.folder):
        if cluster.process.exit_code() is not None or time.monotonic() >= deadline:
            said = (cluster.folder / "keeper.log").read_bytes()
            raise LocalServerError(f"the cluster's keeper did not start ({last_words(said)})")
        time.sleep(_POLL_SECONDS)
    for kind in ("zookeeper", "controller", "bookie", "store"):
        for name in cluster.of(kind):
            cluster.processes[name].start()
        if kind == "controller":
            # It takes longest, and does not need what the others wait for.
            _format(cluster.folder)
        elif kind != "store":
            _await_listening(cluster, kind, deadline)
    await_ready(cluster.config, cluster.stores, deadline=deadline, check=cluster.check)
    cluster.check()


def _await_listening(cluster: Cluster, kind: str, deadline: float) -> None:
    for name in cluster.of(kind):
        while not listens((HOST, cluster.ports[name])):
            cluster.check()
            if time.monotonic() >= deadline:
                raise NotReadyError(f"the cluster was not ready in time: {name} does not listen")
            time.sleep(_POLL_SECONDS)


def _format(folder: Path) -> None:
    """Write what bookies expect to find in ZooKeeper; a short run of a tool of theirs."""
    log = folder / "format.log"
    with log.open("wb") as output:
        done = subprocess.run(
            json.loads((folder / "cluster.json").read_text())["format"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_FORMAT_SECONDS,
            check=False,
        )
    if done.returncode:
        raise LocalServerError(f"BookKeeper's metadata could not be made ({last_words(log.read_bytes())}); see {log}")


class _Plan:
    """Ports, configuration and commands of a cluster's processes in a folder."""

    def __init__(self, options: ClusterOptions, java: Java, jars: Path, folder: Path) -> None:
        fixed = {"controller-1": options.port, **options.ports}
        for port in fixed.values():
            check_port(port)
        self.options, self._java, self._jars, self._folder = options, java, jars, folder
        numbers = {"bookie": options.bookies, "controller": options.controllers, "store": options.stores}
        self._names = ["zookeeper", *(f"{kind}-{n}" for kind, count in numbers.items() for n in range(1, count + 1))]
        # The controllers have a second one, which nobody asks here and which cannot be switched off.
        rest = [f"{name} rest" for name in self._names if name.startswith("controller")]
        wanted = [*self._names, *rest]
        self.ports = dict(zip(wanted, free_ports(len(wanted)), strict=True))
        self.ports |= {name: port for name, port in fixed.items() if port}

    def write(self) -> None:
        """Write everything that the processes read."""
        write_configuration(self._folder, {})
        for name in [*self._names, "storage"]:
            (self._folder / name).mkdir()
        (self._folder / "zookeeper.conf").write_text(_lines(self._zookeeper()))
        for name in self._names:
            if name.startswith("bookie"):
                (self._folder / f"{name}.conf").write_text(_lines(self._bookie(name)))
        shutil.copy(self._folder / "bookie-1.conf", self._folder / "bookie.conf")
        commands = {name: self._command(name) for name in self._names}
        file = {"processes": commands, "format": [*self._jvm(_ZOOKEEPER_MB), *_FORMAT]}
        (self._folder / "cluster.json").write_text(json.dumps(file))

    def _command(self, name: str) -> list[str]:
        if name == "zookeeper":
            # What it has written outlives its process without being synced.
            options = ["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.forceSync=no"]
            return [*self._jvm(_ZOOKEEPER_MB, *options), _ZOOKEEPER, str(self._folder / "zookeeper.conf")]
        if name.startswith("bookie"):
            return [*self._jvm(_BOOKIE_MB), _BOOKIE, "--conf", str(self._folder / f"{name}.conf")]
        if name.startswith("controller"):
            memory, settings, main = _CONTROLLER_MB, self._controller(name), _CONTROLLER
        else:
            memory, settings, main = (self.options.heap_mb, self.options.cache_mb + _STORE_DIRECT_MB), {}, _STORE
            settings = self._store(name)
        properties = [f"-D{key}={value}" for key, value in settings.items()]
        return [*self._jvm(memory, *properties, *self.options.java_options), main]

    def _jvm(self, memory: tuple[int, int], *options: str) -> list[str]:
        heap, direct = memory
        return [
            str(self._java.path),
            f"-Xmx{heap}m",
            f"-XX:MaxDirectMemorySize={direct}m",
            # A server without memory answers nothing and never recovers; one that ended is noticed.
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:+UseSerialGC",
            # They are started often and do little: compiling well does not pay.
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self._folder / 'temp'}",
            f"-Dlogback.configurationFile={self._folder / 'logback.xml'}",
            *options,
            *("-cp", f"{self._jars}/*"),
        ]

    def _zookeeper(self) -> dict[str, Any]:
        return {
            "dataDir": self._folder / "zookeeper",
            "clientPort": self.ports["zookeeper"],
            "clientPortAddress": HOST,
            "tickTime": 2000,
            "maxClientCnxns": 0,
        }

    def _bookie(self, name: str) -> dict[str, Any]:
        return {
            "metadataServiceUri": f"zk+hierarchical://{HOST}:{self.ports['zookeeper']}{_LEDGERS}",
            "advertisedAddress": HOST,
            "bookiePort": self.ports[name],
            "allowLoopback": "true",
            "journalDirectories": self._folder / name / "journal",
            "ledgerDirectories": self._folder / name / "ledgers",
            "journalMaxSizeMB": 64,
            "logSizeLimit": 64 << 20,
            "skipListSizeLimit": 16 << 20,
            # As with ZooKeeper.
            "journalSyncData": "false",
        }

    def _controller(self, name: str) -> dict[str, Any]:
        return {
            "controller.container.count": self.options.containers,
            "controller.zk.connect.uri": f"{HOST}:{self.ports['zookeeper']}",
            "controller.service.rpc.listener.port": self.ports[name],
            "controller.service.rpc.published.host.nameOrIp": HOST,
            "controller.service.rpc.published.port": self.ports[name],
            "controller.service.rest.listener.port": self.ports[f"{name} rest"],
            "controller.security.auth.enable": "false",
        }

    def _store(self, name: str) -> dict[str, Any]:
        zookeeper = f"{HOST}:{self.ports['zookeeper']}"
        return {
            "pravega.configurationFile": self._folder / "server.properties",
            "pravegaservice.container.count": self.options.containers,
            "pravegaservice.zk.connect.uri": zookeeper,
            "pravegaservice.service.listener.host.nameOrIp": HOST,
            "pravegaservice.service.listener.port": self.ports[name],
            "pravegaservice.service.published.host.nameOrIp": HOST,
            "pravegaservice.service.published.port": self.options.published.get(name, self.ports[name]),
            "pravegaservice.rest.listener.enable": "false",
            "pravegaservice.cache.size.max": self.options.cache_mb << 20,
            "pravegaservice.dataLog.impl.name": "BOOKKEEPER",
            "pravegaservice.storage.impl.name": "FILESYSTEM",
            "filesystem.root": self._folder / "storage",
            "bookkeeper.zk.connect.uri": zookeeper,
            "bookkeeper.ledger.path": _LEDGERS,
            "bookkeeper.ensemble.size": _COPIES,
            "bookkeeper.write.quorum.size": _COPIES,
            "bookkeeper.ack.quorum.size": _COPIES,
            # With its default digest a new ledger hangs on Java 17.
            "bookkeeper.digest.type.name": "DUMMY",
            "autoScale.controller.connect.uri": f"tcp://{HOST}:{self.ports['controller-1']}",
        }


def _lines(settings: Mapping[str, Any]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())
