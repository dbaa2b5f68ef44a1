"""Stores that refuse for a false reason, or that are alive and acknowledge nothing: recovery, or an error in time."""

import time

import pyarrow as pa
import pytest

from pravega_connector.core import events
from pravega_connector.errors import DeadlineExceededError
from pravega_connector.testing.requests import Append
from pravega_connector.wire import MergeSegments, SegmentIsSealed
from pravega_connector.writer import append_loop
from tests.support.stopwatch import Stopwatch

EVENTS = [b"a", b"b", b"c"]


@pytest.fixture(params=["small", "large"])
def append(request, monkeypatch) -> type:
    """Kind of the request that adds an event to its segment."""
    if request.param == "small":
        return Append
    monkeypatch.setattr(events, "_LARGE_FRAME", 0)
    return MergeSegments


def refuse_as_sealed(session, request):
    """Refuse, and with it all later appends of the writer over this connection, as a store does with a sealed one."""
    if isinstance(request, MergeSegments):
        segment = request.target
    elif request.writer_id not in session.previous:
        session.store.serve(session, request)
        return
    else:
        segment = session.writers[request.writer_id]
        del session.previous[request.writer_id]
    session.reply(SegmentIsSealed(request.request_id, segment, "", -1))


def write_all(writer) -> None:
    for event in EVENTS:
        writer.write_column(pa.array([event]))


@pytest.mark.parametrize("times", [1, 3])
def test_a_segment_that_is_falsely_called_sealed_takes_its_events(client, stream, store, times, append):
    store.on(append, refuse_as_sealed, times)
    with client.writer(stream.name, timeout=20) as writer:
        write_all(writer)
    assert store.unused_rules == 0
    assert store.segments[stream.segment(0)].events == EVENTS


def test_a_transaction_whose_segment_is_falsely_called_sealed_takes_its_events(client, stream, store, append):
    store.on(append, refuse_as_sealed)
    with client.transactions(stream.name, timeout=20).begin() as transaction:
        write_all(transaction)
    assert store.unused_rules == 0
    assert store.segments[stream.segment(0)].events == EVENTS


def test_a_segment_that_is_called_sealed_each_time_is_an_error_in_time_that_reports_it(client, stream, store, append):
    store.on(append, refuse_as_sealed, times=1_000_000)
    with client.writer(stream.name, timeout=20) as writer:
        write_all(writer)
        with pytest.raises(
            DeadlineExceededError,
            match=r"not acknowledged .*sealed.* but the controller reports that the segment has not ended",
        ):
            writer.flush(1)
        store.forget_rules()
    assert store.segments[stream.segment(0)].events == EVENTS


def acknowledge_nothing(session, request):
    """The store serves all other requests, and echoes KeepAlives."""


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(append_loop, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(append_loop, "_KEEP_ALIVE_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_store_that_echoes_keep_alives_in_place_of_an_acknowledgement_is_left(client, stream, store):
    store.on(Append, acknowledge_nothing)
    with client.writer(stream.name, timeout=20) as writer:
        writer.write_column(pa.array(EVENTS))
    assert store.unused_rules == 0
    assert store.connections >= 2
    assert store.segments[stream.segment(0)].events == EVENTS


@pytest.mark.usefixtures("impatient")
def test_keep_alives_of_a_writer_without_work_keep_its_connection(client, stream, store):
    with client.writer(stream.name, timeout=20) as writer:
        writer.write(b"a")
        writer.flush()
        time.sleep(1.5)  # nothing is to happen
        writer.write(b"b")
        writer.flush()
        assert store.connections == 1


@pytest.mark.usefixtures("impatient")
def test_callers_of_a_store_that_never_acknowledges_wait_as_long_as_they_said(client, stream, store):
    store.on(Append, acknowledge_nothing, times=1_000_000)
    writer = client.writer(stream.name, max_in_flight=1, timeout=0.5)
    writer.write_column(pa.array([b"a"]))
    calls = {
        "flush": writer.flush,
        "write": lambda: [writer.write(bytes(1 << 19)) for _ in range(4)],
        "write_column": lambda: writer.write_column(pa.array([b"b"])),
        "close": writer.close,
    }
    for call in calls.values():
        began = Stopwatch()
        with pytest.raises(DeadlineExceededError, match="not acknowledged"):
            call()
        assert began.within(5)
