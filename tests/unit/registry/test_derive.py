"""Schemas that follow from Arrow ones, and Arrow types from JSON schemas."""

import importlib
import json
import pickle
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from pravega_serde import SchemaError, SerializationError
from pravega_serde.avro import AvroSerializer, avro_schema_of
from pravega_serde.errors import UnsupportedFormatError
from pravega_serde.json import arrow_type_of_json_schema, json_schema_of
from pravega_serde.protobuf import ProtobufSerializer, protobuf_schema_of
from pravega_serde.protobuf.bundled_files import BUNDLED, bundled
from pravega_serde.protobuf.registry import ProtobufRegistry
from pravega_serde.registry import SerializationFormat, deserializer, event_type, serializer

POINT = pa.struct([("x", pa.int32()), pa.field("y", pa.float64(), nullable=False)])
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("small", pa.int16()),
        ("unsigned", pa.uint32()),
        ("flag", pa.bool_()),
        ("half", pa.float32()),
        ("full", pa.float64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(12, 3)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("point", POINT),
        ("points", pa.list_(POINT)),
        ("names", pa.list_(pa.field("element", pa.string(), nullable=False))),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("places", pa.map_(pa.string(), POINT)),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
    ]
)
ROW: dict[str, Any] = {
    "id": 7, "small": -3, "unsigned": 4_000_000_000, "flag": True, "half": 0.5, "full": -1e300, "text": "é😀",
    "raw": b"\0\xff", "price": Decimal("-12.345"), "day": date(2024, 2, 29),
    "moment": datetime(2024, 1, 2, 3, 4, 5, 6, UTC), "local": datetime(1960, 1, 2, 3, 4, 5, 6),
    "point": {"x": None, "y": 1.5}, "points": [{"x": 1, "y": 2.5}], "names": ["a", ""], "counts": {"k": 9},
    "places": {"p": {"x": 3, "y": 0.25}}, "kind": "up",
}  # fmt: skip
EMPTY: dict[str, Any] = dict.fromkeys(ROW) | {"id": 0}


@pytest.mark.parametrize("wanted", ["avro", "json", "protobuf"])
def test_columns_come_back_as_they_were(wanted: str) -> None:
    made = event_type(COLUMNS, format=wanted, type="com.example.Order")
    column = pa.StructArray.from_arrays(
        [pa.array([ROW[field.name], EMPTY[field.name]], field.type) for field in COLUMNS], fields=list(COLUMNS)
    )
    made.payloads.check_encodable(made.fitted(column[:0]).type)
    events = made.payloads.encode_column(made.fitted(column))
    full, empty = made.payloads.decode_column(events).to_pylist(maps_as_pydicts="strict")
    if wanted == "protobuf":
        assert [empty[name] for name in ("points", "names", "counts", "places")] == [[], [], {}, {}]
        empty |= dict.fromkeys(("points", "names", "counts", "places"))
    assert full == ROW
    assert empty == EMPTY


#: Column type -> values, and the type that is read if it is another.
PROTOBUF: list[tuple[pa.DataType, list[Any], pa.DataType | None]] = [
    (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)], None),
    (pa.timestamp("ms", "Europe/Berlin"), [datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
    (pa.timestamp("us"), [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999)], None),
    (pa.timestamp("s"), [datetime(2024, 1, 1)], pa.timestamp("us")),
    (pa.duration("us"), [timedelta(days=-3, microseconds=1), timedelta(0)], None),
    (pa.duration("s"), [timedelta(seconds=5)], pa.duration("us")),
    (pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)], None),
    (pa.date64(), [date(2024, 2, 29)], pa.date32()),
    (pa.time64("us"), [time(0), time(23, 59, 59, 999_999)], None),
    (pa.time32("ms"), [time(1, 2, 3, 4000)], pa.time64("us")),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.01"), Decimal("0.00"), Decimal("99999999.99")], None),
    (pa.decimal128(38, 0), [Decimal("9" * 38)], None),
    (pa.decimal128(4, -2), [Decimal("12E+2")], None),
    (pa.decimal256(60, 4), [Decimal("1" * 50 + ".2500")], None),
    (pa.int8(), [-128, 127], None),
    (pa.int16(), [-32768], None),
]


def _shaped(shape: str, kind: pa.DataType, values: list[Any]) -> tuple[pa.DataType, list[Any]]:
    """Return a column type with a type in a shape, and its values."""
    if shape == "single":
        return kind, [*values, None]
    if shape == "list":
        return pa.list_(pa.field("element", kind)), [values, []]
    if shape == "map":
        return pa.map_(pa.string(), kind), [[(str(at), value) for at, value in enumerate(values)], []]
    return pa.struct([("in", kind)]), [{"in": values[0]}, {"in": None}, None]


