"""The faults of an in-process Pravega happen, and the client recovers or raises a clear error."""

import itertools
import threading
import time

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient, TransactionStatus
from pravega_connector.errors import ConfigError, ControllerUnavailableError, SegmentStoreError, TransactionAbortedError
from pravega_connector.wire import StreamCut
from tests.support.stopwatch import Stopwatch

EVENTS = [b"%d" % number for number in range(200)]


def write(client, stream, events=EVENTS):
    with client.writer(stream) as writer:
        for at in range(0, len(events), 20):
            writer.write_column(pa.array(events[at : at + 20]))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        *itertools.product(["drop_before", "drop_after", "segment_moved"], ["setup", "append", "any"]),
        ("repeat_reply", "append"),
        ("repeat_reply", "setup"),
    ],
)
def test_a_writer_comes_through(pravega, pravega_client, pravega_stream, fault, kind):
    getattr(pravega.faults, fault)(kind, times=2)
    write(pravega_client, pravega_stream)
    assert pravega.faults.pending == 0
    assert list(pravega_client.read(pravega_stream)) == EVENTS


@pytest.mark.parametrize("fault", ["drop_before", "drop_after", "segment_moved", "fail"])
def test_a_reader_comes_through(pravega, pravega_client, pravega_stream, fault):
    write(pravega_client, pravega_stream)
    getattr(pravega.faults, fault)("read")
    assert list(pravega_client.read(pravega_stream)) == EVENTS
    assert pravega.faults.pending == 0
    getattr(pravega.faults, fault)("read")
    with pravega_client.follow(pravega_stream, start="earliest") as reader:
        assert reader.poll(10).events.to_pylist() == EVENTS
    assert pravega.faults.pending == 0


def test_connections_that_are_dropped_in_the_middle(pravega, pravega_client, pravega_stream):
    with pravega_client.writer(pravega_stream) as writer, pravega_client.follow(pravega_stream) as reader:
        found = []
        for number, event in enumerate(EVENTS):
            writer.write(event)
            if number % 50 == 25:
                writer.flush()
                pravega.faults.drop_connections()
        writer.flush()
        while len(found) < len(EVENTS):
            found += reader.poll(10).events.to_pylist()
    assert found == EVENTS
    assert pravega.store.drops >= 4


def test_what_is_delayed_is_late_by_that(pravega, pravega_client, pravega_stream):
    pravega.faults.delay(0.3, "append")
    began = time.monotonic()
    pravega_client.write(pravega_stream, b"late")
    assert time.monotonic() - began >= 0.3
    pravega.faults.controller_delay(0.3, "getStreamConfiguration")
    began = time.monotonic()
    pravega_client.describe(pravega_stream)
    assert time.monotonic() - began >= 0.3


def test_clearing_ends_a_delay(pravega, pravega_client, pravega_stream):
    pravega.faults.delay(600, "append")
    with pravega_client.writer(pravega_stream) as writer:
        writer.write(b"event")
        while pravega.faults.pending:  # until it waits
            writer.write(b"")
            time.sleep(0.01)
        pravega.faults.clear()
    assert next(iter(pravega_client.read(pravega_stream))) == b"event"


def test_an_error_of_the_store_is_reported(pravega, pravega_stream):
    pravega.faults.fail("info", times=10_000)
    with PravegaClient(pravega.config, timeout=1, failover_timeout=1) as client, pytest.raises(SegmentStoreError):
        client.tail(pravega_stream)
    pravega.faults.clear()


def test_a_controller_that_is_unavailable_comes_back(pravega, pravega_stream):
    with PravegaClient(pravega.config, timeout=5, failover_timeout=5) as client:
        with pravega.faults.controller_away(), pytest.raises(ControllerUnavailableError):
            client.describe(pravega_stream)
        assert client.describe(pravega_stream).stream == pravega_stream


def test_a_call_that_fails_is_made_again(pravega, pravega_client):
    pravega.faults.controller_fails(times=2)
    assert pravega_client.create_scope("other")
    pravega.faults.controller_loses_answers("createScope")
    assert not pravega_client.create_scope("another"), "it finds its own work done"
    assert pravega_client.scope_exists("another")


def test_leases_that_end_abort_their_transactions(pravega, pravega_client, pravega_stream):
    transaction = pravega_client.transactions(pravega_stream).begin()
    transaction.write(b"gone")
    assert pravega.faults.end_leases() == 1
    assert transaction.status() is TransactionStatus.ABORTED
    with pytest.raises(TransactionAbortedError):
        transaction.commit()
    assert list(pravega_client.read(pravega_stream)) == []


def test_a_frozen_store_answers_after_the_thaw(pravega, pravega_client, pravega_stream):
    with pravega_client.writer(pravega_stream) as writer:
        writer.write(b"before")
        writer.flush()
        with pravega.faults.frozen():
            writer.write(b"meanwhile")
        writer.flush()
    assert list(pravega_client.read(pravega_stream)) == [b"before", b"meanwhile"]


