"""A Pravega server of one's own, as a context manager."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from connector.config import PravegaConfig
from connector.errors import LocalServerError
from connector.local._server import Server, ServerOptions, launch

__all__ = ["LocalPravega"]


class LocalPravega:
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
        self._server: Server | None = None

    def start(self) -> None:
        """Start the server and wait until it takes an event and gives it back.

        Raises JavaNotFoundError, JarDownloadError (the jars are fetched on first use), LocalServerError.
        """
        if self._server is not None:
            raise LocalServerError(f"this server is running already, at {self.controller_uri}")
        self._server = launch(self._options)

    def close(self) -> None:
        """End the server and forget all that it stored."""
        if self._server is not None:
            self._server.process.close()
            self._server = None

    @property
    def controller_uri(self) -> str:
        """``tcp://127.0.0.1:<port>``, or ``tls://``; raises LocalServerError before :meth:`start`."""
        return self._running().controller_uri

    @property
    def config(self) -> PravegaConfig:
        """The address, with the credentials and the certificate if the server wants them."""
        return self._running().config

    @property
    def log(self) -> Path:
        """The server's log: warnings and errors. It goes when the server is closed."""
        return self._running().log

    @property
    def pid(self) -> int:
        """Process id of the server's JVM."""
        return int((self._running().folder / "pid").read_text())

    def _running(self) -> Server:
        if self._server is None:
            raise LocalServerError("this server is not running; call start() or use it in a with statement")
        return self._server

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
