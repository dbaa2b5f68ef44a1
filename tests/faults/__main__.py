"""Let processes fail on purpose, and count the events that readers receive afterwards.

TABLE is a subject: sink, versions, ingest, mirror, groups, tables, cluster, standalone or peer. SCENARIO is a name, or
the beginning of one. Without a SCENARIO, all scenarios of the table are played.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from tests.faults.harness import Table, play_all
from tests.faults.processes import ROOT
from tests.faults.record import Record, write_into

_TABLES: Final = ("sink", "versions", "ingest", "mirror", "groups", "tables", "cluster", "standalone", "peer")
_PATH: Final = click.Path(path_type=Path)


@click.command(help=__doc__)
@click.argument("subject", metavar="TABLE", type=click.Choice(_TABLES))
@click.argument("names", metavar="[SCENARIO]...", nargs=-1)
@click.option("--runs", default=1, show_default=True, help="Runs of each scenario that must have passed.")
@click.option("--jobs", default=1, show_default=True, help="Runs at the same time, each on its own servers.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first run; the next runs count up.")
@click.option("--json", "file", type=_PATH, help="Keep the verdicts in this file; do not repeat a run that it has.")
@click.option("--logs", type=_PATH, help="Keep logs and checkpoints in this folder.")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the table; see --list.")
@click.option("--list", "list_", is_flag=True, help="Only print the scenarios and settings of the table.")
@click.option("--document", is_flag=True, help="Only write the results in --json into the documentation.")
def main(
    subject: str,
    names: tuple[str, ...],
    runs: int,
    jobs: int,
    seed: int,
    file: Path | None,
    logs: Path | None,
    given: tuple[str, ...],
    list_: bool,
    document: bool,
) -> None:
    table: Table = import_module(f"tests.faults.{subject}.table").TABLE
    known = table.named
    settings = _with(table.settings, given)
    chosen = [name for name, one in known.items() if (name.startswith(names) if names else not one.by_name)]
    chosen = [name for name in chosen if known[name].fits(settings)]
    if list_ or not chosen:
        print("\n".join(f"{name:26} {scenario.about}" for name, scenario in known.items()))
        print("".join(f"\n--set {name}={value}" for name, value in asdict(table.settings).items()))
        sys.exit(not list_)
    if document and not table.page:
        raise click.UsageError("no page of the documentation has these results")
    record = Record(file)
    if not document:
        # Some images set this: each of the many processes would then compile the project again.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        # SIGTERM ends the program as an interrupt does: after the runs that have begun.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        play_all(table, record, record.missing(chosen, seed, runs), jobs, logs, settings)
    abouts = {name: scenario.about for name, scenario in known.items()}
    results = record.table(abouts, table.columns, by_seed=table.by_seed)
    if document:
        page, _, name = table.page.partition(" ")
        write_into(ROOT / "benchmarks/results" / page, name, results)
        return
    print(results)
    # Verdicts without a scenario are of a whole setup.
    others = {verdict.scenario for verdict in record.verdicts} - known.keys()
    sys.exit(not record.conclude([*chosen, *others]))


def _with(settings: Any, given: Iterable[str]) -> Any:
    """Return the settings with those that are given as text."""
    for name, _, value in (text.partition("=") for text in given):
        if not hasattr(settings, name):
            raise click.UsageError(f"unknown setting {name}; --list prints them")
        settings = replace(settings, **{name: type(getattr(settings, name))(value)})
    return settings


if __name__ == "__main__":
    main()
