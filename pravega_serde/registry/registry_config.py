"""Address of a schema registry and access to it. The value can be pickled; every process creates its own client."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pravega_serde.credentials import CredentialProvider, fault_of, provider_fault
from pravega_serde.errors import SerdeError
from pravega_serde.profiles import load_profile

# Seconds of a call with all retries: long enough for an orderly restart of the server.
DEFAULT_TIMEOUT: Final = 15.0
# Seconds for which the latest schemas of a group are cached.
LATEST_SECONDS: Final = 30.0
# Encoding ids with their schemas and codecs, a few KiB each; the Java client keeps a thousand.
CACHE_ENTRIES: Final = 4096

_MOCK: Final = "mock"
_LONGEST_URI: Final = 2000

#: Server at a registry's address: Pravega's, or one whose name is before its URI, as in ``confluent+http://…``.
Kind = Literal["pravega", "confluent", "apicurio"]
_FOREIGN: Final[Mapping[str, Kind]] = {"confluent": "confluent", "apicurio": "apicurio"}

# Field -> environment variable.
_VARIABLES: Final = {
    "uri": "PRAVEGA_REGISTRY_URI",
    "namespace": "PRAVEGA_REGISTRY_NAMESPACE",
    "username": "PRAVEGA_REGISTRY_USERNAME",
    "password": "PRAVEGA_REGISTRY_PASSWORD",
    "token": "PRAVEGA_REGISTRY_TOKEN",
    "keycloak_file": "PRAVEGA_REGISTRY_KEYCLOAK_FILE",
    "credential_provider": "PRAVEGA_REGISTRY_CREDENTIAL_PROVIDER",
    "ca_file": "PRAVEGA_REGISTRY_CA_FILE",
    "ca_password": "PRAVEGA_REGISTRY_CA_PASSWORD",
}
#: Ways to set credentials.
_WAYS: Final = ("username", "token", "keycloak_file", "credential_provider")
_CREDENTIALS: Final = frozenset({*_WAYS, "password"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryConfig:
    """Address of a registry, and access to it.

    ``uri`` is ``http://host:port`` or ``https://…``, or for other registries than Pravega's ``confluent+http://…`` or
    ``apicurio+http://…``. For tests it may be ``mock://name``, a registry in this process, or
    ``confluent+mock://name`` and ``apicurio+mock://name``.
    ``username`` with ``password`` (Basic), or ``token`` (Bearer), are sent with every call and never shown. Instead,
    ``keycloak_file`` names the file of a Keycloak service account. Or ``credential_provider`` is a
    :class:`~pravega_serde.CredentialProvider`, or the name ``package.module:name`` of one.

    ``ca_file`` names the file of the trusted authorities, by default the system's: PEM, or a trust store of Java (JKS,
    PKCS #12) with its ``ca_password``. ``timeout`` limits a call including its retries, in seconds. It also limits all
    calls for one schema and the schemas that it refers to. The last schemas of a group are cached for
    ``latest_seconds``. The cache holds at most ``cache_entries``. Raises SerdeError for invalid settings.
    """

    uri: str
    namespace: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    keycloak_file: str | None = None
    credential_provider: CredentialProvider | str | None = field(default=None, repr=False, hash=False)
    ca_file: str | None = None
    ca_password: str | None = field(default=None, repr=False)
    timeout: float = DEFAULT_TIMEOUT
    latest_seconds: float = LATEST_SECONDS
    cache_entries: int = CACHE_ENTRIES

    def __post_init__(self) -> None:
        _check_uri(self.uri)
        for name, value in (("username", self.username), ("password", self.password), ("token", self.token)):
            fault = None if value is None else fault_of(value, encoded=name != "token")
            if fault:  # the secret is not repeated
                raise SerdeError(f"the registry's {name} {fault}")
        if (self.username is None) != (self.password is None):
            raise SerdeError("the registry's credentials require both username and password")
        fault = None if self.credential_provider is None else provider_fault(self.credential_provider)
        if fault:
            raise SerdeError(f"the registry's credential_provider {fault}")
        ways = [name for name in _WAYS if getattr(self, name) is not None]
        if len(ways) > 1:
            raise SerdeError(f"the registry's credentials are set twice, as {ways[0]} and as {ways[1]}: set only one")
        if self.timeout <= 0 or self.latest_seconds < 0 or self.cache_entries < 1:
            raise SerdeError("the registry's timeout and cache_entries must be positive, latest_seconds not negative")
        if self.kind == "confluent" and self.namespace is not None:
            raise SerdeError(
                "a Confluent registry has no namespaces; name a context in the group, as :.context:subject"
            )
        namespace = self.namespace or ""
        if self.kind == "apicurio" and not (namespace.isascii() and namespace.isprintable()):
            raise SerdeError(
                f"the namespace {self.namespace!r:.100} must be printable ASCII: Apicurio reads it in a header"
            )

    @property
    def kind(self) -> Kind:
        """Server at the address: ``pravega``, ``confluent`` or ``apicurio``."""
        return _FOREIGN.get(self.uri.partition("+")[0], "pravega")

    @property
    def address(self) -> str:
        """URI without the name of the server."""
        return self.uri.removeprefix(f"{self.kind}+")

    def default_group(self, stream: str) -> str:
        """Return the group of a stream's events if none is set: the stream's name, or Confluent's subject for it."""
        return stream if self.kind == "pravega" else f"{stream}-value"

    @property
    def is_mock(self) -> bool:
        """True if the registry is in memory, in this process."""
        return urlsplit(self.address).scheme == _MOCK

    @property
    def authorization(self) -> str | None:
        """Value of the header ``Authorization``; None if there is none, or if it is not known in advance."""
        if self.username is not None:
            return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode("ascii")
        return None if self.token is None else f"Bearer {self.token}"

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> RegistryConfig:
        """Read only environment variables: ``PRAVEGA_REGISTRY_URI``, ``_NAMESPACE``, ``_USERNAME`` and so on."""
        return _made(cls, _environment_layer(os.environ if environment is None else environment))

    @classmethod
    def resolve(
        cls, *, profile: str | None = None, environment: Mapping[str, str] | None = None, **given: Any
    ) -> RegistryConfig:
        """Read all sources in this order: ``given`` if not None, ``profile``, the environment, its profile.

        ``given`` are fields. Each field comes from the first source that has it, and the credentials count as one
        field. ``environment`` is the process's by default. ``profile`` is a name in the user's profile file
        (:mod:`pravega_serde.profiles`). The environment names its profile with ``PRAVEGA_PROFILE``.
        """
        return _made(cls, registry_settings(given, profile=profile, environment=environment))


