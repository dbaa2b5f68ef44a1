"""``pravega-serde scaling``: the scaling history of a stream as a picture or JSON."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pravega_connector.cli import arguments
from pravega_connector.monitoring import draw_history, scaling_history


@click.command()
@arguments.stream
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The SVG file to write.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N epochs only.")
@arguments.controller
@click.option("--json", "as_json", is_flag=True, help="Print the history as JSON.")
def scaling(stream: str, output: Path | None, last: int | None, controller: str | None, *, as_json: bool) -> None:
    """Draw which segments took which routing keys in which epoch: splits, merges, what was truncated.

    Without --output or --json the picture goes to standard output.
    """
    with arguments.client_of(controller) as client:
        history = scaling_history(client, client.name(stream), last_epochs=last)
    if as_json:
        click.echo(json.dumps(history.to_json()))
    if output is not None:
        output.write_text(draw_history(history), encoding="utf-8")
        click.echo(f"{output}: {len(history.segments)} segments, epochs {history.first} to {history.last}", err=True)
    elif not as_json:
        click.echo(draw_history(history), nl=False)
