"""The Spark data source: the public names of :mod:`pravega_connector.data_source`."""

from typing import TYPE_CHECKING, Any

import pravega_connector.data_source as real

if TYPE_CHECKING:
    from pravega_connector.data_source import *  # noqa: F403 - the names are declared there


def __getattr__(name: str) -> Any:
    return getattr(real, name)


def __dir__() -> list[str]:
    return dir(real)
