"""A streaming query's plan, asked for without Spark."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Any

from pravega_connector.spark.source.readers import PravegaStreamReader

_LOOK_ENDS = 60.0  # seconds: far more than a check's longest wait


def next_offset(reader: PravegaStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """The end of the next batch, as reported by a check that began after this call; ``start`` if there is nothing.

    Spark asks again and again: so an idle reader answers ``start`` at once, while its look continues.
    """
    for _ in range(2):  # the first look may have begun before
        end = reader.latestOffset(start, None)
        look = reader._look
        if end == start and look is not None:
            assert wait([look], _LOOK_ENDS).done, "a look did not end"
            if look.exception() is not None or look.result() is not reader._looks_from:
                end = reader.latestOffset(start, None)
        if end != start:
            return end
    return start
