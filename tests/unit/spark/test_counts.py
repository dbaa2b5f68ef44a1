"""Cost of the main paths, counted and not timed: a change that doubles a count fails.

The tests count calls of this project's functions in the reading or writing thread, Arrow's allocations and their bytes
for each byte of events. They also count requests to the segment store and calls of the controller. Work that depends on
the machine's scheduling is left out: a message may arrive in more or fewer pieces.
"""

from __future__ import annotations

import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StructField, StructType

import pravega_connector
import pravega_serde
from pravega_connector.spark.sink import kept_writers
from pravega_connector.spark.sink import transactions as sink
from pravega_connector.testing import InProcessPravega
from pravega_connector.testing.segment_store import SegmentStore
from pravega_serde import serializer_for
from pyspark_pravega import DefaultSource

EVENTS = 200_000
SIZE = 100
#: Rows of a batch that Spark hands to a writer.
BATCH = 10_000
AVRO = """{"type": "record", "name": "Reading", "fields": [
    {"name": "id", "type": "long"}, {"name": "sensor", "type": "string"}, {"name": "value", "type": "double"}]}"""
#: Modules whose calls depend on how fast bytes come.
TIMED = ("/connection.py", "/io.py", "/deadline.py", "/retry.py", "/append_loop.py", "/tail_notifications.py")
FOLDERS = tuple(str(Path(package.__file__).parent) + "/" for package in (pravega_connector, pravega_serde))


@dataclass
class Counted:
    """Counts of one way."""

    calls: int | None = 0
    """This project's calls in the thread that reads or writes; None where they go by how often something has come."""
    allocations: int = 0
    copied: float = 0.0
    """Bytes that Arrow allocated for each byte of the raw events."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests to the segment store, by their names."""
    controller: Mapping[str, int] = field(default_factory=dict)

    def numbers(self) -> dict[str, float]:
        """All counts by their names."""
        simple: dict[str, float] = {"allocations": self.allocations, "copied": self.copied}
        if self.calls is not None:
            simple["calls"] = self.calls
        asked = {**self.requests, **self.controller}
        return {**simple, **{name: count for name, count in asked.items() if name not in TIMED_REQUESTS}}


@pytest.fixture(scope="module")
def pravega() -> Iterator[InProcessPravega]:
    sensors = pa.array([f"sensor-{i % 1000}" for i in range(EVENTS)])
    numbers = np.arange(EVENTS)
    rows = pa.RecordBatch.from_arrays([pa.array(numbers), sensors, pa.array(numbers / 7)], ["id", "sensor", "value"])
    with InProcessPravega() as served, served.client() as client:
        client.create_scope("count")
        for name in ("raw", "avro", "out"):
            client.create_stream(f"count/{name}", 1)
        with client.writer("count/raw") as writer:
            writer.write_column(events())
        with client.writer("count/avro") as writer:
            writer.write_column(serializer_for("avro", schema=AVRO).encode_column(rows))
        yield served
        sink._kept().close()  # no ping to the stopped server
        sink._kept_of_process.clear()
        kept_writers._kept_of_process.clear()


def events() -> pa.BinaryArray:
    return pa.array([b"%0100d" % i for i in range(EVENTS)], pa.binary())


@contextmanager
def counting(pravega: InProcessPravega) -> Iterator[Counted]:
    """Count until the block ends."""
    counted, pool, serve = Counted(), pa.default_memory_pool(), SegmentStore.serve
    requests = Counter[str]()
    before = Counter(pravega.controller.calls)

    def serve_counted(store: SegmentStore, session: Any, request: Any) -> None:
        requests[type(request).__name__] += 1
        serve(store, session, request)

    def profile(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(FOLDERS) and not name.endswith(TIMED):
            counted.calls += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SegmentStore, "serve", serve_counted)
        allocations, allocated = pool.num_allocations(), pool.total_bytes_allocated()
        sys.setprofile(profile)
        try:
            yield counted
        finally:
            sys.setprofile(None)
            counted.allocations = pool.num_allocations() - allocations
            counted.copied = (pool.total_bytes_allocated() - allocated) / (EVENTS * SIZE)
            counted.requests, counted.controller = dict(requests), dict(pravega.controller.calls - before)


def source(pravega: InProcessPravega, stream: str, **options: str) -> DefaultSource:
    return DefaultSource({"controller": pravega.uri, "path": f"count/{stream}", **options})


