"""Streaming reads and writes: restart, scaling, order per routing key, limits, end cuts."""

import json
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName

pytestmark = pytest.mark.each_spark

KEYS = 40
Start = Callable[..., StreamingQuery]


@pytest.fixture
def start(spark: SparkSession, config: PravegaConfig, checkpoint: str) -> Start:
    """``start(stream, sink, available_now=…, **options)``: a query that appends (batch id, events) to ``sink``."""
    queries = []

    def start(stream: StreamName, sink: list, available_now: bool = True, **options: str) -> StreamingQuery:
        reader = spark.readStream.format("pravega").option("controller", config.controller)
        frame = reader.options(**({"start_stream_cut": "earliest"} | options)).load(str(stream))

        def keep(batch: DataFrame, batch_id: int) -> None:
            sink.append((batch_id, [(row.segment_id, row.offset, bytes(row.event)) for row in batch.collect()]))

        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
        if available_now:
            writer = writer.trigger(availableNow=True)
        queries.append(writer.start())
        return queries[-1]

    yield start
    for query in queries:
        query.stop()


def write_numbers(client: PravegaClient, stream: StreamName, first: int, last: int) -> None:
    """Events ``first`` to ``last - 1``; event n has routing key n % KEYS."""
    with client.writer(stream) as writer:
        for n in range(first, last):
            writer.write(b"%d" % n, routing_key=str(n % KEYS))


def scale(client: PravegaClient, stream: StreamName, segments: int) -> None:
    current = client.controller.current_segments(stream)
    ranges = [(i / segments, (i + 1) / segments) for i in range(segments)]
    client.controller.scale_stream(stream, [r.id for r in current], ranges)


def assert_complete_and_in_order(sink: list, count: int) -> None:
    """Every number once; the numbers of one key rise from batch to batch, and within a batch in a segment's order."""
    by_key: dict[int, list[int]] = defaultdict(list)
    for _, rows in sorted(sink):
        for _, _, event in sorted(rows):
            by_key[int(event) % KEYS].append(int(event))
    assert sorted(n for numbers in by_key.values() for n in numbers) == list(range(count))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


def assert_no_segment_with_its_successor(client: PravegaClient, stream: StreamName, sink: list) -> None:
    for batch_id, rows in sink:
        segments = {segment for segment, _, _ in rows}
        for segment in segments:
            after = {s.range.id for s in client.controller.successors(stream, segment)}
            assert not segments & after, f"batch {batch_id} holds segment {segment} and its successors {after}"


def test_continues_from_its_checkpoint(client, stream_name, start):
    client.create_stream(stream_name, 3)
    sink: list = []
    for first, last in ((0, 500), (500, 800), (800, 801)):
        write_numbers(client, stream_name, first, last)
        start(stream_name, sink).awaitTermination()
    assert_complete_and_in_order(sink, 801)
    assert [len(rows) for _, rows in sink] == [500, 300, 1], "each run read what was new, and nothing again"


def test_scaling_during_the_query_loses_nothing_and_keeps_order(client, stream_name, start):
    client.create_stream(stream_name, 1)
    sink: list = []
    query = start(stream_name, sink, available_now=False)
    count = 6000

    def write_and_scale() -> None:
        for part, segments in enumerate((4, 2, 3)):
            write_numbers(client, stream_name, part * 2000, part * 2000 + 1000)
            scale(client, stream_name, segments)
            write_numbers(client, stream_name, part * 2000 + 1000, part * 2000 + 2000)

    writer = threading.Thread(target=write_and_scale)
    writer.start()
    writer.join()
    query.processAllAvailable()
    query.stop()
    assert len(client.head(stream_name).positions) == 1
    assert len({segment for _, rows in sink for segment, _, _ in rows}) == 1 + 4 + 2 + 3, "all epochs were read"
    assert_complete_and_in_order(sink, count)
    assert_no_segment_with_its_successor(client, stream_name, sink)


def test_available_now_reads_through_scalings_up_to_the_tail_it_saw(client, stream_name, start):
    client.create_stream(stream_name, 1)
    for part, segments in enumerate((3, 2, 5, 1)):
        write_numbers(client, stream_name, part * 300, part * 300 + 300)
        scale(client, stream_name, segments)
    sink: list = []
    start(stream_name, sink).awaitTermination()
    assert_complete_and_in_order(sink, 1200)
    assert_no_segment_with_its_successor(client, stream_name, sink)


def test_limits_hold_in_every_batch(client, stream_name, start):
    client.create_stream(stream_name, 3)
    write_numbers(client, stream_name, 0, 1000)
    sink: list = []
    start(stream_name, sink, max_rows_per_trigger="150").awaitTermination()
    assert_complete_and_in_order(sink, 1000)
    assert all(len(rows) <= 150 for _, rows in sink)
    write_numbers(client, stream_name, 1000, 2000)
    more: list = []
    start(stream_name, more, max_bytes_per_trigger="3000").awaitTermination()
    frame = 8 + 4
    assert all(sum(8 + len(event) for _, _, event in rows) <= 3000 + 3 * frame for _, rows in more)
    assert_complete_and_in_order(sink + more, 2000)


