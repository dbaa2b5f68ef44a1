"""``pravega-serde watch``: show the segments and rates of a stream, live."""

from __future__ import annotations

import json
import time
from typing import Final

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.output import standard_output
from pravega_connector.operations.monitoring import StreamView, StreamWatch, segment_label

_BAR: Final = 24  # characters of the whole key space


@click.command(
    epilog=examples(
        "pravega-serde watch shop/orders --group shop/billing",
        "pravega-serde watch shop/orders --once --json",
    )
)
@arguments.stream
@arguments.controller
@arguments.failover_timeout
@click.option(
    "--interval",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    default=1.0,
    show_default=True,
    help="Time between two polls.",
)
@click.option("--once", is_flag=True, help="Poll twice, one interval apart, print the result and exit.")
@click.option("--group", metavar="SCOPE/GROUP", help="Add the reader and the lag of each segment in this reader group.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each poll instead of a table.")
def watch(
    stream: str,
    controller: str | None,
    failover_timeout: float,
    interval: float,
    group: str | None,
    *,
    once: bool,
    as_json: bool,
) -> None:
    """Show the segments of a stream, live.

    The table has the key range, size and write rate of each open segment. It is updated until you press Ctrl-C.
    """
    with arguments.client_of(controller, failover_timeout) as client:
        looker = StreamWatch(client, client.require_stream(stream), group=group)
        view = looker.look()
        if as_json and not once:
            click.echo(json.dumps(view.to_json()))
        if once or as_json:
            while True:
                time.sleep(interval)
                view = looker.look()
                if as_json:
                    click.echo(json.dumps(view.to_json()))
                if once:
                    break
            if not as_json:
                standard_output().print(_shown(view))
            return
        with Live(_shown(view), console=standard_output(), auto_refresh=False) as live:
            while True:
                time.sleep(interval)
                live.update(_shown(looker.look()), refresh=True)


def _shown(view: StreamView) -> Group:
    title = Text(f"{view.stream}", style="bold")
    title.append(f"   epoch {view.epoch}, {len(view.segments)} open segments, {_rate(view.rate)}", style="default")
    if not view.segments:
        title.append("   sealed", style="yellow")
    table = Table("segment", "keys", "", box=None)
    of_group = any(segment.behind is not None for segment in view.segments)
    for heading in ("truncated", "length", "rate", *(("lag",) if of_group else ())):
        table.add_column(heading, justify="right")
    if of_group:
        table.add_column("reader")
    most = max((segment.rate or 0.0 for segment in view.segments), default=0.0)
    for segment in view.segments:
        style = "bold" if most and segment.rate == most else ""
        table.add_row(
            segment_label(view.stream, segment.range.id),
            f"{segment.range.low:.3f}–{segment.range.high:.3f}",
            _bar(segment.range.low, segment.range.high),
            f"{segment.start:,}",
            f"{segment.length:,}",
            _rate(segment.rate),
            *((f"{segment.behind:,}", segment.reader or "–") if segment.behind is not None else ()),
            style=style,
        )
    return Group(title, table)


def _bar(low: float, high: float) -> str:
    first, last = round(low * _BAR), max(round(high * _BAR), round(low * _BAR) + 1)
    return "·" * first + "█" * (last - first) + "·" * (_BAR - last)


def _rate(value: float | None) -> str:
    if value is None:
        return "–"
    for unit in ("B/s", "kB/s", "MB/s"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB/s"
