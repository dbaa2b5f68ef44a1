"""What the machine makes of a committed number: passed over, refused, or accepted; its table has no dead end."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from pravega_connector.client import StreamName
from pravega_connector.client import TransactionStatus as Status
from pravega_connector.errors import FencedError
from pravega_connector.exactly_once.batch_commit import (
    TABLE,
    Ask,
    Commit,
    Committed,
    Content,
    Entry,
    Job,
    LedgerState,
    Outcome,
    Part,
    Phase,
    Prepared,
    Request,
    Role,
    check,
    fold,
)
from pravega_connector.exactly_once.batch_commit.machine import _JUDGES

ROWS, OTHER = Content(2, 20, 7), Content(2, 20, 8)


def part(number: int, content: Content) -> Part:
    return Part(UUID(int=number), content)


def job(batch: int, *contents: Content, run: str = "new", **more: Any) -> Job:
    own = tuple(part(100 + i, content) for i, content in enumerate(contents))
    return Job("app", "query", run, "nonce", batch, own, **more)


def committed(*batches: tuple[int, Content], run: str = "old", nonce: str = "n") -> LedgerState:
    return fold(Committed("app", "query", run, nonce, batch, content) for batch, content in batches)


def read(state: LedgerState, asked: Job) -> Commit:
    return Commit(asked).answered((1, state))


@pytest.mark.parametrize(
    ("known", "came", "outcome"),
    [
        (ROWS, (ROWS,), Outcome.SKIPPED),
        (Content(4, 40, 14), (ROWS, ROWS), Outcome.SKIPPED),
        (ROWS, (OTHER,), Outcome.OTHER_ROWS),
        (ROWS, (ROWS, ROWS), Outcome.OTHER_ROWS),
        (ROWS, (), Outcome.OTHER_ROWS),
        (Content(), (ROWS,), Outcome.OTHER_ROWS),
        (Content(), (), Outcome.SKIPPED),
    ],
)
def test_a_committed_number_is_passed_over_if_its_rows_are_the_same(known: Content, came: Any, outcome: Outcome):
    machine = read(committed((5, known)), job(5, *came))
    assert machine.outcome is outcome
    assert machine.phase is (Phase.ABORT_OWN if came else Phase.END)
    assert machine.known == known
    earlier = read(committed((5, known), (6, ROWS)), job(5, *came))
    assert earlier.outcome is outcome, "a number below the last is compared as well"


def test_a_number_that_nothing_is_known_of_is_refused():
    long = committed(*((batch, ROWS) for batch in range(150)))
    gap = committed((1, ROWS), (3, ROWS))
    for state, batch in ((long, 49), (gap, 2), (gap, 0)):
        machine = read(state, job(batch, ROWS))
        assert (machine.outcome, machine.known) == (Outcome.UNCOMPARED, None)
        assert read(state, job(batch, ROWS, accept=batch)).outcome is Outcome.SKIPPED
    assert read(long, job(50, ROWS)).outcome is Outcome.SKIPPED


def test_accepting_names_one_batch():
    state = committed((4, ROWS), (5, ROWS))
    assert read(state, job(5, OTHER, accept=5)).outcome is Outcome.SKIPPED
    assert read(state, job(4, OTHER, accept=5)).outcome is Outcome.OTHER_ROWS
    assert not read(state, job(5, OTHER, accept=5)).own_count
    assert read(state, job(5, ROWS, accept=5)).own_count


def test_an_answer_that_was_lost_does_not_make_other_rows_the_own_ones():
    state = committed((5, ROWS), run="new", nonce="nonce")
    assert read(state, job(5, ROWS)).outcome is Outcome.COMMITTED
    assert read(state, job(5, OTHER)).outcome is Outcome.OTHER_ROWS


def test_another_target_of_the_ledger_is_another_application():
    state = committed((5, ROWS))
    assert read(state, job(5, ROWS)).outcome is Outcome.SKIPPED
    elsewhere = read(state, job(5, ROWS, target="s/b#0"))
    assert (elsewhere.phase, elsewhere.proposed and elsewhere.proposed.target) == (Phase.PING_OWN, "s/b#0")
    prepared = Prepared("app", "query", "old", "n", 5, 0, (part(1, ROWS),), "s/b#0")
    found = read(fold([prepared]), Job("", "", "", "n", 5, (), Role.BYSTANDER, target="s/a#0"))
    assert found.phase is Phase.FENCE, "what is prepared for another target is not its own"
    assert read(fold([prepared]), Job("", "", "", "n", 5, (), Role.BYSTANDER, target="s/b#0")).phase is Phase.WEIGH


def test_a_later_prepared_batch_is_no_other_run():
    prepared = Prepared("app", "query", "old", "n", 7, 0, (part(1, ROWS),))
    state = fold([Committed("app", "query", "old", "n", 5, ROWS), prepared])
    machine = read(state, job(5, ROWS))
    assert (machine.outcome, machine.recorded) == (Outcome.AHEAD, prepared)
    with pytest.raises(FencedError, match=r"batch 7 of app for stream s/a: .* only at batch 5.*recover s/a --finish"):
        check(machine, StreamName("s", "a"))
    other = fold(
        [Committed("app", "query", "other", "n", 5, ROWS)],
        fold([Prepared("app", "query", "new", "n", 5, 0, (part(1, ROWS),))]),
    )
    assert read(other, job(6, ROWS)).outcome is Outcome.FENCED


def test_no_run_passes_over_two_writes_of_a_batch_wherever_the_one_before_ended():
    """Two writes of one batch have the same ids and the same rows; each call may be the last of the first run."""
    crashes = 0
    while True:
        servers = Registers()
        ended = servers.write_twice("run-0", calls=crashes)
        for run in ("run-1", "run-2"):
            assert servers.write_twice(run) is Outcome.DUPLICATE
        rows = [content for content in servers.committed.values() if content is not None]
        assert rows == [ROWS], "the rows of one write"
        if ended is not None:
            break
        crashes += 1
    assert ended is Outcome.DUPLICATE
    assert crashes == 6, "each call of both writes was the last one once"


class Registers:
    """A ledger and transactions in memory."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.committed: dict[UUID, Content | None] = {}
        self.aborted: set[UUID] = set()

    def write_twice(self, run: str, calls: int | None = None) -> Outcome | None:
        """Write a batch twice; return the outcome that is an error, None for two that are none, or after a crash."""
        for write in range(2):
            own = Part(UUID(int=len(self.committed) + 1), ROWS)
            self.committed[own.transaction] = None
            machine = Commit(Job("app", "query", run, f"{run}/{write}", 3, (own,), several=True))
            while not machine.ended:
                if calls is not None:
                    if not calls:
                        return None
                    calls -= 1
                machine = machine.answered(self.answer(machine.request()))
            if machine.outcome not in (Outcome.COMMITTED, Outcome.SKIPPED):
                return machine.outcome
        assert calls is not None, f"{run} has passed over a write"
        return None

    def answer(self, request: Request) -> Any:
        if request.ask is Ask.READ:
            return len(self.entries), fold(self.entries)
        if request.ask is Ask.APPEND:
            assert request.revision == len(self.entries)
            assert request.entry is not None
            self.entries.append(request.entry)
            return len(self.entries)
        for id_ in request.transactions:
            if self.status(id_) is Status.OPEN and request.ask is Ask.COMMIT:
                self.committed[id_] = ROWS
            elif self.status(id_) is Status.OPEN and request.ask is Ask.ABORT:
                self.aborted.add(id_)
        return {id_: self.status(id_) for id_ in request.transactions}

    def status(self, id_: UUID) -> Status:
        if id_ in self.aborted:
            return Status.ABORTED
        return Status.OPEN if self.committed[id_] is None else Status.COMMITTED


