"""Pravega as a cluster of processes on this machine: ZooKeeper, bookies, controllers and segment stores."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError, LocalServerError
from pravega_connector.local.jars import PRAVEGA_JARS, ensure_jars
from pravega_connector.local.jvm import Java, find_java, write_configuration
from pravega_connector.local.launch import (
    HOST,
    QUICK_SCALING,
    Launched,
    NotReadyError,
    await_ready,
    check_log,
    last_words,
    start_in_folder,
    start_until_ready,
)
from pravega_connector.local.process import isolated
from pravega_connector.local.security import check_credentials, cluster_auth, with_credentials
from pravega_connector.tcp_ports import check_port, check_port_number, free_ports, listens

_ZOOKEEPER: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_FORMAT: Final = ("org.apache.bookkeeper.bookie.BookieShell", "-conf", "bookie.conf", "initnewcluster")
_BOOKIE: Final = "org.apache.bookkeeper.server.Main"
_CONTROLLER: Final = "io.pravega.controller.server.Main"
_STORE: Final = "io.pravega.segmentstore.server.host.ServiceStarter"

_LEDGERS: Final = "/ledgers"
_KEEPER_LOG: Final = "keeper.log"
#: Copies of a store's log. With one more bookie, a ledger continues on another bookie when one is down.
_COPIES: Final = 2
#: MiB of the Java heap, and of memory outside of it.
_ZOOKEEPER_MB: Final = (64, 64)
_BOOKIE_MB: Final = (160, 128)
_CONTROLLER_MB: Final = (256, 64)
# Buffers of the network layer, in addition to the cache.
_STORE_DIRECT_MB: Final = 256
_POLL_SECONDS: Final = 0.05
#: Timeout of the tool that writes the first entries to ZooKeeper.
_FORMAT_SECONDS: Final = 120.0
# Timeout of one command: a segment store takes a few seconds to end in order.
_COMMAND_SECONDS: Final = 60.0
_COMMAND_POLL_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Options of a cluster: its processes, their memory and ports.

    - ``containers`` is the number of segment containers, which the segment stores share. There must be one for each
      store.
    - ``heap_mb`` and ``cache_mb`` limit the memory of each segment store, in MiB.
    - ``port`` is the first controller's port; 0 is any free one. ``ports`` sets the ports of processes by name.
    - ``published`` sets the ports that segment stores announce to clients, for example the ports of proxies.
    - ``start_timeout`` is in seconds. It does not include the download of the jars.
    - ``java_options`` are for controllers and segment stores.
    - With ``username`` and ``password``, the cluster accepts only this user. A delegation token is valid for
      ``token_seconds`` (default: 600).
    - ``quick_scaling``: see ServerOptions.
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
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token_seconds: int | None = None
    quick_scaling: bool = False

    def __post_init__(self) -> None:
        if self.controllers < 1 or self.stores < 1 or self.bookies < _COPIES or self.containers < self.stores:
            raise ConfigError(
                f"a local cluster needs a controller, a segment store, {_COPIES} bookies, and a container for each "
                f"store at least: {self.controllers}, {self.stores}, {self.bookies}, {self.containers} were given"
            )
        if self.heap_mb < 128 or self.cache_mb < 64:
            raise ConfigError("a local cluster needs heap_mb of 128 and cache_mb of 64 at least")
        check_port_number(self.port)
        check_credentials(self.username, self.password, self.token_seconds)


@dataclass(frozen=True, slots=True)
class Cluster(Launched):
    """Running cluster: its supervisor, its processes, and its folder with configuration, logs and data."""

    title: ClassVar[str] = "cluster"

    options: ClusterOptions
    ports: Mapping[str, int]
    processes: Mapping[str, ClusterProcess]

    @property
    def uri(self) -> str:
        """Address of all controllers."""
        return "tcp://" + ",".join(f"{HOST}:{self.ports[name]}" for name in self.of("controller"))

    @property
    def config(self) -> PravegaConfig:
        """Address, with the credentials that clients need."""
        return with_credentials(PravegaConfig(controller=self.uri), self.options.username, self.options.password)

    @property
    def log(self) -> Path:
        """Log of the first controller; each process has its own."""
        return self.processes["controller-1"].log

    @property
    def stores(self) -> dict[tuple[str, int], str]:
        """Names of the segment stores, by the address that clients get."""
        return {(HOST, self.options.published.get(name, self.ports[name])): name for name in self.of("store")}

    def of(self, kind: str) -> list[str]:
        """Return the names of the processes of a kind: ``zookeeper``, ``bookie``, ``controller`` or ``store``."""
        return [name for name in self.processes if name.partition("-")[0] == kind]

    def check(self) -> None:
        """Raise LocalServerError if a process has ended, or PortTakenError if a port of it is taken."""
        for process in self.processes.values():
            if process.exit_code is not None:
                check_log(process.name, process.log, process.exit_code)

    def await_ready(self, timeout: float) -> None:
        """Wait until every segment store accepts events and returns them. Raises LocalServerError.

        A bookie or a controller may be down, if the others work without it.
        """
        try:
            await_ready(self.config, self.stores, deadline=time.monotonic() + timeout, check=self._check_stores)
        except NotReadyError as error:
            ended = ", ".join(name for name, process in self.processes.items() if not process.running)
            raise NotReadyError(f"{error.message} ({ended} do not run)" if ended else error.message) from error

    def restart(self, timeout: float) -> None:
        """Kill all processes, start them again in the order in which they need each other, and wait until ready.

        Raises LocalServerError.
        """
        deadline = time.monotonic() + timeout
        for process in reversed(list(self.processes.values())):
            process.kill()
        for _ in _start_in_order(self, deadline):
            pass
        self.await_ready(deadline - time.monotonic())

    def _check_stores(self) -> None:
        for name in self.of("store"):
            _ = self.processes[name].pid


def launch_cluster(options: ClusterOptions, *, lock: Path | None = None) -> Cluster:
    """Start a cluster, and wait until every segment store accepts events and returns them.

    Missing jars are downloaded first. ``lock`` is a file that stays locked while the cluster runs. Raises
    JavaNotFoundError, JarDownloadError, LocalServerError. After an error, nothing is left running, and the text names a
    log.
    """
    java, jars = find_java(), ensure_jars(PRAVEGA_JARS)

    def spawn() -> Cluster:
        plan = _Plan(options, java, jars)

        def prepare(folder: Path) -> list[str]:
            plan.write(folder)
            os.mkfifo(folder / "control")
            return isolated("keep", str(folder))

        # The keeper prints only the keeper's errors. Each process has its own log.
        process, folder = start_in_folder("pravega-cluster-", prepare, log=_KEEPER_LOG, lock=lock)
        return Cluster(process, folder, options, plan.ports, cluster_processes(folder))

    return start_until_ready(spawn, _bring_up, seconds=options.start_timeout)


def _bring_up(cluster: Cluster, deadline: float) -> None:
    """Start the processes, and wait until they work."""
    while not is_kept(cluster.folder):
        if cluster.process.exit_code() is not None or time.monotonic() >= deadline:
            said = (cluster.folder / _KEEPER_LOG).read_bytes()
            raise LocalServerError(f"the cluster's keeper did not start ({last_words(said)})")
        time.sleep(_POLL_SECONDS)
    for kind in _start_in_order(cluster, deadline):
        if kind == "controller":
            # Controllers take longest to start, and do not need this metadata.
            _format(cluster.folder)
    await_ready(cluster.config, cluster.stores, deadline=deadline, check=cluster.check)
    cluster.check()


def _start_in_order(cluster: Cluster, deadline: float) -> Iterator[str]:
    """Start the processes, and yield each kind when its processes are started.

    The others end by themselves if ZooKeeper does not accept connections within 10 s. Stores need bookies.
    """
    for kind in ("zookeeper", "controller", "bookie", "store"):
        for name in cluster.of(kind):
            cluster.processes[name].start()
        yield kind
        if kind in ("zookeeper", "bookie"):
            _await_listening(cluster, kind, deadline)


def _await_listening(cluster: Cluster, kind: str, deadline: float) -> None:
    for name in cluster.of(kind):
        process = cluster.processes[name]
        while not listens((HOST, cluster.ports[name])):
            if not process.running:
                check_log(name, process.log, process.exit_code)
            if time.monotonic() >= deadline:
                raise NotReadyError(f"the cluster was not ready in time: {name} does not listen")
            time.sleep(_POLL_SECONDS)


def _format(folder: Path) -> None:
    """Run the BookKeeper tool that writes the metadata of the bookies to ZooKeeper."""
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
    """Ports, configuration and commands of a cluster's processes."""

    def __init__(self, options: ClusterOptions, java: Java, jars: Path) -> None:
        fixed = {"controller-1": options.port, **options.ports}
        for port in fixed.values():
            check_port(port)
        self._options, self._java, self._jars = options, java, jars
        numbers = {"bookie": options.bookies, "controller": options.controllers, "store": options.stores}
        self._names = ["zookeeper", *(f"{kind}-{n}" for kind, count in numbers.items() for n in range(1, count + 1))]
        # Controllers have a second port, which is unused here and cannot be disabled.
        rest = [f"{name} rest" for name in self._names if name.startswith("controller")]
        wanted = [*self._names, *rest]
        self.ports = dict(zip(wanted, free_ports(len(wanted)), strict=True))
        self.ports |= {name: port for name, port in fixed.items() if port}

    def write(self, folder: Path) -> None:
        """Write all files that the processes read."""
        properties = write_configuration(folder, {})
        for name in [*self._names, "storage"]:
            (folder / name).mkdir()
        (folder / "zookeeper.conf").write_text(_lines(self._zookeeper(folder)))
        for name in self._names:
            if name.startswith("bookie"):
                (folder / f"{name}.conf").write_text(_lines(self._bookie(name, folder)))
        shutil.copy(folder / "bookie-1.conf", folder / "bookie.conf")
        secrets = cluster_auth(folder, self._options.username, self._options.password, self._options.token_seconds)
        commands = {name: self._command(name, folder, properties, secrets) for name in self._names}
        file = {"processes": commands, "format": self._java_command(folder, _FORMAT, _ZOOKEEPER_MB)}
        (folder / "cluster.json").write_text(json.dumps(file))

    def _command(self, name: str, folder: Path, properties: Path, secrets: Sequence[str]) -> list[str]:
        if name == "zookeeper":
            # Written data outlives the process without a sync.
            options = ["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.forceSync=no"]
            main = [_ZOOKEEPER, str(folder / "zookeeper.conf")]
            return self._java_command(folder, main, _ZOOKEEPER_MB, options)
        if name.startswith("bookie"):
            return self._java_command(folder, [_BOOKIE, "--conf", str(folder / f"{name}.conf")], _BOOKIE_MB)
        if name.startswith("controller"):
            memory, settings, main = _CONTROLLER_MB, self._controller(name), [_CONTROLLER]
        else:
            memory = self._options.heap_mb, self._options.cache_mb + _STORE_DIRECT_MB
            settings, main = self._store(name, folder, properties), [_STORE]
        options = [f"-D{key}={value}" for key, value in settings.items()]
        return self._java_command(folder, main, memory, [*options, *secrets, *self._options.java_options])

    def _java_command(
        self, folder: Path, main: Sequence[str], memory: tuple[int, int], options: Sequence[str] = ()
    ) -> list[str]:
        heap, direct = memory
        return self._java.command(self._jars, folder, main, heap_mb=heap, direct_mb=direct, quick=True, options=options)

    def _zookeeper(self, folder: Path) -> dict[str, Any]:
        return {
            "dataDir": folder / "zookeeper",
            "clientPort": self.ports["zookeeper"],
            "clientPortAddress": HOST,
            "tickTime": 2000,
            "maxClientCnxns": 0,
        }

    def _bookie(self, name: str, folder: Path) -> dict[str, Any]:
        return {
            "metadataServiceUri": f"zk+hierarchical://{HOST}:{self.ports['zookeeper']}{_LEDGERS}",
            "advertisedAddress": HOST,
            "bookiePort": self.ports[name],
            "allowLoopback": "true",
            "journalDirectories": folder / name / "journal",
            "ledgerDirectories": folder / name / "ledgers",
            "journalMaxSizeMB": 64,
            "logSizeLimit": 64 << 20,
            "skipListSizeLimit": 16 << 20,
            # No sync, as in ZooKeeper.
            "journalSyncData": "false",
            # By default, a bookie takes no data when 95 % of the disk are used.
            "diskUsageThreshold": 0.999,
        }

    def _controller(self, name: str) -> dict[str, Any]:
        return {
            "controller.container.count": self._options.containers,
            "controller.zk.connect.uri": f"{HOST}:{self.ports['zookeeper']}",
            "controller.service.rpc.listener.port": self.ports[name],
            "controller.service.rpc.published.host.nameOrIp": HOST,
            "controller.service.rpc.published.port": self.ports[name],
            "controller.service.rest.listener.port": self.ports[f"{name} rest"],
            "controller.security.auth.enable": "false" if self._options.username is None else "true",
        }

    def _store(self, name: str, folder: Path, properties: Path) -> dict[str, Any]:
        zookeeper = f"{HOST}:{self.ports['zookeeper']}"
        return {
            "pravega.configurationFile": properties,
            "pravegaservice.container.count": self._options.containers,
            "pravegaservice.zk.connect.uri": zookeeper,
            "pravegaservice.service.listener.host.nameOrIp": HOST,
            "pravegaservice.service.listener.port": self.ports[name],
            "pravegaservice.service.published.host.nameOrIp": HOST,
            "pravegaservice.service.published.port": self._options.published.get(name, self.ports[name]),
            "pravegaservice.rest.listener.enable": "false",
            "pravegaservice.cache.size.max": self._options.cache_mb << 20,
            "pravegaservice.dataLog.impl.name": "BOOKKEEPER",
            "pravegaservice.storage.impl.name": "FILESYSTEM",
            "filesystem.root": folder / "storage",
            "bookkeeper.zk.connect.uri": zookeeper,
            "bookkeeper.ledger.path": _LEDGERS,
            "bookkeeper.ensemble.size": _COPIES,
            "bookkeeper.write.quorum.size": _COPIES,
            "bookkeeper.ack.quorum.size": _COPIES,
            # With the default digest, a new ledger hangs on Java 17.
            "bookkeeper.digest.type.name": "DUMMY",
            "autoScale.controller.connect.uri": f"tcp://{HOST}:{self.ports['controller-1']}",
            # This setting also makes a store require tokens.
            "autoScale.controller.connect.security.auth.enable": "false" if self._options.username is None else "true",
            **(QUICK_SCALING if self._options.quick_scaling else {}),
        }


