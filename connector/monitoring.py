"""Lag, scaling history and stream cuts: the public names of :mod:`pravega_connector.monitoring`."""

from typing import TYPE_CHECKING, Any

import pravega_connector.monitoring as real

if TYPE_CHECKING:
    from pravega_connector.monitoring import *  # noqa: F403 - the names are declared there


def __getattr__(name: str) -> Any:
    return getattr(real, name)


def __dir__() -> list[str]:
    return dir(real)
