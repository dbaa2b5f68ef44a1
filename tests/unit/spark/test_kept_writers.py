"""At-least-once writes: a worker's tasks use one writer, and an event of a failed task is not written later."""

import os
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from pravega_connector.client import PravegaClient
from pravega_connector.errors import (
    EventTooLargeError,
    PravegaError,
    StreamNotFoundError,
    StreamSealedError,
    UnsupportedModeError,
)
from pravega_connector.spark.sink import kept_writers
from pravega_connector.testing import InProcessPravega
from pravega_connector.testing.requests import Append
from pravega_connector.testing.segment_store import SegmentStore
from pravega_connector.wire import AuthTokenCheckFailed, SetupAppend, StreamName
from pravega_serde import ForkedError
from pyspark_pravega import DefaultSource

SCHEMA = StructType([StructField("event", BinaryType()), StructField("routing_key", StringType())])
TARGETS = StructType([*SCHEMA, StructField("target_stream", StringType())])
#: More than the bytes that a writer sends to a segment before an answer, in events that fit into a frame.
LARGE = [b"%d" % i * (7 << 20) for i in range(3)]


@pytest.fixture
def stream(client: PravegaClient) -> StreamName:
    """A stream of one segment, in a separate scope."""
    name = StreamName(f"kept-{uuid.uuid4().hex[:8]}", "a")
    client.create_scope(name.scope)
    client.create_stream(name, 1)
    return name


class Seen:
    """Requests that the segment store has served."""

    def __init__(self) -> None:
        self.requests = Counter[str]()
        self.writers: list[bytes] = []
        """Ids of the sessions that were bound to a segment, in their order."""


@pytest.fixture
def seen(pravega: InProcessPravega, monkeypatch: pytest.MonkeyPatch) -> Seen:
    seen, serve = Seen(), SegmentStore.serve

    def note(store: SegmentStore, session: Any, request: Any) -> None:
        seen.requests[type(request).__name__] += 1
        if isinstance(request, SetupAppend):
            seen.writers.append(request.writer_id)
        serve(store, session, request)

    monkeypatch.setattr(SegmentStore, "serve", note)
    return seen


Rows = list[tuple[bytes, str]]


