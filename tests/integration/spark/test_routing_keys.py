"""Queries that read one routing key, through splits and merges of its segments."""

import json

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError, DataLossError, RoutingKeyError
from pravega_connector.operations.cli.lag import lag
from pravega_connector.operations.export import export_stream
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.wire import StreamCut, StreamName
from pravega_serde import AvroSerializer, ByField
from pravega_serde.routing import segment_key
from tests.support.micro_batches import MicroBatches, rows_of

SCHEMA = json.dumps(
    {"type": "record", "name": "Frame", "fields": [{"name": "camera", "type": "string"}, {"name": "n", "type": "long"}]}
)
FRAMES = AvroSerializer(SCHEMA)
CAMERAS = [f"camera {number}" for number in range(20)]
ONE = CAMERAS[7]


def write(client: PravegaClient, stream: StreamName, numbers: range) -> None:
    with client.writer(stream, FRAMES, router=ByField("camera")) as writer:
        for number in numbers:
            for camera in CAMERAS:
                writer.write({"camera": camera, "n": number})


@pytest.fixture
def stream(client: PravegaClient, stream_name: StreamName) -> StreamName:
    """A stream with 10 events of each camera before each of two scalings, and after them."""
    client.create_stream(stream_name, 2)
    for epoch, segments in enumerate((5, 3, 0)):
        write(client, stream_name, range(epoch * 10, epoch * 10 + 10))
        if segments:
            client.scale_stream(stream_name, segments)
    return stream_name


@pytest.fixture
def options(config: PravegaConfig, stream: StreamName) -> dict[str, str]:
    return {
        "controller": config.controller,
        "path": str(stream),
        "format": "avro",
        "avro_schema": SCHEMA,
        "routing_key": ONE,
        "routing_key_field": "camera",
        "start_stream_cut": "earliest",
    }


def numbers(events: list[bytes]) -> list[int]:
    """The numbers of the frames, which are all of the one camera."""
    frames = [FRAMES.deserialize(event) for event in events]
    assert {frame["camera"] for frame in frames} == {ONE}
    return [frame["n"] for frame in frames]


def owners(client: PravegaClient, stream: StreamName) -> set[int]:
    position = segment_key(ONE)
    epochs = [client.controller.epoch_segments(stream, epoch) for epoch in range(3)]
    return {each.id for ranges in epochs for each in ranges if each.low <= position < each.high}


def test_micro_batches_and_restarts(client, stream, options):
    query = MicroBatches()
    rows = [row for batch in query.run(**options, max_rows_per_trigger="25") for row in batch.rows]
    assert numbers([row.event for row in rows]) == list(range(30))
    assert {row.segment_id for row in rows} == owners(client, stream)
    write(client, stream, range(30, 33))
    later = [row for batch in query.run(**options) for row in batch.rows]
    assert numbers([row.event for row in later]) == [30, 31, 32]
    for text in query.offsets:  # each is a cut of the whole stream
        (positions,) = json.loads(text)["streams"].values()
        cut = ", ".join(f"{segment}={offset}" for segment, offset in positions.items())
        assert client.controller.is_cut_valid(StreamCut.from_text(f"{stream}:{cut}"))


def test_a_batch_reads_only_segments_of_the_key(client, stream, options):
    source = PravegaDataSource({**options, "columns": "event,scope,stream,segment_id,offset"})
    reader = source.reader(source.schema())
    partitions = reader.partitions()
    rows = [row for partition in partitions for row in rows_of(reader, partition)]
    assert numbers([row.event for row in rows]) == list(range(30))
    assert {piece.segment_id for partition in partitions for piece in partition.slices} == owners(client, stream)


def test_the_rest_of_the_segments_too(client, stream, options):
    del options["format"], options["avro_schema"], options["routing_key_field"]
    found = [row for batch in MicroBatches().run(**options, keep_other_keys="true") for row in batch.rows]
    assert {row.segment_id for row in found} == owners(client, stream)
    expected = client.read(stream, key=ONE, keep_other_keys=True)
    assert sorted(row.event for row in found) == sorted(expected)
    assert len(found) < 30 * len(CAMERAS)


