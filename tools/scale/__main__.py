"""``python -m tools.scale planning|load|frames|followers|writers``: see the package."""

from __future__ import annotations

import time
import uuid

import click

from connector.client import PravegaClient, StreamName
from connector.local import LocalPravega
from connector.options import parse_options
from connector.source import SourceOptions
from connector.source.planner import QueryPlan
from tools.scale._coroutines import follow_all, rates
from tools.scale._frames import READERS, ask, fill
from tools.scale._load import Load, read_with_restarts
from tools.scale._planning import all_at_once, counted, epoch_after_epoch, one_batch_query, through_empty_ones

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
            f"{found.most_bytes:,} bytes (limit {max_bytes:,}), {found.restarts} restarts, {found.replays} inside a "
            "batch, whose replay was the same"
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


if __name__ == "__main__":
    main()
