"""Interrupt the client at every line that a caller's thread runs, and check what is promised after it.

A recording run of each case finds the lines of ``pravega_connector``; then there is a run for the first and one for the
last execution of each line, with a KeyboardInterrupt there. After it accepted events exist once, the position is not
past what was handed out, and the object continues or raises a named error.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

import click

from ._cases import CASES
from ._run import Totals, try_all


@click.command(help=__doc__)
@click.option("--only", multiple=True, type=click.Choice(list(CASES)), help="Cases to run.  [default: all]")
@click.option("--sample", type=int, help="Number of places of each case.  [default: all]")
@click.option("--seed", default=0, show_default=True, help="Of the sample.")
@click.option("--first", is_flag=True, help="Only the first execution of each line.")
@click.option("--jobs", default=1, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the results there.")
def main(only: tuple[str, ...], sample: int | None, seed: int, first: bool, jobs: int, file: Path | None) -> None:
    found: list[Totals] = []
    with ProcessPoolExecutor(jobs) as pool:
        runs = [pool.submit(_all, name, not first, sample, seed) for name in only or CASES]
        for run in as_completed(runs):
            found.append(totals := run.result())
            click.echo(
                f"{totals.case:24} {totals.lines:5} lines, {totals.tried:5} interrupts, {len(totals.missed):3} not "
                f"reached, {len(totals.failures):4} failures, {totals.seconds:6.0f} s"
            )
            for failure in totals.failures:
                click.echo(f"  {failure.place}: {failure.what}")
    failures = sum(len(each.failures) for each in found)
    click.echo(f"{sum(each.tried for each in found)} interrupts, {failures} failures")
    if file is not None:
        file.write_text(json.dumps([asdict(each) for each in found], indent=1))
    sys.exit(bool(failures))


def _all(name: str, last: bool, sample: int | None, seed: int) -> Totals:
    *_, totals = try_all(name, CASES[name], last=last, sample=sample, seed=seed)
    return totals


if __name__ == "__main__":
    main()
