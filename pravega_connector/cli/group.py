"""``pravega-serde group``: reader groups, Java's as well."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from pravega_connector.cli import arguments
from pravega_connector.cli.lag import tell, told
from pravega_connector.cli.place_argument import PLACES, place
from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.errors import ReaderGroupError, ReaderGroupNotFoundError
from pravega_connector.monitoring import GroupView, group_lag, group_view
from pravega_connector.reader_group_protocol import Retention, Segment

_name = click.argument("name", metavar="SCOPE/GROUP")
_OPEN: Final = "unbounded"


@click.group()
def group() -> None:
    """List, describe, reset and delete reader groups, show how far they are behind, take out readers that have died."""


@group.command("list")
@click.argument("scope", required=False)
@arguments.controller
@arguments.as_json
def list_groups(scope: str | None, controller: str | None, *, as_json: bool) -> None:
    """List the reader groups of a scope, by default the configured one, else of all. Subscribers are among them."""
    with arguments.client_of(controller) as client:
        scopes = [scope] if scope is not None else [client.config.scope] if client.config.scope else client.scopes()
        names = sorted(name for each in scopes for name in client.reader_groups(each))
    click.echo(json.dumps(names) if as_json else "\n".join(names), nl=as_json or bool(names))


@group.command()
@_name
@arguments.controller
@arguments.as_json
def describe(name: str, controller: str | None, *, as_json: bool) -> None:
    """Show what a group reads, who reads which segments from where, and its checkpoints.

    Offsets are those that the readers have told, which they do every few seconds; -1 is the end of a segment that has
    ended. A reader that has died is among them until it is taken out (pravega-serde group offline).
    """
    with arguments.client_of(controller) as client:
        view = group_view(client, name)
    if as_json:
        click.echo(json.dumps(view.to_json()))
    else:
        _show(view)


@group.command()
@_name
@told("group")
def lag(name: str, **given: Any) -> None:
    """Show how far a group is behind the ends of its streams, or the end that it has.

    It counts from what the readers have told, which they do every few seconds. Output and exit codes are those of
    pravega-serde lag. With --metrics-port it stays, looks again every --interval seconds, and serves what it has seen,
    under the group's name, until SIGTERM.
    """
    tell(lambda client, reader: (None, group_lag(client, group_view(client, name), reader=reader)), name, **given)


@group.command()
@_name
@click.option(
    "--at",
    multiple=True,
    metavar=PLACES,
    help="Where to begin again: earliest, latest, a time, or a stream cut; several cuts for several streams.  "
    "[default: the last checkpoint; the head of a stream that is new]",
)
@click.option(
    "--stream",
    "streams",
    multiple=True,
    metavar="SCOPE/STREAM",
    help="Read this stream from now on, and no others but those that are named so too.  [default: as before]",
)
@click.option(
    "--end", multiple=True, metavar=PLACES, help=f"Where to end, as --at; {_OPEN}: nowhere.  [default: as before]"
)
@click.option(
    "--retention",
    type=click.Choice([each.name.lower() for each in Retention]),
    help="What of its streams may be truncated.  [default: as before]",
)
@click.option(
    "--checkpoint-interval",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Between automatic checkpoints; 0: none.  [default: as before]",
)
@click.option(
    "--refresh",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Between two looks of a reader at the state.  [default: as before]",
)
@click.option(
    "--max-outstanding",
    type=click.IntRange(1),
    metavar="COUNT",
    help="Checkpoints that may be asked for while none is complete.  [default: as before]",
)
@arguments.yes
@arguments.controller
def reset(
    name: str,
    at: tuple[str, ...],
    streams: tuple[str, ...],
    end: tuple[str, ...],
    controller: str | None,
    *,
    yes: bool,
    **settings: Any,
) -> None:
    """Have a group begin again, with the same configuration or another.

    Its readers are offline then, and each has to come back as a new one.
    """
    with arguments.client_of(controller) as client:
        view = _with_state(client, name)
        read = [client.require_stream(stream) for stream in streams] or list(view.config.start)
        cuts = [place(client, stream, text) for stream, text in _places(read, at, "--at")]
        changes = {option: value for option, value in settings.items() if value is not None}
        if settings["checkpoint_interval"] == 0:
            changes["checkpoint_interval"] = None
        if streams:
            changes["streams"] = read
        if end:
            ends = [] if end == (_OPEN,) else _places(read, end, "--end")
            changes["end"] = [place(client, stream, text, end=True) for stream, text in ends] or None
        where = " ".join(at) if at else "its last checkpoint"
        reading = f" in {', '.join(map(str, read))}" if streams else ""
        question = f"Reset reader group {view} to {where}{reading}, with its {_readers(view)} offline"
        arguments.confirmed(question, yes=yes)
        with ReaderGroup(client, view.scope, view.name) as opened:
            opened.reset(cuts or None, **changes)


@group.command()
@_name
@click.argument("readers", metavar="READER...", nargs=-1, required=True)
@arguments.yes
@arguments.controller
def offline(name: str, readers: tuple[str, ...], controller: str | None, *, yes: bool) -> None:
    """Take readers that have died out of a group.

    Others read on from where the last checkpoint of each was. One that lives has to come back as a new one.
    """
    with arguments.client_of(controller) as client:
        view = _with_state(client, name)
        arguments.confirmed(f"Take {', '.join(readers)} out of reader group {view}", yes=yes)
        with ReaderGroup(client, view.scope, view.name) as opened:
            missing = [reader for reader in readers if not opened.reader_offline(reader)]
            there = ", ".join(opened.online_readers()) or "nobody"
    if missing:
        raise ReaderGroupError(f"reader group {view} has no reader {', '.join(missing)}: in it is {there}")


@group.command()
@_name
@arguments.yes
@arguments.controller
def delete(name: str, controller: str | None, *, yes: bool) -> None:
    """Delete a group and its state. Its streams stay, and are not held back by it any longer."""
    with arguments.client_of(controller) as client:
        view = group_view(client, name)
        arguments.confirmed(f"Delete reader group {view} with {_readers(view)}", yes=yes)
        if not ReaderGroup(client, view.scope, view.name).delete():
            raise ReaderGroupNotFoundError(f"reader group {view} was deleted by somebody else")


def _with_state(client: PravegaClient, name: str) -> GroupView:
    view = group_view(client, name)
    if view.state is None:
        raise ReaderGroupError(f"reader group {view} has no state: it is a subscriber, or not begun")
    return view


def _places(streams: list[StreamName], given: tuple[str, ...], option: str) -> list[tuple[StreamName, str]]:
    """Streams and the places for them: one place for all, or as many cuts as there are streams."""
    if len(given) <= 1:
        return [(stream, text) for text in given for stream in streams]
    if len(given) != len(streams):
        raise click.UsageError(
            f"{option} is given {len(given)} times: give it once, or for each of {', '.join(map(str, streams))} in turn"
        )
    return list(zip(streams, given, strict=True))


def _readers(view: GroupView) -> str:
    count = 0 if view.state is None else view.state.readers
    return f"{count} reader{'' if count == 1 else 's'}"


def _show(view: GroupView) -> None:
    console, config = Console(), view.config
    console.print(f"{view}, generation {config.generation}")
    for stream in config.start:
        bound = config.end.get(stream)
        console.print(f"  reads {stream}" + ("" if bound is None or bound.cut is None else f", up to {bound.cut}"))
    interval = f"every {config.checkpoint_ms / 1000:g} s" if config.checkpoint_ms > 0 else "none"
    console.print(f"  automatic checkpoints: {interval}; retention: {config.retention.name.lower()}")
    if (state := view.state) is None:
        console.print("  no state: a subscriber, or not begun")
        return
    at = view.positions
    table = Table("reader", "segment", box=None)
    table.add_column("offset", justify="right")
    for reader, owned in sorted(state.assigned.items()):
        _rows(table, reader, owned, at)
    if state.unassigned:
        _rows(table, "(nobody)", state.unassigned, at)
    for segment, missing in state.future.items():
        table.add_row("(waits)", str(segment), "after " + ", ".join(str(Segment(segment.stream, n)) for n in missing))
    console.print(table)
    for name in state.checkpoints.outstanding:
        console.print(f"checkpoint {name} waits for {', '.join(sorted(state.checkpoints.waiting[name]))}")


def _rows(table: Table, reader: str, owned: Iterable[Segment], at: Mapping[Segment, int]) -> None:
    owned = list(owned)
    for first, segment in enumerate(owned):
        table.add_row("" if first else reader, str(segment), f"{at[segment]:,}" if at[segment] >= 0 else "end")
    if not owned:
        table.add_row(reader, "", "")
