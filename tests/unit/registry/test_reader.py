"""Reading events by their encoding ids: rows and columns alike, and whose fault it is when it does not go well."""

import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pravega_serde import (
    AvroSerializer,
    DeserializationError,
    LimitExceededError,
    SchemaError,
    SerdeError,
    SerializationError,
)
from pravega_serde.adapters import FunctionSerializer
from pravega_serde.errors import (
    RegistryError,
    RegistryNotFoundError,
    RegistryProtocolError,
    RegistryUnavailableError,
    UnsupportedCodecError,
    UnsupportedFormatError,
)
from pravega_serde.protobuf import protobuf_schema_of
from pravega_serde.registry import (
    CODEC_GZIP,
    CODEC_SNAPPY,
    CodecType,
    RegistryConfig,
    RegistryDeserializer,
    SchemaInfo,
    SerializationFormat,
    deserializer,
    encodings,
    event_type,
)
from pravega_serde.registry.header import PRAVEGA
from tests.unit.registry._scripted import Scripted, scripted
from tests.unit.registry._served import encoding, served, typed


def record(*fields: Any, name: str = "n.R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields], **more}


V1 = record(("a", "int"), ("s", "string"))
V2 = record(("a", "long"), ("s", "string"))
V2["fields"].append({"name": "b", "type": "string", "default": "none"})
OTHER = record(("x", "double"), name="n.Other")
INT_MESSAGE = protobuf_schema_of(pa.schema([pa.field("a", pa.int32(), nullable=False), ("s", pa.string())]), "n.M")
JSON_TEXT = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}, "s": {"type": "string"}}})

R1, R2, OTHERS = typed(V1, format="avro"), typed(V2, format="avro"), typed(OTHER, format="avro")
MESSAGES = typed(INT_MESSAGE)
DOCUMENTS = typed(JSON_TEXT, format="json", type="n.J")
GZIP, SNAPPY = CodecType(CODEC_GZIP.name), CodecType(CODEC_SNAPPY.name)

ENCODINGS = {
    0: encoding(R1),
    1: encoding(R2, version=1),
    2: encoding(R2, version=1, codec=GZIP),
    3: encoding(OTHERS),
    4: encoding(MESSAGES),
    5: encoding(DOCUMENTS, codec=SNAPPY),
}


def event(encoding_id: int, value: Any, *, padding: int = 0, encodings: Any = ENCODINGS) -> bytes:
    found = encodings[encoding_id]
    payload = event_type(found.schema).payloads.serialize(value) + bytes(padding)
    codec = {"": bytes, GZIP.name: CODEC_GZIP.pack, SNAPPY.name: CODEC_SNAPPY.pack}[found.codec.name]
    return PRAVEGA.header(encoding_id) + codec(payload)


@pytest.fixture(scope="module")
def registry() -> Iterator[Scripted]:
    with served(ENCODINGS, latest=[R2, OTHERS, MESSAGES, DOCUMENTS]) as registry:
        yield registry


@pytest.fixture
def uri(registry: Scripted) -> str:
    return registry.uri


EVENTS = [
    event(0, {"a": 1, "s": "one"}),
    event(1, {"a": 2, "s": "two", "b": "x"}),
    event(2, {"a": 3, "s": "three", "b": "y"}),
    event(3, {"x": 0.5}),
    event(4, {"a": 5, "s": "five"}),
    event(5, {"a": 6, "s": "six"}),
]


def test_a_row_is_what_was_written(uri):
    reader = deserializer(uri, group="g")
    rows = [reader.deserialize(each) for each in EVENTS]
    assert rows[:4] == [
        {"a": 1, "s": "one"},
        {"a": 2, "s": "two", "b": "x"},
        {"a": 3, "s": "three", "b": "y"},
        {"x": 0.5},
    ]
    assert (rows[4].a, rows[4].s, rows[5]) == (5, "five", {"a": 6, "s": "six"})
    assert [reader.deserialize_with_schema(memoryview(each)).schema for each in EVENTS] == [
        ENCODINGS[i].schema for i in range(6)
    ]


