"""Bytes that nobody should send: only the library's own errors come out, soon, and without much memory."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pravega_serde import DeserializationError, LimitExceededError
from pravega_serde.java import JavaKey, JavaObject, JavaSerializer, Limits, dump_stream, load_stream
from pravega_serde.java._jdk_table import jdk_descriptor

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
    """Whatever stands in a column, the fast path and the plain one agree."""
    for serializer in COLUMNS:
        errors: list[DeserializationError] = []
        found = serializer.decode_column(pa.array([*events, sample], pa.binary()), on_error=errors.append)
        plain = JavaSerializer(serializer.java_type)
        plain._fast = None
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


def descriptor(name: str) -> bytes:
    return dump_stream([jdk_descriptor(name)])[4:]


#: The beginning of an ``Object[]``, up to its length.
ARRAY = HEADER + bytes.fromhex("757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870")


def repeated(first: bytes, again: bytes) -> bytes:
    """An ``Object[]`` of one object written in full and then as often as fits."""
    count = (MEBIBYTE - len(ARRAY) - 4 - len(first)) // len(again) + 1
    return ARRAY + struct.pack(">i", count) + first + again * (count - 1)


#: The array's own descriptor and object take two handles, so the class of its first element has this one.
CLASS = bytes.fromhex("71007e0002")


def many(name: str, data: bytes) -> bytes:
    return repeated(b"\x73" + descriptor(name) + data, b"\x73" + CLASS + data)


def deep_arrays() -> bytes:
    inner = bytes.fromhex("7571007e000000000001")
    return ARRAY + struct.pack(">i", 1) + inner * (MEBIBYTE // len(inner))


def deep_lists() -> bytes:
    one = b"\0\0\0\1\x77\4\0\0\0\1"
    return HEADER + b"\x73" + descriptor("java.util.ArrayList") + (one + bytes.fromhex("7371007e0000")) * 60_000


def colliding_keys() -> bytes:
    """A HashMap of numbers that are one number modulo 2**61 - 1, and so have one hash in Python."""
    numbers = [(2**61 - 1) * (i + 2**70) for i in range(12_000)]
    return SERIALIZER.serialize({JavaKey(number): None for number in numbers})


def shared_list_in_vectors() -> bytes:
    """Many Vectors that share one long array."""
    array = b"\x75" + bytes.fromhex("71007e0000") + struct.pack(">i", 100_000) + b"\x70" * 100_000
    first = b"\x73" + descriptor("java.util.Vector") + struct.pack(">ii", 0, 100_000) + array + b"\x78"
    data = struct.pack(">ii", 0, 100_000) + bytes.fromhex("71007e0005") + b"\x78"
    return repeated(first, b"\x73" + CLASS + data)


def shared_magnitude() -> bytes:
    """Many BigIntegers that share one long byte array."""
    array = (
        b"\x75" + bytes.fromhex("7200025b42acf317f8060854e00200007870") + struct.pack(">i", 400_000) + b"\x7f" * 400_000
    )
    numbers = struct.pack(">iiiii", -1, -1, -2, -2, 1)
    first = b"\x73" + descriptor("java.math.BigInteger") + numbers + array + b"\x78"
    return repeated(first, b"\x73" + CLASS + numbers + bytes.fromhex("71007e0007") + b"\x78")


def many_classes() -> bytes:
    classes = (b"\x72\0\x08" + f"c{i:07}".encode() + b"\0" * 11 + b"\x78\x70" for i in range(40_000))
    return ARRAY + struct.pack(">i", 40_000) + b"".join(classes)


BOMBS: dict[str, Callable[[], bytes]] = {
    "nested arrays": deep_arrays,
    "nested lists": deep_lists,
    "colliding keys": colliding_keys,
    "shared array": shared_list_in_vectors,
    "shared magnitude": shared_magnitude,
    "empty sets": lambda: many("java.util.Collections$EmptySet", b""),
    "empty lists": lambda: many("java.util.Collections$EmptyList", b""),
    "deques": lambda: many("java.util.ArrayDeque", b"\x77\4\0\0\0\0\x78"),
    "hash sets": lambda: many("java.util.HashSet", b"\x77\x0c\0\0\0\x10\x3f\x40\0\0\0\0\0\0\x78"),
    "maps": lambda: many("java.util.LinkedHashMap", b"\x3f\x40\0\0\0\0\0\0\x77\x08\0\0\0\x10\0\0\0\0\x78\0"),
    "integers": lambda: many("java.lang.Integer", b"\0\0\0\5"),
    "dates": lambda: many("java.util.Date", b"\x77\x08" + b"\0" * 8 + b"\x78"),
    "uuids": lambda: many("java.util.UUID", b"\1" * 16),
    "nulls": lambda: repeated(b"\x70", b"\x70"),
    "empty strings": lambda: repeated(b"\x74\0\0", b"\x74\0\0"),
    "short strings": lambda: repeated(b"\x74\0\1x", b"\x74\0\1x"),
    "overlong text": lambda: HEADER + b"\x7c" + struct.pack(">q", MEBIBYTE) + b"\xc1\x81" * (MEBIBYTE // 2),
    "surrogates": lambda: HEADER + b"\x7c" + struct.pack(">q", 3 * 340_000) + b"\xed\xa0\x80" * 340_000,
    "classes": many_classes,
    "ends of annotations": lambda: HEADER + b"\x78" * MEBIBYTE,
    "exceptions": lambda: HEADER + b"\x7b" * MEBIBYTE,
    "resets": lambda: HEADER + b"\x79" * MEBIBYTE,
    "blocks": lambda: HEADER + b"\x73" + descriptor("java.util.ArrayList") + b"\0\0\0\0" + b"\x77\0" * (MEBIBYTE // 2),
    "copies": lambda: HEADER + b"\x73" + descriptor("java.util.Collections$CopiesList") + b"\x7f\xff\xff\xff\x70",
    "huge array": lambda: HEADER + bytes.fromhex("757200025b494dba602676eab2a50200007870") + b"\x7f\xff\xff\xff",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str) -> None:
    """No hang over 1 s, no memory beyond 64 MiB, for less than a MiB or so of bytes."""
    event = BOMBS[name]()
    assert len(event) < 1.6 * MEBIBYTE
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
    with pytest.raises(LimitExceededError, match="inside each other"):
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


def test_a_writer_that_failed_says_so() -> None:
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
