"""Reads of one routing key, through splits and merges of its segments."""

import asyncio
import itertools
import json

import pyarrow as pa
import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient
from pravega_connector.errors import ConfigError, MalformedStreamCutError, RoutingKeyError
from pravega_connector.wire import StreamCut, StreamName
from pravega_serde import ByField, ByFunction, JsonSerializer
from pravega_serde.errors import DeserializationError, SchemaError
from pravega_serde.routing import segment_key

CAMERAS = [f"camera {number}" for number in range(40)]
BY_CAMERA = ByField("camera")
ROWS = JsonSerializer(arrow_type=pa.schema([("camera", pa.string()), ("n", pa.int64())]))
# Between them, segments are divided, merged, and merged with a part of a segment that was divided before.
SCALINGS = [
    ((0.0, 0.25, 0.5, 0.75, 1.0), None),
    ((0.0, 0.125, 0.25), [0]),
    ((0.125, 0.5), [1, 2]),
    ((0.0, 0.3, 1.0), None),
]


def scale(client: PravegaClient, stream: StreamName, bounds: tuple[float, ...], places: list[int] | None) -> None:
    """Replace the segments at these places on the key line, or all."""
    current = sorted(client.controller.current_segments(stream), key=lambda each: each.low)
    sealed = [each.id for each in (current if places is None else map(current.__getitem__, places))]
    client.controller.scale_stream(stream, sealed, list(itertools.pairwise(bounds)))


def write(client: PravegaClient, stream: StreamName, numbers: range) -> None:
    with client.writer(stream, "json", router=BY_CAMERA) as writer:
        for number in numbers:
            for camera in CAMERAS:
                writer.write({"camera": camera, "n": number})


def events(camera: str, count: int) -> list[dict[str, object]]:
    return [{"camera": camera, "n": number} for number in range(count)]


@pytest.fixture
def scaled(client: PravegaClient, stream_name: StreamName) -> StreamName:
    """A stream with 10 events of each camera in each of its epochs."""
    client.create_stream(stream_name, 2)
    for epoch in range(1 + len(SCALINGS)):
        write(client, stream_name, range(epoch * 10, epoch * 10 + 10))
        if epoch < len(SCALINGS):
            scale(client, stream_name, *SCALINGS[epoch])
    return stream_name


COUNT = 10 * (1 + len(SCALINGS))


def test_all_events_of_a_key_come_in_order_and_no_others(client, scaled):
    for camera in CAMERAS[::5]:
        assert list(client.read(scaled, "json", key=camera, router=BY_CAMERA)) == events(camera, COUNT)


def test_only_segments_of_the_key_are_read(client, scaled):
    columns = client.read_columns(scaled, ROWS, key="camera 7", router=BY_CAMERA, metadata=["segment_id"])
    table = columns.to_arrow()
    assert table.select(["camera", "n"]).to_pylist() == events("camera 7", COUNT)
    position, owners = segment_key("camera 7"), []
    for epoch in range(1 + len(SCALINGS)):
        ranges = client.controller.epoch_segments(scaled, epoch)
        (owner,) = [each.id for each in ranges if each.low <= position < each.high]
        owners += [owner] if owner not in owners else []
    assert table["segment_id"].unique().to_pylist() == owners
    assert columns.size < client.read_columns(scaled).size / 2


def test_all_events_of_the_segments_come_if_asked_for(client, scaled):
    found = list(client.read(scaled, "json", key="camera 7", keep_other_keys=True))
    assert [event for event in found if event["camera"] == "camera 7"] == events("camera 7", COUNT)
    assert COUNT < len(found) < COUNT * len(CAMERAS)
    raw = client.read_columns(scaled, key="camera 7", keep_other_keys=True).to_arrow()
    assert list(map(json.loads, raw["event"].to_pylist())) == found


