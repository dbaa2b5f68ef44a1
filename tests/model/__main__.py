"""``python -m tests.model [small|full|mutants]``: explore the exactly-once sink's table, and print what was found."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

import click

from tests.model.explore import Result, explore
from tests.model.mutants import MUTANTS
from tests.model.world import Config
from tests.model.worlds import FULL, NEVER_TORN, SMALL


def _run(job: tuple[Config, bool]) -> tuple[Result, float]:
    start = time.perf_counter()
    return explore(job[0], first_only=job[1]), time.perf_counter() - start


def _describe(config: Config) -> str:
    faults = {name: getattr(config, name) for name in ("crash", "expiry", "unknown", "forget", "zombie")}
    counted = ", ".join(f"{count} {name}" for name, count in faults.items() if count) or "no fault"
    return f"{config.parts} partitions, {config.batches} batches, replays {config.placements}, {counted}"


@click.command(help=__doc__)
@click.argument("which", type=click.Choice(["small", "full", "mutants"]), default="full")
@click.option("--traces", is_flag=True, help="Show the shortest way to each violation, of mutants too.")
def main(which: str, traces: bool) -> None:
    worlds = [] if which == "mutants" else SMALL if which == "small" else FULL + NEVER_TORN
    jobs = [(config, False) for config in worlds] + [(config, True) for _, config in MUTANTS]
    failed = total = 0
    with ProcessPoolExecutor(2) as pool:
        for (config, mutated), (result, seconds) in zip(jobs, pool.map(_run, jobs), strict=True):
            wrong = bool(result.traces) is not mutated or result.cut
            wrong = wrong or (config in NEVER_TORN and bool(result.reported))
            failed, total = failed + wrong, total + result.states
            name = config.commit.__name__ if mutated else "the table"
            print(f"{name:20} {_describe(config):75} {result.states:>9,} states {seconds:6.1f} s  ", end="")
            print(f"violations {', '.join(result.traces) or 0}  reported {dict(result.reported) or 0}", flush=True)
            for kind, trace in result.traces.items() if traces or not mutated else ():
                print(f"    {kind}", *trace, sep="\n        ")
    print(f"{total:,} states; " + ("all as it should be" if not failed else f"{failed} NOT as they should be"))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