def registry_settings(
    given: Mapping[str, Any], *, profile: str | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the fields of a RegistryConfig that the sources of :meth:`RegistryConfig.resolve` have.

    ``uri`` may be missing.
    """
    environment = os.environ if environment is None else environment
    found = load_profile(profile, environment)
    settings: dict[str, Any] = {}
    for layer in (
        found.registry if found and not found.named else {},
        _environment_layer(environment),
        found.registry if found and found.named else {},
        {name: value for name, value in given.items() if value is not None},
    ):
        if not _CREDENTIALS.isdisjoint(layer):
            settings = {name: value for name, value in settings.items() if name not in _CREDENTIALS}
        settings |= layer
    return settings


def _environment_layer(environment: Mapping[str, str]) -> dict[str, Any]:
    return {name: environment[variable] for name, variable in _VARIABLES.items() if environment.get(variable)}


def _made(kind: type[RegistryConfig], settings: Mapping[str, Any]) -> RegistryConfig:
    if "uri" not in settings:
        raise SerdeError(
            "the address of the schema registry is missing: pass it (--registry), such as http://localhost:9092, "
            f"or set {_VARIABLES['uri']}"
        )
    return kind(**settings)


def _check_uri(uri: str) -> None:
    if not isinstance(uri, str):
        raise SerdeError(f"the registry URI must be a str, not {type(uri).__name__}")
    if "@" in uri:  # not shown: it may hold a password
        raise SerdeError("the registry URI contains credentials; set username and password instead")
    if "?" in uri or "#" in uri:  # a token, perhaps
        raise SerdeError(
            "the registry URI has a '?' or a '#': write only scheme, host, port and path, and set a token, or username "
            "and password, instead"
        )
    try:
        before, _, after = uri.partition("+")
        foreign = before in _FOREIGN
        parts = urlsplit(after if foreign else uri)
        known = ("http", "https", _MOCK)
        valid = parts.scheme in known and bool(parts.hostname) and parts.port != 0 and len(uri.encode()) <= _LONGEST_URI
    except ValueError:
        valid = False
    if not valid:
        raise SerdeError(
            f"invalid registry URI {uri!r:.500}; write http://host:9092 or https://host:9092, for other registries "
            "confluent+http://host:8081 or apicurio+http://host:8080"
        )
