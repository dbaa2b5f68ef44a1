"""What becomes of a DataFrame's columns: events, routing keys, or an error before any task."""

import json
import pickle

import pyarrow as pa
import pytest

from connector.errors import ColumnTypeError, ConfigError, NullEventError
from connector.options import parse_options
from connector.sink import EventEncoder, SinkOptions, encoder_for
from pravega_serde.routing import segment_keys

ROWS = pa.RecordBatch.from_pylist(
    [
        {"id": 1, "order": {"customer": "ann", "n": 2.5}, "name": "x", "vip": True},
        {"id": 2, "order": None, "name": "y", "vip": False},
    ]
)
RAW = pa.RecordBatch.from_pydict({"event": [b"a", b"b"], "routing_key": ["k", None]})


def encoder(schema: pa.Schema, **options: str) -> EventEncoder:
    made = encoder_for(schema, parse_options(SinkOptions, options))
    copied: EventEncoder = pickle.loads(pickle.dumps(made))
    return copied


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({}, None),
        ({"routing_key_field": "name"}, ["x", "y"]),
        ({"routing_key_field": "id"}, ["1", "2"]),
        ({"routing_key_field": "vip"}, ["true", "false"]),
        ({"routing_key_field": "order.customer"}, ["ann", None]),
        ({"routing_key": "all"}, ["all", "all"]),
    ],
)
def test_routing_keys_of_typed_rows(options: dict[str, str], keys: list[str | None] | None):
    events, found = encoder(ROWS.schema, format="json", **options).encode(ROWS)
    assert [json.loads(event) for event in events.to_pylist()] == ROWS.to_pylist(), "the key stays part of the event"
    assert (None if found is None else found.to_pylist()) == keys
    if found is not None:
        assert len(segment_keys(found)) == 2


def test_the_column_routing_key_is_no_part_of_a_typed_event():
    rows = pa.RecordBatch.from_pydict({"n": [1], "routing_key": ["k"]})
    events, keys = encoder(rows.schema, format="json").encode(rows)
    assert (events.to_pylist(), keys.to_pylist()) == ([b'{"n":1}'], ["k"])
    events, keys = encoder(rows.schema, format="json", routing_key="c").encode(rows)
    assert (events.to_pylist(), keys.to_pylist()) == ([b'{"n":1,"routing_key":"k"}'], ["c"])
    events, keys = encoder(rows.schema, format="json", routing_key_field="routing_key").encode(rows)
    assert (events.to_pylist(), keys.to_pylist()) == ([b'{"n":1,"routing_key":"k"}'], ["k"])


def test_raw_events():
    events, keys = encoder(RAW.schema).encode(RAW)
    assert (events.to_pylist(), keys.to_pylist()) == ([b"a", b"b"], ["k", None])
    events, keys = encoder(RAW.select(["event"]).schema, routing_key="c").encode(RAW)
    assert (events.to_pylist(), keys.to_pylist()) == ([b"a", b"b"], ["c", "c"])
    nested = pa.RecordBatch.from_pylist([{"event": b"a", "order": {"customer": "ann"}}])
    events, keys = encoder(nested.schema, routing_key_field="order.customer").encode(nested)
    assert (events.to_pylist(), keys.to_pylist()) == ([b"a"], ["ann"])


@pytest.mark.parametrize(
    ("kind", "options", "event"),
    [
        (pa.string(), {"format": "string"}, b"v"),
        (pa.string(), {"format": "json"}, b'{"c":"v"}'),
        (pa.string(), {"format": "java"}, b"\xac\xed\x00\x05t\x00\x01v"),
        (pa.string(), {"format": "avro", "avro_schema": '"string"'}, b"\x02v"),
        (
            pa.string(),
            {
                "format": "avro",
                "avro_schema": '{"type":"record","name":"R","fields":[{"name":"c","type":"string"}]}',
            },
            b"\x02v",
        ),
    ],
)
def test_a_single_column_is_the_event_or_a_record_of_it(kind: pa.DataType, options: dict[str, str], event: bytes):
    rows = pa.RecordBatch.from_pydict({"c": pa.array(["v"], kind)})
    assert encoder(rows.schema, **options).encode(rows)[0].to_pylist() == [event]


@pytest.mark.parametrize(
    ("schema", "options", "error", "words"),
    [
        (ROWS.schema, {}, ColumnTypeError, "no column 'event'"),
        (RAW.schema, {"routing_key": "c"}, ColumnTypeError, "routing_key would not be written"),
        (RAW.schema, {"routing_key": "c", "routing_key_field": "event"}, ConfigError, "set only one"),
        (ROWS.schema, {"format": "json", "routing_key_field": "order.n"}, ColumnTypeError, "'order.n' is double"),
        (
            ROWS.schema,
            {"format": "json", "routing_key_field": "order.x"},
            ColumnTypeError,
            "'order.x' is not",
        ),
        (ROWS.schema, {"format": "java"}, ColumnTypeError, "java_sample"),
        (pa.schema([("event", pa.int32())]), {}, ColumnTypeError, "int32"),
    ],
)
def test_what_cannot_be_written(schema: pa.Schema, options: dict[str, str], error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        encoder(schema, **options)


def test_a_null_event_names_its_row():
    rows = pa.RecordBatch.from_pydict({"event": [b"a", None]})
    with pytest.raises(NullEventError, match="row 1"):
        encoder(rows.schema).encode(rows)
