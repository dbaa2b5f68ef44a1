"""Start of Spark's Python processes: what each kind imports and costs, without a JVM. ``python -m benchmarks.startup``.

Spark starts a process for each thing that it asks of a data source. Here each is a fresh interpreter that imports what
Spark's daemon and then the module of that worker import, and does once what Spark has it do: what the processes before
it pickled is what it gets. The servers are those of ``pravega_connector.testing``, in the process of this program.

The times are seconds of CPU from the fork of the worker on, best of several; who compares them with another version of
the project sets PYTHONPATH to its checkout. A real Spark's processes import the same: seen by an audit hook in a
``sitecustomize``.
"""

from __future__ import annotations

import importlib
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pravega_connector.client import PravegaClient

__all__ = [
    "FORMATS",
    "KINDS",
    "PACKAGES",
    "Place",
    "Start",
    "be_process",
    "best",
    "package_of",
    "run_all",
    "shares",
    "stage",
]

OURS = frozenset({"connector", "pravega_connector", "pravega_serde", "pyspark_pravega"})
#: Packages whose parts are told apart; the rest is Python's own.
PACKAGES = ("ours", "pyspark", "py4j", "numpy", "pyarrow", "pandas", "grpc", "google", "httpx2", "msgspec", "mmh3")
EVENTS = 1000
_QUERY = "4b9b2f9e-3c35-4b0c-9c0c-0a1a2b3c4d5e"


# ---- in the processes themselves -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Folder of what processes hand to each other, and the servers' address."""

    folder: Path
    controller: str
    round: int = 0
    """Number of the exactly-once batch: none is written twice."""

    def put(self, name: str, value: object) -> None:
        from pyspark.worker_util import pickleSer

        (self.folder / name).write_bytes(pickleSer.dumps(value))

    def get(self, name: str) -> Any:
        from pyspark.worker_util import pickleSer

        return pickleSer.loads((self.folder / name).read_bytes())

    def source(self, stream: str, **options: str) -> Any:
        """A data source as Spark makes it: of the class that the look-up has found."""
        return self.get("class")({"controller": self.controller, "path": stream, **options})


def _look_up(place: Place) -> None:
    place.put("class", importlib.import_module("pyspark_pravega").DefaultSource)


def _create(place: Place) -> None:
    source = place.source("start/in", start_stream_cut="earliest")
    place.put("source", (source, source.schema()))


def _plan(place: Place) -> None:
    source, schema = place.get("source")
    reader = source.reader(schema)
    partitions = reader.partitions()
    place.put("reader", (reader, source))
    place.put("partitions", partitions)


def _read(place: Place) -> None:
    reader, _ = place.get("reader")
    rows = sum(batch.num_rows for partition in place.get("partitions") for batch in reader.read(partition))
    assert rows == EVENTS, rows


def _plan_formats(place: Place) -> None:
    for name, options in json.loads((place.folder / "formats").read_text()).items():
        source = place.source(f"start/{name}", start_stream_cut="earliest", **options)
        reader = source.reader(source.schema())
        place.put(f"partitions of {name}", reader.partitions())
        place.put(f"reader of {name}", (reader, source))


def _read_format(name: str, place: Place) -> None:
    reader, _ = place.get(f"reader of {name}")
    rows = sum(batch.num_rows for part in place.get(f"partitions of {name}") for batch in reader.read(part))
    assert rows == EVENTS, rows


def _plan_stream(place: Place) -> None:
    source, schema = place.get("source")
    place.put("stream reader", (source.streamReader(schema), source))


def _run_source(place: Place) -> None:
    from pravega_connector.spark.versions import HAS_ADMISSION

    source, schema = place.get("source")
    reader = source.streamReader(schema)
    reader.prepareForTriggerAvailableNow()
    start = json.loads(json.dumps(reader.initialOffset()))
    limit = reader.getDefaultReadLimit() if HAS_ADMISSION else None
    end = json.loads(json.dumps(reader.latestOffset(start, limit)))
    reader.reportLatestOffset()
    place.put("partitions of a batch", reader.partitions(start, end))
    reader.commit(end)


def _read_batch(place: Place) -> None:
    reader, _ = place.get("stream reader")
    rows = sum(batch.num_rows for part in place.get("partitions of a batch") for batch in reader.read(part))
    assert rows == EVENTS, rows


def _plan_write(place: Place) -> None:
    source = place.source("start/out")
    place.put("writer", source.writer(_raw_schema(), overwrite=False))


def _plan_exactly_once(place: Place) -> None:
    source = place.source("start/out")
    place.put("sink", (source, _raw_schema()))
    place.put("stream writer", source.streamWriter(_raw_schema(), overwrite=False))


def _raw_schema() -> Any:
    from pyspark.sql.types import BinaryType, StructField, StructType

    return StructType([StructField("event", BinaryType())])


