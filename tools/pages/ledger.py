"""The ledger's commit table, a part of ``benchmarks/results/exactly-once-tables.md``."""

from __future__ import annotations

from pravega_connector.exactly_once.batch_commit.table import TABLE, Move, Phase
from tools.pages._between import between


def _table() -> str:
    """The table, a row for each move."""
    lines = ["| step | finding | next step | outcome |", "|---|---|---|---|"]
    lines += [
        f"| {phase.value} | {event.value} | {_next(move)} | {move.outcome.value if move.outcome else ''} |"
        for (phase, event), move in TABLE.items()
    ]
    return "\n".join(lines)


def _next(move: Move) -> str:
    return "" if move.to is Phase.END else move.to.value


def page(text: str) -> str:
    """Return the page with its table."""
    return between(
        text, "<!-- generated: python -m tools.pages -->\n", "<!-- end of generated -->", f"\n{_table()}\n\n"
    )
