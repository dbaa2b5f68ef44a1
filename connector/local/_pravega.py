"""A Pravega server of one's own, as a context manager."""

from __future__ import annotations

from connector.config import PravegaConfig
from connector.local._owned import OwnedServer
from connector.local._server import Server, ServerOptions, launch

__all__ = ["LocalPravega"]


class LocalPravega(OwnedServer[Server]):
    """A Pravega server on this machine, for tests, demos and trying things out.

    ::

        with LocalPravega() as server:
            client = PravegaClient(server.controller_uri)

    It ends with this process, however that ends, and what it stored goes with it: events lie in a temporary folder
    (``TMPDIR``). ``heap_mb`` and ``cache_mb`` bound its memory in MiB (see ServerOptions), ``port`` is the controller's
    (0: any free one), ``start_timeout`` is in seconds and does not count the time for fetching the jars. With
    ``username`` and ``password`` nobody else is let in; ``tls`` makes a certificate, which ``config`` trusts. Several
    servers may run at once.
    """

    _what = "server"

    def __init__(
        self,
        *,
        heap_mb: int = 2048,
        cache_mb: int = 1024,
        port: int = 0,
        start_timeout: float = 180.0,
        java_options: tuple[str, ...] = (),
        username: str | None = None,
        password: str | None = None,
        tls: bool = False,
    ) -> None:
        self._options = ServerOptions(
            heap_mb=heap_mb,
            cache_mb=cache_mb,
            port=port,
            start_timeout=start_timeout,
            java_options=java_options,
            username=username,
            password=password,
            tls=tls,
        )

    def _launch(self) -> Server:
        return launch(self._options)

    @property
    def controller_uri(self) -> str:
        """``tcp://127.0.0.1:<port>``, or ``tls://``; raises LocalServerError before :meth:`start`."""
        return self._running().controller_uri

    @property
    def config(self) -> PravegaConfig:
        """The address, with the credentials and the certificate if the server wants them."""
        return self._running().config
