"""protobuf-java reads what is written here, value by value and byte by byte, and the other way round."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_serde import DeserializationError
from pravega_serde.protobuf import ProtobufSerializer
from tests.interop.java_proto._descriptors import everything, older
from tests.interop.java_proto._peer import ProtoPeer
from tests.unit.serde._protobuf import ALL, FIELDS, MALFORMED

DOCUMENTS = [
    {"struct": {"a": [1, None, "x", {"b": True}], "": 0.5}, "value": "x", "list": [1, []], "values": [None, 1.5, {}]},
    {"value": None, "values": [True, False]},
]
CHOICES = [
    {"c_text": ""},
    {"c_i32": 0},
    {"c_level": "BELOW"},
    {"c_inner": {}},
    {"any": {"type_url": "type.googleapis.com/everything.Everything", "value": b"\x08\x05"}},
]
OLDER = [
    {"id": 1},
    {"id": -1, "text": "", "plain": [1, -1], "packed": [1, 300, -1]},
    {"id": 0, "part": {"x": 5, "y": ["a", ""]}, "closed": "B", "all": ["A", "B"], "map": {"": "x", "é": ""}},
]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> ProtoPeer:
    return ProtoPeer(tmp_path_factory.mktemp("java_proto"))


def serializer(name: str) -> ProtobufSerializer:
    return ProtobufSerializer(files_of(name), message_type=name)


def files_of(name: str) -> FileDescriptorSet:
    return older() if name.startswith("older.") else everything()


def as_json(message: Any) -> Any:
    pool = message.DESCRIPTOR.file.pool
    return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)


def some(chance: random.Random) -> dict[str, Any]:
    """A value of many fields, each with one of the values that the tests of types have."""
    years = {"at": datetime(1 + chance.randrange(9998), 1, 2, 3, 4, 5, 678901, tzinfo=UTC)}
    times = {"took": timedelta(microseconds=chance.randrange(-(1 << 40), 1 << 40)), "r_at": [years["at"]]}
    chosen = {name: chance.choice(values) for name, _, values, _ in FIELDS if chance.random() < 0.6}
    return {**chosen, **years, **times, **chance.choice(CHOICES)}


def values_to_write() -> list[tuple[str, dict[str, Any]]]:
    chance = random.Random(4)
    single = [{name: value} for name, _, values, _ in FIELDS for value in values if value is not None]
    found = [("everything.Everything", value) for value in [*single, *CHOICES, *(some(chance) for _ in range(200))]]
    found += [("everything.Documents", value) for value in DOCUMENTS]
    return found + [("older.Older", value) for value in OLDER]


def test_java_reads_what_is_written_here(java: ProtoPeer) -> None:
    written = [(name, serializer_of.serialize(value)) for name, value, serializer_of in with_serializers()]
    assert len(written) > 300
    for files in (everything(), older()):
        events = [(name, event) for name, event in written if files_of(name) is files]
        for (name, event), read in zip(events, java.verify(files, events), strict=True):
            assert "error" not in read, (event.hex(), read)
            assert read["value"] == as_json(serializer(name).deserialize(event)), event.hex()
            assert read["hex"] == event.hex(), "Java writes the same bytes"


def with_serializers() -> list[tuple[str, dict[str, Any], ProtobufSerializer]]:
    made = {name: serializer(name) for name in ("everything.Everything", "everything.Documents", "older.Older")}
    return [(name, value, made[name]) for name, value in values_to_write()]


def test_what_java_wrote_is_read_here(java: ProtoPeer) -> None:
    generated = java.generate(everything(), 7, 300, "everything.Everything", "everything.Flat", "everything.Tree")
    generated += java.generate(older(), 8, 60, "older.Older", "older.Holder")
    by_type: dict[str, list[dict[str, Any]]] = {}
    for event in generated:
        by_type.setdefault(event["message"], []).append(event)
    assert len(by_type) == 5
    for name, events in by_type.items():
        reader = serializer(name)
        data = [bytes.fromhex(event["hex"]) for event in events]
        messages = [reader.deserialize(each) for each in data]
        assert [as_json(message) for message in messages] == [event["value"] for event in events]
        assert_written_alike(reader, messages, data)
        if name != "everything.Tree":
            assert_read_alike(reader, messages, data)


def assert_written_alike(reader: ProtobufSerializer, messages: list[Any], data: list[bytes]) -> None:
    """Byte by byte, but for the order of a map's entries, which is Java's own."""
    same = 0
    for message, event in zip(messages, data, strict=True):
        written = reader.serialize(message)
        assert len(written) == len(event)
        assert sorted(written) == sorted(event)
        same += written == event
        assert reader.serialize(reader.as_dict(message)) == written or has_nanos(message)
    assert same > len(data) / 3


def has_nanos(message: Any) -> bool:
    """Return True if a message has times finer than Python's."""
    return "." in str(as_json(message).get("at")) or "took" in str(as_json(message)) or "r_at" in str(as_json(message))


def assert_read_alike(reader: ProtobufSerializer, messages: list[Any], data: list[bytes]) -> None:
    column = pa.array(data)
    if reader.arrow_type.get_field_index("part") < 0 and "olders" not in reader.arrow_type.names:
        assert not len(reader.column_reader.fast(column).suspects)
    decoded = reader.decode_column(column)
    values = [reader.column_reader.plain.read(event) for event in data]
    assert decoded.equals(pa.array(values, reader.arrow_type))


def test_java_refuses_what_is_refused_here(java: ProtoPeer) -> None:
    # Java takes tags and lengths in more bytes than they need, and more than Google's own parser allows.
    events = [("everything.Everything", event) for event, reason, _ in MALFORMED if "tag or length" not in reason]
    assert all("error" in read for read in java.verify(everything(), events))
    required = [("older.Older", b""), ("older.Holder", b"\x0a\x00")]
    for (name, event), read in zip(required, java.verify(older(), required), strict=True):
        assert "required" in read["error"]
        with pytest.raises(DeserializationError, match="required"):
            serializer(name).deserialize(event)


def test_strings_that_are_not_utf8(java: ProtoPeer) -> None:
    (new,) = java.verify(everything(), [("everything.Everything", b"\x72\x03a\xed\xa0")])
    assert "UTF-8" in new["error"]
    event = b"\x08\x01\x12\x03a\xed\xa0"
    (old,) = java.verify(older(), [("older.Older", event)])
    reader = serializer("older.Older")
    assert old["value"]["text"] == reader.as_dict(reader.deserialize(event))["text"]
    assert reader.serialize(reader.deserialize(event)) == event, "what was wrong is kept"


def test_unknown_fields_and_enum_values_survive_in_java_and_here(java: ProtoPeer) -> None:
    event = b"\x08\x05\x80\x01\x63\xa2\x38\x02hi"
    (read,) = java.verify(everything(), [("everything.Everything", event)])
    assert read["hex"] == ALL.serialize(ALL.deserialize(event)).hex() == event.hex()
    assert read["value"]["level"] == 99
    assert ALL.as_dict(ALL.deserialize(event))["level"] == "99"
