"""``pravega-serde lag``: the distance of a reader from the end of its streams, without the reader.

The reader is a Spark query, by its checkpoint, or any other, by its stream cut.
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
from rich.console import Console
from rich.table import Table

from pravega_connector import metrics
from pravega_connector.checkpoint import committed_batch, committed_offsets
from pravega_connector.cli import arguments
from pravega_connector.cli.exit_codes import ExitCode
from pravega_connector.cli.place_argument import read_cut_file
from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.errors import MalformedStreamCutError
from pravega_connector.monitoring import SegmentLag, StreamLag, count_events, cuts_of, lost_bytes, read_cut, stream_lag
from pravega_serde.errors import PravegaError

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Events = dict[tuple[str, str], int]
#: Batch, of a query, and lags, by the client and the reader's name in the metrics.
_Look = Callable[[PravegaClient, str | None], tuple[int | None, list[StreamLag]]]
# Seconds: longer than a failover, and short enough for an alarm that looks every few minutes.
_PATIENCE: Final = 60.0
# Seconds between two looks, as Prometheus asks by custom.
_EVERY: Final = 15.0


def told(reader: str) -> Callable[[_Command], _Command]:
    """Options of a command that tells the lag of a ``reader``: the arguments of :func:`tell`."""
    options = (
        arguments.controller,
        click.option(
            "--events", "with_events", is_flag=True, help="Count the events too, by reading all that is left."
        ),
        arguments.as_json,
        click.option("--segments", is_flag=True, help="Every segment, those without a backlog as well."),
        click.option(
            "--max-bytes", type=int, metavar="N", help=f"Exit code 5 if the {reader} is more than N bytes behind."
        ),
        arguments.metrics,
        click.option(
            "--interval", type=click.FloatRange(0.1), metavar="SECONDS", help="Between two looks.  [default: 15]"
        ),
    )
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


@click.command()
@click.argument("position")
@told("reader")
@click.option("--reader", metavar="NAME", help="Name of the reader in the metrics.  [default: that of the checkpoint]")
def lag(position: str, *, reader: str | None, **given: Any) -> None:
    """Show how far a reader is behind.

    POSITION is the checkpoint folder of a Spark query, as a path or a URI such as s3a://bucket/checkpoint; the newest
    batch in its commit log counts. Or it is a stream cut, as text, in a file (read --cut-file keeps one), or on
    standard input (-). Bytes are those of the stream, 8 for each event included.

    Exit codes for alarms: 0 fine, 3 data are gone that were not read, 4 a stream was deleted, 5 more than --max-bytes
    behind; of several, deletion comes first, then loss. 1 and 8: it cannot be known.

    With --metrics-port it stays, looks again every --interval seconds, and serves what it has seen, until SIGTERM.
    """
    if given["metrics_port"] is None and reader is not None:
        raise click.UsageError("--reader is for --metrics-port")
    if given["metrics_port"] is not None and position == "-":
        raise click.UsageError("--metrics-port looks again and again: give it the stream cut in a file, not as -")

    def look(client: PravegaClient, name: str | None) -> tuple[int | None, list[StreamLag]]:
        batch, positions = _positions(position)
        return batch, [stream_lag(client, cut, reader=name) for cut in positions]

    tell(look, _name(position) if reader is None else reader, **given)


def tell(
    look: _Look,
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
    """Print a reader's lag, and end with the code of the alarm that there may be; or serve it until a signal.

    ``look`` gets the reader's name where its lag is to be a metric, None otherwise. Raises click.UsageError for options
    that do not go together.
    """
    if metrics_port is None:
        if interval is not None:
            raise click.UsageError("--interval is for --metrics-port")
        with arguments.client_of(controller, _PATIENCE) as client:
            batch, lags = look(client, None)
            _report(client, lags, batch, max_bytes, with_events=with_events, as_json=as_json, segments=segments)
        return
    if with_events or as_json or segments or max_bytes is not None:
        raise click.UsageError(
            "--metrics-port serves the bytes behind, and prints nothing: leave --events, --json, --segments and "
            "--max-bytes out"
        )
    with arguments.stopped_by_signals(), arguments.serving_metrics(metrics_port, metrics_host):
        _serve(look, controller, interval or _EVERY, reader)


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
    """Print lags, and end with the code of the alarm that there may be."""
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
    if code := _alarm(lags, max_bytes):
        raise SystemExit(code)


def _positions(text: str) -> tuple[int | None, list[StreamCut]]:
    """Batch and positions of a checkpoint; no batch, and the one position, of a stream cut."""
    if text == "-":
        return None, [read_cut(sys.stdin.read())]
    if (path := Path(text)).is_file():
        return None, [read_cut_file(path)]
    if not path.is_dir():
        try:
            return None, [read_cut(text)]
        except MalformedStreamCutError:
            pass  # then it is a checkpoint, or the error that there is none
    return committed_batch(text), [cut for offset in committed_offsets(text) for cut in cuts_of(offset).values()]


def _serve(look: _Look, controller: str | None, interval: float, reader: str) -> NoReturn:
    """Look at a reader's lag again and again. The first look raises what the command does, later ones say it."""
    shown, said = set[str](), ""
    with arguments.client_of(controller, _PATIENCE) as client:
        while True:
            try:
                _, lags = look(client, reader)
            except PravegaError as error:
                if not shown:
                    raise
                gone, text = set(shown), str(error)
            else:
                found = {str(each.stream) for each in lags}
                gone, shown, text = shown - found, shown | found, ""
            for stream in gone:
                metrics.LAG.forget(stream, reader)  # an old number would be taken for one of now
            if text != said:
                click.echo(text or "the lag is known again", err=True)
            said = text
            time.sleep(interval)


def _name(position: str) -> str:
    """Name of the folder or file that a position is in; empty for a cut's text."""
    return position.rstrip("/").rpartition("/")[2] if "://" in position or Path(position).exists() else ""


def _alarm(lags: list[StreamLag], max_bytes: int | None) -> int:
    """Exit code, with a line on standard error for each reason."""
    codes = {ExitCode.DONE}
    total = sum(found.bytes for found in lags)
    if max_bytes is not None and total > max_bytes:
        codes.add(ExitCode.BEHIND)
        click.echo(f"{total:,} bytes behind, more than {max_bytes:,}", err=True)
    for found in lags:
        if not found.exists or any(loss.deleted for loss in found.losses):
            codes.add(ExitCode.NOT_FOUND)
            click.echo(f"{found.stream} was deleted", err=True)
        elif found.losses:
            codes.add(ExitCode.DATA_LOSS)
            click.echo(f"{found.stream} has lost {_amount(found)} that were not read", err=True)
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
    after = "" if batch is None else f"after batch {batch}: "
    console.print(f"{after}{sum(found.bytes for found in lags):,} bytes behind")
    console.print(table)
    for found in lags:
        if found.losses:
            console.print(f"{found.stream} has lost {_amount(found)} that were not read:")
            for loss in found.losses:
                console.print(f"  {loss}")


def _row(segment: SegmentLag) -> tuple[str, ...]:
    return segment.name, f"{segment.offset:,}", f"{segment.end:,}", f"{segment.bytes:,}"