def _write(place: Place, writer: str = "writer", message: str = "message") -> None:
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext._getOrCreate()
    context._partitionId = 0
    context._localProperties = {"sql.streaming.queryId": _QUERY, "streaming.sql.batchId": str(place.round)}
    with pa.ipc.open_stream(place.folder / "rows") as rows:
        place.put(message, place.get(writer).write(iter(rows)))
    pa.array([b"message"])  # so Spark hands on the message, and Arrow loads an installed pandas


def _write_exactly_once(place: Place) -> None:
    _write(place, "stream writer", "stream message")


def _commit(place: Place) -> None:
    place.get("writer").commit([place.get("message")])


def _commit_exactly_once(place: Place) -> None:
    source, schema = place.get("sink")
    source.streamWriter(schema, overwrite=False).commit([place.get("stream message")], place.round)


_Step = Callable[[Place], None]
_WORKER = "pyspark.sql.worker."
_TASK = "pyspark.worker"
#: Streams of events that read tasks decode; ``registry`` is of Avro, behind the headers of a schema registry.
FORMATS = ("avro", "protobuf", "json", "java", "registry")
#: Kind of process -> what Spark imports there, and what it does, in the order in which a batch and a query have them.
KINDS: dict[str, tuple[str, _Step]] = {
    "look-up of data sources": (_WORKER + "lookup_data_sources", _look_up),
    "look at the schema": (_WORKER + "create_data_source", _create),
    "plan of a batch read": (_WORKER + "plan_data_source_read", _plan),
    "task of a batch read": (_TASK, _read),
    "plan of a query's tasks": (_WORKER + "plan_data_source_read", _plan_stream),
    "planner of micro-batches": ("pyspark.sql.streaming.python_streaming_source_runner", _run_source),
    "task of a micro-batch read": (_TASK, _read_batch),
    "plan of a batch write": (_WORKER + "write_into_data_source", _plan_write),
    "task of a batch write": (_TASK, _write),
    "commit of a batch write": (_WORKER + "commit_data_source_write", _commit),
    "plan of an exactly-once write": (_WORKER + "write_into_data_source", _plan_exactly_once),
    "task of an exactly-once write": (_TASK, _write_exactly_once),
    "commit of a micro-batch": (_WORKER + "python_streaming_sink_runner", _commit_exactly_once),
    "plan of typed reads": (_WORKER + "plan_data_source_read", _plan_formats),
    **{f"task of a read of {name}": (_TASK, partial(_read_format, name)) for name in FORMATS},
}
#: What a worker imports before it unpickles the function that it runs.
_BY_TASK = ("pyarrow", "pyspark.sql.pandas.serializers")


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_mib() -> int:
    # ru_maxrss would begin with the memory of the process that started this one.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    return int(peak[1]) // 1024


def be_process(kind: str, folder: str, controller: str, number: int) -> None:
    """Be a process of a kind; what it found out is printed as JSON."""
    __import__("pyspark.daemon")  # not by importlib, which -X importtime does not see
    forked = _cpu()
    worker, step = KINDS[kind]
    __import__(worker)
    for name in _BY_TASK if worker == _TASK else ():
        __import__(name)
    ready = _cpu()
    step(Place(Path(folder), controller, number))
    print(
        json.dumps(
            {"spark": ready - forked, "ours": _cpu() - ready, "rss": _peak_mib(), "modules": sorted(sys.modules)}
        )
    )


# ---- outside ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """What a process imported and cost."""

    spark: float
    """Seconds of CPU for what Spark imports in the worker, the daemon's part left out."""
    ours: float
    """… for what the connector imports and does."""
    rss: int
    """MiB of memory at most."""
    modules: frozenset[str]
    imports: Mapping[str, int] = field(default_factory=dict)
    """Microseconds that its modules took by themselves, if that was traced."""

    @property
    def installed(self) -> set[str]:
        """Packages that are neither Python's nor this project's nor, as its daemon brings them, Spark's."""
        names = {name.partition(".")[0] for name in self.modules} - sys.stdlib_module_names - OURS
        return {name for name in names if name[0] != "_"} - {"pyspark", "py4j", "benchmarks", "cython_runtime"}

    @property
    def packages(self) -> Counter[str]:
        """Number of modules of each of ``PACKAGES``, and of ``other``."""
        return Counter(package_of(name) for name in self.modules)


def package_of(module: str) -> str:
    top = module.partition(".")[0]
    name = "ours" if top in OURS else top
    return name if name in PACKAGES else "other"


@contextmanager
def stage() -> Iterator[Place]:
    """Servers with streams of ``EVENTS`` events, raw and of each format, and an empty one; and a folder."""
    import pyarrow as pa

    from pravega_connector.testing import InProcessPravega, InProcessRegistry

    with (
        tempfile.TemporaryDirectory() as folder,
        InProcessRegistry() as registry,
        InProcessPravega() as pravega,
        pravega.client() as client,
    ):
        events = pa.array([b"event %d" % i for i in range(EVENTS)], pa.binary())
        client.create_scope("start")
        for name in ("start/in", "start/out"):
            client.create_stream(name, 1)
        with client.writer("start/in") as writer:
            writer.write_column(events)
        rows = pa.record_batch([events], names=["event"])
        with pa.ipc.new_stream(Path(folder, "rows"), rows.schema) as file:
            file.write_batch(rows)
        options = {name: _fill(client, name, Path(folder), registry.uri) for name in FORMATS}
        Path(folder, "formats").write_text(json.dumps(options))
        yield Place(Path(folder), pravega.uri)


