"""Machines with one rule taken out, and worlds in which that shows: the model must be able to find fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pravega_connector.client import TransactionStatus as Status
from pravega_connector.exactly_once.batch_commit import (
    TABLE,
    AppState,
    Commit,
    Content,
    Event,
    Key,
    LedgerState,
    Move,
    Outcome,
    Phase,
    Prepared,
    Table,
    TransactionId,
    content_of,
)
from tools.model.world_state import Config

_Judgement = tuple[Event, dict[str, Any]]


def _edited(*edits: tuple[Phase, Event, Move]) -> Table:
    return {**TABLE, **{(phase, event): move for phase, event, move in edits}}


@dataclass(frozen=True)
class NoPilot(Commit):
    """All transactions are committed at once."""

    table: ClassVar[Table] = _edited((Phase.PING_RECORDED, Event.WHOLE, Move(Phase.COMMIT_REST)))


@dataclass(frozen=True)
class RefusedAbortIgnored(Commit):
    """A pilot that could not be aborted counts as lost."""

    table: ClassVar[Table] = _edited((Phase.ABORT_PILOT, Event.REFUSED, Move(Phase.ABORT_RECORDED)))


@dataclass(frozen=True)
class RepairNotRecorded(Commit):
    """The transactions of a repair are committed before the ledger names them."""

    def _after(self, answer: Any) -> Commit:
        after = super()._after(answer)
        if self.phase is not Phase.EVALUATE or after.phase is not Phase.PING_OWN:
            return after
        kept = [Status.OPEN if status.is_aborted else status for status in after.statuses]
        return replace(after, phase=Phase.PING_RECORDED, recorded=after.proposed, proposed=None, statuses=tuple(kept))


@dataclass(frozen=True)
class UnknownIsLost(Commit):
    """A status that was forgotten counts as an abort."""

    def _judge_statuses(self, answer: Mapping[TransactionId, Status]) -> _Judgement:
        return super()._judge_statuses(
            {id_: Status.ABORTED if status is Status.UNKNOWN else status for id_, status in answer.items()}
        )


@dataclass(frozen=True)
class NoTasksNothingToDo(Commit):
    """A batch without tasks succeeds without a check at the ledger."""

    table: ClassVar[Table] = _edited(
        (Phase.READ, Event.RECORDED, Move(Phase.END, Outcome.COMMITTED)),
        (Phase.READ, Event.NO_TASKS, Move(Phase.END, Outcome.COMMITTED)),
    )

    def _judge_read(self, answer: tuple[Any, LedgerState]) -> _Judgement:
        event, changes = super()._judge_read(answer)
        return (Event.NO_TASKS if not self.job.app else event), changes


@dataclass(frozen=True)
class NoBarrier(Commit):
    """A batch without tasks leaves no mark: what was in flight can still be recorded."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.NO_TASKS, Move(Phase.END, Outcome.COMMITTED)))


@dataclass(frozen=True)
class AbortForgetsRepairs(Commit):
    """``abort()`` aborts what the ledger does not name, though a repair that names it may be in flight."""

    def _judge_abandoning(self, answer: tuple[Any, LedgerState]) -> _Judgement:
        event, changes = super()._judge_abandoning(answer)
        recorded = changes["recorded"]
        named = {part.transaction for part in recorded.parts} if recorded else set()
        return (Event.UNRECORDED if named.isdisjoint(self.job.ids()) else event), changes


@dataclass(frozen=True)
class SkippedUnseen(Commit):
    """A batch number that is committed is passed over, with any rows."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.OTHER_ROWS, Move(Phase.ABORT_OWN, Outcome.SKIPPED)))


@dataclass(frozen=True)
class HelpedUnseen(Commit):
    """A recorded batch is committed, and counts as the run's rows, with any content."""

    table: ClassVar[Table] = _edited((Phase.RECORD, Event.OTHER_ROWS, Move(Phase.ABORT_OWN, Outcome.COMMITTED)))


@dataclass(frozen=True)
class SameRunUnseen(Commit):
    """The committed entry of this call counts as the run's rows, though it may be another's."""

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

    def _judge_visible(self, answer: Mapping[TransactionId, Status]) -> _Judgement:
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
    """A ping counts for its time, also if news of its transaction comes in the meantime."""

    def _observed(self, answer: Any) -> Commit:
        return replace(super()._observed(answer), fresh=self.fresh | super()._observed(answer).fresh)


@dataclass(frozen=True)
class NotKept(Commit):
    """The others are not pinged while the pilot is awaited."""

    table: ClassVar[Table] = _edited((Phase.AWAIT_COMMIT, Event.NOT_YET, Move(Phase.AWAIT_COMMIT)))


