"""State machine of one reader of a group: it returns the next request and processes the answer.

It does no I/O and is immutable: every call returns a new machine. A *turn* comes before an event is delivered. It
begins with :meth:`Reader.turn` and continues with :meth:`Reader.request` and :meth:`Reader.answered` until the machine
:attr:`~Reader.is_idle`. Then the reader delivers a checkpoint, reads its segments, or has reached the end of all data.
Rules and intervals are those of Java's clients, so that both share the segments of a group evenly and take each other's
checkpoints (``ReaderGroupStateManager``, ``EventStreamReaderImpl``):

- A segment changes its reader only right after a checkpoint, when the caller has processed everything before it. So a
  checkpoint has every segment exactly once. The events that a new reader begins with were not delivered before, unless
  the old reader failed. A segment that has ended is handed over the same way: its successors wait until all
  predecessors are completed.
- Every update follows from the state before it, and is refused if the state has changed since. Then it is derived from
  the new state. An update counts as written only if the state shows it.
- If a reader is offline in the state, or owns segments that it does not know, it has lost its place: another process
  treated it as failed. It must not write any more.

A turn, from CONFIG to an idle phase. Below a phase are those that send its requests, if there is a reason for one::

    CONFIG --+--> REPORT -> COMPLETE -------> RELEASE --> PUBLISH -----+--> NEXT --+--> ACQUIRE --> DISTANCE ----> READ
    ASK_     |    a check-  ASK_SUCCESSORS    RELEASED    PUBLISH_CUTS |    BEGIN  |    ACQUIRED    SHARE          or
    CONFIG,  |    point was COMPLETED                     PUBLISHED    |    SILENT |                FETCH_SHARED   END
    RENEW    |    delivered                                            |           |
             `---------------------------------------------------------'           `--> CHECKPOINT

- :attr:`~Reader.looks` decide from the state, without a request.
- :attr:`~Reader.decisions` derive the updates of a write.
- :attr:`~Reader.answers` use an answer.

A phase for which the state is too old goes to FETCH and comes back.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Final, NamedTuple

from pravega_connector.errors import ReaderOfflineError, ReaderOnlineError
from pravega_connector.reader_groups.protocol.balance import has_too_many, rank, to_acquire
from pravega_connector.reader_groups.protocol.state import (
    END_OF_SEGMENT,
    SILENT,
    GroupState,
    KeyRange,
    Positions,
    Ranged,
    Ranges,
    Retention,
    Segment,
    by_stream,
)
from pravega_connector.reader_groups.protocol.updates import (
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    Init,
    ReleaseSegment,
    RemoveReader,
    SegmentCompleted,
    StateUpdate,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
)
from pravega_connector.wire import StreamCut, StreamName

# Seconds: TIME_UNIT, UPDATE_WINDOW and UPDATE_CONFIG_WINDOW of ReaderGroupStateManager.
_UNIT: Final = 1.0
_WINDOW: Final = 30.0
_CONFIG_WINDOW: Final = 10.0
_COMPACT_BYTES: Final = 512 * 1024
_COMPACT_PROBABILITY: Final = 0.05


class Now(NamedTuple):
    """Time of a call."""

    seconds: float
    """Monotonic clock."""
    wall_ms: int = 0
    """Milliseconds since the epoch."""


class Ask(Enum):
    """Kind of a request, with its answer. The code that answers passes its latest known state."""

    FETCH = "fetch"  # None: the state was read to its end
    UPDATE = "update"  # None: the updates that ``decide`` returns, if any, were written in one entry
    WRITE = "write"  # None: the updates were written in any state
    CONFIG = "config"  # Init: start with the controller's configuration
    SUCCESSORS = "successors"  # Succession of a segment
    PUBLISH = "publish"  # None: the controller knows the cuts


class Succession(NamedTuple):
    """Successors of a segment that has ended."""

    predecessors: Mapping[Segment, tuple[int, ...]] = {}
    """Ids of all predecessors of each successor; empty if the stream has ended."""
    ranges: Mapping[Segment, KeyRange] = {}
    """Key ranges of the successors."""


@dataclass(frozen=True, slots=True)
class Request:
    """Request to the servers."""

    ask: Ask
    decide: Callable[[GroupState], Sequence[StateUpdate]] | None = None
    """Return the updates that follow from a state. Called again if they were refused. Raises ReaderGroupError."""
    updates: Sequence[StateUpdate] = ()
    segment: Segment | None = None
    cuts: Mapping[StreamName, StreamCut] = field(default_factory=dict)


class Phase(Enum):
    """Phase of a reader within its turn."""

    JOIN = "come into the group"
    LEAVE = "go from the group"
    GONE = "gone"
    FETCH = "look at the state"
    CONFIG = "see whether the configuration is being changed"
    ASK_CONFIG = "ask the controller for the configuration"
    RENEW = "write the state that follows from the configuration"
    REPORT = "say that the checkpoint is taken which was handed out last"
    COMPLETE = "see whether a segment has ended"
    ASK_SUCCESSORS = "ask what follows a segment that has ended"
    COMPLETED = "say that a segment was read to its end"
    RELEASE = "see whether there are too many segments"
    RELEASED = "release a segment"
    PUBLISH = "check if the controller needs the last checkpoint"
    PUBLISH_CUTS = "publish the last checkpoint to the controller"
    PUBLISHED = "record that it was published"
    NEXT = "see whether a checkpoint is to be taken"
    SILENT = "take a checkpoint without a word"
    BEGIN = "begin a checkpoint"
    ACQUIRE = "see whether there are segments to be had"
    ACQUIRED = "acquire segments"
    DISTANCE = "see whether the others should know how far it is"
    SHARE = "publish its distance to the tail"
    FETCH_SHARED = "fetch the distances of the others"
    CHECKPOINT = "idle: hand out a checkpoint"
    READ = "idle: read"
    END = "idle: all was read"


_IDLE: Final = frozenset({Phase.CHECKPOINT, Phase.READ, Phase.END, Phase.GONE})


class Timers(NamedTuple):
    """Times of the next actions, in seconds."""

    fetch: float
    config: float
    checkpoint: float
    release: float
    acquire: float
    distance: float


def _uuid() -> str:
    return str(uuid.uuid4())


_Look = Callable[["Reader", GroupState, Now], "Reader"]
_Decide = Callable[["Reader", GroupState, Now], Sequence[StateUpdate]]
_Answer = Callable[["Reader", Any, GroupState, Now], "Reader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One reader of a group."""

    id: str
    phase: Phase
    timers: Timers
    reading: Positions = field(default_factory=dict)
    """Segments that it reads, with the offsets after the delivered events."""
    done: Positions = field(default_factory=dict)
    """Segments that it owns and has read to their ends."""
    ranges: Ranges = field(default_factory=dict)
    """Key ranges of the segments in ``reading`` and ``done``."""
    delivered: str | None = None
    """Checkpoint that was delivered last, until it is reported."""
    finished: bool = False
    """True if this turn reported a checkpoint: segments may change readers while no other checkpoint waits."""
    fetched: bool = False
    """True if this turn fetched the state because a fetch was due."""
    back: Phase = Phase.NEXT
    """Phase that requested to fetch the state."""
    segment: Segment | None = None
    """Segment that is being completed or released."""
    pending: StateUpdate | None = None
    """Update to write, if it depends on an answer."""
    checkpoint: str = ""
    """Checkpoint that is being begun or taken."""
    publishing: Positions = field(default_factory=dict)
    """Positions of the checkpoint that is being published to the controller."""
    unsettled: bool = False
    """True while the outcome of a write that acquires segments is unknown."""
    last: int | None = None
    """Id of the segment of the last event."""
    new_name: Callable[[], str] = field(default=_uuid, compare=False)
    """Return the name of an automatic checkpoint."""
    looks: ClassVar[Mapping[Phase, _Look]]
    """Functions of the phases that may need a request: each returns the reader in the next phase."""
    decisions: ClassVar[Mapping[Phase, _Decide]]
    """Functions of the phases that write: each returns the updates that follow from the state."""
    answers: ClassVar[Mapping[Phase, _Answer]]
    """Functions of the phases that send a request: each returns the reader after the answer."""

    # ---- outside of a turn -------------------------------------------------------------------------------------------

    @classmethod
    def join(cls, reader: str, now: Now, *, delay: float = 0.0, new_name: Callable[[], str] = _uuid) -> Reader:
        """Return a reader that joins the group and acquires segments after ``delay`` seconds."""
        at, soon = now.seconds, now.seconds + _UNIT
        timers = Timers(fetch=at, config=soon, checkpoint=soon, release=soon, acquire=at + delay, distance=soon)
        return cls(id=reader, phase=Phase.JOIN, timers=timers, new_name=new_name)

    @property
    def is_idle(self) -> bool:
        """True if there is no request to send."""
        return self.phase in _IDLE

    @property
    def position(self) -> Ranged:
        """Offsets of the reader in all segments that it owns."""
        return Ranged.of({**self.done, **self.reading}, self.ranges)

    def delivered_up_to(self, segment: Segment, offset: int) -> Reader:
        """Return the reader after the events before ``offset`` were delivered."""
        return replace(self, reading={**self.reading, segment: offset}, last=segment.id)

    def ended(self, segment: Segment, *, sealed: bool = True) -> Reader:
        """Return the reader after the end of a segment.

        With ``sealed=False``, the reader has reached the offset at which the group ends.
        """
        at = END_OF_SEGMENT if sealed else self.reading[segment]
        return replace(self, reading=_without(self.reading, segment), done={**self.done, segment: at})

    def truncated(self, segment: Segment, start: int) -> Reader:
        """Return the reader after a segment was truncated to an offset after its position."""
        return replace(self, reading={**self.reading, segment: start})

    def moved(self, segment: Segment, offset: int) -> Reader:
        """Return the reader that reads an owned segment from another offset than the group's."""
        return replace(self, reading={**self.reading, segment: offset}, done=_without(self.done, segment))

    def outcome_unknown(self) -> Reader:
        """Return the reader while the outcome of its last write is unknown."""
        return replace(self, unsettled=True)

    def leave(self, position: Positions | None = None) -> Reader:
        """Return the reader as it leaves the group.

        Its segments wait for other readers, from its position or from ``position``.
        """
        at = position or {}
        reading = {segment: at.get(segment, offset) for segment, offset in self.reading.items()}
        done = {segment: at.get(segment, offset) for segment, offset in self.done.items()}
        return replace(self, phase=Phase.FETCH, back=Phase.LEAVE, reading=reading, done=done)

    def due(self, state: GroupState) -> float:
        """Return the time, in seconds, before which another turn has no work if there is nothing to read."""
        timers = self.timers
        # While a checkpoint is under way, no other begins, and the timer would be due again and again.
        automatic = [timers.checkpoint] if state.config.checkpoint_ms > 0 and not state.checkpoints.waiting else []
        free = [timers.acquire] if state.unassigned else []
        return min(timers.fetch, timers.config, timers.distance, *automatic, *free)

    # ---- a turn ------------------------------------------------------------------------------------------------------

    def turn(self, state: GroupState, now: Now) -> Reader:
        """Begin a turn. The caller has processed everything that was delivered before.

        Raises ReaderOfflineError.
        """
        return replace(self, phase=Phase.CONFIG, fetched=False, finished=False)._passed(state, now)

    def request(self, now: Now) -> Request:
        """Return the next request. Invalid while the reader rests."""
        match self.phase:
            case Phase.FETCH | Phase.FETCH_SHARED:
                return Request(Ask.FETCH)
            case Phase.ASK_CONFIG:
                return Request(Ask.CONFIG)
            case Phase.ASK_SUCCESSORS:
                return Request(Ask.SUCCESSORS, segment=self.segment)
            case Phase.PUBLISH_CUTS:
                return Request(Ask.PUBLISH, cuts=by_stream(self.publishing))
            case Phase.SHARE:
                return Request(Ask.WRITE, updates=[self._distance(now)])
        decide = self.decisions[self.phase]
        return Request(Ask.UPDATE, decide=lambda state: decide(self, state, now))

    def answered(self, answer: Any, state: GroupState, now: Now) -> Reader:
        """Return the reader after an answer, with the latest known state. Raises ReaderOfflineError."""
        return replace(self.answers[self.phase](self, answer, state, now), unsettled=False)._passed(state, now)

    def _passed(self, state: GroupState, now: Now) -> Reader:
        """Return the reader in the next phase that has a request, or in which it rests."""
        reader = self
        while (look := reader.looks.get(reader.phase)) is not None:
            reader = look(reader, state, now)
        return reader

    def _to(self, phase: Phase, **changes: Any) -> Reader:
        return replace(self, phase=phase, **changes)

    def _set(self, **times: float) -> Reader:
        return replace(self, timers=self.timers._replace(**times))

    def _wants_look(self, now: Now) -> bool:
        return not self.fetched and now.seconds >= self.timers.fetch

    def _look(self) -> Reader:
        return self._to(Phase.FETCH, back=self.phase)

    def _distance(self, now: Now) -> UpdateDistanceToTail:
        # Not the true distance, but the number that Java's readers write. A reader that wrote the true one would seem
        # to have no work, and would get all segments.
        behind = 0 if self.last is None else now.wall_ms - self.last
        return UpdateDistanceToTail(self.id, behind, self.position)

    def _place(self, state: GroupState) -> Positions:
        """Return the segments that the state assigns to this reader.

        Raises ReaderOfflineError if it has lost its place.
        """
        owned = state.assigned.get(self.id)
        if owned is None:
            raise ReaderOfflineError(
                f"reader {self.id} is no longer in its group: it was taken offline or the group was reset; make a new "
                "reader"
            )
        if (owned.keys() - self.reading.keys() - self.done.keys()) and not self.unsettled:
            raise self._replaced()
        if any(segment not in owned for segment in (*self.reading, *self.done)):
            raise self._replaced()
        return owned

    def _replaced(self) -> ReaderOfflineError:
        return ReaderOfflineError(
            f"reader {self.id} was taken offline, and another process has come under its name: make a new reader with "
            "another id"
        )

    def _again(self, state: GroupState, now: Now) -> dict[str, float]:
        """Return the times of the next checks for segments to acquire and to release.

        The busiest reader acquires last and releases first.
        """
        place = rank(state, self.id)
        return {
            "release": now.seconds + _UNIT * (1 + place),
            "acquire": now.seconds + _UNIT * max(1, state.readers - place),
        }

    def _next_distance(self, state: GroupState, now: Now) -> float:
        return now.seconds + _UNIT * (state.readers + 1)

    def _without(self, segment: Segment) -> Reader:
        return replace(
            self,
            reading=_without(self.reading, segment),
            done=_without(self.done, segment),
            ranges={s: keys for s, keys in self.ranges.items() if s != segment},
        )