_AVRO = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "sensor", "type": "string"},
            {"name": "value", "type": "double"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "ok", "type": "boolean"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "items", "type": {"type": "array", "items": "int"}},
            {"name": "tags", "type": {"type": "map", "values": "long"}},
        ],
    }
)


def _fill(client: PravegaClient, name: str, folder: Path, registry: str) -> dict[str, str]:
    """Write the events of a format; the options that read them."""
    from pravega_serde import ClassDescriptor, serializer_for
    from pravega_serde import registry as schemas

    rows = _records()
    if name == "registry":
        options = {"registry": registry, "group": name}
        made = schemas.serializer(
            registry, group=name, schema=_AVRO, format="avro", create_group=True, register_schema=True
        )
    elif name == "avro":
        options = {"avro_schema": _AVRO}
        made = serializer_for(name, schema=_AVRO)
    elif name == "protobuf":
        rows = rows.drop_columns(["at"])
        path = folder / "reading.desc"
        path.write_bytes(
            importlib.import_module("pravega_serde.protobuf.derive")
            .protobuf_schema_of(rows.schema, "Reading")
            .SerializeToString()
        )
        options = {"protobuf_descriptor": str(path)}
        made = serializer_for(name, schema=str(path))
    elif name == "json":
        options = {"infer_schema": "true"}
        made = serializer_for(name)
    else:
        kinds = {
            "id": "long",
            "value": "double",
            "ok": "boolean",
            "sensor": "java.lang.String",
            "note": "java.lang.String",
        }
        made = serializer_for(name, java_type=ClassDescriptor.of("Reading", 1, kinds))
        rows = rows.select(list(kinds))
        options = {"java_sample": made.encode_column(rows.slice(0, 1))[0].as_py().hex()}
    client.create_stream(f"start/{name}", 1)
    with client.writer(f"start/{name}") as writer:
        writer.write_column(made.encode_column(rows))
    return options if name == "registry" else {"format": name, **options}


def _records() -> pa.RecordBatch:
    import pyarrow as pa

    rows = [
        {
            "id": i,
            "sensor": f"sensor-{i % 50}",
            "value": i / 7,
            "note": None if i % 3 else f"note {i}",
            "ok": i % 2 == 0,
            "at": 1_790_000_000_000_000 + i,
            "items": list(range(i % 4)),
            "tags": {f"tag {tag}": i for tag in range(i % 3)},
        }
        for i in range(EVENTS)
    ]
    numbers, longs = pa.list_(pa.field("element", pa.int32())), pa.map_(pa.string(), pa.int64())
    simple = {"id": pa.int64(), "sensor": pa.string(), "value": pa.float64(), "note": pa.string(), "ok": pa.bool_()}
    schema = pa.schema({**simple, "at": pa.timestamp("us", "UTC"), "items": numbers, "tags": longs})
    return pa.RecordBatch.from_pylist(rows, schema)


def run_all(place: Place, *, trace: bool = False) -> dict[str, Start]:
    """One start of each kind; with ``trace`` it is known what the modules of each package took to be imported."""
    return {kind: _start(kind, place, ("-X", "importtime") if trace else ()) for kind in KINDS}


def _start(kind: str, place: Place, flags: Sequence[str]) -> Start:
    arguments = kind, str(place.folder), place.controller, place.round
    command = [sys.executable, *flags, "-c", f"from benchmarks.startup import be_process; be_process{arguments!r}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{kind}: {done.stderr}"
    found = json.loads(done.stdout)
    imports = _imports(done.stderr) if flags else {}
    return Start(found["spark"], found["ours"], found["rss"], frozenset(found["modules"]), imports)


def _imports(trace: str) -> dict[str, int]:
    """Microseconds that each module took by itself, from what ``-X importtime`` says after the daemon's imports."""
    parsed = [re.fullmatch(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", line) for line in trace.splitlines()]
    own = [(match[2], int(match[1])) for match in parsed if match]
    daemon = [name for name, _ in own].index("pyspark.daemon")
    return dict(own[daemon + 1 :])


def best(rounds: Sequence[Start]) -> Start:
    """The cheapest of several starts of a kind."""
    return min(rounds, key=lambda start: start.spark + start.ours)


def shares(traced: Sequence[Start]) -> dict[str, float]:
    """Milliseconds by package for the imports of its modules, each the least of several starts."""
    found = Counter[str]()
    for name in set().union(*(start.imports for start in traced)):
        found[package_of(name)] += min(start.imports[name] for start in traced if name in start.imports)
    return {name: found[name] / 1000 for name in (*PACKAGES, "other") if found[name]}
