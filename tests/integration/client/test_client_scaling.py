"""Scaling, sealing and deleting under writers and readers."""

import asyncio
import itertools
import threading
import time

import pyarrow as pa
import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.errors import (
    StreamNotFoundError,
    StreamSealedError,
    TransactionAbortedError,
    TransactionUnknownError,
)
from pravega_connector.wire import StreamCut, segment_epoch

KEYS = [f"key-{i}" for i in range(40)]


def event(key, i):
    return f"{key}|{i}".encode()


def scale(client, stream, *bounds):
    current = [r.id for r in client.controller.current_segments(stream)]
    return client.controller.scale_stream(stream, current, list(itertools.pairwise(bounds)))


def write_rounds(client, stream, rounds, before):
    """One event of each key in each round, alternately by rows and by columns; ``before(round)`` comes first."""
    with client.writer(stream) as writer:
        for i in range(rounds):
            before(i)
            if i % 2:
                writer.write_column(pa.array([event(key, i) for key in KEYS]), pa.array(KEYS))
            else:
                for key in KEYS:
                    writer.write(event(key, i), key)


def assert_complete_and_in_order(events, rounds):
    assert len(events) == rounds * len(KEYS)
    seen = dict.fromkeys(KEYS, 0)
    for text in map(bytes.decode, events):
        key, _, i = text.partition("|")
        assert int(i) == seen[key], f"{key} came with {i} after {seen[key] - 1}"
        seen[key] += 1


def test_scaling_from_one_to_four_to_two_under_a_writer_and_two_readers(client, config, stream_name):
    rounds = 120
    client.create_stream(stream_name)
    start = client.head(stream_name)
    followed: list[bytes] = []

    def follow():
        with PravegaClient(config) as own, own.follow(stream_name, start=start) as reader:
            end = time.monotonic() + 60
            while len(followed) < rounds * len(KEYS) and time.monotonic() < end:
                if (batch := reader.poll(1)) is not None:
                    followed.extend(batch.events.to_pylist())
            positions.append(reader.position)

    def before(i):
        if i == 40:
            scale(client, stream_name, 0.0, 0.25, 0.5, 0.75, 1.0)
        if i == 80:
            scale(client, stream_name, 0.0, 0.5, 1.0)

    positions: list[StreamCut] = []
    follower = threading.Thread(target=follow)
    follower.start()
    write_rounds(client, stream_name, rounds, before)
    follower.join()
    current = client.controller.current_segments(stream_name)
    assert [(r.low, r.high, segment_epoch(r.id)) for r in current] == [(0.0, 0.5, 2), (0.5, 1.0, 2)]
    assert_complete_and_in_order(followed, rounds)
    assert_complete_and_in_order(list(client.read(stream_name)), rounds)
    assert positions == [client.tail(stream_name)]
    assert client.controller.is_cut_valid(positions[0])


def test_scaling_while_blocks_are_in_flight(client, stream_name):
    """The scalings run next to the writer, so that appends are under way when their segments are sealed."""
    rounds = 400
    client.create_stream(stream_name)
    scaled = []

    def scale_again_and_again():
        wanted = ((0.0, 0.3, 0.6, 1.0), (0.0, 0.5, 1.0), (0.0, 1.0))
        scaled.extend(scale(client, stream_name, *bounds) for bounds in wanted)

    scaler = threading.Thread(target=scale_again_and_again)
    with client.writer(stream_name) as writer:
        scaler.start()
        for i in range(rounds):
            writer.write_column(pa.array([event(key, i) for key in KEYS]), pa.array(KEYS))
            if not i % 10:
                writer.flush()
        scaler.join()
    assert [len(ranges) for ranges in scaled] == [3, 2, 1]
    assert_complete_and_in_order(list(client.read(stream_name)), rounds)


def test_large_events_cross_a_scaling_in_order(client, stream_name):
    client.create_stream(stream_name)
    large = [b"%d" % i + bytes(9 << 20) for i in range(3)]
    with client.writer(stream_name, max_event_size=10 << 20) as writer:
        writer.write(large[0], "k")
        writer.write(b"x", "k")
        writer.flush()
        scale(client, stream_name, 0.0, 0.5, 1.0)
        writer.write(large[1], "k")
        writer.write(b"y", "k")
        writer.write(large[2], "k")
    assert list(client.read(stream_name)) == [large[0], b"x", large[1], b"y", large[2]]


def test_ranges_across_scalings_hold_exactly_what_lies_between_their_cuts(client, stream_name):
    client.create_stream(stream_name)
    cuts = []

    def before(i):
        if i == 2:
            scale(client, stream_name, 0.0, 0.25, 1.0)
        if i == 4:
            scale(client, stream_name, 0.0, 1.0)

    for i in range(6):
        before(i)
        cuts.append(client.tail(stream_name))
        with client.writer(stream_name) as writer:
            for key in KEYS:
                writer.write(event(key, i), key)
    cuts.append(client.tail(stream_name))
    for first in range(7):
        for last in range(first, 7):
            found = list(client.read(stream_name, start=cuts[first], end=cuts[last]))
            assert sorted(found) == sorted(event(key, i) for key in KEYS for i in range(first, last))


# ---------------------------------------------------------------- sealed and deleted


