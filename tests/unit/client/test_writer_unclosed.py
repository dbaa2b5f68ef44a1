"""Writers that are not closed: a ResourceWarning with the number of their events, and no silent loss."""

import asyncio
import gc
import logging
import threading
import warnings

import pyarrow as pa
import pytest

from pravega_connector import metrics
from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.errors import StreamSealedError
from pravega_connector.testing import InProcessPravega
from pravega_connector.testing.requests import Append
from pravega_connector.wire import StreamName
from pravega_connector.writer import append_loop

pytestmark = pytest.mark.usefixtures("soon_kept_alive")


@pytest.fixture
def soon_kept_alive(monkeypatch):
    monkeypatch.setattr(append_loop, "_KEEP_ALIVE_SECONDS", 0.1)  # a loop checks its time limit then, at the latest


@pytest.fixture
def go(store):
    """Event that lets the store serve appends."""
    go = threading.Event()

    def wait(session, request):
        assert go.wait(120)
        store.serve(session, request)

    store.on(Append, wait, times=100)
    yield go
    go.set()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "pravega-writer scope/stream"]


def events_of(stream):
    return stream.store.segments[stream.segment(0)].events


def unclosed(what: str, count: int):
    return pytest.warns(ResourceWarning, match=rf"^unclosed {what} \(unflushed events: {count}\); use it in")


def test_a_collected_writer_warns_of_its_events_delivers_them_and_ends_its_thread(client, stream, go, eventually):
    writer = client.writer(stream.name)
    writer.write_column(pa.array([b"a", b"b"]))
    writer.write(b"c", "key")
    with unclosed(r"EventWriter\(scope/stream\)", 3):
        del writer
    assert threads()
    go.set()
    eventually(lambda: not threads())
    assert events_of(stream) == [b"a", b"b", b"c"]


def test_a_collected_writer_that_was_flushed_warns_and_ends_its_thread(client, stream, eventually):
    writer = client.writer(stream.name)
    writer.write(b"a")
    writer.flush()
    with unclosed(r"EventWriter\(scope/stream\)", 0):
        del writer
    eventually(lambda: not threads())


def test_a_writer_in_a_cycle_is_collected(client, stream, eventually):
    class Owner:
        pass

    owner = Owner()
    owner.owner, owner.writer = owner, client.writer(stream.name)
    owner.writer.write(b"a")
    with unclosed(r"EventWriter\(scope/stream\)", 1):
        del owner
        gc.collect()
    eventually(lambda: not threads())
    assert events_of(stream) == [b"a"]


def test_events_of_a_collected_writer_that_are_not_delivered_in_time_are_a_logged_loss(
    client, stream, go, eventually, caplog
):
    writer = client.writer(stream.name, timeout=0.5)
    writer.write(b"a")
    with unclosed(r"EventWriter\(scope/stream\)", 1):
        del writer
    eventually(lambda: not threads())
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        "EventWriter(scope/stream) was not closed, and 1 of its events are lost: the delivery timeout has passed"
    ]


def test_events_of_a_collected_writer_that_has_failed_are_a_logged_loss(client, stream, eventually, caplog):
    writer = client.writer(stream.name)
    stream.seal_all()
    writer.write(b"a")
    with pytest.raises(StreamSealedError):
        writer.flush()
    eventually(lambda: not threads())
    with unclosed(r"EventWriter\(scope/stream\)", 1):
        del writer
        gc.collect()  # its error refers to it
    assert "1 of its events are lost: [PRAVEGA-STREAM-SEALED]" in caplog.text


def test_a_collected_transaction_warns_and_is_not_committed(client, stream, eventually):
    open_before = dict(metrics.TRANSACTIONS_OPEN.series())
    transaction = client.transactions(stream.name).begin()
    assert dict(metrics.TRANSACTIONS_OPEN.series()) != open_before
    transaction.write(b"a")
    with unclosed(rf"OpenTransaction\(scope/stream, {transaction.id}\)", 1):
        del transaction
    eventually(lambda: not threads())
    assert dict(metrics.TRANSACTIONS_OPEN.series()).get(("scope/stream",), 0) == 0
    assert events_of(stream) == []


