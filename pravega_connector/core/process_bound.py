"""Objects that belong to the process that created them."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex

from pravega_connector.errors import ConfigError


class ProcessBound:
    """Object with connections, locks or threads. It cannot be pickled or copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raise ConfigError: a copy would share the state, or have none."""
        raise ConfigError(
            f"objects of {type(self).__name__} belong to their process and cannot be pickled or copied: pass the "
            "client's config, and create them where they are used, from shared_client(config)"
        )
