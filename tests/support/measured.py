"""Metrics of this process and of an endpoint, for assertions."""

import urllib.request
from typing import Any

from pravega_connector.metrics import snapshot


def value(name: str, **attributes: str) -> Any:
    """Return the sum of a metric's values that have these attributes (``__`` for a dot).

    For a histogram, it is the count.
    """
    wanted = {key.replace("__", "."): each for key, each in attributes.items()}
    return sum(
        point["count"] if "count" in point else point["value"]
        for point in snapshot()[name]
        if wanted.items() <= point["attributes"].items()
    )


def of_stream(name: str, stream: object, **attributes: str) -> Any:
    """Return :func:`value` of one stream."""
    return value(name, messaging__destination__name=str(stream), **attributes)


def fetched(url: str) -> str:
    """Return the text that an endpoint serves."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()
