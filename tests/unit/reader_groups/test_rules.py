"""Effect of each update on a group's state; the cases follow the rules of Java's clients."""

import uuid
from dataclasses import replace

import pytest

from pravega_connector.errors import GroupStateError
from pravega_connector.reader_groups.protocol.balance import has_too_many, rank, relative_sizes, to_acquire
from pravega_connector.reader_groups.protocol.state import (
    Bound,
    GroupConfig,
    GroupState,
    KeyRange,
    Ranged,
    Segment,
    by_stream,
    ordered_set,
    state_of,
)
from pravega_connector.reader_groups.protocol.updates import (
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    Init,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    SegmentCompleted,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
    apply,
    create,
)
from pravega_connector.wire import StreamCut, StreamName

STREAM, OTHER = StreamName("a", "b"), StreamName("a", "c")
S0, S1 = Segment(STREAM, 0), Segment(STREAM, 1)
NEXT = Segment(STREAM, 1 << 32 | 2)
CONFIG = GroupConfig(start={STREAM: Bound()}, generation=0, id=uuid.UUID(int=1))
START = state_of(CONFIG, Ranged.of({S0: 10, S1: 20}), {})
FAR = 2**63 - 1


def after(state, *updates):
    for update in updates:
        state = apply(state, update)
    return state


def group(*readers, state=START):
    return after(state, *map(AddReader, readers))


def owning(*segments):
    return after(group("r1", "r2"), *(AcquireSegment("r1", segment) for segment in segments))


def test_a_group_begins_with_all_segments_waiting():
    state = create(Init(CONFIG, Ranged.of({S0: 10, S1: 20}), {S0: 15}))
    assert state == replace(START, end={S0: 15})
    assert list(state.unassigned.items()) == [(S0, 10), (S1, 20)]
    assert state.last_read == {S0: 10, S1: 20}
    assert (state.readers, state.segments, state.updating) == (0, 2, False)


def test_a_group_cannot_begin_without_segments():
    """Java's clients could not continue with it."""
    with pytest.raises(GroupStateError, match="cannot begin without segments"):
        create(Init(CONFIG, Ranged()))
    with pytest.raises(GroupStateError, match="cannot begin without segments"):
        apply(START, Init(CONFIG, Ranged(), {S0: 15}))


def test_a_new_beginning_takes_all_readers_out():
    busy = after(owning(S0), CreateCheckpoint("c"), UpdatingConfig(updating=True))
    again = Init(replace(CONFIG, generation=1), Ranged.of({S0: 0}))
    assert after(busy, again) == create(again)


def test_a_compaction_stands_for_the_state():
    state = after(owning(S0), CreateCheckpoint("c"))
    assert create(state) == state == after(START, state)


def test_a_reader_comes():
    state = group("r1")
    assert (state.assigned, state.distances) == ({"r1": {}}, {"r1": FAR})
    with pytest.raises(GroupStateError, match="reader r1 cannot be added: it is online"):
        apply(state, AddReader("r1"))


def test_a_distance_told_before_is_kept():
    assert group("r1", state=apply(START, UpdateDistanceToTail("r1", 40_000))).distances == {"r1": 40_000}


def test_a_segment_changes_hands():
    state = owning(S1)
    assert (state.assigned["r1"], state.unassigned) == ({S1: 20}, {S0: 10})
    state = after(state, ReleaseSegment("r1", S1, 25))
    assert (state.assigned["r1"], list(state.unassigned.items())) == ({}, [(S0, 10), (S1, 25)])
    assert state.last_read == {S0: 10, S1: 25}


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (AcquireSegment("r1", S0), "a/b/0.#epoch.0: it does not wait for a reader"),
        (AcquireSegment("r9", S1), "reader r9 is not online"),
        (ReleaseSegment("r2", S0, 1), "reader r2 cannot release a/b/0.#epoch.0"),
        (SegmentCompleted("r2", S0, {}), "reader r2 cannot complete a/b/0.#epoch.0"),
        (SegmentCompleted("r9", S0, {}), "reader r9 is not online"),
        (CheckpointReader("c", "r9", {}), "checkpoint c does not wait for reader r9"),
        (CheckpointReader("gone", "r9", {}), "reader r9 is not online"),
    ],
)
def test_what_does_not_fit_is_an_error(update, said):
    with pytest.raises(GroupStateError, match=said):
        apply(after(owning(S0), CreateCheckpoint("c")), update)


