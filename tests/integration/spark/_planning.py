"""A streaming query's plan, asked for without Spark."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Any

from connector.source import PravegaStreamReader


def next_offset(reader: PravegaStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """The end of the next batch, as a look tells that began after this call; ``start`` if there is nothing.

    Spark asks again and again: so an idle reader answers ``start`` at once, while its look goes on.
    """
    for _ in range(2):  # the first look may have begun before
        end = reader.latestOffset(start, None)
        while reader._look is not None:
            wait([reader._look])
            end = reader.latestOffset(start, None)
        if end != start:
            break
    return end
