"""The decoders of the JVM reader: what they accept is what Python reads; a schema without a decoder has a reason."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from pravega_connector.spark.jvm.decoding import steps
from pravega_connector.spark.jvm.messages import NotInJvmError
from pravega_serde.avro import AvroSerializer
from pravega_serde.errors import LimitExceededError
from pravega_serde.protobuf import ProtobufSerializer
from tests.fuzz.jvm_decoders import FORMATS, Java, run
from tools import jvm

EVENTS = 6000


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    if jvm.compiler() is None:
        pytest.skip("no JDK")
    with Java() as process:
        yield process


@pytest.mark.parametrize("name", FORMATS)
def test_random_and_malformed_events_are_decoded_as_in_python(java: Java, name: str) -> None:
    seen: Counter[str] = Counter()
    assert list(run(java, name, EVENTS, 20261128, seen)) == []
    assert seen["compared"] == 3 * EVENTS
    if name == "string":  # malformed bytes become U+FFFD
        assert seen["doubts of bad events"] == 0
    else:
        assert seen["doubts of bad events"] > EVENTS // 10
    accepted = seen["compared"] - seen["doubts of bad events"] - seen["doubts of good events"]
    assert accepted > EVENTS // 2
    # Of a registry, some events are compressed, or of a version that is registered after the plan was made.
    rare = accepted if name.endswith("-registry") else accepted // 2
    assert seen["doubts of good events"] < rare, "of the random events, only unusual ones are left to Python"


def record(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (["null", "R"], "contains itself"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}, "more than 38 digits"),
        ({"type": "array", "items": "null"}, "items that may have no bytes"),
    ],
)
def test_an_avro_schema_that_python_reads(kind: Any, reason: str) -> None:
    with pytest.raises(NotInJvmError, match=reason):
        steps(AvroSerializer(record(kind)))


def test_an_avro_event_that_may_exceed_the_memory_limit_is_left_to_python() -> None:
    nulls = {"type": "record", "name": "N", "fields": [{"name": "f", "type": ["null", "int"]}]}
    serializer = AvroSerializer(record({"type": "array", "items": nulls}))
    largest = steps(serializer)["decoders"][0]["largest"]

    def event(size: int) -> bytes:
        items = size - 8
        number, out = items << 1, bytearray()
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        return bytes([*out, number]) + bytes(items + 1)

    assert len(serializer.decode_column(pa.array([event(largest)]))) == 1
    with pytest.raises(LimitExceededError):
        serializer.decode_column(pa.array([event(4 * largest)]))


def test_a_protobuf_length_of_more_than_five_bytes_is_malformed(java: Java) -> None:
    files = FileDescriptorSet()
    made = files.file.add(name="one.proto", syntax="proto3").message_type.add(name="One")
    made.field.add(
        name="text", number=1, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    serializer = ProtobufSerializer(files, message_type="One")
    events = [b"\n" + b"\x80" * more + b"\0" for more in range(10)]
    errors: list[int | None] = []
    serializer.decode_column(pa.array(events), on_error=lambda error: errors.append(error.row))
    found = java.decode(steps(serializer), pa.schema(list(serializer.arrow_type)), events)
    assert [row for row, line in enumerate(found) if line is None] == errors == [5, 6, 7, 8, 9]
