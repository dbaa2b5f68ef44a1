"""Compare what is left in a stream by the official Scala connector and by this one, after the same faults.

The jar is pravega/spark-connectors with its dependencies, for the PySpark that PEER_PYTHON has (3.5).
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from tools.faults.exactly_once._summary import write_into

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from tools.faults.peer._probe import CASES, Connector, Probe, Result, ours

_DOCUMENT = Path(__file__).parents[3] / "docs" / "exactly-once-tables.md"


@click.command(help=__doc__)
@click.option("--peer-jar", type=click.Path(exists=True, resolve_path=True), required=True)
@click.option("--peer-python", type=click.Path(exists=True), required=True, help="A Python with PySpark 3.5.")
@click.option("--repeat", default=3, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(CASES)))
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path),
    help="Keep the results there; what is there already is not run again.",
)
@click.option("--document", is_flag=True, help="Write the table into docs/exactly-once-tables.md.")
def main(
    peer_jar: str, peer_python: str, repeat: int, only: tuple[str, ...], file: Path | None, document: bool
) -> None:
    official = Connector("official", str(Path(peer_python).absolute()), {"spark.jars": peer_jar})
    known = json.loads(file.read_text()) if file is not None and file.exists() else []
    results = [Result(**result) for result in known]
    if missing := list(_missing(results, (official, ours()), only or tuple(CASES), repeat)):
        _run(results, missing, file)
    print(table(results))
    if document:
        write_into(_DOCUMENT, "peer", table(results))


def _run(results: list[Result], missing: Sequence[tuple[Connector, str]], file: Path | None) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True) as folder,
        LocalPravega() as server,
        PravegaClient(server.config) as client,
    ):
        probe = Probe(server.config, client, Path(folder))
        for connector, case in missing:
            results.append(probe.run(connector, case))
            print(json.dumps(asdict(results[-1])), flush=True)
            if file is not None:
                file.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


def _missing(
    results: Sequence[Result], connectors: Sequence[Connector], cases: Sequence[str], repeat: int
) -> Iterator[tuple[Connector, str]]:
    """What is not among the results: every case with both connectors before any case again."""
    done = Counter((result.connector, result.case) for result in results)
    for number in range(repeat):
        for case in cases:
            yield from ((one, case) for one in connectors if done[one.name, case] <= number)


def table(results: Sequence[Result]) -> str:
    """A Markdown table: sums over the runs of a case."""
    lines = [
        "| fault | connector | runs | rows written | read back | lost | duplicated |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for case, (about, _) in CASES.items():
        for name in dict.fromkeys(result.connector for result in results):
            of_case = [result for result in results if (result.case, result.connector) == (case, name)]
            if of_case:
                rows, read = (sum(getattr(result, one) for result in of_case) for one in ("rows", "read_back"))
                lost, twice = (sum(getattr(result, one) for result in of_case) for one in ("lost", "duplicated"))
                lines.append(f"| {about} | {name} | {len(of_case)} | {rows:,} | {read:,} | {lost:,} | {twice:,} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
