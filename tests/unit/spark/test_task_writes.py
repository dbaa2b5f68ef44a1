"""Tasks that write inside the JVM, with their Python process: attempts, ends, and blocks that are taken over."""

import base64
import itertools
import json
import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.errors import ConfigError, ConnectionLostError, NullEventError, UnsupportedModeError
from pravega_connector.spark.jvm import task_writes
from pravega_connector.spark.jvm.task_writes import TaskWrites
from pravega_connector.spark.sink import transactions
from pravega_connector.spark.sink.writers import PravegaBatchWriter
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from pyspark_pravega import DefaultSource
from tests.conftest import Eventually

STREAM = StreamName("jvm", "target")
SCHEMA = StructType([StructField("event", BinaryType())])
Request = Callable[..., dict[str, Any]]
_sessions = itertools.count(1)


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        client.create_stream(STREAM, 1)
        yield client
    transactions._kept().close()  # the server is closed next, so nothing may ping it
    transactions._kept_of_process.clear()


@pytest.fixture
def writer(pravega: InProcessPravega, client: PravegaClient) -> PravegaBatchWriter:
    ids = {"txn_app_id": "app", "txn_version": "1"}
    made = DefaultSource({"controller": pravega.uri, "path": str(STREAM)} | ids).writer(SCHEMA, overwrite=False)
    assert isinstance(made, PravegaBatchWriter)
    return made


@pytest.fixture
def attempt(writer: PravegaBatchWriter) -> Callable[[], Request]:
    """``attempt()`` is a task; its result makes requests, such as ``request("write_open")``."""

    def attempt() -> Request:
        session = next(_sessions)

        def request(do: str, **fields: Any) -> dict[str, Any]:
            options = base64.b64encode(pickle.dumps(writer)).decode()
            task = {"session": session, "options": options, "partition": 0, "properties": {}, "fails": False}
            return task | {"do": do} | fields

        return request

    return attempt


def block(number: int, before: int, event: bytes, sender: uuid.UUID) -> dict[str, Any]:
    frame = bytes(4) + len(event).to_bytes(4, "big") + event
    return {
        "segment": number, "writer": str(sender), "before": before,
        "positions": base64.b64encode(np.full(1, 0.5, ">f8").tobytes()).decode(),
        "data": base64.b64encode(frame).decode(),
    }  # fmt: skip


def finish(request: Request, writes: TaskWrites, rows: int, size: int) -> Any:
    message = writes.answer(request("write_finish", rows=rows, bytes=size, first=-1, second=7))
    return pickle.loads(base64.b64decode(message))


def test_of_two_attempts_only_the_one_whose_message_is_committed_is_visible(
    attempt: Callable[[], Request],
    writer: PravegaBatchWriter,
    client: PravegaClient,
    pravega: InProcessPravega,
    eventually: Eventually,
) -> None:
    writes, tasks = TaskWrites(), [attempt(), attempt()]
    for task in tasks:
        (place,) = writes.answer(task("write_open"))["segments"]
        writes.answer(task("write_block", **block(place["id"], 0, b"event", uuid.uuid4())))
        writes.answer(task("write_take_over", segment=place["id"], text="closed"))
    assert len(pravega.faults.open_transactions) == 2
    prepared = finish(tasks[0], writes, 1, 5)
    assert prepared.parts[0].content.total == (2**64 - 1) << 64 | 7
    for task in tasks:
        writes.end(task("")["session"])
    eventually(lambda: len(pravega.faults.open_transactions) == 1)
    writer.commit([prepared])
    assert list(client.read(STREAM)) == [b"event"]


def test_blocks_that_have_arrived_are_not_written_again(
    attempt: Callable[[], Request], writer: PravegaBatchWriter, client: PravegaClient
) -> None:
    """The second take-over has the same writer id and the first block again, as after a lost answer."""
    writes, task, sender = TaskWrites(), attempt(), uuid.uuid4()
    (place,) = writes.answer(task("write_open"))["segments"]
    for blocks in ([b"a", b"b"], [b"a", b"b", b"c"]):
        for before, event in enumerate(blocks):
            writes.answer(task("write_block", **block(place["id"], before, event, sender)))
        answer = writes.answer(task("write_take_over", segment=place["id"], text="closed"))
        assert answer["segments"] == [place]
    writer.commit([finish(task, writes, 3, 3)])
    assert list(client.read(STREAM)) == [b"a", b"b", b"c"]


def test_a_task_that_has_ended_begins_nothing(
    attempt: Callable[[], Request], client: PravegaClient, pravega: InProcessPravega
) -> None:
    writes, task = TaskWrites(), attempt()
    writes.end(task("")["session"])
    with pytest.raises(ConfigError, match="the task has ended"):
        writes.answer(task("write_open"))
    assert pravega.faults.open_transactions == []


