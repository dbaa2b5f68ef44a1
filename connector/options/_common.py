"""Options that the source and the sink share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connector.config import PravegaConfig
from connector.errors import ConfigError
from connector.options._declare import flag, number, option, text
from connector.options._registry import RegistryOptions
from connector.wire import StreamName

if TYPE_CHECKING:
    from connector.client import PravegaClient

__all__ = ["CommonOptions"]


@dataclass(frozen=True, kw_only=True)
class CommonOptions(RegistryOptions):
    """Where the stream is and how to reach it, and the format of its events, or the registry that has it."""

    path: str | None = option(
        None, "`scope/stream`, or `stream` with the scope given elsewhere; `load()` and `save()` set it"
    )
    stream: str | None = option(None, "name of the stream, or `scope/stream`")
    scope: str | None = option(None, "scope of the stream")
    controller: str | None = option(None, "controller URI, such as `tcp://localhost:9090` or `tls://host:9090`")
    username: str | None = option(None, "user name, where the server asks for credentials")
    password: str | None = field(
        default=None, repr=False, metadata={"doc": "password that goes with `username`", "parse": text}
    )
    tls_ca_file: str | None = option(None, "PEM file with the certificates to trust, for a `tls://` controller")
    tls_validate_hostname: bool | None = option(None, "whether a certificate must be of its host (default true)", flag)
    timeout_ms: int = option(
        15_000,
        "how long the first contact with the servers may take: a wrong address is an error then. Also how long a call "
        "to a schema registry may take",
        number(100, 3_600_000),
    )
    failover_timeout_ms: int = option(
        300_000,
        "how long tasks, commits and a query that has run before wait for servers that do not answer: those that fail, "
        "are frozen or hand over to others. Nothing is lost or repeated when it is over. See docs/operations.md",
        number(100, 86_400_000),
    )

    def config(self) -> PravegaConfig:
        """Where the cluster is: these options, then the environment of the process, then the defaults."""
        config = PravegaConfig.resolve(
            controller=self.controller,
            scope=self.scope,
            tls_ca_file=self.tls_ca_file,
            tls_validate_hostname=self.tls_validate_hostname,
        )
        if self.username is not None:
            if self.password is None:
                raise ConfigError("option 'username' needs option 'password'")
            config = config.with_credentials(self.username, self.password)
        return config

    def client(self, *, service: bool = False, failover_timeout: float | None = None) -> PravegaClient:
        """The process's client; do not close it.

        It waits ``failover_timeout`` seconds (by default those of the options) for servers that do not answer, if
        they have answered before, in this process or lately to this user of the machine, or if it is known by
        ``service`` that they have, and ``timeout_ms`` otherwise: a wrong address must be an error soon.
        """
        from connector.client import has_answered, shared_client  # noqa: PLC0415 - the column functions need no client

        config = self.config()
        going_on = self.failover_timeout_ms / 1000 if failover_timeout is None else failover_timeout
        client = shared_client(config, self.timeout_ms / 1000, going_on)
        if not client.health.going_on and (service or has_answered(config)):
            client.health.service = True
        return client

    def stream_name(self) -> StreamName:
        """The stream that is meant. Raises ConfigError if none is, or two different ones."""
        given = self.stream or self.path
        if given is None:
            raise ConfigError("no stream is given: set option 'stream', or load('scope/stream')")
        if self.stream and self.path and self.stream != self.path and not self.path.endswith("/" + self.stream):
            raise ConfigError(
                f"two streams are given: option 'stream' is {self.stream!r} and the path is {self.path!r}"
            )
        # Tables and load() may hand on a path with slashes around it.
        given = max(self.stream or "", self.path or "", key=lambda name: (name.count("/"), len(name)))
        given = given.strip("/")
        if "/" in given:
            return StreamName.parse(given)
        scope = self.config().scope
        if scope is None:
            raise ConfigError(f"stream {given!r} has no scope: set option 'scope', or name it 'scope/{given}'")
        return StreamName(scope, given)

    def registry_group(self) -> str:
        """The group in the registry: that of the option, else the stream's name."""
        return self.group or self.stream_name().stream
