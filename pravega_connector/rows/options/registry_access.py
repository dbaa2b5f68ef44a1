"""Access of a query to a schema registry, without the secrets that each process reads itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from pravega_serde.registry.registry_config import RegistryConfig, registry_settings

# Secrets of a registry's access -> settings that are one with them: they come from one source.
_SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "password": ("username", "password"),
    "token": ("token",),
    "ca_password": ("ca_password",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess(RegistryConfig):
    """Configuration of a query's registry. Tasks use the configuration of the driver.

    A password or token that the driver found in its environment or profile is not pickled. Each process that restores
    the configuration reads these settings from its own environment or profile.
    """

    found: frozenset[str] = field(default=frozenset(), compare=False)
    """Settings that are not pickled."""

    def __reduce__(self) -> tuple[Callable[..., RegistryAccess], tuple[dict[str, Any], frozenset[str]]]:
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in self.found | {"found"}:
            del state[name]
        return _restored, (state, self.found)


def _restored(state: dict[str, Any], found: frozenset[str]) -> RegistryAccess:
    own = registry_settings({}) if found else {}
    renewed: dict[str, Any] = {name: own.get(name) for name in found}
    return RegistryAccess(**state, **renewed, found=found)


def registry_access(given: Mapping[str, str | None], *, timeout: float) -> RegistryAccess | None:
    """Return the access with ``given``, then the environment's settings, then its profile's. None without an address.

    ``timeout`` limits a call, in seconds. The latest schemas are not cached, so each call finds the latest ones.
    Raises SerdeError for invalid settings or an invalid profile.
    """
    settings = registry_settings(given)
    if "uri" not in settings:
        return None
    secrets = {name for name in _SECRETS if name in settings and given.get(name) is None}
    found = frozenset(name for secret in secrets for name in _SECRETS[secret])
    return RegistryAccess(**settings, timeout=timeout, latest_seconds=0.0, found=found)
