"""A world in which everything that can go wrong with a reader group goes wrong: the model of its readers.

Readers run the implementation's own machine (``pravega_connector.reader_groups.protocol.Reader``) over the
implementation's own state and updates. The model is the rest of the world:

- The log of the group, which accepts a conditional write only at its end.
- The segments, and one scaling of them. A segment has one event.
- Readers that crash between any two steps, are removed while they live, leave, or do not learn the result of a write.
- Timers, which may be due at any time or not.

A write decides on the state at the end of the log. An earlier one is refused there, and decided again.

Checked in every state:

- Each segment that was begun is in one place, and the offsets that the group knows were delivered.
- No segment is available before all its predecessors are done.
- No two readers that the group knows hold the same segment.
- No checkpoint has a segment and its predecessor.
- Without a crash no event is delivered twice.

From every state the end of all data can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

from pravega_connector.errors import GroupStateError, ReaderGroupError
from pravega_connector.reader_groups.protocol.machine import Ask, Now, Phase, Reader, Succession, Timers
from pravega_connector.reader_groups.protocol.state import (
    SILENT,
    Bound,
    GroupConfig,
    GroupState,
    KeyRange,
    Positions,
    Ranged,
    Segment,
    state_of,
)
from pravega_connector.reader_groups.protocol.updates import (
    CreateCheckpoint,
    RemoveReader,
    SegmentCompleted,
    StateUpdate,
    apply,
)
from pravega_connector.wire import StreamName
from tools.model.world import ViolationError

STREAM = StreamName("a", "b")
S0, S1 = Segment(STREAM, 0), Segment(STREAM, 1)
S2, S3 = Segment(STREAM, 1 << 32 | 2), Segment(STREAM, 1 << 32 | 3)
#: Successors of each segment that is sealed, with all their predecessors.
SCALINGS: dict[str, dict[Segment, dict[Segment, tuple[int, ...]]]] = {
    "merge": {S0: {S2: (0, 1)}, S1: {S2: (0, 1)}},
    "split": {S0: {S2: (0,), S3: (0,)}},
}
FIRST = {S0: KeyRange(0.0, 0.5), S1: KeyRange(0.5, 1.0)}
RANGES = {
    "merge": {**FIRST, S2: KeyRange(0.0, 1.0)},
    "split": {**FIRST, S2: KeyRange(0.0, 0.25), S3: KeyRange(0.25, 0.5)},
}
#: Nothing is due, all but a checkpoint is due, or all.
EARLY, LATE, LAST = Now(0.0), Now(2.0), Now(4.0)
#: The configuration never changes, and distances do not matter.
TIMERS = Timers(fetch=1.0, config=inf, checkpoint=3.0, release=1.0, acquire=1.0, distance=inf)


@dataclass(frozen=True)
class Config:
    """How large the world is, and how much may go wrong in it."""

    readers: int
    scaling: str = "merge"
    crash: int = 0
    offline: int = 0
    leave: int = 0
    unknown: int = 0
    silent: int = 0
    scaled: bool = False
    """Whether the stream was scaled before any reader came."""
    reader: type[Reader] = Reader
    apply: Callable[[GroupState, StateUpdate], GroupState] = apply
    conditional: bool = True
    """Whether what follows from a state is refused when the state has changed."""


class Budget(NamedTuple):
    crash: int
    offline: int
    leave: int
    unknown: int
    silent: int


class Member(NamedTuple):
    """A process with a reader."""

    reader: Reader
    out: frozenset[Segment] = frozenset()  # events that were handed out, and that the caller may not have done with
    zombie: bool = False  # the group knows it no more, and it does not know that yet
    stale: tuple[StateUpdate, ...] | None = None  # written in any state, in a world that does so


class State(NamedTuple):
    group: GroupState
    members: tuple[Member | str, ...]  # "new", "dead", "gone"
    budget: Budget
    scaled: bool = False
    delivered: frozenset[Segment] = frozenset()
    completed: frozenset[Segment] = frozenset()
    calm: bool = True  # nothing went wrong so far


Step = tuple[str, State]


def first_state(config: Config) -> State:
    group = state_of(GroupConfig(start={STREAM: Bound()}), Ranged.of({S0: 0, S1: 0}), {})
    budget = Budget(config.crash, config.offline, config.leave, config.unknown, config.silent)
    return State(group, ("new",) * config.readers, budget, config.scaled)


def name(number: int) -> str:
    return f"r{number}"


# ---- everything that can happen --------------------------------------------------------------------------------------


def steps(config: Config, state: State) -> Iterator[Step]:
    if not state.scaled:
        yield "the stream is scaled", state._replace(scaled=True)
    if state.budget.silent:
        after = state._replace(budget=state.budget._replace(silent=state.budget.silent - 1))
        yield (
            "a silent checkpoint begins",
            written(config, after, [CreateCheckpoint(f"s{state.budget.silent}{SILENT}")]),
        )
    for number, member in enumerate(state.members):
        if member == "new" and "new" in state.members[:number]:
            continue  # they are all alike
        if member == "new":
            reader = config.reader.join(name(number), EARLY)
            yield f"{name(number)} starts", with_member(state, number, Member(replace(reader, timers=TIMERS)))
        elif not isinstance(member, Member) and name(number) in state.group.assigned:
            yield f"{name(number)} is taken offline", removed(config, state, number)
        elif isinstance(member, Member):
            yield from faults(config, state, number, member)
            yield from acts(config, state, number, member)


def with_member(state: State, number: int, member: Member | str) -> State:
    members = (*state.members[:number], member, *state.members[number + 1 :])
    return state._replace(members=members)


def removed(config: Config, state: State, number: int) -> State:
    return state._replace(group=config.apply(state.group, RemoveReader(name(number))))


def faults(config: Config, state: State, number: int, member: Member) -> Iterator[Step]:
    budget, who = state.budget, f"{name(number)} ({member.reader.phase.name})"
    if budget.crash:
        after = state._replace(budget=budget._replace(crash=budget.crash - 1), calm=False)
        yield f"{who} crashes", with_member(after, number, "dead")
    if budget.offline and name(number) in state.group.assigned and not member.zombie:
        after = state._replace(budget=budget._replace(offline=budget.offline - 1), calm=False)
        yield (
            f"{who} is taken for dead",
            removed(config, with_member(after, number, member._replace(zombie=True)), number),
        )
    if budget.leave and member.reader.is_idle:
        after = state._replace(budget=budget._replace(leave=budget.leave - 1))
        after, closed = done_with(after, number, member)
        yield f"{who} is to go", moved(config, after, number, closed, closed.reader.leave(), EARLY)


def acts(config: Config, state: State, number: int, member: Member) -> Iterator[Step]:
    reader, who = member.reader, f"{name(number)} ({member.reader.phase.name})"
    if not reader.is_idle:
        yield from asks(config, state, number, member)
        return
    if reader.phase is Phase.READ:
        for segment, offset in reader.reading.items():
            if offset == 0:
                yield f"{who} delivers {segment.id}", delivered(config, state, number, member, segment)
        for segment, offset in reader.reading.items():
            if offset and (state.scaled or segment not in SCALINGS[config.scaling]):
                reader = reader.ended(segment)
    state, member = done_with(state, number, member)
    for now in (EARLY, LATE) if reader.phase is Phase.CHECKPOINT else (LATE, LAST):
        try:
            turned = named(state, reader).turn(state.group, now)
        except ReaderGroupError:
            yield f"{who} finds itself offline", with_member(state, number, "gone")
        else:
            yield f"{who} comes to its turn", moved(config, state, number, member, turned, now)


def delivered(config: Config, state: State, number: int, member: Member, segment: Segment) -> State:
    if state.calm and segment in state.delivered:
        raise ViolationError(f"DUPLICATE: the event of {segment.id} is delivered again")
    if not predecessors(config, segment) <= state.delivered:
        raise ViolationError(f"ORDER: the event of {segment.id} is delivered before those of its predecessors")
    reader = replace(member.reader.delivered_up_to(segment, 1), last=None)
    return with_member(state, number, member._replace(reader=reader, out=member.out | {segment}))


def done_with(state: State, number: int, member: Member) -> tuple[State, Member]:
    """The caller comes again, or closes the reader: it has done with all that it was given."""
    after = member._replace(out=frozenset())
    return with_member(state._replace(delivered=state.delivered | member.out), number, after), after


def asks(config: Config, state: State, number: int, member: Member) -> Iterator[Step]:
    reader, who = member.reader, f"{name(number)} {member.reader.phase.value}"
    request = reader.request(EARLY)
    answer: Any = None
    after = state
    if request.ask is Ask.SUCCESSORS:
        assert request.segment is not None
        found = SCALINGS[config.scaling].get(request.segment, {})
        answer = Succession(found, {segment: RANGES[config.scaling][segment] for segment in found})
    elif request.ask is Ask.UPDATE:
        assert request.decide is not None
        try:
            updates = request.decide(state.group) if member.stale is None else member.stale
        except ReaderGroupError:
            yield f"{who}: it is offline", with_member(state, number, "gone")
            return
        after = written(config, state, updates)
        if updates and state.budget.unknown:
            lost = after._replace(budget=state.budget._replace(unknown=state.budget.unknown - 1))
            yield (
                f"{who}, and does not learn of it",
                with_member(lost, number, member._replace(reader=reader.outcome_unknown())),
            )
    for now in (EARLY, LATE):
        try:
            done = named(after, reader).answered(answer, after.group, now)
        except ReaderGroupError:
            yield f"{who}: it is offline", with_member(after, number, "gone")
        else:
            yield who, moved(config, after, number, member, done, now)


def written(config: Config, state: State, updates: Any) -> State:
    group, completed = state.group, state.completed
    for update in updates:
        try:
            group = config.apply(group, update)
        except GroupStateError as error:
            raise ViolationError(f"BROKEN: {error.message}") from None
        if isinstance(update, SegmentCompleted):
            completed |= {update.segment}
    if group.checkpoints.last != state.group.checkpoints.last:
        check_checkpoint(config, group.checkpoints.last, completed, state.delivered)
    return state._replace(group=group, completed=completed)


def moved(config: Config, state: State, number: int, member: Member, reader: Reader, now: Now) -> State:
    """The state with a reader in its next phase; looks at the group's state are made at once."""
    while reader.phase in (Phase.FETCH, Phase.FETCH_SHARED):
        try:
            reader = reader.answered(None, state.group, now)
        except ReaderGroupError:
            return with_member(state, number, "gone")
    if reader.phase is Phase.GONE:
        return with_member(state, number, "gone")
    if reader.is_idle:
        reader = replace(reader, finished=False, fetched=False, segment=None, checkpoint="")
    stale = None
    if not config.conditional and not reader.is_idle and reader.request(EARLY).decide is not None:
        decide = reader.request(EARLY).decide
        assert decide is not None
        stale = tuple(decide(state.group))
    reader = replace(reader, timers=TIMERS)
    return with_member(state, number, member._replace(reader=reader, stale=stale))


