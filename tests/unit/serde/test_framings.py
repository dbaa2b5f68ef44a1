"""Events in the framings of other systems: AWS Glue, Azure, delimited Protobuf, gRPC and compression."""

import gzip
import io
import pickle
import random
import struct
import uuid
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.internal.encoder import _VarintBytes
from google.protobuf.proto import serialize_length_prefixed

from pravega_serde import (
    AvroSerializer,
    DeserializationError,
    Enveloped,
    Framed,
    JsonSerializer,
    LimitExceededError,
    ProtobufSerializer,
    SerdeError,
    SerializationError,
    UTF8StringSerializer,
)

ORDERS = AvroSerializer(
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}]}
)
ORDER = {"id": 7, "item": "tea"}
BODY = ORDERS.serialize(ORDER)
VERSION = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
SCHEMA_ID = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"


def grpc(payload: bytes, flag: int = 0) -> bytes:
    return bytes([flag]) + struct.pack(">I", len(payload)) + payload


def glue(payload: bytes, flag: int = 0) -> bytes:
    return bytes([3, flag]) + uuid.UUID(VERSION).bytes + payload


def delimited(payload: bytes) -> bytes:
    return _VarintBytes(len(payload)) + payload


#: Framing -> its forms of a payload, as other libraries write them; the first is ours.
FORMS: dict[str, list[Callable[[bytes], bytes]]] = {
    "aws-glue": [glue, lambda payload: glue(zlib.compress(payload), 5)],
    "azure": [lambda payload: bytes(4) + SCHEMA_ID.encode() + payload, lambda payload: SCHEMA_ID.encode() + payload],
    "delimited": [delimited],
    "grpc": [grpc, lambda p: grpc(gzip.compress(p), 1), lambda p: grpc(zlib.compress(p), 1)],
    "gzip": [gzip.compress],
    "zlib": [zlib.compress, lambda payload: zlib.compress(payload, 9)],
}
IDS = {"aws-glue": VERSION, "azure": SCHEMA_ID}
#: Framing -> events without it.
OTHERS = {
    "aws-glue": [b"", b"\x03\x00" + bytes(15), b"\x03\x01" + bytes(30), b"\x00\x00" + bytes(30), glue(BODY, 5)],
    "azure": [b"", bytes(4) + SCHEMA_ID[:31].encode(), bytes(4) + b"g" * 32 + BODY, bytes(3) + SCHEMA_ID.encode()],
    "delimited": [b"", b"\x05abc", b"\x80\x80\x80\x80\x80\x01", b"\x80", delimited(BODY) * 2],
    "grpc": [b"", b"\0\0\0\0", b"\x02" + grpc(BODY)[1:], grpc(BODY) + b"x", grpc(BODY, 1)],
    "gzip": [b"", BODY, gzip.compress(BODY)[:-1]],
    "zlib": [b"", BODY, zlib.compress(BODY)[:-1], zlib.compress(BODY) + b"x"],
}


@pytest.mark.parametrize("framing", FORMS)
def test_each_form_is_read(framing: str):
    serializer = Framed(ORDERS, framing)
    events = [form(BODY) for form in FORMS[framing]]
    assert [serializer.deserialize(event) for event in events] == [ORDER] * len(events)
    for column in (events, [None, *events * 100, None], events[:1] * 300):
        read = serializer.decode_column(pa.array(column, pa.binary()))
        assert read.to_pylist() == [None if each is None else ORDER for each in column]
        assert read.type == serializer.arrow_type == ORDERS.arrow_type
    assert serializer.decode_column(pa.array([], pa.binary())).to_pylist() == []


@pytest.mark.parametrize("framing", FORMS)
def test_rows_and_columns_are_written_alike(framing: str):
    serializer = pickle.loads(pickle.dumps(Framed(ORDERS, framing, id=IDS.get(framing))))
    event = serializer.serialize(ORDER)
    if framing != "gzip":
        assert event == FORMS[framing][0](BODY)
    column = pa.array([ORDER, None, ORDER], ORDERS.arrow_type)
    assert serializer.encode_column(column).to_pylist() == [event, None, event]
    assert serializer(ORDER) == event
    assert serializer.deserializer(event) == ORDER
    serializer.check_encodable(ORDERS.arrow_type)


