"""``pravega-serde export``: write the events of a stream to a file."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any, Final

import click

from pravega_connector.operations.cli import arguments
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.exit_codes import SIGNAL
from pravega_connector.operations.cli.position_argument import POSITION
from pravega_connector.operations.cli.progress import progress_bar
from pravega_connector.operations.export import FILE_FORMATS, ExportSummary, export_stream

_MODES: Final = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")


@click.command(
    epilog=examples(
        "pravega-serde export shop/orders orders.parquet --format json",
        "pravega-serde export shop/orders rest.jsonl --start @orders.cut",
    )
)
@arguments.stream
@click.argument("file", type=click.Path(path_type=Path))
@arguments.controller
@click.option("--to", type=click.Choice(FILE_FORMATS), help="Format of the file.  [default: from its name]")
@click.option(
    "--compression", metavar="CODEC", help="Codec.  [default: snappy for parquet, none for jsonl, deflate for avro]"
)
@click.option("--start", type=POSITION, help="earliest, latest, a stream cut, or @FILE with one.  [default: earliest]")
@click.option("--end", type=POSITION, help="latest, a stream cut, or @FILE with one.  [default: latest]")
@arguments.event_format
@arguments.registry
@arguments.registry_group
@click.option("--columns", metavar="NAMES", help="Columns besides the decoded ones, such as event,offset,segment_id.")
@click.option(
    "--mode",
    type=click.Choice(_MODES, case_sensitive=False),
    help="Handling of malformed events: fail, write nulls, or omit them.  [default: FAILFAST]",
)
@arguments.more_options("source")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, help="Print no progress bar and no summary.")
def export(
    *,
    stream: str,
    file: Path,
    to: str | None,
    compression: str | None,
    start: str | None,
    end: str | None,
    more: dict[str, str],
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    **named: str | None,
) -> None:
    """Export the events between two positions to FILE.

    The formats are Parquet, JSON lines and Avro. With exit code 0 the file is complete. Otherwise it is not written, so
    you can repeat the command. To export the same rows again, use the stream cuts in the summary as --start and --end.
    """
    # SIGTERM raises an error, which removes the unfinished file.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(SIGNAL + number))
    with progress_bar(shown=not quiet) as on_progress:
        summary = export_stream(
            stream,
            file,
            to=to,
            compression=compression,
            overwrite=overwrite,
            on_progress=on_progress,
            **{"start_stream_cut": start, "end_stream_cut": end, **named, **more},
        )
    if as_json:
        click.echo(json.dumps(_value(summary)))
    elif not quiet:
        _show(summary)


def _value(summary: ExportSummary) -> dict[str, Any]:
    return {
        "file": str(summary.path),
        "format": summary.format,
        "bytes": summary.size,
        "events": summary.events,
        "rows": summary.rows,
        "left_out": summary.left_out,
        "seconds": summary.seconds,
        "start": summary.start.to_text(),
        "end": summary.end.to_text(),
    }


def _show(summary: ExportSummary) -> None:
    rate = summary.rows / summary.seconds if summary.seconds else 0.0
    rows = (
        ("file", f"{summary.path} ({summary.format}, {summary.size:,} bytes)"),
        ("rows", f"{summary.rows:,} of {summary.events:,} events in {summary.seconds:.1f} s ({rate:,.0f}/s)"),
        ("start", summary.start.to_text()),
        ("end", summary.end.to_text()),
    )
    for name, text in rows:
        click.echo(f"{name:<6} {text}")
    if summary.left_out:
        click.echo(
            f"{summary.left_out:,} events are not in the file: they are malformed, or have another type", err=True
        )