def test_what_was_closed_abandoned_aborted_or_detached_is_collected_without_a_word(client, stream):
    with client.writer(stream.name) as writer:
        writer.write(b"a")
    abandoned = client.writer(stream.name)
    abandoned.write(b"b")
    abandoned.abandon()
    begin = client.transactions(stream.name).begin
    with begin() as committed:
        committed.write(b"c")
    aborted, detached = begin(), begin()
    aborted.write(b"d")
    aborted.abort()
    detached.detach()
    with warnings.catch_warnings(record=True) as seen:
        del writer, abandoned, committed, aborted, detached
        gc.collect()
    assert seen == []
    assert threads() == []


def test_a_collected_writer_of_an_event_loop_delivers_while_the_loop_runs():
    async def main():
        async with AsyncPravegaClient(pravega.uri) as client:
            await client.create_stream(stream, 1)
            writer = client.writer(stream)
            await writer.write(b"a")
            with unclosed(r"EventWriter\(scope/async\)", 1):
                del writer
                gc.collect()
            async with client.follow(stream, start="earliest") as reader:
                return list((await reader.poll(20)).values())

    stream = StreamName("scope", "async")
    with InProcessPravega() as pravega:
        assert asyncio.run(main()) == [b"a"]


def test_a_collected_byte_writer_warns_and_its_bytes_are_written():
    with InProcessPravega() as pravega, pravega.client() as client:
        client.create_stream("scope/bytes", 1)
        file = client.byte_writer("scope/bytes")
        file.write(b"abc")
        with pytest.warns(ResourceWarning, match="^unclosed file that appends to stream scope/bytes; use it in a"):
            del file
        with client.byte_writer("scope/bytes") as closed:
            assert closed.tell() == 3
        del closed


# ---------------------------------------------------------------- the end of the process

PROGRAM = """
import gc, os, sys
from pravega_connector import PravegaClient

def write(client, count):
    writer = client.writer("scope/stream")
    for number in range(count):
        writer.write(b"x")
    return writer

client = PravegaClient(sys.argv[1])
{}
"""
AT_EXIT = "unclosed at the end of the process: EventWriter(scope/stream) (unflushed events: 3)"


@pytest.fixture
def frozen():
    """Address of a server whose store serves nothing."""
    with InProcessPravega() as pravega:
        with pravega.client() as client:
            client.create_stream("scope/stream", 1)
        with pravega.faults.frozen():
            yield pravega.uri


@pytest.mark.parametrize("body", ["w = write(client, 3)", "write(client, 3)"], ids=["alive", "collected"])
@pytest.mark.parametrize("shown", [True, False])
def test_events_that_a_process_takes_with_it_are_reported(frozen, start_python, body, shown):
    process = start_python(PROGRAM.format(body), frozen, PYTHONWARNINGS="default" if shown else "ignore")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "the process ends before 3 events of EventWriter(scope/stream) are durable: close the writer first" in errors
    assert (AT_EXIT in errors) is shown


@pytest.mark.parametrize(
    "body",
    [
        "w = write(client, 3); w.abandon()",
        "w = write(client, 0)",
        "w = write(client, 3)\nif os.fork():\n    os.wait(); os._exit(0)\ndel w; gc.collect()",
        "write(client, 3)\nif os.fork():\n    os.wait(); os._exit(0)",
    ],
    ids=["abandoned", "nothing written", "a child's copy", "a child's copy of a collected one"],
)
def test_a_process_that_loses_nothing_of_its_own_ends_without_a_word(frozen, start_python, body):
    process = start_python(PROGRAM.format(body), frozen, PYTHONWARNINGS="ignore")
    output = process.communicate(timeout=120)
    assert output == ("", "")