def test_an_operator_compares_nothing():
    assert read(committed((5, ROWS)), job(5, run="", role=Role.OPERATOR)).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(("came", "outcome"), [(ROWS, Outcome.COMMITTED), (OTHER, Outcome.OTHER_ROWS)])
def test_a_prepared_batch_is_finished_and_then_compared(came: Content, outcome: Outcome):
    prepared = Prepared("app", "query", "old", "n", 0, 0, (part(1, Content(1, 10, 3)), part(2, Content(1, 10, 4))))
    machine = read(fold([prepared]), job(0, came))
    machine = machine.answered({UUID(int=1): Status.COMMITTED, UUID(int=2): Status.COMMITTING})
    assert machine.phase is Phase.RECORD
    entry = machine.request().entry
    assert isinstance(entry, Committed)
    assert entry.content == ROWS
    assert machine.answered(2).outcome is outcome
    accepting = replace(machine, job=replace(machine.job, accept=0))
    assert accepting.answered(2).outcome is Outcome.COMMITTED


def test_nothing_is_prepared_while_the_last_batch_is_not_visible():
    ids = (UUID(int=1), UUID(int=2), UUID(int=3))
    prepared = Prepared("app", "query", "old", "n", 0, 0, tuple(Part(id_, ROWS) for id_ in ids))
    state = fold([prepared, Committed("app", "query", "old", "n", 0, ROWS)])
    machine = read(state, job(1, ROWS))
    assert machine.phase is Phase.PING_OWN
    machine = machine.answered(dict.fromkeys(machine.request().transactions, Status.OPEN))
    assert (machine.phase, machine.request().transactions) == (Phase.AWAIT, ids)
    machine = machine.answered(dict(zip(ids, (Status.COMMITTED, Status.COMMITTING, Status.UNKNOWN), strict=True)))
    assert (machine.phase, machine.request().transactions) == (Phase.AWAIT, ids[1:2])
    machine = machine.answered({ids[1]: Status.COMMITTED})
    assert machine.phase is Phase.PREPARE


def test_every_phase_can_be_reached_and_left():
    reached = {move.to for move in TABLE.values()} | {Phase.READ, Phase.ABANDON_READ}
    left = {phase for phase, _ in TABLE}
    assert reached == set(Phase)
    assert left == set(Phase) - {Phase.END} == set(_JUDGES)
