"""Embedded servers as context managers: Pravega and the schema registry."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError, LocalServerError
from pravega_connector.local.cluster import Cluster, ClusterOptions, ClusterProcess, launch_cluster
from pravega_connector.local.launch import Launched
from pravega_connector.local.server import (
    RegistryOptions,
    RegistryServer,
    RegistryUser,
    Server,
    ServerOptions,
    launch_registry,
    launch_server,
)

S = TypeVar("S", bound=Launched)


class OwnedServer(Generic[S]):
    """Server that runs inside a ``with`` block, or from :meth:`start` to :meth:`close`."""

    _what: ClassVar[str]
    _server: S | None = None

    @abstractmethod
    def _launch(self) -> S:
        """Start the server and wait until it answers."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'not running' if self._server is None else self._server.uri})"

    def start(self) -> None:
        """Start the server and wait until it is ready.

        The first start downloads the jars. Raises JavaNotFoundError, JarDownloadError, LocalServerError.
        """
        if self._server is not None:
            raise LocalServerError(f"this {self._what} is running already, at {self._server.uri}")
        self._server = self._launch()

    def close(self) -> None:
        """End the server, and delete its data."""
        if self._server is not None:
            self._server.process.close()
            self._server = None

    @property
    def log(self) -> Path:
        """Log of the server, with warnings and errors. Closing the server deletes it."""
        return self._running().log

    @property
    def pid(self) -> int:
        """Process id of the server's JVM."""
        return int((self._running().folder / "pid").read_text())

    def _answering(self) -> S:
        server = self._running()
        if server.process.exit_code() is not None:
            server.check()
        return server

    def _running(self) -> S:
        if self._server is None:
            raise LocalServerError(f"this {self._what} is not running; call start() or use it in a with statement")
        return self._server

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class LocalPravega(OwnedServer[Server | Cluster]):
    """Pravega server on this machine, for tests and demos.

    ::

        with LocalPravega() as server:
            client = PravegaClient(server.controller_uri)

    The server ends with this process, and its data is deleted. Events are in a temporary folder (``TMPDIR``). Several
    servers can run at the same time.

    - ``heap_mb`` and ``cache_mb`` limit its memory in MiB: see ServerOptions.
    - ``port`` is the controller's port; 0 is any free one.
    - ``start_timeout`` is in seconds. It does not include the download of the jars.
    - With ``username`` and ``password``, the server accepts only this user. A delegation token is valid for
      ``token_seconds`` (default: 600).
    - ``tls`` creates a certificate, which ``config`` trusts.
    - With ``quick_scaling``, scaling policies apply after two minutes instead of ten and twenty.

    ``cluster=True`` starts separate processes instead: ZooKeeper, three bookies, ``controllers`` (for example 1 or 2)
    and two segment stores. Use ``processes`` to stop, kill, pause and restart them by name. The heap and the cache are
    for each segment store: see ClusterOptions. A cluster has no TLS.
    """

    _what = "server"

    def __init__(
        self,
        *,
        cluster: bool = False,
        controllers: int = 1,
        heap_mb: int | None = None,
        cache_mb: int | None = None,
        port: int = 0,
        start_timeout: float | None = None,
        java_options: tuple[str, ...] = (),
        username: str | None = None,
        password: str | None = None,
        tls: bool = False,
        token_seconds: int | None = None,
        quick_scaling: bool = False,
    ) -> None:
        given: dict[str, Any] = {"heap_mb": heap_mb, "cache_mb": cache_mb, "start_timeout": start_timeout}
        common = {name: value for name, value in given.items() if value is not None}
        common |= {"port": port, "java_options": java_options}
        common |= {"username": username, "password": password, "token_seconds": token_seconds}
        common |= {"quick_scaling": quick_scaling}
        self._options: ServerOptions | ClusterOptions
        if cluster:
            if tls:
                raise ConfigError("a local cluster has no TLS; use a server without cluster=True")
            self._options = ClusterOptions(controllers=controllers, **common)
        else:
            if controllers != 1:
                raise ConfigError(f"{controllers} controllers need cluster=True")
            self._options = ServerOptions(tls=tls, **common)

    def _launch(self) -> Server | Cluster:
        if isinstance(self._options, ClusterOptions):
            return launch_cluster(self._options)
        return launch_server(self._options)

    @property
    def controller_uri(self) -> str:
        """Address: ``tcp://127.0.0.1:<port>``, or ``tls://``.

        Raises LocalServerError before :meth:`start`, and with the log's last words if the server has ended.
        """
        return self._answering().uri

    @property
    def config(self) -> PravegaConfig:
        """Address, with the credentials and the certificate if the server requires them.

        Raises LocalServerError as ``controller_uri``.
        """
        return self._answering().config

    @property
    def processes(self) -> Mapping[str, ClusterProcess]:
        """Processes of a cluster by name: ``zookeeper``, ``bookie-1``, ``controller-1``, ``store-1`` and so on.

        Raises LocalServerError for a server with a single process.
        """
        return self.cluster.processes

    @property
    def cluster(self) -> Cluster:
        """Ports, folder and segment stores of a cluster. Raises LocalServerError for a single process."""
        running = self._running()
        if not isinstance(running, Cluster):
            raise LocalServerError("this server is one process; use LocalPravega(cluster=True) for several")
        return running

    def await_ready(self, timeout: float = 180.0) -> None:
        """Wait until every segment store of a cluster works, for example after a restart. Raises LocalServerError."""
        self.cluster.await_ready(timeout)

    def restart(self, timeout: float = 180.0) -> None:
        """Kill all processes of a cluster, start them again, and wait until they work. Raises LocalServerError.

        They keep ports, folders and data, as after a power failure. A process that is started while ZooKeeper does not
        answer ends after 10 s.
        """
        self.cluster.restart(timeout)


class LocalSchemaRegistry(OwnedServer[RegistryServer]):
    """Schema registry on this machine, for tests and demos.

    ::

        with LocalSchemaRegistry() as registry:
            client = SchemaRegistryClient(registry.uri)

    The registry ends with this process. Its groups are in memory, or in the Pravega server that ``controller`` names
    (an address or a PravegaConfig). For the other arguments, see RegistryOptions. Several registries can run at the
    same time.
    """

    _what = "schema registry"

    def __init__(
        self,
        *,
        controller: str | PravegaConfig | None = None,
        port: int = 0,
        heap_mb: int = 256,
        users: Iterable[RegistryUser] = (),
        tls: bool = False,
        start_timeout: float = 60.0,
        java_options: tuple[str, ...] = (),
    ) -> None:
        self._options = RegistryOptions(
            controller=controller,
            port=port,
            heap_mb=heap_mb,
            users=tuple(users),
            tls=tls,
            start_timeout=start_timeout,
            java_options=java_options,
        )

    def _launch(self) -> RegistryServer:
        return launch_registry(self._options)

    @property
    def uri(self) -> str:
        """Address: ``http://127.0.0.1:<port>``, or ``https://``.

        Raises LocalServerError before :meth:`start`, and with the log's last words if the registry has ended.
        """
        return self._answering().uri

    @property
    def ca_file(self) -> Path | None:
        """Certificate that clients have to trust, None without TLS."""
        return self._running().ca_file
