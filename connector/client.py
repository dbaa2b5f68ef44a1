"""The Pravega client: the public names of :mod:`pravega_connector.client`."""

from typing import TYPE_CHECKING, Any

import pravega_connector.client as real

if TYPE_CHECKING:
    from pravega_connector.client import *  # noqa: F403 - the names are declared there


def __getattr__(name: str) -> Any:
    return getattr(real, name)


def __dir__() -> list[str]:
    return dir(real)
