"""Less common calls of the client with Java on the other side."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pravega_connector.local import LocalPravega
from pravega_connector.wire import EventPointer, StreamName
from tests.interop._java_client import JavaClientPeer


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaClientPeer]:
    with JavaClientPeer(pravega.config.controller) as java:
        yield java


def test_tags(client, java, scope):
    client.create_scope(scope)
    assert java.create(StreamName(scope, "java"), ["sales", "größe 2"])
    client.create_stream(f"{scope}/python", tags=["sales", "tea"])
    assert {name.stream for name in client.streams(scope, tag="sales")} == java.tagged(scope, "sales")
    assert java.tagged(scope, "sales") == {"java", "python"}
    assert [name.stream for name in client.streams(scope, tag="größe 2")] == ["java"]
    assert java.tags(StreamName(scope, "python")) == {"sales", "tea"}
    assert set(client.describe(f"{scope}/java").config.tags) == {"sales", "größe 2"}


def test_java_fetches_at_our_pointers_and_we_at_those_of_java(client, java, stream_name):
    client.create_stream(stream_name, 2)
    client.scale_stream(stream_name, 3)
    with client.writer(stream_name, "string") as writer:
        for number in range(40):
            writer.write(f"{number} " * (1 + number % 5), routing_key=str(number))
        writer.write("long " * 200_000)
    pointed = java.point(stream_name, 41)
    ours = sorted(batch.pointer(row) for batch in client.read_columns(stream_name) for row in range(len(batch.offsets)))
    assert sorted(EventPointer.from_text(text) for text, _, _ in pointed) == ours
    for text, data, _ in pointed:
        pointer = EventPointer.from_bytes(data)
        assert (pointer.to_text(), pointer.to_bytes()) == (text, data)
    pointers = [EventPointer.from_bytes(data) for _, data, _ in pointed]
    events = [event for _, _, event in pointed]
    assert client.fetch_all(pointers, "string") == events
    unknown = [dataclasses.replace(pointer, length=0) for pointer in pointers[:3] + pointers[-3:]]
    for wanted in (pointers, unknown):
        assert java.fetch(stream_name, (each.to_bytes() for each in wanted)) == client.fetch_all(wanted, "string")


def test_both_miss_a_truncated_event(client, java, stream_name):
    client.create_stream(stream_name)
    client.write(stream_name, "old", "string")
    cut = client.tail(stream_name)
    client.write(stream_name, "new", "string")
    pointers = [EventPointer(stream_name, 0, 0, 11), EventPointer(stream_name, 0, 11, 11)]
    client.truncate(cut)
    assert client.fetch_all(pointers, "string", if_missing="ignore") == [None, "new"]
    assert java.fetch(stream_name, (pointer.to_bytes() for pointer in pointers)) == [None, "new"]


def test_sequences_of_both_stay_together(client, java, stream_name):
    """Both write to one segment at the same time."""
    client.create_stream(stream_name)

    def sequences(name: str) -> list[list[str]]:
        return [[f"{name} {number} {place}" for place in range(1 + number % 50)] for number in range(200)]

    def write() -> None:
        with client.writer(stream_name, "string") as writer:
            for sequence in sequences("python"):
                writer.write_all(sequence, "key")

    with ThreadPoolExecutor(2) as threads:
        java_writes = threads.submit(java.write_all, stream_name, "key", sequences("java"))
        threads.submit(write).result()
        java_writes.result()
    found = list(client.read(stream_name, "string"))
    together = [list(group) for _, group in itertools.groupby(found, lambda event: event.rpartition(" ")[0])]
    assert sorted(together) == sorted(sequences("java") + sequences("python"))
    assert java.point(stream_name, len(found))[-1][2] == found[-1]


def test_both_write_to_one_transaction(client, java, stream_name):
    """Also after a scaling, and after its segments have new names."""
    client.create_stream(stream_name, 2)
    expected = Counter[str]()
    for scalings in range(2):
        transaction = client.transactions(stream_name, "string", lease=60).begin()
        for number in range(20):
            transaction.write(f"ours {scalings} {number}", str(number))
        transaction.flush()
        client.scale_stream(stream_name, 3 + scalings)
        java.join(stream_name, transaction.id, [(str(key), f"theirs {scalings} {key}") for key in range(20)])
        transaction.commit()
        expected.update(f"{who} {scalings} {number}" for who in ("ours", "theirs") for number in range(20))
        assert Counter(client.read(stream_name, "string")) == expected


def test_an_acknowledged_event_exists_for_java(client, java, stream_name):
    client.create_stream(stream_name, 2)
    with client.writer(stream_name, "string") as writer:
        written = [writer.write_with_ack(str(number), str(number)) for number in range(20)]
        for acknowledgement in written:
            acknowledgement.result(120)
        # The writer is neither flushed nor closed.
        assert sorted(event for _, _, event in java.point(stream_name, 20)) == sorted(map(str, range(20)))


def test_a_scope_of_java_is_deleted_with_its_contents(client, java, scope):
    stream = StreamName(scope, "java")
    for _ in range(2):
        assert java.fill(stream)
        client.write(stream, "event", "string")
        assert list(client.reader_groups(scope)) == [f"{scope}/group"]
        assert client.delete_scope(scope, recursive=True)
        assert not java.scope_exists(scope)


def test_java_finds_no_completed_transactions_of_two_streams(client, java, scope):
    """The reason why the client has no such call. All streams of a cluster share the server's table of them."""
    streams = [StreamName(scope, name) for name in ("one", "two")]
    for stream in streams:
        client.create_stream(stream)
    assert java.completed(streams) == [0, 0]
