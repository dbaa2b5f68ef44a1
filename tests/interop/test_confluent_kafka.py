"""Events of confluent-kafka's serializers, with a real Confluent-compatible registry between it and ours."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory, type_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from pravega_serde.errors import (
    DeserializationError,
    RegistryConflictError,
    RegistryNotFoundError,
    SchemaError,
    SerdeError,
)
from pravega_serde.registry import (
    RegistryConfig,
    WithSchema,
    deserializer,
    multi_type_serializer,
    serializer,
    with_schema_serializer,
)

_PROTOS: Final = Path(__file__).parents[1] / "integration" / "registry"
#: Without it, indexes of message types are numbers without zigzag, which Java cannot read.
_PROTOBUF: Final = {"use.deprecated.format": False}
_NUMBERS: Final = itertools.count()

ORDER: Final = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": ["null", "string"], "default": None}],
}
ORDER_2: Final = {**ORDER, "fields": [*ORDER["fields"], {"name": "cups", "type": "int", "default": 1}]}  # type: ignore[misc]
ORDERS: Final = [{"id": 1, "item": "tea"}, {"id": 2**40, "item": None}, {"id": -3, "item": "müsli"}]
JSON: Final = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
    "required": ["id"],
}


@pytest.fixture(scope="module")
def uri(confluent: str) -> str:
    return f"confluent+{confluent}"


@pytest.fixture(scope="module")
def theirs(confluent: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": confluent}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], type[Message]]:
    made = tmp_path_factory.mktemp("proto") / "gold.set"
    options = [f"-I{_PROTOS}", f"--descriptor_set_out={made}", "gold.proto"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options], check=True, timeout=60)
    pool = descriptor_pool.DescriptorPool()
    for file in FileDescriptorSet.FromString(made.read_bytes()).file:
        pool.Add(file)  # type: ignore[no-untyped-call]
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"com.example.proto.{name}"))


def at(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def rows(column: pa.Array) -> list[Any]:
    found: list[Any] = column.to_pylist()
    return found


# ---- Avro ----


def test_avro_of_theirs(uri, theirs, topic):
    write = AvroSerializer(theirs, json.dumps(ORDER))
    events = [write(order, at(topic)) for order in ORDERS]
    reader = deserializer(uri, group=f"{topic}-value")
    assert [reader.deserialize(event) for event in events] == ORDERS
    assert rows(reader.decode_column(pa.array([*events, None]))) == [*ORDERS, None]


def test_avro_of_ours(uri, theirs, topic):
    writer = serializer(uri, group=f"{topic}-value", schema=ORDER, format="avro", register_schema=True)
    read = AvroDeserializer(theirs)
    assert [read(writer.serialize(order), at(topic)) for order in ORDERS] == ORDERS
    column = writer.encode_column(pa.array(ORDERS, writer.arrow_type))
    assert rows(column) == [writer.serialize(order) for order in ORDERS]


def test_both_write_the_same_avro(uri, theirs, topic):
    event = AvroSerializer(theirs, json.dumps(ORDER, indent=2))(ORDERS[0], at(topic))
    # Neither white space nor the order of registration makes another schema.
    ours = serializer(uri, group=f"{topic}-value", schema=ORDER, format="avro", register_schema=True)
    assert ours.serialize(ORDERS[0]) == event
    assert theirs.get_versions(f"{topic}-value") == [1]


def test_avro_versions_are_resolved(uri, theirs, topic):
    first = AvroSerializer(theirs, json.dumps(ORDER))(ORDERS[0], at(topic))
    running = deserializer(uri, group=f"{topic}-value")
    assert rows(running.decode_column(pa.array([first]))) == [ORDERS[0]]
    second = AvroSerializer(theirs, json.dumps(ORDER_2))({**ORDERS[1], "cups": 7}, at(topic))
    # The columns of a reader that exists stay as they are.
    assert rows(running.decode_column(pa.array([second, first]))) == [ORDERS[1], ORDERS[0]]
    assert running.deserialize(second) == {**ORDERS[1], "cups": 7}
    later = deserializer(RegistryConfig(uri=uri, latest_seconds=0), group=f"{topic}-value")
    assert rows(later.decode_column(pa.array([first, second]))) == [{**ORDERS[0], "cups": 1}, {**ORDERS[1], "cups": 7}]
    strict = deserializer(uri, group=f"{topic}-value", schema=ORDER, format="avro", evolution="corrupt")
    errors: list[DeserializationError] = []
    assert rows(strict.decode_column(pa.array([first, second]), on_error=errors.append)) == [ORDERS[0], None]
    assert [(error.row, error.encoding_id) for error in errors] == [(1, int.from_bytes(second[1:5], "big"))]


def test_avro_references(uri, theirs, topic):
    item = {"type": "record", "name": "Item", "namespace": "shop", "fields": [{"name": "name", "type": "string"}]}
    theirs.register_schema(f"{topic}-item", Schema(json.dumps(item), "AVRO"))
    cart = {
        "type": "record",
        "name": "Cart",
        "namespace": "shop",
        "fields": [
            {"name": "first", "type": "Item"},
            {"name": "rest", "type": {"type": "array", "items": "shop.Item"}},
        ],
    }
    schema = Schema(json.dumps(cart), "AVRO", [SchemaReference("shop.Item", f"{topic}-item", 1)])
    value = {"first": {"name": "tea"}, "rest": [{"name": "milk"}, {"name": "müsli"}]}
    event = AvroSerializer(theirs, schema)(value, at(topic))
    reader = deserializer(uri, group=f"{topic}-value")
    assert reader.deserialize(event) == value
    assert rows(reader.decode_column(pa.array([event]))) == [value]


def test_an_incompatible_schema_is_refused(uri, topic, theirs):
    subject = f"{topic}-value"
    serializer(uri, group=subject, schema=ORDER, format="avro", register_schema=True)
    theirs.set_compatibility(subject, level="BACKWARD")
    other = {**ORDER, "fields": [{"name": "id", "type": {"type": "array", "items": "int"}}]}
    with pytest.raises(RegistryConflictError, match="incompatible with those of the subject"):
        serializer(uri, group=subject, schema=other, format="avro", register_schema=True)


# ---- JSON ----


def test_json_of_theirs(uri, theirs, topic):
    write = JSONSerializer(json.dumps(JSON), theirs)
    values = [{"id": 1, "item": "tea"}, {"id": 2}]
    events = [write(value, at(topic)) for value in values]
    reader = deserializer(uri, group=f"{topic}-value")
    assert [reader.deserialize(event) for event in events] == values
    assert rows(reader.decode_column(pa.array(events))) == [{"id": 1, "item": "tea"}, {"id": 2, "item": None}]


def test_json_of_ours(uri, theirs, topic):
    # A title is not a name that has to be given: only Pravega's registry has names of JSON schemas.
    schema = {name: value for name, value in JSON.items() if name != "title"}
    writer = serializer(uri, group=f"{topic}-value", schema=schema, format="json", register_schema=True)
    read = JSONDeserializer(json.dumps(schema), schema_registry_client=theirs)
    assert read(writer.serialize({"id": 1, "item": "tea"}), at(topic)) == {"id": 1, "item": "tea"}
    column = writer.encode_column(pa.array([{"id": 2, "item": "milk"}], writer.arrow_type))
    assert read(column[0].as_py(), at(topic)) == {"id": 2, "item": "milk"}
    reader = deserializer(uri, group=f"{topic}-value")
    assert rows(reader.decode_column(column)) == [{"id": 2, "item": "milk"}]


# ---- Protobuf ----

ALARM: Final = {"level": "HIGH", "msg": "hot", "tags": ["a", "b"], "inner": {"a": -1, "b": 5, "packed": [1, 2]}, "n": 9}


@pytest.mark.parametrize("name", ["SensorP", "AlarmP", "AlarmP.Inner"])
def test_protobuf_of_theirs(name, uri, theirs, topic, messages):
    kind = messages(name)
    values = {
        "SensorP": [{"id": 1, "name": "a", "temp": 2.5}, {"id": 2}],
        "AlarmP": [ALARM, {}],
        "AlarmP.Inner": [ALARM["inner"], {}],
    }[name]
    assert isinstance(values, list)
    written = [kind(**value) for value in values]
    write = ProtobufSerializer(kind, theirs, _PROTOBUF)
    events = [write(message, at(topic)) for message in written]
    reader = deserializer(uri, group=f"{topic}-value", type=f"com.example.proto.{name}")
    assert [reader.deserialize(event).SerializeToString() for event in events] == [
        message.SerializeToString() for message in written
    ]
    decoded = rows(reader.decode_column(pa.array(events)))
    for value, row in zip(values, decoded, strict=True):
        assert {key: row[key] for key in value} == value


def test_several_messages_of_a_file(uri, theirs, topic, messages):
    sensor, alarm = messages("SensorP"), messages("AlarmP")
    events = [
        ProtobufSerializer(sensor, theirs, _PROTOBUF)(sensor(id=1), at(topic)),
        ProtobufSerializer(alarm, theirs, _PROTOBUF)(alarm(msg="hot"), at(topic)),
        ProtobufSerializer(sensor, theirs, _PROTOBUF)(sensor(id=2), at(topic)),
    ]
    names = ["com.example.proto.SensorP", "com.example.proto.AlarmP"]
    both = deserializer(uri, group=f"{topic}-value", type=names)
    found = rows(both.decode_column(pa.array(events)))
    assert [row["SensorP"] and row["SensorP"]["id"] for row in found] == [1, None, 2]
    assert [row["AlarmP"] and row["AlarmP"]["msg"] for row in found] == [None, "hot", None]
    # Without a choice, the first message of the file has the columns; another one is an error, never null.
    first = deserializer(uri, group=f"{topic}-value")
    errors: list[DeserializationError] = []
    assert [row and row["id"] for row in rows(first.decode_column(pa.array(events), on_error=errors.append))] == [
        1,
        None,
        2,
    ]
    assert [error.row for error in errors] == [1]
    assert "AlarmP" in errors[0].reason


@pytest.mark.parametrize("name", ["SensorP", "AlarmP"])
def test_protobuf_of_ours(name, uri, theirs, topic, messages):
    kind = messages(name)
    message = kind(**({"id": 1, "name": "a"} if name == "SensorP" else ALARM))
    writer = serializer(uri, group=f"{topic}-value", schema=kind, register_schema=True)
    read = ProtobufDeserializer(kind, _PROTOBUF, theirs)
    assert read(writer.serialize(message), at(topic)) == message
    column = writer.encode_column(writer.decode_column(pa.array([writer.serialize(message)])))
    assert read(column[0].as_py(), at(topic)) == message
    # Theirs finds what ours has registered, and the event is the same, byte for byte.
    known = ProtobufSerializer(kind, theirs, {**_PROTOBUF, "auto.register.schemas": False, "use.latest.version": True})
    assert known(message, at(topic)) == writer.serialize(message)


def test_protobuf_imports(uri, theirs, topic):
    message = type_pb2.Enum(name="Level", source_context={"file_name": "x.proto"})
    event = ProtobufSerializer(type_pb2.Enum, theirs, _PROTOBUF)(message, at(topic))
    reader = deserializer(uri, group=f"{topic}-value", type="google.protobuf.Enum")
    assert reader.deserialize(event).SerializeToString() == message.SerializeToString()
    ours = serializer(uri, group=f"{topic}-value", schema=type_pb2.Enum)
    assert ours.serialize(message) == event


def test_protobuf_schemas_that_are_text(uri, theirs, topic):
    item = 'syntax = "proto3"; package shop; message Item { string name = 1; }'
    cart = (
        'syntax = "proto3"; package shop; import "shop/item.proto"; import "google/protobuf/timestamp.proto"; '
        "message Cart { repeated Item items = 1; google.protobuf.Timestamp at = 2; }"
    )
    theirs.register_schema(f"{topic}-item", Schema(item, "PROTOBUF"))
    reference = SchemaReference("shop/item.proto", f"{topic}-item", 1)
    number = theirs.register_schema(f"{topic}-value", Schema(cart, "PROTOBUF", [reference]))
    event = b"\0" + number.to_bytes(4, "big") + b"\0" + bytes.fromhex("0a050a03746561")
    reader = deserializer(uri, group=f"{topic}-value")
    assert rows(reader.decode_column(pa.array([event]))) == [{"items": [{"name": "tea"}], "at": None}]
    broken = theirs.register_schema(f"{topic}-broken", Schema(cart, "PROTOBUF"))
    with pytest.raises(SchemaError, match=r"invalid Protobuf file .*shop/item\.proto"):
        reader.deserialize(b"\0" + broken.to_bytes(4, "big") + b"\0")


# ---- errors ----


def test_ids_that_the_registry_does_not_have(uri, topic):
    writer = serializer(uri, group=f"{topic}-value", schema=ORDER, format="avro", register_schema=True)
    known, unknown = writer.serialize(ORDERS[0]), b"\0\x7f\0\0\0\x02"
    reader = deserializer(uri, group=f"{topic}-value")
    for read in (lambda: reader.deserialize(unknown), lambda: reader.decode_column(pa.array([known, unknown]))):
        with pytest.raises(RegistryNotFoundError, match="read the schema with id 2130706432"):
            read()
    lenient = deserializer(uri, group=f"{topic}-value", unknown_ids="corrupt")
    errors: list[DeserializationError] = []
    events = [unknown, known, b"\0\x7f\0\0\x01", known]
    assert rows(lenient.decode_column(pa.array(events), on_error=errors.append)) == [None, ORDERS[0], None, ORDERS[0]]
    assert [error.row for error in errors] == [0, 2]
    with pytest.raises(RegistryNotFoundError, match=r"subject 'nothing': the subject does not exist"):
        _ = deserializer(uri, group="nothing").arrow_type
    with pytest.raises(RegistryNotFoundError, match="set register_schema"):
        serializer(uri, group="nothing", schema=ORDER, format="avro")


def test_message_indexes_that_the_file_does_not_have(uri, topic, messages):
    writer = serializer(uri, group=f"{topic}-value", schema=messages("SensorP"), register_schema=True)
    good = writer.serialize({"id": 1})
    bad = [good[:5] + indexes for indexes in (b"\x02\x08", b"\x01", b"", b"\xff\xff\xff\xff\xff", b"\x02\x04\x0a")]
    errors: list[DeserializationError] = []
    reader = deserializer(uri, group=f"{topic}-value")
    found = rows(reader.decode_column(pa.array([*bad, good]), on_error=errors.append))
    assert [row and row["id"] for row in found] == [*[None] * len(bad), 1]
    assert [error.row for error in errors] == list(range(len(bad)))
    for event in bad:
        with pytest.raises(DeserializationError, match="encoding id"):
            reader.deserialize(event)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"codec": "gzip"}, "have no codec"),
        ({"write_encoding_header": False}, "require their header"),
        ({"namespace": "n"}, "has no namespaces"),
    ],
)
def test_settings_of_pravegas_registry(uri, settings, match):
    with pytest.raises(SerdeError, match=match):
        serializer(uri, group="g", schema=ORDER, format="avro", **settings)


# ---- several registries in one stream ----


@pytest.fixture
def mixed(uri: str, registry: str, topic: str) -> tuple[list[bytes], Any]:
    """Events of Pravega's registry and of Confluent's, alternately, and a reader of both."""
    settings: dict[str, Any] = {"schema": ORDER, "format": "avro", "register_schema": True}
    own = serializer(registry, group=topic, create_group=True, **settings)
    foreign = serializer(uri, group=f"{topic}-value", **settings)
    events = [each.serialize(order) for order in ORDERS for each in (own, foreign)]
    return events, deserializer(registry, group=topic, also={uri: f"{topic}-value"})


def test_mixed_framings(mixed):
    events, reader = mixed
    expected = [order for order in ORDERS for _ in range(2)]
    assert [reader.deserialize(event) for event in events] == expected
    assert rows(reader.decode_column(pa.array([*events, None]))) == [*expected, None]
    errors: list[DeserializationError] = []
    found = rows(reader.decode_column(pa.array([b"\x02?", *events, b"\0\0\0"]), on_error=errors.append))
    assert found == [None, *expected, None]
    assert [error.row for error in errors] == [0, 7]


def test_registries_with_the_same_framing(uri):
    with pytest.raises(SerdeError, match="have the same header"):
        deserializer(uri, group="a", also={uri.replace("127.0.0.1", "localhost"): "b"})


def test_several_types_and_schemas_per_event(uri, theirs, topic):
    subject = f"{topic}-value"
    refund = {"type": "record", "name": "shop.Refund", "fields": [{"name": "id", "type": "long"}]}
    writer = multi_type_serializer(
        uri,
        group=subject,
        schemas={"order": ORDER, "refund": refund},
        format="avro",
        register_schema=True,
        type_of=lambda value: "order" if "item" in value else "refund",
    )
    values = [ORDERS[0], {"id": 9}]
    events = [writer.serialize(value) for value in values]
    read = AvroDeserializer(theirs)
    assert [read(event, at(topic)) for event in events] == values
    assert rows(writer.decode_column(pa.array(events))) == [
        {"Order": ORDERS[0], "Refund": None},
        {"Order": None, "Refund": {"id": 9}},
    ]
    each = with_schema_serializer(uri, group=subject)
    found = each.deserialize(events[1])
    assert found.schema.type == "shop.Refund"
    assert each.serialize(WithSchema({"id": 9}, found.schema)) == events[1]
