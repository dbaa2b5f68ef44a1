"""Stream cuts in text and bytes mean the same to Java and to us."""

from __future__ import annotations

import random

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.wire import StreamCut, StreamName, segment_id
from tests.interop._java import JavaCut, JavaPeer


def cut_of(cut: JavaCut) -> StreamCut:
    return StreamCut(cut.stream, cut.positions)


def some_cuts(count: int) -> list[StreamCut]:
    """Cuts with segment ids, epochs and offsets around every border of Java's compact numbers."""
    rng = random.Random(7)
    bounds = [0, 1, 13, 14, 29, 30, 31, 60]
    cuts = []
    for number in range(count):
        positions = {
            segment_id(rng.randrange(1 << rng.choice((1, 6, 14, 20))), rng.randrange(1 << rng.choice((1, 8, 20)))): (
                -1 if rng.random() < 0.05 else max(0, (1 << rng.choice(bounds)) + rng.randint(-2, 2))
            )
            for _ in range(rng.choice((1, 1, 2, 5, 40, 300)))
        }
        cuts.append(StreamCut(StreamName(f"scope-{number}", f"a.stream-{number}"), positions))
    return cuts


def test_java_reads_our_text_and_bytes(java: JavaPeer) -> None:
    cuts = some_cuts(200)
    assert [cut_of(cut) for cut in java.parse(text=[cut.to_text() for cut in cuts])] == cuts
    assert [cut_of(cut) for cut in java.parse(data=[cut.to_bytes() for cut in cuts])] == cuts


def test_we_read_the_text_and_bytes_that_java_writes(java: JavaPeer) -> None:
    cuts = some_cuts(200)
    for cut, theirs in zip(cuts, java.parse(text=[cut.to_text() for cut in cuts]), strict=True):
        assert StreamCut.from_text(theirs.text) == cut
        assert StreamCut.from_bytes(theirs.data) == cut


@pytest.fixture
def written(client: PravegaClient, java: JavaPeer, stream_name: StreamName) -> StreamCut:
    """A stream with 100 events before a cut and 100 after it, scaled in between; the cut as we see it."""
    client.create_stream(stream_name, 3)
    java.write(stream_name, [(f"key {number}", f"before {number}".encode()) for number in range(100)])
    cut = client.tail(stream_name)
    old = [segment.id for segment in client.controller.current_segments(stream_name)]
    client.controller.scale_stream(stream_name, old[:2], [(0.0, 0.1), (0.1, 2 / 3)])
    java.write(stream_name, [(f"key {number}", f"after {number}".encode()) for number in range(100)])
    return cut


def test_head_and_tail_are_those_of_java(client: PravegaClient, java: JavaPeer, written: StreamCut) -> None:
    head, tail = java.cuts(written.stream)
    assert client.head(written.stream) == cut_of(head)
    assert client.tail(written.stream) == cut_of(tail)
    client.controller.truncate_stream(written)
    head, tail = java.cuts(written.stream)
    assert client.head(written.stream) == cut_of(head) == written
    assert client.tail(written.stream) == cut_of(tail)


def test_java_reads_from_and_to_our_cut(java: JavaPeer, written: StreamCut) -> None:
    before = [event.payload for event in java.read(written.stream, None, written)]
    after = [event.payload for event in java.read(written.stream, written, None)]
    assert sorted(before) == sorted(f"before {number}".encode() for number in range(100))
    assert sorted(after) == sorted(f"after {number}".encode() for number in range(100))


def test_we_read_between_the_cuts_of_java(client: PravegaClient, java: JavaPeer, written: StreamCut) -> None:
    head, tail = java.cuts(written.stream)
    start, end = StreamCut.from_text(head.text), StreamCut.from_bytes(tail.data)
    assert len(list(client.read(written.stream, start=start, end=end))) == 200
    middle = StreamCut.from_text(java.parse(data=[written.to_bytes()])[0].text)
    after = list(client.read(written.stream, start=middle, end=end))
    assert sorted(after) == sorted(f"after {number}".encode() for number in range(100))
