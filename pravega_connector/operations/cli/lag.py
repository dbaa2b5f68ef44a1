"""``pravega-serde lag``: show the lag of a reader without the reader.

The position of the reader is the checkpoint of a Spark query, or a stream cut.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from rich.table import Table

from pravega_connector import metrics
from pravega_connector.checkpoint import committed_batch, committed_offsets
from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.errors import MalformedStreamCutError
from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.exit_codes import ExitCode
from pravega_connector.operations.cli.output import standard_output
from pravega_connector.operations.cli.position_argument import read_cut_file
from pravega_connector.operations.monitoring import (
    SegmentLag,
    StreamLag,
    count_events,
    cuts_of,
    lost_bytes,
    read_cut,
    stream_lag,
)
from pravega_connector.stores.segments import Lineage
from pravega_serde.errors import PravegaError
from pravega_serde.routing import segment_key

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Events = dict[tuple[str, str], int]
#: Function that returns the batch of a query and the lags, from the client and the reader's name in the metrics.
_Poll = Callable[[PravegaClient, str | None], tuple[int | None, list[StreamLag]]]
# Seconds: longer than a failover, and short enough for an alert that runs every few minutes.
_PATIENCE: Final = 60.0
# Seconds between two polls, the usual scrape interval of Prometheus.
_EVERY: Final = 15.0


def lag_options(reader: str) -> Callable[[_Command], _Command]:
    """Return the options of a command for the lag of a ``reader``: the arguments of :func:`report_lag`."""
    options = (
        arguments.controller,
        click.option("--events", "with_events", is_flag=True, help="Count the events too, by reading all of them."),
        arguments.as_json,
        click.option(
            "--all-segments", "segments", is_flag=True, help="Show every segment, including those without lag."
        ),
        click.option(
            "--max-bytes",
            type=int,
            metavar="N",
            help=f"Exit with code 5 if the lag of the {reader} is more than N bytes.",
        ),
        arguments.metrics,
        click.option(
            "--interval",
            type=click.FloatRange(0.1),
            metavar="SECONDS",
            help="Time between two polls, with --metrics-port.  [default: 15]",
        ),
    )
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


@click.command(
    epilog=examples(
        "pravega-serde lag /data/checkpoint",
        "pravega-serde lag orders.cut --max-bytes 1000000",
        "pravega-serde lag s3a://bucket/checkpoint --metrics-port 9464",
    )
)
@click.argument("position", metavar="CHECKPOINT|CUT")
@lag_options("reader")
@click.option(
    "--reader", metavar="NAME", help="Name of the reader in the metrics.  [default: the path or URI of the checkpoint]"
)
def lag(position: str, *, reader: str | None, **given: Any) -> None:
    """Show the lag of a Spark query or of a stream cut.

    CHECKPOINT is the checkpoint folder of a Spark query: a path, or a URI such as s3a://bucket/checkpoint. The lag
    counts from the newest batch in its commit log. CUT is a stream cut: its text, a file (see 'read --cut-file'), or -
    for standard input. Bytes include 8 for each event.

    Exit codes for alerts: 0 no alert, 3 data loss, 4 a stream was deleted, 5 the lag is more than --max-bytes. Codes 1
    and 8 mean that the lag is unknown. If several apply, 4 comes before 3, and 3 before 5.

    With --metrics-port the command keeps running until SIGTERM. It polls every --interval seconds and serves the lag.
    """
    if given["metrics_port"] is None and reader is not None:
        raise click.UsageError("--reader requires --metrics-port")
    if given["metrics_port"] is not None and position == "-":
        raise click.UsageError("--metrics-port polls the stream cut again: pass a file instead of -")

    def poll(client: PravegaClient, name: str | None) -> tuple[int | None, list[StreamLag]]:
        batch, positions = _positions(position)
        return batch, [_lag(client, cut, name, key) for cut, key in positions]

    report_lag(poll, _name(position) if reader is None else reader, **given)


def report_lag(
    poll: _Poll,
    reader: str,
    *,
    controller: str | None,
    with_events: bool,
    as_json: bool,
    segments: bool,
    max_bytes: int | None,
    metrics_port: int | None,
    metrics_host: str,
    interval: float | None,
) -> None:
    """Print the lag of a reader and exit with the code of an alert; or serve the lag until a signal.

    ``poll`` receives the reader's name if its lag is served as a metric, otherwise None. Raises click.UsageError for
    options that exclude each other.
    """
    if metrics_port is None:
        if interval is not None:
            raise click.UsageError("--interval requires --metrics-port")
        with arguments.client_of(controller, _PATIENCE) as client:
            batch, lags = poll(client, None)
            _report(client, lags, batch, max_bytes, with_events=with_events, as_json=as_json, segments=segments)
        return
    if with_events or as_json or segments or max_bytes is not None:
        raise click.UsageError(
            "--metrics-port serves the lag in bytes and prints nothing: remove --events, --json, --all-segments and "
            "--max-bytes"
        )
    with arguments.stopped_by_signals(), arguments.serving_metrics(metrics_port, metrics_host):
        _serve(poll, controller, interval or _EVERY, reader)


def _report(
    client: PravegaClient,
    lags: list[StreamLag],
    batch: int | None,
    max_bytes: int | None,
    *,
    with_events: bool,
    as_json: bool,
    segments: bool,
) -> None:
    """Print lags, and exit with the code of an alert."""
    events: _Events = {}
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
    if code := _alert(lags, max_bytes):
        raise SystemExit(code)


def _lag(client: PravegaClient, position: StreamCut, reader: str | None, key: str | None) -> StreamLag:
    """Return the lag of a reader. For a reader of one routing key, only the key's segments count."""
    if key is None:
        return stream_lag(client, position, reader=reader)
    lineage = Lineage(client.stores, position.stream, segment_key(key))
    return stream_lag(client, position, reader=reader, lineage=lineage)