@pytest.mark.long  # the tests above have limits, and runs that end at a tail
def test_available_now_with_limits_ends_at_the_tail_it_saw(client, stream_name, spark, config, checkpoint):
    client.create_stream(stream_name, 2)
    write_numbers(client, stream_name, 0, 300)
    sizes: list[int] = []
    written = 300

    def keep(batch: DataFrame, batch_id: int) -> None:
        nonlocal written
        sizes.append(batch.count())
        write_numbers(client, stream_name, written, written + 100)
        written += 100
        if batch_id == 1:
            scale(client, stream_name, 3)

    frame = spark.readStream.format("pravega").option("controller", config.controller)
    frame = frame.options(start_stream_cut="earliest", max_rows_per_trigger="110").load(str(stream_name))
    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
    read = 0
    for _ in range(2):  # what came during the first run is all that the second one reads
        tail = written
        writer.trigger(availableNow=True).start().awaitTermination()
        read += sum(sizes)
        assert read == tail < written
        assert len(sizes) >= 3
        assert max(sizes) <= 110
        sizes.clear()


def test_ends_at_the_end_cut(client, stream_name, start):
    client.create_stream(stream_name, 2)
    write_numbers(client, stream_name, 0, 300)
    scale(client, stream_name, 3)
    write_numbers(client, stream_name, 300, 400)
    end = client.tail(stream_name)
    write_numbers(client, stream_name, 400, 500)
    scale(client, stream_name, 2)
    write_numbers(client, stream_name, 500, 600)
    sink: list = []
    start(stream_name, sink, end_stream_cut=end.to_text()).awaitTermination()
    assert_complete_and_in_order(sink, 400)


def test_replay_reads_the_same_bytes(client, stream_name, start, checkpoint):
    client.create_stream(stream_name, 2)
    write_numbers(client, stream_name, 0, 400)
    first: list = []
    start(stream_name, first, max_rows_per_trigger="130").awaitTermination()
    forget_batch(checkpoint, first[-1][0])
    # Everything that could change the plan has changed.
    scale(client, stream_name, 4)
    write_numbers(client, stream_name, 400, 900)
    again: list = []
    start(stream_name, again, max_rows_per_trigger="7000").awaitTermination()
    assert again[0] == first[-1], "the batch that was not committed was read again, and read the same"
    assert_complete_and_in_order(first[:-1] + again, 900)


def forget_batch(checkpoint: str, batch_id: int) -> None:
    """Bring the checkpoint to where a crash between the sink's work and Spark's commit log leaves it."""
    for folder, least in (("commits", batch_id), ("offsets", batch_id + 1)):
        for path in Path(checkpoint, folder).iterdir():
            number = path.name.lstrip(".").split(".")[0]
            if number.isdigit() and int(number) >= least:
                path.unlink()


def test_offsets_are_readable_json(client, stream_name, start, checkpoint):
    client.create_stream(stream_name, 1)
    write_numbers(client, stream_name, 0, 10)
    start(stream_name, []).awaitTermination()
    lines = Path(checkpoint, "offsets", "0").read_text().splitlines()
    offset = json.loads(lines[-1])
    assert offset == {"streams": {str(stream_name): {"0.#epoch.0": 100 - 10}}, "version": 1}
    assert lines[-1] == json.dumps(offset, sort_keys=True) or lines[-1] == json.dumps(
        offset, sort_keys=True, separators=(",", ":")
    )


def test_stream_to_stream(spark, config, client, stream_name, checkpoint, eventually):
    target = StreamName(stream_name.scope, stream_name.stream + "-copy")
    client.create_stream(stream_name, 2)
    client.create_stream(target, 3)
    write_numbers(client, stream_name, 0, 3000)
    frame = (
        spark.readStream.format("pravega")
        .option("controller", config.controller)
        .option("start_stream_cut", "earliest")
        .load(str(stream_name))
    )
    query = (
        frame.selectExpr("event", "CAST(CAST(CAST(event AS STRING) AS INT) % 40 AS STRING) AS routing_key")
        .writeStream.format("pravega")
        .option("controller", config.controller)
        .option("checkpointLocation", checkpoint)
        .option("path", str(target))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    # The commit of each transaction is decided when the query ends, and carried out a moment later.
    eventually(lambda: sum(1 for _ in client.read(target)) >= 3000)
    copied = [int(event) for event in client.read(target)]
    assert sorted(copied) == list(range(3000))
    for key in range(KEYS):
        numbers = [n for n in copied if n % KEYS == key]
        assert numbers == sorted(numbers)
