"""Comparison of our ingestion of CSV and Parquet files with a Java program that uses the transactional writer."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pyspark

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer, PeerError
from benchmarks._server import SCOPE, Server
from benchmarks._stats import Result
from pravega_connector.client import PravegaClient
from pravega_connector.local import pravega_jars
from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.local.maven import Jar
from pravega_connector.wire import StreamName

__all__ = ["run_ingest"]

FILES: Final = 10
ROWS: Final = 100_000  # of a file, which is one transaction
KEY: Final = "sensor"
_QUICK_PART: Final = 10
_JAVA: Final = "Java transactional writer"
_OURS: Final = "ours"
_JAVA_FOLDER: Final = Path(__file__).parent / "java"
_TYPES: Final = {"id": "long", "sensor": "string", "value": "double", "count": "long", "ok": "boolean"}
SCHEMA: Final = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "namespace": "benchmark",
        "fields": [{"name": name, "type": kind} for name, kind in _TYPES.items()],
    }
)
#: SHA-256 and size of the jars with which Java reads Parquet as Avro records. PySpark has their dependencies.
_OF_MAVEN: Final = {
    "parquet-avro": ("a324c216f973f0c5a73c93bf9c1e105264913f97da6b522b43a71f437945d3a6", 2198366),
    "parquet-variant": ("daecf8161e7bba63f7ba9fd62c1e8a77730c9a9d76a335191dc9d0a0fcaaec52", 81268),
}
_PARQUET: Final = JarSet(
    "parquet-avro",
    "1.17.0",
    tuple(Jar("org.apache.parquet", name, "1.17.0", "", "jar", *bytes_) for name, bytes_ in _OF_MAVEN.items()),
)
_OF_SPARK: Final = (
    "parquet-",
    "hadoop-client-",
    "avro-1",
    "snappy-java",
    "zstd-jni",
    "jackson-",
    "jts-core",
    "commons-",
)

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Input:
    """Files of one kind, and the events in them."""

    name: str
    folder: Path
    format: str
    event_size: int

    @property
    def options(self) -> dict[str, str]:
        """Options of our ingestion."""
        more = {"avro_schema": SCHEMA} if self.format == "avro" else {}
        return {"format": self.format, "routing_key_field": KEY, **more}


def run_ingest(*, rounds: int, quick: bool, only: str, note: Note) -> Iterator[Result]:
    """Measure each kind of files, with one transaction per file. Only cases whose name contains `only` are run."""
    rows = ROWS // (_QUICK_PART if quick else 1)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        server = stack.enter_context(Server(note))
        java = stack.enter_context(_java_peer())
        ours = stack.enter_context(Peer(_OURS, [sys.executable, "-m", "benchmarks.peers.ingest"]))
        note("; ".join(f"{peer.name}: {peer.version}" for peer in (java, ours)))
        suite = _Suite(server, java, ours)
        for kind, form, size in (("csv", "json", 80), ("parquet", "avro", 26)):
            if only in (name := f"ingest {kind} as {form}"):
                _write_files(folder / kind, kind, rows)
                case = suite.case(name, _Input(kind, folder / kind, form, size), FILES * rows)
                yield run_case(case, rounds=rounds, warm_ups=2, note=note)


def _java_peer() -> Peer:
    java = find_java()
    spark = Path(pyspark.__file__).parent / "jars"
    libraries = [str(jar) for jar in sorted(spark.glob("*.jar")) if jar.name.startswith(_OF_SPARK)]
    # Spark's jars first, because its Avro needs a later Jackson than the server's.
    folders = [f"{ensure_jars(_PARQUET)}/*", *libraries, f"{pravega_jars()}/*"]
    logging = f"-Dlogback.configurationFile={_JAVA_FOLDER / 'logback.xml'}"
    program = str(_JAVA_FOLDER / "IngestPeer.java")
    return Peer(_JAVA, [str(java.path), "-Xmx2g", logging, "-cp", os.pathsep.join(folders), program])


def _write_files(folder: Path, kind: str, rows: int) -> None:
    """Write the same rows to files of either kind."""
    folder.mkdir()
    for file in range(FILES):
        ids = np.arange(file * rows, (file + 1) * rows)
        columns = {
            "id": ids,
            "sensor": pc.binary_join_element_wise("sensor-", pa.array(ids % 1000 + 1000).cast(pa.string()), ""),
            "value": ids % 100_000 / 8,
            "count": ids * 7 % 100_000,
            "ok": ids % 2 == 0,
        }
        table = pa.table(columns)
        # Not nullable, as in the schema of the events.
        table = table.cast(pa.schema([field.with_nullable(False) for field in table.schema]))
        path = folder / f"part-{file:02}.{kind}"
        if kind == "csv":
            pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(quoting_style="none"))
        else:
            pq.write_table(table, path)


class _Suite:
    def __init__(self, server: Server, java: Peer, ours: Peer) -> None:
        self._server, self._java, self._ours = server, java, ours

    def case(self, name: str, files: _Input, events: int) -> Case:
        """Return the case of both peers with the same files, after a check that both write the same events."""
        written = {peer.name: self._once(peer, files, events, keep=True) for peer in (self._java, self._ours)}
        if _events(self._server.uri, written[_JAVA]["stream"]) != _events(self._server.uri, written[_OURS]["stream"]):
            raise PeerError(f"{name}: the peers write different events")
        return Case(
            name=f"{name}, {FILES} × {events // FILES:,} rows",
            event_size=files.event_size,
            baseline=_JAVA,
            peers={
                _JAVA: lambda: self._once(self._java, files, events),
                _OURS: lambda: self._once(self._ours, files, events),
            },
            aims={_OURS: 1.0},
        )

    def _once(self, peer: Peer, files: _Input, events: int, *, keep: bool = False) -> Mapping[str, Any]:
        stream = self._server.stream(events, files.event_size)
        request: dict[str, Any] = {"controller": self._server.uri}
        if peer is self._ours:
            request |= {"stream": str(stream), "folder": str(files.folder), "options": files.options}
        else:
            paths = [str(path) for path in sorted(files.folder.iterdir())]
            request |= {"scope": SCOPE, "stream": stream.stream, "input": files.name, "files": paths}
            request |= {"schema": SCHEMA, "key": KEY}
        self._server.settle()
        before = self._server.cpu_seconds()
        answer = peer.ask("ingest", **request)
        if answer["events"] != events:
            raise PeerError(f"{peer.name} wrote {answer['events']} events of {events}")
        more = {"server_cpu": self._server.cpu_seconds() - before, "stream": stream}
        if not keep:
            self._server.drop(stream)
        return {**answer, **more}


def _events(controller: str, stream: StreamName) -> pa.Array:
    """Return all events of a stream, sorted."""
    with PravegaClient(controller) as client:
        found = pa.chunked_array([batch.events for batch in client.read_columns(stream)], pa.binary())
    return found.combine_chunks().sort()