def test_a_groups_reader_keeps_to_its_times_while_a_store_is_frozen(pravega, pravega_client, pravega_stream):
    def until(value):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if value in [event.value for event in reader.poll(0.5)]:
                return
        raise AssertionError(f"{value} did not come")

    group = pravega_client.reader_group(
        f"{pravega_stream.scope}/readers", pravega_stream, checkpoint_interval=60.0, refresh=0.2
    )
    pravega_client.write(pravega_stream, "before", "string")
    with group.reader("one", "string") as reader:
        until("before")
        with pravega.faults.frozen():
            end = time.monotonic() + 20
            while reader._turning is None:  # the turns until now were answered
                assert time.monotonic() < end
                assert reader.poll(0.01) == []
            begin = Stopwatch()
            assert [reader.poll(0.3) for _ in range(3)] == [[], [], []]
            assert begin.lasted(0.9)
            assert begin.within(2.5)
        pravega_client.write(pravega_stream, "after", "string")
        until("after")
        with pravega.faults.frozen():
            while reader._turning is None:
                assert reader.poll(0.01) == []
            threading.Timer(1.0, pravega.faults._store.thaw).start()
            begin = time.monotonic()
            reader.close()
            assert time.monotonic() - begin > 0.5, "it leaves when the turn is over"
    assert group.online_readers() == []


def test_faults_that_are_none_are_refused(pravega):
    with pytest.raises(ConfigError, match=r"'apend'.*append"):
        pravega.faults.drop_before("apend")
    with pytest.raises(ConfigError, match=r"'createStrem'.*createStream"):
        pravega.faults.controller_fails("createStrem")
    assert pravega.faults.pending == 0


def test_a_client_that_does_not_read_its_answers_holds_nobody_up(pravega, pravega_client, pravega_stream):
    """Its reads ahead are more than a socket takes, and it asks the controller and writes before it takes them."""
    events = [bytes(1 << 20)] * 16
    write(pravega_client, pravega_stream, events)
    batches = iter(pravega_client.read_columns(pravega_stream))
    first = next(batches)
    pravega_client.write(pravega_stream, b"another")
    assert pravega_client.tail(pravega_stream) != StreamCut(pravega_stream, {0: 0})
    rest = list(itertools.chain.from_iterable(batch.events.to_pylist() for batch in batches))
    assert len(first.events) + len(rest) == len(events)


def committed(client, stream, *events):
    transaction = client.transactions(stream).begin()
    for event in events:
        transaction.write(event, routing_key=event.decode())
    transaction.commit(wait=False)
    return transaction


@pytest.mark.pravega_segments(2)
def test_a_commit_that_is_held_becomes_visible_segment_by_segment(pravega, pravega_client, pravega_stream):
    events = [b"%d" % number for number in range(20)]
    with pravega.faults.commits_held():
        first = committed(pravega_client, pravega_stream, *events)
        second = committed(pravega_client, pravega_stream, b"later")
        assert list(pravega_client.read(pravega_stream)) == []
        assert pravega.faults.show_commit(second.id, 0)
        assert pravega.faults.show_commit(second.id, 1)
        assert not pravega.faults.show_commit(second.id)
        assert second.status() is TransactionStatus.COMMITTED
        assert list(pravega_client.read(pravega_stream)) == [b"later"], "it has overtaken the first"
        assert pravega.faults.show_commit(first.id, 1)
        part = len(list(pravega_client.read(pravega_stream))) - 1
        assert 0 < part < len(events)
        assert first.status() is TransactionStatus.COMMITTING
        assert first.commit(wait=False).is_committed, "once more: it changes nothing"
    assert first.status() is TransactionStatus.COMMITTED
    assert sorted(pravega_client.read(pravega_stream)) == sorted([*events, b"later"])


def test_a_held_commit_survives_scaling(pravega, pravega_client, pravega_stream):
    with pravega.faults.commits_held():
        held = committed(pravega_client, pravega_stream, b"a", b"b")
        pravega_client.scale_stream(pravega_stream, 2)
        assert pravega.faults.show_commit(held.id)
    assert held.status() is TransactionStatus.COMMITTED
    assert sorted(pravega_client.read(pravega_stream)) == [b"a", b"b"]


def test_a_dropped_commit_is_carried_out_when_it_is_asked_for_again(pravega, pravega_client, pravega_stream):
    pravega.faults.drop_commits()
    dropped = committed(pravega_client, pravega_stream, b"a")
    assert pravega.faults.pending == 0
    committed(pravega_client, pravega_stream, b"b")
    assert list(pravega_client.read(pravega_stream)) == [b"b"]
    assert dropped.status() is TransactionStatus.COMMITTING
    assert not pravega.faults.show_commit(dropped.id)
    dropped.commit()
    assert list(pravega_client.read(pravega_stream)) == [b"b", b"a"]


def test_leases_end_one_by_one(pravega, pravega_client, pravega_stream):
    first, second = (pravega_client.transactions(pravega_stream).begin() for _ in range(2))
    assert pravega.faults.open_transactions == [first.id, second.id]
    assert pravega.faults.end_leases(second.id) == 1
    assert second.status() is TransactionStatus.ABORTED
    second.detach()
    assert first.commit().is_committed


def test_transactions_that_have_ended_are_forgotten(pravega, pravega_client, pravega_stream):
    done = committed(pravega_client, pravega_stream, b"a")
    left = pravega_client.transactions(pravega_stream).begin()
    assert pravega.faults.forget_transactions() == 1
    assert (done.status(), left.status()) == (TransactionStatus.UNKNOWN, TransactionStatus.OPEN)
    assert list(pravega_client.read(pravega_stream)) == [b"a"]
    left.abort()
