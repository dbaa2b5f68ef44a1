"""Serializers as functions, as other clients call them, and objects that only read."""

import pickle
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from pravega_connector import PravegaClient
from pravega_connector.testing import InProcessPravega, InProcessRegistry
from pravega_serde import (
    AvroSerializer,
    ByteArraySerializer,
    CborSerializer,
    DeserializationError,
    Deserializer,
    FunctionSerializer,
    JavaSerializer,
    JsonSerializer,
    ProtobufSerializer,
    UTF8StringSerializer,
    typed,
)
from pravega_serde.registry import deserializer, serializer

CALLS = [
    (AvroSerializer('"long"'), 7),
    (ByteArraySerializer(), b"tea"),
    (CborSerializer(), {"id": 7}),
    (FunctionSerializer(str.encode, bytes.decode), "tea"),
    (JavaSerializer(), "tea"),
    (JsonSerializer(), {"id": 7}),
    (ProtobufSerializer(FieldMask), FieldMask(paths=["a"])),
    (UTF8StringSerializer(), "tea"),
    (typed(JsonSerializer(), dict[str, int]), {"id": 7}),
]


@pytest.mark.parametrize(("given", "value"), CALLS, ids=lambda each: type(each).__name__)
def test_a_serializer_is_a_function_of_a_value(given: Any, value: Any):
    event = given(value)
    assert event == given(value, object()) == given.serialize(value)
    read = given.deserializer
    assert read(event) == read(event, None) == given.deserialize(event)
    assert given(None) is None
    assert read(None) is None


def test_a_deserializer_can_be_pickled():
    assert pickle.loads(pickle.dumps(UTF8StringSerializer().deserializer))(b"tea") == "tea"


def test_registry_serializers_are_functions():
    with InProcessRegistry() as registry:
        writer = serializer(
            registry.uri, group="g", schema='"long"', format="avro", create_group=True, register_schema=True
        )
        event = writer(7, None)
        reader = deserializer(registry.uri, group="g")
        assert reader(event, None) == writer.deserializer(event) == 7
        assert reader(None) is None


class Length:
    """Reader of the length of events."""

    arrow_type = pa.int64()

    def deserialize(self, data: bytes) -> int:
        return len(data)

    def decode_column(self, column: pa.Array, *, on_error: Any = None) -> pa.Array:
        return pa.array(map(self.deserialize, column.to_pylist()), self.arrow_type)


def test_an_object_that_only_reads_is_a_deserializer():
    reader: Deserializer[int] = Length()
    assert reader.decode_column(pa.array([b"tea"])).to_pylist() == [3]
    with InProcessPravega() as server, PravegaClient(server.uri) as client:
        client.create_stream("s/x")
        client.write("s/x", "tea", "string")
        assert list(client.read("s/x", reader)) == [3]
        assert pa.table(client.read_columns("s/x", reader))["value"].to_pylist() == [3]
    with pytest.raises(DeserializationError):
        JsonSerializer().deserializer(b"{")
