"""What is done to a group from outside: readers taken offline, checkpoints asked for, another beginning."""

import uuid
from dataclasses import replace

import pytest

from connector.errors import ReaderGroupError
from connector.groups import manager
from connector.groups.state import Ranged, Segment, by_stream
from connector.groups.updates import CheckpointReader, Init, RemoveReader, UpdatingConfig

from ._group import STREAM, Group, segment


def write(group, updates):
    group.write(*updates)
    return updates


def test_a_dead_reader_is_taken_offline_once():
    group = Group(segments=2)
    one = group.member("r1")
    one.turn()
    removed = write(group, manager.take_offline(group.state, "r1", {segment(0): 9}))
    assert removed == [RemoveReader("r1", {segment(0): 9})]
    assert group.state.unassigned == {segment(0): 9, segment(1): 0}
    assert manager.take_offline(group.state, "r1") == []


def test_a_checkpoint_is_asked_for_and_taken():
    group = Group(segments=1)
    one = group.member("r1")
    one.turn()
    write(group, manager.begin_checkpoint(group.state, "c"))
    assert manager.begin_checkpoint(group.state, "c") == []
    assert manager.checkpoint_positions(group.state, "c") is None
    one.hand_out(0, 12)
    one.turn(3)
    one.turn()
    assert manager.checkpoint_positions(group.state, "c") == {segment(0): 12}
    assert manager.last_cuts(group.state) == by_stream({segment(0): 12})
    assert manager.unread_since(group.state) == {segment(0): 12}
    write(group, manager.begin_checkpoint(group.state, "d"))
    write(group, manager.clear_before("d"))
    with pytest.raises(ReaderGroupError, match="checkpoint c was given up"):
        manager.checkpoint_positions(group.state, "c")


def test_only_so_many_checkpoints_may_be_under_way():
    group = Group(max_outstanding=2)
    group.member("r1")
    for name in ("a", manager.silent_name(bytes(32)), "b"):
        write(group, manager.begin_checkpoint(group.state, name))
    with pytest.raises(ReaderGroupError, match=r"checkpoint c cannot begin: 2 are under way \(a, b\).* allows 2"):
        manager.begin_checkpoint(group.state, "c")
    group.write(CheckpointReader("a", "r1", {}))
    assert manager.begin_checkpoint(group.state, "c")


def test_a_silent_checkpoint_has_javas_name():
    assert manager.silent_name(bytes(3)) == "AAAA_SILENT_"


def test_before_a_checkpoint_all_that_was_acquired_is_unread():
    group = Group(segments=2)
    assert manager.unread_since(group.state) == {segment(0): 0, segment(1): 0}


def test_another_beginning():
    group = Group(segments=2)
    seen = group.state.config
    assert write(group, manager.announce_change(group.state, seen)) == [UpdatingConfig(updating=True)]
    assert manager.announce_change(group.state, seen) == []
    assert manager.announce_change(replace(group.state, updating=False), replace(seen, id=uuid.UUID(int=5))) == []
    renewed = replace(seen, generation=1)
    init = Init(renewed, Ranged.of({segment(1): 3}), {segment(1): 8})
    assert write(group, manager.reset(group.state, renewed, init.start, init.end)) == [init]
    assert (group.state.unassigned, group.state.end, group.state.updating) == ({segment(1): 3}, {segment(1): 8}, False)
    assert manager.reset(group.state, renewed, init.start, init.end) == []


def test_a_checkpoint_between_the_ends_of_two_that_are_merged_can_be_a_beginning():
    """It has only the second: the first was completed before it."""
    merged = segment(2, 1)
    at = {segment(1): 7}
    assert manager.missing_from(at, {merged: (0, 1)}) == {segment(0): -1}
    assert manager.missing_from({segment(0): -1, **at}, {merged: (0, 1)}) == {}
    assert manager.missing_from({merged: 0}, {merged: (0, 1)}) == {}
    assert manager.missing_from(at, {segment(3, 1): (1,), Segment(STREAM, 9): (8,)}) == {}
