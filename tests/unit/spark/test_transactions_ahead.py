"""When a task that writes exactly once begins its transaction, and what becomes of one that is not needed."""

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StructField, StructType

from pravega_connector.controller.service import ControllerClient
from pravega_connector.spark.sink import transactions
from pravega_connector.spark.sink.transactions import TaskPrepared
from pravega_connector.spark.sink.writers import PravegaBatchWriter
from pravega_connector.testing import InProcessPravega
from pyspark_pravega import DefaultSource

ROWS = pa.table({"event": [b"row"]}).to_batches()


@pytest.fixture(scope="module")
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as served, served.client() as client:
        client.create_scope("ahead")
        client.create_stream("ahead/out", 1)
        yield served


@pytest.fixture
def asked(pravega: InProcessPravega) -> Callable[[str], int]:
    """How often the controller was asked for something since the test has begun."""
    before = dict(pravega.controller.calls)
    return lambda call: pravega.controller.calls[call] - before.get(call, 0)


@pytest.fixture
def writer(pravega: InProcessPravega, monkeypatch: pytest.MonkeyPatch) -> Iterator[PravegaBatchWriter]:
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # of this test: no Spark could be started here after it
    context = TaskContext._getOrCreate()
    context._partitionId, context._localProperties = 0, {}
    ids = {"txn_app_id": str(uuid.uuid4()), "txn_version": "1"}
    made = DefaultSource({"controller": pravega.uri, "path": "ahead/out", **ids})
    writer = made.writer(StructType([StructField("event", BinaryType())]), overwrite=False)
    assert isinstance(writer, PravegaBatchWriter)
    writer.write(iter(ROWS))
    yield writer
    transactions._kept().close()  # no ping to the stopped server
    transactions._kept_of_process.clear()


def test_begins_before_its_first_row_where_the_last_task_had_rows(writer, asked, eventually):
    before = asked("createTransaction")

    def rows() -> Iterator[pa.RecordBatch]:
        eventually(lambda: asked("createTransaction") == before + 1)
        yield from ROWS

    message = writer.write(rows())
    assert isinstance(message, TaskPrepared)
    assert len(message.parts) == 1
    assert asked("createTransaction") == before + 1, "it is the one that the rows are in"


def test_one_without_rows_is_dropped_and_the_next_task_waits_for_a_row(writer, asked, eventually):
    aborted, begun = asked("abortTransaction"), asked("createTransaction")
    message = writer.write(iter(()))
    assert isinstance(message, TaskPrepared)
    assert message.parts == ()
    eventually(lambda: asked("abortTransaction") == aborted + 1)
    assert asked("createTransaction") == begun + 1
    writer.write(iter(()))
    assert asked("createTransaction") == begun + 1


def test_a_task_without_rows_does_not_wait_for_the_end_of_its_transaction(writer, monkeypatch, asked, eventually):
    begun, ended, go_on = asked("createTransaction"), threading.Event(), threading.Event()
    abort = ControllerClient.abort_transaction

    def slow(*args: Any, **kwargs: Any) -> Any:
        assert go_on.wait(120)
        ended.set()
        return abort(*args, **kwargs)

    def no_rows() -> Iterator[pa.RecordBatch]:
        eventually(lambda: asked("createTransaction") == begun + 1)
        yield from ()

    monkeypatch.setattr(ControllerClient, "abort_transaction", slow)
    message = writer.write(no_rows())
    assert isinstance(message, TaskPrepared)
    assert message.parts == ()
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(120)


def test_of_a_task_that_fails_before_its_first_row_is_dropped_before_the_process_ends(writer, asked):
    aborted = asked("abortTransaction")

    def rows() -> Iterator[pa.RecordBatch]:
        yield from ()
        raise ValueError("no rows today")

    with pytest.raises(ValueError, match="no rows today"):
        writer.write(rows())
    assert asked("abortTransaction") == aborted + 1