def test_a_column_has_a_member_for_each_type(uri):
    reader = deserializer(uri, group="g")
    assert [field.name for field in reader.arrow_type] == ["J", "M", "Other", "R"]
    column = reader.decode_column(pa.array([*EVENTS, None, *EVENTS[::-1]]))
    expected = [
        {"R": {"a": 1, "s": "one", "b": "none"}},
        {"R": {"a": 2, "s": "two", "b": "x"}},
        {"R": {"a": 3, "s": "three", "b": "y"}},
        {"Other": {"x": 0.5}},
        {"M": {"a": 5, "s": "five"}},
        {"J": {"a": 6, "s": "six"}},
    ]
    found = [row and {key: value for key, value in row.items() if value is not None} for row in column.to_pylist()]
    assert found == [*expected, None, *expected[::-1]]


def test_a_chosen_type_leaves_the_others_null(uri):
    reader = deserializer(uri, group="g", type="n.R")
    column = reader.decode_column(pa.array(EVENTS))
    assert column.type == pa.struct([("a", pa.int64()), ("s", pa.string()), ("b", pa.string())])
    assert [row and row["a"] for row in column.to_pylist()] == [1, 2, 3, None, None, None]
    two = deserializer(uri, group="g", type=["n.Other", "n.J"])
    assert [field.name for field in two.arrow_type] == ["Other", "J"]
    assert [row is not None for row in two.decode_column(pa.array(EVENTS)).to_pylist()] == [False] * 3 + [
        True,
        False,
        True,
    ]
    with pytest.raises(SchemaError, match=r"no schema of the type 'n\.Nothing'"):
        deserializer(uri, group="g", type="n.Nothing").arrow_type


def test_a_type_without_a_column_is_not_lost_silently(uri):
    reader = deserializer(uri, group="g", schema=V2, format="avro")
    errors: list[DeserializationError] = []
    column = reader.decode_column(pa.array(EVENTS), on_error=errors.append)
    assert [row and row["a"] for row in column.to_pylist()] == [1, 2, 3, None, None, None]
    assert [(error.row, error.encoding_id) for error in errors] == [(3, 3), (4, 4), (5, 5)]
    assert "of type 'n.Other'; the columns are of type n.R" in errors[0].reason
    # A row tells its type by itself.
    assert reader.deserialize(EVENTS[3]) == {"x": 0.5}


def test_a_readers_schema_resolves_rows_and_columns(uri):
    reader = deserializer(uri, group="g", schema=V2, format="avro")
    assert reader.deserialize(EVENTS[0]) == {"a": 1, "s": "one", "b": "none"}
    renamed = record(("a", "int"), ("s", "string"), name="m.New", aliases=["n.R"])
    by_alias = deserializer(uri, group="g", schema=renamed, format="avro")
    assert by_alias.deserialize(EVENTS[0]) == {"a": 1, "s": "one"}
    narrow = deserializer(uri, group="g", schema=V1, format="avro")
    with pytest.raises(DeserializationError, match=r"version 1 of 'n\.R'.*does not fit.*encoding id 1"):
        narrow.deserialize(EVENTS[1])
    # Rows are resolved as Java resolves them. In columns, whose types stay, each number is looked at.
    rows = narrow.decode_column(pa.array(EVENTS[:3])).to_pylist()
    assert rows == [{"a": 1, "s": "one"}, {"a": 2, "s": "two"}, {"a": 3, "s": "three"}]


def test_numbers_are_narrowed_one_by_one(uri):
    narrow = deserializer(uri, group="g", schema=V1, format="avro")
    limits = [2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**63 - 1]
    events = [event(1 + i % 2, {"a": number, "s": "x", "b": "y"}) for i, number in enumerate(limits)]
    errors: list[DeserializationError] = []
    rows = narrow.decode_column(pa.array([events[2], b"?", *events]), on_error=errors.append).to_pylist()
    assert [row and row["a"] for row in rows] == [None, None, *limits[:2], None, None, None]
    assert [error.row for error in errors] == [0, 1, 4, 5, 6]
    assert str(errors[0]).endswith(
        "the value does not fit the column: int64 -> int32 (at row 0, encoding id 1, field $.a)"
    )
    with pytest.raises(DeserializationError, match="does not fit the column"):
        narrow.decode_column(pa.array(events))


TOO_LONG = 2**53 + 1


