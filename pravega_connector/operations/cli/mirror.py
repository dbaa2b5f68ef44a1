"""``pravega-serde mirror``: copy a stream to another cluster, exactly once."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import click

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.operations.cli import arguments, step_options
from pravega_connector.operations.cli.command_group import examples
from pravega_connector.operations.cli.exit_codes import SIGNAL
from pravega_connector.operations.cli.position_argument import POSITION, resolve_position
from pravega_connector.operations.mirror import (
    MirrorCounts,
    MirrorSettings,
    MirrorStatus,
    MirrorSummary,
    mirror_status,
)
from pravega_connector.operations.mirror import mirror as mirror_stream

_SETTINGS: Final = MirrorSettings()

_OPTIONS: Final = (
    click.argument("source", metavar="SOURCE"),
    click.argument("destination", metavar="DESTINATION"),
    click.option(
        "--source-controller",
        metavar="URI",
        help="Controller URI of the source.  [default: from --source-profile, or the destination's cluster]",
    ),
    click.option("--source-profile", metavar="NAME", help="Profile in config.toml with the cluster of the source."),
    arguments.controller,
    click.option(
        "--name",
        default="mirror",
        show_default=True,
        help="Name of the mirror. Its state is the stream <destination>-<name>.",
    ),
    click.option("--start", type=POSITION, help="Position at which the first run begins.  [default: earliest]"),
    click.option("--follow", is_flag=True, help="Wait for new events until SIGTERM or Ctrl-C."),
    click.option("--seal", is_flag=True, help="Seal the destination when the source is sealed and mirrored."),
    click.option(
        "--skip-lost", is_flag=True, help="Continue after events that were truncated before they were mirrored."
    ),
    click.option(
        "--bytes-per-transaction",
        default=_SETTINGS.transaction_bytes,
        show_default=True,
        help="Approximate bytes of a transaction, which are kept in memory.",
    ),
    step_options.lease(_SETTINGS.lease),
    arguments.failover_timeout,
    step_options.takeover_after,
    step_options.resolve,
    arguments.metrics,
    click.option("--status", is_flag=True, help="Print the position and the lag of the mirror, and copy nothing."),
    click.option("--json", "as_json", is_flag=True, help="Print progress, summary and status as lines of JSON."),
    click.option(
        "--interval",
        type=click.FloatRange(0, min_open=True),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="Time between two lines of progress.",
    ),
    click.option("--quiet", is_flag=True, help="Print no progress and no summary."),
)


def _with_options(function: Callable[..., None]) -> click.Command:
    for each in reversed(_OPTIONS):
        function = each(function)
    return click.command(
        epilog=examples(
            "pravega-serde mirror shop/orders dr/orders --source-profile east --follow",
            "pravega-serde mirror shop/orders dr/orders --source-profile east --json",
            "pravega-serde mirror shop/orders dr/orders --source-profile east --status",
        )
    )(function)


@_with_options
def mirror(*, source: str, destination: str, failover_timeout: float, status: bool, **given: Any) -> None:
    """Copy the events of the stream SOURCE to the stream DESTINATION, exactly once and in order per routing key.

    The destination is created if it does not exist. A run resumes where the last run of this name ended, and copies no
    event twice, even after a kill.

    Exit code 0: the destination has all events up to the tail at the start, or up to the end of a sealed stream. 3:
    events were truncated before they were mirrored. 4: a stream does not exist, or was deleted. 7: you must choose
    --resolve. 8: the servers failed. 128 and more: a signal. No event is lost: fix the cause and run the command again.
    """
    target = PravegaConfig.resolve(controller=given["controller"])
    origin = target
    if given["source_controller"] is not None or given["source_profile"] is not None:
        origin = PravegaConfig.resolve(controller=given["source_controller"], profile=given["source_profile"])
    code = 0
    try:
        with (
            arguments.interrupted_by_signals(),
            PravegaClient(origin, failover_timeout=failover_timeout) as source_client,
            PravegaClient(target, failover_timeout=failover_timeout) as client,
        ):
            common = {"source_client": source_client, "destination_client": client, "name": given["name"]}
            if status:
                _show_status(mirror_status(source, destination, **common), as_json=given["as_json"])
            else:
                with arguments.serving_metrics(given["metrics_port"], given["metrics_host"]):
                    _run(source, destination, common, given)
    except arguments.Interrupted as stopped:
        code = SIGNAL + stopped.number
    sys.exit(code)


def _run(source: str, destination: str, common: dict[str, Any], given: dict[str, Any]) -> None:
    settings = MirrorSettings(
        follow=given["follow"],
        skip_lost=given["skip_lost"],
        seal=given["seal"],
        transaction_bytes=given["bytes_per_transaction"],
        lease=given["lease"],
    )
    start, client = given["start"], common["source_client"]
    summary = mirror_stream(
        source,
        destination,
        start=None if start is None else resolve_position(client, client.name(source), start),
        settings=settings,
        takeover_after=given["takeover_after"],
        resolve=given["resolve"],
        on_progress=_Progress(given["interval"], shown=not given["quiet"], as_json=given["as_json"]),
        **common,
    )
    if not given["quiet"]:
        _show_summary(summary, as_json=given["as_json"])


class _Progress:
    """Lines of progress on standard error, or of JSON on standard output."""

    def __init__(self, interval: float, *, shown: bool, as_json: bool) -> None:
        self._interval, self._shown, self._as_json = interval, shown, as_json
        self._at, self._bytes = time.monotonic(), 0

    def __call__(self, what: str, counts: MirrorCounts) -> None:
        now = time.monotonic()
        if not self._shown or now - self._at < self._interval:
            return
        rate = (counts.bytes - self._bytes) / (now - self._at)
        self._at, self._bytes = now, counts.bytes
        if self._as_json:
            click.echo(json.dumps({"activity": what, "bytes_per_second": round(rate), **dataclasses.asdict(counts)}))
            return
        click.echo(
            f"{what}: {counts.events:,} events, {counts.bytes:,} bytes, {rate / 1e6:.1f} MB/s; "
            f"lag: {counts.lag_bytes:,} bytes",
            err=True,
        )


def _show_summary(summary: MirrorSummary, *, as_json: bool) -> None:
    counts = summary.counts
    if as_json:
        click.echo(json.dumps({**dataclasses.asdict(counts), "sealed": summary.sealed}))
        return
    parts = [f"{counts.events} events in {counts.transactions} transactions"]
    if counts.barriers:
        parts.append(f"{counts.barriers} scalings followed")
    if counts.skipped_bytes:
        parts.append(f"{counts.skipped_bytes} truncated bytes skipped")
    if counts.recovered or counts.redone:
        parts.append(f"{counts.recovered} transactions of other runs resolved, {counts.redone} repeated")
    if summary.sealed:
        parts.append("the source is sealed")
    click.echo("; ".join(parts))


def _show_status(status: MirrorStatus, *, as_json: bool) -> None:
    cuts = {"source": status.source, "destination": status.destination}
    lag = None if status.lag is None else status.lag.bytes
    if as_json:
        texts = {what: None if cut is None else cut.to_text() for what, cut in cuts.items()}
        click.echo(json.dumps({**texts, "lag_bytes": lag, "aligned": status.aligned}))
        return
    for what, cut in cuts.items():
        click.echo(f"{what}: {'unknown' if cut is None else cut}")
    click.echo(f"lag: {'unknown' if lag is None else f'{lag:,} bytes'}")
    click.echo(f"key ranges: {'the same' if status.aligned else 'different'}")
