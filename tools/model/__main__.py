"""``python -m tools.model [small|full|mutants|groups|steps]``: explore a machine's world, and print what was found.

The first three are of the exactly-once sink's table. ``groups`` has the readers of a group, ``steps`` the protocol of
ingestion and exactly-once readers. Both come with their mutants. A world of the sink's table with more states than
``--states`` is explored within a number of steps, which is printed.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import click

from tools.model import group_world, group_worlds, step_world, step_worlds, world, world_state
from tools.model.explore import explore
from tools.model.mutants import MUTANTS
from tools.model.worlds import FULL, NEVER_TORN, SMALL

_Found = dict[str, Any]
_Config = world_state.Config | group_world.Config | step_world.Config
_WORLDS: dict[type, Any] = {world_state.Config: world, group_world.Config: group_world, step_world.Config: step_world}


def _run(config: _Config, mutated: bool, limit: int | None) -> _Found:
    gc.disable()  # states form no cycles, and a million of them make each collection slow
    start = time.process_time()
    result = explore(config, limit=limit, first_only=mutated, world=_WORLDS[type(config)])
    return {
        "world": _describe(config, mutated),
        "states": result.states,
        "depth": result.depth,
        "seconds": round(time.process_time() - start, 1),
        "traces": result.traces,
        "reported": {outcome: count for outcome, count in result.reported.items() if count},
        "wrong": bool(result.traces) is not mutated or (config in NEVER_TORN and bool(result.reported)),
    }


def _describe(config: _Config, mutated: bool) -> str:
    if isinstance(config, group_world.Config):
        return _describe_group(config, mutated)
    if isinstance(config, step_world.Config):
        return _describe_steps(config, mutated)
    faults = {name: getattr(config, name) for name in ("crash", "expiry", "unknown", "forget", "zombie", "seal")}
    counted = ", ".join(f"{count} {name}" for name, count in faults.items() if count) or "no fault"
    name = (config.commit.__name__ if config.cut_at_revision else "RevisionIgnored") if mutated else "the table"
    counted += f", {config.targets} targets" if config.targets > 1 else ""
    counted += f", {config.streams} streams" if config.streams > 1 else ""
    counted += f", {config.queries} queries" if config.queries > 1 else ""
    counted += f", cuts of streams {config.cut}, first {config.first}" if config.cut else ""
    counted += f", leases of {' and '.join(map(str, config.leases))}" if config.leases else ""
    what = f"{config.parts} partitions, {config.batches} batches, replays {config.placements}, {counted}"
    return f"{name:20} {what:75}"


def _describe_group(config: group_world.Config, mutated: bool) -> str:
    faults = {name: getattr(config, name) for name in ("crash", "offline", "leave", "unknown", "silent")}
    counted = ", ".join(f"{count} {name}" for name, count in faults.items() if count) or "no fault"
    mutants = {other: name for name, _, other in group_worlds.MUTANTS}
    when = "before" if config.scaled else "any time"
    what = f"{config.readers} readers, {config.scaling} {when}, {counted}"
    return f"{mutants[config] if mutated else 'readers of a group':36} {what:59}"


def _describe_steps(config: step_world.Config, mutated: bool) -> str:
    names = ("crash", "expiry", "unknown", "forget", "zombie", "reset")
    counted = ", ".join(f"{getattr(config, name)} {name}" for name in names if getattr(config, name)) or "no fault"
    mutant = "LaterPositions" if not config.feed else config.turn.__name__ if config.conditional else "Unconditional"
    counted += ", two streams" if config.other else ""
    what = f"recorded {config.mode}, {len(config.items)} items of {config.length}, {counted}"
    return f"{mutant if mutated else 'steps':20} {what:70}"


def _show(found: _Found, traces: bool) -> None:
    within = "all" if found["depth"] is None else f"{found['depth']} steps"
    print(f"{found['world']} {found['states']:>9,} states {within:>9} {found['seconds']:7.1f} s  ", end="")
    print(f"violations {', '.join(found['traces']) or 0}  reported {found['reported'] or 0}", flush=True)
    for kind, trace in found["traces"].items() if traces or found["wrong"] else ():
        print(f"    {kind}", *trace, sep="\n        ")


def _known(file: Path | None) -> list[_Found]:
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


@click.command(help=__doc__)
@click.argument("which", type=click.Choice(["small", "full", "mutants", "groups", "steps"]), default="full")
@click.option("--traces", is_flag=True, help="Show the shortest way to each violation, of mutants too.")
@click.option("--jobs", default=2, show_default=True, help="How many worlds are explored at a time.")
@click.option("--states", default=1_000_000, show_default=True, help="Limit of a world, for the sink's table.")
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path),
    help="Keep what was found there, a line for each world; worlds that are there are not explored again.",
)
def main(which: str, traces: bool, jobs: int, states: int, file: Path | None) -> None:
    # The largest worlds stand last, and take longest.
    worlds = [] if which == "mutants" else SMALL if which == "small" else [*NEVER_TORN, *reversed(FULL)]
    work: list[tuple[_Config, bool]] = [(config, False) for config in worlds]
    work += [(config, True) for _, config in MUTANTS]
    if which == "groups":
        work = [(config, False) for config in group_worlds.FULL]
        work += [(config, True) for _, _, config in group_worlds.MUTANTS]
    if which == "steps":
        work = [(config, False) for config in reversed(step_worlds.FULL)]
        work += [(config, True) for _, config in step_worlds.MUTANTS]
    limit = None if which in ("groups", "steps") else states
    found = _known(file)
    done = {one["world"] for one in found}
    for one in found:
        _show(one, traces)
    with ProcessPoolExecutor(jobs) as pool:
        for future in as_completed(pool.submit(_run, *job, limit) for job in work if _describe(*job) not in done):
            found.append(future.result())
            _show(found[-1], traces)
            if file is not None:
                with file.open("a") as lines:
                    lines.write(json.dumps(found[-1]) + "\n")
    failed = sum(one["wrong"] for one in found)
    depths = [one["depth"] for one in found if one["depth"] is not None]
    part = f", {len(depths)} of them only within {min(depths)} to {max(depths)} steps" if depths else ""
    print(f"{sum(one['states'] for one in found):,} states of {len(found)} worlds{part}; ", end="")
    print("all as it should be" if not failed else f"{failed} NOT as they should be")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