@pytest.mark.parametrize(
    ("written", "read", "values", "bad"),
    [
        ("long", "double", [1, -(2**53), 2**62, TOO_LONG, 2**63 - 1, -(2**63)], {3, 4}),
        ("int", "float", [2**24, 2**24 + 1, -(2**31)], {1}),
        ("long", "float", [2**24, 2**24 + 1, 2**63 - 1], {1, 2}),
        ("int", "double", [2**31 - 1, -(2**31)], set()),
        ("long", ["null", "double"], [1, TOO_LONG], {1}),
        (["null", "long"], ["null", "double"], [None, 1, TOO_LONG], {2}),
        (["int", "long"], "double", [5, 2**40, TOO_LONG], {2}),
        (["int", "float"], "float", [5, 2**24 + 1], {1}),
        (["long", "double"], "long", [TOO_LONG, 2**63 - 1], set()),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "double"}, [[1, 2], [3, TOO_LONG]], {1}),
        ({"type": "map", "values": "long"}, {"type": "map", "values": ["null", "double"]}, [{"k": TOO_LONG}], {0}),
    ],
)
def test_a_number_that_a_column_cannot_hold_exactly_is_malformed(written, read, values, bad):
    writer = AvroSerializer(schema=record(("a", written)))
    with served({0: encoding(typed(record(("a", written)), format="avro"))}) as registry:
        reader = deserializer(registry.uri, group="g", schema=record(("a", read)), format="avro", check_readable=False)
        errors: list[DeserializationError] = []
        events = pa.array([b"\1\0\0\0\0" + writer.serialize({"a": value}) for value in values])
        rows = reader.decode_column(events, on_error=errors.append).to_pylist()
    assert {error.row for error in errors} == bad
    found = [row and (dict(row["a"]) if isinstance(values[0], dict) else row["a"]) for row in rows]
    assert found == [None if row in bad else value for row, value in enumerate(values)]


@pytest.mark.parametrize(
    ("written", "read", "chosen"),
    [("long", ["string", "double"], 1), ("long", ["long", "double"], 0), ("long", ["int", "float"], 1)],
)
def test_a_number_keeps_the_branch_that_resolution_chooses(written, read, chosen):
    with served({0: encoding(typed(record(("a", written)), format="avro"))}) as registry:
        reader = deserializer(registry.uri, group="g", schema=record(("a", read)), format="avro", check_readable=False)
        assert reader.arrow_type == AvroSerializer(schema=record(("a", read))).arrow_type
        (row,) = reader.decode_column(pa.array([b"\1\0\0\0\0\6"])).to_pylist()
    assert row["a"] == {f"member{i}": 3 if i == chosen else None for i in range(2)}


def test_a_record_inside_itself_has_versions():
    node = record(("v", "int"), ("next", ["null", "n.R"]))
    newer = record(*((field["name"], field["type"]) for field in node["fields"]))
    newer["fields"].append({"name": "w", "type": "string", "default": "new"})
    with served({0: encoding(typed(node, format="avro"))}) as registry:
        reader = deserializer(registry.uri, group="g", schema=newer, format="avro", check_readable=False)
        event = b"\1\0\0\0\0\2\2\4\0"
        assert reader.deserialize(event) == {"v": 1, "next": {"v": 2, "next": None, "w": "new"}, "w": "new"}
        with pytest.raises(SchemaError, match=r"contains itself.*read it by rows"):
            reader.decode_column(pa.array([event]))


def test_numbers_are_widened_once_for_each_pair_of_records():
    def twofold(number: str) -> Any:
        inner = record(("a", number), name="n.L0")
        for level in range(1, 20):
            inner = record(("a", ["null", inner]), ("b", ["null", f"n.L{level - 1}"]), name=f"n.L{level}")
        return inner

    with served({0: encoding(typed(twofold("long"), format="avro"))}) as registry:
        reader = deserializer(registry.uri, group="g", schema=twofold("int"), format="avro", check_readable=False)
        with pytest.raises(SchemaError, match="more than 10000 columns; read it by rows"):
            reader.decode_column(pa.array([b"\1\0\0\0\0\0\0"]))


def test_other_versions_can_be_bad_records(uri):
    reader = deserializer(uri, group="g", schema=json.dumps(V2, indent=1), format="avro", evolution="corrupt")
    errors: list[DeserializationError] = []
    rows = reader.decode_column(pa.array(EVENTS[:3]), on_error=errors.append).to_pylist()
    assert [row and row["a"] for row in rows] == [None, 2, 3]
    assert [(error.row, error.encoding_id) for error in errors] == [(0, 0)]


