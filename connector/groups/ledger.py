"""Ledger of a group whose readers process exactly once: how far each segment is in the output, and who may go on.

All readers of the group share it through a state synchronizer; initial value and updates are JSON objects. It has, of
each segment, the offset up to which its events are in the output, and the run (one life of one reader) that has claimed
it; and of each run the step that is prepared: a transaction that has all output of some events, flushed, and is being
committed. Everything here follows from the state alone; who asks is :mod:`connector.client.exactly_once`, which has the
argument why this is exactly once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from pravega_serde.errors import DeserializationError

from ..errors import GroupStateError, ReaderOfflineError
from ..wire import StreamName
from .state import Positions, Segment

__all__ = ["Ledger", "LedgerJson", "LedgerUpdate", "Life", "Step", "claim", "ledger_stream", "prepare", "undecided"]

_VERSION: Final = 1


def ledger_stream(scope: str, group: str) -> StreamName:
    """Stream that holds the ledger of a reader group."""
    return StreamName(scope, f"{group}-positions")


class Life(NamedTuple):
    """One life of a group: until it is reset, which raises the generation, or deleted and made again."""

    id: uuid.UUID
    generation: int


@dataclass(frozen=True, slots=True)
class Step:
    """Events that were processed, and the transaction that has their output; none if they have no output."""

    segments: Mapping[Segment, tuple[int, int]]
    """Offsets before the first event and behind the last one; END_OF_SEGMENT behind the last one of all."""
    transaction: uuid.UUID | None = None
    target: StreamName | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON form within an update."""
        value: dict[str, Any] = {"segments": {str(segment): list(ends) for segment, ends in self.segments.items()}}
        if self.transaction is not None:
            value |= {"transaction": str(self.transaction), "target": str(self.target)}
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Step:
        """Parse the JSON form of an update."""
        segments = {Segment.parse(name): (int(a), int(b)) for name, (a, b) in value["segments"].items()}
        if "transaction" not in value:
            return cls(segments)
        return cls(segments, uuid.UUID(value["transaction"]), StreamName(*value["target"].split("/")))


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerUpdate:
    """What one run writes at once."""

    run: str
    life: Life
    decided: Mapping[uuid.UUID, bool] = field(default_factory=dict)
    """Prepared transactions of which it is known whether they are committed."""
    claim: Positions = field(default_factory=dict)
    """Segments that are the run's from now on, and where they begin unless the ledger knows better."""
    forget: tuple[Segment, ...] = ()
    """Segments of the run that the group has done with."""
    step: Step | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON form: what is empty is left out."""
        value: dict[str, Any] = {"run": self.run, "group": str(self.life.id), "generation": self.life.generation}
        if self.decided:
            value["decided"] = {str(transaction): committed for transaction, committed in self.decided.items()}
        if self.claim:
            value["claim"] = {str(segment): offset for segment, offset in self.claim.items()}
        if self.forget:
            value["forget"] = [str(segment) for segment in self.forget]
        if self.step is not None:
            value["step"] = self.step.to_json()
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> LedgerUpdate:
        """Parse an update."""
        return cls(
            run=str(value["run"]),
            life=Life(uuid.UUID(value["group"]), int(value["generation"])),
            decided={uuid.UUID(id_): bool(committed) for id_, committed in value.get("decided", {}).items()},
            claim={Segment.parse(name): int(offset) for name, offset in value.get("claim", {}).items()},
            forget=tuple(Segment.parse(name) for name in value.get("forget", ())),
            step=Step.from_json(value["step"]) if "step" in value else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """State of the ledger; every update makes another one."""

    life: Life
    former: frozenset[uuid.UUID] = frozenset()
    """Groups of the same name that were deleted: their readers may come late."""
    offsets: Mapping[Segment, int] = field(default_factory=dict)
    owners: Mapping[Segment, str] = field(default_factory=dict)
    steps: Mapping[str, Step] = field(default_factory=dict)
    """The prepared step of each run, while nobody has said what became of it."""

    def is_over(self, life: Life) -> bool:
        """Whether a life of the group has ended, as far as the ledger knows."""
        return life.id in self.former or (life.id == self.life.id and life.generation < self.life.generation)

    def apply(self, update: LedgerUpdate) -> Ledger:
        """The state after an update."""
        state = self if update.life == self.life else self._reborn(update.life)
        offsets, owners, steps = dict(state.offsets), dict(state.owners), dict(state.steps)
        for run, step in state.steps.items():
            committed = update.decided.get(step.transaction) if step.transaction is not None else None
            if committed is not None:
                del steps[run]
            if committed:
                offsets |= {segment: end for segment, (_, end) in step.segments.items()}
        for segment, offset in update.claim.items():
            owners[segment] = update.run
            offsets.setdefault(segment, offset)
        for segment in update.forget:
            offsets.pop(segment, None)
            owners.pop(segment, None)
        if update.step is not None and update.step.transaction is None:
            offsets |= {segment: end for segment, (_, end) in update.step.segments.items()}
        elif update.step is not None:
            steps[update.run] = update.step
        return replace(state, offsets=offsets, owners=owners, steps=steps)

    def _reborn(self, life: Life) -> Ledger:
        former = self.former if life.id == self.life.id else self.former | {self.life.id}
        return Ledger(life=life, former=former)

    def to_json(self) -> dict[str, Any]:
        """JSON form as an initial value."""
        return {
            "version": _VERSION,
            "group": str(self.life.id),
            "generation": self.life.generation,
            "former": sorted(map(str, self.former)),
            "segments": {str(s): [offset, self.owners.get(s, "")] for s, offset in self.offsets.items()},
            "steps": {run: step.to_json() for run, step in self.steps.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Ledger:
        """Parse an initial value. Raises GroupStateError for one of a later release."""
        if value.get("version") != _VERSION:
            raise GroupStateError(f"a ledger of version {value.get('version')!r}: this release reads {_VERSION}")
        segments = {Segment.parse(name): entry for name, entry in value["segments"].items()}
        return cls(
            life=Life(uuid.UUID(value["group"]), int(value["generation"])),
            former=frozenset(map(uuid.UUID, value["former"])),
            offsets={segment: int(offset) for segment, (offset, _) in segments.items()},
            owners={segment: str(owner) for segment, (_, owner) in segments.items() if owner},
            steps={run: Step.from_json(step) for run, step in value["steps"].items()},
        )


class LedgerJson:
    """Initial values and updates as UTF-8 JSON."""

    def __init__(self, kind: type[Ledger] | type[LedgerUpdate]) -> None:
        self._kind = kind

    def serialize(self, value: Any, /) -> bytes:
        """The text."""
        return json.dumps(value.to_json(), separators=(",", ":")).encode()

    def deserialize(self, data: bytes, /) -> Any:
        """The value. Raises DeserializationError, GroupStateError."""
        try:
            return self._kind.from_json(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DeserializationError(f"invalid entry of a group's ledger ({type(error).__name__}: {error})") from None


# ---- what a run may write --------------------------------------------------------------------------------------------


def undecided(ledger: Ledger, life: Life, segments: Iterable[Segment]) -> list[Step]:
    """Prepared steps that must be decided before these segments can be claimed; all of them in a new life."""
    wanted = set(segments)
    return [step for step in ledger.steps.values() if life != ledger.life or not wanted.isdisjoint(step.segments)]


def claim(ledger: Ledger, update: LedgerUpdate) -> list[LedgerUpdate]:
    """The update that claims segments; none as long as a step on them is undecided. Raises ReaderOfflineError."""
    if ledger.is_over(update.life):
        raise _lost(update.run, "the group was reset or made anew")
    pending = undecided(ledger, update.life, update.claim)
    return [] if any(step.transaction not in update.decided for step in pending) else [update]


def prepare(ledger: Ledger, update: LedgerUpdate) -> list[LedgerUpdate]:
    """The update that records a step; none if it is there. Raises ReaderOfflineError where it is not the run's."""
    step = update.step
    assert step is not None
    if ledger.life != update.life:
        raise _lost(update.run, "the group was reset or made anew")
    for segment in step.segments:
        if ledger.owners.get(segment) != update.run:
            raise _lost(update.run, f"another reader has claimed segment {segment}")
    if step.transaction is not None and ledger.steps.get(update.run) == step:
        return []  # the answer to it was lost
    after = ledger.apply(replace(update, step=None)).offsets
    if step.transaction is None and all(after.get(segment) == end for segment, (_, end) in step.segments.items()):
        return []
    for segment, (begin, _) in step.segments.items():
        if after.get(segment) != begin:
            raise _lost(update.run, f"segment {segment} is at {after.get(segment)} in the ledger, not at {begin}")
    return [update]


def _lost(run: str, reason: str) -> ReaderOfflineError:
    return ReaderOfflineError(
        f"run {run} has lost its place: {reason}; what it has not committed is dropped and comes again: make a new "
        "reader"
    )
