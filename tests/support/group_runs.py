"""Runs of reader groups: updates by readers and managers in sequence, some of them unreasonable.

Each run is an initial value and updates from a seed. Java's classes and ours must derive the same state.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pravega_connector.errors import ReaderGroupError
from pravega_connector.reader_groups.protocol import (
    SILENT,
    AcquireSegment,
    AddReader,
    Bound,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupConfig,
    GroupState,
    Init,
    KeyRange,
    Positions,
    Ranged,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    Retention,
    Segment,
    SegmentCompleted,
    StateUpdate,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
    apply,
    create,
)
from pravega_connector.reader_groups.protocol.administration import (
    announce_change,
    begin_checkpoint,
    clear_before,
    reset,
    silent_name,
    take_offline,
)
from pravega_connector.reader_groups.protocol.machine import Ask, Now, Phase, Reader, Request, Succession
from pravega_connector.wire import StreamCut, StreamName

__all__ = ["any_run", "any_values", "lived_run"]

STREAMS: Final = (StreamName("a", "b"), StreamName("a", "c-2"), StreamName("other.scope", "_MARKb"))
NUMBERS: Final = (0, 1, -1, 127, 128, 2**14, 30_000, 2**40, 2**63 - 1, -(2**63))


# ---- lives of groups -------------------------------------------------------------------------------------------------


@dataclass
class _Member:
    reader: Reader
    seen: GroupState


@dataclass
class _Life:
    """Group, its streams as they are scaled, and readers that are late, die and return."""

    random: random.Random
    state: GroupState
    run: list[StateUpdate]
    segments: dict[Segment, KeyRange]
    """Segments that are not sealed."""
    after: dict[Segment, Succession] = field(default_factory=dict)
    members: dict[str, _Member] = field(default_factory=dict)
    at: float = 100.0
    named: int = 0

    @property
    def now(self) -> Now:
        return Now(self.at, 1_700_000_000_000 + int(self.at * 1000))

    def write(self, updates: Sequence[StateUpdate]) -> None:
        for update in updates:
            self.state = apply(self.state, update)
            self.run.append(update)

    def name(self) -> str:
        self.named += 1
        return f"{uuid.UUID(int=self.random.getrandbits(128))}-{self.named}"

    # -- events

    def come(self) -> None:
        name = f"reader-{self.random.randrange(6)}"
        if name in self.members or len(self.members) > 4:
            return
        reader = Reader.join(name, self.now, delay=self.random.choice([0, 2]), new_name=self.name)
        try:
            self._drive(name, _Member(reader, self.state))
        except ReaderGroupError:  # a reader of that name has died
            self.write(take_offline(self.state, name))

    def turn(self) -> None:
        for name in self.random.sample(sorted(self.members), len(self.members)):
            member = self.members[name]
            reader = member.reader
            for segment in list(reader.reading):
                if segment not in self.segments and self.random.random() < 0.5:
                    reader = reader.ended(segment)
                elif self.random.random() < 0.7:
                    reader = reader.delivered_up_to(segment, reader.reading[segment] + self.random.randrange(100))
            try:
                self._drive(name, _Member(reader.turn(member.seen, self.now), member.seen))
            except ReaderGroupError:
                self.members.pop(name, None)

    def leave(self) -> None:
        if self.members:
            name = self.random.choice(sorted(self.members))
            member = self.members.pop(name)
            self._drive(name, _Member(member.reader.leave(), member.seen))

    def die(self) -> None:
        if self.members:
            name = self.random.choice(sorted(self.members))
            member = self.members.pop(name)
            at = {s: o for s, o in member.reader.position.positions.items() if self.random.random() < 0.6}
            self.write(take_offline(self.state, name, self.random.choice([None, at])))

    def begin(self) -> None:
        name = silent_name(self.random.randbytes(32)) if self.random.random() < 0.4 else self.name()
        try:
            self.write(begin_checkpoint(self.state, name))
        except ReaderGroupError:
            self.write([RemoveOutstandingCheckpoints()])

    def clear(self) -> None:
        if names := self.state.checkpoints.names:
            self.write(clear_before(self.random.choice(names)))

    def scale(self) -> None:
        stream = self.random.choice([segment.stream for segment in self.segments])
        old = [s for s in self.segments if s.stream == stream]
        epoch = 1 + max(s.id >> 32 for s in old)
        chosen = self.random.sample(old, min(len(old), self.random.choice([1, 2])))
        number = 1 + max(s.id & 0xFFFFFFFF for s in {**self.segments, **self.after} if s.stream == stream)
        new = [Segment(stream, epoch << 32 | number + n) for n in range(1 if len(chosen) == 2 else 2)]
        edges = [n / len(new) for n in range(len(new) + 1)]
        ranges = {s: KeyRange(edges[n], edges[n + 1]) for n, s in enumerate(new)}
        for segment in chosen:
            self.after[segment] = Succession({s: tuple(one.id for one in chosen) for s in new}, ranges)
            del self.segments[segment]
        self.segments |= ranges

    def begin_again(self) -> None:
        config = replace(self.state.config, generation=self.state.config.generation + 1)
        self.write(announce_change(self.state, self.state.config))
        at = self.state.checkpoints.last or self.state.positions
        if at:
            self.write(reset(self.state, config, Ranged.of(at), {}))

    def compact(self) -> None:
        self.write([self.state])

    def wait(self) -> None:
        self.at += self.random.choice([0.5, 3.0, 31.0])

    # -- internal

    def _drive(self, name: str, member: _Member) -> None:
        reader, seen = member.reader, member.seen
        while not reader.is_idle:
            request = reader.request(self.now)
            seen, answer = self._answer(request, seen)
            reader = reader.answered(answer, seen, self.now)
        if reader.phase is not Phase.GONE:
            self.members[name] = _Member(reader, seen)

    def _answer(self, request: Request, seen: GroupState) -> tuple[GroupState, Any]:
        answer: Any = None
        if request.ask is Ask.UPDATE:
            assert request.decide is not None
            while updates := request.decide(seen):
                if seen is self.state:
                    self.write(updates)
                    return self.state, None
                seen = self.state
        elif request.ask is Ask.WRITE:
            self.write(request.updates)
        elif request.ask is Ask.FETCH:
            seen = self.state
        elif request.ask is Ask.CONFIG:
            answer = Init(self.state.config, Ranged.of(self.state.positions))
        elif request.ask is Ask.SUCCESSORS:
            assert request.segment is not None
            answer = self.after.get(request.segment, Succession())
        return seen, answer


def lived_run(seed: int, steps: int = 60) -> tuple[list[StateUpdate], GroupState]:
    """Return the updates that the members of a group write in its life, and the final state."""
    rng = random.Random(seed)
    streams = STREAMS[: rng.randrange(1, 4)]
    segments = {Segment(s, n): KeyRange(n / 3, (n + 1) / 3) for s in streams for n in range(rng.randrange(1, 4))}
    retention = rng.choice(list(Retention))
    config = GroupConfig(
        start={stream: Bound() for stream in streams},
        checkpoint_ms=rng.choice([-1, 2000, 30_000]),
        retention=retention,
        generation=0,
        id=uuid.UUID(int=rng.getrandbits(128)),
    )
    end = {segment: 500 for segment in segments if rng.random() < 0.1}
    init = Init(config, Ranged.of({s: rng.randrange(50) for s in segments}), end)
    life = _Life(rng, create(init), [init], dict(segments))
    happens: list[tuple[Callable[[], None], int]] = [
        (life.come, 4),
        (life.turn, 20),
        (life.wait, 8),
        (life.begin, 4),
        (life.clear, 2),
        (life.scale, 3),
        (life.die, 2),
        (life.leave, 1),
        (life.compact, 1),
        (life.begin_again, 1),
    ]
    for step in rng.choices(*zip(*happens, strict=True), k=steps):
        step()
    return life.run, life.state


# ---- anything --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Any:
    """Values of any content that Java's classes accept."""

    random: random.Random
    names: Sequence[str] = ("r1", "r2", "r3")
    checkpoints: Sequence[str] = ("c", "bb", "9b2d", "é", f"x{SILENT}", f"{SILENT}y")
    segments: Sequence[Segment] = tuple(
        Segment(STREAMS[n % 2], (n // 4) << 32 | n)
        for n in range(7)  # two streams, two epochs
    )

    def name(self) -> str:
        return self.random.choice(self.names)

    def checkpoint(self) -> str:
        return self.random.choice(self.checkpoints)

    def segment(self) -> Segment:
        return self.random.choice(self.segments)

    def number(self) -> int:
        return self.random.choice(NUMBERS) if self.random.random() < 0.3 else self.random.randrange(100_000)

    def some(self, most: int = 4) -> list[Segment]:
        return self.random.sample(self.segments, self.random.randrange(min(most, len(self.segments)) + 1))

    def positions(self) -> Positions:
        return {segment: self.number() for segment in self.some()}

    def range(self) -> KeyRange | None:
        low, high = sorted((self.random.random(), self.random.choice([0.0, 0.5, 1.0])))
        return None if self.random.random() < 0.3 else KeyRange(low, high)

    def ranged(self) -> Ranged:
        positions = self.positions()
        return Ranged(positions, {segment: self.range() for segment in positions})

    def successors(self) -> Mapping[Segment, tuple[int, ...]]:
        return {segment: tuple(one.id for one in self.some()) for segment in self.some(3)}

    def config(self) -> GroupConfig:
        start: dict[StreamName, Bound] = {}
        end: dict[StreamName, Bound] = {}
        for stream in self.random.sample(STREAMS, self.random.randrange(1, 4)):
            ids = sorted(self.random.sample(range(40), self.random.randrange(1, 6)))
            at = {number << 32 | number: self.random.choice([-1, 0, 7, 2**40]) for number in ids}
            later = {
                number: offset if offset < 0 else offset + self.random.randrange(9) for number, offset in at.items()
            }
            start[stream] = Bound(self.random.choice([None, StreamCut(stream, at)]))
            if self.random.random() < 0.5:
                end[stream] = Bound(self.random.choice([None, StreamCut(stream, later)]))
        return GroupConfig(
            start=start,
            end=end,
            checkpoint_ms=self.number(),
            refresh_ms=self.number(),
            max_outstanding=self.random.choice([1, 3, 2**31 - 1]),
            retention=self.random.choice(list(Retention)),
            generation=self.number(),
            id=uuid.UUID(int=self.random.getrandbits(128)),
        )

    def init(self) -> Init:
        return Init(self.config(), self.ranged(), self.positions(), self.random.random() < 0.5)

    def update(self) -> StateUpdate:
        """Return an update of any kind except one that replaces the state."""
        makes: list[tuple[Callable[[], StateUpdate], int]] = [
            (lambda: AddReader(self.name()), 3),
            (lambda: RemoveReader(self.name(), self.positions()), 2),
            (lambda: ReleaseSegment(self.name(), self.segment(), self.number()), 8),
            (lambda: AcquireSegment(self.name(), self.segment()), 20),
            (lambda: UpdateDistanceToTail(self.name(), self.number(), self.ranged()), 3),
            (self._completed, 12),
            (lambda: CheckpointReader(self.checkpoint(), self.name(), self.positions()), 8),
            (lambda: CreateCheckpoint(self.checkpoint()), 4),
            (lambda: ClearCheckpointsBefore(self.checkpoint()), 1),
            (lambda: UpdateCheckpointPublished(self.random.random() < 0.5), 1),
            (lambda: UpdatingConfig(self.random.random() < 0.5), 1),
            (RemoveOutstandingCheckpoints, 1),
        ]
        [make] = self.random.choices(*zip(*makes, strict=True))
        return make()

    def _completed(self) -> SegmentCompleted:
        segment, successors = self.segment(), self.successors()
        return SegmentCompleted(
            self.name(), segment, successors, {one: self.range() for one in {segment: None, **successors}}
        )


def any_run(seed: int, steps: int = 40) -> tuple[list[StateUpdate], GroupState | None]:
    """Return random updates and the state after them. Most of the updates are valid.

    The state is None if the last update is not valid.
    """
    rng = random.Random(seed)
    draw = _Any(rng)
    init = draw.init()
    run: list[StateUpdate] = [init]
    try:
        state = create(init)
    except ReaderGroupError:
        return run, None
    while len(run) < steps:
        update = draw.update()
        try:
            state = apply(state, update)
        except ReaderGroupError:
            if rng.random() < 0.004:
                return [*run, update], None
            continue
        run.append(update)
        if rng.random() < 0.05:
            run.append(state)
    return run, state


def any_values(seed: int, count: int) -> list[StateUpdate]:
    """Return values of all kinds and any content. The states come from runs."""
    draw = _Any(random.Random(seed), names=("", "r1", "é", "日本\0", "\ud800", "q" * 300))
    values: list[StateUpdate] = []
    for number in range(count):
        if number % 8 == 0:
            values.append(draw.init())
        elif number % 8 == 1 and (state := any_run(seed + number)[1]) is not None:
            values.append(state)
        else:
            values.append(draw.update())
    return values