def test_a_sealed_stream_can_be_read_to_its_end_but_not_written(client, stream_name):
    client.create_stream(stream_name, 2)
    writer = client.writer(stream_name)
    for key in KEYS:
        writer.write(event(key, 0), key)
    writer.flush()
    tail = client.tail(stream_name)
    with client.follow(stream_name, start=client.head(stream_name)) as reader:
        client.controller.seal_stream(stream_name)
        assert sorted(e for batch in reader for e in batch.events.to_pylist()) == sorted(event(k, 0) for k in KEYS)
        assert reader.at_end
        assert reader.position == tail
    assert client.controller.current_segments(stream_name) == []
    assert client.tail(stream_name) == tail
    assert sorted(client.read(stream_name)) == sorted(event(key, 0) for key in KEYS)
    writer.write(b"too late", "key-0")
    with pytest.raises(StreamSealedError, match=f"{stream_name} is sealed"):
        writer.flush()
    writer.abandon()
    with pytest.raises(StreamSealedError, match=f"{stream_name} is sealed"):
        client.writer(stream_name)


def test_the_tail_of_a_stream_sealed_after_scalings_is_found(client, stream_name):
    client.create_stream(stream_name)
    scale(client, stream_name, 0.0, 0.5, 1.0)
    with client.writer(stream_name) as writer:
        for key in KEYS:
            writer.write(event(key, 0), key)
    tail = client.tail(stream_name)
    client.controller.seal_stream(stream_name)
    assert client.tail(stream_name) == tail
    with client.follow(stream_name) as reader:
        assert reader.poll(10) is None
        assert reader.at_end


def test_sealing_ends_a_reader_that_waits(client, config, stream_name):
    client.create_stream(stream_name)
    ended = threading.Event()

    def follow():
        with PravegaClient(config) as own, own.follow(stream_name, start=client.head(stream_name)) as reader:
            assert [e for batch in reader for e in batch.events.to_pylist()] == [b"x"]
            ended.set()

    thread = threading.Thread(target=follow)
    thread.start()
    with client.writer(stream_name) as writer:
        writer.write(b"x")
    client.controller.seal_stream(stream_name)
    assert ended.wait(120)
    thread.join()


def test_a_stream_deleted_under_a_writer_ends_it(client, stream_name):
    client.create_stream(stream_name)
    writer = client.writer(stream_name)
    writer.write(b"x")
    writer.flush()
    client.controller.seal_stream(stream_name)
    client.controller.delete_stream(stream_name)
    writer.write(b"y")
    with pytest.raises(StreamNotFoundError, match=str(stream_name)):
        writer.flush()
    writer.abandon()


def recreate(client, stream):
    client.controller.seal_stream(stream)
    client.controller.delete_stream(stream)
    assert client.create_stream(stream)


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_stream_recreated_under_a_writer_ends_it(client, stream_name, epochs):
    client.create_stream(stream_name)
    for _ in range(1, epochs):
        scale(client, stream_name, 0.0, 0.5, 1.0)
    writer = client.writer(stream_name)
    acknowledgements = [writer.write_with_ack(b"old", key) for key in KEYS]
    writer.flush()
    recreate(client, stream_name)
    writer.write(b"lost")
    with pytest.raises(StreamNotFoundError, match=f"{stream_name} was deleted and recreated"):
        writer.flush()
    writer.abandon()
    assert [each.exception() for each in acknowledgements] == [None] * len(KEYS)
    with client.writer(stream_name) as again:
        again.write(b"new")
    assert list(client.read(stream_name)) == [b"new"]


def test_a_stream_recreated_under_writers_of_other_kinds_ends_them(client, config, stream_name):
    client.create_stream(stream_name)
    transaction = client.transactions(stream_name).begin()
    transaction.write(b"lost")
    transaction.flush()
    single = client.revisioned(stream_name)
    start = single.latest_revision()
    single.write_unconditionally(b"old")
    binary = client.byte_writer(stream_name)
    binary.write(b"old")
    binary.flush()

    async def write_late():
        async with AsyncPravegaClient(config) as own:
            writer = own.writer(stream_name)
            await writer.write(b"old")
            await writer.flush()
            await asyncio.to_thread(recreate, client, stream_name)
            await writer.write(b"lost")
            with pytest.raises(StreamNotFoundError, match="recreated"):
                await writer.flush()
            await writer.abandon()

    asyncio.run(write_late())
    transaction.write(b"lost")
    with pytest.raises((TransactionAbortedError, TransactionUnknownError)):
        transaction.commit()
    binary.write(b"lost")
    with pytest.raises(StreamNotFoundError, match="recreated"):
        binary.flush()
    for attempt in (
        lambda: single.write_unconditionally(b"lost"),
        lambda: single.write_conditionally(start, b"lost"),
        single.latest_revision,
    ):
        with pytest.raises(StreamNotFoundError, match="recreated"):
            attempt()
    assert list(client.read(stream_name)) == []


def test_a_stream_that_was_deleted_and_made_again_is_a_new_one(client, stream_name):
    for content in (b"first", b"second"):
        client.create_stream(stream_name)
        with client.writer(stream_name) as writer:
            writer.write(content)
        assert list(client.read(stream_name)) == [content]
        client.controller.seal_stream(stream_name)
        client.controller.delete_stream(stream_name)
