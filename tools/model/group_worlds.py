"""The worlds of readers of a group that are explored, and readers and rules with something taken out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pravega_connector.reader_groups.protocol import (
    AcquireSegment,
    CreateCheckpoint,
    GroupState,
    Segment,
    SegmentCompleted,
    StateUpdate,
    apply,
)
from pravega_connector.reader_groups.protocol.machine import Now, Phase, Reader
from tools.model.group_world import Config

#: Seconds together: part of the tests.
SMALL: list[Config] = [
    Config(1, "merge", crash=1, offline=1, unknown=1),
    Config(1, "split", leave=1, silent=1),
    Config(2, "merge", scaled=True, crash=1),
]

#: Minutes together: more of what may go wrong at once, and three readers.
FULL: list[Config] = [
    *SMALL,
    Config(2, "merge", crash=1),
    Config(2, "merge", scaled=True, crash=1, offline=1),
    Config(2, "merge", scaled=True, unknown=1, crash=1),
    Config(2, "merge", scaled=True, silent=1, crash=1),
    Config(2, "split", scaled=True, crash=1),
    Config(2, "split", scaled=True, leave=1, unknown=1),
    Config(3, "merge", scaled=True, crash=1),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoresRemoval(Reader):
    """A reader that was taken offline continues as if it were not."""

    def _place(self, state: GroupState) -> Any:
        return state.assigned.get(self.id, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepsReading(IgnoresRemoval):
    """A segment that was released is read on."""


def _kept(reader: Reader, answer: Any, state: GroupState, now: Now) -> Reader:
    after = Reader.answers[Phase.RELEASED](reader, answer, state, now)
    return replace(after, reading={**reader.reading, **after.reading}, ranges={**reader.ranges, **after.ranges})


KeepsReading.answers = {**Reader.answers, Phase.RELEASED: _kept}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetsSuccessors(Reader):
    """A segment is completed as if nothing followed it."""


def _nothing_follows(reader: Reader, answer: Any, state: GroupState, now: Now) -> Reader:
    return Reader.answers[Phase.ASK_SUCCESSORS](reader, type(answer)(), state, now)


ForgetsSuccessors.answers = {**Reader.answers, Phase.ASK_SUCCESSORS: _nothing_follows}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletesDuringCheckpoints(Reader):
    """A segment is completed although a checkpoint waits for its reader."""


def _any_time(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    owned = state.assigned.get(reader.id, {})
    return [reader.pending] if reader.pending is not None and reader.segment in owned else []


CompletesDuringCheckpoints.decisions = {**Reader.decisions, Phase.COMPLETED: _any_time}


def _one_is_enough(state: GroupState, update: StateUpdate) -> GroupState:
    """A successor can be had when one of its predecessors is done."""
    if isinstance(update, SegmentCompleted):
        update = replace(update, successors=dict.fromkeys(update.successors, (update.segment.id,)))
    return apply(state, update)


def _without_waiting(state: GroupState, update: StateUpdate) -> GroupState:
    """A checkpoint has only what readers own."""
    after = apply(state, update)
    if not isinstance(update, CreateCheckpoint) or update.checkpoint in state.checkpoints.positions:
        return after
    positions: dict[str, dict[Segment, int]] = {**after.checkpoints.positions, update.checkpoint: {}}  # type: ignore[dict-item]
    return replace(after, checkpoints=replace(after.checkpoints, positions=positions))


def _from_the_end(state: GroupState, update: StateUpdate) -> GroupState:
    """A segment is read from its end on by the reader that acquires it."""
    after = apply(state, update)
    if not isinstance(update, AcquireSegment):
        return after
    owned = {**after.assigned[update.reader], update.segment: 1}
    return replace(after, assigned={**after.assigned, update.reader: owned})


#: Violation of each, in a world that is large enough for it.
MUTANTS: list[tuple[str, str, Config]] = [
    ("writes that are never refused", "BROKEN", Config(2, "merge", scaled=True, conditional=False)),
    ("keeps reading what it released", "TWICE", Config(2, "merge", scaled=True, reader=KeepsReading)),
    ("forgets successors", "LOST", Config(1, "merge", scaled=True, reader=ForgetsSuccessors)),
    ("completes during checkpoints", "GAP", Config(2, "split", scaled=True, reader=CompletesDuringCheckpoints)),
    ("ignores its removal", "BROKEN", Config(1, "merge", scaled=True, offline=1, reader=IgnoresRemoval)),
    ("does not wait for all predecessors", "ORDER", Config(1, "merge", scaled=True, apply=_one_is_enough)),
    ("leaves what waits out of checkpoints", "GAP", Config(2, "merge", scaled=True, apply=_without_waiting)),
    ("begins behind what is to be read", "LOSS", Config(1, "merge", scaled=True, apply=_from_the_end)),
]
