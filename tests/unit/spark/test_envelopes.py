"""Envelopes in Spark: the columns that are read, the events and routing keys that are written, errors in options."""

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.spark.options import parse_options
from pravega_connector.spark.options.sink import SinkOptions
from pravega_connector.spark.options.source import SourceOptions
from pravega_connector.spark.sink.encoding import EventEncoder, encoder_for
from pravega_connector.spark.source.columns import decoded_fields, serializer_of, with_never_null

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