# ---- several streams -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PilotOfEachStream(Commit):
    """Each stream has a pilot, and all pilots are committed at once."""

    def _pilot_pending(self) -> tuple[TransactionId, ...]:
        pilots: dict[str, TransactionId] = {}
        for id_ in self._open():
            pilots.setdefault(id_.stream, id_)
        return tuple(pilots.values())


@dataclass(frozen=True)
class RepairInAnyStream(Commit):
    """A lost part is replaced by equal rows of another stream."""

    def _repair(self, statuses: tuple[Status, ...]) -> Prepared | None:
        assert self.recorded is not None
        left, parts = list(self.job.own), []
        for part, found in zip(self.recorded.parts, statuses, strict=True):
            same = [part] if not found.is_aborted else [own for own in left if own.content == part.content]
            if not same:
                return None
            parts.append(same[0])
            left = [own for own in left if own is not same[0]]
        return replace(self._own_set(self.recorded.generation + 1), parts=tuple(parts))


@dataclass(frozen=True)
class RepairBesideLive(Commit):
    """The rows of a stream are replaced together, although a part of them is committed."""

    def _repair(self, statuses: tuple[Status, ...]) -> Prepared | None:
        assert self.recorded is not None
        lost = {id_.stream for id_ in self._lost(statuses)}
        old = [part for part in self.recorded.parts if part.transaction.stream in lost]
        new = [part for part in self.job.own if part.transaction.stream in lost]
        if content_of(old) != content_of(new):
            return super()._repair(statuses)
        kept = [part for part in self.recorded.parts if part.transaction.stream not in lost]
        return replace(self._own_set(self.recorded.generation + 1), parts=(*kept, *new))


@dataclass(frozen=True)
class StreamsNotCompared(Commit):
    """A replay counts as equal if it has as many rows, in whichever streams."""

    def _is_own(self, known: Content | None) -> bool:
        own = self.job.content
        return known is not None and (known.rows, known.bytes) == (own.rows, own.bytes)


@dataclass(frozen=True)
class DeletedPilotIsLost(Commit):
    """If the pilot's stream is deleted, a refused abort of another transaction is ignored."""

    def _judge_aborted_set(self, answer: Mapping[TransactionId, Status]) -> _Judgement:
        return Commit._judge_aborted_set(replace(self, deleted=frozenset()), answer)


@dataclass(frozen=True)
class OneStreamSeen(Commit):
    """The batch before counts as visible when it is in the pilot's stream."""

    def _judge_visible(self, answer: Mapping[TransactionId, Status]) -> _Judgement:
        first = next(iter(answer)).stream if answer else ""
        return super()._judge_visible({id_: status for id_, status in answer.items() if id_.stream == first})


@dataclass(frozen=True)
class QueriesShared(Commit):
    """Batches are known by their streams, whichever query they are of."""

    def _app(self, state: LedgerState) -> AppState:
        return max(state.values(), key=lambda app: app.last)


#: Violation of each for users, in a world that is large enough for it.
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
    ("TORN", Config(2, 1, leases=(5,), placements="EX", commit=NotKept, invariants=False)),
    ("INVARIANT", Config(2, 1, crash=1, expiry=1, unknown=1, placements="EX", commit=AbortForgetsRepairs)),
    ("DUPLICATE", Config(2, 1, expiry=1, streams=2, commit=PilotOfEachStream, invariants=False)),
    ("INVARIANT", Config(2, 1, streams=2, commit=PilotOfEachStream)),
    ("DUPLICATE", Config(2, 1, crash=1, expiry=1, streams=2, commit=RepairInAnyStream, invariants=False)),
    (
        "DUPLICATE",
        Config(3, 1, crash=1, expiry=1, streams=2, placements="X", commit=RepairBesideLive, invariants=False),
    ),
    ("LOSS", Config(2, 1, crash=1, streams=2, placements="M", commit=StreamsNotCompared, invariants=False)),
    ("DUPLICATE", Config(2, 1, crash=1, seal=1, streams=2, commit=DeletedPilotIsLost, invariants=False)),
    ("ORDER", Config(2, 2, streams=2, commit=OneStreamSeen, invariants=False)),
    ("DIVIDED", Config(3, 2, streams=3, first="TL", cut=(0, 1), cut_at_revision=False)),
    ("NO PROGRESS", Config(2, 1, streams=2, queries=2, commit=QueriesShared, invariants=False)),
    ("TORN", Config(3, 1, streams=2, leases=(7, 5), placements="X", commit=NotKept, invariants=False)),
]
