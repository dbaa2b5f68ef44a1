"""Let the parts of a Pravega cluster fail while every kind of client is at work, and see who goes on, and with what."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from tools.faults.cluster._faults import FAULTS
from tools.faults.cluster._soak import micro_batches, soak, sums
from tools.faults.cluster._stage import Record, Stage, table
from tools.faults.exactly_once._summary import write_into

_DOCUMENT = Path(__file__).parents[3] / "docs" / "guarantees.md"


@click.group(help=__doc__, invoke_without_command=True)
@click.option("--only", multiple=True, help="Names of faults, or beginnings of names.")
@click.option("--runs", default=1, show_default=True, help="How often each fault is to have been played.")
@click.option("--seed", default="0", show_default=True, help="Of the random choices, together with fault and run.")
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path),
    help="Keep the verdicts there; what is there already is not played again.",
)
@click.option("--queries", default=1, show_default=True, help="Exactly-once queries in a chain; 0: no Spark.")
@click.option(
    "--logs", type=click.Path(path_type=Path), help="Keep there what servers and clients of each scene have said."
)
@click.option("--list", "list_", is_flag=True, help="Only tell what faults there are.")
@click.option("--document", is_flag=True, help="Only write the table of --json into docs/guarantees.md.")
@click.pass_context
def main(
    context: click.Context,
    only: tuple[str, ...],
    runs: int,
    seed: str,
    file: Path | None,
    queries: int,
    logs: Path | None,
    list_: bool,
    document: bool,
) -> None:
    # However it is told to end: servers and clients end with it, and what has been played is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if context.invoked_subcommand:
        return
    names = [name for name in FAULTS if not only or name.startswith(only)]
    if not queries:
        names = [name for name in names if not FAULTS[name].of_query]
    if list_ or not names:
        print("\n".join(f"{name:24} {FAULTS[name].about}" for name in names or FAULTS))
        sys.exit(not names)
    record = Record(file)
    if document:
        write_into(_DOCUMENT, "cluster", table(record.verdicts))
        return
    play(record, names, runs, seed, queries=queries, logs=logs)
    print(table(record.verdicts))
    sys.exit(any(verdict.failures for verdict in record.verdicts))


def play(record: Record, names: list[str], runs: int, seed: str, **options: Any) -> None:
    """Play what the record misses, the faults of one kind of servers after each other."""
    missing = record.missing(names, runs)
    order = sorted(missing, key=lambda name: FAULTS[name].servers)
    for servers, faults in groupby(order, key=lambda name: FAULTS[name].servers):
        todo = list(faults)
        while todo:
            with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
                _play_some(record, Stage(servers, Path(folder), **options), todo, seed)


def _play_some(record: Record, stage: Stage, todo: list[str], seed: str) -> None:
    """Play faults until none is left, or servers and clients are not well, which the next one needs."""
    began = time.monotonic()
    with stage:
        print(f"{stage.servers}: servers and clients at work after {time.monotonic() - began:.0f} s", flush=True)
        while todo:
            name = todo.pop(0)
            number = sum(verdict.fault == name for verdict in record.verdicts)
            record.add(stage.play(name, f"{seed}.{number}"))
            if not record.verdicts[-1].usable:
                return
        record.add(stage.java_verdict())


@main.command("soak")
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--micro-batches", "batches", type=int, help="Instead: so many micro-batches of a query, without faults.")
@click.option("--seed", default="0", show_default=True)
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=Path("soak"), show_default=True)
def soak_command(minutes: float, batches: int | None, seed: str, folder: Path) -> None:
    """Faults at random over two chained exactly-once jobs and an ingester; verdicts and resources go to --folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if batches is not None:
        wrong = micro_batches(batches, folder)
    else:
        record = Record(folder / "rounds.json")
        wrong = soak(record, minutes, seed, folder)
        print(sums(record.verdicts))
    print("\n".join(f"FAILED: {one}" for one in wrong) or "all well")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
