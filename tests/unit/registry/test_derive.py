"""Schemas that follow from Arrow ones, and Arrow types from JSON schemas."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import SchemaError
from pravega_serde.avro import AvroSerializer, avro_schema_of
from pravega_serde.errors import UnsupportedFormatError
from pravega_serde.json import arrow_type_of_json_schema, json_schema_of
from pravega_serde.protobuf import protobuf_schema_of
from pravega_serde.registry import SerializationFormat, event_type

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
        # Numbers and text stand for what Protobuf does not have.
        full |= {"day": date.fromordinal(date(1970, 1, 1).toordinal() + full["day"]), "price": Decimal(full["price"])}
        moments = pa.array([full["moment"], full["local"]]).cast(pa.timestamp("us")).to_pylist()
        full |= {"moment": moments[0].replace(tzinfo=UTC), "local": moments[1]}
        assert [empty[name] for name in ("points", "names", "counts", "places")] == [[], [], {}, {}]
        empty |= dict.fromkeys(("points", "names", "counts", "places"))
    assert full == ROW
    assert empty == EMPTY


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
    ("avro", pa.decimal256(50, 2), "not supported by Avro that Spark and Java share"),
    ("avro", pa.map_(pa.int32(), pa.string()), "map<int32, string> is not supported .* cast its keys"),
    ("json", pa.time64("us"), "not supported by JSON"),
    ("json", pa.map_(pa.int32(), pa.string()), "map<int32, string> is not supported .* cast its keys"),
    ("json", pa.decimal128(5, -2), "not supported by JSON schema"),
    ("protobuf", pa.list_(pa.list_(pa.int32())), "not supported by Protobuf"),
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
    with pytest.raises(SchemaError, match="same name"):
        json_schema_of(pa.schema([("a", pa.int32()), ("a", pa.int32())]), "R")
    with pytest.raises(UnsupportedFormatError, match="'my'"):
        event_type(COLUMNS, format=SerializationFormat.custom("my"), type="R")


def test_messages_inside_get_names_that_nothing_else_has() -> None:
    inner = pa.struct([("v", pa.int32())])
    schema = pa.schema([("Point", inner), ("point", pa.list_(inner)), ("a_b", pa.map_(pa.string(), inner))])
    (file,) = protobuf_schema_of(schema, "Top").file
    assert file.package == ""
    names = [message.name for message in file.message_type[0].nested_type]
    assert names == ["PointMessage", "PointMessageMessage", "ABValue", "ABEntry"]
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


def test_what_is_no_json_schema() -> None:
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
