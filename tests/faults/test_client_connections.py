"""The client on a real segment store whose connections are cut, stalled and delayed on the way."""

import random
import threading
import time

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.errors import ControllerUnavailableError, DeadlineExceededError, PravegaError
from tests.support.proxy import read_all
from tests.support.stopwatch import Stopwatch


def numbered(count, size):
    return [b"%08d" % i + bytes(size - 8) for i in range(count)]


# ---------------------------------------------------------------- cuts


@pytest.mark.parametrize("size", [50, 20_000], ids=["small events", "large blocks"])
def test_appends_cut_at_random_bytes_arrive_once_and_in_order(config, stream, proxy, size):
    chance = random.Random(size)
    events = numbered(8000 if size == 50 else 400, size)
    with proxy.between(PravegaClient(config)) as client, client.writer(stream) as writer:
        step = len(events) // 20
        for at in range(0, len(events), step):
            proxy.cut_after(chance.randrange(1, step * (size + 8)))
            writer.write_column(pa.array(events[at : at + step // 2]))
            for event in events[at + step // 2 : at + step]:
                writer.write(event)
            writer.flush()
            assert not proxy.cut_is_due
    assert proxy.cuts == 20
    assert read_all(config, stream) == events


def test_appends_cut_while_they_stream_arrive_once_and_in_order(config, stream, proxy):
    """The writer never waits: many blocks are in flight at each cut, and their acknowledgements are lost with it."""
    events = numbered(40_000, 200)
    chance = random.Random(1)
    done = threading.Event()

    def cut_again_and_again():
        while not done.wait(chance.uniform(0.02, 0.1)) and proxy.cuts < 20:
            proxy.cut()

    cutter = threading.Thread(target=cut_again_and_again)
    with proxy.between(PravegaClient(config)) as client, client.writer(stream, max_in_flight=2 << 20) as writer:
        proxy.delay(0.002)
        cutter.start()
        for at in range(0, len(events), 1000):
            writer.write_column(pa.array(events[at : at + 1000]))
        writer.flush()
        done.set()
        cutter.join()
    assert proxy.cuts >= 5
    assert read_all(config, stream) == events


def test_a_read_cut_again_and_again_is_whole(config, stream, proxy):
    events = numbered(20_000, 1000)  # several times what is read ahead
    with PravegaClient(config) as client, client.writer(stream) as writer:
        writer.write_column(pa.array(events))
    with proxy.between(PravegaClient(config)) as client:
        found = []
        for batch in client.read_columns(stream):
            found += batch.events.to_pylist()
            proxy.cut()
    assert proxy.cuts >= 4
    assert found == events


def test_a_reader_at_the_tail_is_cut_and_misses_nothing(config, stream, proxy):
    events = numbered(2000, 100)

    def produce():
        with PravegaClient(config) as client, client.writer(stream) as writer:
            sent = 0
            for at in range(0, 2000, 250):
                while not proxy.open or proxy.sent == sent:  # until the reader has asked again
                    time.sleep(0.005)
                writer.write_column(pa.array(events[at : at + 250]))
                writer.flush()
                sent = proxy.sent
                proxy.cut()

    producer = threading.Thread(target=produce)
    with proxy.between(PravegaClient(config)) as client, client.follow(stream) as reader:
        assert reader.poll(0.1) is None
        producer.start()
        found, end = [], time.monotonic() + 60
        while len(found) < len(events) and time.monotonic() < end:
            if (batch := reader.poll(1)) is not None:
                found += batch.events.to_pylist()
        producer.join()
    assert proxy.cuts == 8
    assert found == events


# ---------------------------------------------------------------- stalls


def test_a_stalled_store_exceeds_the_deadline_of_a_flush_and_loses_nothing_when_it_flows_again(config, stream, proxy):
    with proxy.between(PravegaClient(config)) as client, client.writer(stream) as writer:
        writer.write(b"before")
        writer.flush()
        sent, returned = proxy.sent, proxy.returned
        proxy.stall()
        writer.write(b"stalled")
        began = Stopwatch()
        with pytest.raises(DeadlineExceededError, match=r"15 bytes are not acknowledged"):
            writer.flush(1)
        assert began.within(5)
        assert (proxy.sent, proxy.returned) == (sent, returned)
        proxy.flow()
        writer.flush()
    assert read_all(config, stream) == [b"before", b"stalled"]


def test_closing_a_writer_of_a_stalled_store_returns(config, stream, proxy):
    proxy.stall()
    with proxy.between(PravegaClient(config)) as client:
        writer = client.writer(stream, timeout=1)
        writer.write(b"never")
        began = Stopwatch()
        with pytest.raises(DeadlineExceededError):
            writer.close()
        assert began.within(5)
        assert not [t for t in threading.enumerate() if t.name == f"pravega-writer {stream}"]
    assert proxy.connections == 1


def test_a_stalled_store_exceeds_the_deadline_of_a_read(config, stream, proxy):
    with PravegaClient(config) as client, client.writer(stream) as writer:
        writer.write_column(pa.array(numbered(5000, 1000)))
    with proxy.between(PravegaClient(config, timeout=1, failover_timeout=1)) as client:
        batches = iter(client.read_columns(stream))
        next(batches)
        proxy.stall()
        began = Stopwatch()
        with pytest.raises(DeadlineExceededError):
            list(batches)
        assert began.within(5)
        proxy.flow()
        assert sum(len(batch.events) for batch in client.read_columns(stream)) == 5000


def test_bytes_in_flight_are_bounded_while_the_store_stalls(config, stream, proxy):
    limit = 2 << 20
    events = numbered(5000, 1000)
    written = []

    with proxy.between(PravegaClient(config)) as client, client.writer(stream, max_in_flight=limit) as writer:

        def write():
            for at in range(0, len(events), 100):
                writer.write_column(pa.array(events[at : at + 100]))
                written.append(at)

        proxy.stall()
        thread = threading.Thread(target=write)
        thread.start()
        before = -1
        while len(written) > before:
            before = len(written)
            thread.join(1)
        assert thread.is_alive()
        # The column that waits for room is the one after that which reached the limit.
        assert limit <= len(written) * 100 * 1008 < limit + 101 * 1008
        proxy.flow()
        thread.join()
    assert read_all(config, stream) == events


def test_a_slow_way_changes_nothing(config, stream, proxy):
    proxy.delay(0.05)
    with proxy.between(PravegaClient(config)) as client:
        with client.writer(stream) as writer:
            writer.write_column(pa.array(numbered(300, 1000)))
        assert list(client.read(stream)) == numbered(300, 1000)
    assert proxy.connections >= 2


# ---------------------------------------------------------------- no server


@pytest.mark.long
def test_a_wrong_controller_address_is_reported_in_time(stream_name, closed_port):
    address = f"tcp://127.0.0.1:{closed_port}"
    began = Stopwatch()
    with PravegaClient(address) as client, pytest.raises(ControllerUnavailableError) as caught:
        client.create_stream(stream_name)
    assert began.within(15.5)
    text = str(caught.value)
    assert text.startswith("[PRAVEGA-CONTROLLER-UNAVAILABLE] ")
    assert address in text
    assert "\n" not in text


def test_a_segment_store_that_is_gone_is_reported_in_time(config, stream, closed_port):
    with PravegaClient(config, timeout=1, failover_timeout=1) as client:
        client.controller.endpoint = lambda stream, segment_id, **_: ("127.0.0.1", closed_port)
        began = Stopwatch()
        with pytest.raises(PravegaError, match=r"no connection to the segment store at 127\.0\.0\.1"):
            client.tail(stream)
        writer = client.writer(stream, timeout=1)
        writer.write(b"x")
        with pytest.raises(DeadlineExceededError, match="no connection to the segment store"):
            writer.flush()
        writer.abandon()
        assert began.within(10)


# ---------------------------------------------------------------- conditional appends and transactions


def test_conditional_appends_cut_at_random_bytes_are_reported_truly(config, stream, proxy):
    """In every second round against a writer that is not cut: what is said of a write is what the stream holds."""
    chance = random.Random(3)
    with (
        PravegaClient(config) as straight,
        proxy.between(PravegaClient(config)) as client,
        straight.revisioned(stream) as other,
        client.revisioned(stream) as log,
    ):
        expected, revision = [], log.oldest_revision()
        for number in range(60):
            proxy.cut_after(chance.randrange(1, 90))
            mine, theirs = b"mine %d" % number, b"theirs %d" % number
            rival = threading.Thread(target=other.write_conditionally, args=(revision, theirs))
            if number % 2:
                rival.start()
            written = log.write_conditionally(revision, mine)
            if number % 2:
                rival.join()
            revision, entry = other.entry_after(revision)
            assert (written == revision) == (entry == mine)
            assert entry == mine or number % 2
            expected.append(entry)
        assert [entry for _, entry in other.read_from(other.oldest_revision())] == expected
    assert proxy.cuts > 30


def test_a_transaction_cut_at_random_bytes_holds_its_events_once(config, stream, proxy):
    chance = random.Random(4)
    events = numbered(4000, 100)
    with proxy.between(PravegaClient(config)) as client, client.transactions(stream).begin() as transaction:
        for at in range(0, len(events), 200):
            proxy.cut_after(chance.randrange(1, 200 * 108))
            transaction.write_column(pa.array(events[at : at + 200]))
            transaction.flush()
    assert proxy.cuts == 20
    assert read_all(config, stream) == events
