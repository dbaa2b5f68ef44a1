"""``pravega-serde lag``: how far a Spark query is behind its streams, from its checkpoint, without Spark."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from connector.checkpoint import committed_batch, committed_offsets
from connector.cli import _common
from connector.client import PravegaClient
from connector.config import PravegaConfig
from connector.insight import SegmentLag, StreamLag, count_events, cuts_of, lost_bytes, stream_lag

__all__ = ["lag"]

_Events = dict[tuple[str, str], int]


@click.command()
@click.argument("checkpoint")
@_common.controller
@click.option("--events", "with_events", is_flag=True, help="Count the events too, by reading all that is left.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with every segment.")
@click.option("--segments", is_flag=True, help="Every segment, those without a backlog as well.")
@click.option("--max-bytes", type=int, metavar="N", help="Exit code 2 if the query is more than N bytes behind.")
def lag(
    checkpoint: str,
    controller: str | None,
    max_bytes: int | None,
    *,
    with_events: bool,
    as_json: bool,
    segments: bool,
) -> None:
    """Show how far a streaming query is behind.

    CHECKPOINT is the query's checkpoint folder; the newest batch in its commit log counts. Bytes are those of the
    stream, 8 for each event included.
    """
    batch = committed_batch(checkpoint)
    positions = [cut for offset in committed_offsets(checkpoint) for cut in cuts_of(offset).values()]
    events: _Events = {}
    with PravegaClient(PravegaConfig.resolve(controller=controller)) as client:
        lags = [stream_lag(client, position) for position in positions]
        if with_events:
            events = {
                (str(found.stream), segment.name): count_events(client.stores, segment.slice)
                for found in lags
                for segment in found.segments
            }
    total = sum(found.bytes for found in lags)
    if as_json:
        click.echo(json.dumps(_value(batch, lags, events if with_events else None)))
    else:
        _show(batch, lags, events if with_events else None, every=segments)
    if max_bytes is not None and total > max_bytes:
        raise SystemExit(2)


def _value(batch: int, lags: list[StreamLag], events: _Events | None) -> dict[str, Any]:
    streams = {str(found.stream): found.to_json() for found in lags}
    value: dict[str, Any] = {"batch": batch, "bytes": sum(found.bytes for found in lags), "streams": streams}
    for name, stream in streams.items() if events is not None else ():
        of_segments = {segment: (events or {})[name, segment] for segment in stream["segments"]}
        stream |= {"events": sum(of_segments.values()), "segment_events": of_segments}
        value["events"] = value.get("events", 0) + stream["events"]
    return value


def _show(batch: int, lags: list[StreamLag], events: _Events | None, *, every: bool) -> None:
    table = Table("stream", "segment", box=None)
    for heading in ("offset", "end", "bytes behind", *(("events behind",) if events is not None else ())):
        table.add_column(heading, justify="right")
    for found in lags:
        of_segments = [(events or {}).get((str(found.stream), segment.name), 0) for segment in found.segments]
        totals = (f"{found.bytes:,}", *((f"{sum(of_segments):,}",) if events is not None else ()))
        table.add_row(str(found.stream), "all" if found.exists else "deleted", "", "", *totals)
        for segment, count in zip(found.segments, of_segments, strict=True):
            if every or segment.bytes:
                table.add_row("", *_row(segment), *((f"{count:,}",) if events is not None else ()))
    console = Console()
    console.print(f"after batch {batch}: {sum(found.bytes for found in lags):,} bytes behind")
    console.print(table)
    for found in lags:
        if found.losses:
            console.print(
                f"{found.stream} has lost {lost_bytes(list(found.losses)):,} bytes that the query did not read:"
            )
            for loss in found.losses:
                console.print(f"  {loss}")


def _row(segment: SegmentLag) -> tuple[str, ...]:
    return segment.name, f"{segment.offset:,}", f"{segment.end:,}", f"{segment.bytes:,}"
