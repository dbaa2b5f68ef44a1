"""``python -m benchmarks.startup``: what Spark's Python processes import and cost, as a table."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from benchmarks.startup import KINDS, PACKAGES, Place, Start, best, run_all, shares, stage


@click.command(help=__doc__)
@click.option("--times", default=5, show_default=True, help="Starts of each kind, of which the best counts.")
@click.option("--imports", is_flag=True, help="Also how long each package's modules take to be imported.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each kind.")
def main(times: int, imports: bool, as_json: bool) -> None:
    with stage() as place:
        rounds = _rounds(place, range(times))
        traced = _rounds(place, range(times, 2 * times), trace=True) if imports else []
    if not as_json:
        print("| process | CPU ms, Spark | CPU ms, ours | MiB | modules | of these |\n|---|---|---|---|---|---|")
    for kind in KINDS:
        start = best([each[kind] for each in rounds])
        parts = {name: start.packages[name] for name in PACKAGES if start.packages[name]}
        costs = shares([each[kind] for each in traced]) if traced else {}
        if as_json:
            found = {"process": kind, "spark": start.spark, "ours": start.ours, "rss": start.rss, "modules": parts}
            print(json.dumps({**found, "all modules": len(start.modules), "import ms": costs}))
            continue
        listed = ", ".join(f"{name} {count}" for name, count in parts.items())
        sizes = f"{start.spark * 1000:.0f} | {start.ours * 1000:.0f} | {start.rss} | {len(start.modules)}"
        print(f"| {kind} | {sizes} | {listed} |")
        if costs:
            print("|   imports, ms: " + ", ".join(f"{name} {ms:.0f}" for name, ms in costs.items()) + " | | | | | |")


def _rounds(place: Place, numbers: range, *, trace: bool = False) -> list[dict[str, Start]]:
    return [run_all(replace(place, round=number), trace=trace) for number in numbers]


if __name__ == "__main__":
    main()
