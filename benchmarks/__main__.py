"""``python -m benchmarks [PART]``: comparisons with other clients and libraries, as ratios."""

from __future__ import annotations

import json
import os
import platform
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks._client import run_client
from benchmarks._drive import PeerError
from benchmarks._groups import run_groups
from benchmarks._ingest import run_ingest
from benchmarks._real_time import run_real_time
from benchmarks._registries import run_registries
from benchmarks._spark import SparkPlan, run_spark
from benchmarks._spark_peer import ScalaPeer
from benchmarks._spark_results import Results, document
from benchmarks._stats import Result, as_json, as_table
from benchmarks._streams import run_streams
from benchmarks._tables import run_tables
from benchmarks.serde import run_serde

QUICK_EVENTS = 100_000
_progress = Console(stderr=True)


def _note(text: str) -> None:
    _progress.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim] {text}", highlight=False)


def _measured(part: str, cases: Iterator[Result]) -> dict[str, Any]:
    """Print the table of one part, also if a later case fails, and return the part's JSON."""
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


def _scala_peer(jar: Path | None, python: Path | None) -> ScalaPeer | None:
    if (jar is None) != (python is None):
        raise click.UsageError("--peer-jar and --peer-python go together")
    # Not resolved, because the interpreter of a virtual environment is a link.
    return None if jar is None or python is None else ScalaPeer(jar.absolute(), python.absolute())


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_BUILD = Path(__file__).parent.parent / "build"


@click.command(help=__doc__)
@click.argument(
    "part",
    type=click.Choice(
        ["client", "groups", "streams", "tables", "serde", "registries", "spark", "real-time", "ingest", "all"]
    ),
    default="all",
)
@click.option("--quick", is_flag=True, help="Few events, two rounds: shows that all works, and no more.")
@click.option(
    "--rounds", type=click.IntRange(min=1), help="Runs of each peer that count.  [default: 5; spark: 7; quick: 2]"
)
@click.option("--only", default="", metavar="TEXT", help="Only the cases whose name contains this, such as 'read 100'.")
@click.option("--json", "json_file", type=click.File("w"), help="Also write all rates as JSON, to a file or to '-'.")
@click.option("--peer-jar", type=_FILE, envvar="PRAVEGA_PEER_JAR", help="The built Scala connector.")
@click.option("--peer-python", type=_FILE, envvar="PRAVEGA_PEER_PYTHON", help="A Python with PySpark 3.5 for it.")
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the rows of spark are kept as they are measured; those that are there are not measured again. "
    "[default: build/bench-spark.json; quick: build/bench-spark-quick.json]",
)
@click.option("--again", is_flag=True, help="Measure also the rows of spark that are kept.")
@click.option("--list", "list_", is_flag=True, help="Only tell the rows of spark.")
@click.option("--document", "only_document", is_flag=True, help="Only write the kept rows of spark into the docs.")
def main(
    part: str,
    quick: bool,
    rounds: int | None,
    only: str,
    json_file: Any,
    peer_jar: Path | None,
    peer_python: Path | None,
    results: Path | None,
    again: bool,
    list_: bool,
    only_document: bool,
) -> None:
    plan = SparkPlan(
        results=results or _BUILD / f"bench-spark{'-quick' * quick}.json",
        rounds=rounds or (2 if quick else 7),
        only=only,
        most_events=QUICK_EVENTS if quick else None,
        again=again,
    )
    if list_:
        print("\n".join(f"{row.name:42} {row.events:>10,}  {row.work}" for row in plan.rows()))
        return
    if only_document:
        if quick:
            raise click.UsageError("rows of --quick are not for the docs")
        document(Results(plan.results))
        return
    # After each of these signals, servers and peers end with this process, and the measured rows are kept.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    scala = _scala_peer(peer_jar, peer_python)
    how: dict[str, Any] = {"rounds": rounds or (2 if quick else 5), "quick": quick, "only": only, "note": _note}
    measured = []
    try:
        if part in ("client", "all"):
            measured.append(_measured("Client", run_client(**how)))
        if part in ("groups", "all"):
            measured.append(_measured("Reader groups", run_groups(**how)))
        if part in ("streams", "all"):
            measured.append(_measured("Several streams", run_streams(**how)))
        if part in ("tables", "all"):
            measured.append(_measured("Key-value tables", run_tables(**how)))
        if part in ("serde", "all"):
            measured.append(_measured("Serializers", run_serde(**how)))
        if part in ("registries", "all"):
            measured.append(_measured("Registries", run_registries(**how)))
        if part in ("spark", "all"):
            measured.append(_measured("Spark", run_spark(scala, plan, _note)))
        if part in ("real-time", "all"):
            delays = list(run_real_time(quick=quick, note=_note))
            Console().print(*map(str, delays), sep="\n", highlight=False, soft_wrap=True)
            measured.append({"part": "Real time", "load": os.getloadavg()[0], "delays": list(map(asdict, delays))})
        if part in ("ingest", "all"):
            measured.append(_measured("Ingestion", run_ingest(**how)))
    except PeerError as e:
        raise click.ClickException(str(e)) from e
    finally:
        if json_file is not None:
            json.dump({"machine": platform.platform(), "cores": os.cpu_count(), "parts": measured}, json_file, indent=2)


if __name__ == "__main__":
    main()
