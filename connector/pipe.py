"""Lines of standard input, files and TCP connections as events: the public names of :mod:`pravega_connector.pipe`."""

from typing import TYPE_CHECKING, Any

import pravega_connector.pipe as real

if TYPE_CHECKING:
    from pravega_connector.pipe import *  # noqa: F403 - the names are declared there


def __getattr__(name: str) -> Any:
    return getattr(real, name)


def __dir__() -> list[str]:
    return dir(real)
