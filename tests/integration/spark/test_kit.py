"""A user's tests of Spark jobs on the in-process Pravega and registry: batch, exactly once, typed columns."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, StreamName
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_connector.testing.segment_store import SegmentStore
from pravega_connector.wire import SetupAppend

PAGE = Path(__file__).parents[3] / "docs" / "tools/test-kit.md"
COUNT = 3000


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        yield client


@pytest.fixture
def source(client: PravegaClient) -> StreamName:
    """A stream of three segments with the numbers up to COUNT."""
    client.create_stream("kit/source", 3)
    write(client, 0, COUNT)
    return StreamName("kit", "source")


def write(client: PravegaClient, first: int, last: int) -> None:
    numbers = [str(number) for number in range(first, last)]
    with client.writer("kit/source") as writer:
        writer.write_column(pa.array(numbers).cast(pa.binary()), pa.array([number[-1] for number in numbers]))


def test_the_job_on_the_page(spark, pravega, client):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if "SparkSession" in block)
    client.create_stream("test/stream")
    names: dict[str, object] = {}
    exec(block, names)
    (test,) = (found for name, found in names.items() if name.startswith("test_"))
    test(pravega, client, StreamName("test", "stream"))  # type: ignore[operator]


def test_a_query_copies_exactly_once_through_faults_and_a_scaling(spark, pravega, client, source, tmp_path):
    client.create_stream("kit/target", 2)

    def copy() -> None:
        frame = spark.readStream.format("pravega").option("controller", pravega.uri)
        frame = frame.option("start_stream_cut", "earliest").option("max_rows_per_trigger", 1000).load(str(source))
        writer = frame.selectExpr("event", "CAST(event AS STRING) AS routing_key").writeStream.format("pravega")
        writer = writer.option("controller", pravega.uri).option("path", "kit/target")
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()

    pravega.faults.drop_after("append", times=3)
    pravega.faults.drop_before("read", times=2)
    pravega.faults.controller_loses_answers("commitTransaction")
    copy()
    assert pravega.faults.pending == 0
    client.scale_stream(source, 5)
    client.scale_stream("kit/target", 3)
    write(client, COUNT, COUNT + 500)
    copy()
    assert sorted(map(int, client.read("kit/target"))) == list(range(COUNT + 500))


def test_the_micro_batches_of_a_query_share_the_writers_of_their_workers(
    spark, pravega, client, source, tmp_path, monkeypatch
):
    client.create_stream("kit/target", 1)
    writers, serve = set[bytes](), SegmentStore.serve

    def note(store: SegmentStore, session: Any, request: Any) -> None:
        if isinstance(request, SetupAppend) and request.segment.startswith("kit/target/"):
            writers.add(request.writer_id)
        serve(store, session, request)

    monkeypatch.setattr(SegmentStore, "serve", note)
    frame = spark.readStream.format("pravega").option("controller", pravega.uri)
    frame = frame.option("start_stream_cut", "earliest").option("max_rows_per_trigger", COUNT // 10).load(str(source))
    writer = frame.selectExpr("event", "CAST(event AS STRING) AS routing_key").writeStream.format("pravega")
    writer = writer.option("controller", pravega.uri).option("writer_mode", "at_least_once")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start("kit/target")
    query.awaitTermination()
    batches = len([progress for progress in query.recentProgress if progress.numInputRows])
    assert batches >= 10
    assert sorted(map(int, client.read("kit/target"))) == list(range(COUNT))
    # Each batch has a task for each of three segments. Earlier tests may have left idle workers, which take turns.
    assert len(writers) <= 3 * batches // 2


def test_columns_by_a_registry(spark, pravega, client):
    client.create_stream("kit/orders")
    with InProcessRegistry() as registry:
        options = {"controller": pravega.uri, "registry": registry.uri}
        rows = spark.createDataFrame([(1, "a"), (2, "b")], "id LONG, name STRING")
        writer = rows.write.format("pravega").options(**options, format="avro", register_schema="true")
        writer.options(create_group="true", routing_key="all").mode("append").save("kit/orders")
        found = spark.read.format("pravega").options(**options).load("kit/orders").select("id", "name").collect()
    assert sorted((row.id, row.name) for row in found) == [(1, "a"), (2, "b")]
