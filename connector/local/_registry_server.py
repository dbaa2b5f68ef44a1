"""Starts the schema registry's server: one JVM that keeps everything in memory, or in a Pravega server."""

from __future__ import annotations

import http.client
import shutil
import ssl
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connector.config import PravegaConfig
from connector.errors import ConfigError, LocalServerError
from connector.local._jars import REGISTRY_JARS, ensure_jars
from connector.local._java import Java, find_java
from connector.local._jvm import (
    HOST,
    LOG_NAME,
    PortTakenError,
    check_port,
    check_running,
    with_log,
    write_configuration,
)
from connector.local._ports import free_ports
from connector.local._process import SupervisedProcess
from connector.local._security import CA_FILE, accounts_file, tls_settings
from pravega_serde.errors import PravegaError

__all__ = ["ALL_RIGHTS", "RegistryOptions", "RegistryServer", "RegistryUser", "launch_registry"]

ALL_RIGHTS: Final = "prn::/*,READ_UPDATE"
_MAIN: Final = "io.pravega.schemaregistry.service.Main"
_PREFIX: Final = "schemaRegistry."
_POLL_SECONDS: Final = 0.05
# Of one request that asks whether the server is there.
_ANSWER_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class RegistryUser:
    """Who is let in. ``permissions`` are ``resource,READ`` or ``resource,READ_UPDATE``; all rights by default.

    Resources: ``prn::/namespace:NS/group:G`` (with ``/schemas:*`` or ``/codecs:*`` for adding those), ``prn::/*`` all.
    """

    name: str
    password: str
    permissions: tuple[str, ...] = (ALL_RIGHTS,)

    def __repr__(self) -> str:
        return f"RegistryUser({self.name!r}, permissions={self.permissions!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """How a registry runs.

    ``controller`` is the Pravega server that keeps its groups (in scope ``_schemaregistry``), None for memory. ``port``
    0 is any free one. ``heap_mb`` bounds its memory in MiB. With ``users`` nobody else is let in; ``tls`` needs the
    package ``cryptography``. ``start_timeout`` is in seconds, after the jars are there.
    """

    controller: str | PravegaConfig | None = None
    port: int = 0
    heap_mb: int = 256
    users: tuple[RegistryUser, ...] = ()
    tls: bool = False
    start_timeout: float = 60.0
    java_options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise ConfigError(f"port {self.port} is not a TCP port")
        if self.heap_mb < 64:
            raise ConfigError("a local schema registry needs heap_mb of 64 at least")


@dataclass(frozen=True, slots=True)
class RegistryServer:
    """A running registry: its process, its folder (configuration and log) and its port."""

    process: SupervisedProcess
    folder: Path
    options: RegistryOptions
    port: int

    @property
    def uri(self) -> str:
        """Address for clients."""
        return f"{'https' if self.options.tls else 'http'}://{HOST}:{self.port}"

    @property
    def ca_file(self) -> Path | None:
        """The certificate to trust, None without TLS."""
        return self.folder / CA_FILE if self.options.tls else None

    @property
    def log(self) -> Path:
        """What the server printed: warnings, errors, and what the JVM said."""
        return self.folder / LOG_NAME

    def check(self) -> None:
        """Raise LocalServerError if the server has ended or cannot have its port."""
        check_running("schema registry", self.process, self.log)


def launch_registry(options: RegistryOptions, *, lock: Path | None = None) -> RegistryServer:
    """Start a registry and wait until it answers; one on Pravega has listed its groups there.

    The jars are fetched before if need be. ``lock`` is a file that stays locked while the server runs. Raises
    JavaNotFoundError, JarDownloadError, LocalServerError; nothing is left running then, and the text names the log.
    """
    java = find_java()
    jars = ensure_jars(REGISTRY_JARS)
    deadline = time.monotonic() + options.start_timeout
    while True:
        server = _spawn(options, java, jars, lock)
        try:
            _await_answer(server, deadline)
        except PortTakenError:
            server.process.close()
            if options.port or time.monotonic() >= deadline:
                raise
            shutil.rmtree(server.folder, ignore_errors=True)
        except BaseException as error:
            server.process.close(keep=isinstance(error, PravegaError))
            raise
        else:
            return server


def _await_answer(server: RegistryServer, deadline: float) -> None:
    last = "it does not listen"
    while time.monotonic() < deadline:
        server.check()
        try:
            status = _ask(server)
        except (OSError, http.client.HTTPException) as error:
            last = str(error) or type(error).__name__
        else:
            # Whoever may list nothing is still answered.
            if status < 500:
                # Another server on the same port would have answered just as well.
                return server.check()
            last = f"it answers with status {status}"
        time.sleep(_POLL_SECONDS)
    raise LocalServerError(with_log(f"the schema registry was not ready in time: {last}", server.log))


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


def _spawn(options: RegistryOptions, java: Java, jars: Path, lock: Path | None) -> RegistryServer:
    check_port(options.port)
    port = options.port or free_ports(1)[0]
    folder = Path(tempfile.mkdtemp(prefix="pravega-registry-"))
    try:
        settings = {_PREFIX + name: value for name, value in _settings(options, folder, port).items()}
        write_configuration(folder, settings)
        with open(folder / LOG_NAME, "wb") as log:
            process = SupervisedProcess(_command(options, java, jars, folder), output=log, folder=folder, lock=lock)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return RegistryServer(process, folder, options, port)


def _settings(options: RegistryOptions, folder: Path, port: int) -> dict[str, object]:
    settings: dict[str, object] = {
        "service.rest.listener.port": port,
        # The address that it listens on, in spite of the name.
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


def _command(options: RegistryOptions, java: Java, jars: Path, folder: Path) -> list[str]:
    return [
        str(java.path),
        f"-Xmx{options.heap_mb}m",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+UseSerialGC",
        # It is short of work, not of speed: start-up is most of what it does.
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={folder / 'temp'}",
        f"-Dlogback.configurationFile={folder / 'logback.xml'}",
        f"-Dconfig.file={folder / 'server.properties'}",
        *options.java_options,
        *("-cp", f"{jars}/*"),
        _MAIN,
    ]
