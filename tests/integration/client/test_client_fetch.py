"""Single events by their pointers."""

import asyncio
import dataclasses
import random

import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import EventPointer, PravegaClient
from pravega_connector.errors import DataLossError, InvalidPointerError
from pravega_connector.wire import StreamName, segment_id
from pravega_serde.errors import DeserializationError


def pointers_of(client: PravegaClient, stream: StreamName) -> list[EventPointer]:
    return [batch.pointer(row) for batch in client.read_columns(stream) for row in range(len(batch.offsets))]


def written(client: PravegaClient, stream: StreamName, *values: str) -> list[EventPointer]:
    with client.writer(stream, "string") as writer:
        for value in values:
            writer.write(value, "key")
    return pointers_of(client, stream)


def test_events_of_all_sizes_come_in_the_order_of_the_pointers(client, stream_name):
    client.create_stream(stream_name, 2)
    rng = random.Random(1)
    with client.writer(stream_name) as writer:
        for number in range(200):
            writer.write(b"%d" % number + rng.randbytes(rng.choice([0, 10, 5_000, 40_000])), str(number))
        writer.flush()
        client.scale_stream(stream_name, 3)
        writer.write(rng.randbytes(3 << 19))
    known = pointers_of(client, stream_name)
    events = dict(zip(known, client.read(stream_name), strict=True))
    assert len(events) == 201
    rng.shuffle(known)
    assert client.fetch_all([*known, known[0]]) == [*map(events.__getitem__, known), events[known[0]]]
    unknown = [dataclasses.replace(pointer, length=0) for pointer in known]
    assert client.fetch_all(unknown) == list(map(events.__getitem__, known))
    assert client.fetch(unknown[0]) == events[known[0]]
    assert client.fetch_all([]) == []


def test_pointers_of_each_reader(client, stream_name):
    client.create_stream(stream_name)
    expected = written(client, stream_name, "one", "two")
    with client.follow(stream_name, start="earliest") as reader:
        batch = reader.poll(10)
        assert [batch.pointer(row) for row in range(2)] == expected
    rows = client.read_columns(stream_name).to_arrow().to_pylist()
    group = client.reader_group(StreamName(stream_name.scope, "g"), stream_name, checkpoint_interval=None, refresh=0.2)
    with group, group.reader("r", "string") as reader:
        events = []
        while len(events) < 2:
            events += reader.poll(10)
    for found in ([EventPointer.of(row) for row in rows], [event.pointer for event in events]):
        assert client.fetch_all(found, "string") == ["one", "two"]


def test_values_and_their_errors(client, stream_name):
    client.create_stream(stream_name)
    good, bad = written(client, stream_name, '{"a": 1}', "{")
    assert client.fetch(good, "json") == {"a": 1}
    with pytest.raises(DeserializationError, match=f"stream {stream_name}, segment 0, offset {bad.offset}"):
        client.fetch_all([good, bad], "json")


def test_lost_events(client, stream_name):
    client.create_stream(stream_name)
    old, new = written(client, stream_name, "old", "new")
    cut = dataclasses.replace(client.head(stream_name), positions={0: new.offset})
    client.truncate(cut)
    nowhere = EventPointer(StreamName(stream_name.scope, "nowhere"), 0, 0)
    later = EventPointer(stream_name, segment_id(7, 3), 0)
    with pytest.raises(DataLossError, match=f"{stream_name}, segment 0, offset 0: the events before offset"):
        client.fetch(old)
    for missing in (nowhere, later):
        with pytest.raises(DataLossError, match="truncated away or deleted"):
            client.fetch(missing)
    found = client.fetch_all([old, new, nowhere, later, new], "string", if_missing="ignore")
    assert found == [None, "new", None, None, "new"]


def test_places_at_which_no_event_begins(client, stream_name):
    client.create_stream(stream_name)
    first, second = written(client, stream_name, "x" * 100, "y" * 100)
    for offset, length, reason in [
        (second.offset, 107, "the event there has a length of 108"),
        (3, 0, "no event begins there"),
        (50, 0, "no event begins there"),
        (216, 0, "the segment ends at offset 216"),
        (215, 0, "the segment ends at offset 216"),
        (108, 109, "the segment ends at offset 216"),
        (10**15, 0, "the segment ends at offset 216"),
    ]:
        with pytest.raises(InvalidPointerError, match=reason):
            client.fetch_all([first, EventPointer(stream_name, 0, offset, length)])
    for wrong in (str(first), first.to_bytes(), None):
        with pytest.raises(InvalidPointerError, match=r"must be an EventPointer.*from_text"):
            client.fetch(wrong)


def test_asyncio(config, client, stream_name):
    client.create_stream(stream_name)
    pointers = written(client, stream_name, *map(str, range(100)))

    async def main():
        async with AsyncPravegaClient(config) as client:
            many = await client.fetch_all(pointers[::7], "string")
            return [await client.fetch(pointers[1], "string"), *many]

    assert asyncio.run(main()) == ["1", *map(str, range(0, 100, 7))]