def test_a_reader_goes_from_where_it_says_or_was_known_to_be():
    state = after(owning(S0, S1), RemoveReader("r1", {S0: 12}))
    assert state.unassigned == {S0: 12, S1: 20}
    assert list(state.assigned) == list(state.distances) == ["r2"]
    assert apply(state, RemoveReader("r1")) == state


def test_a_reader_that_took_a_checkpoint_falls_back_to_it():
    state = after(owning(S0), CreateCheckpoint("c"), CheckpointReader("c", "r1", {S0: 17, S1: 5}))
    assert state.assigned["r1"] == {S0: 17}
    assert apply(state, RemoveReader("r1")).unassigned == {S1: 20, S0: 17}


def test_but_not_to_a_silent_one():
    name = "x_SILENT_"
    state = after(owning(S0), CreateCheckpoint(name), CheckpointReader(name, "r1", {S0: 17}))
    assert state.assigned["r1"] == {S0: 10}
    state = after(state, CheckpointReader(name, "r2", {}))
    assert state.checkpoints.positions[name] == {S0: 17, S1: 20}
    assert (state.checkpoints.last, state.checkpoints.published) == ({}, True)


def test_the_distance_is_at_least_half_a_minute_and_says_where_a_reader_is():
    told = Ranged.of({S0: 30, NEXT: 5})
    state = after(owning(S0), UpdateDistanceToTail("r1", 5, told), UpdateDistanceToTail("gone", 31_000))
    assert state.distances == {"r1": 30_000, "r2": FAR, "gone": 31_000}
    assert state.last_read == {S0: 30, S1: 20}


# ---- ends of segments ------------------------------------------------------------------------------------------------


def test_a_successor_waits_for_all_its_predecessors():
    both = {NEXT: (0, 1)}
    state = after(owning(S0, S1), SegmentCompleted("r1", S0, both, {S0: None, NEXT: KeyRange(0.0, 1.0)}))
    assert (state.future, state.unassigned) == ({NEXT: ordered_set([1])}, {})
    assert state.last_read == {S1: 20}
    state = after(state, SegmentCompleted("r1", S1, both, {S1: None, NEXT: KeyRange(0.0, 1.0)}))
    assert (state.future, state.unassigned, state.last_read) == ({}, {NEXT: 0}, {NEXT: 0})
    assert state.ranges == {NEXT: KeyRange(0.0, 1.0)}


def test_the_id_of_a_completed_segment_counts_in_every_stream():
    """So Java's clients have it."""
    far = Segment(OTHER, 1 << 32 | 7)
    state = replace(owning(S0), future={far: ordered_set([0])})
    assert after(state, SegmentCompleted("r1", S0, {})).unassigned == {S1: 20, far: 0}


def test_a_segment_that_was_let_out_early_keeps_its_range_while_it_waits():
    """Its predecessor's id was completed in another stream, then the predecessor itself."""
    both, keys = {NEXT: (0, 1)}, {S0: None, S1: None, NEXT: KeyRange(0.0, 1.0)}
    other = Segment(OTHER, 1)
    state = after(
        replace(owning(S0, S1), unassigned={other: 0}, last_read={other: 0}),
        AcquireSegment("r1", other),
        SegmentCompleted("r1", S0, both, keys),
        SegmentCompleted("r1", other, {}),
        SegmentCompleted("r1", S1, both, keys),
    )
    assert (state.future, state.unassigned) == ({NEXT: ordered_set([0])}, {NEXT: 0})
    state = after(state, AcquireSegment("r1", NEXT), SegmentCompleted("r1", NEXT, {}, {NEXT: KeyRange(0.0, 1.0)}))
    assert state.future == {NEXT: ordered_set([0])}
    assert state.ranges[NEXT] == KeyRange(0.0, 1.0)


