"""A schema registry of one's own, as a context manager."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from connector.config import PravegaConfig
from connector.errors import LocalServerError
from connector.local._registry_server import RegistryOptions, RegistryServer, RegistryUser, launch_registry

__all__ = ["LocalSchemaRegistry"]


class LocalSchemaRegistry:
    """A schema registry on this machine, for tests, demos and trying things out.

    ::

        with LocalSchemaRegistry() as registry:
            client = SchemaRegistryClient(registry.uri)

    It ends with this process, however that ends. Its groups are in memory and go with it, or in the Pravega server
    that ``controller`` names (an address or a PravegaConfig). The other arguments are those of RegistryOptions. Several
    registries may run at once.
    """

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
        self._server: RegistryServer | None = None

    def start(self) -> None:
        """Start the registry and wait until it answers.

        Raises JavaNotFoundError, JarDownloadError (the jars are fetched on first use), LocalServerError.
        """
        if self._server is not None:
            raise LocalServerError(f"this schema registry is running already, at {self.uri}")
        self._server = launch_registry(self._options)

    def close(self) -> None:
        """End the registry and forget what it kept in memory."""
        if self._server is not None:
            self._server.process.close()
            self._server = None

    @property
    def uri(self) -> str:
        """``http://127.0.0.1:<port>``, or ``https://``; raises LocalServerError before :meth:`start`."""
        return self._running().uri

    @property
    def ca_file(self) -> Path | None:
        """The certificate that clients have to trust, None without TLS."""
        return self._running().ca_file

    @property
    def log(self) -> Path:
        """The registry's log: warnings and errors. It goes when the registry is closed."""
        return self._running().log

    @property
    def pid(self) -> int:
        """Process id of the registry's JVM."""
        return int((self._running().folder / "pid").read_text())

    def _running(self) -> RegistryServer:
        if self._server is None:
            raise LocalServerError("this schema registry is not running; call start() or use it in a with statement")
        return self._server

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
