"""Kill Spark applications that write exactly once, at every point there is, and count what readers see."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from connector.local import LocalPravega
from tests.faults.exactly_once._points import POINTS, Point
from tests.faults.exactly_once._pravega import RestartablePravega
from tests.faults.exactly_once._run import Stage, repeated
from tests.faults.exactly_once._verdict import Verdict

_HEAD = f"{'point':24} {'rows':>5} {'read':>5} {'lost':>4} {'dup':>4} {'order':>5} {'aborted':>7} {'txns':>5} {'s':>6}"


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Names of points, or beginnings of names.")
@click.option("--repeat", default=1, show_default=True, help="How often each point is run.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the verdicts there.")
@click.option("--list", "list_", is_flag=True, help="Only tell what points there are.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the checkpoints and logs in this folder.")
def main(only: tuple[str, ...], repeat: int, file: Path | None, list_: bool, keep: Path | None) -> None:
    points = [point for name, point in POINTS.items() if not only or name.startswith(only)]
    if list_ or not points:
        for point in points or POINTS.values():
            print(f"{point.name:24} {point.about}")
        sys.exit(not points)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    print(_HEAD)
    verdicts = []
    with ExitStack() as stack:
        if ordinary := [point for point in points if not point.restarts]:
            server = stack.enter_context(LocalPravega())
            verdicts += _run(stack.enter_context(Stage(server.config, keep)), ordinary, repeat)
    with ExitStack() as stack:
        if restarting := [point for point in points if point.restarts]:
            cluster = stack.enter_context(RestartablePravega())
            stage = stack.enter_context(Stage(cluster.config, keep, restart=cluster.restart))
            verdicts += _run(stage, restarting, repeat)
    _conclude(verdicts, file)


def _run(stage: Stage, points: list[Point], repeat: int) -> list[Verdict]:
    verdicts = []
    for point in repeated(points, repeat):
        verdicts.append(stage.run(point))
        _show(verdicts[-1])
    stage.settle()
    return verdicts


def _show(v: Verdict) -> None:
    print(
        f"{v.point:24} {v.rows:5} {v.read_back:5} {v.lost:4} {v.duplicated:4} {v.out_of_order:5} {v.of_aborted:7} "
        f"{v.transactions:5} {v.seconds:6}  {v.fault}",
        flush=True,
    )
    for failure in v.failures:
        print(f"    FAILED: {failure}", flush=True)


def _conclude(verdicts: list[Verdict], file: Path | None) -> None:
    failed = [verdict for verdict in verdicts if verdict.failures]
    for verdict in failed:
        print(f"FAILED {verdict.point}: {'; '.join(verdict.failures)}")
    left = sum(verdict.left_open for verdict in verdicts)
    print(f"{len(verdicts)} runs, {len(failed)} failed; {left} transactions left open after their leases")
    if file is not None:
        file.write_text(json.dumps([verdict.as_json() for verdict in verdicts], indent=1) + "\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
