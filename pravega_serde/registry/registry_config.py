"""Address of a schema registry, and access to it: a value that can be pickled; every process makes its own client."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from pravega_serde.credentials import fault_of
from pravega_serde.errors import SerdeError
from pravega_serde.profiles import load_profile

# How long a call may take with all its tries: an orderly restart of the server fits in.
DEFAULT_TIMEOUT: Final = 15.0
# For so long the last schemas of a group are taken for the last ones still.
LATEST_SECONDS: Final = 30.0
# Encoding ids and what they stand for, of a few KiB each; the Java client keeps a thousand.
CACHE_ENTRIES: Final = 4096

_MOCK: Final = "mock"

# Field -> environment variable.
_VARIABLES: Final = {
    "uri": "PRAVEGA_REGISTRY_URI",
    "namespace": "PRAVEGA_REGISTRY_NAMESPACE",
    "username": "PRAVEGA_REGISTRY_USERNAME",
    "password": "PRAVEGA_REGISTRY_PASSWORD",
    "token": "PRAVEGA_REGISTRY_TOKEN",
    "ca_file": "PRAVEGA_REGISTRY_CA_FILE",
}
_CREDENTIALS: Final = frozenset({"username", "password", "token"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryConfig:
    """Address of a registry, and access to it.

    ``uri`` is ``http://host:port`` or ``https://…``; for tests also ``mock://name``, a registry in this process. Either
    ``username`` with ``password`` (Basic) or ``token`` (Bearer) are sent with every call and shown nowhere. ``ca_file``
    names the authorities' certificates in PEM, else the system's are trusted. ``timeout`` bounds a call with all its
    tries, in seconds. The last schemas of a group are kept for ``latest_seconds``; of all that is kept there are
    ``cache_entries`` at most. Raises SerdeError for what cannot be right.
    """

    uri: str
    namespace: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
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
            raise SerdeError("the registry's credentials need both username and password")
        if self.username is not None and self.token is not None:
            raise SerdeError("the registry's credentials are either username and password or a token, not both")
        if self.timeout <= 0 or self.latest_seconds < 0 or self.cache_entries < 1:
            raise SerdeError("the registry's timeout and cache_entries must be positive, latest_seconds not negative")

    @property
    def is_mock(self) -> bool:
        """Whether the registry is one of this process, in memory."""
        return urlsplit(self.uri).scheme == _MOCK

    @property
    def authorization(self) -> str | None:
        """The value of the header ``Authorization``."""
        if self.username is not None:
            return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode("ascii")
        return None if self.token is None else f"Bearer {self.token}"

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> RegistryConfig:
        """Read environment variables alone: ``PRAVEGA_REGISTRY_URI``, ``_NAMESPACE``, ``_USERNAME`` and the like."""
        return _made(cls, _environment_layer(os.environ if environment is None else environment))

    @classmethod
    def resolve(
        cls, *, profile: str | None = None, environment: Mapping[str, str] | None = None, **given: Any
    ) -> RegistryConfig:
        """Read all sources: ``given``, if not None, before ``profile`` before the environment before its profile.

        ``given`` are fields; each is taken from the first source that has it, and the credentials are one setting. The
        environment is the process's own unless given. ``profile`` is the name of one in the user's file
        (:mod:`pravega_serde.profiles`); the environment names its own by ``PRAVEGA_PROFILE``.
        """
        return _made(cls, registry_settings(given, profile=profile, environment=environment))


def registry_settings(
    given: Mapping[str, Any], *, profile: str | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Fields of a RegistryConfig that the sources of :meth:`RegistryConfig.resolve` have; maybe without ``uri``."""
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
            "the address of the schema registry is missing: give it, such as http://localhost:9092, or set "
            f"{_VARIABLES['uri']}"
        )
    return kind(**settings)


def _check_uri(uri: str) -> None:
    if not isinstance(uri, str):
        raise SerdeError(f"the registry URI must be a str, not {type(uri).__name__}")
    if "@" in uri:  # not shown: it may hold a password
        raise SerdeError("the registry URI holds credentials; give them as username and password")
    try:
        parts = urlsplit(uri)
        valid = parts.scheme in ("http", "https", _MOCK) and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise SerdeError(f"invalid registry URI {uri!r}; write http://host:9092 or https://host:9092")
