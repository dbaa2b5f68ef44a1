"""``pravega-serde scaling``: draw the scaling history of a stream."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pravega_connector.errors import OutputFileError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.monitoring import draw_history, scaling_history


@click.command(epilog=examples("pravega-serde scaling shop/orders --output orders.svg"))
@arguments.stream
@click.option("--output", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="SVG file to write.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Show only the last N epochs.")
@arguments.controller
@click.option("--json", "as_json", is_flag=True, help="Print the history as JSON.")
def scaling(stream: str, output: Path | None, last: int | None, controller: str | None, *, as_json: bool) -> None:
    """Draw the scaling history of a stream as SVG.

    The picture shows the key range of each segment per epoch, splits, merges and truncated segments. Without --output
    or --json it goes to standard output.
    """
    if output is not None and not output.absolute().parent.is_dir():
        raise OutputFileError(
            f"the file {output} cannot be written: its folder does not exist; create the folder first"
        )
    with arguments.client_of(controller) as client:
        history = scaling_history(client, stream, last_epochs=last)
    if as_json:
        click.echo(json.dumps(history.to_json()))
    if output is not None:
        output.write_text(draw_history(history), encoding="utf-8")
        click.echo(f"{output}: {len(history.segments)} segments, epochs {history.first} to {history.last}", err=True)
    elif not as_json:
        click.echo(draw_history(history), nl=False)
