"""Updates of a group's state, and their effects.

Every member applies the same updates in the same order. An update that does not fit the state stops all members of the
group permanently, Java's as well. So the updates that ``machine`` and ``administration`` derive from a state are
written only if no other update came in between. (Java: the classes inside ``ReaderGroupState``, and
``CheckpointState``.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeVar

from pravega_connector.errors import GroupStateError
from pravega_connector.reader_groups.protocol.state import (
    LEAST_DISTANCE,
    SILENT,
    Checkpoints,
    GroupConfig,
    GroupState,
    Positions,
    Ranged,
    Ranges,
    Segment,
    Written,
    ordered_set,
    state_of,
)

K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Final[Mapping[Segment, int]] = MappingProxyType({})
_LONGEST: Final = 2**63 - 1  # distance of a reader that has not reported yet


@dataclass(frozen=True, slots=True)
class Init(Written):
    """Start of the group, or restart with another configuration: no readers, no checkpoints."""

    config: GroupConfig
    start: Ranged
    end: Positions = field(default_factory=dict)
    updating: bool = False

    def _after(self, state: GroupState | None) -> GroupState:
        if not self.start.positions:
            raise GroupStateError("a group cannot begin without segments to read")
        return state_of(self.config, self.start, self.end, updating=self.updating)


@dataclass(frozen=True, slots=True)
class AddReader(Written):
    """Reader joins the group."""

    reader: str

    def _after(self, state: GroupState) -> GroupState:
        if self.reader in state.assigned:
            raise GroupStateError(f"reader {self.reader} cannot be added: it is online")
        distances = {**state.distances, self.reader: state.distances.get(self.reader, _LONGEST)}
        return replace(state, assigned={**state.assigned, self.reader: {}}, distances=distances)


@dataclass(frozen=True, slots=True)
class RemoveReader(Written):
    """Reader leaves, or is treated as failed.

    Its segments wait for other readers, from its reported or last known positions.
    """

    reader: str
    owned: Positions = field(default_factory=dict)

    def _after(self, state: GroupState) -> GroupState:
        before = state.assigned.get(self.reader, _NOTHING)
        left = {segment: self.owned.get(segment, offset) for segment, offset in before.items()}
        checkpoints = state.checkpoints
        for name in checkpoints.of(self.reader):
            checkpoints = _taken(checkpoints, name, self.reader, left)
        return replace(
            state,
            assigned=_without(state.assigned, self.reader),
            unassigned={**state.unassigned, **left},
            distances=_without(state.distances, self.reader),
            checkpoints=checkpoints,
        )


@dataclass(frozen=True, slots=True)
class ReleaseSegment(Written):
    """Reader releases a segment, which then waits for another reader."""

    reader: str
    segment: Segment
    offset: int

    def _after(self, state: GroupState) -> GroupState:
        owned = _owned(state, self.reader)
        if self.segment not in owned:
            raise GroupStateError(f"reader {self.reader} cannot release {self.segment}: it does not own it")
        return replace(
            state,
            assigned={**state.assigned, self.reader: _without(owned, self.segment)},
            unassigned={**state.unassigned, self.segment: self.offset},
            last_read=_moved(state.last_read, {self.segment: self.offset}),
        )


@dataclass(frozen=True, slots=True)
class AcquireSegment(Written):
    """Reader acquires a segment that waits."""

    reader: str
    segment: Segment

    def _after(self, state: GroupState) -> GroupState:
        owned = _owned(state, self.reader)
        if self.segment not in state.unassigned:
            raise GroupStateError(f"reader {self.reader} cannot acquire {self.segment}: it does not wait for a reader")
        taken = {**owned, self.segment: state.unassigned[self.segment]}
        return replace(
            state,
            assigned={**state.assigned, self.reader: taken},
            unassigned=_without(state.unassigned, self.segment),
        )


@dataclass(frozen=True, slots=True)
class UpdateDistanceToTail(Written):
    """Reader reports its distance to the tail.

    Valid in any state, so it may be written without fetching the state.
    """

    reader: str
    distance: int
    """Distance to the tail in milliseconds. Java's clients write the time since the epoch minus the segment's id."""
    last_read: Ranged = field(default_factory=Ranged)

    def _after(self, state: GroupState) -> GroupState:
        distance = max(LEAST_DISTANCE, self.distance)
        return replace(
            state,
            distances={**state.distances, self.reader: distance},
            last_read=_moved(state.last_read, self.last_read.positions),
        )


@dataclass(frozen=True, slots=True)
class SegmentCompleted(Written):
    """Reader has read a segment to its end.

    Each successor waits for a reader once all its predecessors are completed.
    """

    reader: str
    segment: Segment
    successors: Mapping[Segment, tuple[int, ...]]
    """Ids of all predecessors of each successor."""
    ranges: Ranges = field(default_factory=dict)
    """Key ranges of the segment and its successors."""

    def _after(self, state: GroupState) -> GroupState:
        owned = _owned(state, self.reader)
        if self.segment not in owned:
            raise GroupStateError(f"reader {self.reader} cannot complete {self.segment}: it does not own it")
        new = {s: ordered_set(ids) for s, ids in self.successors.items() if s not in state.future}
        # Java's clients compare only the id and ignore the stream, and all members must agree.
        future = {s: _without(ids, self.segment.id) for s, ids in {**state.future, **new}.items()}
        ready = {segment: 0 for segment, ids in future.items() if not ids}
        ranges: Ranges = {**state.ranges, **{s: self.ranges.get(s) for s in new}}
        if (
            self.segment not in future
        ):  # completing a segment of another stream with the predecessor's id released it early
            ranges = _without(ranges, self.segment)
        last_read = _without(state.last_read, self.segment)
        return replace(
            state,
            assigned={**state.assigned, self.reader: _without(owned, self.segment)},
            future={segment: ids for segment, ids in future.items() if ids},
            unassigned={**state.unassigned, **ready},
            last_read={**ready, **last_read},
            ranges=ranges,
        )


@dataclass(frozen=True, slots=True)
class CheckpointReader(Written):
    """Reader has taken a checkpoint."""

    checkpoint: str
    reader: str
    positions: Positions

    def _after(self, state: GroupState) -> GroupState:
        checkpoints = _taken(state.checkpoints, self.checkpoint, self.reader, self.positions)
        if SILENT in self.checkpoint:
            return replace(state, checkpoints=checkpoints)
        # If the reader fails from now on, its successor begins at this checkpoint.
        owned = _moved(_owned(state, self.reader), self.positions)
        return replace(state, checkpoints=checkpoints, assigned={**state.assigned, self.reader: owned})


@dataclass(frozen=True, slots=True)
class CreateCheckpoint(Written):
    """Checkpoint begins, for the readers that are online at this moment."""

    checkpoint: str

    def _after(self, state: GroupState) -> GroupState:
        name, before = self.checkpoint, state.checkpoints
        if name in before.positions:
            return state
        waiting = {**before.waiting, name: ordered_set(state.assigned)} if state.assigned else before.waiting
        positions = {**before.positions, name: dict(state.unassigned)}
        return replace(
            state, checkpoints=replace(before, names=(*before.names, name), waiting=waiting, positions=positions)
        )


@dataclass(frozen=True, slots=True)
class ClearCheckpointsBefore(Written):
    """Earlier checkpoints are dropped, complete or not.

    No effect if this checkpoint does not exist.
    """

    checkpoint: str

    def _after(self, state: GroupState) -> GroupState:
        before = state.checkpoints
        if self.checkpoint not in before.positions:
            return state
        at = before.names.index(self.checkpoint) if self.checkpoint in before.names else len(before.names)
        gone = frozenset(before.names[:at])
        return replace(state, checkpoints=replace(_dropped(before, gone), names=before.names[at:]))


@dataclass(frozen=True, slots=True)
class UpdateCheckpointPublished(Written):
    """Last checkpoint was published to the controller, or must be published again."""

    published: bool

    def _after(self, state: GroupState) -> GroupState:
        return replace(state, checkpoints=replace(state.checkpoints, published=self.published))


@dataclass(frozen=True, slots=True)
class UpdatingConfig(Written):
    """Process is about to change the configuration, or has abandoned the change."""

    updating: bool

    def _after(self, state: GroupState) -> GroupState:
        return replace(state, updating=self.updating)


@dataclass(frozen=True, slots=True)
class RemoveOutstandingCheckpoints(Written):
    """Outstanding checkpoints are dropped, except silent ones. Their names stay in the list."""

    def _after(self, state: GroupState) -> GroupState:
        return replace(state, checkpoints=_dropped(state.checkpoints, frozenset(state.checkpoints.outstanding)))


StateUpdate = (
    Init
    | GroupState
    | AddReader
    | RemoveReader
    | ReleaseSegment
    | AcquireSegment
    | UpdateDistanceToTail
    | SegmentCompleted
    | CheckpointReader
    | CreateCheckpoint
    | ClearCheckpointsBefore
    | UpdateCheckpointPublished
    | UpdatingConfig
    | RemoveOutstandingCheckpoints
)
"""Types of the entries in the group's stream. A state replaces the state before it."""


