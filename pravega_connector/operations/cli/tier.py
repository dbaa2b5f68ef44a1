"""``pravega-serde tier``: write the events of a stream into a Delta or Iceberg table, each once."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any, Final

import click

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.exit_codes import SIGNAL
from pravega_connector.operations.cli.position_argument import POSITION, resolve_position
from pravega_connector.operations.tier import TierCounts, TierMerge, TierSettings, TierSummary, tier_status
from pravega_connector.operations.tier import tier as tier_stream

_SETTINGS: Final = TierSettings()
_MODES: Final = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")


@click.command(
    epilog=examples(
        "pravega-serde tier shop/orders delta:/lake/orders --format json --follow",
        "pravega-serde tier shop/orders iceberg:main.shop.orders --format json",
        "pravega-serde tier shop/users delta:/lake/users --format json --merge-by id",
        "pravega-serde tier shop/orders delta:/lake/orders --status",
    )
)
@arguments.stream
@click.argument("table", metavar="TABLE")
@arguments.controller
@arguments.event_format
@arguments.registry
@arguments.registry_group
@click.option("--columns", metavar="NAMES", help="Columns besides the decoded ones.  [default: segment_id,offset]")
@click.option(
    "--mode",
    type=click.Choice(_MODES, case_sensitive=False),
    help="Handling of malformed events: fail, write nulls, or omit them.  [default: FAILFAST]",
)
@arguments.more_options("source")
@click.option("--start", type=POSITION, help="Position at which the first run begins.  [default: earliest]")
@click.option("--follow", is_flag=True, help="Wait for new events until SIGTERM or Ctrl-C.")
@click.option(
    "--target-size",
    type=arguments.SIZE,
    default=_SETTINGS.target_bytes,
    show_default="128MiB",
    help="Approximate size of the events of a commit, which are kept in memory.",
)
@click.option(
    "--max-interval",
    type=arguments.DURATION,
    default=round(_SETTINGS.max_interval * 1000),
    show_default="60s",
    help="Time after which rows are committed, also if they are fewer.",
)
@click.option("--partition-by", multiple=True, metavar="COLUMN", help="Partition column of a new table; repeatable.")
@click.option(
    "--merge-by",
    multiple=True,
    metavar="COLUMN",
    help="Merge events into a Delta table by this key, instead of adding rows; repeatable.",
)
@click.option(
    "--merge-order",
    metavar="COLUMN",
    help="Column by which a later change of a key wins, such as position.  [default: order of the stream]",
)
@click.option("--keep-deleted", is_flag=True, help="Keep the rows of deleted keys, with true in column deleted.")
@click.option("--sort-by", multiple=True, metavar="COLUMN", help="Column that sorts the rows of a commit; repeatable.")
@click.option(
    "--truncate-after",
    type=arguments.DURATION,
    help="Truncate events of the stream that were committed this long ago.  [default: never]",
)
@click.option(
    "--storage",
    multiple=True,
    metavar="NAME=VALUE",
    callback=arguments.pairs,
    help="Option of the table's object store or catalog; repeatable.",
)
@click.option("--status", is_flag=True, help="Print the position of the stream in the table, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print commits, summary and status as lines of JSON.")
@click.option("--quiet", is_flag=True, help="Print no commits and no summary.")
def tier(*, stream: str, table: str, storage: dict[str, str], status: bool, **given: Any) -> None:
    """Write the events of a stream into TABLE, each once: delta:PATH or iceberg:CATALOG.NAMESPACE.TABLE.

    The table is created if it does not exist. Each commit has the position of the stream, so a run continues where the
    last one ended, even after a kill, and no row is missing or repeated.

    Exit code 0: the table has all events up to the tail at the start. 3: events were truncated before they were
    written. 4: the stream does not exist. 128 and more: a signal. Fix the cause and run the command again.
    """
    names = ("controller", "format", "registry", "group", "columns", "mode")
    options = {**{name: given[name] for name in names}, **given["more"]}
    if status:
        _show_status(*tier_status(stream, table, storage=storage, **options), as_json=given["as_json"])
        return
    if not given["merge_by"] and (given["merge_order"] is not None or given["keep_deleted"]):
        raise click.UsageError("--merge-order and --keep-deleted need --merge-by")
    settings = TierSettings(
        follow=given["follow"],
        target_bytes=given["target_size"],
        max_interval=given["max_interval"] / 1000,
        partition_by=given["partition_by"],
        sort_by=given["sort_by"],
        merge=(
            TierMerge(key=given["merge_by"], order=given["merge_order"], keep_deleted=given["keep_deleted"])
            if given["merge_by"]
            else None
        ),
        truncate_after=None if given["truncate_after"] is None else given["truncate_after"] / 1000,
    )
    start = given["start"]
    if start is not None:
        with PravegaClient(PravegaConfig.resolve(controller=given["controller"])) as client:
            start = resolve_position(client, client.name(stream), start)
    shown = not given["quiet"]
    try:
        with arguments.interrupted_by_signals():
            summary = tier_stream(
                stream,
                table,
                start=start,
                settings=settings,
                storage=storage,
                on_commit=_shown(as_json=given["as_json"]) if shown else lambda _counts: None,
                **options,
            )
    except arguments.Interrupted as stopped:
        sys.exit(SIGNAL + stopped.number)
    if shown:
        _show_summary(summary, as_json=given["as_json"])


def _shown(*, as_json: bool) -> Any:
    def show(counts: TierCounts) -> None:
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(counts)))
        else:
            click.echo(f"commit {counts.commits}: {counts.events:,} events, {counts.rows:,} rows", err=True)

    return show


def _show_summary(summary: TierSummary, *, as_json: bool) -> None:
    counts, position = summary.counts, summary.position
    if as_json:
        cut = None if position is None else position.cut
        click.echo(json.dumps({**dataclasses.asdict(counts), "cut": cut}))
        return
    click.echo(f"{counts.events:,} events, {counts.rows:,} rows in {counts.commits} commits")
    if position is not None:
        click.echo(f"cut {position.cut}")


def _show_status(position: Any, lag: Any, *, as_json: bool) -> None:
    if as_json:
        value = None if position is None else {**dataclasses.asdict(position), "lag_bytes": lag.bytes}
        click.echo(json.dumps(value))
    elif position is None:
        click.echo("no commit of this stream")
    else:
        click.echo(f"commit {position.version}: {position.events:,} events, {position.rows:,} rows")
        click.echo(f"lag: {lag.bytes:,} bytes")
        click.echo(f"cut {position.cut}")
