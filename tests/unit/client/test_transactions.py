"""Transactions on a store that fails: every event once and in order, or an error that says what became of them."""

import time
import uuid

import pyarrow as pa
import pytest

from pravega_connector.client import TransactionStatus
from pravega_connector.errors import (
    ConfigError,
    DeadlineExceededError,
    EventTooLargeError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionExpiredError,
    TransactionUnknownError,
)
from pravega_connector.testing.requests import Append
from pravega_connector.wire import NoSuchSegment
from pravega_serde.routing import segment_key
from tests.support.fake_stream import FakeStream

EVENTS = [b"%d" % i for i in range(120)]
Status = TransactionStatus


def events_of(stream, number=0):
    return stream.store.segments[stream.segment(number)].events


@pytest.fixture
def transaction(client, stream):
    """An open transaction on a stream of one segment."""
    transaction = client.transactions(stream.name, lease=20, timeout=20).begin()
    yield transaction
    transaction._writer.abandon()


# ---------------------------------------------------------------- what is written


def test_events_are_visible_from_the_commit_on(stream, transaction):
    transaction.write(b"one", "key")
    transaction.write_column(pa.array([b"two", b"three"]), pa.array(["key", None]))
    transaction.write_batch(pa.record_batch({"event": pa.array([b"four"])}))
    transaction.flush()
    assert events_of(stream) == []
    assert transaction.status() is Status.OPEN
    assert transaction.commit() is Status.COMMITTED
    assert events_of(stream) == [b"one", b"two", b"three", b"four"]


def test_a_serializer_and_the_options_of_a_writer_hold_here_too(client, stream):
    class Upper:
        def serialize(self, value):
            return value.upper().encode()

    with client.transactions(stream.name, Upper(), max_event_size=3).begin() as transaction:
        transaction.write("abc")
        with pytest.raises(EventTooLargeError):
            transaction.write("abcd")
    assert events_of(stream) == [b"ABC"]


def fail_within(transaction):
    with transaction:
        transaction.write(b"gone")
        raise ZeroDivisionError


def test_an_error_in_the_block_aborts(stream, transaction):
    with pytest.raises(ZeroDivisionError):
        fail_within(transaction)
    assert transaction.status() is Status.ABORTED
    assert events_of(stream) == []


def test_an_error_in_the_block_is_seen_even_if_the_abort_fails(stream, transaction):
    stream.end(transaction.id, Status.COMMITTED)
    with pytest.raises(ZeroDivisionError):
        fail_within(transaction)


def test_events_go_next_to_the_segments_of_their_keys_and_keep_their_order(store):
    stream = FakeStream(store, segments=4)
    keys = [f"key {i % 9}" for i in range(len(EVENTS))]
    with stream.client() as client, client.transactions(stream.name).begin() as transaction:
        transaction.write_column(pa.array(EVENTS), pa.array(keys))
    for segment in stream.ranges:
        mine = [e for e, key in zip(EVENTS, keys, strict=True) if segment.low <= segment_key(key) < segment.high]
        assert events_of(stream, segment.id) == mine


def test_a_scaling_does_not_touch_an_open_transaction(client, stream, transaction):
    transaction.write_column(pa.array(EVENTS[:60]))
    transaction.flush()
    stream.scale([0], 0.0, 0.5, 1.0)
    transaction.write_column(pa.array(EVENTS[60:]))
    transaction.commit()
    assert events_of(stream) == EVENTS
    assert stream.asked["successors"] == 0


def write_in_steps(client, stream):
    with client.transactions(stream.name, timeout=20).begin() as transaction:
        for at in range(0, len(EVENTS), 10):
            transaction.write_column(pa.array(EVENTS[at : at + 10]))


def test_a_connection_cut_at_any_byte_loses_and_repeats_nothing(store):
    cuts = [("cut_requests_at", at) for at in range(1, 1700, 263)] + [
        ("cut_replies_at", at) for at in range(1, 520, 97)
    ]
    for kind, at in cuts:
        stream, drops = FakeStream(store), store.drops
        setattr(store, kind, at)
        with stream.client() as client:
            write_in_steps(client, stream)
        assert store.drops == drops + 1, f"no cut: {kind} {at}"
        assert events_of(stream) == EVENTS
        store.drop_all()


# ---------------------------------------------------------------- what ends it


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (Status.ABORTED, TransactionAbortedError),
        (Status.COMMITTED, TransactionCommittedError),
        (Status.UNKNOWN, TransactionUnknownError),
    ],
)
def test_writing_to_one_that_has_ended_says_how(stream, transaction, end, error):
    stream.end(transaction.id, end)
    transaction.write(b"late")
    with pytest.raises(error, match=f"cannot write to transaction {transaction.id}") as caught:
        transaction.flush()
    assert type(caught.value) is error
    with pytest.raises(error):
        transaction.write_column(pa.array([b"later"]))


def test_one_that_ends_between_two_writes_says_how(stream, transaction):
    transaction.write(b"early")
    transaction.flush()
    stream.end(transaction.id, Status.ABORTED)
    transaction.write(b"late")
    with pytest.raises(TransactionAbortedError, match="cannot write to"):
        transaction.commit()
    assert stream.asked["commit_transaction"] == 0
    with pytest.raises(TransactionAbortedError, match="cannot commit"):
        transaction.commit()


