"""Commits that stay under way, which no real server does on demand."""

from typing import Any
from uuid import UUID

import pytest

from pravega_connector.client import StreamName
from pravega_connector.client import TransactionStatus as Status
from pravega_connector.core.deadline import Deadline
from pravega_connector.errors import DeadlineExceededError, OutcomeUnknownError, TransactionAbortedError
from pravega_connector.exactly_once.batch_commit import (
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
    TransactionId,
    await_visible,
    carry_out,
    content_of,
    fold,
)

TARGET = "scope/stream#0"
FIRST, SECOND = (Part(TransactionId(TARGET, UUID(int=number)), Content(1, 1, number)) for number in (1, 2))
FIRST_ID, SECOND_ID = FIRST.transaction.id, SECOND.transaction.id


class SlowController:
    """Shows the first batch as being committed for this many looks, and takes everything else at once."""

    def __init__(self, looks: float) -> None:
        self.looks, self.asked = looks, 0
        self.committed: list[UUID] = []
        self.pinged: list[UUID] = []
        self.dead: set[UUID] = set()
        self.dies_at = float("inf")  # look at which the second transaction's lease ends

    def transaction_status(self, stream: StreamName, id_: UUID, *, deadline: Deadline | None = None) -> Status:
        if id_ in self.dead:
            return Status.ABORTED
        if id_ != FIRST_ID:
            return Status.OPEN
        self.asked += 1
        if self.asked >= self.dies_at:
            self.dead.add(SECOND_ID)
        return Status.COMMITTING if self.asked < self.looks else Status.COMMITTED

    def ping_transaction(self, stream: StreamName, id_: UUID, lease_ms: int) -> None:
        if id_ in self.dead:
            raise TransactionAbortedError(f"transaction {id_} of stream {stream} is aborted")
        self.pinged.append(id_)

    def abort_transaction(self, stream: StreamName, id_: UUID, *, timeout: float | None = None) -> Status:
        return Status.ABORTED

    def commits_in_order(self, stream: StreamName) -> bool:
        return True

    def commit_transaction(self, stream: StreamName, id_: UUID, *, timeout: float) -> Status:
        self.committed.append(id_)
        return Status.COMMITTING


class MemoryLedger:
    name = "ledger"

    def __init__(self) -> None:
        self.entries: list[Entry] = [
            Prepared("app", "query", "run", "n", 0, 0, (FIRST,)),
            Committed("app", "query", "run", "n", 0, content_of([FIRST])),
        ]

    def read(self) -> Any:
        return len(self.entries), fold(self.entries)

    def append(self, entry: Entry, revision: int, *, deadline: Deadline) -> int:
        assert revision == len(self.entries)
        self.entries.append(entry)
        return len(self.entries)


def servers_of(controller: SlowController, ledger: MemoryLedger, timeout: float = 60.0, lease: float = 60.0) -> Servers:
    return Servers(controller, ledger, lease=lease, timeout=timeout)  # type: ignore[arg-type]


def commit_by(servers: Servers) -> Commit:
    return carry_out(Commit(Job("app", "query", "run", "nonce", 1, (SECOND,))), servers)


def commit(controller: SlowController, ledger: MemoryLedger, timeout: float) -> Commit:
    return commit_by(servers_of(controller, ledger, timeout))


def test_a_batch_waits_until_the_one_before_is_visible():
    controller, ledger = SlowController(looks=4), MemoryLedger()
    assert commit(controller, ledger, 60.0).outcome is Outcome.COMMITTED
    assert (controller.asked, controller.committed) == (4, [SECOND_ID])


def test_what_is_asked_ahead_is_not_asked_again_and_waits_as_long():
    controller, ledger = SlowController(looks=4), MemoryLedger()
    servers = servers_of(controller, ledger)
    servers.ask_ahead(Ask.STATUS, (FIRST.transaction,))
    servers.ask_ahead(Ask.PING, (SECOND.transaction,))
    assert commit_by(servers).outcome is Outcome.COMMITTED
    assert (controller.asked, controller.pinged) == (4, [SECOND_ID])


@pytest.mark.parametrize("ask", [Ask.STATUS, Ask.PING])
def test_what_is_asked_ahead_of_others_counts_for_nothing(ask: Ask):
    controller, ledger = SlowController(looks=2), MemoryLedger()
    servers = servers_of(controller, ledger)
    servers.ask_ahead(ask, (FIRST.transaction, SECOND.transaction))
    assert commit_by(servers).outcome is Outcome.COMMITTED
    assert controller.committed == [SECOND_ID]
    assert SECOND_ID in controller.pinged


