"""Options of the commands that work in exactly-once steps: ``ingest`` and ``mirror``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from pravega_connector.exactly_once.steps.takeover import RESOLUTIONS

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
resolve: Final = click.option(
    "--resolve", type=click.Choice(RESOLUTIONS), help="Outcome of a transaction that the servers have forgotten."
)