def test_types_of_the_same_name_have_columns_that_tell_them_apart():
    text = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schemas = [
        R1,
        typed(text, format="json", type="n.R"),
        typed(text, format="json", type="m.X"),
        typed(text, format="json", type="o.X"),
        typed(text, format="json", type="n.Outer$In"),
        typed(text, format="json", type=""),
    ]
    with served({}, latest=schemas) as registry:
        kind = deserializer(registry.uri, group="g").arrow_type
    assert [field.name for field in kind] == ["value", "m_X", "In", "n_R_Avro", "n_R_Json", "o_X"]


def test_the_registry_can_refuse_a_readers_schema():
    with served(ENCODINGS, can_read=False) as registry, pytest.raises(SchemaError, match="compatibility policy"):
        deserializer(registry.uri, group="g", schema=V1, format="avro")


def test_columns_of_json_can_be_given(uri):
    columns = pa.schema([("s", pa.string()), ("missing", pa.int16())])
    reader = deserializer(uri, group="g", schema=columns, format="json")
    assert reader.decode_column(pa.array(EVENTS[5:])).to_pylist() == [{"s": "six", "missing": None}]
    assert reader.arrow_type == pa.struct(columns)


def test_the_first_bad_row_is_raised_and_all_are_reported_in_order(uri):
    reader = deserializer(uri, group="g", type="n.R")
    bad = [EVENTS[2], EVENTS[1][:-1], b"\x01", EVENTS[0], EVENTS[0][:6], None, EVENTS[2][:-9], b"{} no header"]
    with pytest.raises(DeserializationError) as caught:
        reader.decode_column(pa.array(bad))
    assert (caught.value.row, caught.value.encoding_id) == (1, 1)
    errors: list[DeserializationError] = []
    rows = reader.decode_column(pa.array(bad), on_error=errors.append).to_pylist()
    assert [row is not None for row in rows] == [True, False, False, True, False, False, False, False]
    assert [(error.row, error.encoding_id) for error in errors] == [(1, 1), (2, None), (4, 0), (6, 2), (7, None)]


@pytest.mark.parametrize("encoding_id", range(6))
def test_zeros_behind_a_payload_are_ignored(uri, encoding_id):
    # Java pads what it compresses; Flink pads whole events.
    reader = deserializer(uri, group="g")
    value = [
        {"a": 1, "s": "x"},
        {"a": 1, "s": "x", "b": "y"},
        {"a": 1, "s": "x", "b": "y"},
        {"x": 1.0},
        {"a": 1, "s": "x"},
    ]
    given_value = [*value, {"a": 1, "s": "x"}][encoding_id]
    plain, padded = event(encoding_id, given_value), event(encoding_id, given_value, padding=100)
    assert reader.deserialize(padded) == reader.deserialize(plain)
    assert len(set(map(str, reader.decode_column(pa.array([plain, padded])).to_pylist()))) == 1
    if encoding_id != 5:
        assert reader.deserialize(plain + bytes(50)) == reader.deserialize(plain)


# Owner of the fault


def counted(uri: str, *, timeout: float = 30.0) -> RegistryConfig:
    """A configuration, and so a client, of the test's own."""
    return RegistryConfig(uri=uri, timeout=timeout, cache_entries=random.randrange(100, 10**9))


def asked(registry: Scripted) -> list[str]:
    return [request.path.split("?")[0].removeprefix("/v1/groups/g/") for request in registry.requests]


def test_each_encoding_id_is_asked_for_once():
    with served(ENCODINGS, latest=[R2, OTHERS, MESSAGES, DOCUMENTS]) as registry:
        reader = deserializer(counted(registry.uri), group="g")
        for _ in range(3):
            reader.decode_column(pa.array(EVENTS * 10))
        for each in EVENTS:
            reader.deserialize(each)
        copy: RegistryDeserializer = pickle.loads(pickle.dumps(reader))
        copy.decode_column(pa.array(EVENTS))
        assert sorted(asked(registry)) == ["codecTypes", *(f"encodings/{i}" for i in range(6)), "schemas"]


