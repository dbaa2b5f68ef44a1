"""Next action of a reader: with segments, checkpoints, other readers, and when others are faster."""

from dataclasses import replace

import pytest

from pravega_connector.errors import ReaderOfflineError, ReaderOnlineError
from pravega_connector.reader_groups.protocol.machine import Now, Phase, Reader, should_compact
from pravega_connector.reader_groups.protocol.state import SILENT, Bound, Ranged, Retention
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
    UpdateDistanceToTail,
    UpdatingConfig,
)
from pravega_connector.wire import StreamCut

from ._group import STREAM, Group, segment

P = Phase


def checkpoint(group, *members, seconds=0.0):
    """All readers take a checkpoint; its name."""
    group.now += seconds
    name = f"asked-{len(group.entries)}"
    group.write(CreateCheckpoint(name))
    for one in members:
        one.turn(3)
        assert (one.phase, one.reader.delivered) == (P.CHECKPOINT, name)
    for one in members:
        one.turn()
    return name


# ---- coming and going ------------------------------------------------------------------------------------------------


def test_a_reader_comes_and_takes_all_there_is():
    group = Group(segments=3)
    one = group.member("r1")
    assert (group.state.assigned, one.phase, one.reading) == ({"r1": {}}, P.READ, {})
    assert one.turn() == [P.FETCH, P.ACQUIRED]
    assert one.reading == {0: 0, 1: 0, 2: 0}
    assert group.kinds() == [["AddReader"], ["AcquireSegment"] * 3 + ["UpdateDistanceToTail"]]
    assert one.turn(0.5) == []


def test_an_id_can_be_online_once():
    group = Group()
    group.member("r1")
    with pytest.raises(ReaderOnlineError, match="has a reader r1 already: choose another id, or take it offline"):
        group.member("r1")
    assert group.kinds() == [["AddReader"]]


def test_a_reader_that_waits_at_first():
    group = Group()
    one = group.member("r1", delay=2.0)
    one.turn(1.9)
    assert one.reading == {}
    one.turn(1.2)
    assert len(one.reading) == 4


def test_a_reader_goes_and_reports_where_it_was():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    one.hand_out(0, 70)
    assert one.leave()[-2:] == [P.FETCH, P.LEAVE]
    assert group.entries[-1] == [RemoveReader("r1", {segment(0): 70, segment(1): 0})]
    assert (one.phase, group.state.assigned) == (P.GONE, {})


def test_a_reader_goes_from_an_earlier_position():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    one.hand_out(0, 70)
    one.leave({segment(0): 40, segment(9): 1})
    assert group.state.unassigned == {segment(0): 40, segment(1): 0}


def test_who_was_taken_offline_writes_nothing_more():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    group.write(RemoveReader("r1"))
    written = len(group.entries)
    with pytest.raises(ReaderOfflineError, match="reader r1 is no longer in its group"):
        one.turn(3)
    one.leave()
    assert len(group.entries) == written
    assert one.phase is P.GONE


def test_who_was_replaced_under_its_own_name_writes_nothing_more():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    group.write(RemoveReader("r1"))
    group.member("r1")
    with pytest.raises(ReaderOfflineError, match="another process has come under its name"):
        one.turn(3)
    one.leave()
    assert "r1" in group.state.assigned


def test_a_reader_that_has_nothing_notices_as_well_who_has_its_name():
    group = Group()
    one = group.member("r1")
    group.write(RemoveReader("r1"))
    group.member("r1").turn(30)
    with pytest.raises(ReaderOfflineError, match="another process has come under its name"):
        one.turn(30)


# ---- sharing ---------------------------------------------------------------------------------------------------------


def test_two_readers_come_to_equal_shares_by_checkpoints():
    group = Group(segments=4)
    one, two = group.members("r1", "r2")
    one.turn()
    assert len(one.reading) == 2
    two.turn()
    assert (one.reading, two.reading) == ({0: 0, 1: 0}, {2: 0, 3: 0})
    three = group.member("r3")
    three.turn()
    assert three.reading == {}
    for _ in range(4):
        checkpoint(group, one, two, three, seconds=5)
        three.turn(3)
    assert sorted(len(m.reading) for m in (one, two, three)) == [1, 1, 2]
    assert sorted(n for m in (one, two, three) for n in m.reading) == [0, 1, 2, 3]


def test_without_a_checkpoint_nothing_is_released():
    group = Group(segments=4)
    one = group.member("r1")
    one.turn()
    two = group.member("r2")
    for _ in range(20):
        one.turn(5)
        two.turn(5)
    assert (len(one.reading), len(two.reading)) == (4, 0)
    assert not group.state.checkpoints.names


