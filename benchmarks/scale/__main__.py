"""``python -m benchmarks.scale planning|curves|load|frames|followers|writers|write``: see the package."""

from __future__ import annotations

import json
import os
import platform
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

import click

from benchmarks.scale._coroutines import follow_all, rates
from benchmarks.scale._curves import CURVES, Curve, Workbench
from benchmarks.scale._frames import READERS, ask, fill
from benchmarks.scale._single_write import write_costs
from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.local import LocalPravega
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.offset_planner import QueryPlan
from tests.support.planning import all_at_once, counted, epoch_after_epoch, one_batch_query, through_empty_ones
from tests.support.scaled_load import Load, read_with_restarts

_SHAPES = {
    "streaming, a batch for each of N/5 epochs": epoch_after_epoch,
    "streaming, through N/5 empty epochs in one step": through_empty_ones,
    "streaming, N segments in one epoch": all_at_once,
    "batch query over N/5 epochs": one_batch_query,
}


@click.group()
def main() -> None:
    """Print how planning grows, read a stream that is scaled at random under load, and try the client for asyncio."""


@main.command()
@click.option("--segments", default=10_000, show_default=True)
@click.option("--real", default=200, show_default=True, help="Segments on a real server; 0 for none.")
def planning(segments: int, real: int) -> None:
    """Time, offset size and controller calls for a quarter, half and all of the segments; then a real server."""
    for title, shape in _SHAPES.items():
        click.echo(f"{title} (fake controller and store)")
        for count in (segments // 4, segments // 2, segments):
            click.echo(f"  {shape(count)}")
    if real:
        with LocalPravega() as server, PravegaClient(server.config) as client:
            _on_a_real_server(client, real)


def _on_a_real_server(client: PravegaClient, segments: int) -> None:
    stream = StreamName("scale", f"wide-{uuid.uuid4().hex[:8]}")
    client.create_stream(stream, segments)
    with client.writer(stream) as writer:
        for n in range(20 * segments):
            writer.write(b"%d" % n, routing_key=str(n))
    given = {"path": str(stream), "start_stream_cut": "earliest", "controller": client.config.controller}
    click.echo(f"{segments} segments on a real server")
    # A client of its own, which knows nothing of the segments yet.
    with PravegaClient(client.config, timeout=60.0) as client, counted(client) as calls:
        plan = QueryPlan(client, parse_options(SourceOptions, given))
        for what, step in (("first offset", plan.first), ("first batch", lambda: plan.next(plan.first()))):
            before, begin = calls(), time.perf_counter()
            offset = step()
            seconds = time.perf_counter() - begin
            click.echo(f"  {what}: {seconds:.3f} s, {calls() - before} controller calls")
        size = len(str(offset.to_json()))
        before, begin, polls = calls(), time.perf_counter(), 0
        while time.perf_counter() - begin < 5:
            assert plan.next(offset) is offset
            polls += 1
        click.echo(f"  offset of {size} B; idle: {polls / 5:.1f} looks a second, {calls() - before} controller calls")


@main.command()
@click.option("--only", type=click.Choice(list(CURVES)), multiple=True, help="This curve; several times for several.")
@click.option("--quick", is_flag=True, help="Small sizes: shows that all works, and no more.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Keep all numbers in this file.")
def curves(only: tuple[str, ...], quick: bool, file: Path | None) -> None:
    """How a query of a real Spark grows with events, segments, streams and the bytes of one task; is it linear?

    Takes some 20 minutes, and 20 GB in the folder for temporary files, unless it is to be quick.
    """
    found: list[Curve] = []
    with Workbench(click.echo, quick=quick) as bench:
        about = {"spark": bench.spark.version, "python": platform.python_version(), "cores": os.cpu_count()}
        for name in only or CURVES:
            found.append(CURVES[name](bench))
            click.echo(f"{found[-1]}\n")
            if file is not None:  # after each: a run that is ended keeps what it has
                when = datetime.now(UTC).isoformat(timespec="seconds")
                kept = {"when": when, "load": os.getloadavg(), **about, "curves": [each.to_json() for each in found]}
                file.write_text(json.dumps(kept, indent=1) + "\n")


@main.command()
@click.option("--events", default=10_000_000, show_default=True)
def frames(events: int) -> None:
    """Time and memory of one question to Spark, DuckDB and polars over the same stream; their answers are compared."""
    with LocalPravega() as server, PravegaClient(server.config) as client:
        stream = StreamName("scale", "orders")
        fill(client, stream, events)
        size = client.read_columns(stream).size
        click.echo(f"{events:,} events, {size / (1 << 20):,.0f} MiB")
        answers = {who: ask(who, server.config, stream) for who in READERS}
    for who, answer in answers.items():
        click.echo(
            f"  {who:8} {answer.seconds:6.1f} s, at most {answer.peak_mib:,.0f} MiB; {len(answer.rows)} customers"
        )
        assert sum(orders for _, orders, _ in answer.rows) == events
        assert answer.rows == answers["spark"].rows, f"{who} has another answer than Spark"


@main.command()
@click.option("--scalings", default=50, show_default=True)
@click.option("--keys", default=20_000, show_default=True)
@click.option("--max-bytes", default=40_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def load(scalings: int, keys: int, max_bytes: int, seed: int) -> None:
    """Scale a stream at random under load while a limited query with restarts reads it."""
    with LocalPravega() as server, PravegaClient(server.config) as client:
        stream, begin = StreamName("scale", f"load-{uuid.uuid4().hex[:8]}"), time.monotonic()
        with Load(client, stream, scalings, keys, seed) as running:
            found = read_with_restarts(running, max_bytes=max_bytes, seed=seed, controller=server.config.controller)
        assert found.rows == running.written, f"{found.rows} of {running.written} events"
        click.echo(
            f"{running.splits} splits and {running.merges} merges in {time.monotonic() - begin:.0f} s: {found.rows:,} "
            f"events of {keys:,} keys, each once and in its key's order, in {found.batches:,} batches of at most "
            f"{found.fullest:.0%} of their limit ({max_bytes:,} bytes or half), {found.restarts} restarts, "
            f"{found.replays} inside a batch, whose replay was the same"
        )


@main.command()
@click.option("--followers", "count", default=1000, show_default=True)
@click.option("--segments", default=8, show_default=True)
@click.option("--events", default=1000, show_default=True)
@click.option("--loop", type=click.Choice(["asyncio", "uvloop"]), multiple=True, default=["asyncio", "uvloop"])
def followers(count: int, segments: int, events: int, loop: tuple[str, ...]) -> None:
    """Follow one stream many times at once by coroutines of one thread while it is written to."""
    with LocalPravega() as server:
        for each in loop:
            click.echo(f"{each}: {follow_all(server.config, count, segments, events, loop=each)}")


@main.command()
@click.option("--events", default=500_000, show_default=True)
@click.option("--size", default=100, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def writers(events: int, size: int, rounds: int) -> None:
    """Write the same events by the plain client and by coroutines, in turn."""
    with LocalPravega() as server:
        click.echo(rates(server.config, events, size, rounds))


@main.command()
@click.option("--events", default=200_000, show_default=True)
@click.option("--size", default=100, show_default=True)
def write(events: int, size: int) -> None:
    """CPU time of one write, by parts: what any writer in Python has to do, and the rest."""
    with LocalPravega() as server:
        for what, micros in write_costs(server.config, events, size).items():
            click.echo(f"  {what:30} {micros:5.2f} µs an event")


if __name__ == "__main__":
    main()