def test_a_reader_follows_the_key_through_scaling_and_resumes(client, stream_name):
    client.create_stream(stream_name, 2)
    start, found = client.head(stream_name), []
    for epoch in range(1 + len(SCALINGS)):
        write(client, stream_name, range(epoch * 10, epoch * 10 + 10))
        with client.follow(stream_name, "json", start=start, key="camera 7", router=BY_CAMERA) as reader:
            while len(found) < epoch * 10 + 10:
                found += (values := reader.poll(20))
                assert values
            start = reader.position.to_text()  # validated when it is passed as the start
        if epoch < len(SCALINGS):
            scale(client, stream_name, *SCALINGS[epoch])
    assert found == events("camera 7", COUNT)
    assert client.controller.is_cut_valid(StreamCut.from_text(start))


def test_one_reader_follows_the_key_to_the_end_of_a_sealed_stream(client, scaled):
    client.seal_stream(scaled)
    with client.follow(scaled, "json", start="earliest", key="camera 3", router=BY_CAMERA) as reader:
        assert list(reader) == events("camera 3", COUNT)
        assert client.controller.is_cut_valid(reader.position)


def test_raw_batches_of_a_key(client, scaled):
    router = ByField("camera", ROWS)
    client.seal_stream(scaled)
    with client.follow(scaled, start="earliest", key="camera 3", router=router) as reader:
        rows = [row for batch in reader for row in batch.values("json")]
    assert rows == events("camera 3", COUNT)
    by_bytes = ByFunction(lambda event: json.loads(event)["camera"])
    assert list(map(json.loads, client.read(scaled, key="camera 3", router=by_bytes))) == rows


def test_a_range_and_a_limit_apply_to_the_key(client, scaled):
    client.scale_stream(scaled, 5)
    middle = client.tail(scaled).to_text()
    write(client, scaled, range(COUNT, COUNT + 3))
    by_key = {"key": "camera 5", "router": BY_CAMERA}
    assert list(client.read(scaled, "json", start=middle, **by_key)) == events("camera 5", COUNT + 3)[COUNT:]
    assert list(client.read(scaled, "json", end=middle, **by_key)) == events("camera 5", COUNT)
    assert list(client.read(scaled, "json", limit=17, **by_key)) == events("camera 5", 17)


def test_several_streams(client, scope, stream_name):
    streams = [StreamName(scope, name) for name in ("one", "two")]
    for stream in streams:
        client.create_stream(stream, 3)
        write(client, stream, range(4))
    assert list(client.read(streams, "json", key="camera 1", router=BY_CAMERA)) == events("camera 1", 4) * 2
    with client.follow(streams, "json", start="earliest", key="camera 1", router=BY_CAMERA) as reader:
        assert sorted(event["n"] for event in reader.poll(10) + reader.poll(10)) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_asyncio(config, client, scaled):
    client.seal_stream(scaled)

    async def read():
        async with AsyncPravegaClient(config) as own:
            by_key = {"key": "camera 9", "router": BY_CAMERA}
            async with own.follow(scaled, "json", start="earliest", **by_key) as reader:
                followed = [value async for value in reader]
            raw = own.read_columns(scaled, key="camera 9", router=ByField("camera", ROWS))
            batches = [value async for batch in raw for value in batch.values("json")]
            return [value async for value in own.read(scaled, "json", **by_key)], followed, batches

    assert asyncio.run(read()) == (events("camera 9", COUNT),) * 3


def test_events_with_other_keys_than_those_of_the_router_are_an_error(client, scaled):
    """Their keys belong to other segments, so events of the wanted key may be there, too."""
    router = ByFunction(lambda event: None if event["n"] < 7 else f"tenant {event['n']}")
    with pytest.raises(RoutingKeyError, match=rf"stream {scaled}, segment \d+, offset \d+: .*'tenant \d+'"):
        list(client.read(scaled, "json", key="camera 1", router=router))
    with client.follow(scaled, "json", start="earliest", key="camera 1", router=router) as reader:
        before = reader.position
        for _ in range(2):  # nothing is skipped
            with pytest.raises(RoutingKeyError, match="another segment"):
                reader.poll(10)
            assert reader.position == before