def test_a_segment_is_released_where_the_reader_is():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    two = group.member("r2")
    one.hand_out(0, 70)
    one.hand_out(1, 80)
    checkpoint(group, one, two, seconds=5)
    ((released, told),) = [entry for entry in group.entries if isinstance(entry[0], ReleaseSegment)]
    assert told == UpdateDistanceToTail("r1", 1_000_000 - 1, Ranged.of({segment(0): 70, segment(1): 80}))
    number = released.segment.id
    assert released == ReleaseSegment("r1", segment(number), {0: 70, 1: 80}[number])
    two.turn(3)
    assert two.reading == {number: released.offset}


def test_who_is_no_longer_too_busy_releases_nothing():
    """Decided on the state at the end of the log, not on the one before."""
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    group.member("r2")
    group.write(CreateCheckpoint("c"))
    one.turn(3)
    written = len(group.entries)
    one.before_write = []
    real, calls = one._update, []

    def overtaken(request):
        calls.append(one.reader.phase)
        if one.reader.phase is P.RELEASED:
            group.write(RemoveReader("r2"))
        real(request)

    one._update = overtaken
    one.turn(3)
    assert P.RELEASED in calls
    assert ["ReleaseSegment", "UpdateDistanceToTail"] not in group.kinds(written)
    assert one.reading == {0: 0, 1: 0}


def test_a_segment_that_somebody_else_takes_first_is_his():
    group = Group(segments=1)
    one, two = group.members("r1", "r2")
    one.before_write = [two.turn]
    one.turn()
    assert (one.reading, two.reading) == ({}, {0: 0})
    assert one.turn(0.5) == []


def test_the_number_that_says_how_far_a_reader_is_is_javas():
    group = Group(segments=1)
    one = group.member("r1")
    one.turn()
    assert group.entries[-1][-1] == UpdateDistanceToTail("r1", 0, Ranged())
    one.hand_out(0, 30)
    assert one.turn(2.0) == [P.SHARE, P.FETCH_SHARED]
    told = group.entries[-1]
    assert told == [UpdateDistanceToTail("r1", 1_000_000 - segment(0).id, Ranged.of({segment(0): 30}))]
    assert one.turn(1.9) == []
    assert one.turn(0.2) == [P.SHARE, P.FETCH_SHARED]
    assert group.state.last_read == {segment(0): 30}


def test_the_state_is_looked_at_every_few_seconds():
    group = Group(refresh_ms=5000)
    one, two = group.members("r1", "r2")
    one.turn()
    assert P.FETCH not in one.turn(4.9)
    two.turn()
    group.now += 10
    assert one.turn()[0] is P.FETCH
    assert one.reader.due(group.state) <= group.now + 5


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_reported_when_the_caller_comes_again():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    one.hand_out(0, 10)
    group.write(CreateCheckpoint("c"))
    one.turn(3)
    assert (one.phase, one.reader.delivered) == (P.CHECKPOINT, "c")
    assert not group.state.checkpoints.is_complete("c")
    one.turn()
    assert group.state.checkpoints.last == {segment(0): 10, segment(1): 0}
    assert group.state.assigned["r1"] == {segment(0): 10, segment(1): 0}
    assert (one.phase, one.reader.delivered) == (P.READ, None)


def test_a_checkpoint_that_was_given_up_is_not_reported():
    group = Group()
    one = group.member("r1")
    one.turn()
    group.write(CreateCheckpoint("c"))
    one.turn(3)
    group.write(CreateCheckpoint("d"), ClearCheckpointsBefore("d"))
    one.turn(3)
    assert (one.phase, one.reader.delivered) == (P.CHECKPOINT, "d")
    assert "c" not in group.state.checkpoints.positions


def test_several_checkpoints_are_taken_one_after_the_other():
    group = Group()
    one = group.member("r1")
    one.turn()
    group.write(CreateCheckpoint("c"), CreateCheckpoint("d"))
    one.turn(3)
    taken = [one.reader.delivered]
    one.turn()
    taken.append(one.reader.delivered)
    one.turn()
    assert taken == ["c", "d"]
    assert group.state.checkpoints.waiting == {}


def test_silent_checkpoints_are_taken_without_a_word():
    group = Group()
    one = group.member("r1")
    one.turn()
    one.hand_out(3, 5)
    name = f"x{SILENT}"
    group.write(CreateCheckpoint(name))
    assert one.turn(3) == [P.FETCH, P.SILENT, P.SHARE, P.FETCH_SHARED]
    assert one.phase is P.READ
    assert group.state.checkpoints.positions[name][segment(3)] == 5
    assert group.state.checkpoints.last == {}