def _without(positions: Positions, segment: Segment) -> Positions:
    return {other: offset for other, offset in positions.items() if other != segment}


def should_compact(state: GroupState, size: int, chance: float) -> bool:
    """Return True if a reader that has fetched the state should compact it.

    ``size`` is the number of bytes since the last compaction, ``chance`` a random number within [0, 1). Fields of a
    later version are not understood, so a state that has some is not compacted.
    """
    return size > _COMPACT_BYTES and chance < _COMPACT_PROBABILITY and not state.later


# ---- phases that may need a request ----------------------------------------------------------------------------------


def _look_config(reader: Reader, state: GroupState, now: Now) -> Reader:
    if now.seconds < reader.timers.config:
        return reader._to(Phase.REPORT) if reader.delivered is not None else reader._to(Phase.NEXT)
    if reader._wants_look(now):
        return reader._look()
    if state.updating:
        return reader._to(Phase.ASK_CONFIG)
    return reader._set(config=now.seconds + _CONFIG_WINDOW)


def _look_complete(reader: Reader, state: GroupState, now: Now) -> Reader:
    reader._place(state)
    if not reader.done or state.checkpoints.of(reader.id):
        return reader._to(Phase.RELEASE)
    segment = next(iter(reader.done))
    if segment in state.end:  # the group ends in it
        return reader._to(Phase.COMPLETED, segment=segment, pending=_completed(reader, segment, Succession()))
    return reader._to(Phase.ASK_SUCCESSORS, segment=segment)


