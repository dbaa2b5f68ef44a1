"""Hostile bytes: only the library's own errors come out, soon, and without much memory."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, LimitExceededError
from pravega_serde.java import JavaObject, JavaSerializer, Limits, dump_stream, load_stream
from tests.fuzz.java_bombs import BOMBS

LINES = (Path(__file__).parents[2] / "vectors/java_serializer.jsonl").read_text().splitlines()
EVENTS = [
    bytes.fromhex(vector["hex"]) for vector in map(json.loads, LINES) if len(vector.get("hex", "")) in range(1, 4000)
]
SERIALIZER = JavaSerializer()
HEADER = bytes.fromhex("aced0005")
MEBIBYTE = 1 << 20


def attempt(event: bytes) -> object:
    """The value, or the library's error; anything else fails the test."""
    try:
        return SERIALIZER.deserialize(event)
    except DeserializationError as error:
        return error


@given(st.sampled_from(EVENTS), st.data())
@settings(max_examples=400, deadline=None)
def test_mutated_events(event: bytes, data: st.DataObject) -> None:
    mutated = bytearray(event)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(4, len(mutated) - 1))
        mutated[at] = data.draw(st.integers(0, 255) | st.sampled_from(range(0x70, 0x7F)))
    attempt(bytes(mutated))


@given(st.binary(max_size=200))
def test_random_bytes_behind_the_header(raw: bytes) -> None:
    attempt(HEADER + raw)


@given(
    st.lists(
        st.sampled_from([bytes([token]) for token in range(0x70, 0x80)] + [b"\0", b"\0\1", b"\x7e\0\0"]), max_size=60
    )
)
def test_random_tokens(tokens: list[bytes]) -> None:
    attempt(HEADER + b"".join(tokens))


@given(st.sampled_from(EVENTS), st.sampled_from(EVENTS), st.data())
@settings(max_examples=200, deadline=None)
def test_spliced_events(left: bytes, right: bytes, data: st.DataObject) -> None:
    attempt(left[: data.draw(st.integers(4, len(left)))] + right[data.draw(st.integers(4, len(right))) :])


@given(st.lists(st.sampled_from(EVENTS) | st.binary(max_size=90) | st.none(), max_size=12), st.sampled_from(EVENTS))
@settings(max_examples=200, deadline=None)
def test_columns_are_rows(events: list[bytes | None], sample: bytes) -> None:
    """The fast path and the plain one agree for all columns."""
    for serializer in COLUMNS:
        errors: list[DeserializationError] = []
        found = serializer.decode_column(pa.array([*events, sample], pa.binary()), on_error=errors.append)
        plain = JavaSerializer(serializer.java_type)
        plain.column_reader.fast = None
        plain_errors: list[DeserializationError] = []
        assert found.to_pylist() == plain.decode_column(
            pa.array([*events, sample], pa.binary()), on_error=plain_errors.append
        ).to_pylist() or "nan" in str(found)
        assert [error.row for error in errors] == [error.row for error in plain_errors]


COLUMNS = [
    JavaSerializer(kind)
    for kind in ("java.lang.String", "java.lang.Integer", "java.lang.Double", "byte[]", "java.lang.Character")
]
COLUMNS.append(JavaSerializer(sample=next(event for event in EVENTS if b"SensorEvent" in event and event[4] == 0x73)))


# Up to ten seconds each while memory is traced; others are built in the same way.
SLOW = {
    "blocks",
    "colliding longs",
    "dates",
    "deques",
    "empty lists",
    "empty sets",
    "empty strings",
    "hash sets",
    "integers",
    "maps",
    "nulls",
    "overlong text",
    "short strings",
    "uuids",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in SLOW else ()) for name in BOMBS])
