"""Short name of the package :mod:`pravega_connector`: the same objects, and the same public modules.

A user's own ``connector.py`` next to a script hides this package. Write ``pravega_connector`` where that can happen.
"""

from typing import TYPE_CHECKING, Any

import pravega_connector

if TYPE_CHECKING:
    from pravega_connector import *  # noqa: F403 - the names are declared there

__all__ = pravega_connector.__all__  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    return getattr(pravega_connector, name)


def __dir__() -> list[str]:
    return dir(pravega_connector)
