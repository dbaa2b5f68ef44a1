"""Batches over several streams whose servers have forgotten transactions of a deleted stream."""

from collections.abc import Callable, Iterator

import pytest

from pravega_connector.exactly_once.batch_commit import Outcome, Part, Phase, stream_of
from pravega_connector.testing import InProcessPravega
from tests.integration.exactly_once.test_several_streams import AUDIT, LETTERS, ORDERS, Batches

Forget = Callable[..., None]


@pytest.fixture
def server() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def batches(server: InProcessPravega) -> Iterator[Batches]:
    with server.client() as client:
        client.create_scope("scope")
        batches = Batches(client, "scope")
        with batches.ledger:
            yield batches


@pytest.fixture
def forget(server: InProcessPravega) -> Forget:
    def forget(*parts: Part) -> None:
        assert server.faults.forget_transactions(*(part.transaction.id for part in parts)) == len(parts)

    return forget


@pytest.mark.parametrize("deleted", [ORDERS, AUDIT])
def test_a_forgotten_stream_that_is_deleted_after_the_pilot_was_committed_holds_nothing_up(
    batches: Batches, forget: Forget, deleted: str
):
    parts = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a"), batches.write(LETTERS, b"a")
    batches.crash(Phase.COMMIT_REST, 0, *parts)
    if deleted == ORDERS:  # what else shows that the pilot was committed
        batches.client.transaction(batches.name(LETTERS), parts[2].transaction.id).commit()
    batches.recreate(deleted)
    forget(*(part for part in parts if stream_of(part.transaction).stream == deleted))
    again = [batches.write(stream, b"a") for stream in (ORDERS, AUDIT, LETTERS)]
    assert batches.commit(0, *again, run="run-2") is Outcome.COMMITTED
    assert batches.seen() == {"orders": [b"a"], "audit": [b"a"], "letters": [b"a"]} | {deleted: []}
    assert batches.commit(1, batches.write(deleted, b"b"), run="run-2") is Outcome.COMMITTED
    assert batches.seen()[deleted] == [b"b"]


def test_a_batch_whose_pilot_was_deleted_is_written_again(batches: Batches, forget: Forget):
    parts = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a")
    batches.crash(Phase.COMMIT_REST, 0, *parts)
    batches.recreate(ORDERS)
    forget(parts[0])
    again = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a")
    assert batches.commit(0, *again, run="run-2") is Outcome.COMMITTED
    assert batches.status(parts[1]).is_aborted
    assert batches.seen() == {"orders": [b"a"], "audit": [b"a"], "letters": []}


def test_an_operator_sees_what_a_deleted_stream_decides(batches: Batches, forget: Forget):
    parts = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a")
    batches.crash(Phase.COMMIT_REST, 0, *parts)
    batches.recreate(ORDERS)
    forget(parts[0])
    recovery = batches.recovery(AUDIT)
    assert recovery.survey()[0].verdict == "the pilot is lost"
    assert recovery.finish("query") is Outcome.UNFINISHED
    assert batches.status(parts[1]).is_aborted
    assert (batches.app().open, batches.app().last) == (None, -1)
