"""Transactions on a real server: all of their events, or none."""

import asyncio
import os
import signal
import uuid

import pyarrow as pa
import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import LeaseKeeper, PravegaClient, TransactionStatus
from pravega_connector.controller.rpc import ControllerChannel
from pravega_connector.errors import (
    ControllerUnavailableError,
    LeaseRangeError,
    StreamNotFoundError,
    StreamSealedError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionExpiredError,
    TransactionUnknownError,
)

Status = TransactionStatus


@pytest.fixture
def stream(client, stream_name):
    """A stream of three segments."""
    client.create_stream(stream_name, 3)
    return stream_name


def numbered(first, last):
    """A column of events, each with its key and its number, and the column of keys."""
    keys = [f"key {i % 13}" for i in range(first, last)]
    return pa.array([f"{key}|{i}" for key, i in zip(keys, range(first, last), strict=True)]), pa.array(keys)


def assert_holds(client, stream, count):
    """Every number once, and in order for each key."""
    found = [event.decode().split("|") for event in client.read(stream)]
    assert sorted(int(number) for _, number in found) == list(range(count))
    for key in {key for key, _ in found}:
        numbers = [int(number) for other, number in found if other == key]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("landed", [True, False])
def test_a_commit_whose_answer_is_lost_is_sent_again_only_if_it_was_lost_too(client, stream, monkeypatch, landed):
    call, sent = ControllerChannel.call, []

    def lossy(self, rpc, *arguments, **options):
        if rpc.name != "commitTransaction":
            return call(self, rpc, *arguments, **options)
        sent.append(rpc)
        answer = call(self, rpc, *arguments, **options) if landed or len(sent) > 1 else None
        if len(sent) == 1:
            raise ControllerUnavailableError("lost")
        return answer

    monkeypatch.setattr(ControllerChannel, "call", lossy)
    with client.transactions(stream).begin() as transaction:
        transaction.write_column(*numbered(0, 100))
    assert transaction.status() is Status.COMMITTED
    assert len(sent) == (1 if landed else 2)
    assert_holds(client, stream, 100)


def test_events_are_seen_after_the_commit_all_of_them(client, stream):
    with client.follow(stream) as reader:
        with client.transactions(stream, max_event_size=10 << 20).begin() as transaction:
            transaction.write_column(*numbered(0, 20_000))
            for event, key in zip(*(column.to_pylist() for column in numbered(20_000, 21_000)), strict=True):
                transaction.write(event.encode(), key)
            transaction.write(b"large|21000" + bytes(9 << 20), "large")
            transaction.flush()
            assert list(client.read(stream)) == []
            assert reader.poll(0) is None
            assert transaction.status() is Status.OPEN
        assert transaction.status() is Status.COMMITTED
        batch = reader.poll(30)
        assert batch is not None
        assert len(batch.events)
    events = [event.rstrip(b"\0") for event in client.read(stream)]
    assert sorted(int(event.split(b"|")[1]) for event in events) == list(range(21_001))


def test_an_aborted_one_is_never_seen(client, stream):
    writer = client.transactions(stream)
    for _ in range(3):
        transaction = writer.begin()
        transaction.write_column(*numbered(0, 1000))
        transaction.flush()
        assert transaction.abort().is_aborted
    assert list(client.read(stream)) == []
    with client.writer(stream) as plain:
        plain.write_column(*numbered(0, 100))
    assert_holds(client, stream, 100)


def test_commits_are_seen_in_the_order_of_the_commits(client, stream_name):
    client.create_stream(stream_name)
    writer = client.transactions(stream_name)
    first, second = writer.begin(), writer.begin()
    first.write(b"begun first")
    second.write(b"begun second")
    second.commit()
    first.commit()
    assert list(client.read(stream_name)) == [b"begun second", b"begun first"]


