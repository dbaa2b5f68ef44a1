"""Pages of ``docs`` that are made from the code, whole or in part: ``python -m tools.pages`` writes all of them anew.

A page is a function that takes the text as it is and returns it as it is to be.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.pages import api, commands, errors, java_coverage, ledger, metrics, names, options

__all__ = ["DOCS", "PAGES"]

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final[dict[str, Callable[[str], str]]] = {
    "reference/cli-options.md": commands.page,
    "reference/errors.md": errors.page,
    "measurements/exactly-once-tables.md": ledger.page,
    "reference/java-coverage.md": java_coverage.page,
    "reference/metrics.md": metrics.page,
    "get-started/from-java.md": names.page("Pravega's Java client"),
    "get-started/from-kafka.md": names.page("Kafka's clients"),
    "get-started/from-pravega-binding.md": names.page("Pravega's Rust client and its Python binding"),
    "reference/names.md": names.page("Pulsar's client", "PySpark", "asyncio"),
    "reference/options.md": options.page,
    "reference/operator-options.md": options.operator_page,
    "reference/api/index.md": api.index,
    **{path: api.page(name) for path, name in api.API.items()},
}
