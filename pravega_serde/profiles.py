"""Profiles: named settings of a cluster and its schema registry, in a file of the user.

The file is ``$XDG_CONFIG_HOME/pravega-serde/config.toml``, by default in ``~/.config``. Each table is a profile::

    [staging]
    controller = "tls://pravega.example.com:9090"
    scope = "shop"
    registry = "https://registry.example.com"

A profile that a call or ``--profile`` names takes precedence over the environment. A profile that the environment names
in ``PRAVEGA_PROFILE`` does not. Arguments of a call take precedence over both. See ``PravegaConfig.resolve`` for the
settings of a cluster and :meth:`~pravega_serde.registry.RegistryConfig.resolve` for those of a registry.
"""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pravega_serde.errors import SerdeError
from pravega_serde.suggestions import did_you_mean

#: Environment variable with the name of the profile.
PROFILE_VARIABLE: Final = "PRAVEGA_PROFILE"
#: Profile that the command line takes where none is named.
DEFAULT_PROFILE: Final = "default"

_logger: Final = logging.getLogger(__name__)
# Fields of PravegaConfig; its credentials may also be given as a user's name and password.
_CLUSTER: Final = (
    "controller",
    "scope",
    "auth_method",
    "auth_token",
    "keycloak_file",
    "credential_provider",
    "username",
    "password",
    "tls_to_controller",
    "tls_to_stores",
    "tls_ca_file",
    "tls_ca_password",
    "tls_server_name",
    "tls_validate_hostname",
)
_FLAGS: Final = frozenset({"tls_to_controller", "tls_to_stores", "tls_validate_hostname"})
# Setting of the registry -> field of RegistryConfig.
_REGISTRY: Final = {
    "registry": "uri",
    "registry_namespace": "namespace",
    "registry_username": "username",
    "registry_password": "password",
    "registry_token": "token",
    "registry_keycloak_file": "keycloak_file",
    "registry_credential_provider": "credential_provider",
    "registry_ca_file": "ca_file",
    "registry_ca_password": "ca_password",
}
_KNOWN: Final = (*_CLUSTER, *_REGISTRY)
_SECRETS: Final = frozenset(
    {"auth_token", "password", "tls_ca_password", "registry_password", "registry_token", "registry_ca_password"}
)
_OTHERS_MAY_READ: Final = 0o077
_warned: Final[set[Path]] = set()
_named: Final[list[str]] = []  # the profiles of the blocks that are under way, the innermost last


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile of the file. It has secrets, so its ``repr`` shows no value."""

    name: str
    """Name of the profile."""
    cluster: Mapping[str, Any]
    """Fields of PravegaConfig."""
    registry: Mapping[str, str]
    """Fields of RegistryConfig."""
    named: bool
    """Whether it was named, and not by the environment, so that it rules over that."""

    def __repr__(self) -> str:
        return f"Profile({self.name!r})"


def profile_names(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the names of the profiles in the order of the file; none without a file. Raises SerdeError."""
    return list(_tables(_file(os.environ if environment is None else environment)))


def load_profile(name: str | None = None, environment: Mapping[str, str] | None = None) -> Profile | None:
    """Return the named profile, that of :func:`named`, or that of ``PRAVEGA_PROFILE``, in this order; otherwise None.

    Raises SerdeError for a missing profile or file, an unknown setting, or a value of the wrong type. If other users
    can read a file with secrets, the log has one warning.
    """
    environment = os.environ if environment is None else environment
    given = name or next(reversed(_named), None)
    name = given or environment.get(PROFILE_VARIABLE)
    if not name:
        return None
    file = _file(environment)
    tables = _tables(file)
    if name not in tables:
        raise SerdeError(
            f"profile {name!r} does not exist in {file}{did_you_mean(name, tables)}"
            + ("" if tables else f": write the file, with a table [{name}] and controller = 'tcp://host:port' in it")
        )
    table = tables[name]
    where = f"profile {name!r} of {file}"
    for key, value in table.items():
        if key not in _KNOWN:
            hint = did_you_mean(key, _KNOWN) or f"; known settings: {', '.join(_KNOWN)}"
            raise SerdeError(f"{where} has an unknown setting {key!r}{hint}")
        wanted = bool if key in _FLAGS else str
        if not isinstance(value, wanted):
            form = "true or false, without quotes" if wanted is bool else "text in quotes"
            raise SerdeError(f"{key} in {where} must be {form}")
    if not _SECRETS.isdisjoint(table):
        _check_readers(file)
    registry = {field: table[key] for key, field in _REGISTRY.items() if table.get(key)}
    return Profile(name, _cluster(table, where), registry, named=given is not None)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Set the profile that this process reads during the block. A call may still name another one."""
    _named.append(name)
    try:
        yield
    finally:
        _named.pop()


def _file(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "pravega-serde" / "config.toml"


def _tables(file: Path) -> dict[str, dict[str, Any]]:
    import tomllib  # noqa: PLC0415 - most processes have no profile

    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SerdeError(f"the profiles cannot be read from {file}: {error.strerror}") from None
    except ValueError as error:  # neither UTF-8 nor TOML
        raise SerdeError(f"invalid TOML in {file}: {error}") from None
    except RecursionError:
        raise SerdeError(f"invalid TOML in {file}: its values are nested too deeply") from None
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise SerdeError(
                f"{name!r} in {file} is outside of a profile: move it below a line such as [{DEFAULT_PROFILE}]"
            )
    return tables


def _cluster(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    found = {key: table[key] for key in _CLUSTER if table.get(key) not in (None, "")}
    username, password = found.pop("username", None), found.pop("password", None)
    if (username is None) != (password is None):
        raise SerdeError(f"{where} has only one of username and password: set both")
    if username is not None:
        if "auth_token" in found or "auth_method" in found:
            raise SerdeError(f"{where} has a username and an auth_token: set only one of them")
        found["auth_method"] = "Basic"
        found["auth_token"] = base64.b64encode(f"{username}:{password}".encode()).decode()
    return found


def _check_readers(file: Path) -> None:
    if file not in _warned and os.name == "posix" and file.stat().st_mode & _OTHERS_MAY_READ:
        _warned.add(file)
        _logger.warning("%s contains secrets and other users can read it: run chmod 600 %s", file, file)
