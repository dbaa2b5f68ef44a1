"""Envelopes and change events in Spark: columns that are read, events and routing keys that are written, errors."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pravega_connector.client import EventBatch
from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.rows.columns import decoded_fields, serializer_of, with_never_null
from pravega_connector.rows.encoding import EventEncoder, encoder_for
from pravega_connector.rows.inference import sampled_columns
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.testing import InProcessRegistry
from pravega_connector.wire import StreamName
from pravega_serde.registry import serializer as registry_serializer

REQUIRED = {"cloudevents_source": "/shop", "cloudevents_type": "order"}
JSON = {"format": "json", "envelope": "cloudevents"}
ROWS = pa.RecordBatch.from_pydict({"value": [{"item": "tea"}, {"item": "milk"}], "key": ["ann", None]})


def encoder(schema: pa.Schema, **options: str) -> EventEncoder:
    made: EventEncoder = pickle.loads(pickle.dumps(encoder_for(schema, parse_options(SinkOptions, options))))
    return made


def parsed(events: pa.Array) -> list[dict[str, Any]]:
    return [json.loads(event) for event in events.to_pylist()]


def test_rows_become_cloudevents_with_their_keys_as_routing_keys():
    events, keys = encoder(ROWS.schema, **JSON, **REQUIRED).encode(ROWS)
    assert keys.to_pylist() == ["ann", None]
    first, second = parsed(events)
    assert (first["source"], first["type"], first["partitionkey"], first["data"]) == (
        "/shop",
        "order",
        "ann",
        {"item": "tea"},
    )
    assert "partitionkey" not in second


@pytest.mark.parametrize(
    ("options", "routing", "keys"),
    [
        ({}, ["x", "y"], ["x", "y"]),
        ({"routing_key": "all"}, None, ["all", "all"]),
        ({"routing_key_field": "value.item"}, None, ["tea", "milk"]),
    ],
)
def test_other_routing_keys(options: dict[str, str], routing: list[str] | None, keys: list[str]):
    rows = ROWS if routing is None else ROWS.append_column("routing_key", pa.array(routing))
    events, found = encoder(rows.schema, **JSON, **REQUIRED, **options).encode(rows)
    assert found.to_pylist() == keys
    assert parsed(events)[0]["partitionkey"] == "ann"


def test_headers_make_the_options_optional():
    rows = pa.RecordBatch.from_pylist(
        [{"value": "tea", "headers": [("source", "/a"), ("type", "t")]}],
        pa.schema([("value", pa.string()), ("headers", pa.map_(pa.string(), pa.string()))]),
    )
    events, keys = encoder(rows.schema, format="string", envelope="cloudevents").encode(rows)
    assert keys is None
    assert (parsed(events)[0]["source"], parsed(events)[0]["data"]) == ("/a", "tea")


@pytest.mark.parametrize("envelope", ["cloudevents", "cloudevents+avro", "cloudevents+protobuf"])
def test_columns_of_a_read(envelope: str):
    options = parse_options(SourceOptions, {"format": "string", "envelope": envelope})
    serializer = serializer_of(options, None)
    fields = with_never_null(decoded_fields(options, serializer), options, serializer)
    assert [field.name for field in fields] == ["key", "time", "headers", "value"]
    assert [field.nullable for field in fields] == [True, True, False, True]


def test_only_the_wanted_columns_are_decoded():
    options = parse_options(SourceOptions, JSON)
    wanted = pa.schema([("key", pa.string()), ("value", pa.struct([("item", pa.string())]))])
    serializer = serializer_of(options, wanted)
    assert serializer is not None
    assert serializer.get().arrow_type.field("value").type == wanted.field("value").type
    event = encoder(ROWS.schema, **JSON, **REQUIRED).encode(ROWS)[0]
    without_value = serializer_of(options, pa.schema([("key", pa.string())]))
    assert without_value is not None
    assert without_value.get().decode_column(event).field("value").to_pylist()[0] == b'{"item":"tea"}'


def test_options_that_cannot_be():
    with pytest.raises(ConfigError, match="'envelope' requires option 'format'"):
        parse_options(SourceOptions, {"envelope": "cloudevents"})
    with pytest.raises(ConfigError, match="one of cloudevents, cloudevents"):
        parse_options(SourceOptions, {"envelope": "kafka"})
    with pytest.raises(ConfigError, match="requires option 'cloudevents_source', or a column 'headers'"):
        encoder(ROWS.schema, **JSON)
    with pytest.raises(ColumnTypeError, match="no column 'value' for the data"):
        encoder(pa.schema([("item", pa.string())]), **JSON, **REQUIRED)
    with pytest.raises(ColumnTypeError, match="no column 'item'"):
        encoder(pa.schema([("item", pa.string()), ("value", pa.string())]), **JSON, **REQUIRED)
    with pytest.raises(ColumnTypeError, match="'time' of an envelope is timestamp"):
        encoder(pa.schema([("time", pa.timestamp("us")), ("value", pa.string())]), **JSON, **REQUIRED)


def test_changes_of_a_database():
    row = pa.struct([("id", pa.int64())])
    wanted = pa.schema([("after", row), ("op", pa.string()), ("position", pa.string())])
    options = parse_options(SourceOptions, {"format": "json", "unwrap": "debezium"})
    serializer = serializer_of(options, wanted)
    assert serializer is not None
    event = {"op": "c", "after": {"id": 1}, "source": {"connector": "db2", "commit_lsn": "1", "change_lsn": "2"}}
    column = serializer.get().decode_column(pa.array([json.dumps(event).encode()]))
    assert column.to_pylist() == [{"after": {"id": 1}, "op": "c", "position": "1:2"}]
    fields = with_never_null(decoded_fields(options, serializer), options, serializer)
    assert [(field.name, field.nullable) for field in fields] == [("after", True), ("op", False), ("position", True)]


def test_columns_of_changes_are_inferred():
    client = _Client(
        [b'{"schema": {"a": [1, "x"]}, "payload": {"op": "d", "before": {"id": 1}, "source": {"db": "d"}}}']
    )
    options = parse_options(SourceOptions, {"format": "json", "unwrap": "debezium", "infer_schema": "true"})
    found = sampled_columns(client, options, [StreamName("a", "b")])  # type: ignore[arg-type]
    assert found is not None
    assert found.names == ["op", "before", "after", "ts", "position", "source"]
    assert str(found.field("after").type) == "struct<id: int64>"
    with pytest.raises(ColumnTypeError, match=r"not changes of Debezium.*set the columns"):
        sampled_columns(_Client([b'{"id": 1}']), options, [StreamName("a", "b")])  # type: ignore[arg-type]


def test_columns_of_envelopes_are_inferred():
    events = encoder(ROWS.schema, **JSON, **REQUIRED).encode(ROWS)[0].to_pylist()
    options = parse_options(SourceOptions, {**JSON, "infer_schema": "true"})
    found = sampled_columns(_Client([*events, b"{"]), options, [StreamName("a", "b")])  # type: ignore[arg-type]
    assert found is not None
    assert found.names == ["key", "time", "headers", "value"]
    assert str(found.field("value").type) == "struct<item: string>"


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with InProcessRegistry() as server:
        yield server.uri


def test_data_with_schemas_of_a_registry(registry: str):
    options = {"registry": registry, "group": "envelopes", "envelope": "cloudevents", "stream": "a/b"}
    new = {"format": "avro", "register_schema": "true", "create_group": "true"}
    events = encoder(ROWS.schema, **options, **REQUIRED, **new).encode(ROWS)[0]
    assert parsed(events)[0]["datacontenttype"] == "application/octet-stream"
    serializer = serializer_of(parse_options(SourceOptions, options), None)
    assert serializer is not None
    assert serializer.get().decode_column(events).field("value").to_pylist() == ROWS.column("value").to_pylist()


def test_changes_with_schemas_of_a_registry(registry: str):
    row = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "connector", "type": "string"}]}
    fields = {"after": row, "source": source, "op": "string"}
    schema = {"type": "record", "name": "Envelope", "fields": [{"name": n, "type": k} for n, k in fields.items()]}
    write = registry_serializer(
        registry, group="changes", schema=schema, format="avro", create_group=True, register_schema=True
    )
    event = write.serialize({"after": {"id": 1}, "source": {"connector": "db2"}, "op": "c"})
    options = {"registry": registry, "group": "changes", "unwrap": "debezium", "stream": "a/b"}
    wanted = pa.schema([("after", pa.struct([("id", pa.int64())])), ("op", pa.string())])
    for columns in (None, wanted):
        serializer = serializer_of(parse_options(SourceOptions, options), columns)
        assert serializer is not None
        assert serializer.get().decode_column(pa.array([event])).field("after").to_pylist() == [{"id": 1}]


def test_options_of_changes_that_cannot_be():
    with pytest.raises(ConfigError, match="'unwrap' requires option 'format' or 'registry'"):
        parse_options(SourceOptions, {"unwrap": "debezium"})
    with pytest.raises(ConfigError, match="'unwrap' and 'envelope' both"):
        parse_options(SourceOptions, {**JSON, "unwrap": "debezium"})


class _Client:
    """Client of one batch of events."""

    def __init__(self, events: list[bytes]) -> None:
        self._events = events

    def read_columns(self, stream: StreamName) -> Iterator[EventBatch]:
        yield EventBatch(stream, 0, pa.array(self._events, pa.binary()), np.arange(len(self._events)))