def create(value: Init | GroupState) -> GroupState:
    """Return the first state of an initial value."""
    return value if isinstance(value, GroupState) else value._after(None)


def apply(state: GroupState, update: StateUpdate) -> GroupState:
    """Return the state after an update. Raises GroupStateError for an update that does not fit."""
    return update if isinstance(update, GroupState) else update._after(state)


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _owned(state: GroupState, reader: str) -> Positions:
    owned = state.assigned.get(reader)
    if owned is None:
        raise GroupStateError(f"reader {reader} is not online")
    return owned


def _without(items: Mapping[K, V], key: K) -> dict[K, V]:
    return {other: value for other, value in items.items() if other != key}


def _moved(positions: Positions, to: Positions) -> Positions:
    """Return the same segments, with their new offsets if they have one."""
    return {segment: to.get(segment, offset) for segment, offset in positions.items()}


def _taken(before: Checkpoints, name: str, reader: str, positions: Positions) -> Checkpoints:
    """Return the checkpoints after a reader has taken one of them.

    No change for a checkpoint that is complete or does not exist.
    """
    readers = before.waiting.get(name)
    if readers is None:
        return before
    if reader not in readers:
        raise GroupStateError(f"checkpoint {name} does not wait for reader {reader}")
    merged = {**before.positions.get(name, {}), **positions}
    after = replace(before, positions={**before.positions, name: merged})
    if left := _without(readers, reader):
        return replace(after, waiting={**before.waiting, name: left})
    after = replace(after, waiting=_without(before.waiting, name))
    return after if SILENT in name else replace(after, last=merged, published=False)


def _dropped(before: Checkpoints, names: frozenset[str]) -> Checkpoints:
    return replace(
        before,
        waiting={name: readers for name, readers in before.waiting.items() if name not in names},
        positions={name: at for name, at in before.positions.items() if name not in names},
    )