FAULTS = [
    ((500, b"no"), RegistryUnavailableError),
    ((503, b"busy"), RegistryUnavailableError),
    ((200, b"<html>"), RegistryProtocolError),
    ((200, {"schemaInfo": {}}), RegistryProtocolError),
    ((404, b""), RegistryNotFoundError),
    ((401, b""), RegistryError),
]


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
def test_a_fault_of_the_registry_is_not_a_bad_record(fault, kind):
    with served(ENCODINGS, latest=[R2]) as registry:
        reader = deserializer(counted(registry.uri, timeout=1.0), group="g")
        assert reader.arrow_type is not None
    errors: list[DeserializationError] = []
    with scripted(fault, port=registry.port) as broken:
        with pytest.raises(kind):
            reader.deserialize(EVENTS[0])
        with pytest.raises(kind):
            reader.decode_column(pa.array(EVENTS * 100), on_error=errors.append)
        assert len(broken.requests) <= 12
    assert errors == []


GARBAGE = [b"{}", b"\xff", b"{", b""]


@pytest.mark.parametrize("data", GARBAGE)
@pytest.mark.parametrize("kind", [R2, MESSAGES], ids=["avro", "protobuf"])
def test_a_schema_that_is_none_is_not_a_bad_record(data, kind):
    broken = SchemaInfo(kind.type, kind.format, data)
    with served({0: encoding(broken)}) as registry:
        errors: list[DeserializationError] = []
        with pytest.raises(SchemaError):
            deserializer(registry.uri, group="g").deserialize(PRAVEGA.header(0) + b"\0")
        with pytest.raises(SchemaError):
            deserializer(registry.uri, group="g", schema=broken)
        if kind is MESSAGES and data == b"":
            # An empty descriptor set: there is nothing to compare with.
            return
        reader = deserializer(registry.uri, group="g", schema=kind)
        with pytest.raises(SchemaError):
            reader.decode_column(pa.array([PRAVEGA.header(0) + b"\0"]), on_error=errors.append)
        assert errors == []


def test_types_that_are_not_wanted_need_no_codec_and_no_format():
    strange = {
        0: encoding(OTHERS, codec=CodecType("zip")),
        1: encoding(SchemaInfo("t", SerializationFormat.custom("my"), b"")),
        2: encoding(R2),
    }
    with served(strange, latest=[R2]) as registry:
        reader = deserializer(registry.uri, group="g", type="n.R", fail_on_codec_mismatch=False)
        events = [PRAVEGA.header(0), PRAVEGA.header(1) + b"x", event(2, {"a": 1, "s": "x", "b": ""}, encodings=strange)]
        assert [row is not None for row in reader.decode_column(pa.array(events)).to_pylist()] == [False, False, True]


def test_compressed_columns_are_unfolded_piece_by_piece(uri, monkeypatch):
    reader = deserializer(uri, group="g", type="n.R")
    events = [event(2, {"a": i, "s": "x" * 100, "b": ""}) for i in range(100)]
    events[50] = events[50][:-1]
    monkeypatch.setattr(encodings, "MAX_DECOMPRESSED_BYTES", 1000)
    errors: list[DeserializationError] = []
    rows = reader.decode_column(pa.array(events), on_error=errors.append).to_pylist()
    assert [row and row["a"] for row in rows] == [*range(50), None, *range(51, 100)]
    assert [(error.row, error.encoding_id) for error in errors] == [(50, 2)]


def test_the_first_events_are_those_that_unfold_into_the_limit(uri, monkeypatch):
    reader = deserializer(uri, group="g", type="n.R")
    events = pa.array([event(2, {"a": i, "s": "x" * 100, "b": ""}) for i in range(25)])
    monkeypatch.setattr(encodings, "MAX_DECOMPRESSED_BYTES", 1000)
    parts = list[Any]()
    while sum(map(len, parts)) < len(events):
        parts.append(reader.decode_first(events.slice(sum(map(len, parts)))))
    assert [len(part) for part in parts] == [9, 9, 7]
    assert [row["a"] for part in parts for row in part.to_pylist()] == [*range(25)]
    monkeypatch.setattr(encodings, "MAX_DECOMPRESSED_BYTES", 1)
    assert len(reader.decode_first(events)) == 1


def test_events_that_unfold_into_more_than_a_column_are_their_own_errors(uri, monkeypatch):
    reader = deserializer(uri, group="g", type="n.R")
    events = pa.array([event(2, {"a": i, "s": "x" * 100, "b": ""}) for i in range(25)])
    monkeypatch.setattr(encodings, "MAX_DECOMPRESSED_BYTES", 1000)
    monkeypatch.setattr(encodings, "MAX_COLUMN_BYTES", 1500)
    errors: list[DeserializationError] = []
    rows = reader.decode_column(events, on_error=errors.append).to_pylist()
    assert [row and row["a"] for row in rows] == [*range(18), *[None] * 7]
    assert [error.row for error in errors] == [*range(18, 25)]
    assert {type(error) for error in errors} == {LimitExceededError}
    with pytest.raises(LimitExceededError, match="decode fewer events at once"):
        reader.decode_column(events)


