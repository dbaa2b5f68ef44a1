"""Machines with one rule taken out, and worlds in which that shows: the model must be able to find fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from uuid import UUID

from pravega_connector.client import TransactionStatus as Status
from pravega_connector.exactly_once.batch_commit import (
    TABLE,
    AppState,
    Commit,
    Event,
    Key,
    LedgerState,
    Move,
    Outcome,
    Phase,
    Table,
)
from tools.model.world import Config

_Judgement = tuple[Event, dict[str, Any]]


def _edited(*edits: tuple[Phase, Event, Move]) -> Table:
    return {**TABLE, **{(phase, event): move for phase, event, move in edits}}


@dataclass(frozen=True)
class NoPilot(Commit):
    """All transactions are committed at once."""

    table: ClassVar[Table] = _edited((Phase.PING_RECORDED, Event.WHOLE, Move(Phase.COMMIT_REST)))


@dataclass(frozen=True)
class RefusedAbortIgnored(Commit):
    """A pilot that could not be aborted is taken for lost."""

    table: ClassVar[Table] = _edited((Phase.ABORT_PILOT, Event.REFUSED, Move(Phase.ABORT_RECORDED)))


@dataclass(frozen=True)
class RepairNotRecorded(Commit):
    """The transactions of a repair are committed before the ledger names them."""

    def _after(self, answer: Any) -> Commit:
        after = super()._after(answer)
        if self.phase is not Phase.WEIGH or after.phase is not Phase.PING_OWN:
            return after
        kept = [Status.OPEN if status.is_aborted else status for status in after.statuses]
        return replace(after, phase=Phase.PING_RECORDED, recorded=after.proposed, proposed=None, statuses=tuple(kept))


@dataclass(frozen=True)
class UnknownIsLost(Commit):
    """A status that was forgotten is taken for an abort."""

    def _judge_statuses(self, answer: Mapping[UUID, Status]) -> _Judgement:
        return super()._judge_statuses(
            {id_: Status.ABORTED if status is Status.UNKNOWN else status for id_, status in answer.items()}
        )


@dataclass(frozen=True)
class NoTasksNothingToDo(Commit):
    """A batch without tasks succeeds without a look at the ledger."""

    table: ClassVar[Table] = _edited(
        (Phase.READ, Event.RECORDED, Move(Phase.END, Outcome.COMMITTED)),
        (Phase.READ, Event.NO_TASKS, Move(Phase.END, Outcome.COMMITTED)),
    )

    def _judge_read(self, answer: tuple[Any, LedgerState]) -> _Judgement:
        event, changes = super()._judge_read(answer)
        return (Event.NO_TASKS if not self.job.app else event), changes


@dataclass(frozen=True)
class NoBarrier(Commit):
    """A batch without tasks leaves no mark: what was on its way can still be recorded."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.NO_TASKS, Move(Phase.END, Outcome.COMMITTED)))


@dataclass(frozen=True)
class AbortForgetsRepairs(Commit):
    """``abort()`` aborts what the ledger does not name, though a repair that names it may be on its way."""

    def _judge_abandoning(self, answer: tuple[Any, LedgerState]) -> _Judgement:
        event, changes = super()._judge_abandoning(answer)
        recorded = changes["recorded"]
        named = {part.transaction for part in recorded.parts} if recorded else set()
        return (Event.UNRECORDED if named.isdisjoint(self.job.ids()) else event), changes


@dataclass(frozen=True)
class SkippedUnseen(Commit):
    """A batch number that is committed is passed over, whatever its rows are."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.OTHER_ROWS, Move(Phase.ABORT_OWN, Outcome.SKIPPED)))


@dataclass(frozen=True)
class HelpedUnseen(Commit):
    """What was recorded is committed, and counts for the own rows, whatever these are."""

    table: ClassVar[Table] = _edited((Phase.RECORD, Event.OTHER_ROWS, Move(Phase.ABORT_OWN, Outcome.COMMITTED)))


@dataclass(frozen=True)
class SameRunUnseen(Commit):
    """What this very call has recorded as committed is taken for the own rows, though it may be another's."""

    def _judge_read(self, answer: tuple[Any, LedgerState]) -> _Judgement:
        event, changes = super()._judge_read(answer)
        app = answer[1].get(Key(self.job.app, self.job.target))
        mine = event is Event.OTHER_ROWS and app is not None and app.seen_nonce == self.job.nonce
        return (Event.COMMITTED_NOW if mine else event), changes


