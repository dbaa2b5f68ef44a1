"""Column functions for Spark: the public names of :mod:`pravega_connector.functions`."""

from typing import TYPE_CHECKING, Any

import pravega_connector.functions as real

if TYPE_CHECKING:
    from pravega_connector.functions import *  # noqa: F403 - the names are declared there


def __getattr__(name: str) -> Any:
    return getattr(real, name)


def __dir__() -> list[str]:
    return dir(real)