def _lines(settings: Mapping[str, Any]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


class ClusterProcess:
    """Process of a cluster. A command returns when it has taken effect, or raises LocalServerError after 60 s.

    A restarted process keeps its ports, folder and data. It may not be ready yet: use ``LocalPravega.await_ready``. Any
    process of the same user can send the commands.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.name = name

    @property
    def log(self) -> Path:
        """Log file with the warnings and errors of all starts."""
        return self._folder / f"{self.name}.log"

    @property
    def pid(self) -> int:
        """Process id. Raises LocalServerError if the process does not run."""
        pid = self._pid()
        if pid is None:
            raise LocalServerError(f"{self.name} does not run; start it again, or see {self.log}")
        return pid

    @property
    def running(self) -> bool:
        """True if the process was started and has not ended. A paused process runs too."""
        return self._pid() is not None

    @property
    def paused(self) -> bool:
        """True if the process is paused."""
        return self.running and self._state()["state"] == "paused"

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative after a signal. None if the process runs or was never started."""
        code = self._state()["code"]
        return None if code is None else int(code)

    def start(self) -> None:
        """Start the process unless it runs."""
        if self.running:
            return
        before = self._state()["starts"]
        try:
            control = _open_control(self._folder)
        except OSError as error:
            raise LocalServerError(f"cannot start {self.name}: its cluster has ended") from error
        with open(control, "wb") as pipe:
            pipe.write(f"{self.name}\n".encode())
        self._await("start", lambda: self._state()["starts"] > before)

    def terminate(self) -> None:
        """End the process with SIGTERM, and wait for its end."""
        self._signal(signal.SIGTERM)
        self._await("end", lambda: not self.running)

    def kill(self) -> None:
        """End the process with SIGKILL. This has no effect if it has ended."""
        self._signal(signal.SIGKILL)
        self._await("end", lambda: not self.running)

    def pause(self) -> None:
        """Pause the process with SIGSTOP. It keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)
        self._await("stop", lambda: self.paused)

    def resume(self) -> None:
        """Resume a paused process with SIGCONT."""
        self._signal(signal.SIGCONT)
        self._await("go on", lambda: not self.paused)

    def restart(self) -> None:
        """Kill the process if it runs, and start it again."""
        self.kill()
        self.start()

    def _signal(self, number: signal.Signals) -> None:
        pid = self._pid()
        if pid is None and number != signal.SIGKILL:
            raise LocalServerError(f"cannot send {number.name} to {self.name}: it does not run")
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)

    def _pid(self) -> int | None:
        state = self._state()
        return state["pid"] if state["state"] in ("running", "paused") and is_kept(self._folder) else None

    def _state(self) -> dict[str, Any]:
        try:
            told: dict[str, Any] = json.loads((self._folder / f"{self.name}.state").read_text())
        except FileNotFoundError:
            return {"pid": 0, "state": "new", "code": None, "starts": 0}
        return told

    def _await(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _COMMAND_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise LocalServerError(f"{self.name} did not {what} in {_COMMAND_SECONDS:.0f} s; see {self.log}")
            time.sleep(_COMMAND_POLL_SECONDS)

    def __repr__(self) -> str:
        return f"ClusterProcess({self.name!r})"


def cluster_processes(folder: Path) -> Mapping[str, ClusterProcess]:
    """Return the processes of the cluster in a folder by name, in the order in which they are started."""
    try:
        names = json.loads((folder / "cluster.json").read_text())["processes"]
    except FileNotFoundError as error:
        raise LocalServerError(f"the cluster in {folder} has ended") from error
    return {name: ClusterProcess(folder, name) for name in names}


def is_kept(folder: Path) -> bool:
    """Return True if the keeper runs. Without it, the recorded states are out of date."""
    try:
        os.close(_open_control(folder))
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    return True


def _open_control(folder: Path) -> int:
    # Raises OSError if no process reads the pipe.
    return os.open(folder / "control", os.O_WRONLY | os.O_NONBLOCK)
