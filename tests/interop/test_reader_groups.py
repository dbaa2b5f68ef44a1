"""Reader groups that our subscribers make, as Java's ReaderGroupManager sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.errors import ControllerError
from pravega_connector.local import LocalPravega
from pravega_connector.wire import StreamName
from tests.interop._java_program import JavaProgram


class JavaGroups(JavaProgram):
    """java/GroupPeer.java against one controller. Context manager."""

    def __init__(self, controller: str) -> None:
        super().__init__("GroupPeer", controller)

    def create(self, stream: StreamName, group: str) -> bool:
        """Make a group that publishes its position by hand; whether it was new."""
        return bool(self._ask("create", stream, group=group))

    def look(self, stream: StreamName, group: str) -> dict[str, Any]:
        """Streams, online readers, unread bytes and stream cuts of a group."""
        return dict(self._ask("look", stream, group=group))

    def publish(self, cut: StreamCut, group: str) -> None:
        """Publish a position with ``updateRetentionStreamCut``."""
        self._ask("publish", cut.stream, group=group, at=cut.to_text())


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaGroups]:
    with JavaGroups(pravega.config.controller) as java:
        yield java


def entries(client: PravegaClient, stream: StreamName, group: str) -> list[bytes]:
    """Content of a group's state."""
    log = client.revisioned(StreamName(stream.scope, f"_RG{group}"))
    return [entry for _, entry in log.read_from(log.oldest_revision())]


def write(client: PravegaClient, stream: StreamName, count: int) -> StreamCut:
    with client.writer(stream) as writer:
        for number in range(count):
            writer.write(b"." * 92, str(number))
    return client.tail(stream)


def without_id(entry: bytes) -> bytes:
    """The state of a group without the id, which is at the end of its configuration."""
    begin = entry.index(bytes(8), entry.index(b"\x02\x00\x00\x00\x19\x01")) + 8  # behind its generation, 0
    return entry[:begin] + entry[begin + 16 :]


def test_java_opens_the_group_of_a_subscriber(client, java, stream_name):
    client.create_stream(stream_name)
    subscriber = client.subscriber(stream_name, "sales")
    first, head = write(client, stream_name, 7), client.head(stream_name)
    subscriber.publish(first)
    write(client, stream_name, 3)
    found = java.look(stream_name, subscriber.group)
    assert found["streams"] == [str(stream_name)]
    assert found["readers"] == []
    assert found["unread"] == 10 * 100, "nobody reads through the group"
    assert [StreamCut.from_text(cut) for cut in found["cuts"]] == [head]
    # Java can publish for it as well: the generation and the id in the state are the controller's.
    java.publish(client.tail(stream_name), subscriber.group)
    with pytest.raises(ControllerError, match="a later position was already published"):
        subscriber.publish(first)


def test_the_state_is_what_java_writes(client, java, stream_name):
    client.create_stream(stream_name)
    subscriber = client.subscriber(stream_name, "sales")
    subscriber.publish(client.tail(stream_name))
    subscriber.publish(write(client, stream_name, 1))
    theirs = f"other.{stream_name.stream}"
    assert java.create(stream_name, theirs)
    [ours], [expected] = entries(client, stream_name, subscriber.group), entries(client, stream_name, theirs)
    assert without_id(expected[: len(ours)]) == without_id(ours)
    assert not expected[len(ours) :].strip(b"\0"), "Java's buffer is longer than what it writes into it"


def test_groups_that_exist_already_are_left_alone_or_made_whole(client, java, stream_name):
    client.create_stream(stream_name, 3)
    assert java.create(stream_name, f"java.{stream_name.stream}")
    before = entries(client, stream_name, f"java.{stream_name.stream}")
    client.subscriber(stream_name, "java").publish(client.tail(stream_name))
    assert entries(client, stream_name, f"java.{stream_name.stream}") == before
    # As a client that ended before it wrote the group's state leaves it.
    client.controller.create_subscriber(stream_name, f"old.{stream_name.stream}")
    assert entries(client, stream_name, f"old.{stream_name.stream}") == []
    client.subscriber(stream_name, "old").publish(client.tail(stream_name))
    assert java.look(stream_name, f"old.{stream_name.stream}")["streams"] == [str(stream_name)]


def test_the_group_follows_a_stream_that_is_made_again(client, java, stream_name):
    client.create_stream(stream_name)
    subscriber = client.subscriber(stream_name, "sales")
    subscriber.publish(write(client, stream_name, 5))
    client.controller.seal_stream(stream_name)
    client.controller.delete_stream(stream_name)
    client.create_stream(stream_name, 2)
    subscriber.publish(client.tail(stream_name))
    tail = write(client, stream_name, 4)
    assert java.look(stream_name, subscriber.group)["unread"] == 4 * 100
    java.publish(tail, subscriber.group)
    with pytest.raises(ControllerError, match="a later position was already published"):
        subscriber.publish(client.head(stream_name))


def test_a_group_of_the_rust_client_is_kept_apart(client, stream_name, rust):
    """Its state is in its own format, and in its own place: not even the same name makes it one group."""
    client.create_stream(stream_name, 2)
    write(client, stream_name, 100)
    name = f"{stream_name.scope}/apart"
    found = []
    with client.reader_group(name, stream_name, refresh=0.5) as group, group.reader("ours", "bytes") as reader:
        while len(found) < 30:
            found += [(event.segment, event.offset) for event in reader.poll(5.0) if not event.is_checkpoint]
        before = group.state
        assert len(rust.read(stream_name, 100, group="apart")) == 100
        assert group.online_readers() == ["ours"]
        assert group.state.positions.keys() == before.positions.keys()
        while len(found) < 100:
            found += [(event.segment, event.offset) for event in reader.poll(5.0) if not event.is_checkpoint]
    assert len(set(found)) == 100
    assert len(rust.read(stream_name, 100, group="apart2")) == 100