@dataclass(frozen=True)
class NotAwaited(Commit):
    """A batch is committed although the one before may not be visible yet."""

    table: ClassVar[Table] = _edited((Phase.PING_OWN, Event.WHOLE, Move(Phase.PREPARE)))


@dataclass(frozen=True)
class AnySeen(Commit):
    """The batch before counts as visible when a part of it is."""

    def _judge_visible(self, answer: Mapping[UUID, Status]) -> _Judgement:
        event, changes = super()._judge_visible(answer)
        return (event if len(changes["settling"]) == len(answer) else Event.VISIBLE), changes


@dataclass(frozen=True)
class TargetsShared(Commit):
    """Batches are known by their application, whichever target they are for."""

    def _app(self, state: LedgerState) -> AppState:
        mine = [app for app in state.values() if app.app == self.job.app]
        return max(mine, key=lambda app: app.last, default=super()._app(state))


@dataclass(frozen=True)
class PingsKept(Commit):
    """A ping counts for its time, whatever is learned of its transaction meanwhile."""

    def _told(self, answer: Any) -> Commit:
        return replace(super()._told(answer), fresh=self.fresh | super()._told(answer).fresh)


@dataclass(frozen=True)
class NotKept(Commit):
    """While the pilot is awaited nobody pings the others."""

    table: ClassVar[Table] = _edited((Phase.AWAIT_COMMIT, Event.NOT_YET, Move(Phase.AWAIT_COMMIT)))


#: What users would see of each, in a world that is large enough for it.
MUTANTS: list[tuple[str, Config]] = [
    ("DUPLICATE", Config(2, 1, crash=1, expiry=1, placements="EX", commit=NoPilot, invariants=False)),
    ("DUPLICATE", Config(2, 1, crash=1, expiry=1, placements="EX", commit=RefusedAbortIgnored, invariants=False)),
    ("DUPLICATE", Config(2, 1, crash=1, expiry=1, zombie=1, commit=RepairNotRecorded, invariants=False)),
    ("DUPLICATE", Config(2, 1, crash=1, forget=2, placements="EX", commit=UnknownIsLost, invariants=False)),
    ("LOSS", Config(2, 2, crash=1, expiry=1, placements="EXZ", commit=NoTasksNothingToDo, invariants=False)),
    ("LOSS", Config(2, 2, crash=1, expiry=1, placements="EXZ", commit=NoBarrier, invariants=False)),
    ("LOSS", Config(1, 1, crash=1, placements="EO", commit=SkippedUnseen, invariants=False)),
    ("LOSS", Config(1, 1, zombie=1, placements="EO", commit=SkippedUnseen, invariants=False)),
    ("LOSS", Config(1, 1, crash=1, placements="EO", commit=HelpedUnseen, invariants=False)),
    ("LOSS", Config(2, 1, crash=1, placements="EN", commit=HelpedUnseen, invariants=False)),
    ("LOSS", Config(1, 1, crash=1, unknown=1, placements="EO", commit=SameRunUnseen, invariants=False)),
    ("ORDER", Config(1, 2, commit=NotAwaited, invariants=False)),
    ("ORDER", Config(2, 2, commit=AnySeen, invariants=False)),
    ("LOSS", Config(1, 1, targets=2, commit=TargetsShared, invariants=False)),
    ("LOSS", Config(2, 2, targets=2, commit=TargetsShared, invariants=False)),
    ("NO PROGRESS", Config(1, 1, expiry=1, commit=PingsKept, invariants=False)),
    ("INVARIANT", Config(2, 1, expiry=1, commit=PingsKept)),
    ("TORN", Config(2, 1, lease=5, placements="EX", commit=NotKept, invariants=False)),
    ("INVARIANT", Config(2, 1, crash=1, expiry=1, unknown=1, placements="EX", commit=AbortForgetsRepairs)),
]