@pytest.mark.parametrize("framing", FORMS)
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 129, 16382, 16383, 16384, 16385, 16386, 2_100_000])
def test_payloads_of_each_size(framing: str, size: int):
    serializer = Framed(UTF8StringSerializer(), framing, id=IDS.get(framing))
    text = "a" * size
    event = serializer.serialize(text)
    assert serializer.deserialize(event) == text
    assert serializer.decode_column(pa.array([event] * 3)).to_pylist() == [text] * 3


@pytest.mark.parametrize("framing", FORMS)
def test_other_events_are_malformed(framing: str):
    serializer = Framed(ORDERS, framing)
    good = FORMS[framing][0](BODY)
    for event in OTHERS[framing]:
        with pytest.raises(DeserializationError):
            serializer.deserialize(event)
        with pytest.raises(DeserializationError) as caught:
            serializer.decode_column(pa.array([good, None, event]))
        assert caught.value.row == 2
    mixed = [good, FORMS[framing][0](b"\xff"), None, *OTHERS[framing], good]
    errors: list[DeserializationError] = []
    read = serializer.decode_column(pa.array(mixed), on_error=errors.append)
    assert read.to_pylist() == [ORDER, *[None] * (len(mixed) - 2), ORDER]
    assert [error.row for error in errors] == [1, *range(3, len(mixed) - 1)]


@pytest.mark.parametrize("framing", FORMS)
def test_random_bytes_are_read_alike_by_row_and_by_column(framing: str):
    rng = random.Random(framing)
    serializer = Framed(UTF8StringSerializer(), framing)
    events = []
    for _ in range(400):
        event = bytearray(FORMS[framing][0](rng.randbytes(rng.choice([0, 3, 200]))))
        if event and rng.random() < 0.3:
            event[rng.randrange(min(len(event), 40))] = rng.randrange(256)
        events.append(bytes(event))

    def value(event: bytes) -> Any:
        try:
            return serializer.deserialize(event)
        except DeserializationError:
            return None

    read = serializer.decode_column(pa.array(events), on_error=lambda _: None)
    assert read.to_pylist() == [value(event) for event in events]


def test_messages_of_protobuf_s_own_writer():
    message = FieldDescriptorProto(name="cups", number=3)
    out = io.BytesIO()
    serialize_length_prefixed(message, out)
    serializer = Framed(ProtobufSerializer(FieldDescriptorProto), "delimited")
    assert serializer.serialize(message) == out.getvalue()
    assert serializer.deserialize(out.getvalue()) == message


def test_frames_and_envelopes_can_be_nested():
    columns = pa.schema([("id", pa.int64())])
    inner = Framed(Enveloped(JsonSerializer(arrow_type=columns), source="/s", type="t"), "zlib")
    outer = Framed(inner, "grpc")
    (row,) = outer.decode_column(outer.encode_column(pa.array([{"value": {"id": 1}}]))).to_pylist()
    assert row["value"] == {"id": 1}


def test_a_small_event_cannot_fill_the_memory():
    bomb = zlib.compress(bytes(100 << 20), 9)
    for framing, event in (("zlib", bomb), ("aws-glue", glue(bomb, 5)), ("grpc", grpc(bomb, 1))):
        with pytest.raises(LimitExceededError):
            Framed(UTF8StringSerializer(), framing).deserialize(event)


def test_names_and_ids_are_checked():
    with pytest.raises(SerdeError, match=r"unknown framing 'gprc'; did you mean 'grpc'\?; known: aws-glue, azure"):
        Framed(ORDERS, "gprc")
    with pytest.raises(SerdeError, match="for aws-glue it is the UUID of a schema version"):
        Framed(ORDERS, "aws-glue", id="7")
    with pytest.raises(SerdeError, match="for azure it is a schema id of 32 hex digits"):
        Framed(ORDERS, "azure", id="7")
    with pytest.raises(SerdeError, match="the framing 'zlib' has no id"):
        Framed(ORDERS, "zlib", id="7")
    for framing in IDS:
        for write in (lambda s: s.serialize(ORDER), lambda s: s.encode_column(pa.array([ORDER]))):
            with pytest.raises(SerializationError, match="requires an id to write"):
                write(Framed(ORDERS, framing))
    assert repr(Framed(UTF8StringSerializer(), "zlib")) == "Framed(UTF8StringSerializer(), 'zlib')"
