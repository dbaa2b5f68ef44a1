"""A Pravega whose processes can be killed and started again without losing what they stored.

ZooKeeper and two bookies in one JVM, a controller, a segment store that keeps its long-term storage in files. The
standalone server of pravega_connector.local loses its log when it ends.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.local import pravega_jars
from pravega_connector.local.jvm import find_java, write_configuration
from pravega_connector.ports import free_ports, is_free
from pravega_serde.errors import PravegaError
from tools.faults.exactly_once._scene import await_that

__all__ = ["RestartablePravega"]

_LEDGERS: Final = "/pravega/pravega-cluster/bookkeeper/ledgers"
_BOOKIES: Final = "io.pravega.segmentstore.storage.impl.bookkeeper.BookKeeperServiceRunner"
_CONTROLLER: Final = "io.pravega.controller.server.Main"
_STORE: Final = "io.pravega.segmentstore.server.host.ServiceStarter"
_CONTAINERS: Final = 2
_SECONDS: Final = 300.0


class RestartablePravega:
    """The cluster, as a context manager; ``config`` says how to reach it."""

    def __init__(self) -> None:
        java = find_java()
        self._command = [str(java.path), "-cp", f"{pravega_jars()}/*"]
        self._temporary = tempfile.TemporaryDirectory(prefix="pravega-cluster-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self._zookeeper, self._controller, self._rest, self._store, self._admin, self._health = free_ports(6)
        self._bookies = self._two_ports_in_a_row()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.config = PravegaConfig(controller=f"tcp://127.0.0.1:{self._controller}")

    def _two_ports_in_a_row(self) -> int:
        while True:
            (port,) = free_ports(1)
            if is_free(port + 1):
                return port

    def __enter__(self) -> Self:
        write_configuration(self._folder, {})
        (self._folder / "ledgers").mkdir()
        try:
            self._start_bookies()
            self._start_pravega()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for name in list(self._running):
            self._kill(name)
        self._temporary.cleanup()

    def restart(self) -> list[int]:
        """Kill controller and segment store, start them again, and wait until they work; the pids of the killed."""
        killed = [self._kill("controller"), self._kill("store")]
        self._start_pravega()
        return killed

    def _kill(self, name: str) -> int:
        process = self._running.pop(name)
        process.kill()
        process.wait()
        return process.pid

    def _start_bookies(self) -> None:
        settings = {
            "basePort": self._bookies,
            "bookieCount": 2,
            "zkPort": self._zookeeper,
            "zkLedgersPath": _LEDGERS,
            "startZk": "true",
            "ledgersDir": self._folder / "ledgers",
        }
        self._start("bookies", _BOOKIES, 256, settings)

    def _start_pravega(self) -> None:
        zookeeper, address = f"localhost:{self._zookeeper}", "127.0.0.1"
        controller = {
            "controller.container.count": _CONTAINERS,
            "controller.zk.connect.uri": zookeeper,
            "controller.service.rpc.listener.port": self._controller,
            "controller.service.rpc.published.host.nameOrIp": address,
            "controller.service.rpc.published.port": self._controller,
            "controller.service.rest.listener.port": self._rest,
            "controller.security.auth.enable": "false",
        }
        store = {
            "pravega.configurationFile": self._folder / "server.properties",
            "pravegaservice.container.count": _CONTAINERS,
            "pravegaservice.zk.connect.uri": zookeeper,
            "pravegaservice.service.listener.port": self._store,
            "pravegaservice.service.published.host.nameOrIp": address,
            "pravegaservice.admin.gateway.port": self._admin,
            "pravegaservice.rest.listener.port": self._health,
            "pravegaservice.dataLog.impl.name": "BOOKKEEPER",
            "pravegaservice.storage.impl.name": "FILESYSTEM",
            "filesystem.root": self._folder / "storage",
            "pravegaservice.cache.size.max": 256 << 20,
            "bookkeeper.zk.connect.uri": zookeeper,
            "bookkeeper.ledger.path": _LEDGERS,
            "bookkeeper.ensemble.size": 2,
            "bookkeeper.ack.quorum.size": 2,
            "bookkeeper.write.quorum.size": 2,
            # With its default digest a new ledger hangs on Java 17.
            "bookkeeper.digest.type.name": "DUMMY",
            "autoScale.controller.connect.uri": f"tcp://localhost:{self._controller}",
        }
        self._start("controller", _CONTROLLER, 384, controller)
        self._start("store", _STORE, 512, store)
        await_that("Pravega takes an event and gives it back", self._works, _SECONDS)

    def _start(self, name: str, main: str, heap_mb: int, settings: dict[str, object]) -> None:
        command = [*self._command[:1], f"-Xmx{heap_mb}m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        command += [f"-Dlogback.configurationFile={self._folder / 'logback.xml'}"]
        command += [f"-D{key}={value}" for key, value in settings.items()]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*command, *self._command[1:], main], cwd=self._folder, stdout=log, stderr=subprocess.STDOUT
            )

    def _works(self) -> bool:
        for name, process in self._running.items():
            log = self._folder / f"{name}.log"
            assert process.poll() is None, f"{name} ended: {log.read_text(errors='replace')[-1500:]}"
        stream = StreamName("probe", f"probe{time.monotonic_ns()}")
        with suppress(PravegaError), PravegaClient(self.config, timeout=10.0) as client:
            client.create_stream(stream)
            with client.writer(stream) as writer:
                writer.write(b"works")
            return list(client.read(stream)) == [b"works"]
        return False
