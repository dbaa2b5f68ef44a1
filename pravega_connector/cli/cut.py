"""``pravega-serde cut``: print, compare, convert and take stream cuts."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from pravega_connector.cli import arguments
from pravega_connector.cli.place_argument import PLACES, place
from pravega_connector.client import StreamCut, StreamName
from pravega_connector.monitoring import CUT_FORMS, compare_cuts, read_cut, segment_label, write_cut
from pravega_connector.wire import segment_epoch, segment_number

_to = click.option(
    "--to", "form", type=click.Choice(CUT_FORMS), default="text", show_default=True, help="Form to write it in."
)


def _name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> StreamName | None:
    return None if value is None else StreamName.parse(value)


_of_stream = click.option("--stream", callback=_name, help="Which stream, where the cut is of several.")


@click.group()
def cut() -> None:
    """Print, compare, convert and take stream cuts.

    A CUT is what Java's StreamCut.asText() gives, JSON ({"scope/stream": {"0.#epoch.0": 120}} or an offset out of a
    checkpoint), scope/stream:0.#epoch.0=120, checkpoint:/path of a Spark query, or - for standard input.
    """


@cut.command()
@click.argument("text", metavar="CUT")
@_of_stream
@arguments.as_json
def show(text: str, stream: StreamName | None, *, as_json: bool) -> None:
    """Print the segments and offsets of a cut."""
    found = _read(text, stream)
    if as_json:
        click.echo(json.dumps(_described(found)))
        return
    table = Table("segment", "number", "epoch", "offset", title=str(found.stream), title_justify="left", box=None)
    for row in _described(found)["segments"]:
        table.add_row(*(str(row[key]) for key in ("segment", "number", "epoch", "offset")))
    Console().print(table)


@cut.command()
@click.argument("text", metavar="CUT")
@_of_stream
@_to
def convert(text: str, stream: StreamName | None, form: str) -> None:
    """Write a cut in another form."""
    click.echo(write_cut(_read(text, stream), form))


@cut.command()
@click.argument("first", metavar="CUT")
@click.argument("second", metavar="CUT")
@_of_stream
@arguments.controller
@arguments.as_json
def compare(first: str, second: str, stream: StreamName | None, controller: str | None, *, as_json: bool) -> None:
    """Tell whether a cut lies before another one, and how many bytes are between them.

    Servers are asked only for cuts of different segments.
    """
    one, other = _read(first, stream), _read(second, stream)
    with arguments.client_of(controller) as client:
        found = compare_cuts(one, other, client)
    if as_json:
        click.echo(json.dumps({"relation": found.relation, "bytes": found.bytes}))
    elif found.relation == "incomparable":
        click.echo("incomparable: the first lies before the second for some routing keys, and after it for others")
    else:
        amount = "an unknown number of" if found.bytes is None else f"{found.bytes:,}"
        click.echo("equal" if found.relation == "equal" else f"{found.relation}: {amount} bytes between them")


@cut.command()
@arguments.stream
@click.option(
    "--at",
    default="tail",
    show_default=True,
    metavar=PLACES,
    help="Where: head (earliest), tail (latest), an event time (ISO 8601, or milliseconds), a cut in another form.",
)
@arguments.controller
@_to
def of(stream: str, at: str, controller: str | None, form: str) -> None:
    """Take the cut of a stream at its head, its tail or a time."""
    with arguments.client_of(controller) as client:
        found = place(client, client.name(stream), at)
    click.echo(write_cut(found, form))


def _read(text: str, stream: StreamName | None) -> StreamCut:
    return read_cut(sys.stdin.read() if text == "-" else text, stream)


def _described(found: StreamCut) -> dict[str, Any]:
    segments = [
        {
            "segment": segment_label(found.stream, segment_id),
            "segment_id": segment_id,
            "number": segment_number(segment_id),
            "epoch": segment_epoch(segment_id),
            "offset": offset,
        }
        for segment_id, offset in found.positions.items()
    ]
    return {"stream": str(found.stream), "segments": segments, "text": found.to_text()}
