"""The machine's result for a committed number: passed over, refused, or accepted; its table has no dead end."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from pravega_connector.client import StreamName
from pravega_connector.client import TransactionStatus as Status
from pravega_connector.errors import FencedError
from pravega_connector.exactly_once.batch_commit import (
    SEVERAL_STREAMS,
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
    TransactionId,
    check,
    content_of,
    fold,
)
from pravega_connector.exactly_once.batch_commit.machine import _JUDGES

TARGET = "s/a#0"


def id_of(number: int, stream: str = TARGET) -> TransactionId:
    return TransactionId(stream, UUID(int=number))


def part(number: int, content: Content, stream: str = TARGET) -> Part:
    return Part(id_of(number, stream), content)


ROWS, OTHER = Content(2, 20, 7), Content(2, 20, 8)
BATCH = content_of([part(0, ROWS)])


def job(batch: int, *contents: Content, run: str = "new", **more: Any) -> Job:
    own = tuple(part(100 + i, content) for i, content in enumerate(contents))
    return Job("app", "query", run, "nonce", batch, own, **more)


def committed(*batches: tuple[int, Content], run: str = "old", nonce: str = "n") -> LedgerState:
    rows = ((batch, content_of([part(0, content)]) if content.rows else content) for batch, content in batches)
    return fold(Committed("app", "query", run, nonce, batch, content) for batch, content in rows)


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
    assert machine.known == (content_of([part(0, known)]) if known.rows else known)
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
    assert read(fold([prepared]), Job("", "", "", "n", 5, (), Role.BYSTANDER, target="s/b#0")).phase is Phase.EVALUATE


def test_a_later_prepared_batch_is_no_other_run():
    prepared = Prepared("app", "query", "old", "n", 7, 0, (part(1, ROWS),))
    state = fold([Committed("app", "query", "old", "n", 5, BATCH), prepared])
    machine = read(state, job(5, ROWS))
    assert (machine.outcome, machine.recorded) == (Outcome.AHEAD, prepared)
    with pytest.raises(FencedError, match=r"batch 7 of app for stream s/a: .* only at batch 5.*recover s/a --finish"):
        check(machine, StreamName("s", "a"))
    other = fold(
        [Committed("app", "query", "other", "n", 5, BATCH)],
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
        self.committed: dict[TransactionId, Content | None] = {}
        self.aborted: set[TransactionId] = set()

    def write_twice(self, run: str, calls: int | None = None) -> Outcome | None:
        """Write a batch twice; return the outcome that is an error, None for two that are none, or after a crash."""
        for write in range(2):
            own = part(len(self.committed) + 1, ROWS)
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

    def status(self, id_: TransactionId) -> Status:
        if id_ in self.aborted:
            return Status.ABORTED
        return Status.OPEN if self.committed[id_] is None else Status.COMMITTED


def test_an_operator_compares_nothing():
    assert read(committed((5, ROWS)), job(5, run="", role=Role.OPERATOR)).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(("came", "outcome"), [(ROWS, Outcome.COMMITTED), (OTHER, Outcome.OTHER_ROWS)])
def test_a_prepared_batch_is_finished_and_then_compared(came: Content, outcome: Outcome):
    prepared = Prepared("app", "query", "old", "n", 0, 0, (part(1, Content(1, 10, 3)), part(2, Content(1, 10, 4))))
    machine = read(fold([prepared]), job(0, came))
    machine = machine.answered({id_of(1): Status.COMMITTED, id_of(2): Status.COMMITTING})
    assert machine.phase is Phase.RECORD
    entry = machine.request().entry
    assert isinstance(entry, Committed)
    assert entry.content == BATCH
    assert machine.answered(2).outcome is outcome
    accepting = replace(machine, job=replace(machine.job, accept=0))
    assert accepting.answered(2).outcome is Outcome.COMMITTED


def test_nothing_is_prepared_while_the_last_batch_is_not_visible():
    ids = (id_of(1), id_of(2), id_of(3))
    prepared = Prepared("app", "query", "old", "n", 0, 0, tuple(Part(id_, ROWS) for id_ in ids))
    state = fold([prepared, Committed("app", "query", "old", "n", 0, BATCH)])
    machine = read(state, job(1, ROWS))
    assert machine.phase is Phase.PING_OWN
    machine = machine.answered(dict.fromkeys(machine.request().transactions, Status.OPEN))
    assert (machine.phase, machine.request().transactions) == (Phase.AWAIT, ids)
    machine = machine.answered(dict(zip(ids, (Status.COMMITTED, Status.COMMITTING, Status.UNKNOWN), strict=True)))
    assert (machine.phase, machine.request().transactions) == (Phase.AWAIT, ids[1:2])
    machine = machine.answered({ids[1]: Status.COMMITTED})
    assert machine.phase is Phase.PREPARE


# ---- several streams -------------------------------------------------------------------------------------------------

ORDERS, AUDIT, AUDIT_AGAIN = "s/orders#0", "s/audit#0", "s/audit#3"


def over(*streams: str, first: int = 1) -> tuple[Part, ...]:
    """One part with the same rows in each stream."""
    return tuple(part(first + i, ROWS, stream) for i, stream in enumerate(streams))


def weighed(statuses: tuple[Status, ...], own: tuple[Part, ...], *recorded: Part, gone: tuple[str, ...] = ()) -> Commit:
    """Machine of a replay that has asked for the statuses of a recorded batch, and for its streams if it wants to."""
    state = fold([Prepared("app", "query", "old", "n", 0, 0, recorded, SEVERAL_STREAMS)])
    machine = read(state, Job("app", "query", "new", "nonce", 0, own, target=SEVERAL_STREAMS))
    answer = dict(zip((part.transaction for part in recorded), statuses, strict=True))
    machine = machine.answered(answer)
    while machine.phase is Phase.EXIST:
        asked = machine.request().streams
        machine = machine.answered(frozenset(gone) & frozenset(asked)).answered(answer)
    return machine


def test_a_row_in_another_stream_is_another_row():
    state = fold([Committed("app", "query", "old", "n", 0, content_of(over(ORDERS, AUDIT)), SEVERAL_STREAMS)])
    for streams, outcome in (
        ((ORDERS, AUDIT), Outcome.SKIPPED),
        ((AUDIT, ORDERS), Outcome.SKIPPED),
        ((ORDERS, AUDIT_AGAIN), Outcome.SKIPPED),
        ((ORDERS, ORDERS), Outcome.OTHER_ROWS),
        ((ORDERS, "s/other#0"), Outcome.OTHER_ROWS),
    ):
        own = Job("app", "query", "new", "nonce", 0, over(*streams), target=SEVERAL_STREAMS)
        assert read(state, own).outcome is outcome, streams


def test_a_stream_without_a_committed_part_is_written_again_in_any_partitions():
    pilot, *lost = over(ORDERS, AUDIT, AUDIT)
    replay = (part(11, ROWS, ORDERS), part(12, ROWS + ROWS, AUDIT))
    machine = weighed((Status.COMMITTED, Status.ABORTED, Status.ABORTED), replay, pilot, *lost)
    assert machine.proposed is not None
    assert machine.proposed.parts == (pilot, replay[1])
    assert machine.proposed.content == content_of((pilot, *lost))
    torn = weighed((Status.COMMITTED, Status.COMMITTED, Status.ABORTED), replay, pilot, *lost)
    assert torn.outcome is Outcome.TORN


def test_lost_rows_are_replaced_only_in_their_stream():
    replay = (part(11, ROWS, ORDERS), part(12, OTHER, AUDIT))
    assert weighed((Status.COMMITTED, Status.ABORTED), replay, *over(ORDERS, AUDIT)).outcome is Outcome.TORN


def test_the_streams_do_not_wait_for_each_other():
    """The pilot's stream has another transaction, which waits; the first of each other stream does not."""
    recorded = over(ORDERS, ORDERS, AUDIT, AUDIT)
    ids = [part.transaction for part in recorded]
    machine = weighed((Status.COMMITTING, Status.OPEN, Status.OPEN, Status.OPEN), (), *recorded)
    assert (machine.request().ask, set(machine.request().transactions)) == (Ask.PING, set(ids[1:]))
    machine = machine.answered(dict.fromkeys(ids[1:], Status.OPEN))
    assert (machine.request().ask, machine.request().transactions) == (Ask.SETTLE, (ids[0],))
    machine = machine.answered({ids[0]: Status.COMMITTING})
    assert (machine.request().ask, machine.request().transactions) == (Ask.COMMIT, tuple(ids[2:]))


