"""Pages of ``docs`` that are made from the code, whole or in part: ``python -m tools.pages`` writes all of them anew.

A page is a function that takes the text as it is and returns it as it is to be.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from pravega_connector.cli.options import options_page
from tools.pages import api, commands, errors, layers, ledger, metrics, names

__all__ = ["DOCS", "PAGES"]

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final[dict[str, Callable[[str], str]]] = {
    "architecture.md": layers.page,
    "cli-options.md": commands.page,
    "errors.md": errors.page,
    "exactly-once-tables.md": ledger.page,
    "metrics.md": metrics.page,
    "from-java.md": names.page("Pravega's Java client"),
    "from-kafka.md": names.page("Kafka's clients"),
    "from-pravega-binding.md": names.page("Pravega's Rust client and its Python binding"),
    "names.md": names.page("Pulsar's client", "PySpark", "asyncio"),
    "options.md": lambda _: options_page(),
    **{name: api.page(name) for name in api.API},
}
