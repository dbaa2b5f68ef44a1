"""``python -m benchmarks [client|groups|serde|spark|ingest]``: comparisons in one run each, printed as ratios."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks._client import run_client
from benchmarks._groups import run_groups
from benchmarks._ingest import run_ingest
from benchmarks._spark import ScalaPeer, run_spark
from benchmarks._stats import Result, as_json, as_table
from benchmarks.serde import run_serde

_progress = Console(stderr=True)


def _note(text: str) -> None:
    _progress.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim] {text}", highlight=False)


def _measured(part: str, cases: Iterator[Result]) -> dict[str, Any]:
    """Print one part's table, also when a later case fails, and give back what goes into the JSON."""
    results: list[Result] = []
    try:
        results.extend(cases)
    finally:
        Console().print(as_table(results, part))
        for result in results:
            for remark in result.remarks:
                Console().print(f"{result.case}: {remark}", highlight=False, soft_wrap=True)
        _note(f"load of the last minute {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return {"part": part, "load": os.getloadavg()[0], "cases": as_json(results)}


def _scala_peer(jar: Path | None, python: Path | None, avro_jar: Path | None) -> ScalaPeer | None:
    if (jar is None) != (python is None):
        raise click.UsageError("--peer-jar and --peer-python go together")
    return None if jar is None or python is None else ScalaPeer(jar.absolute(), python.absolute(), avro_jar)


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(help=__doc__)
@click.argument("part", type=click.Choice(["client", "groups", "serde", "spark", "ingest", "all"]), default="all")
@click.option("--quick", is_flag=True, help="A tenth of the events, two rounds: shows that all works, and no more.")
@click.option("--rounds", type=click.IntRange(min=1), help="Runs of each peer that count.  [default: 5; quick: 2]")
@click.option("--only", default="", metavar="TEXT", help="Only the cases whose name contains this, such as 'read 100'.")
@click.option("--json", "json_file", type=click.File("w"), help="Also write all rates as JSON, to a file or to '-'.")
@click.option("--peer-jar", type=_FILE, envvar="PRAVEGA_PEER_JAR", help="The built Scala connector.")
@click.option("--peer-python", type=_FILE, envvar="PRAVEGA_PEER_PYTHON", help="A Python with PySpark 3.5 for it.")
@click.option("--peer-avro-jar", type=_FILE, envvar="PRAVEGA_PEER_AVRO_JAR", help="spark-avro for that PySpark.")
def main(
    part: str,
    quick: bool,
    rounds: int | None,
    only: str,
    json_file: Any,
    peer_jar: Path | None,
    peer_python: Path | None,
    peer_avro_jar: Path | None,
) -> None:
    scala = _scala_peer(peer_jar, peer_python, peer_avro_jar)
    how: dict[str, Any] = {"rounds": rounds or (2 if quick else 5), "quick": quick, "only": only, "note": _note}
    measured = []
    if part in ("client", "all"):
        measured.append(_measured("Client", run_client(**how)))
    if part in ("groups", "all"):
        measured.append(_measured("Reader groups", run_groups(**how)))
    if part in ("serde", "all"):
        measured.append(_measured("Serializers", run_serde(**how)))
    if part in ("spark", "all"):
        measured.append(_measured("Spark", run_spark(scala, **how)))
    if part in ("ingest", "all"):
        measured.append(_measured("Ingestion", run_ingest(**how)))
    if json_file is not None:
        json.dump({"machine": platform.platform(), "cores": os.cpu_count(), "parts": measured}, json_file, indent=2)


if __name__ == "__main__":
    main()
