"""Readers of both languages in one group, whose state is written by either."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks._drive import PeerError
from pravega_connector.client import PravegaClient
from pravega_connector.errors import ReaderOfflineError
from pravega_connector.local import LocalPravega
from pravega_connector.reader_groups.member import GroupMember
from pravega_connector.reader_groups.protocol import (
    Retention,
    Segment,
    decode_checkpoint,
    decode_position,
    encode_position,
)
from pravega_connector.wire import StreamName
from tests.interop._java_readers import JavaEvent, JavaReaders, JavaTaken

EVENTS = 40
SILENCE = 1.0
"""Seconds without an event after which a Java reader has read all."""


@pytest.fixture
def java(pravega: LocalPravega, scope: str) -> Iterator[JavaReaders]:
    with JavaReaders(pravega.config.controller, scope, "group") as java:
        yield java


def write(client: PravegaClient, stream: StreamName, first: int) -> None:
    with client.writer(stream) as writer:
        for number in range(first, first + EVENTS):
            writer.write(b"event %d" % number, str(number))


def read_all(java: JavaReaders, reader: str) -> tuple[list[JavaEvent | JavaTaken], bytes]:
    """Events of a reader until a checkpoint or a pause, and its position."""
    return java.read(reader, 10 * EVENTS, SILENCE)


def test_a_group_that_java_makes(client, java, stream_name, eventually):
    client.create_stream(stream_name, 4)
    write(client, stream_name, 0)
    tail = {Segment(stream_name, number): offset for number, offset in client.tail(stream_name).positions.items()}
    assert java.create([stream_name], checkpoint_ms=-1, refresh_ms=100)

    # Both exist before any has acquired a segment.
    java.open("java")
    member = GroupMember(client.stores, java.scope, java.group, "python")
    member.turn()
    assert len(member.reading) == 2
    events, position = read_all(java, "java")
    theirs = {event.segment for event in events if isinstance(event, JavaEvent)}
    assert theirs == tail.keys() - member.reading.keys()
    assert decode_position(position).positions == {segment: tail[segment] for segment in theirs}
    found = java.look()
    assert (found.readers, found.segments, found.unassigned) == (["java", "python"], {"java": 2, "python": 2}, 0)

    # A checkpoint that Java asks for waits for both.
    for segment in member.reading:
        member.delivered_up_to(segment, tail[segment])
    java.begin("first")

    def delivered_up_to() -> bool:
        member.turn()
        return member.checkpoint == "first"

    eventually(delivered_up_to)
    member.turn()
    assert java.completed("first", SILENCE) is None
    eventually(lambda: read_all(java, "java")[0] == [JavaTaken("first")])
    read_all(java, "java")
    completed = java.completed("first", 10)
    assert completed is not None
    cuts, data = completed
    assert cuts == {stream_name: client.tail(stream_name)}
    assert decode_checkpoint(data) == ("first", cuts)
    assert java.unread() == 0

    # The Python reader dies; Java takes it offline, from a position that Python has written, and gets what it had.
    write(client, stream_name, EVENTS)
    member.close()
    java.offline("python", encode_position(member.position))
    rest: list[JavaEvent | JavaTaken] = []

    def all_read() -> bool:
        rest.extend(read_all(java, "java")[0])
        return len(rest) >= EVENTS

    eventually(all_read)
    assert sorted(one.payload for one in rest if isinstance(one, JavaEvent)) == sorted(
        b"event %d" % number for number in range(EVENTS, 2 * EVENTS)
    )
    assert java.look().segments == {"java": 4}

    # It comes again, and Java starts again with all that was written; then it finds itself outside.
    again = GroupMember(client.stores, java.scope, java.group, "python")
    java.reset([stream_name], checkpoint_ms=-1, refresh_ms=100)
    found = java.look()
    assert (found.readers, found.unassigned) == ([], 4)
    assert java.unread() == sum(client.tail(stream_name).positions.values())
    eventually(lambda: is_outside(again))
    again.close()
    java.delete()


def test_both_continue_to_what_follows_segments(client, java, stream_name, eventually):
    """1 segment becomes 2, 1, and 3: a reader that finished one reports it, and any reader takes its successors."""
    client.create_stream(stream_name)
    lengths: dict[Segment, int] = {}

    def write_and_scale(first: int, segments: int) -> None:
        write(client, stream_name, first)
        lengths.update({Segment(stream_name, n): at for n, at in client.tail(stream_name).positions.items()})
        client.scale_stream(stream_name, segments)

    assert java.create([stream_name], checkpoint_ms=500, refresh_ms=100)
    java.open("java")
    with GroupMember(client.stores, java.scope, java.group, "python") as member:
        member.turn()
        read_all(java, "java")
        assert sorted(java.look().segments.values()) == [0, 1]
        for round_, segments in enumerate((2, 1, 3)):
            write_and_scale(round_ * EVENTS, segments)
        write(client, stream_name, 3 * EVENTS)
        sealed = set(lengths)
        lengths.update({Segment(stream_name, n): at for n, at in client.tail(stream_name).positions.items()})
        ours: list[Segment] = []  # in the order in which they were read, each at once
        theirs: list[JavaEvent] = []

        def go_on() -> bool:
            member.turn()
            for segment, offset in dict(member.reading).items():
                if offset < lengths[segment]:
                    assert offset == 0, "nobody lets go of a part of a segment"
                    member.delivered_up_to(segment, lengths[segment])
                    ours.append(segment)
                elif segment in sealed:
                    member.ended(segment)
            items, _ = java.read("java", 10 * EVENTS, 0.1)
            theirs.extend(item for item in items if isinstance(item, JavaEvent))
            return {*ours, *(event.segment for event in theirs)} == lengths.keys()

        eventually(go_on)
        theirs.extend(item for item in read_all(java, "java")[0] if isinstance(item, JavaEvent))
        assert ours
        assert theirs
        assert len(set(ours)) == len(ours)
        assert not {event.segment for event in theirs} & set(ours)
        assert sum(lengths[segment] for segment in ours) + sum(len(event.payload) + 8 for event in theirs) == sum(
            lengths.values()
        )
        epochs = [segment.id >> 32 for segment in ours], [event.segment.id >> 32 for event in theirs]
        assert list(map(sorted, epochs)) == list(epochs)
        eventually(lambda: go_on() and sorted(java.look().segments.values()) == [1, 2])
    java.leave("java")
    assert java.look().readers == []
    java.delete()


@pytest.mark.long  # tests/unit/reader_groups has the bytes
def test_both_read_on_after_either_has_changed_streams_and_settings(client, java, scope, eventually):
    one, two, three = (StreamName(scope, name) for name in ("one", "two", "three"))
    for first, stream in enumerate((one, two, three)):
        client.create_stream(stream, 2)
        write(client, stream, first * EVENTS)

    def written(*streams: StreamName) -> list[bytes]:
        return sorted(event for stream in streams for event in client.read(stream))

    def read_by_java(reader: str, count: int) -> list[bytes]:
        java.open(reader)
        found: list[bytes] = []

        def is_read() -> bool:
            found.extend(item.payload for item in read_all(java, reader)[0] if isinstance(item, JavaEvent))
            return len(found) >= count

        eventually(is_read)
        java.leave(reader)
        return sorted(found)

    def read_by_python(reader: str, count: int) -> list[bytes]:
        found: list[bytes] = []
        with group.reader(reader) as python:
            eventually(lambda: found.extend(e.value for e in python.poll(0.2)) or len(found) >= count)
        return sorted(found)

    assert java.create([one, two], checkpoint_ms=-1, refresh_ms=100)
    assert read_by_java("before", 2 * EVENTS) == written(one, two)
    with client.reader_group(f"{scope}/{java.group}") as group:
        outside = group.reader("outside")

        # By Python: a stream stays, with its place, one goes, and one comes.
        at = client.tail(one)
        write(client, one, 3 * EVENTS)
        group.reset(at, streams=[one, three], retention="manual", refresh=0.2)
        assert java.look().readers == []
        same = {one: (at, None), three: (None, None)}
        assert not java.create(same, checkpoint_ms=-1, refresh_ms=200, retention=Retention.MANUAL)
        with pytest.raises(PeerError, match="ConfigMismatch"):
            java.create(same, checkpoint_ms=-1, refresh_ms=200)
        added = sorted(client.read(one, start=at))
        assert read_by_java("java-1", 2 * EVENTS) == sorted([*added, *written(three)])
        with pytest.raises(ReaderOfflineError):
            eventually(lambda: outside.poll(0.1))
        outside.close()

        # By Java.
        java.reset({two: (None, None), three: (client.tail(three), None)}, checkpoint_ms=-1, refresh_ms=300)
        config = group.config
        assert sorted(config.start) == [three, two]
        assert (config.generation, config.refresh_ms, config.retention) == (2, 300, Retention.NONE)
        assert read_by_python("python-1", EVENTS) == written(two)

        # By Python again, which continues from what Java has set.
        group.reset("earliest", streams=[two, one], end=[client.tail(two), client.tail(one)])
        assert group.config.refresh_ms == 300
        assert read_by_java("java-2", 3 * EVENTS) == written(one, two)
    java.delete()


def test_java_takes_a_group_of_ours_for_one_that_it_has_made_alike(client, java, stream_name):
    client.create_stream(stream_name)
    name = f"{java.scope}/{java.group}"
    with client.reader_group(name, stream_name, checkpoint_interval=None, refresh=0.1) as made:
        assert java.create([stream_name], checkpoint_ms=-1, refresh_ms=100)
        assert made.config.generation == 0
    java.delete()
    assert java.create([stream_name], checkpoint_ms=-1, refresh_ms=100)
    client.reader_group(name, stream_name, checkpoint_interval=None, refresh=0.1).close()
    java.delete()


def test_our_members_learn_that_java_took_them_offline(client, java, stream_name, eventually):
    client.create_stream(stream_name)
    java.create([stream_name], checkpoint_ms=300, refresh_ms=100)
    member = GroupMember(client.stores, java.scope, java.group, "python")
    java.offline("python")
    eventually(lambda: is_outside(member))
    member.close()


def is_outside(member: GroupMember) -> bool:
    try:
        member.turn()
    except ReaderOfflineError:
        return True
    return False
