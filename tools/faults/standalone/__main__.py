"""Submit an application that writes exactly once to a standalone cluster, kill a worker and the driver, and count."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click
from tools.faults.standalone._ship import WAYS

from pravega_connector.local import LocalPravega
from tools.faults.standalone._run import Settings, play

_PATH = click.Path(path_type=Path, exists=True, resolve_path=True)


@click.command(help=__doc__)
@click.option("--way", "ways", type=click.Choice(WAYS), multiple=True, help="How the project comes; both by default.")
@click.option("--rows", default=1200, show_default=True)
@click.option("--rows-per-batch", default=200, show_default=True)
@click.option("--python", type=_PATH, help="The cluster's Python; by default one without this project is made.")
@click.option("--artefact", type=_PATH, help="With one --way: the zip, or the archive, that is shipped.")
@click.option("--keep", type=click.Path(path_type=Path, resolve_path=True), help="Keep checkpoint and logs there.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the outcomes there.")
def main(
    ways: tuple[str, ...],
    rows: int,
    rows_per_batch: int,
    python: Path | None,
    artefact: Path | None,
    keep: Path | None,
    file: Path | None,
) -> None:
    if artefact is not None and len(ways) != 1:
        raise click.UsageError("--artefact needs one --way")
    settings = Settings(rows, rows_per_batch, python=python, artefact=artefact)
    outcomes = []
    with LocalPravega(heap_mb=1024, cache_mb=512) as pravega:
        for way in ways or WAYS:
            with tempfile.TemporaryDirectory(prefix="standalone-", ignore_cleanup_errors=True) as temporary:
                folder = Path(temporary) if keep is None else keep / way
                folder.mkdir(parents=True, exist_ok=True)
                outcome = play(pravega.config, way, folder, settings)
            outcomes.append(outcome)
            print(json.dumps({**asdict(outcome), "exact": outcome.is_exact}, indent=1), flush=True)
    if file is not None:
        file.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    sys.exit(not all(outcome.is_exact for outcome in outcomes))


if __name__ == "__main__":
    main()
