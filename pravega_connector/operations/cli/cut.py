"""``pravega-serde cut``: print, compare, convert and create stream cuts."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table

from pravega_connector.client import StreamCut, StreamName
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import CommandGroup, examples
from pravega_connector.operations.cli.output import standard_output
from pravega_connector.operations.cli.position_argument import POSITION, cut_argument, resolve_position
from pravega_connector.operations.monitoring import CUT_FORMS, compare_cuts, read_cut, segment_label, write_cut
from pravega_connector.reader.positions import needs_stream
from pravega_connector.wire import segment_epoch, segment_number

_to = click.option(
    "--to", "form", type=click.Choice(CUT_FORMS), default="text", show_default=True, help="Form of the output."
)


def _name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> StreamName | None:
    return None if value is None else StreamName.parse(value)


_of_stream = click.option(
    "--stream", callback=_name, metavar="SCOPE/STREAM", help="Stream to use, if the cut names several or none."
)


@click.group(cls=CommandGroup, epilog=examples("pravega-serde cut of shop/orders --at latest > orders.cut"))
def cut() -> None:
    """Print, compare, convert and create stream cuts.

    A CUT is the text of Java's StreamCut.asText(), or scope/stream:0.#epoch.0=120, or checkpoint:/path of a Spark
    query. It may also be JSON, as {"scope/stream": {"0.#epoch.0": 120}} or an offset from a checkpoint. Pass @FILE to
    read it from a file, or - for standard input.
    """


@cut.command(
    epilog=examples("pravega-serde cut show checkpoint:/data/checkpoint", "pravega-serde cut show @orders.cut")
)
@click.argument("text", metavar="CUT", type=POSITION)
@_of_stream
@arguments.as_json
def show(text: str, stream: StreamName | None, *, as_json: bool) -> None:
    """Print the segments and offsets of a cut."""
    found = cut_argument(text, stream)
    if as_json:
        click.echo(json.dumps(_described(found)))
        return
    table = Table("segment", "number", "epoch", "offset", title=str(found.stream), title_justify="left", box=None)
    for row in _described(found)["segments"]:
        table.add_row(*(str(row[key]) for key in ("segment", "number", "epoch", "offset")))
    standard_output().print(table)


@cut.command(epilog=examples("pravega-serde cut convert @orders.cut --to json"))
@click.argument("text", metavar="CUT", type=POSITION)
@_of_stream
@_to
def convert(text: str, stream: StreamName | None, form: str) -> None:
    """Write a cut in another form."""
    click.echo(write_cut(cut_argument(text, stream), form))


@cut.command(
    epilog=examples(
        "pravega-serde cut compare shop/orders:0=120 shop/orders:0=480",
        "pravega-serde cut compare @orders.cut latest",
        "pravega-serde cut compare earliest latest --stream shop/orders",
    )
)
@click.argument("first", metavar="CUT", type=POSITION)
@click.argument("second", metavar="CUT", type=POSITION)
@_of_stream
@arguments.controller
@arguments.as_json
def compare(first: str, second: str, stream: StreamName | None, controller: str | None, *, as_json: bool) -> None:
    """Compare two cuts and count the bytes between them.

    A CUT may also be head (earliest), tail (latest) or an event time, if the other cut or --stream names the stream.
    The servers are needed only for these, and for cuts of different segments.
    """
    given = [None if needs_stream(text) else read_cut(text, stream) for text in (first, second)]
    named = stream or next((each.stream for each in given if each is not None), None)
    if named is None:
        raise click.UsageError(f"{first!r} and {second!r} name no stream: pass --stream SCOPE/STREAM")
    with arguments.client_of(controller) as client:
        one, other = (
            resolve_position(client, named, text) if each is None else each
            for each, text in zip(given, (first, second), strict=True)
        )
        found = compare_cuts(one, other, client)
    if as_json:
        click.echo(json.dumps({"relation": found.relation, "bytes": found.bytes}))
    elif found.relation == "incomparable":
        click.echo("incomparable: the first cut is before the second for some routing keys and after it for others")
    else:
        amount = "an unknown number of" if found.bytes is None else f"{found.bytes:,}"
        click.echo("equal" if found.relation == "equal" else f"{found.relation}: {amount} bytes between them")


@cut.command(
    epilog=examples(
        "pravega-serde cut of shop/orders > orders.cut", "pravega-serde cut of shop/orders --at 2026-11-21T10:00:00Z"
    )
)
@arguments.stream
@click.option(
    "--at",
    type=POSITION,
    default="tail",
    show_default=True,
    help="head (earliest), tail (latest), an event time (ISO 8601 or milliseconds), a cut in any form, or @FILE.",
)
@arguments.controller
@_to
def of(stream: str, at: str, controller: str | None, form: str) -> None:
    """Create the cut of a stream at a position."""
    with arguments.client_of(controller) as client:
        found = resolve_position(client, client.name(stream), at)
    click.echo(write_cut(found, form))


@cut.command(
    epilog=examples(
        "pravega-serde cut decided shop/orders shop/audit --ledger shop/decisions",
        "pravega-serde cut decided shop/orders",
    )
)
@click.argument("streams", metavar="STREAM...", nargs=-1, required=True)
@click.option("--ledger", metavar="STREAM", help="Stream of the ledger.  [default, for one stream: <stream>-ledger]")
@arguments.controller
@_to
def decided(streams: tuple[str, ...], ledger: str | None, controller: str | None, form: str) -> None:
    """Create a cut of each stream that divides no batch.

    No batch of Spark's sink, and no transaction over several streams, is on both sides of the cuts. A reader that ends
    at them sees whole batches only.
    """
    with arguments.client_of(controller) as client:
        for found in client.decided_cut(streams, ledger=ledger):
            click.echo(write_cut(found, form))


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