def test_a_lease_that_ended_is_told_apart_from_an_abort(client, stream):
    transaction = client.transactions(stream.name, lease=0.01).begin()
    stream.end(transaction.id, Status.ABORTED)
    time.sleep(0.02)
    for attempt in (transaction.commit, transaction.ping):
        with pytest.raises(TransactionExpiredError, match=r"lease of 0\.01 s"):
            attempt()
    # The id does not show when it was begun.
    with pytest.raises(TransactionAbortedError) as caught:
        client.transaction(stream.name, transaction.id).commit()
    assert type(caught.value) is TransactionAbortedError


def test_a_ping_moves_the_end_of_the_lease(client, stream):
    transaction = client.transactions(stream.name, lease=0.01).begin()
    transaction.ping(60)
    stream.end(transaction.id, Status.ABORTED)
    time.sleep(0.02)
    with pytest.raises(TransactionAbortedError) as caught:
        transaction.commit()
    assert type(caught.value) is TransactionAbortedError


def test_a_missing_segment_of_an_open_transaction_is_not_an_end_of_it(stream, store, transaction):
    store.on(Append, lambda session, request: session.reply(NoSuchSegment(1, store_name(session), "stack", -1)))
    transaction.write(b"x")
    transaction.commit()
    assert store.unused_rules == 0
    assert store.segments[stream.segment(0)].events == [b"x"]


def store_name(session):
    return next(iter(session.writers.values()))


def keep_silent(session, request):
    session.deaf = True


def test_what_is_not_durable_is_not_committed(client, stream, store):
    transaction = client.transactions(stream.name, timeout=0.2).begin()
    store.on(Append, keep_silent)
    transaction.write(b"x")
    for finish in (transaction.commit, transaction.commit, transaction.detach):
        with pytest.raises(DeadlineExceededError):
            finish()
    assert (transaction.status(), stream.asked["commit_transaction"]) == (Status.OPEN, 0)
    store.drop_all()  # now it is sent again
    transaction._writer.flush(20)
    transaction.commit()
    assert events_of(stream) == [b"x"]


def test_a_block_whose_events_do_not_become_durable_aborts(client, stream, store):
    store.on(Append, keep_silent)
    transaction = client.transactions(stream.name, timeout=0.2).begin()
    with pytest.raises(DeadlineExceededError):
        write_within(transaction)
    assert transaction.status() is Status.ABORTED


def write_within(transaction):
    with transaction:
        transaction.write(b"x")


def test_a_block_may_abort(client, stream):
    with client.transactions(stream.name).begin() as transaction:
        transaction.write(b"x")
        transaction.abort()
    assert transaction.status() is Status.ABORTED


def test_a_block_may_commit(client, stream):
    with client.transactions(stream.name).begin() as transaction:
        transaction.write(b"x")
        transaction.commit()
    assert events_of(stream) == [b"x"]


def test_a_detached_one_is_committed_by_its_id(client, stream, transaction):
    transaction.write(b"x")
    transaction.detach()
    assert (events_of(stream), transaction.status()) == ([], Status.OPEN)
    with pytest.raises(ConfigError, match="accepts no more events"):
        transaction.write(b"y")
    other = client.transaction(str(stream.name), uuid.UUID(str(transaction.id)))
    other.ping()
    assert other.commit() is Status.COMMITTED
    assert events_of(stream) == [b"x"]


def test_an_aborted_one_takes_nothing_more(stream, transaction):
    transaction.write(b"x")
    assert transaction.abort() is Status.ABORTED
    column = pa.array([b"y"])
    for call in (transaction.flush, lambda: transaction.write(b"y"), lambda: transaction.write_column(column)):
        with pytest.raises(TransactionAbortedError, match=r"cannot write to transaction .*: it is aborted"):
            call()
    with pytest.raises(TransactionAbortedError):
        transaction.commit()


def test_a_committed_one_names_its_end(stream, transaction):
    transaction.commit()
    with pytest.raises(TransactionCommittedError):
        transaction.abort()
    with pytest.raises(ConfigError, match=r"transaction .* accepts no more events: it was committed or detached"):
        transaction.write(b"x")


@pytest.mark.parametrize("lease", [0, -1, float("inf"), float("nan")])
def test_a_lease_is_a_time(client, stream, lease):
    with pytest.raises(ConfigError, match="positive number of seconds"):
        client.transactions(stream.name, lease=lease)


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), True, "5"])
def test_a_timeout_that_is_not_a_time_is_refused_and_ends_nothing(stream, transaction, timeout):
    transaction.write(b"a")
    for call in (transaction.flush, transaction.commit, transaction.abort):
        with pytest.raises(ConfigError, match="argument 'timeout' must be a number of seconds, not "):
            call(timeout=timeout)
    transaction.write(b"b")
    assert transaction.commit() is Status.COMMITTED
    assert events_of(stream) == [b"a", b"b"]


@pytest.mark.parametrize("given", ["abc", "8dbdf0ff-1b4e-4a5c-8a0c-2f6f2f9f3a11", None, 5])
def test_a_transaction_is_joined_by_its_id(client, stream, given):
    with pytest.raises(
        ConfigError, match=r"argument 'transaction' must be a UUID \(transaction.id, uuid.UUID\(text\)\), not"
    ):
        client.transactions(stream.name).join(given)
