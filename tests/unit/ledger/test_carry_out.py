"""Commits that stay under way, which no real server does on demand."""

from typing import Any
from uuid import UUID

import pytest

from connector.client import StreamName
from connector.client import TransactionStatus as Status
from connector.client.deadline import Deadline
from connector.errors import DeadlineExceededError, OutcomeUnknownError
from connector.ledger import (
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

    def transaction_status(self, stream: StreamName, id_: UUID, *, deadline: Deadline | None = None) -> Status:
        assert id_ == FIRST.transaction
        self.asked += 1
        return Status.COMMITTING if self.asked < self.looks else Status.COMMITTED

    def ping_transaction(self, stream: StreamName, id_: UUID, lease_ms: int) -> None:
        pass

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

    def append(self, entry: Entry, revision: int, *, deadline: float) -> int:
        assert revision == len(self.entries)
        self.entries.append(entry)
        return len(self.entries)


def commit(controller: SlowController, ledger: MemoryLedger, timeout: float) -> Commit:
    stream = StreamName("scope", "stream")
    servers = Servers(controller, stream, ledger, lease=60.0, timeout=timeout)  # type: ignore[arg-type]
    return carry_out(Commit(Job("app", "query", "run", "nonce", 1, (SECOND,))), servers)


def test_a_batch_waits_until_the_one_before_is_visible():
    controller, ledger = SlowController(looks=4), MemoryLedger()
    assert commit(controller, ledger, 60.0).outcome is Outcome.COMMITTED
    assert (controller.asked, controller.committed) == (4, [SECOND.transaction])


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