def _completed(reader: Reader, segment: Segment, what: Succession) -> SegmentCompleted:
    ranges = {segment: reader.ranges.get(segment), **what.ranges}
    return SegmentCompleted(reader.id, segment, what.predecessors, ranges)


def _look_release(reader: Reader, state: GroupState, now: Now) -> Reader:
    if reader._wants_look(now):
        return reader._look()
    reader._place(state)
    due = now.seconds >= reader.timers.release and not state.checkpoints.of(reader.id)
    if not due or not reader.reading or not has_too_many(state, reader.id):
        return reader._to(Phase.PUBLISH)
    # Any segment would do, but not all readers should prefer the same one.
    segment = max(reader.reading, key=lambda s: zlib.crc32(f"{reader.id} {s}".encode()))
    wait = now.seconds + _WINDOW
    return reader._set(release=wait, acquire=wait)._to(Phase.RELEASED, segment=segment)


def _look_publish(reader: Reader, state: GroupState, now: Now) -> Reader:
    checkpoints = state.checkpoints
    if state.config.retention is Retention.AUTOMATIC and not checkpoints.published and checkpoints.last:
        return reader._to(Phase.PUBLISH_CUTS, publishing=checkpoints.last)
    return reader._to(Phase.NEXT)


def _look_next(reader: Reader, state: GroupState, now: Now) -> Reader:
    if reader._wants_look(now):
        return reader._look()
    reader._place(state)
    interval = state.config.checkpoint_ms / 1000
    if waiting := state.checkpoints.of(reader.id):
        name = waiting[0]
        timed = reader._set(checkpoint=now.seconds + interval)
        if SILENT in name:
            return timed._to(Phase.SILENT, checkpoint=name)
        return timed._to(Phase.CHECKPOINT, delivered=name)
    if interval > 0 and now.seconds >= reader.timers.checkpoint and not state.checkpoints.waiting:
        return reader._to(Phase.BEGIN, checkpoint=reader.new_name())
    return reader._to(Phase.ACQUIRE)