def test_spark(spark: SparkSession, stream: StreamName, options: dict[str, str], client: PravegaClient):
    client.seal_stream(stream)
    frame = spark.read.format("pravega").options(**options).load()
    assert sorted(row.n for row in frame.collect()) == list(range(30))
    query = (
        spark.readStream.format("pravega").options(**options).load()
        .writeStream.format("memory").queryName("one_key").trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    assert sorted(row.n for row in spark.table("one_key").collect()) == list(range(30))


def test_a_checkpoint_of_another_key_is_refused(stream, options):
    query = MicroBatches()
    list(query.run(**options))
    others = {**options, "routing_key": CAMERAS[3]}
    with pytest.raises(ConfigError, match="reads routing key 'camera 7', but this query reads routing key 'camera 3'"):
        list(query.run(**others))
    with pytest.raises(ConfigError, match="'start_stream_cut' has the position of a query that reads only"):
        list(MicroBatches().run(**{**others, "start_stream_cut": query.offsets[-1]}))
    del options["routing_key"]
    with pytest.raises(ConfigError, match="but this query reads all routing keys"):
        list(query.run(**options))


def test_the_lag_of_a_checkpoint_is_that_of_the_segments_of_the_key(client, config, stream, options, tmp_path):
    query = MicroBatches()
    list(query.run(**options))
    for folder, text in (("offsets", f"v1\n{{}}\n{query.offsets[-1]}"), ("commits", "v1\n{}")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0").write_text(text)
    tail = client.tail(stream).to_text()
    write(client, stream, range(30, 40))
    client.scale_stream(stream, 4)
    write(client, stream, range(40, 50))
    shown = CliRunner().invoke(lag, [str(tmp_path), "--controller", config.controller, "--json"])
    assert shown.exit_code == 0, shown.output
    behind = client.read_columns(stream, start=tail, key=ONE, keep_other_keys=True).size
    assert json.loads(shown.stdout)["streams"][str(stream)]["bytes"] == behind


def test_losses_in_other_segments_are_not_losses_of_the_query(client, config, stream_name, options):
    """Truncation deletes everything before the cut, also in the segments of the key: only that is lost."""
    cut = client.tail(stream_name)
    write(client, stream_name, range(30, 35))
    position = segment_key(ONE)
    current = client.controller.current_segments(stream_name)
    (owner,) = [each.id for each in current if each.low <= position < each.high]
    ahead = client.tail(stream_name)
    client.truncate(StreamCut(stream_name, {**ahead.positions, owner: cut.positions[owner]}))
    options["start_stream_cut"] = cut.to_text()
    rows = [row for batch in MicroBatches().run(**options) for row in batch.rows]
    assert numbers([row.event for row in rows]) == list(range(30, 35))
    client.truncate(ahead)
    with pytest.raises(DataLossError, match=f"segment {owner}"):
        list(MicroBatches().run(**options))


def test_a_field_that_is_not_the_routing_key(stream, options):
    options["routing_key_field"] = "n"
    with pytest.raises(RoutingKeyError, match=r"segment \d+, offset \d+: .*'\d+', which belongs to another segment"):
        list(MicroBatches().run(**options))
    source = PravegaDataSource({**options, "routing_key_field": "tenant"})
    schema = source.schema()
    with pytest.raises(ConfigError, match="'routing_key_field' does not name a decoded column"):
        source.reader(schema)


def test_an_export_of_one_key(config, stream, options, tmp_path):
    del options["path"]
    summary = export_stream(str(stream), tmp_path / "one.jsonl", **options)
    rows = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert rows == [{"camera": ONE, "n": number} for number in range(30)]
    assert (summary.events, summary.rows) == (30, 30)
