"""Source and sink on events with Confluent's framing, as Spark's Python processes use them: without a session."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.rows.encoding import encoder_for
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.wire import StreamName
from pravega_serde.errors import DeserializationError, RegistryNotFoundError, RegistryUnavailableError
from pravega_serde.registry import serializer
from tests.integration.spark._registry_proxy import RegistryProxy

Place = dict[str, str]

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": ["null", "long"]}, {"name": "item", "type": ["null", "string"]}],
}
ORDER_2: dict[str, Any] = {**ORDER, "fields": [*ORDER["fields"], {"name": "cups", "type": "int", "default": 1}]}
ROWS = [{"id": 1, "item": "tea"}, {"id": 2, "item": "milk"}, {"id": None, "item": None}]
COLUMNS = pa.schema([("id", pa.int64()), ("item", pa.string())])


@pytest.fixture
def place(config: PravegaConfig, client: PravegaClient, stream_name: StreamName, confluent: str) -> Place:
    """Options of a new stream. Its subject has the name of Confluent's for a topic."""
    client.create_stream(stream_name)
    return {"controller": config.controller, "registry": f"confluent+{confluent}", "path": str(stream_name)}


def read(source: PravegaDataSource, schema: Any = None) -> list[dict[str, Any]]:
    """Return the rows of a batch read. The reader is pickled, as for a worker."""
    reader = pickle.loads(pickle.dumps(source.reader(schema or source.schema())))
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def encode(place: Place, **options: str) -> list[bytes]:
    """Return the events of ``ROWS``. The encoder is pickled, as for a worker."""
    encoder = pickle.loads(pickle.dumps(encoder_for(COLUMNS, parse_options(SinkOptions, place | options))))
    events: list[bytes] = encoder.serializer.get().encode_column(pa.array(ROWS, pa.struct(COLUMNS))).to_pylist()
    return events


def write(client: PravegaClient, stream: StreamName, events: list[bytes]) -> None:
    with client.writer(stream) as writer:
        for event in events:
            writer.write(event, routing_key="one")


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_rows_come_back_as_they_were(client, stream_name, place, name):
    events = encode(place, format=name, registry_type="shop.Order", register_schema="true")
    assert {event[:1] for event in events} == {b"\0"}
    write(client, stream_name, events)
    source = PravegaDataSource(dict(place))
    assert source.schema().simpleString() == "struct<id:bigint,item:string>"
    assert read(source) == ROWS
    assert encode(place) == events  # the registered schema has these columns


def test_the_ids_of_events_are_a_column(client, stream_name, place):
    events = encode(place, format="avro", registry_type="shop.Order", register_schema="true")
    write(client, stream_name, events)
    rows = read(PravegaDataSource({**place, "columns": "encoding_id"}))
    assert [row["encoding_id"] for row in rows] == [int.from_bytes(event[1:5]) for event in events]


def test_a_query_keeps_its_columns(client, stream_name, place, confluent):
    proxy = RegistryProxy(confluent)
    try:
        through = {**place, "registry": f"confluent+{proxy.uri}", "timeout_ms": "1000", "mode": "PERMISSIVE"}
        settings: dict[str, Any] = {"group": f"{stream_name.stream}-value", "format": "avro", "register_schema": True}
        first = serializer(place["registry"], schema=ORDER, **settings)
        write(client, stream_name, [first.serialize(row) for row in ROWS])
        source = PravegaDataSource(through)
        schema = source.schema()
        second = serializer(place["registry"], schema=ORDER_2, **settings)
        write(client, stream_name, [second.serialize({"id": 3, "item": "rice", "cups": 7})])
        # The columns are from the schema at planning time.
        expected = [*ROWS, {"id": 3, "item": "rice"}]
        good = {"_corrupt_record": None, "_corrupt_record_error": None}
        assert [row | good for row in expected] == read(PravegaDataSource(through), schema)
        latest = PravegaDataSource(dict(place))
        assert [row["cups"] for row in read(latest)] == [1, 1, 1, 7]
        # Without the registry, no event becomes a malformed record.
        third = serializer(place["registry"], schema={**ORDER_2, "doc": "the third"}, **settings)
        write(client, stream_name, [third.serialize({"id": 4, "item": "salt", "cups": 9})])
        reader = PravegaDataSource(through).reader(schema)
        partitions = reader.partitions()
        proxy.close()
        with pytest.raises(RegistryUnavailableError, match=proxy.uri):
            [batch for part in partitions for batch in reader.read(part)]
        proxy.open()
        assert len(read(PravegaDataSource(through), schema)) == 5
    finally:
        proxy.close()


def test_two_registries_in_one_stream(client, stream_name, place, registry):
    write(client, stream_name, encode(place, format="avro", registry_type="shop.Order", register_schema="true"))
    own = serializer(
        registry, group=stream_name.stream, schema=ORDER, format="avro", create_group=True, register_schema=True
    )
    write(client, stream_name, [own.serialize({"id": 9, "item": "own"})])
    also = {"also_registry": place["registry"], "also_group": f"{stream_name.stream}-value"}
    assert read(PravegaDataSource({**place, "registry": registry, **also})) == [*ROWS, {"id": 9, "item": "own"}]
    with pytest.raises(DeserializationError, match="invalid registry header"):
        read(PravegaDataSource(dict(place)))
    assert read(PravegaDataSource({**place, "mode": "DROPMALFORMED"})) == ROWS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"also_registry": "http://h:1"}, "belong together"),
        ({"also_group": "g"}, "belong together"),
        ({"also_registry_password": "secret"}, "'also_registry_password' requires option 'also_registry'"),
    ],
)
def test_options_of_a_second_registry(place, options, words):
    with pytest.raises(ConfigError, match=words) as error:
        PravegaDataSource(place | options).schema()
    assert "secret" not in str(error.value)


def test_a_subject_that_does_not_exist(place, stream_name):
    with pytest.raises(RegistryNotFoundError, match=f"subject '{stream_name.stream}-value'"):
        PravegaDataSource(dict(place)).schema()
    with pytest.raises(RegistryNotFoundError, match="set register_schema"):
        encode(place, format="avro")