def _look_acquire(reader: Reader, state: GroupState, now: Now) -> Reader:
    if reader._wants_look(now):
        return reader._look()
    reader._place(state)
    if now.seconds < reader.timers.acquire or state.checkpoints.of(reader.id):
        return reader._to(Phase.DISTANCE)
    if not state.unassigned:
        return reader._set(acquire=reader._again(state, now)["acquire"])._to(Phase.DISTANCE)
    wait = now.seconds + _WINDOW
    return reader._set(acquire=wait, release=wait)._to(Phase.ACQUIRED)


def _look_distance(reader: Reader, state: GroupState, now: Now) -> Reader:
    if now.seconds >= reader.timers.distance:
        return reader._set(distance=reader._next_distance(state, now))._to(Phase.SHARE)
    return reader._to(Phase.END if not reader.reading and state.is_end_of_data else Phase.READ)


Reader.looks = {
    Phase.CONFIG: _look_config,
    Phase.COMPLETE: _look_complete,
    Phase.RELEASE: _look_release,
    Phase.PUBLISH: _look_publish,
    Phase.NEXT: _look_next,
    Phase.ACQUIRE: _look_acquire,
    Phase.DISTANCE: _look_distance,
}


# ---- updates that follow from the state ------------------------------------------------------------------------------


