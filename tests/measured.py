"""Metrics of this process, and of an endpoint, as tests look at them."""

import urllib.request
from typing import Any

from pravega_connector.metrics import snapshot


def value(name: str, **attributes: str) -> Any:
    """Sum of a metric's values, of all that have these attributes (``__`` for a dot); a histogram's count."""
    wanted = {key.replace("__", "."): each for key, each in attributes.items()}
    return sum(
        point["count"] if "count" in point else point["value"]
        for point in snapshot()[name]
        if wanted.items() <= point["attributes"].items()
    )


def of_stream(name: str, stream: object, **attributes: str) -> Any:
    """:func:`value` of one stream."""
    return value(name, messaging__destination__name=str(stream), **attributes)


def fetched(url: str) -> str:
    """Text that an endpoint serves."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()
