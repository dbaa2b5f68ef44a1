"""Lives of a group in which readers of both languages come, go and die while its stream is scaled."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from connector.client import PravegaClient
from connector.client.group_member import GroupMember
from connector.errors import ReaderOfflineError
from connector.groups import Segment, encode_position
from connector.local import LocalPravega
from connector.wire import StreamName
from tests.interop._java_readers import JavaEvent, JavaReaders

STEPS = 150
EVENT = 20
"""Bytes of an event with its header: our members read whole events without a look at them."""


@dataclass
class Life:
    """A group over one stream, with two readers in a JVM, and two or three of ours."""

    client: PravegaClient
    java: JavaReaders
    stream: StreamName
    random: random.Random
    lengths: dict[Segment, int] = field(default_factory=dict)
    sealed: set[Segment] = field(default_factory=set)
    before: dict[Segment, set[Segment]] = field(default_factory=dict)
    """Predecessors of what followed others."""
    members: dict[str, GroupMember] = field(default_factory=dict)
    javas: set[str] = field(default_factory=set)
    delivered: list[tuple[str, Segment, int, int]] = field(default_factory=list)
    """Who was given what, from where to where, in the order of time."""
    died: int = 0
    begun: int = 0

    def measure(self) -> None:
        tail = self.client.tail(self.stream).positions
        self.lengths |= {Segment(self.stream, number): offset for number, offset in tail.items()}

    # ---- what happens

    def write(self) -> None:
        with self.client.writer(self.stream) as writer:
            for _ in range(self.random.randrange(30)):
                writer.write(b"." * (EVENT - 8), str(self.random.random()))
        self.measure()

    def scale(self) -> None:
        old = {segment for segment in self.lengths if segment not in self.sealed}
        self.client.scale_stream(self.stream, self.random.choice([n for n in (1, 2, 3, 4) if n != len(old)]))
        self.measure()
        new = self.lengths.keys() - old - self.sealed
        self.sealed |= {s for s in old if s.id not in self.client.tail(self.stream).positions}
        for segment in old & self.sealed:
            for one in self.client.controller.successors(self.stream, segment.id):
                assert Segment(self.stream, one.range.id) in new
                self.before.setdefault(Segment(self.stream, one.range.id), set()).add(segment)

    def come(self) -> None:
        for name in ("python-1", "python-2", "python-3"):
            if name not in self.members:
                self.members[name] = GroupMember(self.client.stores, self.java.scope, self.java.group, name)
                return

    def die(self) -> None:
        if self.members:
            name, member = self.members.popitem()
            member.close()
            position = self.random.choice([None, encode_position(member.position)])
            self.died += position is None
            self.java.offline(name, position)

    def leave(self) -> None:
        if len(self.members) > 1:
            _, member = self.members.popitem()
            member.leave()
            member.close()

    def java_comes_or_goes(self) -> None:
        name = self.random.choice(["java-1", "java-2"])
        if name not in self.javas:
            self.java.open(name)
            self.javas.add(name)
        elif len(self.javas) > 1:
            self.java.leave(name)
            self.javas.remove(name)

    def begin(self) -> None:
        # Nobody waits for it: the automatic ones are begun so often that it may be given up.
        self.begun += 1
        self.java.begin(self.random.choice([None, f"checkpoint-{self.begun}"]))

    def read(self) -> None:
        for name, member in self.members.items():
            member.turn()
            for segment, offset in dict(member.reading).items():
                end = min(self.lengths[segment], offset + EVENT * self.random.randrange(1, 20))
                if offset < end:
                    member.handed_out(segment, end)
                    self.delivered.append((name, segment, offset, end))
                elif segment in self.sealed:
                    member.ended(segment)
        for name in sorted(self.javas):
            items, _ = self.java.read(name, 20, 0.02)
            events = [item for item in items if isinstance(item, JavaEvent)]
            self.delivered += [(name, event.segment, event.offset, event.offset + EVENT) for event in events]

    def close(self) -> None:
        for member in self.members.values():
            member.close()

    # ---- what must hold

    def missing(self) -> dict[Segment, int]:
        reached = dict.fromkeys(self.lengths, 0)
        for _, segment, begin, end in self.delivered:
            if begin <= reached[segment]:
                reached[segment] = max(end, reached[segment])
        return {segment: at for segment, at in reached.items() if at != self.lengths[segment]}

    def check(self) -> None:
        reached = dict.fromkeys(self.lengths, 0)
        repeated = 0
        for who, segment, begin, end in self.delivered:
            assert begin <= reached[segment], f"{who} begins {segment} at {begin}, and {reached[segment]} was read"
            for earlier in self.before.get(segment, ()):
                assert reached[earlier] == self.lengths[earlier], f"{who} reads {segment} before the end of {earlier}"
            repeated += min(end, reached[segment]) - begin
            reached[segment] = max(end, reached[segment])
        assert self.died or not repeated, "nothing is read again unless a reader died without a word"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_out_of_order(
    client: PravegaClient, pravega: LocalPravega, stream_name: StreamName, seed: int
) -> None:
    client.create_stream(stream_name)
    client.scale_stream(stream_name, 3)  # of a stream made with 3 there would always be as many
    start = client.tail(stream_name)
    with JavaReaders(pravega.config.controller, stream_name.scope, "group") as java, ExitStack() as closing:
        java.create({stream_name: (start, None)}, checkpoint_ms=300, refresh_ms=100)
        life = Life(client, java, stream_name, random.Random(seed))
        closing.callback(life.close)
        life.write()
        life.java_comes_or_goes()
        life.come()
        rare = [life.write, life.come, life.die, life.leave, life.java_comes_or_goes, life.begin]
        for step in range(STEPS):
            life.read()
            if step % 4 == 0:
                life.random.choices(rare, [4, 3, 1, 1, 1, 3])[0]()
            if step % 40 == 20:
                life.scale()
        deadline = time.monotonic() + 90
        while missing := life.missing():
            assert time.monotonic() < deadline, f"never read: {missing}\n{java.look()}"
            life.read()
        life.check()
        assert len(life.sealed) >= 4
        assert {who.partition("-")[0] for who, *_ in life.delivered} == {"java", "python"}
        for member in life.members.values():
            member.leave()
        assert set(java.look().readers) == life.javas


def test_our_members_are_told_that_java_took_them_offline(
    client: PravegaClient, pravega: LocalPravega, stream_name: StreamName, eventually
) -> None:
    client.create_stream(stream_name)
    with JavaReaders(pravega.config.controller, stream_name.scope, "group") as java:
        java.create([stream_name], checkpoint_ms=300, refresh_ms=100)
        member = GroupMember(client.stores, java.scope, java.group, "python")
        java.offline("python")
        with pytest.raises(ReaderOfflineError):
            eventually(member.turn)
        member.close()