def named(state: State, reader: Reader) -> Reader:
    """The reader, with a name for the next checkpoint that nothing has."""
    taken = {*state.group.checkpoints.names, *state.group.checkpoints.positions}
    for member in state.members:
        if isinstance(member, Member):
            taken |= {member.reader.checkpoint, member.reader.delivered or ""}
    free = next(f"c{number}" for number in range(99) if f"c{number}" not in taken)
    return replace(reader, new_name=lambda: free)


# ---- what must hold in every state -----------------------------------------------------------------------------------


def predecessors(config: Config, segment: Segment) -> frozenset[Segment]:
    return frozenset(s for s, successors in SCALINGS[config.scaling].items() if segment in successors)


def held(member: Member) -> list[Segment]:
    return [*member.reader.reading, *member.reader.done]


def violation(config: Config, state: State) -> str | None:
    return places(config, state) or offsets(state) or holders(state)


def places(config: Config, state: State) -> str | None:
    group = state.group
    begun = {S0, S1} | {s for done in state.completed for s in SCALINGS[config.scaling].get(done, {})}
    owned = [segment for positions in group.assigned.values() for segment in positions]
    for segment in begun:
        everywhere = [*group.unassigned, *owned, *group.future, *state.completed]
        count = everywhere.count(segment)
        if count != 1:
            return f"{'LOST' if count == 0 else 'TWICE'}: segment {segment.id} is in {count} places"
        if segment not in group.future and not predecessors(config, segment) <= state.completed:
            return f"ORDER: segment {segment.id} can be had before its predecessors are done"
    if group.future and not any(predecessors(config, s) - state.completed for s in group.future):
        return "LOST: a segment waits for nothing"
    return None


