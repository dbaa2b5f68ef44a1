"""The ledger's commit table as a picture and as a page: ``python -m tools.ledger_diagram`` prints both for the docs."""

from __future__ import annotations

from collections.abc import Iterator

import click

from connector.ledger.table import TABLE, Move, Phase

__all__ = ["as_markdown", "as_mermaid"]


def as_mermaid() -> str:
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


def as_markdown() -> str:
    """The table, a row for each move."""
    lines = ["| what is asked | what is found | what comes next | how it ends |", "|---|---|---|---|"]
    lines += [
        f"| {phase.value} | {event.value} | {_next(move)} | {move.outcome.value if move.outcome else ''} |"
        for (phase, event), move in TABLE.items()
    ]
    return "\n".join(lines)


def _next(move: Move) -> str:
    return "" if move.to is Phase.END else move.to.value


if __name__ == "__main__":
    click.echo(f"```mermaid\n{as_mermaid()}\n```\n\n{as_markdown()}")