@pytest.mark.parametrize(
    ("statuses", "gone", "phase", "outcome"),
    [
        # another one is committed, so the pilot was: its rows were deleted with their stream
        ((Status.UNKNOWN, Status.COMMITTED), (ORDERS,), Phase.RECORD, None),
        ((Status.COMMITTED, Status.UNKNOWN), (AUDIT,), Phase.RECORD, None),
        ((Status.OPEN, Status.UNKNOWN), (AUDIT,), Phase.ABORT_PILOT, None),
        ((Status.UNKNOWN, Status.OPEN), (ORDERS,), Phase.ABORT_RECORDED, None),
        ((Status.UNKNOWN, Status.ABORTED), (ORDERS,), Phase.PING_OWN, None),
        ((Status.UNKNOWN, Status.UNKNOWN), (ORDERS, AUDIT), Phase.PING_OWN, None),
        ((Status.UNKNOWN, Status.UNKNOWN), (ORDERS,), Phase.ABORT_OWN, Outcome.UNDECIDABLE),
        ((Status.UNKNOWN, Status.OPEN), (), Phase.ABORT_OWN, Outcome.UNDECIDABLE),
    ],
)
def test_a_deleted_stream_does_not_need_an_operator(
    statuses: tuple[Status, ...], gone: tuple[str, ...], phase: Phase, outcome: Outcome | None
):
    machine = weighed(statuses, over(ORDERS, AUDIT, first=11), *over(ORDERS, AUDIT), gone=gone)
    assert (machine.phase, machine.outcome) == (phase, outcome)


def test_an_abort_that_is_refused_after_the_pilots_stream_was_deleted_is_not_ignored():
    """Another driver has seen the pilot committed, and has just committed the rest."""
    recorded = over(ORDERS, AUDIT)
    machine = weighed((Status.UNKNOWN, Status.OPEN), over(ORDERS, AUDIT, first=11), *recorded, gone=(ORDERS,))
    assert machine.request().transactions == (recorded[1].transaction,)
    assert machine.answered({recorded[1].transaction: Status.COMMITTING}).phase is Phase.READ
    # It was committed and is forgotten.
    assert machine.answered({recorded[1].transaction: Status.UNKNOWN}).phase is Phase.READ
    assert machine.answered({recorded[1].transaction: Status.ABORTED}).phase is Phase.PING_OWN


def test_every_phase_can_be_reached_and_left():
    reached = {move.to for move in TABLE.values()} | {Phase.READ, Phase.ABANDON_READ}
    left = {phase for phase, _ in TABLE}
    assert reached == set(Phase)
    assert left == set(Phase) - {Phase.END} == set(_JUDGES)
