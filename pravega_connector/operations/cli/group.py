"""``pravega-serde group``: list, describe, reset and delete reader groups, Java's included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click
from rich.table import Table

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.errors import ReaderGroupError, ReaderGroupNotFoundError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import CommandGroup, examples
from pravega_connector.operations.cli.lag import lag_options, report_lag
from pravega_connector.operations.cli.output import standard_output
from pravega_connector.operations.cli.position_argument import POSITION, resolve_position
from pravega_connector.operations.monitoring import GroupView, group_lag, group_view
from pravega_connector.reader_groups.protocol import Retention, Segment

_name = click.argument("name", metavar="SCOPE/GROUP")
_OPEN: Final = "unbounded"


@click.group(cls=CommandGroup, epilog=examples("pravega-serde group describe shop/billing"))
def group() -> None:
    """List, describe, reset and delete reader groups.

    You can also show the lag of a group and remove failed readers.
    """


@group.command("list", epilog=examples("pravega-serde group list shop"))
@click.argument("scope", required=False)
@arguments.controller
@arguments.as_json
def list_groups(scope: str | None, controller: str | None, *, as_json: bool) -> None:
    """List the reader groups of a scope.

    The default is the configured scope, or all scopes. The list includes subscribers.
    """
    with arguments.client_of(controller) as client:
        scopes = [scope] if scope is not None else [client.config.scope] if client.config.scope else client.scopes()
        names = sorted(name for each in scopes for name in client.reader_groups(each))
    click.echo(json.dumps(names) if as_json else "\n".join(names), nl=as_json or bool(names))


@group.command(epilog=examples("pravega-serde group describe shop/billing --json"))
@_name
@arguments.controller
@arguments.as_json
def describe(name: str, controller: str | None, *, as_json: bool) -> None:
    """Show the streams, readers and checkpoints of a group.

    For each reader, the table has its segments and offsets. Readers report their offsets every few seconds. 'end' is
    the end of a sealed segment, in JSON -1. A failed reader stays in the table until you remove it: 'group offline'.
    """
    with arguments.client_of(controller) as client:
        view = group_view(client, name)
    if as_json:
        click.echo(json.dumps(view.to_json()))
    else:
        _show(view)


@group.command(epilog=examples("pravega-serde group lag shop/billing --max-bytes 1000000"))
@_name
@lag_options("group")
def lag(name: str, **given: Any) -> None:
    """Show the lag of a reader group.

    The lag counts from the last offsets that the readers reported, up to the end of the streams or of the group. Output
    and exit codes are the same as for 'pravega-serde lag'. With --metrics-port the command keeps running until SIGTERM:
    it polls every --interval seconds and serves the lag under the group's name.
    """
    report_lag(lambda client, reader: (None, group_lag(client, group_view(client, name), reader=reader)), name, **given)


@group.command(
    epilog=examples(
        "pravega-serde group reset shop/billing",
        "pravega-serde group reset shop/billing --at earliest --yes",
    )
)
@_name
@click.option(
    "--at",
    multiple=True,
    type=POSITION,
    help="Where to restart: earliest, latest, a time, a stream cut, or @FILE. Repeat it for several streams.  "
    "[default: the last checkpoint, or the head of a new stream]",
)
@click.option(
    "--stream",
    "streams",
    multiple=True,
    metavar="SCOPE/STREAM",
    help="Read only this stream from now on; repeatable.  [default: as before]",
)
@click.option(
    "--end",
    multiple=True,
    type=POSITION,
    help=f"Where to end, a POSITION as for --at, or {_OPEN}.  [default: as before]",
)
@click.option(
    "--retention",
    type=click.Choice([each.name.lower() for each in Retention]),
    help="Truncation of its streams that the group allows.  [default: as before]",
)
@click.option(
    "--checkpoint-interval",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Time between automatic checkpoints; 0 for none.  [default: as before]",
)
@click.option(
    "--refresh",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Time between two polls of the state by a reader.  [default: as before]",
)
@click.option(
    "--max-outstanding",
    type=click.IntRange(1),
    metavar="COUNT",
    help="Maximum number of incomplete checkpoints.  [default: as before]",
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
    """Restart a group at a position.

    You can change its configuration at the same time. All readers go offline. Create them again.
    """
    with arguments.client_of(controller) as client:
        view = _with_state(client, name)
        read = [client.require_stream(stream) for stream in streams] or list(view.config.start)
        cuts = [resolve_position(client, stream, text) for stream, text in _positions(read, at, "--at")]
        changes = {option: value for option, value in settings.items() if value is not None}
        if settings["checkpoint_interval"] == 0:
            changes["checkpoint_interval"] = None
        if streams:
            changes["streams"] = read
        if end:
            ends = [] if end == (_OPEN,) else _positions(read, end, "--end")
            changes["end"] = [resolve_position(client, stream, text, end=True) for stream, text in ends] or None
        where = " ".join(at) if at else "its last checkpoint"
        reading = f" in {', '.join(map(str, read))}" if streams else ""
        question = f"Reset reader group {view} to {where}{reading} and take its {_readers(view)} offline"
        arguments.confirmed(question, yes=yes)
        with ReaderGroup(client, view.scope, view.name) as opened:
            opened.reset(cuts or None, **changes)


@group.command(epilog=examples("pravega-serde group offline shop/billing worker-1"))
@_name
@click.argument("readers", metavar="READER...", nargs=-1, required=True)
@arguments.yes
@arguments.controller
def offline(name: str, readers: tuple[str, ...], controller: str | None, *, yes: bool) -> None:
    """Remove failed readers from a group.

    The other readers continue from the last checkpoint of each removed reader. A removed reader that still runs must be
    created again.
    """
    with arguments.client_of(controller) as client:
        view = _with_state(client, name)
        arguments.confirmed(f"Remove {', '.join(readers)} from reader group {view}", yes=yes)
        with ReaderGroup(client, view.scope, view.name) as opened:
            missing = [reader for reader in readers if not opened.reader_offline(reader)]
            online = ", ".join(opened.online_readers()) or "none"
    if missing:
        raise ReaderGroupError(f"reader group {view} has no reader {', '.join(missing)}; its readers: {online}")


@group.command(epilog=examples("pravega-serde group delete shop/billing --yes"))
@_name
@arguments.yes
@arguments.controller
def delete(name: str, controller: str | None, *, yes: bool) -> None:
    """Delete a group and its state.

    Its streams are kept. The group no longer delays their retention.
    """
    with arguments.client_of(controller) as client:
        view = group_view(client, name)
        arguments.confirmed(f"Delete reader group {view} with {_readers(view)}", yes=yes)
        if not ReaderGroup(client, view.scope, view.name).delete():
            raise ReaderGroupNotFoundError(f"reader group {view} was deleted by another program")


def _with_state(client: PravegaClient, name: str) -> GroupView:
    view = group_view(client, name)
    if view.state is None:
        raise ReaderGroupError(
            f"reader group {view} has no state: it is a subscriber, or no reader has joined it; "
            "run 'pravega-serde subscribers' for subscribers"
        )
    return view


def _positions(streams: list[StreamName], given: tuple[str, ...], option: str) -> list[tuple[StreamName, str]]:
    """Pair streams with positions: one position for all streams, or one for each."""
    if len(given) <= 1:
        return [(stream, text) for text in given for stream in streams]
    if len(given) != len(streams):
        raise click.UsageError(
            f"{option} is set {len(given)} times: set it once, or once for each stream in this order: "
            f"{', '.join(map(str, streams))}"
        )
    return list(zip(streams, given, strict=True))


def _readers(view: GroupView) -> str:
    count = 0 if view.state is None else view.state.readers
    return f"{count} reader{'' if count == 1 else 's'}"


def _show(view: GroupView) -> None:
    console, config = standard_output(), view.config
    console.print(f"{view}, generation {config.generation}")
    for stream in config.start:
        bound = config.end.get(stream)
        console.print(f"  reads {stream}" + ("" if bound is None or bound.cut is None else f", up to {bound.cut}"))
    interval = f"every {config.checkpoint_ms / 1000:g} s" if config.checkpoint_ms > 0 else "none"
    console.print(f"  automatic checkpoints: {interval}; retention: {config.retention.name.lower()}")
    if (state := view.state) is None:
        console.print("  no state: a subscriber, or no reader has joined")
        return
    at = view.positions
    table = Table("reader", "segment", box=None)
    table.add_column("offset", justify="right")
    for reader, owned in sorted(state.assigned.items()):
        _rows(table, reader, owned, at)
    if state.unassigned:
        _rows(table, "(none)", state.unassigned, at)
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
