"""A Pravega server of one's own: everything in one JVM, storage in memory."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from connector.errors import LocalServerError
from connector.local._jars import PRAVEGA_JARS, ensure_jars
from connector.local._java import find_java
from connector.local._ports import free_ports
from connector.local._process import SupervisedProcess
from connector.local._ready import probe

__all__ = ["LocalPravega"]

_MAIN: Final = "io.pravega.local.LocalPravegaEmulator"
_HOST: Final = "127.0.0.1"
_LOG: Final = "server.log"
_LOGBACK: Final = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5level [%thread] %logger{36}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


class LocalPravega:
    """A Pravega server on this machine, for tests, demos and trying things out."""

    def __init__(self, *, heap_mb: int = 2048, cache_mb: int = 1024, start_timeout: float = 120.0) -> None:
        self._heap_mb, self._cache_mb, self._start_timeout = heap_mb, cache_mb, start_timeout
        self._process: SupervisedProcess | None = None
        self._controller_port = 0

    @property
    def controller_uri(self) -> str:
        """``tcp://127.0.0.1:<port>``."""
        return f"tcp://{_HOST}:{self._controller_port}"

    def start(self) -> None:
        """Start the server and wait until it takes and gives back an event."""
        java = find_java()
        jars = ensure_jars(PRAVEGA_JARS, java)
        deadline = time.monotonic() + self._start_timeout
        folder = Path(tempfile.mkdtemp(prefix="pravega-local-"))
        controller, store, zookeeper = free_ports(3)
        (folder / "logback.xml").write_text(_LOGBACK)
        (folder / "empty.properties").touch()
        command = [
            str(java.path),
            f"-Xmx{self._heap_mb}m",
            f"-XX:MaxDirectMemorySize={self._cache_mb + 512}m",
            f"-Djava.io.tmpdir={folder}",
            f"-Dpravegaservice.cache.size.max={self._cache_mb << 20}",
            f"-Dlogback.configurationFile={folder / 'logback.xml'}",
            f"-Dsinglenode.configurationFile={folder / 'empty.properties'}",
            f"-Dsinglenode.controller.rpc.port={controller}",
            f"-Dsinglenode.segmentStore.port={store}",
            f"-Dsinglenode.zk.port={zookeeper}",
            "-Dsinglenode.controller.rest.enable=false",
            "-Dsinglenode.admin.gateway.enable=false",
            f"-Dpravegaservice.service.listener.host.nameOrIp={_HOST}",
            "-cp",
            f"{jars}/*",
            _MAIN,
        ]
        with open(folder / _LOG, "wb") as log:
            process = SupervisedProcess(command, output=log, folder=folder)

        def alive() -> None:
            if process.exit_code() is not None:
                raise LocalServerError(f"the Pravega server ended while it started; see {folder / _LOG}")

        try:
            probe((_HOST, controller), (_HOST, store), deadline, alive)
        except BaseException:
            process.close(keep=True)
            raise
        self._process, self._controller_port = process, controller

    def close(self) -> None:
        """End the server."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
