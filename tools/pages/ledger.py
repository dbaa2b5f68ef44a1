"""The ledger's commit table, as a picture and as a table: a part of ``docs/measurements/exactly-once-tables.md``."""

from __future__ import annotations

from collections.abc import Iterator

from pravega_connector.exactly_once.batch_commit.table import TABLE, Move, Phase
from tools.pages._between import between


def _diagram() -> str:
    """A state diagram; what ends a commit is drawn as a note on its arrow."""
    lines = ["stateDiagram-v2", "    [*] --> READ", "    [*] --> ABANDON_READ"]
    lines += [f"    {phase.name} : {phase.value}" for phase in Phase if phase is not Phase.END]
    lines += list(_arrows())
    return "\n".join(lines)


def _arrows() -> Iterator[str]:
    for (phase, event), move in TABLE.items():
        target = "[*]" if move.to is Phase.END else move.to.name
        ending = f" ⇒ {move.outcome.name}" if move.outcome else ""
        yield f"    {phase.name} --> {target} : {event.value}{ending}"


def _table() -> str:
    """The table, a row for each move."""
    lines = ["| what is asked | what is found | what comes next | how it ends |", "|---|---|---|---|"]
    lines += [
        f"| {phase.value} | {event.value} | {_next(move)} | {move.outcome.value if move.outcome else ''} |"
        for (phase, event), move in TABLE.items()
    ]
    return "\n".join(lines)


def _next(move: Move) -> str:
    return "" if move.to is Phase.END else move.to.value


def page(text: str) -> str:
    """The page with both."""
    both = f"\n```mermaid\n{_diagram()}\n```\n\n{_table()}\n\n"
    return between(text, "<!-- generated: python -m tools.pages -->\n", "<!-- end of generated -->", both)
