"""Commits that stay under way, which no real server does on demand."""

from typing import Any
from uuid import UUID

import pytest

from connector.client import StreamName
from connector.client import TransactionStatus as Status
from connector.client.deadline import Deadline
from connector.errors import DeadlineExceededError, OutcomeUnknownError, TransactionAbortedError
from connector.ledger import (
    Ask,
    Commit,
    Committed,
    Content,
    Entry,
    Job,
    Outcome,
    Part,
    Prepared,
    Servers,
    await_visible,
    carry_out,
    fold,
)

FIRST, SECOND = (Part(UUID(int=number), Content(1, 1, number)) for number in (1, 2))


class SlowController:
    """Shows the first batch as being committed for so many looks, and takes everything else at once."""

    def __init__(self, looks: float) -> None:
        self.looks, self.asked = looks, 0
        self.committed: list[UUID] = []
        self.pinged: list[UUID] = []
        self.dead: set[UUID] = set()
        self.dies_at = float("inf")  # look at which the second transaction's lease ends

    def transaction_status(self, stream: StreamName, id_: UUID, *, deadline: Deadline | None = None) -> Status:
        if id_ != FIRST.transaction:
            return Status.OPEN
        self.asked += 1
        if self.asked >= self.dies_at:
            self.dead.add(SECOND.transaction)
        return Status.COMMITTING if self.asked < self.looks else Status.COMMITTED

    def ping_transaction(self, stream: StreamName, id_: UUID, lease_ms: int) -> None:
        if id_ in self.dead:
            raise TransactionAbortedError(f"transaction {id_} of stream {stream} is aborted")
        self.pinged.append(id_)

    def abort_transaction(self, stream: StreamName, id_: UUID, *, timeout: float | None = None) -> Status:
        return Status.ABORTED

    def commit_first(self, stream: StreamName, id_: UUID, *, timeout: float) -> Status:
        self.committed.append(id_)
        return Status.COMMITTING


class MemoryLedger:
    name = "ledger"

    def __init__(self) -> None:
        self.entries: list[Entry] = [
            Prepared("app", "query", "run", "n", 0, 0, (FIRST,)),
            Committed("app", "query", "run", "n", 0, FIRST.content),
        ]

    def read(self) -> Any:
        return len(self.entries), fold(self.entries)

    def append(self, entry: Entry, revision: int, *, deadline: Deadline) -> int:
        assert revision == len(self.entries)
        self.entries.append(entry)
        return len(self.entries)


def servers_of(controller: SlowController, ledger: MemoryLedger, timeout: float = 60.0, lease: float = 60.0) -> Servers:
    return Servers(controller, StreamName("scope", "stream"), ledger, lease=lease, timeout=timeout)  # type: ignore[arg-type]


def commit_by(servers: Servers) -> Commit:
    return carry_out(Commit(Job("app", "query", "run", "nonce", 1, (SECOND,))), servers)


def commit(controller: SlowController, ledger: MemoryLedger, timeout: float) -> Commit:
    return commit_by(servers_of(controller, ledger, timeout))


def test_a_batch_waits_until_the_one_before_is_visible():
    controller, ledger = SlowController(looks=4), MemoryLedger()
    assert commit(controller, ledger, 60.0).outcome is Outcome.COMMITTED
    assert (controller.asked, controller.committed) == (4, [SECOND.transaction])


def test_what_is_asked_ahead_is_not_asked_again_and_waits_as_long():
    controller, ledger = SlowController(looks=4), MemoryLedger()
    servers = servers_of(controller, ledger)
    servers.ask_ahead(Ask.STATUS, (FIRST.transaction,))
    servers.ask_ahead(Ask.PING, (SECOND.transaction,))
    assert commit_by(servers).outcome is Outcome.COMMITTED
    assert (controller.asked, controller.pinged) == (4, [SECOND.transaction])


@pytest.mark.parametrize("ask", [Ask.STATUS, Ask.PING])
def test_what_is_asked_ahead_of_others_counts_for_nothing(ask: Ask):
    controller, ledger = SlowController(looks=2), MemoryLedger()
    servers = servers_of(controller, ledger)
    servers.ask_ahead(ask, (FIRST.transaction, SECOND.transaction))
    assert commit_by(servers).outcome is Outcome.COMMITTED
    assert controller.committed == [SECOND.transaction]
    assert SECOND.transaction in controller.pinged


def test_an_own_transaction_that_is_found_dead_ahead_is_not_recorded():
    controller, ledger = SlowController(looks=1), MemoryLedger()
    controller.dead.add(SECOND.transaction)
    servers = servers_of(controller, ledger)
    servers.ask_ahead(Ask.PING, (SECOND.transaction,))
    assert commit_by(servers).outcome is Outcome.EXPIRED
    assert (len(ledger.entries), controller.committed) == (2, [])


def test_an_own_transaction_that_dies_while_the_last_batch_is_awaited_is_not_recorded():
    controller, ledger = SlowController(looks=6), MemoryLedger()
    controller.dies_at = 3
    servers = servers_of(controller, ledger, lease=0.01)  # so a ping counts for a millisecond
    servers.ask_ahead(Ask.PING, (SECOND.transaction,))
    assert commit_by(servers).outcome is Outcome.EXPIRED
    assert controller.pinged == [SECOND.transaction], "it lived when it was asked ahead"
    assert (len(ledger.entries), controller.committed) == (2, [])


def test_a_batch_is_not_recorded_while_the_one_before_never_becomes_visible():
    controller, ledger = SlowController(looks=float("inf")), MemoryLedger()
    with pytest.raises(OutcomeUnknownError, match="could not be finished within"):
        commit(controller, ledger, 0.2)
    assert controller.asked > 2
    assert (len(ledger.entries), controller.committed) == (2, [])


def test_what_is_committed_is_awaited_until_it_can_be_read(monkeypatch):
    controller = SlowController(looks=3)
    await_visible(controller, StreamName("scope", "stream"), [FIRST.transaction])  # type: ignore[arg-type]
    assert controller.asked == 3
    monkeypatch.setattr("connector.ledger.servers._VISIBLE_SECONDS", 0.1)
    with pytest.raises(DeadlineExceededError, match="1 transactions of stream scope/stream were not visible"):
        await_visible(
            SlowController(looks=float("inf")),  # type: ignore[arg-type]
            StreamName("scope", "stream"),
            [FIRST.transaction],
        )
