"""State machine of one turn of a run: claim units, record a step, commit it. It does no I/O.

A transaction is a one-shot register on the server: OPEN becomes COMMITTING or ABORTING once, permanently. The log is
changed by conditional appends only. The rules:

1. A run owns the units that it has claimed. A claim is appended only when every recorded step on it is decided.
2. A step is recorded if its run owns all of its items, and each is at the step's start.
3. Only the run that recorded a step commits it, and only after its record was accepted.
4. The next run to claim an item decides its recorded step by aborting the transaction. If the abort is refused, the
   step is committed.
5. A step is committed only when the transaction before it is visible, so readers see steps in their order.
6. A transaction that the server has forgotten stays undecided, until an operator decides its outcome.
7. The parts of a step are recorded before its transaction is committed, and committed after it, by anyone who learns
   that it is committed. A part that was aborted is owed, and written again before the next step.

Each item is in the output exactly once, because only recorded transactions are committed. Rule 1 decides each recorded
step before another step is recorded on its items. If it is committed, the next step begins after it. If it is aborted,
the next step begins before it. A run that was presumed dead has lost its claim when it records, or its transaction is
aborted when it commits.

A run may record its transaction before it writes it, as ingestion does: the open transaction is a sign of life. Or it
records it after writing, as readers of a group do, which know only then what they have read. The rules hold in both
cases.

The phases of a turn, and what sends it back or ends it::

              another run appended first
         ,-----------------------------------.
         v                                   |
    -> READ -------> SETTLE -------------> APPEND ------> AWAIT --------> COMMIT -------> COMMIT_PARTS --> SEE --> END
        | ^          steps before are      the record     the step        the decision    other streams    readers
        v |          visible               names the      before is       is made here    of the step      see it
      DECIDE or                            transaction    visible
      COMPLETE: recorded steps of others are aborted, or their parts committed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Final
from uuid import UUID

from pravega_connector.core.values import TransactionStatus as Status
from pravega_connector.exactly_once.steps.state import Named, Step, StepsState, Update, Verdict, check, undecided


class Phase(Enum):
    """Phase of a turn. The value describes the request to the servers."""

    READ = "read the log to its end"
    DECIDE = "abort the recorded steps that are in the way"
    COMPLETE = "commit the parts of the recorded steps that are committed"
    SETTLE = "ask whether what was committed before is visible"
    APPEND = "append the update"
    AWAIT = "ask whether the step before is visible"
    COMMIT = "commit the recorded step"
    COMMIT_PARTS = "commit the parts of the recorded step"
    SEE = "ask whether the recorded step is visible"
    END = "end"


class Event(Enum):
    """Meaning of an answer."""

    LOST = "the run may not write this any more"
    RECORDED = "the step is in the log already"
    UNDECIDED = "recorded steps are in the way"
    BUSY = "recorded steps are in the way that the turn must not decide"
    FREE = "the update may be appended"
    DECIDED = "each step in the way is decided"
    IN_PARTS = "a committed step has parts"
    FORGOTTEN = "the server has forgotten a transaction"
    VISIBLE = "all of it is visible"
    NOT_YET = "not yet"
    ACCEPTED = "appended"
    REFUSED = "another run has appended first"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Outcome(Enum):
    """End of a turn."""

    WRITTEN = "the update is in the log"
    COMMITTED = "the step is committed"
    ABORTED = "the step's transaction was aborted: its items come again"
    OWED = "the step is committed, but a part of it is not"
    LOST = "another run has taken over"
    BUSY = "another run has recorded a step, and may be at work"
    UNDECIDED = "the server has forgotten a transaction, so its outcome is unknown"


class Ask(Enum):
    """Kind of a request. The comment names the type of the answer."""

    READ = "read"  # (revision, StepsState)
    APPEND = "append"  # bool: False if refused; sent again after a lost answer
    ABORT = "abort"  # transaction -> Status after the call
    STATUS = "status"  # transaction -> Status
    COMMIT = "commit"  # transaction -> Status after the call


@dataclass(frozen=True, slots=True)
class Request:
    """Request to the servers."""

    ask: Ask
    transactions: tuple[Named, ...] = ()
    update: Update | None = None
    revision: Any = None
    """End of the log for this update. An append at another revision is refused."""


@dataclass(frozen=True, slots=True)
class Move:
    """Next phase, and the outcome if it is known."""

    to: Phase
    outcome: Outcome | None = None


Table = Mapping[tuple[Phase, Event], Move]
TABLE: Final[Table] = {
    (Phase.READ, Event.LOST): Move(Phase.END, Outcome.LOST),
    (Phase.READ, Event.RECORDED): Move(Phase.AWAIT),
    (Phase.READ, Event.UNDECIDED): Move(Phase.DECIDE),
    (Phase.READ, Event.BUSY): Move(Phase.END, Outcome.BUSY),
    (Phase.READ, Event.IN_PARTS): Move(Phase.COMPLETE),
    (Phase.READ, Event.FREE): Move(Phase.SETTLE),
    (Phase.DECIDE, Event.DECIDED): Move(Phase.READ),
    (Phase.DECIDE, Event.FORGOTTEN): Move(Phase.END, Outcome.UNDECIDED),
    (Phase.COMPLETE, Event.DECIDED): Move(Phase.READ),
    (Phase.COMPLETE, Event.FORGOTTEN): Move(Phase.END, Outcome.UNDECIDED),
    (Phase.SETTLE, Event.VISIBLE): Move(Phase.APPEND),
    (Phase.SETTLE, Event.NOT_YET): Move(Phase.SETTLE),
    (Phase.APPEND, Event.ACCEPTED): Move(Phase.AWAIT),
    (Phase.APPEND, Event.REFUSED): Move(Phase.READ),
    (Phase.AWAIT, Event.VISIBLE): Move(Phase.COMMIT),
    (Phase.AWAIT, Event.NOT_YET): Move(Phase.AWAIT),
    (Phase.COMMIT, Event.COMMITTED): Move(Phase.SEE, Outcome.COMMITTED),
    (Phase.COMMIT, Event.IN_PARTS): Move(Phase.COMMIT_PARTS),
    (Phase.COMMIT, Event.ABORTED): Move(Phase.END, Outcome.ABORTED),
    (Phase.COMMIT, Event.FORGOTTEN): Move(Phase.END, Outcome.UNDECIDED),
    (Phase.COMMIT_PARTS, Event.COMMITTED): Move(Phase.SEE, Outcome.COMMITTED),
    (Phase.COMMIT_PARTS, Event.ABORTED): Move(Phase.END, Outcome.OWED),
    (Phase.SEE, Event.VISIBLE): Move(Phase.END),
    (Phase.SEE, Event.NOT_YET): Move(Phase.SEE),
}

_Judgement = tuple[Event, dict[str, Any]]


@dataclass(frozen=True)
class Turn:
    """State of one turn. Immutable: ``answered`` returns the next state."""

    update: Update
    commit: bool = False
    """True to commit the step once it is recorded. Otherwise the run writes first, and calls :meth:`committing`."""
    deciding: frozenset[UUID] | None = None
    """Recorded transactions that the turn may decide; None for all. An active run decides its own."""
    see: bool = True
    """True to wait until readers see the committed step."""
    resolution: Mapping[UUID, bool] = field(default_factory=dict)
    """Operator's decision on forgotten transactions: True for each committed one."""
    phase: Phase = Phase.READ
    state: StepsState | None = None
    """State of the log when it was last read. It may change in place when the log is read again."""
    revision: Any = None
    """Revision of ``state``."""
    in_the_way: tuple[Step, ...] = ()
    incomplete: frozenset[UUID] = frozenset()
    """Transactions that the turn found committed, whose steps may have parts that are not committed."""
    forgotten: Named | None = None
    """Transaction that the server has forgotten, with the outcome UNDECIDED."""
    unseen: tuple[Named, ...] = ()
    """Committed transactions that were not yet visible when last asked."""
    reason: str = ""
    outcome: Outcome | None = None
    table: ClassVar[Table] = TABLE

    @property
    def ended(self) -> bool:
        """True if the turn has an outcome and needs no further call."""
        return self.phase is Phase.END

    def recorded(self, transaction: UUID) -> bool | None:
        """Return the outcome that this turn has written to the log: True for a committed transaction.

        None means that another run has decided the step, and may have gone on. The run then restarts from the log.
        """
        return self.update.decided.get(transaction) if self.outcome is Outcome.WRITTEN else None

    def awaiting(self) -> Turn:
        """Return the turn that waits until the step before is visible. The step is recorded."""
        return replace(self, phase=Phase.SEE)._passed()

    def committing(self) -> Turn:
        """Return the turn that commits the recorded step once the step before is visible."""
        return replace(self, commit=True, phase=Phase.AWAIT, outcome=None)._passed()

    def seeing(self) -> Turn:
        """Return the turn that waits until the committed step is visible."""
        assert self.update.step is not None
        return replace(self, phase=Phase.SEE, unseen=transactions(self.update.step), outcome=Outcome.COMMITTED)

    def request(self) -> Request:
        """Return the next request; invalid once the turn has ended."""
        if self.phase is Phase.READ:
            return Request(Ask.READ)
        if self.phase is Phase.DECIDE:
            return Request(Ask.ABORT, tuple(_named(step) for step in self.in_the_way))
        if self.phase is Phase.COMPLETE:
            return Request(Ask.COMMIT, tuple(part for step in self.in_the_way for part in step.parts))
        if self.phase is Phase.APPEND:
            return Request(Ask.APPEND, update=self.update, revision=self.revision)
        if self.phase in (Phase.COMMIT, Phase.COMMIT_PARTS):
            assert self.update.step is not None
            step = self.update.step
            return Request(Ask.COMMIT, (_named(step),) if self.phase is Phase.COMMIT else step.parts)
        return Request(Ask.STATUS, self.unseen)

    def answered(self, answer: Any) -> Turn:
        """Return the turn after an answer."""
        return self._after(answer)._passed()

    def _after(self, answer: Any) -> Turn:
        event, changes = getattr(self, _JUDGES[self.phase])(answer)
        move = self.table[self.phase, event]
        return replace(self, **changes, phase=move.to, outcome=move.outcome or self.outcome)

    def _passed(self) -> Turn:
        """Return the turn after skipping the phases without a request."""
        turn = self
        while turn.phase in _WAITS and not turn.unseen:
            turn = turn._after({})
        if turn.phase in (Phase.AWAIT, Phase.COMMIT) and not turn.commit:
            return replace(turn, phase=Phase.END, outcome=Outcome.WRITTEN)
        return turn

    # ---- events of the answers ---------------------------------------------------------------------------------------

    def _judge_read(self, answer: tuple[Any, StepsState]) -> _Judgement:
        revision, state = answer
        # Other runs may have written some of these decisions during this run's requests.
        recorded = {step.transaction for step in state.steps.values()}
        decided = {id_: committed for id_, committed in self.update.decided.items() if id_ in recorded}
        owed = {id_: streams for id_, streams in self.update.owed.items() if id_ in recorded}
        update = replace(self.update, decided=decided, owed=owed)
        verdict, reason = check(state, update)
        changes: dict[str, Any] = {"state": state, "revision": revision, "update": update, "reason": reason}
        changes["in_the_way"] = tuple(undecided(state, update)) if verdict is Verdict.UNDECIDED else ()
        if verdict is Verdict.DONE:
            changes["unseen"] = self._before_the_step()
        event = _VERDICTS[verdict]
        # A step may have been given its parts after it was read, but not after its transaction was committed.
        in_parts = tuple(s for s in state.steps.values() if s.transaction in self.incomplete and s.parts)
        if in_parts and verdict is not Verdict.LOST:
            return Event.IN_PARTS, {**changes, "in_the_way": in_parts}
        left = self.deciding is not None and any(s.transaction not in self.deciding for s in changes["in_the_way"])
        return (Event.BUSY if left else event), changes

    def _before_the_step(self) -> tuple[Named, ...]:
        return self.update.step.after if self.update.step is not None else ()

    def _judge_decided(self, answer: Mapping[UUID, Status]) -> _Judgement:
        decided, unseen, incomplete = dict(self.update.decided), list(self.unseen), set(self.incomplete)
        for step in self.in_the_way:
            committed = self._is_committed(step.transaction, answer[step.transaction])
            if committed is None:
                return Event.FORGOTTEN, {"forgotten": _named(step)}
            decided[step.transaction] = committed
            # No other step waits for the transactions before an aborted step.
            unseen += (_named(step),) if committed else step.after
            incomplete |= {step.transaction} if committed else set()
        changes = {"update": replace(self.update, decided=decided), "unseen": tuple(unseen), "in_the_way": ()}
        return Event.DECIDED, changes | {"incomplete": frozenset(incomplete)}

    def _is_committed(self, id_: UUID, status: Status) -> bool | None:
        if status.is_committed or status.is_aborted:
            return status.is_committed
        if self.state is not None and self.update.life != self.state.life:
            return False  # no position of the earlier life is used again
        return self.resolution.get(id_)

    def _judge_completed(self, answer: Mapping[UUID, Status]) -> _Judgement:
        owed, unseen = dict(self.update.owed), list(self.unseen)
        for step in self.in_the_way:
            missing = []
            for part in step.parts:
                committed = self._is_committed(part.id, answer[part.id])
                if committed is None:
                    return Event.FORGOTTEN, {"forgotten": part}
                if committed:
                    unseen.append(part)
                else:
                    missing.append(part.stream)
            if missing:
                owed[step.transaction] = tuple(missing)
        changes = {"update": replace(self.update, owed=owed), "unseen": tuple(unseen), "in_the_way": ()}
        return Event.DECIDED, changes | {"incomplete": frozenset()}

    def _judge_visible(self, answer: Mapping[UUID, Status]) -> _Judgement:
        unseen = tuple(named for named in self.unseen if answer.get(named.id) is Status.COMMITTING)
        return (Event.NOT_YET if unseen else Event.VISIBLE), {"unseen": unseen}

    def _judge_appended(self, accepted: bool) -> _Judgement:
        if not accepted:
            return Event.REFUSED, {}
        return Event.ACCEPTED, {"unseen": self._before_the_step()}

    def _judge_committed(self, answer: Mapping[UUID, Status]) -> _Judgement:
        assert self.update.step is not None
        named = _named(self.update.step)
        status = answer[named.id]
        if status.is_committed:
            unseen = (named,) if self.see and status is not Status.COMMITTED else ()
            return (Event.IN_PARTS if self.update.step.parts else Event.COMMITTED), {"unseen": unseen}
        return (Event.ABORTED if status.is_aborted else Event.FORGOTTEN), {}

    def _judge_committed_parts(self, answer: Mapping[UUID, Status]) -> _Judgement:
        assert self.update.step is not None
        if not all(answer[part.id].is_committed for part in self.update.step.parts):
            return Event.ABORTED, {}
        late = [part for part in self.update.step.parts if answer[part.id] is not Status.COMMITTED]
        return Event.COMMITTED, {"unseen": (*self.unseen, *late) if self.see else ()}


def _named(step: Step) -> Named:
    return Named(step.stream, step.transaction)


def transactions(step: Step) -> tuple[Named, ...]:
    """Return the transactions of a step; the first one decides."""
    return (_named(step), *step.parts)


#: Phases that wait until transactions are visible.
_WAITS: Final = frozenset({Phase.SETTLE, Phase.AWAIT, Phase.SEE})
_VERDICTS: Final = {
    Verdict.LOST: Event.LOST,
    Verdict.DONE: Event.RECORDED,
    Verdict.UNDECIDED: Event.UNDECIDED,
    Verdict.WRITE: Event.FREE,
}
_JUDGES: Final = {
    Phase.READ: "_judge_read",
    Phase.DECIDE: "_judge_decided",
    Phase.COMPLETE: "_judge_completed",
    Phase.SETTLE: "_judge_visible",
    Phase.APPEND: "_judge_appended",
    Phase.AWAIT: "_judge_visible",
    Phase.COMMIT: "_judge_committed",
    Phase.COMMIT_PARTS: "_judge_committed_parts",
    Phase.SEE: "_judge_visible",
}