def test_events_without_a_key_are_left_out_and_those_that_have_no_field_are_an_error(client, stream_name):
    client.create_stream(stream_name, 2)
    with client.writer(stream_name, "json") as writer:
        writer.write({"camera": None, "n": 0}, routing_key="camera 1")
        writer.write({"camera": "camera 1", "n": 1}, routing_key="camera 1")
        writer.write({"n": 2}, routing_key="camera 1")
    found = client.read(stream_name, "json", key="camera 1", router=ByFunction(lambda event: event.get("camera")))
    assert list(found) == [{"camera": "camera 1", "n": 1}]
    with pytest.raises(RoutingKeyError, match="no field 'camera'; pass the router of the writer"):
        list(client.read(stream_name, "json", key="camera 1", router=BY_CAMERA))


def test_a_malformed_event_may_have_any_key_so_it_is_not_left_out(client, stream_name):
    client.create_stream(stream_name, 2)
    with client.writer(stream_name) as writer:
        for event in (b'{"camera": "camera 1", "n": 0}', b"{", b'{"camera": "camera 1", "n": 1}'):
            writer.write(event, routing_key="camera 1")
    found = client.read(stream_name, "json", key="camera 1", router=BY_CAMERA)
    assert next(found) == {"camera": "camera 1", "n": 0}
    with pytest.raises(DeserializationError, match="offset 38"):
        next(found)
    errors: list[DeserializationError] = []
    columns = client.read_columns(stream_name, ROWS, key="camera 1", router=BY_CAMERA, on_error=errors.append)
    assert columns.to_arrow()["n"].to_pylist() == [0, None, 1]
    assert [error.offset for error in errors] == [38]
    with client.follow(stream_name, "json", start="earliest", key="camera 1", router=BY_CAMERA) as reader:
        assert reader.poll(10) == [{"camera": "camera 1", "n": 0}]
        with pytest.raises(DeserializationError, match="offset 38"):
            reader.poll(10)
        assert reader.poll(10) == [{"camera": "camera 1", "n": 1}]


def test_a_serializer_that_decodes_a_part_of_the_events_at_a_time(client, scaled):
    """As a registry's serializer does with large events."""
    rows = FewAtOnce(arrow_type=ROWS.arrow_type)
    found = client.read_columns(scaled, rows, key="camera 7", router=BY_CAMERA).to_arrow()
    assert found.to_pylist() == events("camera 7", COUNT)


class FewAtOnce(JsonSerializer):
    """A serializer that decodes seven events at a time."""

    def decode_first(self, column, *, on_error=None):
        return self.decode_column(column[:7], on_error=on_error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key": "a"}, "requires one of 'router' and 'keep_other_keys', because an event does not carry"),
        ({"key": "a", "router": BY_CAMERA, "keep_other_keys": True}, "requires one of"),
        ({"router": BY_CAMERA}, "'router' requires 'key'"),
        ({"keep_other_keys": True}, "'keep_other_keys' requires 'key'"),
        ({"key": b"a", "router": BY_CAMERA}, "must be a str"),
        ({"key": "a", "router": "camera"}, "'router' must be a EventRouter"),
        ({"key": "a", "keep_other_keys": 1}, "must be a bool"),
    ],
)
def test_arguments_that_do_not_go_together(client, scope, options, words):
    for read in (client.read, client.read_columns, client.follow):
        with pytest.raises(ConfigError, match=words):
            read(f"{scope}/any", "string", **options)


def test_columns_without_the_field_and_a_cut_of_a_part(client, scaled):
    with pytest.raises(SchemaError, match="'tenant' is not a single field of: camera, n"):
        client.read_columns(scaled, ROWS, key="a", router=ByField("tenant"))
    part = StreamCut(scaled, {0: 0})
    other = next(camera for camera in CAMERAS if segment_key(camera) >= 0.5)
    with pytest.raises(MalformedStreamCutError, match="does not cover"):
        client.follow(scaled, "json", start=part, key=other, router=BY_CAMERA)