@pytest.mark.parametrize("shape", ["single", "list", "map", "struct"])
@pytest.mark.parametrize(("kind", "values", "read"), PROTOBUF, ids=str)
def test_a_derived_message_accepts_its_columns(shape: str, kind: pa.DataType, values: Any, read: Any) -> None:
    column_type, items = _shaped(shape, kind, values)
    wanted, _ = _shaped(shape, read or kind, values)
    schema = pa.schema([("f", column_type)])
    made = ProtobufSerializer(protobuf_schema_of(schema, "n.R"))
    column = pa.StructArray.from_arrays([pa.array(items, column_type)], fields=list(schema))
    for count in (1, 200):
        events = made.encode_column(pa.concat_arrays([column] * count))
        decoded = made.decode_column(events)
        assert decoded.type == made.arrow_type == pa.struct([("f", wanted)])
        assert decoded.to_pylist()[: len(items)] == [{"f": item} for item in items]
    rows = [{"f": dict(item) if shape == "map" else item} for item in items]
    for row, event in zip(rows, events.to_pylist(), strict=False):
        assert made.serialize(row) == event
        assert made.as_dict(made.deserialize(event)) == row
        assert made.serialize(made.as_dict(made.deserialize(event))) == event
    again = pickle.loads(pickle.dumps(made))
    assert again.decode_column(events).equals(decoded)


def test_a_derived_message_accepts_a_dictionary() -> None:
    days = pa.array([date(2024, 1, 1), None, date(2024, 1, 1)]).dictionary_encode()
    column = pa.StructArray.from_arrays([days], names=["f"])
    made = ProtobufSerializer(protobuf_schema_of(pa.schema(list(column.type)), "n.R"))
    assert made.decode_column(made.encode_column(column)).field(0).equals(days.dictionary_decode())


DECIMALS = [pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal128(10, -2), pa.decimal256(76, 5)]


@pytest.mark.parametrize(
    ("kind", "wrong", "reason"),
    [
        (pa.date32(), {"year": 2024}, "date"),
        (pa.date32(), {"year": 2023, "month": 2, "day": 29}, "2023-02-29|day is out of range"),
        (pa.decimal128(4, 2), {"value": "1.234"}, "1.234 does not fit"),
        (pa.decimal128(4, 2), {"value": "x"}, "decimal"),
        *((kind, {"value": text}, "decimal") for kind in DECIMALS for text in ("1e-999999999", "1e-77", "1e999999999")),
        *((kind, {"value": text}, "decimal") for kind in DECIMALS for text in ("0." + "0" * 80 + "1", "1" * 99, "1_0")),
        (pa.time64("us"), 86_400_000_000, "time of day"),
        (pa.int8(), 300, "300"),
    ],
)
def test_a_value_beyond_its_declared_type_is_malformed(kind: pa.DataType, wrong: Any, reason: str) -> None:
    made = ProtobufSerializer(protobuf_schema_of(pa.schema([("f", kind)]), "n.R"))
    good = made.serialize({"f": None})
    events = pa.array([good, made.serialize({"f": wrong}), good] * 50)
    errors: list[Any] = []
    assert made.decode_column(events, on_error=errors.append).null_count == len(errors) == 50
    assert re.search(reason, str(errors[0]))
    assert errors[0].field_path == "$.f"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.date32(), datetime(2024, 1, 1)),
        (pa.timestamp("us"), datetime(2024, 1, 1, tzinfo=UTC)),
        (pa.decimal128(4, 2), Decimal("100")),
        (pa.decimal128(4, 2), Decimal("0.125")),
        *((kind, Decimal(text)) for kind in DECIMALS for text in ("1e-77", "1e-999999999", "1e999999999", "NaN")),
        (pa.time64("us"), "x"),
    ],
)
def test_a_row_that_its_column_cannot_hold_is_refused(kind: pa.DataType, value: Any) -> None:
    made = ProtobufSerializer(protobuf_schema_of(pa.schema([("f", kind)]), "n.R"))
    with pytest.raises(SerializationError, match=r"\$\.f"):
        made.serialize({"f": value})


def test_a_date_that_the_message_cannot_hold_is_refused() -> None:
    made = ProtobufSerializer(protobuf_schema_of(pa.schema([("f", pa.date32())]), "n.R"))
    column = pa.array([10**7], pa.int32()).cast(pa.date32())
    with pytest.raises(SerializationError, match=r"years 1 to 9999 .*\$\.f"):
        made.encode_column(pa.StructArray.from_arrays([column], names=["f"]))