def test_bombs(name: str) -> None:
    """No hang over 1 s, no memory beyond 64 MiB, for less than a MiB or so of bytes."""
    event = BOMBS[name]()
    assert len(event) < MEBIBYTE
    start = time.process_time()
    attempt(event)
    # Three times the bound: the machine may be busy, and the aim is to catch what is not linear.
    assert time.process_time() - start < 3
    tracemalloc.start()
    try:
        value = attempt(event)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * MEBIBYTE, f"{peak / MEBIBYTE:.0f} MiB for {type(value)}"


def test_limits_can_be_set() -> None:
    nested = SERIALIZER.serialize([[[[1]]]])
    for limits in (Limits(depth=3), Limits(handles=4), Limits(size=20), Limits(classes=1)):
        with pytest.raises(LimitExceededError):
            JavaSerializer(limits=limits).deserialize(nested)


def test_depth_up_to_the_limit_is_read_and_written() -> None:
    value: list[object] = []
    for _ in range(9_000):
        value = [value]
    event = SERIALIZER.serialize(value)
    assert SERIALIZER.serialize(SERIALIZER.deserialize(event)) == event
    with pytest.raises(LimitExceededError, match="nested more than"):
        JavaSerializer(limits=Limits(depth=8_000)).deserialize(event)


def test_errors_say_where() -> None:
    event = next(event for event in EVENTS if b"AllTypes" in event)
    with pytest.raises(DeserializationError, match=r"\$\.\w+") as caught:
        SERIALIZER.deserialize(event[:-10])
    assert caught.value.field_path
    with pytest.raises(DeserializationError, match="not a Java object stream"):
        SERIALIZER.deserialize(b"{}")
    with pytest.raises(DeserializationError, match="byte 4"):
        SERIALIZER.deserialize(HEADER + b"\x01")


def test_a_writer_that_failed_reports_it() -> None:
    thrown = next(event for event in EVENTS if b"RuntimeException" in event)
    with pytest.raises(DeserializationError, match=r"the Java writer failed .*java\.lang\.RuntimeException: boom"):
        SERIALIZER.deserialize(HEADER + b"\x7b" + thrown[4:] + b"\x79")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [(4, "protocol version 1"), (6, "both serializable and externalizable"), (0, "not serializable")],
)
def test_objects_that_cannot_be_read(flags: int, reason: str) -> None:
    described = b"\x72\0\1X" + struct.pack(">qBH", 1, flags, 0) + b"\x78\x70"
    with pytest.raises(DeserializationError, match=reason):
        SERIALIZER.deserialize(HEADER + b"\x73" + described + b"\0" * 20)


def test_primitive_fields_come_first() -> None:
    fields = struct.pack(">H", 2) + b"L\0\1a\x74\0\3LA;" + b"I\0\1b"
    described = b"\x72\0\1X" + struct.pack(">qB", 1, 2) + fields + b"\x78\x70"
    with pytest.raises(DeserializationError, match="illegal field order"):
        SERIALIZER.deserialize(HEADER + b"\x73" + described + b"\0" * 20)


def test_annotated_classes_as_rmi_writes_them() -> None:
    described = b"\x72\0\1X" + struct.pack(">qBH", 1, 2, 0) + b"\x74\0\4http\x70\x78\x70"
    event = HEADER + b"\x73" + described
    value = SERIALIZER.deserialize(event)
    assert value.descriptor.annotations == ("http", None)
    assert SERIALIZER.serialize(value) == event


def test_nothing_is_loaded_by_name() -> None:
    descriptor_of_os = b"\x72" + struct.pack(">H", 9) + b"os.system" + struct.pack(">qBH", 1, 2, 0) + b"\x78\x70"
    value = SERIALIZER.deserialize(HEADER + b"\x73" + descriptor_of_os)
    assert type(value) is JavaObject
    assert value.class_name == "os.system"


def test_streams_of_several_objects() -> None:
    shared = ["x"]
    stream = dump_stream([shared, shared, 5])
    first, second, number = load_stream(stream)
    assert first is second
    assert number == 5
    assert load_stream(HEADER + b"\x77\2ab" + b"\x74\0\1x" + b"\x79" + b"\x70") == [b"ab", "x", None]
