"""The metrics there are: ``python -m tools.metrics_page`` writes the table in ``docs/metrics.md`` anew."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from connector.metrics import INSTRUMENTS, prometheus_name

PAGE: Final = Path(__file__).parents[1] / "docs" / "metrics.md"
_TABLE: Final = re.compile(r"(?<=<!-- metrics -->\n).*?(?=<!-- end of metrics -->)", re.DOTALL)
#: What the endpoint, and OpenTelemetry's exporter for Prometheus, add to a metric's name in its samples.
_SUFFIXES: Final = {"counter": "_total", "histogram": "_bucket"}


def table() -> str:
    """A row for each instrument."""
    rows = ["| metric, and as Prometheus has it | kind, unit | by | what |", "|---|---|---|---|"]
    for each in INSTRUMENTS.values():
        there = prometheus_name(each) + _SUFFIXES.get(each.kind, "")
        by = ", ".join(f"`{name}`" for name in each.attributes)
        rows.append(f"| `{each.name}`<br>`{there}` | {each.kind}, {each.unit} | {by} | {each.text} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """``docs/metrics.md`` with the table made from the code."""
    return _TABLE.sub(lambda _: table(), PAGE.read_text(), count=1)


if __name__ == "__main__":
    PAGE.write_text(page())
