"""Let readers of Java and of Python share a group while they are killed, paused and taken offline, and audit it."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
from tools.faults.exactly_once._summary import write_into
from tools.faults.groups._audit import Verdict, audit
from tools.faults.groups._life import Settings, play

from benchmarks._drive import PeerError
from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega
from pravega_serde.errors import PravegaError
from tests.jvm import SOON_READY

_DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "reader-groups.md"
_PATH: Final = click.Path(path_type=Path)


@click.command(help=__doc__)
@click.option("--runs", default=20, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Of the first run; the next ones have the numbers after it.")
@click.option("--events", default=100_000, show_default=True)
@click.option("--seconds", default=100.0, show_default=True, help="In which they are written, and the faults happen.")
@click.option("--controller", help="A server that runs already.  [default: one of its own]")
@click.option("--json", "file", type=_PATH, help="Keep the verdicts there; what is there already is not played again.")
@click.option("--logs", type=_PATH, help="Keep there what each run has left.")
@click.option("--audit", "again", is_flag=True, help="Only judge once more what is in the folder of --logs.")
@click.option("--document", is_flag=True, help="Only write the table of --json into docs/reader-groups.md.")
def main(
    runs: int,
    seed: int,
    events: int,
    seconds: float,
    controller: str | None,
    file: Path | None,
    logs: Path | None,
    again: bool,
    document: bool,
) -> None:
    # However it is told to end, servers and readers end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    verdicts = [Verdict(**one) for one in json.loads(file.read_text())] if file is not None and file.exists() else []
    if document:
        write_into(_DOCUMENT, "groups", table(verdicts))
        return
    if again:
        verdicts = []
        for folder in sorted(logs.iterdir() if logs is not None else (), key=lambda one: one.name.zfill(9)):
            if (folder / "life.json").exists():
                _add(audit(folder), verdicts, file)
        sys.exit(any(verdict.failures for verdict in verdicts))
    missing = [one for one in range(seed, seed + runs) if one not in {verdict.seed for verdict in verdicts}]
    settings = Settings(events=events, seconds=seconds)
    if missing and controller is not None:
        _play_all(PravegaConfig(controller=controller), missing, settings, verdicts, file, logs)
    elif missing:
        with LocalPravega(heap_mb=1024, cache_mb=512, java_options=SOON_READY) as pravega:
            _play_all(pravega.config, missing, settings, verdicts, file, logs)
    print(table(verdicts))
    sys.exit(any(verdict.failures for verdict in verdicts))


def _play_all(
    config: PravegaConfig,
    seeds: list[int],
    settings: Settings,
    verdicts: list[Verdict],
    file: Path | None,
    logs: Path | None,
) -> None:
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="groups-", ignore_cleanup_errors=True) as folder:
            try:
                verdict = run(config, seed, Path(folder), settings)
            finally:
                if logs is not None:
                    shutil.copytree(folder, logs / str(seed), dirs_exist_ok=True)
        _add(verdict, verdicts, file)


def _add(verdict: Verdict, verdicts: list[Verdict], file: Path | None) -> None:
    """Show a verdict, and keep it beside the others."""
    _show(verdict)
    verdicts.append(verdict)
    if file is not None:
        new = file.with_suffix(".new")
        new.write_text(json.dumps([asdict(one) for one in verdicts], indent=1) + "\n")
        new.replace(file)


def run(config: PravegaConfig, seed: int, folder: Path, settings: Settings) -> Verdict:
    """Play a run, and judge it. One that did not come to its end is a failure."""
    try:
        play(config, seed, folder, settings)
    except (AssertionError, PeerError, PravegaError, OSError) as error:
        return Verdict(seed, failures=[f"{type(error).__name__}: {error}"[:3000]])
    return audit(folder)


def _show(verdict: Verdict) -> None:
    v = verdict
    print(
        f"seed {v.seed}: {v.seconds:g} s, {v.events} events delivered {v.delivered} times, {v.lost} lost, {v.repeats} "
        f"repeated of {v.allowed} allowed, late {v.longest_late:g} s, unowned {v.longest_unowned:g} s, {v.segments} "
        f"segments in {v.possessions} possessions, {v.checkpoints} checkpoints, Java's {v.java_checkpoints}, "
        f"{v.compactions} compactions, {'; '.join(v.resets)}\n    {json.dumps(v.faults)}",
        flush=True,
    )
    for failure in v.failures:
        print(f"    FAILED: {failure}", flush=True)


_HEAD: Final = (
    "| seed | delivered | lost | repeated (allowed) | delivered after being taken offline, s | without a reader, s "
    "| possessions | checkpoints (Java's) | faults |\n|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


def table(verdicts: list[Verdict]) -> str:
    """A Markdown table, a row for each run."""
    return "\n".join([_HEAD, *map(_row, verdicts)])


def _row(v: Verdict) -> str:
    faults = ", ".join(f"{count} × {name}" for name, count in sorted(v.faults.items()) if name != "scaled")
    cells = [
        f"{v.seed}" + (" **failed**" if v.failures else ""),
        f"{v.delivered:,}",
        f"{v.lost}",
        f"{v.repeats:,} ({v.allowed:,})",
        f"{v.longest_late:g}",
        f"{v.longest_unowned:g}",
        f"{v.possessions}",
        f"{v.checkpoints} ({v.java_checkpoints})",
        faults,
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
