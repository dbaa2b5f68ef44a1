"""Starts the Pravega standalone: one JVM with controller, segment store and ZooKeeper, in a temporary folder."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from connector.config import PravegaConfig
from connector.errors import ConfigError
from connector.local._jars import PRAVEGA_JARS, ensure_jars
from connector.local._java import Java, find_java
from connector.local._jvm import HOST, LOG_NAME, check_port, check_running, write_configuration
from connector.local._ports import free_ports
from connector.local._process import SupervisedProcess
from connector.local._ready import await_ready, start_until_ready
from connector.local._security import CA_FILE, auth_settings, tls_settings

__all__ = ["Server", "ServerOptions", "launch"]

_MAIN: Final = "io.pravega.local.LocalPravegaEmulator"
# Buffers of the network layer, beside the cache.
_DIRECT_MEMORY_MB: Final = 512
# Between two watermarks of a stream whose writers note times; a cluster has 10 s, which is long to wait for a trial.
_WATERMARK_SECONDS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What a server may use.

    ``heap_mb`` and ``cache_mb`` are upper bounds in MiB: both have to hold what a burst of writes is ahead of the disk.
    With the server's own default of 128 MiB for the cache a burst of 160 MB/s breaks it for good; measured with these
    defaults: 3 GB at 250 MB/s.
    ``port`` is the controller's, 0 for any free one. ``start_timeout`` is in seconds, after the jars are there. With
    ``username`` and ``password`` the server lets nobody else in; ``tls`` needs the package ``cryptography``.
    """

    heap_mb: int = 2048
    cache_mb: int = 1024
    port: int = 0
    start_timeout: float = 180.0
    java_options: tuple[str, ...] = ()
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False

    def __post_init__(self) -> None:
        if self.heap_mb < 256 or self.cache_mb < 64:
            raise ConfigError("a local Pravega needs heap_mb of 256 and cache_mb of 64 at least")
        if not 0 <= self.port < 1 << 16:
            raise ConfigError(f"port {self.port} is not a TCP port")
        if (self.username is None) != (self.password is None):
            raise ConfigError("a local Pravega with credentials needs both username and password")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its process, its folder (configuration, log, stored events) and its ports."""

    process: SupervisedProcess
    folder: Path
    options: ServerOptions
    controller_port: int
    store_port: int

    @property
    def controller_uri(self) -> str:
        """Address for clients."""
        return f"{'tls' if self.options.tls else 'tcp'}://{HOST}:{self.controller_port}"

    @property
    def uri(self) -> str:
        """As ``controller_uri``."""
        return self.controller_uri

    @property
    def config(self) -> PravegaConfig:
        """What clients need to be let in."""
        config = PravegaConfig(controller=self.controller_uri)
        if self.options.tls:
            config = config.with_tls(ca_file=self.folder / CA_FILE)
        if self.options.username is not None and self.options.password is not None:
            config = config.with_credentials(self.options.username, self.options.password)
        return config

    @property
    def log(self) -> Path:
        """What the server printed: warnings, errors, and what the JVM said."""
        return self.folder / LOG_NAME

    def check(self) -> None:
        """Raise LocalServerError if the server has ended or cannot have its ports."""
        check_running("Pravega server", self.process, self.log)


def launch(options: ServerOptions, *, lock: Path | None = None) -> Server:
    """Start a server and wait until it takes an event and gives it back.

    The jars are fetched before if need be. ``lock`` is a file that stays locked while the server runs. Raises
    JavaNotFoundError, JarDownloadError, LocalServerError; nothing is left running then, and the text names the log.
    """
    java = find_java()
    jars = ensure_jars(PRAVEGA_JARS)

    def await_one(server: Server, deadline: float) -> None:
        await_ready(server.config, [(HOST, server.store_port)], deadline=deadline, check=server.check)
        server.check()

    return start_until_ready(lambda: _spawn(options, java, jars, lock), await_one, seconds=options.start_timeout)


def _spawn(options: ServerOptions, java: Java, jars: Path, lock: Path | None) -> Server:
    check_port(options.port)
    controller, store, zookeeper = free_ports(3)
    controller = options.port or controller
    folder = Path(tempfile.mkdtemp(prefix="pravega-local-"))
    try:
        (folder / "storage").mkdir()
        write_configuration(folder, _settings(options, folder, controller, store, zookeeper))
        with open(folder / LOG_NAME, "wb") as log:
            process = SupervisedProcess(_command(options, java, jars, folder), output=log, folder=folder, lock=lock)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Server(process, folder, options, controller, store)


def _settings(options: ServerOptions, folder: Path, controller: int, store: int, zookeeper: int) -> dict[str, object]:
    settings: dict[str, object] = {
        "singlenode.controller.rpc.port": controller,
        "singlenode.segmentStore.port": store,
        "singlenode.zk.port": zookeeper,
        # Two servers less, and three ports less that could be taken.
        "singlenode.controller.rest.enable": "false",
        "singlenode.admin.gateway.enable": "false",
        "pravegaservice.service.listener.host.nameOrIp": HOST,
        "pravegaservice.cache.size.max": options.cache_mb << 20,
        # On the heap it would be full after a gigabyte. The log in front of it stays there, and is cut only behind what
        # every segment has flushed: with the usual 30 s a burst of writes fills the heap all the same.
        "pravegaservice.storage.impl.name": "FILESYSTEM",
        "filesystem.root": folder / "storage",
        "writer.flush.threshold.milliseconds": 1000,
    }
    if options.username is not None and options.password is not None:
        settings |= auth_settings(folder, options.username, options.password)
    if options.tls:
        settings |= tls_settings(folder, HOST)
    return settings


def _command(options: ServerOptions, java: Java, jars: Path, folder: Path) -> list[str]:
    return [
        str(java.path),
        f"-Xmx{options.heap_mb}m",
        f"-XX:MaxDirectMemorySize={options.cache_mb + _DIRECT_MEMORY_MB}m",
        # A server without memory answers nothing and never recovers; one that ended is noticed.
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={folder / 'temp'}",
        f"-Dlogback.configurationFile={folder / 'logback.xml'}",
        f"-Dsinglenode.configurationFile={folder / 'server.properties'}",
        # Settings of the controller's are system properties.
        f"-Dcontroller.watermarking.frequency.seconds={_WATERMARK_SECONDS}",
        *options.java_options,
        *("-cp", f"{jars}/*"),
        _MAIN,
    ]
