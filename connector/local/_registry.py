"""A schema registry of one's own, as a context manager."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from connector.config import PravegaConfig
from connector.local._owned import OwnedServer
from connector.local._registry_server import RegistryOptions, RegistryServer, RegistryUser, launch_registry

__all__ = ["LocalSchemaRegistry"]


class LocalSchemaRegistry(OwnedServer[RegistryServer]):
    """A schema registry on this machine, for tests, demos and trying things out.

    ::

        with LocalSchemaRegistry() as registry:
            client = SchemaRegistryClient(registry.uri)

    It ends with this process, however that ends. Its groups are in memory and go with it, or in the Pravega server
    that ``controller`` names (an address or a PravegaConfig). The other arguments are those of RegistryOptions. Several
    registries may run at once.
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
        """``http://127.0.0.1:<port>``, or ``https://``; raises LocalServerError before :meth:`start`."""
        return self._running().uri

    @property
    def ca_file(self) -> Path | None:
        """The certificate that clients have to trust, None without TLS."""
        return self._running().ca_file