def test_the_answers_of_the_controller_are_told_apart(client, stream):
    writer = client.transactions(stream)
    committed, aborted, open_one = writer.begin(), writer.begin(), writer.begin()
    committed.write(b"x")
    assert committed.commit() is Status.COMMITTED
    assert committed.commit() is Status.COMMITTED
    assert aborted.abort().is_aborted
    assert aborted.abort().is_aborted
    for attempt in (committed.abort, committed.ping):
        with pytest.raises(TransactionCommittedError):
            attempt()
    for attempt in (aborted.commit, aborted.ping):
        with pytest.raises(TransactionAbortedError):
            attempt()
    unknown = client.transaction(stream, uuid.UUID(int=2**64 - 1))
    nowhere = client.transaction("nowhere", open_one.id)
    for transaction in (unknown, nowhere):
        assert transaction.status() is Status.UNKNOWN
        for attempt in (transaction.commit, transaction.abort, transaction.ping):
            with pytest.raises(TransactionUnknownError):
                attempt()
    client.transaction(stream, open_one.id).abort()
    open_one.write(b"late")
    with pytest.raises(TransactionAbortedError):
        open_one.commit()
    assert list(client.read(stream)) == [b"x"]


@pytest.mark.parametrize(("lease", "longest"), [(9.0, None), (600.001, 600.0)])
def test_a_lease_outside_the_servers_bounds_is_refused_at_the_beginning(client, stream, lease, longest):
    with pytest.raises(LeaseRangeError) as caught:
        client.transactions(stream, lease=lease).begin()
    assert caught.value.longest == longest


def test_a_ping_cannot_ask_for_more_than_the_server_allows(client, stream):
    with client.transactions(stream, lease=30).begin() as transaction:
        transaction.ping(600)
        with pytest.raises(LeaseRangeError):
            transaction.ping(601)
        assert transaction.status() is Status.OPEN


def test_missing_and_sealed_streams_take_none(client, stream):
    with pytest.raises(StreamNotFoundError):
        client.transactions("nowhere").begin()
    client.controller.seal_stream(stream)
    with pytest.raises(StreamSealedError):
        client.transactions(stream).begin()


WRITE = """
import sys, time
from pravega_connector.client import PravegaClient

uri, stream, count = sys.argv[1:]
transaction = PravegaClient(uri).transactions(stream).begin()
for number in range(int(count)):
    transaction.write(f"key {number % 13}|{number}".encode(), f"key {number % 13}")
transaction.flush()
transaction.write(b"never flushed")
print(transaction.id, flush=True)
time.sleep(600)
"""
COMMIT = """
import sys, uuid
from pravega_connector.client import PravegaClient

uri, stream, transaction = sys.argv[1:]
print(PravegaClient(uri).transaction(stream, uuid.UUID(transaction)).commit().name)
"""