def reading(stream: str, **options: str) -> Callable[[InProcessPravega], Callable[[], None]]:
    """A task of a batch read."""

    def prepare(pravega: InProcessPravega) -> Callable[[], None]:
        made = source(pravega, stream, start_stream_cut="earliest", **options)
        reader = made.reader(made.schema())
        (partition,) = reader.partitions()

        def read() -> None:
            assert sum(batch.num_rows for batch in reader.read(partition)) == EVENTS

        return read

    return prepare


def following(pravega: InProcessPravega) -> Callable[[], None]:
    client = pravega.client()

    def follow() -> None:
        with client, client.follow("count/raw", start="earliest") as reader:
            seen = 0
            while seen < EVENTS:
                seen += len(next(iter(reader)).events)
            assert seen == EVENTS

    return follow


def writing(pravega: InProcessPravega) -> Callable[[], None]:
    client, column = pravega.client(), events()

    def write() -> None:
        with client, client.writer("count/out") as writer:
            for first in range(0, EVENTS, BATCH):
                writer.write_column(column.slice(first, BATCH))

    return write


def exactly_once(pravega: InProcessPravega) -> Callable[[], None]:
    """A batch write of one task, and its commit."""
    ids = {"txn_app_id": str(uuid.uuid4()), "txn_version": "1"}
    writer = source(pravega, "out", **ids).writer(StructType([StructField("event", BinaryType())]), overwrite=False)
    rows = pa.table({"event": events()}).to_batches(BATCH)
    context = TaskContext._getOrCreate()
    context._partitionId, context._localProperties = 0, {}

    def write() -> None:
        message = writer.write(iter(rows))
        writer.commit([message])

    return write


def at_least_once(pravega: InProcessPravega) -> Callable[[], None]:
    """A task of a micro-batch in a worker that has written one before."""
    schema = StructType([StructField("event", BinaryType())])
    writer = source(pravega, "out", writer_mode="at_least_once").streamWriter(schema, False)
    rows = pa.table({"event": events()}).to_batches(BATCH)

    def write() -> None:
        writer.write(iter(rows))

    return write


#: Requests that wait for something, or keep it alive: their number depends on the time.
TIMED_REQUESTS = {"KeepAlive", "checkTransactionState", "pingTransaction"}
_CLIENT = {"getCurrentSegments": 1, "getURI": 1, "getDelegationToken": 1}
#: Way -> how it is prepared, and what was counted.
WAYS: dict[str, tuple[Callable[[InProcessPravega], Callable[[], None]], Counted]] = {
    "raw read": (reading("raw", columns="event"), Counted(1142, 42, 1.12, {"ReadSegment": 21})),
    "raw read, five columns": (reading("raw"), Counted(1326, 42, 1.12, {"ReadSegment": 21})),
    "typed read": (reading("avro", format="avro", avro_schema=AVRO), Counted(837, 48, 0.75, {"ReadSegment": 6})),
    "follower": (
        following,
        Counted(
            None,
            42,
            1.12,
            {"Hello": 1, "ReadSegment": 21},
            {"getURI": 1, "getDelegationToken": 1, "getSegments": 1},
        ),
    ),
    "writer": (writing, Counted(564, 60, 0.2, {"Hello": 1, "SetupAppend": 1, "Append": 40}, _CLIENT)),
    "at-least-once write": (at_least_once, Counted(925, 180, 0.2, {"Append": 40}, {"getCurrentSegments": 1})),
    "exactly-once write": (
        exactly_once,
        Counted(
            1433,
            80,
            0.24,
            {"Hello": 1, "SetupAppend": 1, "Append": 40, "GetStreamSegmentInfo": 1, "ConditionalAppend": 2},
            {"createTransaction": 1, "commitTransaction": 1},
        ),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_count_has_doubled(pravega: InProcessPravega, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # of the write: no Spark could be started here after it
    prepare, expected = WAYS[way]
    for _ in range(2):  # what is made once in a process, or kept for the next time, is made
        prepare(pravega)()
    run = prepare(pravega)
    with counting(pravega) as counted:
        run()
    if expected.calls is None:
        counted.calls = None
    found, known = counted.numbers(), expected.numbers()
    assert found.keys() == known.keys(), "what is asked of servers"
    # A count that has become much less gets its new number: the old one would guard nothing.
    changed = {
        name: (number, found[name]) for name, number in known.items() if not 2 / 3 < found[name] / number < 3 / 2
    }
    assert changed == {}, "count: (known, found)"
