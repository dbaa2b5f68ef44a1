"""``pravega-serde export``: events of a stream as a file."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any, Final

import click

from pravega_connector.cli import arguments
from pravega_connector.cli.exit_codes import SIGNAL
from pravega_connector.cli.progress import progress_bar
from pravega_connector.export import FILE_FORMATS, ExportSummary, export_stream

_MODES: Final = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")


@click.command()
@arguments.stream
@click.argument("file", type=click.Path(path_type=Path))
@arguments.controller
@click.option("--to", type=click.Choice(FILE_FORMATS), help="Format of the file, if its name does not tell.")
@click.option("--compression", help="A codec of the format.  [default: snappy, none, deflate]")
@click.option("--start", help="earliest, latest, or a stream cut.  [default: earliest]")
@click.option("--end", help="latest, or a stream cut.  [default: latest]")
@click.option("--format", help="Format of the events; without it, and without a registry, they stay bytes.")
@arguments.registry
@arguments.group
@click.option("--columns", help="Undecoded columns: event,scope,stream,segment_id,offset and more.")
@click.option("--mode", type=click.Choice(_MODES, case_sensitive=False), help="What to do with bad events.")
@arguments.more_options("source")
@click.option("--overwrite", is_flag=True, help="Replace the file if it is there.")
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar and no summary.")
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
    """Write the events between two stream cuts to FILE: Parquet, JSON lines or Avro.

    The file is there as a whole or not at all. Exit code 0: it is there; otherwise it is not, and the reason is on
    standard error (143: SIGTERM); the same command may be repeated, and the cuts of the summary give the same rows
    again.
    """
    # SIGTERM becomes an error, which removes the unfinished file.
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
        click.echo(f"{summary.left_out} events are not in the file: bad ones, or of other types", err=True)
