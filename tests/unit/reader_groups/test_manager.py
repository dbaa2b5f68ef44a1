"""Changes of a group from outside: readers taken offline, checkpoints asked for, another beginning."""

import uuid
from dataclasses import replace

import pytest

from pravega_connector.errors import ConfigError, ReaderGroupError
from pravega_connector.reader_groups.protocol import administration
from pravega_connector.reader_groups.protocol.state import Bound, GroupConfig, Ranged, Retention, Segment, by_stream
from pravega_connector.reader_groups.protocol.updates import CheckpointReader, Init, RemoveReader, UpdatingConfig
from pravega_connector.wire import StreamCut, StreamName

from ._group import STREAM, Group, segment


def write(group, updates):
    group.write(*updates)
    return updates


def test_a_dead_reader_is_taken_offline_once():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    removed = write(group, administration.take_offline(group.state, "r1", {segment(0): 9}))
    assert removed == [RemoveReader("r1", {segment(0): 9})]
    assert group.state.unassigned == {segment(0): 9, segment(1): 0}
    assert administration.take_offline(group.state, "r1") == []


def test_a_checkpoint_is_asked_for_and_taken():
    group = Group(segments=1)
    one = group.member("r1")
    one.turn()
    write(group, administration.begin_checkpoint(group.state, "c"))
    assert administration.begin_checkpoint(group.state, "c") == []
    assert administration.checkpoint_positions(group.state, "c") is None
    one.hand_out(0, 12)
    one.turn(3)
    one.turn()
    assert administration.checkpoint_positions(group.state, "c") == {segment(0): 12}
    assert administration.last_cuts(group.state) == by_stream({segment(0): 12})
    assert administration.unread_since(group.state) == {segment(0): 12}
    write(group, administration.begin_checkpoint(group.state, "d"))
    write(group, administration.clear_before("d"))
    with pytest.raises(ReaderGroupError, match="checkpoint c was given up"):
        administration.checkpoint_positions(group.state, "c")


def test_only_this_many_checkpoints_may_be_under_way():
    group = Group(max_outstanding=2)
    group.member("r1")
    for name in ("a", administration.silent_name(bytes(32)), "b"):
        write(group, administration.begin_checkpoint(group.state, name))
    with pytest.raises(ReaderGroupError, match=r"checkpoint c cannot begin: 2 are under way \(a, b\).* allows 2"):
        administration.begin_checkpoint(group.state, "c")
    group.write(CheckpointReader("a", "r1", {}))
    assert administration.begin_checkpoint(group.state, "c")


def test_a_silent_checkpoint_has_javas_name():
    assert administration.silent_name(bytes(3)) == "AAAA_SILENT_"


def test_before_a_checkpoint_all_that_was_acquired_is_unread():
    group = Group(segments=2)
    assert administration.unread_since(group.state) == {segment(0): 0, segment(1): 0}


def test_another_beginning():
    group = Group(segments=2)
    seen = group.state.config
    assert write(group, administration.announce_change(group.state, seen)) == [UpdatingConfig(updating=True)]
    assert administration.announce_change(group.state, seen) == []
    assert (
        administration.announce_change(replace(group.state, updating=False), replace(seen, id=uuid.UUID(int=5))) == []
    )
    renewed = replace(seen, generation=1)
    init = Init(renewed, Ranged.of({segment(1): 3}), {segment(1): 8})
    assert write(group, administration.reset(group.state, renewed, init.start, init.end)) == [init]
    assert (group.state.unassigned, group.state.end, group.state.updating) == ({segment(1): 3}, {segment(1): 8}, False)
    assert administration.reset(group.state, renewed, init.start, init.end) == []


OTHER, NEW = StreamName("a", "c"), StreamName("a", "d")
READING = GroupConfig(
    start={STREAM: Bound(StreamCut(STREAM, {0: 1})), OTHER: Bound()},
    end={STREAM: Bound(), OTHER: Bound(StreamCut(OTHER, {0: 90}))},
    generation=4,
    id=uuid.UUID(int=7),
)


def cuts(offset, *streams):
    return {stream: StreamCut(stream, {0: offset}) for stream in streams}


def bounds(given):
    return {stream: Bound(cut) for stream, cut in given.items()}


def test_a_group_begins_at_what_is_given_then_at_its_last_checkpoint_then_where_it_was_told_to():
    assert administration.changed_config(READING, at={}, last={}).settings == READING.settings
    changed = administration.changed_config(READING, at=cuts(5, STREAM), last=cuts(3, STREAM, OTHER))
    assert changed == replace(READING, start=bounds(cuts(5, STREAM) | cuts(3, OTHER)))
    assert administration.changed_config(READING, at=cuts(5, OTHER), last={}).start == READING.start | bounds(
        cuts(5, OTHER)
    )


def test_a_group_is_given_other_streams():
    """One comes, at its head or a cut, and one goes, with its end; the generation is the controller's to change."""
    for at, begin in ({}, Bound()), (cuts(8, NEW), Bound(StreamCut(NEW, {0: 8}))):
        changed = administration.changed_config(READING, streams=[NEW, STREAM], at=at, last=cuts(3, STREAM, OTHER))
        assert list(changed.start.items()) == [(NEW, begin), (STREAM, Bound(StreamCut(STREAM, {0: 3})))]
        assert changed.end == {NEW: Bound(), STREAM: Bound()}
        assert (changed.generation, changed.id) == (4, READING.id)
    changed = administration.changed_config(READING, streams=[OTHER, NEW], at={}, last={})
    assert (changed.start, changed.end) == ({OTHER: Bound(), NEW: Bound()}, {NEW: Bound(), OTHER: READING.end[OTHER]})


def test_a_group_is_given_other_settings():
    changed = administration.changed_config(READING, at={}, last={}, refresh_ms=5, retention=Retention.MANUAL)
    assert changed == replace(READING, refresh_ms=5, retention=Retention.MANUAL)
    assert administration.changed_config(READING, at={}, last={}, end={}).end == {}
    ends = bounds(cuts(9, STREAM))
    assert administration.changed_config(READING, at={}, last={}, end=ends).end == ends


def test_a_configuration_that_java_does_not_take_is_refused():
    for wrong in (
        {"at": cuts(91, OTHER)},
        {"end": bounds(cuts(0, STREAM))},
        {"end": bounds(cuts(9, NEW))},
        {"streams": []},
        {"max_outstanding": 0},
    ):
        with pytest.raises(ConfigError, match=r"a reader group (ends|reads|allows)"):
            administration.changed_config(READING, **({"at": {}, "last": {}} | wrong))


def test_a_checkpoint_between_the_ends_of_two_that_are_merged_can_be_a_beginning():
    """It has only the second: the first was completed before it."""
    merged = segment(2, 1)
    at = {segment(1): 7}
    assert administration.missing_from(at, {merged: (0, 1)}) == {segment(0): -1}
    assert administration.missing_from({segment(0): -1, **at}, {merged: (0, 1)}) == {}
    assert administration.missing_from({merged: 0}, {merged: (0, 1)}) == {}
    assert administration.missing_from(at, {segment(3, 1): (1,), Segment(STREAM, 9): (8,)}) == {}