def test_the_end_of_all_data():
    state = owning(S0, S1)
    assert not state.is_end_of_data
    state = after(state, SegmentCompleted("r1", S0, {}), SegmentCompleted("r1", S1, {}))
    assert state.is_end_of_data
    assert not replace(state, future={NEXT: ordered_set([1])}).is_end_of_data


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_complete_when_all_readers_have_taken_it():
    state = after(owning(S0), CreateCheckpoint("c"))
    assert state.checkpoints.positions == {"c": {S1: 20}}
    assert state.checkpoints.waiting == {"c": ordered_set(["r2", "r1"])}
    assert state.checkpoints.outstanding == state.checkpoints.of("r2") == ["c"]
    state = after(state, AddReader("r3"), CheckpointReader("c", "r1", {S0: 15}))
    assert not state.checkpoints.is_complete("c")
    state = after(state, CheckpointReader("c", "r2", {}))
    assert state.checkpoints.is_complete("c")
    assert state.checkpoints.last == {S0: 15, S1: 20}
    assert (state.checkpoints.published, state.checkpoints.outstanding) == (False, [])
    assert after(state, UpdateCheckpointPublished(True)).checkpoints.published
    assert after(state, CheckpointReader("c", "r1", {S0: 16})).checkpoints == state.checkpoints


def test_a_reader_that_goes_has_taken_all_checkpoints():
    state = after(owning(S0), CreateCheckpoint("c"), CreateCheckpoint("d"), CheckpointReader("c", "r2", {}))
    state = after(state, RemoveReader("r1", {S0: 13}))
    assert state.checkpoints.positions == {"c": {S1: 20, S0: 13}, "d": {S1: 20, S0: 13}}
    assert state.checkpoints.waiting == {"d": ordered_set(["r2"])}
    assert state.checkpoints.last == {S0: 13, S1: 20}


@pytest.mark.parametrize("names", [("c", "p"), ("p", "c")])
def test_of_checkpoints_that_wait_for_one_reader_the_last_is_javas(names):
    """In Java's table "p" comes before "c", whichever was begun first."""
    state = group("r1", "r2")
    state = after(state, CreateCheckpoint(names[0]), AcquireSegment("r1", S0), CreateCheckpoint(names[1]))
    state = after(state, *(CheckpointReader(name, "r2", {}) for name in names))
    assert state.checkpoints.of("r1") == ["p", "c"]
    state = after(state, RemoveReader("r1", {S0: 13}))
    assert state.checkpoints.last is state.checkpoints.positions["c"]
    many = after(group("r1"), *(CreateCheckpoint(f"c{number}") for number in range(20)))
    assert sorted(many.checkpoints.of("r1")) == sorted(f"c{number}" for number in range(20))


def test_without_readers_a_checkpoint_is_complete_at_once_and_not_the_last():
    state = after(START, CreateCheckpoint("c"))
    assert state.checkpoints.is_complete("c")
    assert (state.checkpoints.positions["c"], state.checkpoints.last) == ({S0: 10, S1: 20}, {})


def test_a_checkpoint_is_begun_once():
    state = after(group("r1"), CreateCheckpoint("c"), AcquireSegment("r1", S0))
    assert after(state, CreateCheckpoint("c")) == state


def test_earlier_checkpoints_are_given_up():
    state = after(group("r1"), *map(CreateCheckpoint, "abc"), ClearCheckpointsBefore("b"))
    assert state.checkpoints.names == ("b", "c")
    assert list(state.checkpoints.waiting) == list(state.checkpoints.positions) == ["b", "c"]
    assert after(state, ClearCheckpointsBefore("a")) == state
    assert after(state, CheckpointReader("a", "r1", {S0: 9})).checkpoints == state.checkpoints


