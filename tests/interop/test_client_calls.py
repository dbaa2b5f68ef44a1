"""Less common calls of the client with Java on the other side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from concurrent.futures import ThreadPoolExecutor

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.wire import EventPointer, StreamName
from tests.interop._java_client import JavaClientPeer


@pytest.fixture(scope="module")
def java(pravega: LocalPravega) -> Iterator[JavaClientPeer]:
    with JavaClientPeer(pravega.config.controller) as java:
        yield java


def test_tags(client: PravegaClient, java: JavaClientPeer, scope: str) -> None:
    client.create_scope(scope)
    assert java.create(StreamName(scope, "java"), ["sales", "größe 2"])
    client.create_stream(f"{scope}/python", tags=["sales", "tea"])
    assert {name.stream for name in client.streams(scope, tag="sales")} == java.tagged(scope, "sales")
    assert java.tagged(scope, "sales") == {"java", "python"}
    assert [name.stream for name in client.streams(scope, tag="größe 2")] == ["java"]
    assert java.tags(StreamName(scope, "python")) == {"sales", "tea"}
    assert set(client.describe(f"{scope}/java").config.tags) == {"sales", "größe 2"}


def test_java_fetches_at_our_pointers_and_we_at_those_of_java(
    client: PravegaClient, java: JavaClientPeer, stream_name: StreamName
) -> None:
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


def test_both_miss_a_truncated_event(client: PravegaClient, java: JavaClientPeer, stream_name: StreamName) -> None:
    client.create_stream(stream_name)
    client.write(stream_name, "old", "string")
    cut = client.tail(stream_name)
    client.write(stream_name, "new", "string")
    pointers = [EventPointer(stream_name, 0, 0, 11), EventPointer(stream_name, 0, 11, 11)]
    client.truncate(cut)
    assert client.fetch_all(pointers, "string", if_missing="ignore") == [None, "new"]
    assert java.fetch(stream_name, (pointer.to_bytes() for pointer in pointers)) == [None, "new"]