def test_no_registry_at_all_is_not_a_bad_record():
    with served(ENCODINGS, latest=[R2]) as registry:
        reader = deserializer(counted(registry.uri, timeout=1.0), group="g")
        assert reader.deserialize(EVENTS[1])["a"] == 2
    errors: list[DeserializationError] = []
    with pytest.raises(RegistryUnavailableError):
        reader.decode_column(pa.array(EVENTS), on_error=errors.append)
    assert errors == []
    # Known schemas are still read.
    assert reader.deserialize(EVENTS[1])["a"] == 2


def test_unknown_ids_can_be_bad_records():
    with served(ENCODINGS, latest=[R2]) as registry:
        unknown = [
            PRAVEGA.header(99),
            EVENTS[1],
            PRAVEGA.header(77) + b"x",
            *(PRAVEGA.header(i) for i in range(1000, 3000)),
        ]
        with pytest.raises(RegistryNotFoundError):
            deserializer(registry.uri, group="g").decode_column(pa.array(unknown), on_error=lambda error: None)
        registry.requests.clear()
        reader = deserializer(counted(registry.uri), group="g", unknown_ids="corrupt")
        errors: list[DeserializationError] = []
        rows = reader.decode_column(pa.array(unknown), on_error=errors.append).to_pylist()
        assert [row is not None for row in rows[:3]] == [False, True, False]
        assert [(error.row, error.encoding_id) for error in errors][:3] == [(0, 99), (2, 77), (3, 1000)]
        assert len(errors) == 2002
        # Ids are given out in order: behind the first unknown one, nothing is asked for.
        assert asked(registry).count("encodings/77") == 1
        assert len(registry.requests) == 5
        with pytest.raises(DeserializationError, match="does not know the encoding id 99"):
            reader.deserialize(unknown[0])


def test_a_group_that_is_not_there_is_never_the_events_fault():
    with served(ENCODINGS, latest=[R2]) as registry:
        reader = deserializer(registry.uri, group="nothing", unknown_ids="corrupt", fail_on_codec_mismatch=False)
        errors: list[DeserializationError] = []
        for call in (lambda: reader.deserialize(EVENTS[0]), lambda: reader.arrow_type):
            with pytest.raises(RegistryNotFoundError):
                call()
        given_type = deserializer(
            registry.uri, group="g", unknown_ids="corrupt", schema=V2, format="avro", fail_on_codec_mismatch=False
        )
        assert given_type.decode_column(pa.array(EVENTS[:1]), on_error=errors.append)[0].as_py()["a"] == 1
        with pytest.raises(RegistryNotFoundError):
            deserializer(registry.uri, group="nothing")
    assert errors == []


def test_a_codec_that_is_not_known_is_an_error_from_the_start():
    with served({0: encoding(R1, codec=CodecType("zip"))}, latest=[R1]) as registry:
        with pytest.raises(UnsupportedCodecError, match="codecs zip"):
            deserializer(registry.uri, group="g")
        late = deserializer(registry.uri, group="g", fail_on_codec_mismatch=False)
        errors: list[DeserializationError] = []
        with pytest.raises(UnsupportedCodecError, match="'zip'"):
            late.decode_column(pa.array([PRAVEGA.header(0)]), on_error=errors.append)
        assert errors == []


def test_custom_formats_need_a_serializer():
    info = SchemaInfo("t", SerializationFormat.custom("my"), b"")
    with served({0: encoding(info)}) as registry:
        with pytest.raises(UnsupportedFormatError, match="custom format 'my'"):
            deserializer(registry.uri, group="g").deserialize(PRAVEGA.header(0) + b"x")
        lines = {"my": lambda schema: FunctionSerializer(str.encode, bytes.decode, arrow_type=pa.string())}
        reader = deserializer(registry.uri, group="g", schema=info, custom_formats=lines)
        assert reader.deserialize(PRAVEGA.header(0) + b"x") == "x"
        assert reader.decode_column(pa.array([PRAVEGA.header(0) + b"x"])).to_pylist() == ["x"]


