"""State that another run finds, and its reaction: every status, every lost answer."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pravega_connector.client import PravegaClient, StateSynchronizer, StreamName, TransactionStatus
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import (
    ConfigError,
    OutcomeUnknownError,
    StepsStateError,
    StepUndecidedError,
    TransactionAbortedError,
)
from pravega_connector.exactly_once.steps import Outcome, StepLog, Turn
from pravega_connector.exactly_once.steps.takeover import Owner
from pravega_connector.operations.ingest import FileSource, Settings, Sizes, ingest
from pravega_connector.operations.ingest.ingester import Ingester
from pravega_connector.writer.transactions import OpenTransaction
from tests.support.ingest_steps import ELSEWHERE, ENDED, record

Write = Callable[..., Path]
Events = Callable[[], list[tuple[int, int]]]


def expected(files: int, samples: int = 30) -> list[tuple[int, int]]:
    return [(file, sample) for file in range(files) for sample in range(samples)]


@pytest.fixture
def left(client: PravegaClient, target: StreamName, steps: StepLog) -> Callable[..., OpenTransaction[bytes]]:
    """``left(path, owner)``: what a run leaves that was killed: a recorded step, whose transaction has its events."""

    def make(path: Path, owner: Owner = ENDED, lease: float = 30.0) -> OpenTransaction[bytes]:
        source = FileSource([path])
        (id_,) = source.ids()
        transaction = client.transactions(target, lease=lease).begin()
        record(steps, source, transaction.id, owner, lease=lease)
        (chunk,) = source.read(id_)
        for row in chunk.batch.to_pylist():
            transaction.write(f'{{"file":{row["file"]},"sample":{row["sample"]}}}'.encode(), id_)
        transaction.flush()
        return transaction

    return make


@pytest.mark.parametrize("status", ["open", "committed", "aborted"])
def test_a_step_is_decided_by_its_transaction(client, target, folder, write, events, left, status):
    transaction = left(write(0))
    write(1)
    if status == "committed":
        transaction.commit()
    if status == "aborted":
        transaction.abort()
    summary = ingest(folder, target, client=client)
    assert summary.counts.transactions == (1 if status == "committed" else 2)
    assert summary.counts.recovered == 1
    assert events() == expected(2)
    if status != "committed":
        with pytest.raises(TransactionAbortedError):
            transaction.commit()  # the late one wakes up
    assert events() == expected(2)


@pytest.mark.usefixtures("soon_sure")
def test_a_forgotten_transaction_is_the_operators(client, target, folder, write, events, steps):
    path = write(0)
    source = FileSource([path])
    (id_,) = source.ids()
    step = record(steps, source, uuid.uuid4())
    with pytest.raises(StepUndecidedError, match=rf"{step.transaction}.*{id_} from record 0.*resolve="):
        ingest(folder, target, client=client)
    assert events() == []
    ingest(folder, target, client=client, resolve={step.transaction: "committed"})
    assert events() == []
    other = write(1)
    step = record(steps, FileSource([other]), uuid.uuid4())
    wrong: list[tuple[Any, str]] = [
        ({"committed": "committed"}, "not a transaction id"),
        ({1: "committed"}, "not a transaction id"),
        ({str(step.transaction): "done"}, "set committed or aborted"),
        ({step.transaction: "committed", str(step.transaction): "aborted"}, "has two outcomes"),
        ("committed", "must have an outcome for each transaction id, not 'committed'"),
        ([step.transaction], "must have an outcome for each transaction id"),
    ]
    for resolve, reason in wrong:
        with pytest.raises(ConfigError, match=reason):
            ingest([other], target, client=client, resolve=resolve)
    ingest([other], target, client=client, resolve={str(step.transaction): "aborted"})
    assert events() == [(1, sample) for sample in range(30)]


def test_one_that_may_be_alive_is_waited_for(client, target, folder, write, events, left):
    transaction = left(write(0), ELSEWHERE)
    told: list[str] = []

    def tell(what: str, _counts: object) -> None:
        told.append(what)
        if len(told) == 3:
            transaction.abort()  # as the server does without pings

    assert ingest(folder, target, client=client, on_progress=tell).counts.recovered == 1
    assert told[:3] == ["waiting: another machine, process 1 is active"] * 3
    assert events() == expected(1)


def test_silence_can_be_made_reason_enough(client, target, folder, write, events, left):
    transaction = left(write(0), ELSEWHERE)
    ingest(folder, target, client=client, takeover_after=0.2)
    assert events() == expected(1)
    with pytest.raises(TransactionAbortedError):
        transaction.commit()


def test_who_loses_the_update_writes_nothing(client, target, folder, write, events, monkeypatch):
    """A faster one ingests everything between our look at the state and our update."""
    for file in range(3):
        write(file)
    record, wrote = Ingester._record, []

    def late(self: Ingester, turn: Turn) -> Turn:
        monkeypatch.setattr(Ingester, "_record", record)
        ingest(folder, target, client=client)
        made = record(self, turn)
        wrote.append((made.outcome, turn.update.step.transaction))  # type: ignore[union-attr]
        return made

    monkeypatch.setattr(Ingester, "_record", late)
    summary = ingest(folder, target, client=client)
    ((outcome, transaction),) = wrote
    assert outcome is Outcome.LOST
    assert summary.counts.events == 0
    assert events() == expected(3)
    assert client.transaction(target, transaction).status().is_aborted


def lose_answers(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, count: int, *, landed: bool) -> list[object]:
    """The first calls of a method are without an answer, made or not; the list grows with each."""
    method, lost = getattr(kind, name), []

    def lossy(self: object, *args: Any, **options: Any) -> Any:
        if len(lost) < count:
            lost.append(self)
            if landed:
                method(self, *args, **options)
            raise OutcomeUnknownError("lost")
        return method(self, *args, **options)

    monkeypatch.setattr(kind, name, lossy)
    return lost


@pytest.mark.parametrize("landed", [True, False])
def test_an_update_whose_answer_is_lost(client, target, folder, write, events, monkeypatch, landed):
    for file in range(3):
        write(file)
    lost = lose_answers(monkeypatch, StateSynchronizer, "update_state", 2, landed=landed)
    assert ingest(folder, target, client=client).counts.transactions == 3
    assert len(lost) == 2
    assert events() == expected(3)


@pytest.mark.parametrize("landed", [True, False])
def test_a_commit_whose_answer_is_lost(client, target, folder, write, events, monkeypatch, landed):
    for file in range(3):
        write(file)
    lose_answers(monkeypatch, ControllerClient, "commit_transaction", 1, landed=landed)
    summary = ingest(folder, target, client=client)
    assert summary.counts.redone == (0 if landed else 1)
    assert events() == expected(3)


def test_a_commit_is_asked_for_when_the_one_before_is_visible(client, target, folder, write, events, monkeypatch):
    """Transactions that are COMMITTING at the same time may become visible in any order."""
    commit, asked, before = ControllerClient.commit_transaction, [], []

    def watched(self: ControllerClient, stream: StreamName, transaction: uuid.UUID, *args: Any, **options: Any) -> Any:
        if asked:
            before.append(self.transaction_status(stream, asked[-1]))
        asked.append(transaction)
        return commit(self, stream, transaction, *args, **options)

    monkeypatch.setattr(ControllerClient, "commit_transaction", watched)
    for file in range(20):
        write(file)
    ingest(folder, target, client=client)
    assert len(set(asked)) == 20
    assert before == [TransactionStatus.COMMITTED] * 19
    assert events() == expected(20)


def test_a_state_of_another_target_is_refused(client, target, folder, write):
    write(0)
    other = StreamName(target.scope, "other")
    client.create_stream(other)
    ingest(folder, target, client=client, state="shared")
    with pytest.raises(StepsStateError, match="keeps the state of"):
        ingest(folder, other, client=client, state="shared")


def test_a_compacted_state_continues(client, target, folder, write, events, monkeypatch):
    monkeypatch.setattr("pravega_connector.exactly_once.steps.log._COMPACT_AFTER", 1000)
    for file in range(12):  # each run makes few steps, and compacts what others have left as well
        write(file)
        ingest(folder, target, client=client, sizes=Sizes(variant="count", records=7), settings=Settings(lease=20.0))
    with client.revisioned(StreamName(target.scope, f"{target.stream}-ingest")) as log:
        assert log.mark() is not None
        assert log.oldest_revision().offset > 0
    assert events() == expected(12)
    assert ingest(folder, target, client=client).counts.transactions == 0
