"""``pravega-serde lag``: the distance of a Spark query from the end of its streams, by its checkpoint, without Spark.

Exit codes, the highest that applies: 4 for a deleted stream, also if there is another one of its name by now; 3 for
data that are gone before the query read them; 2 for more than ``--max-bytes`` behind; 0. Any error is 1, as in every
command (and 2 for an invalid command line).
"""

from __future__ import annotations

import json
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from ..checkpoint import committed_batch, committed_offsets
from ..client import PravegaClient
from ..config import PravegaConfig
from ..insight import SegmentLag, StreamLag, count_events, cuts_of, lost_bytes, stream_lag
from . import arguments

__all__ = ["lag"]

_Events = dict[tuple[str, str], int]
# Seconds: longer than a failover, and short enough for an alarm that looks every few minutes.
_PATIENCE: Final = 60.0
_FINE: Final = 0
_BEHIND: Final = 2
_LOST: Final = 3
_DELETED: Final = 4


@click.command()
@click.argument("checkpoint")
@arguments.controller
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

    Exit codes for alarms: 0 fine, 1 cannot be known, 2 more than --max-bytes behind, 3 data are gone that the query
    has not read, 4 a stream was deleted.
    """
    batch = committed_batch(checkpoint)
    positions = [cut for offset in committed_offsets(checkpoint) for cut in cuts_of(offset).values()]
    events: _Events = {}
    with PravegaClient(PravegaConfig.resolve(controller=controller), failover_timeout=_PATIENCE) as client:
        lags = [stream_lag(client, position) for position in positions]
        if with_events:
            events = {
                (str(found.stream), segment.name): count_events(client.stores, segment.slice)
                for found in lags
                for segment in found.segments
            }
    if as_json:
        click.echo(json.dumps(_value(batch, lags, events if with_events else None)))
    else:
        _show(batch, lags, events if with_events else None, every=segments)
    if code := _alarm(lags, max_bytes):
        raise SystemExit(code)


def _alarm(lags: list[StreamLag], max_bytes: int | None) -> int:
    """Exit code, with a line on standard error for each reason."""
    codes = [_FINE]
    total = sum(found.bytes for found in lags)
    if max_bytes is not None and total > max_bytes:
        codes.append(_BEHIND)
        click.echo(f"{total:,} bytes behind, more than {max_bytes:,}", err=True)
    for found in lags:
        if not found.exists or any(loss.deleted for loss in found.losses):
            codes.append(_DELETED)
            click.echo(f"{found.stream} was deleted", err=True)
        elif found.losses:
            codes.append(_LOST)
            click.echo(f"{found.stream} has lost {_amount(found)} that the query did not read", err=True)
    return max(codes)


def _amount(found: StreamLag) -> str:
    if known := lost_bytes(found.losses):
        return f"{'' if all(loss.bytes is not None for loss in found.losses) else 'at least '}{known:,} bytes"
    return "an unknown number of bytes"


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
            console.print(f"{found.stream} has lost {_amount(found)} that the query did not read:")
            for loss in found.losses:
                console.print(f"  {loss}")


def _row(segment: SegmentLag) -> tuple[str, ...]:
    return segment.name, f"{segment.offset:,}", f"{segment.end:,}", f"{segment.bytes:,}"
