"""Readers of a group over a state synchronizer: what the others see, lost answers, compactions."""

from collections.abc import Iterator
from typing import Any

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.core.values import Successor
from pravega_connector.errors import ConfigError, OutcomeUnknownError, ReaderOfflineError, ReaderOnlineError
from pravega_connector.reader_groups.member import GroupMember, init_of
from pravega_connector.reader_groups.protocol import (
    Bound,
    CreateCheckpoint,
    GroupConfig,
    GroupState,
    Init,
    InitSerializer,
    Ranged,
    RemoveReader,
    Segment,
    StateSerializer,
    apply,
    create,
)
from pravega_connector.reader_groups.protocol.machine import Now
from pravega_connector.wire import ConditionalAppend, SegmentRange, StreamCut, StreamName
from pravega_serde.errors import DeserializationError
from tests.support.fake_stream import FakeSegmentStore, FakeStream

DATA = StreamName("scope", "data")
S0, S1, S2 = Segment(DATA, 0), Segment(DATA, 1), Segment(DATA, 1 << 32 | 2)
CONFIG = GroupConfig(start={DATA: Bound()}, generation=0, checkpoint_ms=-1)


class Controller(FakeStream):
    """The controller of the state's stream. It knows the successors of the data's segments."""

    def successors(self, stream: StreamName, segment_id: int, **options: Any) -> list[Successor]:
        assert stream == DATA
        return [Successor(SegmentRange(S2.id, 0.0, 0.5), (0,))] if segment_id == 0 else []

    def head_cut(self, stream: StreamName, **options: Any) -> StreamCut:
        return StreamCut(stream, {0: 10, 1: 20})


class World:
    """A group with a state, and a clock that the test moves."""

    def __init__(self, client: PravegaClient, store: FakeSegmentStore) -> None:
        self.client, self.store, self.seconds, self.chance = client, store, 100.0, 0.9
        self.log = client.synchronizer(
            "scope/_RGgroup",
            create=create,
            apply=apply,
            init_serializer=InitSerializer(),
            update_serializer=StateSerializer(),
        )
        self.members: list[GroupMember] = []

    @property
    def state(self) -> GroupState:
        self.log.fetch_updates()
        assert self.log.state is not None
        return self.log.state

    def member(self, name: str) -> GroupMember:
        now = lambda: Now(self.seconds, 5_000)
        made = GroupMember(self.client.stores, "scope", "group", name, clock=now, chance=lambda: self.chance)
        self.members.append(made)
        return made

    def write(self, *updates: Any) -> None:
        self.log.update_state_unconditionally(updates)

    def later(self, *members: GroupMember) -> None:
        self.seconds += 4
        for member in members:
            member.turn()


@pytest.fixture
def world() -> Iterator[World]:
    with FakeSegmentStore() as store:
        controller = Controller(store, name=StreamName("scope", "_RGgroup"))
        with controller.client(timeout=1.0) as client:
            world = World(client, store)
            yield world
            for member in world.members:
                member.close()
            world.log.close()


@pytest.fixture
def begun(world: World) -> World:
    assert world.log.initialize(init_of(world.client.controller, CONFIG))
    return world


def test_a_group_begins_where_its_streams_do(begun: World) -> None:
    assert begun.state.unassigned == {S0: 10, S1: 20}
    bounded = GroupConfig(
        start={DATA: Bound(StreamCut(DATA, {0: 11, 1: 22}))}, end={DATA: Bound(StreamCut(DATA, {0: 30, 1: -1}))}
    )
    init = init_of(begun.client.controller, bounded)
    assert init == Init(bounded, Ranged.of({S0: 11, S1: 22}), {S0: 30, S1: 2**63 - 1})


def test_a_group_without_a_state_cannot_be_joined(world: World) -> None:
    with pytest.raises(ConfigError, match="has no state yet"):
        world.member("r1")


def test_readers_share_segments_and_pass_them_on(begun: World) -> None:
    one = begun.member("r1")
    one.turn()
    assert one.reading == {S0: 10, S1: 20}
    two = begun.member("r2")
    with pytest.raises(ReaderOnlineError):
        begun.member("r1")
    one.delivered_up_to(S0, 15)
    one.delivered_up_to(S1, 25)
    begun.write(CreateCheckpoint("c"))
    begun.later(one, two)
    assert (one.checkpoint, two.checkpoint) == ("c", "c")
    begun.later(one, two)
    begun.later(one, two)
    assert begun.state.checkpoints.last == {S0: 15, S1: 25}
    assert sorted({**one.reading, **two.reading}.items()) == [(S0, 15), (S1, 25)]
    assert len(one.reading) == len(two.reading) == 1
    assert begun.state.assigned["r1"].keys() == one.reading.keys()


def test_what_follows_a_segment_is_asked_of_the_controller(begun: World) -> None:
    one = begun.member("r1")
    one.turn()
    one.ended(S0)
    begun.write(CreateCheckpoint("c"))
    begun.later(one)
    begun.later(one)
    begun.later(one)
    assert one.reading == {S1: 20, S2: 0}
    assert one.position.ranges[S2] == (0.0, 0.5)


def test_leaving_a_block_leaves_the_group(begun: World) -> None:
    with begun.member("r1") as one:
        one.turn()
        one.delivered_up_to(S0, 17)
    assert (begun.state.assigned, begun.state.unassigned) == ({}, {S0: 17, S1: 20})


def test_a_reader_that_was_taken_offline_writes_nothing_more(begun: World) -> None:
    one = begun.member("r1")
    one.turn()
    begun.write(RemoveReader("r1"))
    again = begun.member("r1")

    def read_on() -> None:
        with one:
            begun.later(one)

    with pytest.raises(ReaderOfflineError, match="another process has come under its name"):
        read_on()
    assert "r1" in begun.state.assigned
    assert again.reading == {}


@pytest.mark.parametrize("arrives", [True, False])
def test_segments_whose_acquisition_nobody_confirmed_are_owned(
    begun: World, arrives: bool, caplog: pytest.LogCaptureFixture
) -> None:
    one = begun.member("r1")

    def keep_silent(session: Any, request: Any) -> None:
        if arrives:
            session.reply = lambda message: None
            begun.store.serve(session, request)
        session.deaf = True

    begun.store.on(ConditionalAppend, keep_silent)
    with caplog.at_level("INFO", "pravega_connector.reader_groups.member"):
        one.turn()
    assert one.reading == {S0: 10, S1: 20} == begun.state.assigned["r1"]
    assert "reader r1 of group scope/group: [PRAVEGA-OUTCOME-UNKNOWN]" in caplog.text


def test_who_may_have_come_is_told_so(begun: World) -> None:
    def lose(session: Any, request: Any) -> None:
        session.deaf = True

    begun.store.on(ConditionalAppend, lose)
    with pytest.raises(OutcomeUnknownError):
        begun.member("r1")


def test_a_long_log_is_compacted_now_and_then(begun: World) -> None:
    one = begun.member("r1")
    for number in range(6):
        begun.write(CreateCheckpoint(f"{number}_SILENT_" + "x" * 60_000), CreateCheckpoint("y" * 60_000))
    before = begun.state
    begun.chance = 0.01
    begun.seconds += 4
    one._fetch()
    assert begun.log.bytes_since_compaction() < 100
    assert begun.state == before


def test_an_entry_that_begins_no_state_is_refused() -> None:
    with pytest.raises(DeserializationError, match="RemoveReader begins no state"):
        InitSerializer().deserialize(StateSerializer().serialize(RemoveReader("r1")))
