"""Spark's real-time mode with the JVM reader: events during a batch, changes of the trigger, scaling, and faults."""

import base64
import functools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pravega_connector.client import PravegaClient, shared
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from pravega_serde import AvroSerializer
from tests.integration.spark._real_time import ENDLESS, SHORT, Run, load_sink

AVAILABLE = {"availableNow": True}
STOP_SECONDS = 60
SEGMENTS = 5
SLOTS = 2  # of the tests' Spark, for tasks


@pytest.fixture(scope="module")
def session(jvm_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session with the JVM reader and the sink RowsInFile."""
    load_sink(jvm_session, tmp_path_factory.mktemp("sink"))
    return jvm_session


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server
        shared._clients.clear()  # the planning of a stopped query would ask this server for minutes


@pytest.fixture
def client(pravega: InProcessPravega, source: StreamName) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        client.create_stream(source, SEGMENTS)
        yield client


@pytest.fixture
def source(own_scope: str) -> StreamName:
    return StreamName(own_scope, "source")


@pytest.fixture
def run(
    session: SparkSession, pravega: InProcessPravega, client: PravegaClient, source: StreamName, tmp_path: Path
) -> Iterator[Run]:
    made = Run(session, {"controller": pravega.uri}, source, tmp_path)
    yield made
    for query in made.queries:
        query.stop()


@pytest.fixture
def write(client: PravegaClient, source: StreamName) -> Callable[[range], list[str]]:
    """``write(range(3))`` writes these numbers, with their last digit as the routing key, and returns them as text."""

    def write(numbers: range) -> list[str]:
        with client.writer(source) as writer:
            for number in numbers:
                writer.write(str(number).encode(), routing_key=str(number % 10))
        return [str(number) for number in numbers]

    return write


def stops(query: StreamingQuery) -> bool:
    """Stop the query; False if that does not end."""
    stop = threading.Thread(target=query.stop, daemon=True)
    stop.start()
    stop.join(STOP_SECONDS)
    return not stop.is_alive()


def test_events_arrive_while_the_batch_runs(run, write, eventually):
    expected = write(range(100))
    query = run.start(ENDLESS)
    for first in (100, 200, 300):
        eventually(lambda: sorted(run.events) == sorted(expected) or query.exception())
        assert query.exception() is None
        expected.extend(write(range(first, first + 100)))
    eventually(lambda: len(run.events) == len(expected))
    assert {batch for batch, _ in run.rows} == {0}
    assert query.lastProgress is None, "the first batch is not over"
    assert len({row["segment_id"] for _, row in run.rows}) > SLOTS
    assert stops(query)
    # The position is in the checkpoint at the end of a batch: Spark repeats this one under its number.
    run.start(SHORT)
    eventually(lambda: len(run.rows) == 2 * len(expected))
    assert sorted(run.events) == sorted(2 * expected)
    assert {batch for batch, _ in run.rows} == {0}


REAL_TIME, REST = (SHORT, "jvm"), (AVAILABLE, "python")


@pytest.mark.parametrize(
    "runs",
    [
        [REAL_TIME, REST, REAL_TIME],
        pytest.param([REAL_TIME, REST, REAL_TIME, (AVAILABLE, "jvm"), REST, REAL_TIME], marks=pytest.mark.long),
    ],
    ids=len,
)
def test_the_trigger_and_the_reader_change_at_every_restart(run, client, source, write, eventually, runs):
    expected: list[str] = []
    for number, (trigger, reader) in enumerate(runs):
        expected.extend(write(range(200 * number, 200 * number + 100)))
        if number in (1, 4):
            client.scale_stream(source, SEGMENTS + number)
        query = run.start(trigger, raw_reader=reader)
        if trigger is AVAILABLE:
            query.awaitTermination()
            expected.extend(write(range(200 * number + 100, 200 * number + 200)))
        else:
            expected.extend(write(range(200 * number + 100, 200 * number + 200)))
            eventually(lambda: len(run.events) >= len(expected) and run.is_committed())
            query.stop()
        assert query.exception() is None
    assert sorted(run.events) == sorted(expected)
    for key in "0123456789":
        assert [event for event in run.events if event[-1] == key] == [each for each in expected if each[-1] == key]


@pytest.mark.parametrize(
    "scalings", [[SEGMENTS + 3], pytest.param([SEGMENTS + 3, SEGMENTS], marks=pytest.mark.long)], ids=len
)
def test_a_scaled_stream_continues_in_the_next_batch(run, client, source, write, eventually, scalings):
    expected = write(range(100))
    query = run.start(SHORT)
    for number, segments in enumerate(scalings, 1):
        eventually(lambda: len(run.events) >= len(expected))
        client.scale_stream(source, segments)
        expected.extend(write(range(100 * number, 100 * number + 100)))
    eventually(lambda: len(run.events) >= len(expected) and run.is_committed())
    assert query.exception() is None
    assert sorted(run.events) == sorted(expected)
    for key in "0123456789":
        assert [event for event in run.events if event[-1] == key] == [each for each in expected if each[-1] == key]


def test_events_arrive_through_faults_of_the_stores(run, write, pravega, eventually):
    expected = write(range(10))
    query = run.start(ENDLESS)
    faults = [
        lambda: None,
        lambda: pravega.faults.drop_before("read", times=3),
        lambda: pravega.faults.drop_after("read", times=3),
        lambda: pravega.faults.segment_moved("read", times=3),
        lambda: pravega.faults.repeat_reply("read", times=1),
    ]
    for number, fault in enumerate(faults, 1):
        eventually(lambda: sorted(run.events) == sorted(expected) or query.exception())
        assert query.exception() is None
        fault()
        pravega.faults.drop_connections()  # reads wait at the store: new ones meet the fault
        expected.extend(write(range(10 * number, 10 * number + 10)))
    eventually(lambda: sorted(run.events) == sorted(expected))
    assert {batch for batch, _ in run.rows} == {0}


@pytest.mark.long  # the 10 s of silence; the test above has stores that fail otherwise
def test_a_tail_gives_up_a_frozen_store(run, write, pravega, eventually):
    expected = write(range(10))
    query = run.start(ENDLESS)
    eventually(lambda: sorted(run.events) == expected)
    with pravega.faults.frozen():
        before = pravega.store.connections
        eventually(lambda: pravega.store.connections > before + 1)
    expected.extend(write(range(10, 20)))
    eventually(lambda: sorted(run.events) == sorted(expected))
    assert query.exception() is None
    assert {batch for batch, _ in run.rows} == {0}


@pytest.mark.long
def test_a_query_that_plans_a_batch_during_an_outage_stops(run, write, pravega, eventually):
    write(range(10))
    query = run.start(SHORT)
    eventually(lambda: query.lastProgress is not None)
    query.stop()
    with pravega.faults.frozen():
        before = pravega.store.connections
        query = run.start(SHORT)
        eventually(lambda: pravega.store.connections > before)  # for the segments of the batch
        assert stops(query)
    assert query.exception() is None


@pytest.mark.parametrize("fails", [True, False])
def test_data_lost_under_a_tail(run, client, source, pravega, eventually, fails):
    def write_one(event: str) -> None:
        with client.writer(source) as writer:
            writer.write(event.encode(), routing_key="key")

    write_one("before")
    query = run.start(ENDLESS, fail_on_data_loss=fails)
    eventually(lambda: run.events == ["before"])
    pravega.faults.delay(600, "read", times=SEGMENTS)
    pravega.faults.drop_connections()
    write_one("lost")
    client.truncate(source, client.tail(source))
    write_one("after")
    pravega.faults.clear()
    if fails:
        eventually(lambda: query.exception() is not None)
        assert "[PRAVEGA-DATA-LOSS]" in str(query.exception())
        assert run.events == ["before"]
    else:
        eventually(lambda: len(run.events) > 1 or query.exception())
        assert query.exception() is None
        assert run.events == ["before", "after"]


@pytest.mark.parametrize("last", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_sealed_stream_has_no_batch_after_batch(run, client, source, write, eventually, last):
    expected = write(range(100))
    client.seal_stream(source)
    query = run.start(SHORT)
    eventually(lambda: query.lastProgress is not None and query.lastProgress["batchId"] >= last)
    assert sorted(run.events) == sorted(expected)
    took = [each["durationMs"]["triggerExecution"] for each in query.recentProgress]
    assert min(took) >= 5000, "each batch lasts its time"


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"]},
        {"name": "prices", "type": {"type": "array", "items": "double"}},
    ],
}
FOLDED = (
    "CAST(id AS STRING) event",
    "item",
    "prices",
    "segment_id",
    "offset",
    "* EXCEPT (id, item, prices, segment_id, offset)",
)


@pytest.fixture
def avro() -> dict[str, Any]:
    return {"format": "avro", "avro_schema": json.dumps(ORDER), "columns": "segment_id,offset"}


def orders(numbers: range) -> list[dict[str, Any]]:
    return [
        {"id": each, "item": None if each % 3 == 0 else f"tea {each} ✓", "prices": [each / 4] * (each % 4)}
        for each in numbers
    ]


def shown(rows: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {"id": int(row["event"]), "item": row.get("item"), "prices": row["prices"]}
        for _, row in rows
        if row.get("event")
    ]


def test_decoded_events_arrive_while_the_batch_runs(run, client, source, avro, eventually):
    query = run.start(ENDLESS, expressions=FOLDED, **avro)
    serializer = AvroSerializer(ORDER)
    expected: list[dict[str, Any]] = []
    for first in (0, 100, 200):
        with client.writer(source, serializer) as writer:
            for order in orders(range(first, first + 100)):
                writer.write(order, routing_key=str(order["id"]))
                expected.append(order)
        eventually(lambda: len(run.rows) == len(expected) or query.exception())
        assert query.exception() is None
    assert sorted(shown(run.rows), key=lambda each: each["id"]) == expected
    events = [(row["segment_id"], row["offset"]) for _, row in run.rows]
    assert len(set(events)) == len(events)
    assert {batch for batch, _ in run.rows} == {0}


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])
def test_a_malformed_event_among_others(run, client, source, avro, eventually, mode):
    """Python decodes only the event in doubt: those next to it arrive as always."""
    serializer = AvroSerializer(ORDER)
    first, second = orders(range(2))
    events = [serializer.serialize(first), b"\xff", serializer.serialize(second)]
    with client.writer(source) as writer:
        for event in events:
            writer.write(event, routing_key="one segment")
    query = run.start(ENDLESS, expressions=FOLDED, mode=mode, **avro)
    if mode == "FAILFAST":
        with pytest.raises(PySparkException, match="PRAVEGA-DESERIALIZATION") as raised:
            query.awaitTermination(STOP_SECONDS)
        assert f"offset {8 + len(events[0])}" in str(raised.value)
        assert {row["event"] for _, row in run.rows} == {"0"}, "an attempt of the task begins at the first event"
        return
    rows = 3 if mode == "PERMISSIVE" else 2
    eventually(lambda: len(run.rows) == rows or query.exception())
    assert query.exception() is None
    assert shown(run.rows) == [first, second]
    if mode == "PERMISSIVE":
        (bad,) = (row for _, row in run.rows if not row.get("event"))
        assert bad["offset"] == 8 + len(events[0])


def test_a_dead_letter_is_written_once_by_each_run_of_a_batch(run, client, source, avro, eventually):
    letters, serializer = StreamName(source.scope, "letters"), AvroSerializer(ORDER)
    client.create_stream(letters)
    first, second = orders(range(2))
    with client.writer(source) as writer:
        for event in (serializer.serialize(first), b"\xff", serializer.serialize(second), b"\xfe"):
            writer.write(event, routing_key="one segment")

    def found() -> list[bytes]:
        return [base64.b64decode(json.loads(letter)["event"]) for letter in client.read(letters)]

    def has(rows: list[dict[str, Any]]) -> bool:
        return bool(run.queries[-1].exception()) or (shown(run.rows) == rows and len(found()) == 2)

    for attempt in range(1, 3):  # the first one is stopped in its batch, which the second one repeats
        query = run.start(ENDLESS, expressions=FOLDED, dead_letter_stream="letters", **avro)
        eventually(functools.partial(has, [first, second] * attempt))
        assert query.exception() is None
        assert found() == [b"\xff", b"\xfe"]
        query.stop()


def test_after_decoded_events_micro_batches_continue(run, client, source, avro, eventually):
    expected: list[dict[str, Any]] = []
    for number, trigger in enumerate((SHORT, AVAILABLE, SHORT)):
        with client.writer(source, AvroSerializer(ORDER)) as writer:
            for order in orders(range(10 * number, 10 * number + 10)):
                writer.write(order, routing_key=str(order["id"]))
                expected.append(order)
        query = run.start(trigger, expressions=FOLDED, **avro)
        if trigger is AVAILABLE:
            query.awaitTermination()
        else:
            eventually(lambda: len(run.rows) >= len(expected) and run.is_committed())
            query.stop()
        assert query.exception() is None
    assert sorted(shown(run.rows), key=lambda each: each["id"]) == expected


def test_errors_name_what_to_do(run, spark, avro, tmp_path):
    def error(**given: Any) -> str:
        query = run.start(ENDLESS, **given)
        with pytest.raises(PySparkException) as raised:
            query.awaitTermination(STOP_SECONDS)
        return str(raised.value)

    assert "real-time mode has no event times" in error(columns="event,event_time_low")
    assert "set 'dead_letter_stream' instead" in error(expressions=FOLDED, dead_letter_path=str(tmp_path), **avro)
    # Spark's own: without the jar, this project is not asked.
    assert "STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED" in error(session=spark.newSession())