def offsets(state: State) -> str | None:
    group = state.group
    known: list[Positions] = [group.unassigned, *group.assigned.values()]
    done = {segment for positions in known for segment, offset in positions.items() if offset} | state.completed
    if missing := done - state.delivered:
        return f"LOSS: the group knows the end of {[s.id for s in missing]}, but no reader had their events"
    return None


def holders(state: State) -> str | None:
    # In the middle of a turn a reader hands out nothing, and what it owns may be under way.
    readers = [(n, m) for n, m in enumerate(state.members) if isinstance(m, Member) and not m.zombie]
    known = [(n, m) for n, m in readers if m.reader.phase in (Phase.READ, Phase.CHECKPOINT)]
    segments = [segment for _, member in known for segment in held(member)]
    if len(segments) != len(set(segments)):
        return f"TWICE: readers hold {[s.id for s in segments]}"
    for number, member in known:
        if set(held(member)) != set(state.group.assigned.get(name(number), ())):
            return f"TWICE: {name(number)} reads {[s.id for s in held(member)]}, which the group does not know"
    return None


def check_checkpoint(
    config: Config, last: Positions, completed: frozenset[Segment], delivered: frozenset[Segment]
) -> None:
    """Raise ViolationError for a checkpoint from which a group could not restart without loss."""
    if missing := {segment for segment, offset in last.items() if offset} - delivered:
        raise ViolationError(f"LOSS: a checkpoint is behind the events of {[s.id for s in missing]}")
    if any(predecessors(config, segment) & last.keys() for segment in last):
        raise ViolationError(f"OVERLAP: a checkpoint has {[s.id for s in last]}")
    waits = {s for s in completed if not predecessors(config, s) & last.keys() and may_be_missing(config, s, last)}
    ranges = [RANGES[config.scaling][segment] for segment in (*last, *(waits - last.keys()))]
    if sum(keys.high - keys.low for keys in ranges) != 1:
        raise ViolationError(f"GAP: a checkpoint has {[s.id for s in last]}, completed are {[s.id for s in completed]}")


