"""A DataFrame's columns as events: events, routing keys, or an error before any task."""

import json
import pickle

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BinaryType, LongType, MapType, StringType, StructType

from pravega_connector.errors import ColumnTypeError, ConfigError, NullEventError
from pravega_connector.rows.columns import serializer_of
from pravega_connector.rows.encoding import EventEncoder, encoder_for
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.testing import mock_confluent_registry
from pravega_serde.java import ClassDescriptor, JavaEnum, JavaSerializer
from pravega_serde.routing import segment_keys
from tests.unit.registry._rules import encrypting, register

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


def test_the_column_routing_key_is_not_a_part_of_a_typed_event():
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
            {"format": "avro", "avro_schema": '{"type":"record","name":"R","fields":[{"name":"c","type":"string"}]}'},
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
        (ROWS.schema, {"format": "json", "routing_key_field": "order.x"}, ColumnTypeError, "'order.x' is not"),
        (ROWS.schema, {"format": "java"}, ColumnTypeError, "java_sample"),
        (pa.schema([("event", pa.int32())]), {}, ColumnTypeError, "int32"),
        (pa.schema([("Routing_Key", pa.string())]), {"format": "json"}, ColumnTypeError, "in another case"),
    ],
)
def test_what_cannot_be_written(schema: pa.Schema, options: dict[str, str], error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        encoder(schema, **options)


def test_rows_without_columns_are_refused():
    source = PravegaDataSource({"controller": "tcp://127.0.0.1:9", "stream": "a/b", "format": "json"})
    for made in (source.writer, source.streamWriter):
        with pytest.raises(ColumnTypeError, match="no columns"):
            made(StructType([]), False)


def test_a_null_event_names_its_row():
    rows = pa.RecordBatch.from_pydict({"event": [b"a", None]})
    with pytest.raises(NullEventError, match="row 1"):
        encoder(rows.schema).encode(rows)


COLOR = ClassDescriptor("shop.Color", 0, 0x12, (), ClassDescriptor("java.lang.Enum", 0, 0x12))
LINE = ClassDescriptor.of("shop.Line", 1, {"count": "int", "color": "shop.Color"})
CART = ClassDescriptor.of(
    "shop.Cart", 1, {"id": "long", "color": "shop.Color", "lines": "java.util.List", "by_name": "java.util.Map"}
)


def test_a_java_sample_reports_enums_and_what_lists_maps_and_objects_hold():
    red = JavaEnum(COLOR, "RED")
    cart = CART.new(id=1, color=red, lines=[LINE.new(count=2, color=red)], by_name={"k": red})
    sample = JavaSerializer().serialize(cart).hex()
    line = pa.struct([("count", pa.int32()), ("color", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("color", pa.string()),
            ("lines", pa.list_(line)),
            ("by_name", pa.map_(pa.string(), pa.string())),
        ]
    )
    row = {"id": 5, "color": "BLUE", "lines": [{"count": 1, "color": "RED"}], "by_name": [("a", "BLUE")]}
    events, _ = encoder(schema, format="java", java_sample=sample).encode(pa.RecordBatch.from_pylist([row], schema))
    value = JavaSerializer().deserialize(events[0].as_py())
    assert value["color"] == JavaEnum(COLOR, "BLUE")
    assert (value["lines"][0].class_name, value["lines"][0]["color"]) == ("shop.Line", red)
    assert value["by_name"] == {"a": JavaEnum(COLOR, "BLUE")}
    # Reading by the same sample needs no schema.
    options = parse_options(SourceOptions, {"path": "s/t", "format": "java", "java_sample": sample})
    decoder = serializer_of(options, None)
    assert decoder is not None
    assert decoder.get().decode_column(events).to_pylist() == [row]


def test_a_field_that_the_sample_leaves_open_is_not_a_string():
    sample = JavaSerializer().serialize(CART.new(id=1)).hex()
    with pytest.raises(ColumnTypeError, match=r"shop\.Cart\.color.*neither null nor empty"):
        encoder(pa.schema([("color", pa.string())]), format="java", java_sample=sample)


INSIDE = StructType().add("x", LongType()).add("x", LongType())


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (StructType().add("event", BinaryType()).add("event", BinaryType()), "the DataFrame has two columns 'event'"),
        (StructType().add("a", INSIDE), "column 'a' has two fields 'x'"),
        (StructType().add("a", ArrayType(MapType(StringType(), INSIDE))), "column 'a' has two fields 'x'"),
    ],
)
@pytest.mark.parametrize("options", [{"stream": "s/s"}, {"stream": "s/s", "format": "json"}, {"table": "t/t"}])
def test_names_of_columns_are_unique(schema: StructType, options: dict[str, str], words: str):
    source = PravegaDataSource({"controller": "tcp://127.0.0.1:1"} | options)
    for call in (source.reader, lambda each: source.writer(each, False), lambda each: source.streamWriter(each, False)):
        with pytest.raises(ColumnTypeError, match=f"{words}; rename one of them with alias"):
            call(schema)


@pytest.mark.parametrize(("algorithm", "works"), [("AES256_SIV", True), ("AES256_GCM", False)])
def test_rules_with_random_nonces_are_refused_for_exactly_once(algorithm: str, works: bool) -> None:
    uri = f"confluent+mock://nonces-{algorithm}"
    schema = {"type": "record", "name": "R", "fields": [{"name": "name", "type": "string", "confluent:tags": ["PII"]}]}
    register(mock_confluent_registry(uri), "s", schema, encrypting(algorithm))
    rows = pa.RecordBatch.from_pydict({"name": ["ann"]}, pa.schema([pa.field("name", pa.string(), nullable=False)]))
    place = {"registry": uri, "group": "s", "format": "avro"}
    encoder(rows.schema, **place, writer_mode="at_least_once")
    if works:
        encoder(rows.schema, **place, writer_mode="exactly_once", txn_app_id="a", txn_version="1")
        return
    with pytest.raises(ConfigError, match=r"use AES256_SIV.*or set writer_mode=at_least_once"):
        encoder(rows.schema, **place, writer_mode="exactly_once", txn_app_id="a", txn_version="1")
