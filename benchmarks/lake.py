"""Rate of ``tier`` into a Delta table, compared with Spark's sink of Delta over the same events.

python -m benchmarks.lake --spark-python .venv-spark-4.1/bin/python

It starts a server and writes orders in Avro, of some 90 bytes, to three segments. Then each side writes them into a
new table, in turn. ``tier`` is the whole command with its defaults, so its time has the start of a process. Spark has
a warm session and our source: a batch, and a query with ``AvailableNow``. The rows of all tables must be equal.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from rich.console import Console

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer
from benchmarks._stats import as_json, as_table
from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.maven import Jar
from pravega_serde.avro import AvroSerializer

#: SHA-256 and size of the jars of Delta for Spark 4.1. There is none for Spark 4.3.
_OF_MAVEN: Final = {
    "delta-spark_4.1_2.13": ("35ae4164ee41bbfc8bdb52dcd3715ff4e1821a18c085e7a71a462e8e80e23ee5", 9023881),
    "delta-storage": ("d765a7144289c292e256963f810c1a4b096a8c09bdb3b0370096393b6a02b3c5", 110849),
}
_DELTA: Final = JarSet(
    "delta-spark",
    "4.3.0",
    tuple(Jar("io.delta", name, "4.3.0", "", "jar", *bytes_) for name, bytes_ in _OF_MAVEN.items()),
)
_TIER: Final = "tier"
_BLOCK: Final = 100_000
_SCHEMA: Final = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "item", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
)


def orders(first: int, count: int) -> pa.StructArray:
    """Return orders with numbers from ``first``. Every third one has no note."""
    rng = np.random.default_rng(first)
    columns = {
        "id": pa.array(np.arange(first, first + count)),
        "customer": pa.array([f"customer {each:05d}" for each in rng.integers(0, 20_000, count)]),
        "item": pa.array([f"item {each:04d} of the shop" for each in rng.integers(0, 3_000, count)]),
        "price": pa.array(np.round(rng.gamma(2.0, 20.0, count), 2)),
        "at": pa.array(1_777_636_800_000_000 + np.arange(first, first + count) * 1_300).cast(pa.timestamp("us", "UTC")),
        "note": pa.array([None if each % 3 == 0 else f"leave it at door {each}" for each in range(count)]),
    }
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


class _Sides:
    """Sides of the comparison, each with a new table for a run."""

    def __init__(self, controller: str, stream: str, spark: Peer, folder: Path, events: int) -> None:
        self._controller, self._stream, self._spark = controller, stream, spark
        self._table, self._events = folder / "table", events
        self._expected: pa.Table | None = None

    def peers(self) -> Mapping[str, Callable[[], Mapping[str, Any]]]:
        """Return the runs by the names of the sides."""
        return {
            "Spark, batch": lambda: self._once(lambda: self._of_spark("batch")),
            "Spark, AvailableNow": lambda: self._once(lambda: self._of_spark("stream")),
            _TIER: lambda: self._once(self._tier),
        }

    def _tier(self) -> dict[str, Any]:
        command = [str(Path(sys.executable).with_name("pravega-serde")), "tier", self._stream, f"delta:{self._table}"]
        command += ["--controller", self._controller, "--format", "avro", "-o", f"avro_schema={_SCHEMA}", "--quiet"]
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"seconds": seconds, "cpu": cpu}

    def _of_spark(self, do: str) -> dict[str, Any]:
        options = {
            "controller": self._controller,
            "path": self._stream,
            "format": "avro",
            "avro_schema": _SCHEMA,
            "columns": "segment_id,offset",
        }
        before = self._spark.cpu_seconds()
        answer = self._spark.ask(do, options=options, table=str(self._table), timeout=900)
        return {**answer, "cpu": self._spark.cpu_seconds() - before}

    def _once(self, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        shutil.rmtree(self._table, ignore_errors=True)
        answer = run()
        place = [("segment_id", "ascending"), ("offset", "ascending")]
        rows = DeltaTable(self._table).to_pyarrow_table().sort_by(place)
        self._expected = self._expected or rows
        equal = all(rows.column(name).equals(self._expected.column(name)) for name in self._expected.schema.names)
        if rows.num_rows != self._events or not equal:
            raise SystemExit(f"the tables differ: {rows.num_rows:,} rows of {self._events:,}")
        return {**answer, "events": self._events}


@click.command(help=__doc__)
@click.option(
    "--spark-python", required=True, type=click.Path(exists=True, path_type=Path), help="Python with PySpark 4.1."
)
@click.option("--events", type=click.IntRange(min=1), default=1_000_000, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--json", "json_file", type=click.File("w"), help="Also write all rates as JSON.")
@click.option("--controller", help="A running Pravega, instead of one that is started here.")
def main(spark_python: Path, events: int, rounds: int, json_file: Any, controller: str | None) -> None:
    note = Console(stderr=True).print
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        if controller is None:
            controller = stack.enter_context(LocalPravega()).controller_uri
        jars = ",".join(str(jar) for jar in sorted(ensure_jars(_DELTA).glob("*.jar")))
        command = [str(spark_python.absolute()), "-m", "benchmarks.peers.lake", jars]
        spark = stack.enter_context(Peer("Spark", command, start_timeout=600))
        note(spark.version)
        serializer, size = AvroSerializer(_SCHEMA), 0
        stream = f"bench/orders-{time.time_ns()}"
        client = stack.enter_context(PravegaClient(controller))
        client.create_stream(stream, 3)
        stack.callback(client.delete_stream, stream)
        with client.writer(stream) as writer:
            for first in range(0, events, _BLOCK):
                block = orders(first, min(_BLOCK, events - first))
                column = serializer.encode_column(block)
                size += column.nbytes
                writer.write_column(column, block.field("customer"))
        sides = _Sides(controller, stream, spark, folder, events)
        case = Case(
            name=f"Avro to Delta, {events:,}",
            event_size=size // events,
            baseline="Spark, AvailableNow",
            peers=sides.peers(),
        )
        result = run_case(case, rounds=rounds, note=note)
    Console().print(as_table([result], "Delta table"))
    if json_file is not None:
        json.dump(as_json([result]), json_file, indent=2)


if __name__ == "__main__":
    main()