class Query:
    """Tasks of a streaming query that writes at least once, in this process as its only worker."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def task(self, stream: StreamName, rows: Rows, *, then: Callable[[], None] = lambda: None, **options: str) -> None:
        """Run a task of the next micro-batch. ``then`` is called when the task asks for more rows."""
        columns = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        self._run({"path": str(stream), **options}, SCHEMA, columns, then)

    def task_with_targets(self, *streams: StreamName) -> None:
        """Run a task with one row for each stream."""
        rows = [{"event": b"x", "routing_key": "k", "target_stream": str(stream)} for stream in streams]
        self._run({}, TARGETS, rows, lambda: None)

    def _run(
        self, options: dict[str, str], schema: StructType, rows: list[dict[str, Any]], then: Callable[[], None]
    ) -> None:
        settings = {"controller": self._uri, "writer_mode": "at_least_once", **options}
        query = DefaultSource(settings).streamWriter(schema, False)

        def batches() -> Iterator[pa.RecordBatch]:
            yield from pa.Table.from_pylist(rows).to_batches()
            then()

        query.commit([query.write(batches())], 0)


@pytest.fixture
def query(pravega: InProcessPravega, monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # of this test: no Spark could be started here after it
    context = TaskContext._getOrCreate()
    context._partitionId, context._localProperties = 0, {}
    yield Query(pravega.uri)
    kept_writers._kept_of_process.clear()


def numbered(first: int, last: int) -> Rows:
    return [(b"%d" % number, f"key {number % 7}") for number in range(first, last)]


def threads_of(stream: StreamName) -> int:
    return sum(thread.name == f"pravega-writer {stream}" for thread in threading.enumerate())


@pytest.mark.parametrize("options", [{}, {"writer_mode": "at_least_once"}, {"writer_mode": "best_effort"}])
def test_rows_that_spark_has_not_passed_to_a_task_are_not_committed(pravega, stream, options):
    settings = {"controller": pravega.uri, "path": str(stream), **options}
    writer = DefaultSource(settings).streamWriter(SCHEMA, False)
    with pytest.raises(UnsupportedModeError, match=r"as for a continuous trigger.* none was written"):
        writer.commit([None], 0)


def test_micro_batches_share_a_writer_and_its_connections(pravega, client, stream, query, seen):
    calls = Counter[str]()
    for batch in range(5):
        before = Counter(pravega.controller.calls)
        query.task(stream, numbered(10 * batch, 10 * batch + 10))
        calls = Counter(pravega.controller.calls) - before
        # Durable on return, for every other client.
        assert seen.requests["Append"] == batch + 1
    assert (len(seen.writers), seen.requests["Hello"]) == (1, 1)
    assert calls == {"getCurrentSegments": 1}
    assert sorted(map(int, client.read(stream))) == list(range(50))


def test_events_of_a_key_keep_their_order_across_batches_and_a_scaling(client, stream, query):
    for batch in range(6):
        query.task(stream, numbered(100 * batch, 100 * batch + 100))
        if batch % 2:
            client.scale_stream(stream, 4 if batch == 1 else 2)
    found = list(map(int, client.read(stream)))
    assert sorted(found) == list(range(600))
    for key in range(7):
        of_key = [number for number in found if number % 7 == key]
        assert of_key == sorted(of_key)


@pytest.mark.parametrize("error", [ValueError("of a function"), KeyboardInterrupt()], ids=repr)
def test_nothing_of_a_failed_task_is_written_by_a_later_one(pravega, client, stream, query, seen, eventually, error):
    query.task(stream, [(b"before", "k")])
    pravega.faults.delay(60, "append")

    def fail() -> None:
        eventually(lambda: pravega.faults.pending == 0)
        raise error

    # Only the first event leaves the process: the segment's window has no room for the others.
    with pytest.raises(type(error)):
        query.task(stream, [(event, "k") for event in LARGE], then=fail)
    assert threads_of(stream) == 0
    pravega.faults.clear()
    query.task(stream, [(b"after", "k")])
    found = list(client.read(stream))
    # The server has the first event of the failed task, and may append it before or after the next task's.
    assert found[0] == b"before"
    assert set(found[1:]) - {LARGE[0]} == {b"after"}
    assert not {*LARGE[1:]}.intersection(found)
    assert len(set(seen.writers)) == 2


def test_a_writer_that_met_an_error_is_not_kept(pravega, client, stream, query, seen):
    query.task(stream, numbered(0, 3))
    pravega.faults.fail("append")
    with pytest.raises(PravegaError, match="asked for by the test"):
        query.task(stream, numbered(3, 6))
    assert threads_of(stream) == 0
    query.task(stream, numbered(3, 6))
    with pytest.raises(EventTooLargeError):
        query.task(stream, [(b"x" * 100, "k")], max_event_size="10")
    query.task(stream, numbered(6, 9))
    assert list(map(int, client.read(stream))) == list(range(9))
    assert len(set(seen.writers)) == 2  # the writer of other settings had its own error
    assert pravega.faults.pending == 0


def test_a_writer_whose_connections_end_between_batches_writes_the_next_one_once(pravega, client, stream, query, seen):
    query.task(stream, numbered(0, 10))
    pravega.faults.drop_connections()
    query.task(stream, numbered(10, 20))
    pravega.faults.segment_moved("append")  # a failover that the writer learns of by a refusal
    query.task(stream, numbered(20, 30))
    assert list(map(int, client.read(stream))) == list(range(30))
    assert pravega.faults.pending == 0
    assert len(set(seen.writers)) == 1
    assert seen.requests["Hello"] >= 3


def test_a_token_that_has_expired_between_batches_is_replaced(pravega, client, stream, query, seen):
    query.task(stream, numbered(0, 10))
    before = pravega.controller.calls["getDelegationToken"]

    def refuse(session: Any, request: Append) -> None:
        session.reply(AuthTokenCheckFailed(request.request_id, "", 2))
        session.drop()

    pravega.store.on(Append, refuse)
    query.task(stream, numbered(10, 20))
    assert pravega.store.unused_rules == 0
    assert pravega.controller.calls["getDelegationToken"] == before + 1
    assert list(map(int, client.read(stream))) == list(range(20))
    assert len(set(seen.writers)) == 1


def test_a_scaled_stream_gets_another_writer(client, stream, query, seen):
    query.task(stream, numbered(0, 20))
    client.scale_stream(stream, 2)
    query.task(stream, numbered(20, 40))
    query.task(stream, numbered(40, 60))
    assert threads_of(stream) == 1
    assert len(seen.writers) == 1 + 2  # sessions of the first segment, and of its successors
    assert sorted(map(int, client.read(stream))) == list(range(60))


def test_a_stream_that_is_sealed_deleted_or_created_again_between_batches(client, stream, query):
    query.task(stream, numbered(0, 5))
    client.seal_stream(stream)
    with pytest.raises(StreamSealedError):
        query.task(stream, numbered(5, 10))
    assert threads_of(stream) == 0
    client.delete_stream(stream)
    with pytest.raises(StreamNotFoundError):
        query.task(stream, numbered(5, 10))
    client.create_stream(stream, 2)
    query.task(stream, numbered(5, 10))
    client.delete_stream(stream)
    client.create_stream(stream, 1)
    query.task(stream, numbered(10, 15))
    assert sorted(map(int, client.read(stream))) == list(range(10, 15))


def test_an_idle_writer_is_closed_and_the_next_task_opens_another(client, stream, query, seen, eventually, monkeypatch):
    monkeypatch.setattr(kept_writers, "IDLE_SECONDS", 0.05)
    for batch in range(2):
        query.task(stream, numbered(10 * batch, 10 * batch + 10))
        eventually(lambda: threads_of(stream) == 0)
    assert list(map(int, client.read(stream))) == list(range(20))
    assert len(set(seen.writers)) == 2


def test_the_number_of_idle_writers_has_a_limit(client, stream, query, seen, monkeypatch):
    monkeypatch.setattr(kept_writers, "MAX_IDLE", 2)
    streams = [StreamName(stream.scope, f"t{i}") for i in range(5)]
    for each in streams:
        client.create_stream(each, 1)
    query.task_with_targets(*streams)
    assert sum(map(threads_of, streams)) == 2
    query.task_with_targets(*streams[-2:])  # the last two are kept
    assert len(seen.writers) == 5
    assert [len(list(client.read(each))) for each in streams] == [1, 1, 1, 2, 2]


def test_a_task_with_more_streams_than_writers_loses_nothing(client, stream, query, monkeypatch):
    monkeypatch.setattr("pravega_connector.spark.sink.writers_by_stream.MAX_TARGETS", 2)
    streams = [StreamName(stream.scope, f"t{i}") for i in range(4)]
    for each in streams:
        client.create_stream(each, 1)
    for _ in range(2):
        query.task_with_targets(*streams)
    assert [list(client.read(each)) for each in streams] == [[b"x", b"x"]] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_leaves_the_writers_of_its_parent_alone(client, stream, query, seen):
    query.task(stream, numbered(0, 5))
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            kept_writers.kept_writers().close()  # the child's: none
            query.task(stream, numbered(5, 10))
        except ForkedError:  # gRPC cannot be used here
            ended = 7
        finally:
            os._exit(ended)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    query.task(stream, numbered(10, 15))
    assert sorted(map(int, client.read(stream))) == [*range(5), *range(10, 15)]
    assert len(seen.writers) == 1