def test_a_deserializer_writes_nothing(uri):
    reader = deserializer(uri, group="g")
    with pytest.raises(SerializationError):
        reader.serialize({})
    for call in (reader.check_encodable, reader.encode_column):
        with pytest.raises(SchemaError):
            call(pa.null())
    assert "RegistryDeserializer(group='g'" in repr(reader)


def test_settings_that_cannot_be_meant(uri):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"group": ""}, "name of a group"),
        ({"group": "g", "schema": V1}, "set format"),
        ({"group": "g", "write_encoding_header": False}, "read with one schema; pass the schema"),
        ({"group": "g", "write_encoding_header": False, "schema": V1, "format": "avro"}, "Avro events require"),
        ({"group": "g", "schema": V1, "format": "xml"}, "unknown registry format"),
        ({"group": "g", "colour": "red"}, "no setting 'colour'"),
    ]
    for settings_, message in wrong:
        with pytest.raises(SerdeError, match=message):
            deserializer(uri, **settings_)
    with pytest.raises(SerdeError, match="namespace"):
        deserializer(RegistryConfig(uri=uri, namespace="a"), group="g", namespace="b")
    assert deserializer(RegistryConfig(uri=uri), group="g", namespace="b")._config.registry.namespace == "b"
    with served({}) as empty, pytest.raises(SchemaError, match="has no schema yet"):
        deserializer(empty.uri, group="g").arrow_type


# Protobuf by field number


def changed(**fields: int) -> FileDescriptorSet:
    """The message with other types of fields."""
    files = FileDescriptorSet.FromString(INT_MESSAGE.SerializeToString())
    for field in files.file[0].message_type[0].field:
        if field.name in fields:
            field.type = fields[field.name]  # type: ignore[assignment]
    return files


F = FieldDescriptorProto


@pytest.mark.parametrize(
    ("written", "read", "fits"),
    [
        ({}, {"a": F.TYPE_INT64}, True),
        ({}, {"a": F.TYPE_UINT32}, False),
        ({"a": F.TYPE_INT64}, {}, False),
        ({"a": F.TYPE_SINT32}, {}, False),
        ({"a": F.TYPE_BOOL}, {}, True),
        ({}, {"s": F.TYPE_BYTES}, True),
        ({"s": F.TYPE_INT32}, {}, False),
    ],
)
def test_a_message_is_read_by_numbers_or_not_at_all(written, read, fits):
    encodings = {0: encoding(typed(changed(**written)))}
    value = {"a": True if written.get("a") == F.TYPE_BOOL else 1, "s": 7 if "s" in written else "x"}
    with served(encodings) as registry:
        reader = deserializer(registry.uri, group="g", schema=changed(**read))
        data = event(0, value, encodings=encodings)
        if fits:
            assert reader.deserialize(data).a == 1
            assert reader.decode_column(pa.array([data]))[0].as_py()["a"] == 1
        else:
            with pytest.raises(DeserializationError, match=r"there, .* here"):
                reader.deserialize(data)


@pytest.mark.parametrize(
    ("wide", "narrow", "fits", "beyond"),
    [
        (F.TYPE_INT64, F.TYPE_INT32, [-(2**31), 7, 2**31 - 1], [2**31, -(2**63)]),
        (F.TYPE_SINT64, F.TYPE_SINT32, [-1], [2**40]),
        (F.TYPE_DOUBLE, F.TYPE_FLOAT, [0.5, float("inf")], [0.1, 1e300]),
    ],
)
def test_numbers_of_messages_are_narrowed_one_by_one(wide, narrow, fits, beyond):
    encodings = {0: encoding(typed(changed(a=narrow))), 1: encoding(typed(changed(a=wide)), version=1)}
    with served(encodings) as registry:
        reader = deserializer(registry.uri, group="g", schema=changed(a=narrow))
        events = [event(1, {"a": value, "s": "x"}, encodings=encodings) for value in [*fits, *beyond]]
        errors: list[DeserializationError] = []
        column = reader.decode_column(pa.array([event(0, {"a": 1}, encodings=encodings), *events]),
                                      on_error=errors.append)  # fmt: skip
    assert [row and row["a"] for row in column.to_pylist()] == [1, *fits, *(None for _ in beyond)]
    assert [error.row for error in errors] == [1 + len(fits) + i for i in range(len(beyond))]
    assert all(error.field_path == "$.a" and error.encoding_id == 1 for error in errors)