def test_while_a_checkpoint_waits_nothing_is_acquired():
    group = Group(segments=2)
    one = group.member("r1")
    group.write(CreateCheckpoint("c"))
    one.turn(3)
    assert (one.phase, one.reading) == (P.CHECKPOINT, {})
    one.before_write = [lambda: group.write(CreateCheckpoint("d"))]
    one.turn()
    assert (one.phase, one.reader.delivered, one.reading) == (P.CHECKPOINT, "d", {})
    one.turn()
    assert len(one.reading) == 2


def test_checkpoints_begin_by_themselves():
    group = Group(checkpoint_ms=10_000)
    one, two = group.members("r1", "r2")
    one.turn()
    two.turn()
    assert P.BEGIN in one.turn(1.0)
    assert group.kinds(-1) == [["CreateCheckpoint", "ClearCheckpointsBefore"]]
    assert one.reader.delivered == "checkpoint-0"
    two.turn(3)
    one.turn()
    two.turn()
    assert group.state.checkpoints.outstanding == []
    one.turn(6.9)
    assert (one.phase, group.state.checkpoints.names) == (P.READ, ("checkpoint-0",))
    one.turn(1)
    assert one.phase is P.CHECKPOINT
    assert len(group.state.checkpoints.names) == 1


def test_only_one_of_several_readers_begins_a_checkpoint():
    group = Group(checkpoint_ms=30_000)
    one, two = group.members("r1", "r2")
    one.turn()
    two.turn()
    one.before_write = [lambda: two.turn(0)]
    one.turn(1.5)
    assert two.reader.delivered is not None
    assert one.reader.delivered == two.reader.delivered
    assert list(group.state.checkpoints.positions) == [one.reader.delivered]


def test_the_last_checkpoint_is_reported_where_retention_waits_for_it():
    group = Group(segments=2, retention=Retention.AUTOMATIC)
    one = group.member("r1")
    one.turn()
    one.hand_out(1, 9)
    checkpoint(group, one)
    assert group.published == [{STREAM: StreamCut(STREAM, {0: 0, 1: 9})}]
    assert group.state.checkpoints.published
    checkpoint(group, one)
    assert len(group.published) == 2


def test_nothing_is_reported_where_retention_does_not_wait():
    group = Group(segments=2, retention=Retention.MANUAL)
    one = group.member("r1")
    one.turn()
    checkpoint(group, one)
    assert group.published == []
    assert not group.state.checkpoints.published


# ---- ends of segments ------------------------------------------------------------------------------------------------


def test_successors_are_read_after_all_their_predecessors():
    group = Group(segments=2)
    for number in (0, 1):
        group.seal(number, 2, predecessors=(0, 1))
    one, two = group.members("r1", "r2")
    one.turn()
    two.turn()
    one.hand_out(0, 50)
    one.end(0)
    checkpoint(group, one, two)
    assert (one.reader.done, list(group.state.future)) == ({}, [segment(2, 1)])
    assert group.state.checkpoints.last == {segment(0): -1, segment(1): 0}
    two.end(1)
    checkpoint(group, one, two)
    assert group.state.future == {}
    taken = [member for member in (one, two) if not member.turn(3) or member.reading]
    assert [member.reading for member in taken] == [{2: 0}]


def test_the_end_of_a_segment_waits_for_a_checkpoint():
    group = Group(segments=2)
    group.seal(0, 2)
    one = group.member("r1")
    one.turn()
    one.end(0)
    for _ in range(20):
        one.turn(10)
    assert (one.reader.done, one.reading) == ({segment(0): -1}, {1: 0})
    assert one.reader.position == Ranged.of({segment(0): -1, segment(1): 0})


def test_a_checkpoint_that_begins_in_the_meantime_holds_back_the_end_of_a_segment():
    group = Group(segments=1)
    group.seal(0, 1)
    one = group.member("r1")
    one.turn()
    one.end(0)
    group.write(CreateCheckpoint("c"))
    one.turn(3)
    real = one._successors

    def overtaken(request):
        group.write(CreateCheckpoint("d"))
        return real(request)

    one._successors = overtaken
    one.turn()
    assert (one.reader.delivered, one.reader.done) == ("d", {segment(0): -1})
    one._successors = real
    one.turn()
    assert group.entries[-2] == [
        SegmentCompleted(
            "r1", segment(0), {segment(1, 1): (0,)}, {segment(0): None, **group.successors[segment(0)].ranges}
        )
    ]
    assert one.reading == {1: 0}


