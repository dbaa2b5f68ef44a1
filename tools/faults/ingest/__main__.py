"""Kill, stop and race ingesters, and count what a Java client reads."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

import click
from tools.faults.ingest._big import big
from tools.faults.ingest._stage import Ingesters, Verdict

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega
from tests.interop._java import JavaPeer
from tools.faults.ingest._scenarios import VARIANTS, Scene, kills, zombies

_HEAD = (
    f"{'scenario':44} {'events':>9} {'read':>9} {'lost':>4} {'dup':>4} {'order':>5} {'kills':>5} {'pauses':>6} {'s':>7}"
)


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Beginnings of the names of scenarios.")
@click.option("--kills", "count", default=110, show_default=True, help="Kills in each scenario of kills.")
@click.option("--pauses", default=10, show_default=True, help="Pauses in each scenario of zombies.")
@click.option("--files", default=50, show_default=True)
@click.option("--samples", default=1000, show_default=True, help="Records of each file.")
@click.option("--big-bytes", default=2 << 30, show_default=True, help="Size of the large file.")
@click.option("--controller", help="A server that runs already.  [default: one of its own]")
@click.option("--seed", type=int, help="Of the random choices.  [default: another one each time]")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the verdicts there.")
@click.option("--list", "list_", is_flag=True, help="Only tell what scenarios there are.")
def main(
    only: tuple[str, ...],
    count: int,
    pauses: int,
    files: int,
    samples: int,
    big_bytes: int,
    controller: str | None,
    seed: int | None,
    file: Path | None,
    list_: bool,
) -> None:
    seed = time.time_ns() % 2**32 if seed is None else seed
    scenarios = dict(_scenarios(count, pauses, big_bytes))
    chosen = {name: play for name, play in scenarios.items() if not only or name.startswith(only)}
    if list_ or not chosen:
        print("\n".join(scenarios))
        sys.exit(not chosen)
    print(f"seed {seed}\n{_HEAD}", flush=True)
    verdicts = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ingest-")))
        config = (
            stack.enter_context(LocalPravega()).config if controller is None else PravegaConfig(controller=controller)
        )
        client = stack.enter_context(PravegaClient(config, timeout=60.0))
        java = stack.enter_context(JavaPeer(config.controller, folder))
        scope = f"faults{time.time_ns()}"
        for number, (name, play) in enumerate(chosen.items()):
            own = folder / str(number)
            own.mkdir()
            target = StreamName(scope, f"ingest{number}")
            scene = Scene(client, java, own, target, files, samples, random.Random(seed + number))
            with Ingesters(own) as ingesters, closing(scene):
                verdict = play(scene, ingesters)
            verdict.scenario = name
            verdicts.append(verdict)
            _show(verdict)
    if file is not None:
        file.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n")
    sys.exit(not all(verdict.ok for verdict in verdicts))


def _scenarios(count: int, pauses: int, size: int) -> Iterator[tuple[str, Callable[[Scene, Ingesters], Verdict]]]:
    for variant in VARIANTS:
        yield f"kills-{variant}", lambda scene, all_, v=variant: kills(scene, all_, v, count)
    for variant in VARIANTS:
        yield f"scaled-{variant}", lambda scene, all_, v=variant: kills(scene, all_, v, count, scaled=True)
    for variant in VARIANTS:
        yield (
            f"suspected-{variant}",
            lambda scene, all_, v=variant: zombies(scene, all_, v, pauses, lease=10.0, takeover_after=1.0),
        )
    yield "expired-count", lambda scene, all_: zombies(scene, all_, "count", pauses, lease=10.0, takeover_after=None)
    yield "big-count", lambda scene, all_: big(scene, all_, size)


def _show(v: Verdict) -> None:
    mark = "" if v.ok else "  FAILED"
    print(
        f"{v.scenario:44} {v.expected:9} {v.read:9} {v.lost:4} {v.duplicated:4} {v.out_of_order:5} {v.kills:5} "
        f"{v.pauses:6} {v.seconds:7}{mark}",
        flush=True,
    )
    more = {"runs": v.runs, "transactions": v.transactions, "takeovers": v.takeovers, "scalings": v.scalings}
    print(f"    {json.dumps(more | v.faults)}", flush=True)


if __name__ == "__main__":
    main()