def test_one_of_a_process_that_was_killed_is_committed_by_its_id(client, config, stream, start_python):
    writer = start_python(WRITE, config.controller, stream, 3000)
    transaction = client.transaction(stream, uuid.UUID(writer.stdout.readline().strip()))
    os.kill(writer.pid, signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL
    assert transaction.status() is Status.OPEN
    assert transaction.commit() is Status.COMMITTED
    events = [event for event in client.read(stream) if event != b"never flushed"]
    assert len(events) == 3000
    assert_holds_events(events)


def assert_holds_events(events):
    assert sorted(int(event.split(b"|")[1]) for event in events) == list(range(len(events)))


def test_another_process_commits_by_id(client, config, stream, start_python):
    transaction = client.transactions(stream).begin()
    transaction.write_column(*numbered(0, 500))
    transaction.detach()
    other = start_python(COMMIT, config.controller, stream, transaction.id)
    assert other.communicate(timeout=120)[0].strip() == "COMMITTED"
    assert_holds(client, stream, 500)


def test_a_stream_that_is_scaled_in_the_meantime_takes_all_in_order(client, stream):
    controller = client.controller
    with client.transactions(stream).begin() as transaction:
        transaction.write_column(*numbered(0, 1000))
        transaction.flush()
        with client.writer(stream) as plain:
            plain.write_column(pa.array([b"plain"]))
        before = controller.current_segments(stream)
        controller.scale_stream(stream, [r.id for r in before], [(0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.0)])
        transaction.write_column(*numbered(1000, 2000))
    # The commit has replaced all segments twice. A new one goes next to segments that the stream itself never had.
    with client.transactions(stream).begin() as transaction:
        transaction.write_column(*numbered(2000, 3000))
    events = [event for event in client.read(stream) if event != b"plain"]
    assert_holds_events(events)
    for key in range(13):
        numbers = [int(event.split(b"|")[1]) for event in events if event.startswith(b"key %d|" % key)]
        assert numbers == sorted(numbers)


@pytest.mark.long  # tests/unit/client/test_lease_keeper.py has the pings, tests/unit/testing/test_in_process.py a lease
def test_a_lease_ends_unless_it_is_pinged(client, stream, eventually):
    """Ten seconds: the shortest lease that the server allows."""
    writer = client.transactions(stream, lease=10)
    kept, left = writer.begin(), writer.begin()
    for transaction in (kept, left):
        transaction.write_column(*numbered(0, 100))
        transaction.flush()
    with LeaseKeeper(interval=2) as keeper:
        keeper.add(kept)
        eventually(lambda: left.status() is Status.ABORTED)
        keeper.check()
    with pytest.raises(TransactionExpiredError, match="lease of 10 s"):
        left.commit()
    left_by_id = PravegaClient(client.config).transaction(stream, left.id)
    with pytest.raises(TransactionAbortedError):
        left_by_id.commit()
    assert kept.commit() is Status.COMMITTED
    assert_holds(client, stream, 100)


def test_several_clients_write_to_one_transaction(client, stream, config):
    """Also if the transaction was begun in a copy of an epoch, whose segments have other names."""
    older = client.transactions(stream).begin()
    older.write_column(*numbered(0, 10))
    client.controller.scale_stream(stream, [0], [(0.0, 0.1), (0.1, 1 / 3)])
    client.controller.scale_stream(stream, [1], [(1 / 3, 0.5), (0.5, 2 / 3)])
    older.commit()  # which copies the first epoch and the present one
    shared = client.transactions(stream).begin()
    assert all(shared.id.int >> 96 != segment.id >> 32 for segment in client.controller.current_segments(stream))
    shared.write_column(*numbered(10, 100))
    for number in range(1, 4):
        with PravegaClient(config) as other, other.transactions(stream).join(shared.id) as part:
            part.write_column(*numbered(100 * number, 100 * (number + 1)))
            part.flush()
    assert_holds(client, stream, 10)
    assert shared.status() is Status.OPEN
    assert shared.commit() is Status.COMMITTED
    found = [event.decode().split("|") for event in client.read(stream)]
    assert sorted(int(number) for _, number in found) == list(range(400))


def test_a_joined_transaction_stays_open_after_an_error(client, stream):
    writer = client.transactions(stream, "string")
    shared = writer.begin()

    def use():
        with writer.join(shared.id) as part:
            part.write("a")
            raise KeyError("of the program")

    with pytest.raises(KeyError):
        use()
    assert shared.status() is Status.OPEN
    other = writer.join(shared.id)
    other.write("b", "key")
    other.flush()
    other.abort()
    with pytest.raises(TransactionAbortedError):
        shared.commit()
    for status, error in [(other.id, TransactionAbortedError), (uuid.UUID(int=7), TransactionUnknownError)]:
        with pytest.raises(error):
            writer.join(status)


def test_joining_with_asyncio(client, config, stream):
    shared = client.transactions(stream, "string").begin()

    async def main():
        async with AsyncPravegaClient(config) as one, one.transactions(stream, "string").join(shared.id) as part:
            await part.write("a", "key")

    asyncio.run(main())
    shared.commit()
    assert list(client.read(stream, "string")) == ["a"]
