"""Compare reads and writes on several versions of Spark, in turn: ``python -m benchmarks.versions 3.5 4.0 4.1``.

``./run test-spark V`` makes the environment of a version. The baseline is the PySpark of the running Python. Each side
reads and writes raw events of 100 B with Python processes; with ``--jvm``, the JVM reader reads on versions with
``format("pravega")``.
"""

from __future__ import annotations

import sys
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import pyspark
from rich.console import Console

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer
from benchmarks._exactly_once import AT_LEAST_ONCE, EXACTLY_ONCE
from benchmarks._server import SCOPE, Server
from benchmarks._spark import write_parquet
from benchmarks._spark_data import KINDS, Place, fill
from benchmarks._stats import as_table
from pravega_connector.wire import StreamName

_ROOT: Final = Path(__file__).resolve().parent.parent
_SIZE: Final = 100
_SECONDS: Final = 900.0
_OWN: Final = ".".join(pyspark.__version__.split(".")[:2])


class _Sides:
    """Applications of the versions, on one server."""

    def __init__(self, versions: list[str], memory: str, stack: ExitStack) -> None:
        self._server = stack.enter_context(Server())
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        self.peers = {
            version: stack.enter_context(Peer(version, _command(version, memory), start_timeout=300.0))
            for version in versions
        }

    def read(self, events: int, reader: str) -> dict[str, Any]:
        """Return the runs of a read of a filled stream."""
        kind = KINDS["100 B"](Place(self._folder, "", ""))
        stream = self._server.stream(events, _SIZE)
        fill(self._server.uri, stream, kind.events, events)
        options = self._options(stream, columns="event", raw_reader=reader)
        return {
            version: partial(self._timed, version, "read", options=options, events=events)
            for version in self.peers
            if reader == "python" or version != "3.5"
        }

    def write(self, events: int, mode: str) -> dict[str, Any]:
        """Return the runs of a write of Parquet files, each into a new stream."""
        parquet = write_parquet(self._folder / f"{events}.parquet", events)

        def once(version: str) -> Mapping[str, Any]:
            stream = self._server.stream(events, _SIZE)
            ids = {"txn_app_id": str(uuid.uuid4()), "txn_version": "1"} if mode == EXACTLY_ONCE else {}
            options = self._options(stream, writer_mode=mode, raw_writer="python", **ids)
            answer = self._timed(version, "write", options=options, parquet=parquet, events=events)
            found = self.peers[version].ask("check", options=self._options(stream, columns="event"))["events"]
            assert found == events, f"Spark {version} wrote {found} of {events} events"
            self._server.drop(stream)
            return answer

        return {version: partial(once, version) for version in self.peers}

    def _timed(self, version: str, do: str, **request: Any) -> Mapping[str, Any]:
        peer = self.peers[version]
        self._server.settle()
        cpu = peer.cpu_seconds()
        answer = peer.ask(do, timeout=_SECONDS, **request)
        return answer | {"cpu": peer.cpu_seconds() - cpu}

    def _options(self, stream: StreamName, **more: str) -> dict[str, str]:
        return {"controller": self._server.uri, "scope": SCOPE, "stream": stream.stream, **more}


def _command(version: str, memory: str) -> list[str]:
    python = sys.executable if version == _OWN else str(_ROOT / f".venv-spark-{version}/bin/python")
    if not Path(python).is_file():
        raise click.UsageError(f"there is no {python}: make it with ./run test-spark {version}")
    connector = ["functions"] if version == "3.5" else ["pravega", "--configure"]
    return [python, "-m", "benchmarks.peers.spark_app", *connector, "--memory", memory]


@click.command(help=__doc__)
@click.argument("versions", nargs=-1, required=True)
@click.option("--events", default=4_000_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--memory", default="2g", show_default=True, help="Heap of each application.")
@click.option("--only", default="", metavar="TEXT", help="Only the cases whose name contains this.")
def main(versions: tuple[str, ...], events: int, rounds: int, memory: str, only: str) -> None:
    console, results = Console(stderr=True), []
    with ExitStack() as stack:
        sides = _Sides([_OWN, *versions], memory, stack)
        console.print({version: peer.version for version, peer in sides.peers.items()})
        for name, runs in (
            ("read", partial(sides.read, events, "python")),
            ("read, JVM reader", partial(sides.read, events, "jvm")),
            ("write at least once", partial(sides.write, events, AT_LEAST_ONCE)),
            ("write exactly once", partial(sides.write, events, EXACTLY_ONCE)),
        ):
            if only in name:
                case = Case(name=f"{name}, {events:,}", event_size=_SIZE, baseline=_OWN, peers=runs())
                results.append(run_case(case, rounds=rounds, note=console.print))
                Console().print(as_table(results[-1:], "Versions of Spark"))


if __name__ == "__main__":
    main()
