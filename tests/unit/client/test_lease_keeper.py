"""Transactions are kept open in the background, and a failure is reported to them."""

import threading
import time
import uuid

import pytest

from pravega_connector.client import LeaseKeeper, TransactionStatus
from pravega_connector.errors import ConfigError, ConnectorError, ControllerUnavailableError, TransactionAbortedError
from pravega_connector.writer import transactions as module
from pravega_connector.writer.transactions import ping_interval


@pytest.fixture
def keeper():
    with LeaseKeeper(interval=0.01) as keeper:
        yield keeper


@pytest.fixture
def begin(client, stream):
    return client.transactions(stream.name).begin


@pytest.fixture
def opened(begin):
    """A transaction without a writer's thread."""
    transaction = begin()
    transaction.detach()
    return transaction


def test_a_transaction_is_pinged_at_once_and_again(keeper, opened, stream, eventually):
    keeper.add(opened)
    eventually(lambda: stream.asked["ping_transaction"] >= 3)
    keeper.check()


def test_one_that_has_just_begun_has_its_first_ping_later_and_one_of_others_at_once(client, begin, stream, eventually):
    begun, other = begin(), begin()
    begun.detach()
    other.detach()
    assert 0.9 * begun.lease < begun.lease_left <= begun.lease
    known = client.transaction(stream.name, other.id)
    assert known.lease_left == 0, "nobody here knows when it began"
    with LeaseKeeper() as keeper:
        keeper.add(begun)
        keeper.add(known)
        eventually(lambda: stream.asked["ping_transaction"] == 1)
        assert keeper._due[begun.id][0] > time.monotonic() + ping_interval(begun.lease) / 2


def test_a_transaction_given_back_is_pinged_no_more(keeper, opened, stream, eventually):
    keeper.add(opened)
    eventually(lambda: stream.asked["ping_transaction"] >= 1)
    keeper.discard(opened)
    eventually(lambda: keeper._thread is None)
    keeper.add(opened)  # and again
    before = stream.asked["ping_transaction"]
    eventually(lambda: stream.asked["ping_transaction"] > before)


def test_one_that_is_lost_is_reported_and_the_others_are_kept(keeper, opened, client, stream, eventually):
    lost = client.transaction(stream.name, uuid.uuid4())
    other = client.transactions(stream.name).begin()
    other.detach()
    stream.end(other.id, TransactionStatus.ABORTED)
    for transaction in (opened, lost, other):
        keeper.add(transaction)
    eventually(lambda: len(keeper.failures) == 2)
    assert set(keeper.failures) == {lost.id, other.id}
    assert isinstance(keeper.failures[other.id], TransactionAbortedError)
    with pytest.raises(ConnectorError, match=str(lost.id)):
        keeper.check()
    before = stream.asked["ping_transaction"]
    eventually(lambda: stream.asked["ping_transaction"] > before + 2)
    for transaction in (lost, other):
        keeper.discard(transaction)
    keeper.check()


def test_one_that_is_committed_needs_no_lease(keeper, opened, stream, eventually):
    stream.end(opened.id, TransactionStatus.COMMITTED)
    keeper.add(opened)
    eventually(lambda: keeper._thread is None)
    assert keeper.failures == {}


def test_a_controller_that_is_unavailable_is_asked_again(keeper, opened, stream, eventually, monkeypatch):
    monkeypatch.setattr(module, "_RETRY", 0.01)
    away = threading.Event()
    away.set()
    ping = stream.ping_transaction

    def pinged(*args, **options):
        if away.is_set():
            raise ControllerUnavailableError("nobody is there")
        ping(*args, **options)

    stream.ping_transaction = pinged
    keeper.add(opened)
    eventually(lambda: isinstance(keeper.trouble, ControllerUnavailableError))
    away.clear()
    eventually(lambda: keeper.trouble is None)
    keeper.check()


def test_a_bug_is_reported_and_does_not_end_the_thread(keeper, opened, stream, eventually):
    stream.ping_transaction = lambda *args, **options: 1 / 0
    keeper.add(opened)
    eventually(lambda: keeper.failures)
    with pytest.raises(ConnectorError, match="ZeroDivisionError"):
        keeper.check()


def test_a_closed_keeper_takes_nothing_and_leaves_no_thread(keeper, opened, eventually):
    keeper.add(opened)
    thread = keeper._thread
    keeper.close()
    assert not thread.is_alive()
    with pytest.raises(ConfigError, match="closed"):
        keeper.add(opened)


def test_the_list_is_bounded(keeper, begin, monkeypatch):
    monkeypatch.setattr(module, "MAX_TRANSACTIONS", 2)
    for _ in range(2):
        transaction = begin()
        transaction.detach()
        keeper.add(transaction)
    with pytest.raises(ConfigError, match="2 transactions are already kept open"):
        keeper.add(transaction)


def test_the_interval_leaves_room_for_lost_pings():
    assert [round(lease / ping_interval(lease)) for lease in (10, 100, 600)] == [3, 10, 24]
    assert ping_interval(0.5) == 0.5
    with pytest.raises(ConfigError, match="positive"):
        LeaseKeeper(0)
