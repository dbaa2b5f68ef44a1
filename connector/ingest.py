"""Exactly-once ingestion: the public names of :mod:`pravega_connector.ingest`."""

from typing import TYPE_CHECKING, Any

import pravega_connector.ingest as real

if TYPE_CHECKING:
    from pravega_connector.ingest import *  # noqa: F403 - the names are declared there


def __getattr__(name: str) -> Any:
    return getattr(real, name)


def __dir__() -> list[str]:
    return dir(real)
