"""Servers that are one JVM in a temporary folder: the Pravega standalone and the schema registry."""

from __future__ import annotations

import http.client
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.local.jars import PRAVEGA_JARS, REGISTRY_JARS, ensure_jars
from pravega_connector.local.jvm import find_java, write_configuration
from pravega_connector.local.launch import (
    HOST,
    QUICK_SCALING,
    Launched,
    NotReadyError,
    await_ready,
    start_in_folder,
    start_until_ready,
)
from pravega_connector.local.security import (
    CA_FILE,
    accounts_file,
    auth_settings,
    check_credentials,
    tls_settings,
    token_life,
    with_credentials,
)
from pravega_connector.tcp_ports import check_port, check_port_number, free_ports

_STANDALONE: Final = "io.pravega.local.LocalPravegaEmulator"
# Buffers of the network layer, in addition to the cache.
_DIRECT_MEMORY_MB: Final = 512
# Between two watermarks of a stream with noted times. Pravega's default is 10 s, which is long in a trial.
_WATERMARK_SECONDS: Final = 1
ALL_RIGHTS: Final = "prn::/*,READ_UPDATE"
_REGISTRY: Final = "io.pravega.schemaregistry.service.Main"
_PREFIX: Final = "schemaRegistry."
_POLL_SECONDS: Final = 0.05
# Timeout of one request that checks if the server answers.
_ANSWER_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Options of a server: memory, port, credentials and TLS.

    - ``heap_mb`` and ``cache_mb`` limit its memory, in MiB. The cache must hold the written events that are not yet on
      disk. With the server's own default of 128 MiB, a burst of 160 MB/s makes the server fail permanently. With the
      defaults here, it survived 3 GB at 250 MB/s.
    - ``port`` is the controller's port; 0 is any free one.
    - ``start_timeout`` is in seconds. It does not include the download of the jars.
    - With ``username`` and ``password``, the server accepts only this user. A delegation token is valid for
      ``token_seconds`` (default: 600).
    - ``tls`` requires the package ``cryptography``.
    - With ``quick_scaling``, scaling policies apply after two minutes instead of ten and twenty.
    """

    heap_mb: int = 2048
    cache_mb: int = 1024
    port: int = 0
    start_timeout: float = 180.0
    java_options: tuple[str, ...] = ()
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    token_seconds: int | None = None
    quick_scaling: bool = False

    def __post_init__(self) -> None:
        if self.heap_mb < 256 or self.cache_mb < 64:
            raise ConfigError("a local Pravega needs heap_mb of 256 and cache_mb of 64 at least")
        check_port_number(self.port)
        check_credentials(self.username, self.password, self.token_seconds)


@dataclass(frozen=True, slots=True)
class Server(Launched):
    """Running Pravega standalone and its ports."""

    title: ClassVar[str] = "Pravega server"

    options: ServerOptions
    controller_port: int
    store_port: int

    @property
    def uri(self) -> str:
        """Address of the controller."""
        return f"{'tls' if self.options.tls else 'tcp'}://{HOST}:{self.controller_port}"

    @property
    def config(self) -> PravegaConfig:
        """Address, with the credentials and the certificate that clients need."""
        config = PravegaConfig(controller=self.uri)
        if self.options.tls:
            config = config.with_tls(ca_file=self.folder / CA_FILE)
        return with_credentials(config, self.options.username, self.options.password)


def launch_server(options: ServerOptions, *, lock: Path | None = None) -> Server:
    """Start a server, and wait until it accepts an event and returns it.

    Missing jars are downloaded first. ``lock`` is a file that stays locked while the server runs. Raises
    JavaNotFoundError, JarDownloadError, LocalServerError. After an error, nothing is left running, and the text names
    the log.
    """
    java, jars = find_java(), ensure_jars(PRAVEGA_JARS)

    def spawn() -> Server:
        check_port(options.port)
        controller, store, zookeeper = free_ports(3)
        controller = options.port or controller

        def prepare(folder: Path) -> list[str]:
            (folder / "storage").mkdir()
            properties = write_configuration(folder, _settings(options, folder, controller, store, zookeeper))
            own = [
                f"-Dsinglenode.configurationFile={properties}",
                # Settings of the controller are system properties.
                f"-Dcontroller.watermarking.frequency.seconds={_WATERMARK_SECONDS}",
                *token_life(options.token_seconds),
            ]
            return java.command(
                jars,
                folder,
                [_STANDALONE],
                heap_mb=options.heap_mb,
                direct_mb=options.cache_mb + _DIRECT_MEMORY_MB,
                options=[*own, *options.java_options],
            )

        return Server(*start_in_folder("pravega-local-", prepare, lock=lock), options, controller, store)

    def await_one(server: Server, deadline: float) -> None:
        await_ready(server.config, [(HOST, server.store_port)], deadline=deadline, check=server.check)
        server.check()

    return start_until_ready(spawn, await_one, seconds=options.start_timeout)


def _settings(options: ServerOptions, folder: Path, controller: int, store: int, zookeeper: int) -> dict[str, object]:
    settings: dict[str, object] = {
        "singlenode.controller.rpc.port": controller,
        "singlenode.segmentStore.port": store,
        "singlenode.zk.port": zookeeper,
        # Without two servers, and three ports that could be taken.
        "singlenode.controller.rest.enable": "false",
        "singlenode.admin.gateway.enable": "false",
        "pravegaservice.service.listener.host.nameOrIp": HOST,
        "pravegaservice.cache.size.max": options.cache_mb << 20,
        # Storage in the heap would be full after a gigabyte. The log stays in the heap, and is truncated only where
        # every segment has flushed. With the default of 30 s, a burst of writes would still fill the heap.
        "pravegaservice.storage.impl.name": "FILESYSTEM",
        "filesystem.root": folder / "storage",
        "writer.flush.threshold.milliseconds": 1000,
    }
    if options.quick_scaling:
        settings |= QUICK_SCALING
    if options.username is not None and options.password is not None:
        settings |= auth_settings(folder, options.username, options.password)
    if options.tls:
        settings |= tls_settings(folder, HOST)
    return settings


@dataclass(frozen=True, slots=True)
class RegistryUser:
    """User of a registry. ``permissions`` are ``resource,READ`` or ``resource,READ_UPDATE``; all rights by default.

    The resource ``prn::/*`` is everything. ``prn::/namespace:NS/group:G`` is a group. Append ``/schemas:*`` or
    ``/codecs:*`` to the group for the right to add schemas or codecs.
    """

    name: str
    password: str
    permissions: tuple[str, ...] = (ALL_RIGHTS,)

    def __repr__(self) -> str:
        return f"RegistryUser({self.name!r}, permissions={self.permissions!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """Options of a registry: storage, port, memory, users and TLS.

    - ``controller`` is the Pravega server that stores the groups, in scope ``_schemaregistry``. With None, they are in
      memory.
    - ``port`` 0 is any free port.
    - ``heap_mb`` limits its memory, in MiB.
    - With ``users``, the registry accepts only these users.
    - ``tls`` requires the package ``cryptography``.
    - ``start_timeout`` is in seconds. It does not include the download of the jars.
    """

    controller: str | PravegaConfig | None = None
    port: int = 0
    heap_mb: int = 256
    users: tuple[RegistryUser, ...] = ()
    tls: bool = False
    start_timeout: float = 120.0
    java_options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_port_number(self.port)
        if self.heap_mb < 64:
            raise ConfigError("a local schema registry needs heap_mb of 64 at least")


@dataclass(frozen=True, slots=True)
class RegistryServer(Launched):
    """Running schema registry and its port."""

    title: ClassVar[str] = "schema registry"

    options: RegistryOptions
    port: int

    @property
    def uri(self) -> str:
        """Address for clients."""
        return f"{'https' if self.options.tls else 'http'}://{HOST}:{self.port}"

    @property
    def ca_file(self) -> Path | None:
        """Certificate to trust, or None without TLS."""
        return self.folder / CA_FILE if self.options.tls else None


def launch_registry(options: RegistryOptions, *, lock: Path | None = None) -> RegistryServer:
    """Start a registry, and wait until it answers. If it stores in Pravega, its groups were listed there.

    Missing jars are downloaded first. ``lock`` is a file that stays locked while the server runs. Raises
    JavaNotFoundError, JarDownloadError, LocalServerError. After an error, nothing is left running, and the text names
    the log.
    """
    java, jars = find_java(), ensure_jars(REGISTRY_JARS)

    def spawn() -> RegistryServer:
        check_port(options.port)
        port = options.port or free_ports(1)[0]

        def prepare(folder: Path) -> list[str]:
            settings = {_PREFIX + name: value for name, value in _registry_settings(options, folder, port).items()}
            properties = write_configuration(folder, settings)
            return java.command(
                jars,
                folder,
                [_REGISTRY],
                heap_mb=options.heap_mb,
                # The registry does little work: most of it is the start.
                quick=True,
                options=[f"-Dconfig.file={properties}", *options.java_options],
            )

        return RegistryServer(*start_in_folder("pravega-registry-", prepare, lock=lock), options, port)

    return start_until_ready(spawn, _await_answer, seconds=options.start_timeout)


def _await_answer(server: RegistryServer, deadline: float) -> None:
    last = "it does not listen"
    while time.monotonic() < deadline:
        server.check()
        try:
            status = _ask(server)
        except (OSError, http.client.HTTPException) as error:
            last = str(error) or type(error).__name__
        else:
            # An answer that denies access is an answer, too.
            if status < 500:
                # Another server on the same port would have answered, too.
                return server.check()
            last = f"it answers with status {status}"
        time.sleep(_POLL_SECONDS)
    raise NotReadyError(f"the schema registry was not ready in time: {last}")


def _ask(server: RegistryServer) -> int:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=_ANSWER_SECONDS)
    if server.options.tls:
        trust = ssl.create_default_context(cafile=server.ca_file)
        connection = http.client.HTTPSConnection(HOST, server.port, timeout=_ANSWER_SECONDS, context=trust)
    try:
        connection.request("GET", "/v1/groups?limit=1")
        return connection.getresponse().status
    finally:
        connection.close()


def _registry_settings(options: RegistryOptions, folder: Path, port: int) -> dict[str, object]:
    settings: dict[str, object] = {
        "service.rest.listener.port": port,
        # The address on which it listens, in spite of the name.
        "service.rest.published.host.nameOrIp": HOST,
        "store.type.name": "InMemory",
    }
    if options.controller is not None:
        settings |= {"store.type.name": "Pravega"} | _store_settings(options.controller)
    if options.users:
        accounts = accounts_file(folder, {user.name: (user.password, user.permissions) for user in options.users})
        settings |= {"security.auth.enable": "true", "security.pwdAuthHandler.accountsDb.location": accounts}
    if options.tls:
        made = tls_settings(folder, HOST)
        settings |= {
            "security.tls.enable": "true",
            "security.tls.server.certificate.location": made["singlenode.security.tls.certificate.location"],
            "security.tls.server.privateKey.location": made["singlenode.security.tls.keyStore.location"],
            "security.tls.server.privateKey.pwd.location": made["singlenode.security.tls.keyStore.pwd.location"],
        }
    return settings


def _store_settings(controller: str | PravegaConfig) -> dict[str, object]:
    config = PravegaConfig(controller=controller) if isinstance(controller, str) else controller
    settings: dict[str, object] = {"store.pravega.controller.connect.uri": config.controller}
    if config.authorization is not None:
        method, _, token = config.authorization.partition(" ")
        settings |= {
            "store.pravega.controller.connect.auth.method": method,
            "store.pravega.controller.connect.auth.token": token,
        }
    if config.tls_ca_file is not None:
        settings["store.pravega.controller.connect.security.tls.trustStore.location"] = config.tls_ca_file
    return settings
