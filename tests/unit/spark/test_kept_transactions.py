"""How long a worker keeps the transactions of tasks that it has finished."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from pravega_connector.client import StreamName
from pravega_connector.errors import TransactionAbortedError
from pravega_connector.spark.sink.transactions import KeptTransactions, WriteId
from pravega_connector.writer.transactions import Transaction


class Pinged(Transaction):
    """A transaction as the lease keeper sees it; so short a lease is pinged every tenth of a second."""

    lease = 0.1
    lease_left = 0.0  # type: ignore[assignment]  # so the first ping comes at once

    def __init__(self) -> None:
        self.id, self.pings, self.dead = uuid.uuid4(), 0, False

    def ping(self, *, timeout: float | None = None) -> None:
        self.pings += 1
        if self.dead:
            raise TransactionAbortedError("somebody has aborted it")


Finish = Callable[[str, int], Pinged]


@pytest.fixture
def finished() -> Iterator[Finish]:
    """Ends a task of a batch of an application; gives its transaction."""
    kept = KeptTransactions()

    def finish(app: str, batch: int) -> Pinged:
        transaction = Pinged()
        kept.add(transaction)
        kept.finish(WriteId(app, app, "run", batch), transaction)
        return transaction

    yield finish
    kept.close()


@pytest.fixture
def is_kept(eventually: Callable[..., None]) -> Callable[..., bool]:
    """Return True if a transaction is still pinged, while another one is."""

    def check(transaction: Pinged, other: Pinged) -> bool:
        before, start = transaction.pings, other.pings
        eventually(lambda: other.pings >= start + 3)
        return transaction.pings > before + 1  # one may have been in flight

    return check


def test_until_the_worker_writes_another_batch_of_the_same_application(finished: Finish, is_kept: Callable[..., bool]):
    first, sibling = finished("a", 0), finished("a", 0)
    assert is_kept(first, sibling)
    following = finished("a", 1)
    assert not is_kept(first, following)
    assert not is_kept(sibling, following)


def test_whatever_the_worker_does_for_others(finished: Finish, is_kept: Callable[..., bool]):
    """Workers are shared by all queries of an application."""
    waiting, other = finished("a", 0), finished("b", 7)
    assert is_kept(waiting, other)
    assert is_kept(other, waiting)


def test_the_oldest_is_given_up_where_there_are_too_many(
    finished: Finish, is_kept: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pravega_connector.spark.sink.transactions.MAX_APPS", 3)
    first = finished("0", 0)
    others = [finished(str(n), 0) for n in range(1, 4)]
    assert not is_kept(first, others[-1])
    assert is_kept(others[0], others[-1])


def test_one_that_died_is_not_a_result_of_a_task(eventually: Callable[..., None]):
    kept, transaction = KeptTransactions(), Pinged()
    transaction.dead = True
    kept.add(transaction)
    try:
        eventually(lambda: transaction.pings == 1)
        with pytest.raises(TransactionAbortedError, match="somebody has aborted it"):
            eventually(lambda: kept.finish(WriteId("a", "a", "run", 0), transaction))  # type: ignore[arg-type]
    finally:
        kept.close()


def test_streams_are_expected_by_application(monkeypatch: pytest.MonkeyPatch):
    kept, first = KeptTransactions(), (StreamName("s", "a"),)
    assert kept.expected("a", first) == first
    kept.expect("a", ())
    assert kept.expected("a", first) == ()
    assert kept.expected("b", first) == first
    kept.expect("a", (StreamName("s", "b"), StreamName("s", "c")))
    assert kept.expected("a", first) == (StreamName("s", "b"), StreamName("s", "c"))
    monkeypatch.setattr("pravega_connector.spark.sink.transactions.MAX_APPS", 2)
    for app in "cde":
        kept.expect(app, ())
        assert kept.expected(app, first) == ()
    assert sum(kept.expected(app, first) == () for app in "cde") <= 2