def imported(kind: int) -> FileDescriptorSet:
    """A message in one file whose field is a message of another."""
    common = FileDescriptorProto(name="common.proto", package="n", syntax="proto3")
    common.message_type.add(name="C").field.add(name="x", number=1, type=kind, label=1)  # type: ignore[arg-type]
    main = FileDescriptorProto(name="main.proto", package="n", syntax="proto3", dependency=["common.proto"])
    main.message_type.add(name="Main").field.add(name="c", number=1, type=F.TYPE_MESSAGE, type_name=".n.C", label=1)
    return FileDescriptorSet(file=[common, main])


def test_a_message_whose_imports_java_left_out_needs_its_class():
    whole = imported(F.TYPE_INT32)
    own = event_type(whole, type="n.Main")
    assert [file.name for file in FileDescriptorSet.FromString(own.info.data).file] == ["main.proto"]
    data = PRAVEGA.header(0) + own.payloads.serialize({"c": {"x": 5}})
    with served({0: encoding(own.info)}) as registry:
        with pytest.raises(SchemaError, match=r"lacks 'common.proto'.*pass its class"):
            deserializer(registry.uri, group="g").deserialize(data)
        for schema in (whole, own.payloads.message_class):
            reader = deserializer(registry.uri, group="g", schema=schema, type="n.Main")
            assert reader.deserialize(data).c.x == 5
            assert reader.decode_column(pa.array([data])).to_pylist() == [{"c": {"x": 5}}]
    everything = typed(whole, type="n.Main", all_files=True)
    with served({0: encoding(everything)}) as registry:
        assert deserializer(registry.uri, group="g").deserialize(data).c.x == 5
        other = deserializer(registry.uri, group="g", schema=imported(F.TYPE_STRING), type="n.Main")
        with pytest.raises(DeserializationError, match=r"\$\.c\.x .number 1. is int32 there, string here"):
            other.deserialize(data)


# Any input


MIXED = st.lists(st.tuples(st.integers(0, 5), st.integers(-(2**31), 2**31 - 1), st.text(max_size=5)), max_size=40)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(MIXED, st.randoms())
def test_columns_are_the_rows_in_any_mixture(uri, given_values, chance):
    events: list[bytes | None] = []
    for encoding_id, number, text in given_values:
        value = {"x": float(number)} if encoding_id == 3 else {"a": number, "s": text}
        events.append(event(encoding_id, value | ({"b": "c"} if encoding_id in (1, 2) else {})))
        if chance.random() < 0.2:
            events.append(chance.choice([None, b"", b"\x01\0\0\0\0", PRAVEGA.header(2) + b"no gzip"]))
    reader = deserializer(uri, group="g")
    errors: list[DeserializationError] = []
    rows = reader.decode_column(pa.array(events, pa.binary()), on_error=errors.append).to_pylist()
    failed = {error.row for error in errors}
    for row, data in enumerate(events):
        if data is None:
            assert rows[row] is None
            continue
        try:
            value = reader.deserialize(data)
        except DeserializationError:
            assert row in failed
            assert rows[row] is None
            continue
        (found,) = [member for member in rows[row].values() if member is not None]
        if hasattr(value, "a"):
            value = {"a": value.a, "s": value.s}
        assert found == (value | {"b": found["b"]} if "b" in found else value)


def test_truncated_and_mutated_events_raise_nothing_else(uri):
    reader = deserializer(uri, group="g", unknown_ids="corrupt")
    chance = random.Random(11)
    wrong = [each[:size] for each in EVENTS for size in range(len(each))]
    for _ in range(3000):
        mutated = bytearray(chance.choice(EVENTS))
        for _ in range(chance.randint(1, 3)):
            mutated[chance.randrange(1, len(mutated))] = chance.randrange(256)
        wrong.append(bytes(mutated))
    alone = set()
    for row, data in enumerate(wrong):
        try:
            reader.deserialize(data)
        except DeserializationError:
            alone.add(row)
    errors: list[DeserializationError] = []
    reader.decode_column(pa.array(wrong), on_error=errors.append)
    # Columns are stricter: JSON's have types, rows have none.
    assert alone <= {error.row for error in errors}
    assert len(alone) > 1000