def test_text_of_a_derived_message_keeps_the_types() -> None:
    # A program that has imported confluent-kafka knows the option as an extension.
    importlib.import_module("confluent_kafka.schema_registry.confluent.meta_pb2")
    registry = ProtobufRegistry()
    made = event_type(COLUMNS, format="protobuf", type="com.example.Order")
    text = registry.to_text(made.info, source=True)
    assert '(confluent.field_meta) = {params: [{key: "arrow", value: "decimal128(12, 3)"}]}' in text.text
    assert not text.references
    again = registry.payloads(registry.from_text(text))
    assert again.arrow_type == made.payloads.arrow_type


@pytest.mark.parametrize("names", [("a_b", "aB"), ("a_b_c", "aBC"), ("_a", "A")])
def test_names_that_are_one_name_in_json_are_refused(names: tuple[str, str]) -> None:
    clash = pa.struct([(name, pa.int32()) for name in names])
    for schema in (pa.schema(list(clash)), pa.schema([("in", pa.list_(clash))])):
        with pytest.raises(SchemaError, match=rf"{names[0]}' and '{names[1]}' .*in JSON; rename one"):
            protobuf_schema_of(schema, "n.R")


def test_numbers_of_fields_stay_when_a_column_goes() -> None:
    uri = "mock://numbers-of-fields-stay"
    text = pa.string()
    made: dict[str, Any] = {"group": "g", "format": "protobuf", "type": "n.R", "register_schema": True}
    before = pa.schema([("a", text), ("secret", text), ("in", pa.struct([("x", text), ("y", text)]))])
    after = pa.schema([("in", pa.struct([("y", text)])), ("a", text), ("new", pa.date32())])
    old = serializer(uri, schema=before, create_group=True, **made)
    event = old.serialize({"a": "1", "secret": "2", "in": {"x": "3", "y": "4"}})
    new = serializer(uri, schema=after, **made)
    row = {"a": "5", "new": date(2024, 1, 1), "in": {"y": "6"}}
    events = pa.array([event, new.serialize(row)])
    expected = [{"in": {"y": "4"}, "a": "1", "new": None}, row]
    for reader in (
        deserializer(uri, group="g"),
        deserializer(uri, group="g", schema=after, format="protobuf", type="n.R"),
    ):
        assert reader.decode_column(events).to_pylist() == expected
    narrow = pa.schema([("new", pa.date32())])
    reader = deserializer(uri, group="g", schema=narrow, format="protobuf", type="n.R", check_readable=False)
    assert reader.decode_column(events).to_pylist() == [{"new": None}, {"new": date(2024, 1, 1)}]


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_known_imports_are_complete(name: str) -> None:
    file = bundled(name)
    assert file is not None
    assert file.name == name
    if name.startswith("google/type/"):
        theirs = FileDescriptorProto()
        module = pytest.importorskip(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        module.DESCRIPTOR.CopyToProto(theirs)
        ours = DescriptorPool()
        for each in (*file.dependency, name):
            ours.AddSerializedFile(cast("Any", bundled(each)).SerializeToString())
        made = FileDescriptorProto()
        cast("Any", ours.FindFileByName(name)).CopyToProto(made)
        for each in (made, theirs):
            each.ClearField("options")
        assert made == theirs


def test_every_row_of_the_avro_table() -> None:
    def avro_of(kind: pa.DataType) -> Any:
        (field,) = json.loads(avro_schema_of(pa.schema([pa.field("f", kind, nullable=False)]), "n.R"))["fields"]
        return field["type"]

    kinds: list[tuple[pa.DataType, Any]] = [
        (pa.bool_(), "boolean"), (pa.int64(), "long"), (pa.uint16(), "int"), (pa.int32(), "int"),
        (pa.uint32(), "long"), (pa.float16(), "float"), (pa.large_string(), "string"), (pa.binary_view(), "bytes"),
        (pa.date64(), {"type": "int", "logicalType": "date"}),
        (pa.time32("s"), {"type": "int", "logicalType": "time-millis"}),
        (pa.time64("ns"), {"type": "long", "logicalType": "time-micros"}),
        (pa.timestamp("ms", "UTC"), {"type": "long", "logicalType": "timestamp-millis"}),
        (pa.timestamp("ns"), {"type": "long", "logicalType": "local-timestamp-micros"}),
        (pa.binary(4), {"type": "fixed", "name": "f", "namespace": "n.R", "size": 4}),
        (pa.decimal128(5), {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 0}),
        (pa.large_list(pa.int8()), {"type": "array", "items": ["null", "int"]}),
        (pa.map_(pa.string(), pa.bool_()), {"type": "map", "values": ["null", "boolean"]}),
    ]  # fmt: skip
    for kind, expected in kinds:
        assert avro_of(kind) == expected, kind
    nested = avro_of(pa.struct([("g", pa.list_(pa.struct([("h", pa.int64())])))]))
    assert (nested["name"], nested["namespace"]) == ("f", "n.R")
    assert nested["fields"][0]["type"][1]["items"][1]["namespace"] == "n.R.f"
    assert nested["fields"][0]["default"] is None
    assert '"type":"null"' in avro_schema_of(pa.schema([("f", pa.null())]), "R")


def test_times_are_written_in_avro() -> None:
    schema = pa.schema([("t", pa.time64("us"))])
    made = AvroSerializer(avro_schema_of(schema, "R"))
    batch = pa.record_batch([pa.array([time(1, 2, 3, 4), None])], schema=schema)
    assert made.deserialize(made.encode_column(batch)[0].as_py()) == {"t": time(1, 2, 3, 4)}


WRONG: list[tuple[str, pa.DataType, str]] = [
    ("avro", pa.uint64(), "uint64 is not supported by Avro"),
    ("avro", pa.duration("us"), "not supported by Avro"),
    ("avro", pa.decimal256(50, 2), "not supported by Avro .* at most 38 digits"),
    ("avro", pa.decimal128(5, -2), "not supported by Avro .* a scale of 0"),
    ("avro", pa.map_(pa.int32(), pa.string()), "map<int32, string> is not supported .* cast its keys"),
    ("json", pa.time64("us"), "not supported by JSON .* cast it to string"),
    ("json", pa.map_(pa.int32(), pa.string()), "map<int32, string> is not supported .* cast its keys"),
    ("json", pa.decimal128(5, -2), "not supported by JSON schema"),
    ("protobuf", pa.list_(pa.list_(pa.int32())), r"not supported by Protobuf in another list .*in\[\]\); wrap it"),
    ("protobuf", pa.map_(pa.string(), pa.list_(pa.int32())), "not supported by Protobuf"),
    ("protobuf", pa.map_(pa.float64(), pa.int32()), "cast its keys"),
    ("protobuf", pa.null(), "not supported by Protobuf"),
]


@pytest.mark.parametrize(("wanted", "kind", "message"), WRONG)
def test_what_a_format_does_not_have_is_named(wanted: str, kind: pa.DataType, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        event_type(pa.schema([("deep", pa.struct([("in", kind)]))]), format=wanted, type="n.R")
    assert "$.deep.in" in str(caught.value)


def test_names_have_to_be_names() -> None:
    spaced = pa.schema([("a b", pa.int32())])
    for wanted in ("avro", "protobuf"):
        with pytest.raises(SchemaError, match="name 'a b'"):
            event_type(spaced, format=wanted, type="R")
        with pytest.raises(SchemaError, match="name '1R'"):
            event_type(pa.schema([("a", pa.int32())]), format=wanted, type="n.1R")
        with pytest.raises(SchemaError, match="set type"):
            event_type(COLUMNS, format=wanted)
    assert arrow_type_of_json_schema(json_schema_of(spaced, "R")) == pa.struct(spaced)
    for derive in (avro_schema_of, json_schema_of, protobuf_schema_of):
        with pytest.raises(SchemaError, match=r"the column \$\.a exists twice; rename one"):
            derive(pa.schema([("a", pa.int32()), ("a", pa.int32())]), "R")
    with pytest.raises(UnsupportedFormatError, match="'my'"):
        event_type(COLUMNS, format=SerializationFormat.custom("my"), type="R")


def test_messages_inside_get_names_that_nothing_else_has() -> None:
    inner = pa.struct([("v", pa.int32())])
    schema = pa.schema([("Point", inner), ("point", pa.list_(inner)), ("a_b", pa.map_(pa.string(), inner))])
    (file,) = protobuf_schema_of(schema, "Top").file
    assert file.package == ""
    names = [message.name for message in file.message_type[0].nested_type]
    assert names == ["PointMessage", "PointMessageMessage", "ABValue", "ABEntry"]
    (file,) = protobuf_schema_of(pa.schema([("_1", inner), ("_", inner)]), "Top").file
    assert [message.name for message in file.message_type[0].nested_type] == ["Message1", "Message"]
    assert event_type(schema, format="protobuf", type="Top").payloads.arrow_type.field("point").name == "point"


# JSON schemas

JACKSON: dict[str, Any] = {
    "type": "object",
    "id": "urn:jsonschema:Js:A",
    "properties": {
        "bytes": {"type": "array", "items": {"type": "integer"}},
        "date": {"type": "integer", "format": "utc-millisec"},
        "color": {"type": "string", "enum": ["RED", "GREEN"]},
        "any": {"type": "object", "additionalProperties": {"type": "any"}},
        "o": {"type": "any"},
        "lo": {"type": "array"},
        "node": {
            "type": "object",
            "id": "urn:jsonschema:Js:Node",
            "properties": {"v": {"type": "string"}, "next": {"type": "object", "$ref": "urn:jsonschema:Js:Node"}},
        },
        "node2": {"type": "object", "$ref": "urn:jsonschema:Js:Node"},
    },
}


def test_jacksons_schemas_have_columns() -> None:
    node = pa.struct([("v", pa.string())])
    assert arrow_type_of_json_schema(json.dumps(JACKSON)) == pa.struct(
        [
            ("bytes", pa.list_(pa.field("element", pa.int64()))),
            ("date", pa.timestamp("us", "UTC")),
            ("color", pa.string()),
            ("node", node),
            ("node2", node),
        ]
    )


DRAFT_7: list[tuple[Any, Any]] = [
    ({"type": ["null", "string"]}, pa.string()),
    ({"oneOf": [{"type": "null"}, {"type": "number"}]}, pa.float64()),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, None),
    ({"type": ["integer", "string"]}, None),
    ({"enum": ["a", "b"]}, pa.string()),
    ({"enum": ["a", 1]}, None),
    ({"enum": ["a", None]}, pa.string()),
    ({"enum": [1, 2.5, None]}, pa.float64()),
    ({"enum": []}, None),
    ({"const": "order"}, pa.string()),
    ({"const": 7}, pa.int64()),
    ({"const": True}, pa.bool_()),
    ({"const": None}, pa.null()),
    ({"const": {"a": 1}}, None),
    ({"$ref": "#/$defs/a~1b"}, pa.bool_()),
    ({"$ref": "#/$defs/missing"}, None),
    ({"$ref": "#/$defs/loop"}, None),
    ({"$ref": "#"}, None),
    ({"type": "null"}, pa.null()),
    ({"type": "number", "format": "decimal(5,2)"}, pa.decimal128(5, 2)),
    ({"type": "number", "format": "decimal(99,2)"}, pa.float64()),
    ({"type": "string", "format": "email"}, pa.string()),
    (True, None),
]


@pytest.mark.parametrize(("schema", "kind"), DRAFT_7)
def test_a_property_has_its_column_or_none(schema: Any, kind: pa.DataType | None) -> None:
    defs = {"a/b": {"type": "boolean"}, "loop": {"$ref": "#/$defs/loop"}}
    text = json.dumps({"properties": {"f": schema, "known": {"type": "integer"}}, "$defs": defs})
    expected = ([] if kind is None else [("f", kind)]) + [("known", pa.int64())]
    assert arrow_type_of_json_schema(text) == pa.struct(expected)


def test_a_json_schema_without_columns_is_an_error() -> None:
    deep: Any = {"type": "integer"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    for schema in ({}, {"type": "object"}, {"type": "any"}, deep):
        with pytest.raises(SchemaError, match="does not define the columns"):
            arrow_type_of_json_schema(json.dumps(schema))
    for text in ("{", '{"type":', "[" * 100_000):
        with pytest.raises(SchemaError, match="not JSON"):
            arrow_type_of_json_schema(text)


def test_a_json_schema_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"title": "T", "type": "object"}')
    assert event_type(path, format="json").info == event_type(str(path), format="json").info


def test_what_is_not_a_json_schema() -> None:
    for schema in ("nothing", "[]", 5, {"a": object()}):
        with pytest.raises(SchemaError, match="JSON schema"):
            event_type(schema, format="json", type="R")
    with pytest.raises(SchemaError, match="pass type"):
        event_type({"type": "object"}, format="json")
    assert event_type({"title": "T", "type": "object"}, format="json").info.type == "T"


def test_schemas_that_refer_to_each_other_unfold_into_bounded_columns() -> None:
    def refers(*names: str) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}}

    chain = {f"L{i}{side}": refers(f"L{i + 1}a", f"L{i + 1}b") for i in range(40) for side in "ab"}
    ring = {f"L{i}": refers(*(f"L{j}" for j in range(20))) for i in range(20)}
    for first, schemas in (("L0a", chain), ("L0", ring)):
        with pytest.raises(SchemaError, match="more than 10000 columns; read it by rows"):
            arrow_type_of_json_schema(json.dumps({**refers(first), "$defs": schemas}))
