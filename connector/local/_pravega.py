"""A Pravega server of one's own, as a context manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connector.config import PravegaConfig
from connector.errors import ConfigError, LocalServerError
from connector.local._cluster import Cluster, ClusterOptions, launch_cluster
from connector.local._cluster_process import ClusterProcess
from connector.local._owned import OwnedServer
from connector.local._server import Server, ServerOptions, launch

__all__ = ["LocalPravega"]


class LocalPravega(OwnedServer[Server | Cluster]):
    """A Pravega server on this machine, for tests, demos and trying things out.

    ::

        with LocalPravega() as server:
            client = PravegaClient(server.controller_uri)

    It ends with this process, however that ends, and what it stored goes with it: events lie in a temporary folder
    (``TMPDIR``). ``heap_mb`` and ``cache_mb`` bound its memory in MiB (see ServerOptions), ``port`` is the controller's
    (0: any free one), ``start_timeout`` is in seconds and does not count the time for fetching the jars. With
    ``username`` and ``password`` nobody else is let in; ``tls`` makes a certificate, which ``config`` trusts. Several
    servers may run at once.

    ``cluster=True`` starts separate processes instead: ZooKeeper, three bookies, ``controllers`` (1 or 2, say) and two
    segment stores, which ``processes`` stops, kills, pauses and starts again by name (see ClusterOptions; heap and
    cache are those of each segment store). A cluster has neither credentials nor TLS.
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
    ) -> None:
        given: dict[str, Any] = {"heap_mb": heap_mb, "cache_mb": cache_mb, "start_timeout": start_timeout}
        common = {name: value for name, value in given.items() if value is not None}
        common |= {"port": port, "java_options": java_options}
        self._options: ServerOptions | ClusterOptions
        if cluster:
            if tls or username is not None or password is not None:
                raise ConfigError("a local cluster has neither credentials nor TLS; use a server without cluster=True")
            self._options = ClusterOptions(controllers=controllers, **common)
        else:
            if controllers != 1:
                raise ConfigError(f"{controllers} controllers need cluster=True")
            self._options = ServerOptions(username=username, password=password, tls=tls, **common)

    def _launch(self) -> Server | Cluster:
        if isinstance(self._options, ClusterOptions):
            return launch_cluster(self._options)
        return launch(self._options)

    @property
    def controller_uri(self) -> str:
        """``tcp://127.0.0.1:<port>``, or ``tls://``; raises LocalServerError before :meth:`start`."""
        return self._running().controller_uri

    @property
    def config(self) -> PravegaConfig:
        """The address, with the credentials and the certificate if the server wants them."""
        return self._running().config

    @property
    def processes(self) -> Mapping[str, ClusterProcess]:
        """The processes of a cluster by name: ``zookeeper``, ``bookie-1``, ``controller-1``, ``store-1`` and so on.

        Raises LocalServerError for a server that is one process.
        """
        return self.cluster.processes

    @property
    def cluster(self) -> Cluster:
        """What else there is to know of a cluster; raises LocalServerError for a server that is one process."""
        running = self._running()
        if not isinstance(running, Cluster):
            raise LocalServerError("this server is one process; use LocalPravega(cluster=True) for several")
        return running

    def await_ready(self, timeout: float = 180.0) -> None:
        """Wait until every segment store of a cluster works, after a restart say; raises LocalServerError."""
        self.cluster.await_ready(timeout)
