"""Worlds of the protocol of steps that are explored, and machines with one rule taken out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from uuid import UUID

from pravega_connector.client import TransactionStatus as Status
from pravega_connector.exactly_once.steps.machine import TABLE, Event, Move, Outcome, Phase, Request, Table, Turn
from pravega_connector.exactly_once.steps.state import StepsState
from tools.model.step_world import Config

#: Seconds together: part of the tests.
SMALL: list[Config] = [
    Config("early", "a", 2, crash=1, expiry=1, unknown=1),
    Config("early", "a", 1, crash=1, zombie=1),
    Config("early", "ab", 1, crash=1, expiry=1),
    Config("early", "ab", 1, crash=1, zombie=1),
    Config("early", "a", 1, other=True, zombie=1),
    Config("early", "a", 2, other=True, crash=1, expiry=1),
    Config("early", "a", 1, other=True, crash=1, expiry=1, zombie=1),
    Config("early", "a", 2, other=True, expiry=1, zombie=1),
    Config("late", "a", 2, crash=1, expiry=1, unknown=1),
    Config("late", "ab", 1, crash=1),
    Config("late", "ab", 1, crash=1, zombie=1),
    Config("late", "a", 1, crash=1, zombie=1),
    Config("late", "a", 1, crash=1, forget=1, reset=1),
]

#: Minutes together: more of what may go wrong at once.
FULL: list[Config] = [
    *SMALL,
    Config("early", "ab", 2, crash=1, expiry=1),
    Config("early", "a", 2, crash=1, zombie=1, unknown=1),
    Config("early", "a", 2, crash=1, zombie=1, expiry=1, unknown=1),
    Config("early", "a", 3, crash=2, zombie=1),
    Config("early", "a", 2, crash=1, forget=1, zombie=1),
    Config("early", "a", 3, other=True, crash=1, expiry=2),
    Config("early", "ab", 1, other=True, crash=1, expiry=1),
    Config("early", "a", 2, other=True, crash=1, expiry=1, unknown=1),
    Config("early", "a", 2, other=True, crash=1, expiry=1, zombie=1),
    Config("early", "a", 1, other=True, crash=1, expiry=1, forget=1),
    Config("late", "ab", 2, crash=1, zombie=1),
    Config("late", "a", 2, crash=1, zombie=1, unknown=1),
    Config("late", "ab", 1, crash=1, zombie=1, expiry=1, unknown=1),
    Config("late", "ab", 1, crash=1, zombie=1, forget=1),
    Config("late", "a", 2, crash=1, zombie=1, reset=1),
    Config("late", "ab", 1, crash=1, zombie=1, reset=1),
]

_Judgement = tuple[Event, dict[str, Any]]


def _edited(*edits: tuple[Phase, Event, Move]) -> Table:
    return {**TABLE, **{(phase, event): move for phase, event, move in edits}}


@dataclass(frozen=True)
class NotRecorded(Turn):
    """A step is committed before the log has it."""

    def _after(self, answer: Any) -> Turn:
        after = super()._after(answer)
        skipped = self.commit and after.phase is Phase.SETTLE
        return replace(after, phase=Phase.AWAIT) if skipped else after


@dataclass(frozen=True)
class NotDecided(Turn):
    """A recorded step is claimed without a decision."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.UNDECIDED, Move(Phase.SETTLE)))


@dataclass(frozen=True)
class BusyIgnored(Turn):
    """A step is recorded next to another run's."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.BUSY, Move(Phase.SETTLE)))


@dataclass(frozen=True)
class RefusedAbortIgnored(Turn):
    """A step whose abort was refused counts as aborted."""

    def _judge_decided(self, answer: Mapping[UUID, Status]) -> _Judgement:
        return super()._judge_decided(dict.fromkeys(answer, Status.ABORTED))


@dataclass(frozen=True)
class AbortedIsCommitted(Turn):
    """A step that was aborted counts as committed."""

    def _judge_decided(self, answer: Mapping[UUID, Status]) -> _Judgement:
        return super()._judge_decided(dict.fromkeys(answer, Status.COMMITTED))


@dataclass(frozen=True)
class ForgottenIsAborted(Turn):
    """A step that the server has forgotten counts as aborted."""

    def _is_committed(self, id_: UUID, status: Status) -> bool | None:
        return bool(super()._is_committed(id_, status))


@dataclass(frozen=True)
class NotAwaited(Turn):
    """A step is committed while the one before may not be visible."""

    table: ClassVar[Table] = _edited((Phase.AWAIT, Event.NOT_YET, Move(Phase.COMMIT)))


@dataclass(frozen=True)
class NotSettled(Turn):
    """A run continues after a step of another run that may not be visible."""

    table: ClassVar[Table] = _edited((Phase.SETTLE, Event.NOT_YET, Move(Phase.APPEND)))


@dataclass(frozen=True)
class ForgetsAfter(Turn):
    """No step waits for the predecessors of an aborted step."""

    def _judge_decided(self, answer: Mapping[UUID, Status]) -> _Judgement:
        event, changes = super()._judge_decided(answer)
        committed = {id_ for id_, status in answer.items() if status.is_committed}
        return event, {**changes, "unseen": tuple(n for n in changes.get("unseen", ()) if n.id in committed)}


@dataclass(frozen=True)
class PartsNotRecorded(Turn):
    """A step is committed whose parts the log does not have."""

    def request(self) -> Request:
        request = super().request()
        if request.update is None or request.update.step is None:
            return request
        return replace(request, update=replace(request.update, step=replace(request.update.step, parts=())))


@dataclass(frozen=True)
class PartsNotCompleted(Turn):
    """A committed step of another run counts as complete."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.IN_PARTS, Move(Phase.SETTLE)))


