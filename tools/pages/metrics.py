"""The metrics there are: the table in ``docs/reference/metrics.md``."""

from __future__ import annotations

from typing import Final

from pravega_connector.metrics import INSTRUMENTS, prometheus_name
from tools.pages._between import between

#: Suffixes that the endpoint and OpenTelemetry's exporter for Prometheus add to a metric's name.
_SUFFIXES: Final = {"counter": "_total", "histogram": "_bucket"}


def table() -> str:
    """A row for each instrument."""
    rows = ["| metric, and its name in Prometheus | kind, unit | attributes | meaning |", "|---|---|---|---|"]
    for each in INSTRUMENTS.values():
        there = prometheus_name(each) + _SUFFIXES.get(each.kind, "")
        by = ", ".join(f"`{name}`" for name in each.attributes)
        rows.append(f"| `{each.name}`<br>`{there}` | {each.kind}, {each.unit} | {by} | {each.text} |")
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """The page with its table."""
    return between(text, "<!-- metrics -->\n", "<!-- end of metrics -->", table())