def may_be_missing(config: Config, segment: Segment, last: Positions) -> bool:
    """Return True if a completed segment is left out rightly: nothing follows it, or what follows waits for another."""
    successors = SCALINGS[config.scaling].get(segment, {})
    return not successors or any(predecessors(config, successor) & last.keys() for successor in successors)


def is_end(config: Config, state: State, followed: bool) -> bool:
    """Return True if everything was read, or no reader is left to do it."""
    alive = [member for member in state.members if member == "new" or isinstance(member, Member)]
    return state.group.is_end_of_data or not alive


def outcome(state: State) -> str | None:
    return None


# ---- which states are the same ---------------------------------------------------------------------------------------


def canonical(config: Config) -> Callable[[State], Any]:
    """A key that equal situations share."""

    def positions(of: Positions) -> tuple[Any, ...]:
        return tuple(sorted((segment.id, offset) for segment, offset in of.items()))

    def member_key(member: Member | str, names: dict[str, int]) -> Any:
        if isinstance(member, str):
            return member
        reader = member.reader
        rest = (
            reader.phase.value,
            positions(reader.reading),
            positions(reader.done),
            names.get(reader.delivered or "", -1),
        )
        if reader.is_idle:
            return *rest, positions(dict.fromkeys(member.out, 0)), member.zombie
        return (
            *rest,
            member.zombie,
            tuple(segment.id for segment in reader.done),
            reader.back.value if reader.phase is Phase.FETCH else "",
            reader.finished,
            reader.fetched,
            reader.segment and reader.segment.id,
            names.get(reader.checkpoint, -1) if reader.phase in (Phase.SILENT, Phase.BEGIN) else -1,
            reader.unsettled,
            repr(member.stale),
        )

    def key(state: State) -> Any:
        group, checkpoints = state.group, state.group.checkpoints
        names = {name: number for number, name in enumerate(checkpoints.waiting)}
        return (
            tuple((reader, positions(owned)) for reader, owned in sorted(group.assigned.items())),
            tuple((segment.id, offset) for segment, offset in group.unassigned.items()),
            tuple(sorted((segment.id, tuple(sorted(ids))) for segment, ids in group.future.items())),
            tuple(SILENT in name for name in names),
            tuple(tuple(sorted(readers)) for readers in checkpoints.waiting.values()),
            tuple(positions(checkpoints.positions[name]) for name in names),
            tuple(member_key(member, names) for member in state.members),
            tuple(state.budget),
            state.scaled,
            tuple(sorted(segment.id for segment in state.delivered)),
            tuple(sorted(segment.id for segment in state.completed)),
            state.calm,
        )

    return key