def _decide_join(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    if reader.id in state.assigned:
        raise ReaderOnlineError(
            f"the group has a reader {reader.id} already: choose another id, or take it offline if it has died, by "
            f"group.reader_offline({reader.id!r}) or pravega-serde group offline"
        )
    return [AddReader(reader.id)]


def _decide_leave(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    try:
        reader._place(state)
    except ReaderOfflineError:  # the reader was removed, or another process uses its name
        return []
    return [RemoveReader(reader.id, reader.position.positions)]


def _decide_renew(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    init = reader.pending
    assert isinstance(init, Init)
    return [init] if state.config.generation < init.config.generation else []


def _decide_report(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    reader._place(state)
    name = reader.delivered if reader.phase is Phase.REPORT else reader.checkpoint
    assert name is not None
    if name not in state.checkpoints.of(reader.id):
        return []
    return [CheckpointReader(name, reader.id, reader.position.positions)]


def _decide_completed(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    assert reader.pending is not None
    owned = _owned(reader, state)
    return [reader.pending] if reader.segment in owned and not state.checkpoints.of(reader.id) else []


def _decide_released(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    segment, owned = reader.segment, _owned(reader, state)
    assert segment is not None
    if segment not in owned or state.checkpoints.of(reader.id) or not has_too_many(state, reader.id):
        return []
    return [ReleaseSegment(reader.id, segment, reader.reading[segment]), reader._distance(now)]


def _owned(reader: Reader, state: GroupState) -> Positions:
    """Return the segments as _place does, except a segment that may have been released by now.

    Raises ReaderOfflineError.
    """
    assert reader.segment is not None
    owned = state.assigned.get(reader.id, {})
    return (reader if reader.segment in owned else reader._without(reader.segment))._place(state)


def _decide_published(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    # A later checkpoint must still be published.
    is_published = state.checkpoints.last == reader.publishing and not state.checkpoints.published
    return [UpdateCheckpointPublished(True)] if is_published else []


def _decide_begin(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    if state.checkpoints.waiting or reader.checkpoint in state.checkpoints.positions:
        return []
    return [CreateCheckpoint(reader.checkpoint), ClearCheckpointsBefore(reader.checkpoint)]


def _decide_acquired(reader: Reader, state: GroupState, now: Now) -> list[StateUpdate]:
    owned = reader._place(state)
    if owned.keys() - reader.reading.keys() - reader.done.keys():
        return []  # the write took effect although its answer was lost
    if state.checkpoints.of(reader.id) or not state.unassigned:
        return []
    return [*(AcquireSegment(reader.id, segment) for segment in to_acquire(state, reader.id)), reader._distance(now)]


Reader.decisions = {
    Phase.JOIN: _decide_join,
    Phase.LEAVE: _decide_leave,
    Phase.RENEW: _decide_renew,
    Phase.REPORT: _decide_report,
    Phase.SILENT: _decide_report,
    Phase.COMPLETED: _decide_completed,
    Phase.RELEASED: _decide_released,
    Phase.PUBLISHED: _decide_published,
    Phase.BEGIN: _decide_begin,
    Phase.ACQUIRED: _decide_acquired,
}


# ---- reader after the answer -----------------------------------------------------------------------------------------


def _joined(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    return reader._to(Phase.READ)


def _left(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    return reader._to(Phase.GONE, reading={}, done={}, ranges={})


def _fetched(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    after = reader._set(fetch=now.seconds + state.config.refresh_ms / 1000)
    return after._to(Phase.DISTANCE if reader.phase is Phase.FETCH_SHARED else reader.back, fetched=True)


def _configured(reader: Reader, answer: Init, state: GroupState, now: Now) -> Reader:
    return reader._to(Phase.RENEW, pending=answer)


def _renewed(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    after = reader._set(config=now.seconds + _CONFIG_WINDOW)
    return after._to(Phase.CONFIG, pending=None)


def _reported(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    return reader._to(Phase.COMPLETE, delivered=None, finished=True)


def _taken(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    # It may have delayed segments that change readers after the checkpoint that this turn reported.
    return reader._to(Phase.COMPLETE if reader.finished else Phase.NEXT)


def _succeeded(reader: Reader, answer: Succession, state: GroupState, now: Now) -> Reader:
    assert reader.segment is not None
    return reader._to(Phase.COMPLETED, pending=_completed(reader, reader.segment, answer))


def _passed_on(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    segment = reader.segment
    assert segment is not None
    after = reader if segment in state.assigned.get(reader.id, {}) else reader._without(segment)
    return after._set(acquire=now.seconds)._to(Phase.COMPLETE, segment=None, pending=None)


def _released(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    segment = reader.segment
    assert segment is not None
    after = reader if segment in state.assigned.get(reader.id, {}) else reader._without(segment)
    timed = after._set(**reader._again(state, now), distance=reader._next_distance(state, now))
    return timed._to(Phase.PUBLISH, segment=None)


def _published_cuts(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    return reader._to(Phase.PUBLISHED)


def _published(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    return reader._to(Phase.NEXT, publishing={})


def _begun(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    return reader._set(checkpoint=now.seconds + state.config.checkpoint_ms / 1000)._to(Phase.NEXT)


def _acquired(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    reading, done, ranges = dict(reader.reading), dict(reader.done), dict(reader.ranges)
    for segment, offset in replace(reader, unsettled=True)._place(state).items():
        if segment in reading or segment in done:
            continue
        is_done = offset < 0 or offset >= state.end.get(segment, offset + 1)
        (done if is_done else reading)[segment] = offset
        ranges[segment] = state.ranges.get(segment)
    timed = reader._set(**reader._again(state, now), distance=reader._next_distance(state, now))
    return timed._to(Phase.DISTANCE, reading=reading, done=done, ranges=ranges)


def _shared(reader: Reader, answer: None, state: GroupState, now: Now) -> Reader:
    return reader._to(Phase.FETCH_SHARED)


Reader.answers = {
    Phase.JOIN: _joined,
    Phase.LEAVE: _left,
    Phase.FETCH: _fetched,
    Phase.FETCH_SHARED: _fetched,
    Phase.ASK_CONFIG: _configured,
    Phase.RENEW: _renewed,
    Phase.REPORT: _reported,
    Phase.SILENT: _taken,
    Phase.ASK_SUCCESSORS: _succeeded,
    Phase.COMPLETED: _passed_on,
    Phase.RELEASED: _released,
    Phase.PUBLISH_CUTS: _published_cuts,
    Phase.PUBLISHED: _published,
    Phase.BEGIN: _begun,
    Phase.ACQUIRED: _acquired,
    Phase.SHARE: _shared,
}