@dataclass(frozen=True)
class PartsNotReadAgain(Turn):
    """The parts of a step are those that it had when its abort was refused."""

    def _judge_decided(self, answer: Mapping[UUID, Status]) -> _Judgement:
        event, changes = super()._judge_decided(answer)
        known = {step.transaction for step in self.in_the_way if step.parts}
        return event, {**changes, "incomplete": changes.get("incomplete", frozenset()) & known}


@dataclass(frozen=True)
class AbortedPartIgnored(Turn):
    """An aborted part counts as committed."""

    table: ClassVar[Table] = _edited((Phase.COMMIT_PARTS, Event.ABORTED, Move(Phase.SEE, Outcome.COMMITTED)))


@dataclass(frozen=True)
class PartsNotAwaited(Turn):
    """A step is committed while parts of the one before may not be visible."""

    def committing(self) -> Turn:
        return Turn.committing(replace(self, unseen=self.unseen[:1]))


@dataclass(frozen=True)
class NotOwned(Turn):
    """A step is recorded for items with any owner and position."""

    table: ClassVar[Table] = _edited((Phase.READ, Event.LOST, Move(Phase.SETTLE)))


@dataclass(frozen=True)
class LifeIgnored(Turn):
    """A run of an earlier life continues in the later one."""

    def _judge_read(self, answer: tuple[Any, StepsState]) -> _Judgement:
        life = answer[1].life
        if not answer[1].is_over(self.update.life):
            return super()._judge_read(answer)
        return replace(self, update=replace(self.update, life=life))._judge_read(answer)


#: Violation of each for readers, in a world that is large enough for it.
MUTANTS: list[tuple[str, Config]] = [
    ("DUPLICATE", Config("late", "a", 1, zombie=1, turn=NotRecorded)),
    ("DUPLICATE", Config("late", "a", 1, crash=1, zombie=1, turn=NotDecided)),
    ("DUPLICATE", Config("early", "a", 1, zombie=1, turn=BusyIgnored)),
    ("DUPLICATE", Config("late", "a", 1, crash=1, turn=RefusedAbortIgnored)),
    ("LOSS", Config("late", "a", 1, crash=1, turn=AbortedIsCommitted)),
    ("DUPLICATE", Config("late", "a", 1, crash=1, forget=1, turn=ForgottenIsAborted)),
    ("ORDER", Config("early", "a", 2, turn=NotAwaited)),
    ("ORDER", Config("late", "a", 2, crash=1, turn=NotSettled)),
    ("ORDER", Config("early", "a", 2, crash=1, turn=ForgetsAfter)),
    ("LOSS", Config("early", "a", 1, other=True, crash=1, turn=PartsNotRecorded)),
    ("LOSS", Config("early", "a", 1, other=True, crash=1, turn=PartsNotCompleted)),
    ("LOSS", Config("early", "a", 1, other=True, zombie=1, turn=PartsNotReadAgain)),
    ("LOSS", Config("early", "a", 1, other=True, expiry=1, turn=AbortedPartIgnored)),
    ("ORDER", Config("early", "a", 2, other=True, turn=PartsNotAwaited)),
    ("DUPLICATE", Config("early", "a", 2, other=True, zombie=1, feed=False)),
    ("DUPLICATE", Config("late", "a", 1, zombie=1, turn=NotOwned)),
    ("LOSS", Config("late", "a", 1, zombie=1, reset=1, turn=LifeIgnored)),
    ("DUPLICATE", Config("late", "a", 1, zombie=1, conditional=False)),
]