def _positions(text: str) -> tuple[int | None, list[tuple[StreamCut, str | None]]]:
    """Return the batch and the positions of a checkpoint; for a stream cut, None and one position.

    Each position has the routing key of its query, or None.
    """
    if text == "-":
        return None, [(read_cut(sys.stdin.read()), None)]
    if (path := Path(text)).is_file():
        return None, [(read_cut_file(path), None)]
    if not path.is_dir():
        try:
            return None, [(read_cut(text), None)]
        except MalformedStreamCutError:
            pass  # a checkpoint, or the error for a missing one
    offsets = committed_offsets(text)
    return committed_batch(text), [(cut, offset.get("key")) for offset in offsets for cut in cuts_of(offset).values()]


def _serve(poll: _Poll, controller: str | None, interval: float, reader: str) -> NoReturn:
    """Poll the lag of a reader forever. An error of the first poll is raised, a later one is printed."""
    shown, printed = set[str](), ""
    with arguments.client_of(controller, _PATIENCE) as client:
        while True:
            try:
                _, lags = poll(client, reader)
            except PravegaError as error:
                if not shown:
                    raise
                gone, text = set(shown), str(error)
            else:
                found = {str(each.stream) for each in lags}
                gone, shown, text = shown - found, shown | found, ""
            for stream in gone:
                metrics.LAG.forget(stream, reader)  # an old number would look like a current one
            if text != printed:
                click.echo(text or "the lag is known again", err=True)
            printed = text
            time.sleep(interval)


def _name(position: str) -> str:
    """Return the whole path or URI of a position, because many checkpoints have one name; empty for a cut's text."""
    if "://" in position:
        return position.rstrip("/")
    return str(Path(position).absolute()) if Path(position).exists() else ""


def _alert(lags: list[StreamLag], max_bytes: int | None) -> int:
    """Return the exit code, and print a line on standard error for each reason."""
    codes = {ExitCode.DONE}
    total = sum(found.bytes for found in lags)
    if max_bytes is not None and total > max_bytes:
        codes.add(ExitCode.BEHIND)
        click.echo(f"lag of {total:,} bytes, more than {max_bytes:,}", err=True)
    for found in lags:
        if not found.exists or any(loss.deleted for loss in found.losses):
            codes.add(ExitCode.NOT_FOUND)
            click.echo(f"{found.stream} was deleted", err=True)
        elif found.losses:
            codes.add(ExitCode.DATA_LOSS)
            click.echo(f"data loss in {found.stream}: {_amount(found)} were not read", err=True)
    worst = (ExitCode.NOT_FOUND, ExitCode.DATA_LOSS, ExitCode.BEHIND, ExitCode.DONE)
    return next(code for code in worst if code in codes)


def _amount(found: StreamLag) -> str:
    if known := lost_bytes(found.losses):
        return f"{'' if all(loss.bytes is not None for loss in found.losses) else 'at least '}{known:,} bytes"
    return "an unknown number of bytes"


def _value(batch: int | None, lags: list[StreamLag], events: _Events | None) -> dict[str, Any]:
    streams = {str(found.stream): found.to_json() for found in lags}
    value: dict[str, Any] = {"bytes": sum(found.bytes for found in lags), "streams": streams}
    if batch is not None:
        value["batch"] = batch
    for name, stream in streams.items() if events is not None else ():
        of_segments = {segment: (events or {})[name, segment] for segment in stream["segments"]}
        stream |= {"events": sum(of_segments.values()), "segment_events": of_segments}
        value["events"] = value.get("events", 0) + stream["events"]
    return value


def _show(batch: int | None, lags: list[StreamLag], events: _Events | None, *, every: bool) -> None:
    table = Table("stream", "segment", box=None)
    for heading in ("offset", "end", "lag in bytes", *(("lag in events",) if events is not None else ())):
        table.add_column(heading, justify="right")
    for found in lags:
        of_segments = [(events or {}).get((str(found.stream), segment.name), 0) for segment in found.segments]
        totals = (f"{found.bytes:,}", *((f"{sum(of_segments):,}",) if events is not None else ()))
        table.add_row(str(found.stream), "all" if found.exists else "deleted", "", "", *totals)
        for segment, count in zip(found.segments, of_segments, strict=True):
            if every or segment.bytes:
                table.add_row("", *_row(segment), *((f"{count:,}",) if events is not None else ()))
    console = standard_output()
    after = "" if batch is None else f"after batch {batch}: "
    console.print(f"{after}lag of {sum(found.bytes for found in lags):,} bytes")
    console.print(table)
    for found in lags:
        if found.losses:
            console.print(f"data loss in {found.stream}: {_amount(found)} were not read:")
            for loss in found.losses:
                console.print(f"  {loss}")


def _row(segment: SegmentLag) -> tuple[str, ...]:
    return segment.name, f"{segment.offset:,}", f"{segment.end:,}", f"{segment.bytes:,}"