@pytest.mark.parametrize(
    ("do", "fields"),
    [
        ("write_finish", {"rows": 1, "bytes": 5, "first": 0, "second": 7}),
        ("write_block", {}), ("write_take_over", {}), ("write_piece", {}), ("write_large", {"key": None}),
    ],
)  # fmt: skip
def test_a_new_process_continues_no_task(
    attempt: Callable[[], Request],
    client: PravegaClient,
    pravega: InProcessPravega,
    eventually: Eventually,
    do: str,
    fields: dict[str, Any],
) -> None:
    first, task = TaskWrites(), attempt()
    first.answer(task("write_open"))
    with pytest.raises(ConnectionLostError, match="has ended"):
        TaskWrites().answer(task(do, **fields))
    assert list(client.read(STREAM)) == []
    first.end(task("")["session"])
    eventually(lambda: not pravega.faults.open_transactions)


def test_a_task_without_rows_is_finished_at_once(
    attempt: Callable[[], Request], client: PravegaClient, pravega: InProcessPravega
) -> None:
    assert finish(attempt(), TaskWrites(), 0, 0).parts == ()
    assert pravega.faults.open_transactions == []


def test_a_task_without_the_ids_of_its_batch_begins_nothing(
    attempt: Callable[[], Request], client: PravegaClient, pravega: InProcessPravega
) -> None:
    options = {"controller": pravega.uri, "path": str(STREAM), "writer_mode": "exactly_once"}
    streaming = DefaultSource(options).streamWriter(SCHEMA, overwrite=False)
    pickled = base64.b64encode(pickle.dumps(streaming)).decode()
    with pytest.raises(UnsupportedModeError, match="needs batches, which a continuous trigger does not have"):
        TaskWrites().answer(attempt()("write_open", options=pickled))
    assert pravega.faults.open_transactions == []


def test_take_overs_are_counted_and_end_with_the_error(
    attempt: Callable[[], Request],
    writer: PravegaBatchWriter,
    client: PravegaClient,
    pravega: InProcessPravega,
    eventually: Eventually,
) -> None:
    writes, task, health = TaskWrites(), attempt(), writer.task_client().stores.health
    (place,) = writes.answer(task("write_open"))["segments"]
    before = health.counters.as_dict()["reconnects"]
    writes.answer(task("write_take_over", segment=place["id"], text="closed"))
    with pytest.raises(ConnectionLostError, match="closed"):
        writes.answer(task("write_take_over", segment=place["id"], text="closed", fails=True))
    assert health.counters.as_dict()["reconnects"] == before + 2
    writes.end(task("")["session"])
    eventually(lambda: not pravega.faults.open_transactions)


def test_a_task_that_ends_while_its_process_starts_leaves_no_transaction(
    attempt: Callable[[], Request], pravega: InProcessPravega, eventually: Eventually
) -> None:
    task = attempt()
    with subprocess.Popen(
        [sys.executable, "-m", "pravega_connector.spark.jvm.support"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(json.dumps(task(do, id=1)) + "\n" for do in ("write_open", "end"))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        eventually(lambda: not pravega.faults.open_transactions)
        process.stdin.close()
        assert process.wait(timeout=120) == 0


def test_a_request_that_waits_while_its_task_ends_begins_no_transaction(
    attempt: Callable[[], Request], pravega: InProcessPravega
) -> None:
    request = attempt()("write_open")
    task = task_writes._Task(request)
    task.drop()
    with pytest.raises(ConfigError, match="the task has ended"):
        task.answer(request)
    assert pravega.faults.open_transactions == []


def test_a_null_event_has_the_error_of_the_sink(attempt: Callable[[], Request], client: PravegaClient) -> None:
    with pytest.raises(NullEventError, match="3"):
        TaskWrites().answer(attempt()("write_refused", row=3, null=True))


def test_finished_transactions_are_kept_open_until_no_task_has_run_for_a_while(
    attempt: Callable[[], Request],
    client: PravegaClient,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    monkeypatch.setattr("pravega_connector.spark.jvm.task_writes.IDLE_SECONDS", 0.5)
    writes, task = TaskWrites(), attempt()
    (place,) = writes.answer(task("write_open"))["segments"]
    writes.answer(task("write_block", **block(place["id"], 0, b"event", uuid.uuid4())))
    writes.answer(task("write_take_over", segment=place["id"], text="closed"))
    (part,) = finish(task, writes, 1, 5).parts
    keeper = transactions._kept()._keeper
    assert part.transaction in keeper._due
    writes.end(task("")["session"])
    with pytest.raises(ConfigError, match="the task has ended"):
        writes.answer(task("write_piece"))  # a late request is no task that runs
    eventually(lambda: part.transaction not in keeper._due)
    status = client.controller.transaction_status(STREAM, part.transaction)
    assert status is TransactionStatus.OPEN, "it ends when its lease expires"