def test_checkpoints_under_way_are_given_up_but_for_silent_ones():
    state = after(group("r1"), *map(CreateCheckpoint, ("a", "b_SILENT_")), RemoveOutstandingCheckpoints())
    assert state.checkpoints.names == ("a", "b_SILENT_")
    assert list(state.checkpoints.waiting) == list(state.checkpoints.positions) == ["b_SILENT_"]
    assert after(state, CreateCheckpoint("a")).checkpoints.names == ("a", "b_SILENT_", "a")


# ---- shares ----------------------------------------------------------------------------------------------------------


def many(count):
    return state_of(CONFIG, Ranged.of({Segment(STREAM, number): 0 for number in range(count)}), {})


@pytest.mark.parametrize(
    ("segments", "readers", "owned", "count"),
    [
        (1, 3, 0, 1),
        (6, 3, 0, 2),
        (7, 2, 0, 4),  # Java rounds a half up
        (5, 2, 0, 3),
        (6, 2, 3, 1),
        (6, 2, 4, 1),
        (9, 3, 1, 2),
        (0, 2, 0, 0),
    ],
)
def test_how_many_segments_a_reader_takes(segments, readers, owned, count):
    state = group(*(f"r{number}" for number in range(readers)), state=many(segments))
    state = after(state, *(AcquireSegment("r0", Segment(STREAM, number)) for number in range(owned)))
    assert to_acquire(state, "r0") == [Segment(STREAM, owned + number) for number in range(count)]


def shares(*counts, distances=()):
    state, number = group(*(f"r{at}" for at in range(len(counts))), state=many(sum(counts))), 0
    for reader, count in enumerate(counts):
        for _ in range(count):
            state = after(state, AcquireSegment(f"r{reader}", Segment(STREAM, number)))
            number += 1
        state = after(state, UpdateDistanceToTail(f"r{reader}", dict(enumerate(distances)).get(reader, 0)))
    return state


def test_the_busiest_comes_first():
    state = shares(1, 3, 0)
    assert relative_sizes(state) == {"r0": 1.0, "r1": 3.0, "r2": 0.0}
    assert [rank(state, reader) for reader in ("r1", "r0", "r2", "r9")] == [0, 1, 2, -1]
    assert relative_sizes(shares(2, 2, distances=(60_000, 30_000))) == {"r0": 2.0, "r1": 1.0}


@pytest.mark.parametrize(
    ("counts", "too_many"),
    [((1, 0), False), ((2, 0), True), ((2, 1), False), ((3, 1), True), ((3, 2, 1), True), ((2, 2), False)],
)
def test_who_has_too_many(counts, too_many):
    state = shares(*counts)
    assert has_too_many(state, "r0") is too_many
    assert not has_too_many(state, f"r{len(counts) - 1}")
    assert not has_too_many(replace(state, unassigned={NEXT: 0, S0: 0}), "r0")
    assert not has_too_many(state, "r9")


def test_positions_of_a_group():
    state = owning(S0)
    assert state.positions == {S0: 10, S1: 20}
    far = Segment(OTHER, 3)
    assert by_stream({**state.positions, far: 4}) == {
        STREAM: StreamCut(STREAM, {0: 10, 1: 20}),
        OTHER: StreamCut(OTHER, {3: 4}),
    }
    assert state.last_read_of(STREAM) == Ranged.of({S0: 10, S1: 20})
    assert state.last_read_of(OTHER) == Ranged()


def test_a_state_says_nothing_of_its_order():
    assert replace(START, unassigned={S1: 20, S0: 10}) == START
    assert isinstance(START, GroupState)
    settings = replace(CONFIG, generation=9, id=uuid.UUID(int=3)).settings
    assert settings == CONFIG.settings != replace(CONFIG, refresh_ms=1).settings
    unbounded = dict.fromkeys(CONFIG.start, Bound())
    assert replace(CONFIG, end=unbounded).settings == replace(CONFIG, end={}).settings