def test_a_group_that_ends_inside_a_segment():
    group = Group(segments=2, end={segment(0): 40, segment(1): 60})
    group.seal(0, 5)
    one = group.member("r1")
    one.turn()
    one.hand_out(0, 40)
    one.end(0, sealed=False)
    one.hand_out(1, 60)
    one.end(1, sealed=False)
    checkpoint(group, one)
    assert group.state.checkpoints.last == {segment(0): 40, segment(1): 60}
    assert group.state.is_end_of_data
    one.turn(3)
    assert one.phase is P.END


def test_what_has_ended_is_not_read_again():
    group = Group(segments=3, end={segment(1): 60})
    one = group.member("r1")
    group.state = replace(group.state, unassigned={segment(0): -1, segment(1): 60, segment(2): 7})
    one.turn()
    assert (one.reading, one.reader.done) == ({2: 7}, {segment(0): -1, segment(1): 60})


# ---- another configuration -------------------------------------------------------------------------------------------


def test_a_change_that_was_left_half_done_is_finished():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    group.write(UpdatingConfig(updating=True))
    group.controller = Init(replace(group.config, generation=1), Ranged.of({segment(0): 5}))
    with pytest.raises(ReaderOfflineError):
        one.turn(12)
    assert group.entries[-1] == [group.controller]
    assert (group.state.updating, group.state.config.generation) == (False, 1)


def test_a_change_that_the_controller_does_not_know_of_is_left_alone():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    group.write(UpdatingConfig(updating=True))
    group.controller = Init(group.config, Ranged.of({segment(0): 5}))
    assert P.ASK_CONFIG in one.turn(12)
    assert P.ASK_CONFIG not in one.turn(9.9)
    assert P.ASK_CONFIG in one.turn(0.2)
    assert len(one.reading) == 2


# ---- answers that were lost ------------------------------------------------------------------------------------------


def test_segments_are_owned_although_nobody_said_so():
    group = Group(segments=2)
    one = group.member("r1")
    reader = one.reader.turn(one.seen, one.now).answered(None, one.seen, one.now)
    assert reader.phase is P.ACQUIRED
    group.write(*reader.request(one.now).decide(group.state))
    with pytest.raises(ReaderOfflineError):
        reader.request(one.now).decide(group.state)
    unsure = reader.outcome_unknown()
    assert unsure.request(one.now).decide(group.state) == []
    after = unsure.answered(None, group.state, one.now)
    assert dict(after.reading) == {segment(0): 0, segment(1): 0}
    assert (after.phase, after.unsettled) == (P.READ, False)


def test_a_release_that_took_effect_is_not_repeated():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    group.member("r2")
    reader = replace(one.reader, phase=P.RELEASED, segment=segment(1))
    group.write(*reader.request(one.now).decide(group.state))
    assert reader.outcome_unknown().request(one.now).decide(group.state) == []
    after = reader.outcome_unknown().answered(None, group.state, one.now)
    assert dict(after.reading) == {segment(0): 0}


def test_a_checkpoint_that_began_is_not_begun_again():
    group = Group()
    one = group.member("r1")
    reader = replace(one.reader, phase=P.BEGIN, checkpoint="c")
    group.write(*reader.request(one.now).decide(group.state))
    group.write(CheckpointReader("c", "r1", {}))
    assert reader.request(one.now).decide(group.state) == []


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_truncation_moves_a_reader():
    group = Group(segments=1)
    one = group.member("r1")
    one.turn()
    assert one.reader.truncated(segment(0), 400).position.positions == {segment(0): 400}


@pytest.mark.parametrize(
    ("size", "chance", "later", "yes"),
    [
        (600_000, 0.04, (), True),
        (600_000, 0.05, (), False),
        (512 * 1024, 0.0, (), False),
        (600_000, 0.0, (b"new",), False),
    ],
)
def test_who_compacts(size, chance, later, yes):
    state = replace(Group().state, later=later)
    assert should_compact(state, size, chance) is yes


def test_a_machine_is_a_value():
    one = Reader.join("r1", Now(1.0))
    assert one == Reader.join("r1", Now(1.0))
    state = Group().state
    assert one.request(Now(1.0)).decide(state) == [AddReader("r1")]
    assert one.phase is P.JOIN
    assert AcquireSegment("r1", segment(0)) != AcquireSegment("r2", segment(0))
    assert Bound() == Bound(None, b"")
