"""Options of the commands that work in exactly-once steps: ``ingest`` and ``mirror``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar
from uuid import UUID

import click

from pravega_connector.exactly_once.steps.takeover import RESOLUTIONS, Resolution

_Command = TypeVar("_Command", bound=Callable[..., Any])


def lease(seconds: float) -> Callable[[_Command], _Command]:
    """Return the option ``--lease`` with this default."""
    return click.option(
        "--lease",
        metavar="SECONDS",
        default=seconds,
        show_default=True,
        help="Transaction timeout; another run takes over after it.",
    )


takeover_after: Final = click.option(
    "--takeover-after",
    type=float,
    metavar="SECONDS",
    help="Take over from a run that has recorded nothing for this long.  [default: after --lease]",
)


def _resolutions(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[UUID, Resolution]:
    found: dict[UUID, Resolution] = {}
    for text in given:
        id_, _, word = text.partition("=")
        try:
            transaction, outcome = UUID(id_), next(known for known in RESOLUTIONS if known == word)
        except (ValueError, StopIteration):
            raise click.BadParameter(f"{text!r}: write ID=committed or ID=aborted") from None
        if found.setdefault(transaction, outcome) != outcome:
            raise click.BadParameter(f"transaction {transaction} has two outcomes: write one of them")
    return found


resolve: Final = click.option(
    "--resolve",
    multiple=True,
    metavar="ID=OUTCOME",
    callback=_resolutions,
    help="Outcome of a transaction that the servers have forgotten: committed or aborted. Repeat for each transaction.",
)