def test_an_own_transaction_that_is_found_dead_ahead_is_not_recorded():
    controller, ledger = SlowController(looks=1), MemoryLedger()
    controller.dead.add(SECOND_ID)
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
    assert SECOND_ID in controller.pinged, "it lived when it was asked ahead"
    assert controller.asked < controller.looks
    assert (len(ledger.entries), controller.committed) == (2, [])


class Pilot(SlowController):
    """Show the first commit as under way for this many checks; the second lives for three after a ping."""

    def __init__(self, looks: float, orderly: bool = False) -> None:
        super().__init__(looks)
        self.orderly, self.kept = orderly, 0

    def commits_in_order(self, stream: StreamName) -> bool:
        return self.orderly

    def note_order(self, stream: StreamName) -> None:
        self.orderly = True

    def transaction_status(self, stream: StreamName, id_: UUID, *, deadline: Deadline | None = None) -> Status:
        if self.asked - self.kept >= 3:
            self.dead.add(SECOND_ID)
        return super().transaction_status(stream, id_, deadline=deadline)

    def ping_transaction(self, stream: StreamName, id_: UUID, lease_ms: int) -> None:
        super().ping_transaction(stream, id_, lease_ms)
        self.kept = self.asked

    def commit_transaction(self, stream: StreamName, id_: UUID, *, timeout: float) -> Status:
        if id_ in self.dead:
            raise TransactionAbortedError(f"transaction {id_} of stream {stream} is aborted")
        return super().commit_transaction(stream, id_, timeout=timeout)


def commit_both(controller: Pilot, ledger: MemoryLedger, lease: float) -> Commit:
    ledger.entries.clear()
    job = Job("app", "query", "run", "nonce", 0, (FIRST, SECOND))
    return carry_out(Commit(job), servers_of(controller, ledger, lease=lease))


def test_while_the_pilot_is_awaited_the_others_are_kept_open():
    controller, ledger = Pilot(looks=10), MemoryLedger()
    assert commit_both(controller, ledger, lease=0.01).outcome is Outcome.COMMITTED  # so a ping counts for 1 ms
    assert controller.asked >= 10
    assert controller.committed == [FIRST_ID, SECOND_ID]
    assert controller.orderly


def test_where_commits_are_in_order_nothing_waits_for_the_pilot():
    controller, ledger = Pilot(looks=float("inf"), orderly=True), MemoryLedger()
    assert commit_both(controller, ledger, lease=60.0).outcome is Outcome.COMMITTED
    assert (controller.asked, controller.committed) == (0, [FIRST_ID, SECOND_ID])


def test_a_ping_is_forgotten_when_its_transaction_was_aborted():
    """It had counted as open for a tenth of its lease, and the ledger grew in a circle for as long."""
    controller, ledger = Pilot(looks=1), MemoryLedger()
    prepare = ledger.append

    def aborts(entry: Entry, revision: int, *, deadline: Deadline) -> int:
        controller.dead |= {FIRST_ID, SECOND_ID}  # between the ping and the commit
        return prepare(entry, revision, deadline=deadline)

    ledger.append = aborts  # type: ignore[method-assign]
    assert commit_both(controller, ledger, lease=60.0).outcome is Outcome.EXPIRED
    assert len(ledger.entries) == 1
    assert controller.committed == []


def test_a_batch_is_not_recorded_while_the_one_before_never_becomes_visible():
    controller, ledger = SlowController(looks=float("inf")), MemoryLedger()
    with pytest.raises(OutcomeUnknownError, match="could not be finished within"):
        commit(controller, ledger, 0.2)
    assert controller.asked > 2
    assert (len(ledger.entries), controller.committed) == (2, [])


def test_what_is_committed_is_awaited_until_it_can_be_read():
    controller = SlowController(looks=3)
    await_visible(controller, [FIRST.transaction])  # type: ignore[arg-type]
    assert controller.asked == 3
    with pytest.raises(
        DeadlineExceededError, match=r"1 transactions were not visible within 0\.1 s, such as .* of scope/stream"
    ):
        await_visible(
            SlowController(looks=float("inf")),  # type: ignore[arg-type]
            [FIRST.transaction],
            0.1,
        )
