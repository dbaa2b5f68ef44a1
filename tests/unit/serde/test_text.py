"""UTF-8 strings by Java's rules, and bytes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import SchemaError, SerializationError
from pravega_serde.text import ByteArraySerializer, ByteBufferSerializer, UTF8StringSerializer, java_decode

VECTORS = Path(__file__).parents[2] / "vectors"
TEXT, BYTES = UTF8StringSerializer(), ByteArraySerializer()
#: Bytes that make malformed sequences likely.
TRICKY = st.lists(st.sampled_from(bytes.fromhex("41 80 90 9f a0 bf c0 c2 e0 e1 ed ef f0 f1 f4 f5 ff 00"))).map(bytes)


def vectors(name: str, **wanted: str) -> list[dict[str, Any]]:
    with (VECTORS / name).open(encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [vector for vector in found if wanted.items() <= {key: str(value) for key, value in vector.items()}.items()]


def java_text(utf16le_hex: str) -> str:
    return bytes.fromhex(utf16le_hex).decode("utf-16-le", "surrogatepass")


def read_row(data: bytes) -> str:
    return TEXT.deserialize(data)


def read_column(data: bytes) -> str:
    values = TEXT.decode_column(pa.array([b"before", data, "ü".encode()]))
    assert values.to_pylist()[::2] == ["before", "ü"]
    text: str = values[1].as_py()
    return text


PATHS = pytest.mark.parametrize("read", [read_row, read_column])


@PATHS
@pytest.mark.parametrize(
    "vector", vectors("simple_serializers.jsonl", serializer="UTF8StringSerializer"), ids=lambda v: v["case"]
)
def test_reads_what_java_wrote(read: Any, vector: dict[str, Any]) -> None:
    assert read(bytes.fromhex(vector["hex"])) == vector["java_value"]["v"]


@PATHS
def test_replaces_malformed_bytes_as_java_does(read: Any) -> None:
    checked = 0
    for vector in vectors("text_golden.jsonl", kind="utf8_decode"):
        assert read(bytes.fromhex(vector["hex"])) == java_text(vector["utf16le"]), vector
        checked += 1
    assert checked == 2000


@pytest.mark.parametrize(
    "vector", vectors("simple_serializers.jsonl", serializer="UTF8StringSerializer"), ids=lambda v: v["case"]
)
def test_writes_what_java_wrote(vector: dict[str, Any]) -> None:
    if "malformed" not in vector["case"]:
        assert TEXT.serialize(vector["java_value"]["v"]).hex() == vector["hex"]


def test_replaces_lone_surrogates_as_java_does() -> None:
    checked = 0
    for vector in vectors("text_golden.jsonl", kind="utf8_encode"):
        assert TEXT.serialize(java_text(vector["utf16le"])).hex() == vector["hex"]
        checked += 1
    assert checked == 300


def test_a_surrogate_pair_in_two_halves_is_one_character() -> None:
    assert TEXT.serialize("\ud83d" + "\ude00") == "😀".encode()


@given(st.lists(st.none() | TRICKY | st.binary() | st.text().map(str.encode), max_size=80))
def test_columns_read_as_rows_do(events: list[bytes | None]) -> None:
    expected = [None if event is None else java_decode(event) for event in events]
    column = pa.array(events, pa.binary())
    assert TEXT.decode_column(column).to_pylist() == expected
    assert TEXT.decode_column(column).type == TEXT.arrow_type
    assert TEXT.decode_column(column.slice(1)).to_pylist() == expected[1:]
    assert TEXT.decode_column(column.cast(pa.large_binary())).to_pylist() == expected


@given(st.lists(st.none() | st.text()))
def test_text_survives(values: list[str | None]) -> None:
    column = pa.array(values, pa.string())
    events = TEXT.encode_column(column)
    assert events.to_pylist() == [None if value is None else TEXT.serialize(value) for value in values]
    assert TEXT.decode_column(events).equals(column)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_writes_every_string_layout(kind: pa.DataType) -> None:
    column = pa.array(["a", None, "ü", "a"], pa.string()).cast(kind)
    TEXT.check_encodable(kind)
    assert TEXT.encode_column(column).to_pylist() == [b"a", None, "ü".encode(), b"a"]
    assert TEXT.encode_column(pa.chunked_array([column, column[:1]])).to_pylist()[-1] == b"a"


@pytest.mark.parametrize(
    "vector", vectors("simple_serializers.jsonl", serializer="ByteArraySerializer"), ids=lambda v: v["case"]
)
def test_bytes_are_themselves(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["java_value"]["hex"])
    assert BYTES.serialize(data) == bytes.fromhex(vector["hex"]) == BYTES.deserialize(data)
    assert BYTES.decode_column(BYTES.encode_column(pa.array([data, None]))).to_pylist() == [data, None]


@pytest.mark.parametrize(
    "vector", vectors("simple_serializers.jsonl", serializer="ByteBufferSerializer"), ids=lambda v: v["case"]
)
def test_a_view_is_the_bytes_between_position_and_limit(vector: dict[str, Any]) -> None:
    view = memoryview(bytes.fromhex(vector["array_hex"]))[vector["position"] : vector["limit"]]
    assert BYTES.serialize(view) == bytes.fromhex(vector["hex"])


def test_a_mebibyte_is_fine() -> None:
    data = bytes(range(256)) * 4096
    assert BYTES.decode_column(pa.array([data]))[0].as_py() == data
    assert TEXT.serialize(TEXT.deserialize(b"x" * 1_000_000)) == b"x" * 1_000_000


@pytest.mark.parametrize(("serializer", "value"), [(TEXT, b"x"), (TEXT, None), (BYTES, "x"), (BYTES, 3)])
def test_other_types_are_refused(serializer: Any, value: object) -> None:
    with pytest.raises(SerializationError, match=f"not {type(value).__name__}"):
        serializer.serialize(value)


@pytest.mark.parametrize(("serializer", "kind"), [(TEXT, pa.int64()), (TEXT, pa.binary()), (BYTES, pa.float32())])
def test_other_column_types_are_refused(serializer: Any, kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="cast the column"):
        serializer.encode_column(pa.nulls(2, kind))


def test_only_bytes_can_be_decoded() -> None:
    with pytest.raises(SchemaError, match="int64 cannot contain events"):
        TEXT.decode_column(pa.array([1]))


class TestByteBuffer:
    BUFFER = ByteBufferSerializer()

    @pytest.mark.parametrize(
        "vector", vectors("simple_serializers.jsonl", serializer="ByteBufferSerializer"), ids=lambda v: v["case"]
    )
    def test_writes_what_java_wrote(self, vector: dict[str, Any]) -> None:
        view = memoryview(bytes.fromhex(vector["array_hex"]))[vector["position"] : vector["limit"]]
        assert self.BUFFER.serialize(view) == bytes.fromhex(vector["hex"])
        assert self.BUFFER.deserialize(bytes.fromhex(vector["hex"])) == view

    @pytest.mark.parametrize(
        "value",
        [b"abcd", bytearray(b"abcd"), memoryview(b"xabcdx")[1:5], memoryview(b"a-b-c-d-")[::2], pa.py_buffer(b"abcd")],
    )
    def test_takes_whatever_has_a_buffer(self, value: Any) -> None:
        assert self.BUFFER.serialize(value) == b"abcd"

    def test_takes_arrays_as_they_lie_in_memory(self) -> None:
        assert self.BUFFER.serialize(np.array([1, 256], ">i2")) == b"\0\1\1\0"

    def test_refuses_what_has_none(self) -> None:
        with pytest.raises(SerializationError, match="writes buffers, not str"):
            self.BUFFER.serialize("text")

    def test_reads_without_copying(self) -> None:
        event = b"abcd"
        view = self.BUFFER.deserialize(event)
        assert view.obj is event
        assert self.BUFFER.deserialize(bytearray(event)).readonly

    def test_columns_are_those_of_bytes(self) -> None:
        column = pa.array([b"a", None])
        assert self.BUFFER.decode_column(self.BUFFER.encode_column(column)) == column
        assert repr(self.BUFFER) == "ByteBufferSerializer()"
