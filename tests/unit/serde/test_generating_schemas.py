"""Code and schemas from schemas: the classes read and write every golden event, and refuse what they cannot hold."""

import datetime as dt
import json
import os
import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_serde import (
    AvroSerializer,
    JsonSerializer,
    ProtobufSerializer,
    SchemaError,
    SchemaInfo,
    SerializationFormat,
    UnsupportedTargetError,
    arrow_type_of,
    avro_schema_of,
    generate,
    protobuf_schema_of,
    sniff,
    typed,
)
from pravega_serde.adapters.classes import members_of
from pravega_serde.generating import class_schemas
from pravega_serde.generating.json_classes import json_classes
from pravega_serde.protobuf.derive import schema_data
from pravega_serde.protobuf.schema import descriptor_of
from pravega_serde.protobuf.schema import load as load_message
from pravega_serde.protobuf.texts import compiled_file

ROOT = Path(__file__).parents[3]
VECTORS = ROOT / "tests" / "vectors"
NULLS = (b'{"a":"x","z":null}', b'{"z":null,"a":"x"}')
STYLES = ("dataclass", "msgspec", "pydantic")
EVERY_TYPE = {
    "type": "record",
    "name": "shop.Every",
    "fields": [
        {"name": "raw", "type": "bytes"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "millis", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "micros", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
        {"name": "nanos", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "short_key", "type": {"type": "fixed", "name": "K", "size": 16, "logicalType": "uuid"}},
        {"name": "span", "type": {"type": "fixed", "name": "Span", "size": 12, "logicalType": "duration"}},
        {"name": "mixed", "type": ["int", "string", {"type": "array", "items": "long"}]},
        {"name": "following", "type": ["null", "Every"], "default": None},
        {
            "name": "lines",
            "type": {
                "type": "map",
                "values": {
                    "type": "record",
                    "name": "Line",
                    "fields": [
                        {"name": "weight", "type": "float", "default": 1.5},
                        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["None", "class"]}},
                    ],
                },
            },
        },
        {"name": "nothing", "type": "null"},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "reverse", "type": ["string", "null"], "default": "x"},
    ],
}
LINE = b"\x00\x00\x80\x3f\x02"  # weight 1.0, state class


def registered() -> dict[tuple[str, bytes], tuple[SchemaInfo, list[bytes]]]:
    """The golden schemas of the registry, with the payloads of their events."""
    found: dict[tuple[str, bytes], tuple[SchemaInfo, list[bytes]]] = {}
    for line in (VECTORS / "registry.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "encoding_info" not in row or row["encoding_info"]["codecType"]["name"]:
            continue
        schema = row["encoding_info"]["schemaInfo"]
        if schema["serializationFormat"]["serializationFormat"] == "Custom":
            continue
        info = SchemaInfo.from_json(schema)
        found.setdefault((info.type, info.data), (info, []))[1].append(bytes.fromhex(row["hex"])[5:])
    return found


def serializer(info: SchemaInfo, module: Any) -> Any:
    if info.format == SerializationFormat.AVRO:
        return AvroSerializer(module.SCHEMA)
    if info.format == SerializationFormat.JSON:
        return JsonSerializer()
    return ProtobufSerializer(module.SCHEMA, message_type=info.type)


def root_of(info: SchemaInfo, module: Any) -> Any:
    """The class of the events."""
    return getattr(module, info.type.rpartition(".")[2])


def derived(kind: Any, name: str) -> str:
    return avro_schema_of(pa.schema(list(arrow_type_of(kind))), name)


# ---- round trips ----


@pytest.mark.parametrize("style", STYLES)
def test_classes_read_and_write_the_golden_events(style, load):
    done = {"Avro": 0, "Json": 0, "Protobuf": 0}
    for info, events in registered().values():
        module = load(generate(info, to=style))
        objects = typed(serializer(info, module), root_of(info, module))
        for event in events:
            value = objects.deserialize(event)
            assert isinstance(value, objects.value_class)
            if info.type != "Ev":  # its events have members that the schema does not have: see below
                assert objects.serialize(value) == event
            done[info.format.name] += 1
    assert done == {"Avro": 18, "Json": 9, "Protobuf": 8}


def test_members_without_a_schema_and_absence_are_what_classes_lose(load):
    ((info, (event, *_)),) = [each for each in registered().values() if each[0].type == "Ev"]
    assert json.loads(event).keys() == {"a", "z", "nested"}
    for style, absent in (("dataclass", b'{"a":"x"}'), ("msgspec", b'{"a":"x"}'), ("pydantic", b'{"z":null,"a":"x"}')):
        module = load(generate(info, to=style))
        objects = typed(JsonSerializer(), module.Ev)
        assert json.loads(objects.serialize(objects.deserialize(event))) == {"a": "x", "z": 1}
        assert objects.serialize(objects.deserialize(b'{"a":"x"}')) == absent
        assert objects.serialize(objects.deserialize(b'{"a":"x","z":null}')) in NULLS


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ["flight", "delay"])
def test_derived_schemas_resolve_the_original(name, style, load):
    text = (ROOT / "schemas" / f"{name}.avsc").read_text()
    module = load(generate(ROOT / "schemas" / f"{name}.avsc", to=style))
    assert json.loads(module.SCHEMA) == json.loads(text)
    kind = getattr(module, name.capitalize())
    assert {each.name for each in members_of(kind)} == {each["name"] for each in json.loads(text)["fields"]}
    columns = AvroSerializer(text).arrow_type
    row = {field.name: None for field in columns} | {
        field.name: 7 if pa.types.is_integer(field.type) else "a"
        for field in columns
        if not pa.types.is_timestamp(field.type)
    }
    (stamp,) = [field.name for field in columns if pa.types.is_timestamp(field.type)]
    event = AvroSerializer(text).serialize(row | {stamp: dt.datetime(2026, 5, 1, tzinfo=dt.UTC)})
    # Avro does not resolve timestamps of different units, and a datetime has microseconds.
    made = derived(kind, f"io.pravega.example.flights.{name.capitalize()}")
    reader = AvroSerializer(text, reader_schema=made.replace("timestamp-micros", "timestamp-millis"))
    assert reader.deserialize(event) == AvroSerializer(text).deserialize(event)
    objects = typed(AvroSerializer(module.SCHEMA), kind)
    assert objects.serialize(objects.deserialize(event)) == event


@pytest.mark.parametrize("style", STYLES)
def test_every_avro_type(style, load, tmp_path):
    (tmp_path / "every.avsc").write_text(json.dumps(EVERY_TYPE))
    module = load(generate(tmp_path / "every.avsc", to=style))
    plain = AvroSerializer(EVERY_TYPE)
    value = {
        "raw": b"\x00\xff",
        "price": Decimal("12.50"),
        "day": dt.date(2026, 5, 1),
        "millis": dt.time(1, 2, 3),
        "micros": dt.time(1, 2, 3, 4),
        "local": dt.datetime(2026, 5, 1, 3),
        "at": dt.datetime(2026, 5, 1, tzinfo=dt.UTC),
        "nanos": 5,
        "key": uuid.UUID(int=7),
        "short_key": uuid.UUID(int=8),
        "span": bytes(12),
        "mixed": [1, 2],
        "following": None,
        "lines": {"a": {"weight": 1.0, "state": "class"}},
        "nothing": None,
        "maybe": None,
        "reverse": None,
    }
    objects = typed(AvroSerializer(module.SCHEMA), module.Every)
    for each in (value, value | {"following": value | {"mixed": "text"}, "mixed": 3}):
        event = plain.serialize(each)
        assert LINE in event
        found = objects.deserialize(event)
        assert _text(found.lines["a"].state) == "class"
        assert objects.serialize(found) == event


def _text(state: Any) -> str:
    """The text of a symbol. Pydantic has a root model for it, because a keyword cannot be a constant's name."""
    return str(getattr(state, "root", state))


@pytest.mark.parametrize("style", STYLES)
def test_records_of_the_avro_vectors(style, load):
    events: dict[str, set[str]] = {}
    for line in (VECTORS / "avro_resolution.jsonl").read_text().splitlines():
        row = json.loads(line)
        if isinstance(row["writer"], dict) and row["writer"].get("type") == "record":
            events.setdefault(json.dumps(row["writer"]), set()).add(row["hex"])
    assert len(events) == 12
    refused = set()
    for text, hexes in events.items():
        info = SchemaInfo(json.loads(text)["name"], SerializationFormat.AVRO, text.encode())
        try:
            module = load(generate(info, to=style))
        except SchemaError as error:
            refused.add(error.message.partition(" is a union of ")[2].partition(",")[0])
            continue
        name = next(
            name for name in vars(module) if name.lower() == json.loads(text)["name"].rpartition(".")[2].lower()
        )
        objects = typed(AvroSerializer(module.SCHEMA), getattr(module, name))
        for each in hexes:
            assert objects.serialize(objects.deserialize(bytes.fromhex(each))) == bytes.fromhex(each)
    assert refused <= {"several numbers", "several texts", "several objects"}


# ---- Protobuf ----


@pytest.mark.parametrize("style", STYLES)
def test_all_messages_of_a_file(style, load, tmp_path):
    (tmp_path / "all.proto").write_text("""
        syntax = "proto3";
        package shop;
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/duration.proto";
        import "google/protobuf/struct.proto";
        import "google/protobuf/wrappers.proto";
        message Order {
          enum Status { NEW = 0; SENT = 1; }
          message Line { string sku = 1; optional int32 count = 2; }
          int64 id = 1; Status status = 2; repeated Line lines = 3; map<int64, Line> by_number = 4;
          map<string, double> prices = 5; oneof payment { string card = 6; Line goods = 7; }
          google.protobuf.Timestamp at = 8; google.protobuf.Duration took = 9;
          google.protobuf.StringValue note = 10; google.protobuf.Struct extra = 11; bytes raw = 12; Order next = 13;
          map<bool, Status> flags = 14; uint64 big = 15; float small = 16;
        }
        message Other { enum Status { A = 0; } Status status = 1; }
    """)
    code = generate(tmp_path / "all.proto", to=style)
    module = load(code)
    assert {"Order", "Line", "Other", "OrderStatus", "OtherStatus"} <= set(vars(module))
    objects = typed(ProtobufSerializer(module.SCHEMA, message_type="shop.Order"), module.Order)
    plain = ProtobufSerializer(module.SCHEMA, message_type="shop.Order")
    full = {
        "id": -1,
        "status": "SENT",
        "lines": [{"sku": "tea", "count": 0}, {"sku": "milk"}],
        "by_number": {-7: {"sku": "rice"}, 3: {}},
        "prices": {"a": 1.5},
        "goods": {"sku": "x"},
        "at": dt.datetime(2026, 5, 1, tzinfo=dt.UTC),
        "took": dt.timedelta(seconds=1.5),
        "note": "",
        "extra": {"a": [1.0, None, "x"]},
        "raw": b"\xff",
        "next": {"id": 2},
        "flags": {True: "SENT", False: "NEW"},
        "big": 2**64 - 1,
        "small": 0.5,
    }
    for value in (full, {}, {"card": ""}):
        event = plain.serialize(value)
        assert objects.serialize(objects.deserialize(event)) == event
    assert objects.deserialize(b"").lines == []


def test_proto_text_compiles_to_the_same_descriptors(tmp_path):
    (tmp_path / "two.proto").write_text(r"""
        syntax = "proto2";
        package two;
        option java_package = "a.b";
        option optimize_for = SPEED;
        message Old {
          option deprecated = true;
          reserved 5, 7 to 9, 100 to max;
          reserved "gone", "away";
          required int32 a = 1;
          optional string b = 2 [default = "say \"hi\"\n", deprecated = true];
          optional bytes c = 3 [default = "\001\377x"];
          repeated int32 d = 4 [packed = true];
          optional Kind kind = 6 [default = SECOND, json_name = "KIND"];
          map<string, Old> by_name = 10;
          oneof choice { string left = 11; sint64 right = 12; }
          optional double limit = 13 [default = inf];
          message snake_case { optional fixed64 x_y_1 = 1; }
        }
        enum Kind {
          option allow_alias = true;
          reserved 4 to 6, 9 to max;
          reserved "X";
          FIRST = 1;
          ALSO = 1;
          SECOND = 2 [deprecated = true];
        }
        service Shop {
          rpc Get(stream Old) returns (Old) { option deprecated = true; }
          rpc All(Old) returns (stream Old);
        }
    """)
    gold = next(info for info, _ in registered().values() if info.format == SerializationFormat.PROTOBUF)
    (tmp_path / "gold.desc").write_bytes(gold.data)
    for source in (tmp_path / "two.proto", tmp_path / "gold.desc", ROOT / "schemas" / "controller.proto"):
        original = compiled_file(source) if source.suffix == ".proto" else FileDescriptorSet.FromString(gold.data)
        made = compiled_file(
            generate(source, to="proto").write(tmp_path / "made" / source.with_suffix(".proto").name)[0]
        )
        for files in (original, made):
            files.file[-1].ClearField("name")
            files.file[-1].ClearField("source_code_info")
        if source.suffix == ".desc":  # Java's descriptors have no names for JSON
            made = FileDescriptorSet.FromString(schema_data(descriptor_of(load_message(made, gold.type))))
            made.file[0].ClearField("name")
        assert made == original, source


def test_imported_files_are_written_next_to_each_other(tmp_path):
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "line.proto").write_text('syntax = "proto3"; package shop; message Line { string sku = 1; }')
    (tmp_path / "order.proto").write_text(
        'syntax = "proto3"; package shop; import "common/line.proto"; message Order { repeated Line lines = 1; }'
    )
    code = generate(tmp_path / "order.proto", to="proto")
    assert list(code.files) == ["common/line.proto", "order.proto"]
    code.write(tmp_path / "made")
    assert [each.name for each in compiled_file(tmp_path / "made" / "order.proto").file] == list(code.files)


def test_a_path_out_of_the_folder_is_refused():
    files = protobuf_schema_of(pa.schema([("a", pa.int64())]), "shop.Order")
    files.file[0].name = "../escape.proto"
    files.file.add(name="b.proto", syntax="proto3", dependency=["../escape.proto"]).message_type.add(
        name="B"
    ).field.add(name="order", number=1, label=1, type=11, type_name=".shop.Order")
    info = SchemaInfo("B", SerializationFormat.PROTOBUF, files.SerializeToString())
    with pytest.raises(SchemaError, match=r"'\.\./escape\.proto', which is not a relative path"):
        generate(info, to="proto")


# ---- other formats ----


def test_schemas_of_other_formats_have_the_columns_of_the_events(tmp_path):
    for source in (ROOT / "schemas" / "flight.avsc", ROOT / "schemas" / "delay.avsc"):
        original = AvroSerializer(source).arrow_type
        (proto,) = generate(source, to="proto", name="made").write(tmp_path)
        (schema,) = generate(source, to="json-schema", name="made").write(tmp_path)
        (back,) = generate(schema, to="avsc", name="back").write(tmp_path)
        made = ProtobufSerializer(
            compiled_file(proto), message_type=f"io.pravega.example.flights.{source.stem.title()}"
        )
        assert made.arrow_type.names == original.names if hasattr(original, "names") else True
        assert AvroSerializer(back).arrow_type == original
        required = {
            each["name"] for each in json.loads(source.read_text())["fields"] if not isinstance(each["type"], list)
        }
        assert set(json.loads(schema.read_text())["required"]) == required


def test_the_format_of_the_source_is_kept_unchanged(tmp_path):
    for info, _ in registered().values():
        target = {"Avro": "avsc", "Json": "json-schema"}.get(info.format.name)
        if target is not None:
            (text,) = generate(info, to=target).files.values()
            assert json.loads(text) == json.loads(info.data)


# ---- sources ----


def test_sniffed_json_and_its_result_in_a_file(tmp_path, load):
    events = [b'{"item": "tea", "cups": %d, "at": "2026-05-01T10:00:%02dZ"}' % (n, n) for n in range(1, 31)]
    found = sniff(events, stream="cafe/orders")
    (tmp_path / "orders.json").write_text(json.dumps(found.to_dict()))
    direct = generate(found, to="msgspec", name="orders")
    assert generate(tmp_path / "orders.json", to="msgspec", name="orders").files == direct.files
    module = load(direct)
    kind = next(
        each for name, each in vars(module).items() if name.lower().endswith("orders") and isinstance(each, type)
    )
    assert typed(JsonSerializer(), kind).deserialize(events[0]).cups == 1


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("flight.avsc", "java", "Java classes are generated for Java objects only; .* avro-tools"),
        ("controller.proto", "java", "protoc --java_out"),
        ("strings", "dataclass", "the format of the events is string, and they show neither"),
        ("java objects", "pydantic", "Java objects cannot become pydantic; use --to dataclass, java or msgspec"),
        ("java objects", "avsc", "Java objects cannot become avsc"),
        ("result", "java", "only the names and fields of Java classes; use --from sniff"),
        ("order.yaml", "avsc", "'order.yaml' has none of the suffixes of schema files: .avsc, .json, .proto"),
        ("custom", "avsc", "has the format 'thrift'; only Avro, Protobuf and JSON have generators"),
    ],
)
def test_refused_combinations(source, target, message, tmp_path):
    rows = [json.loads(line) for line in (VECTORS / "java_serializer.jsonl").read_text().splitlines()]
    objects = [bytes.fromhex(row["hex"]) for row in rows if "hex" in row and "com" in str(row["classdescs"])]
    given: Any = ROOT / "schemas" / source
    if source == "strings":
        given = [b"one text", b"and another text"] * 30
    elif source == "java objects":
        given = objects
    elif source == "result":
        given = tmp_path / "result.json"
        given.write_text(json.dumps(sniff(objects).to_dict()))
    elif source == "order.yaml":
        given = tmp_path / source
    elif source == "custom":
        given = SchemaInfo("x", SerializationFormat.custom("thrift"), b"")
    with pytest.raises(UnsupportedTargetError, match=message) as caught:
        generate(given, to=target)
    assert str(caught.value).startswith("[PRAVEGA-UNSUPPORTED-TARGET] ")


@pytest.mark.parametrize(
    ("schema", "style", "message"),
    [
        ({"fields": [{"name": "u", "type": ["int", "long"]}]}, "msgspec", "u of R is a union of several numbers"),
        (
            {"fields": [{"name": "from", "type": "int"}]},
            "dataclass",
            "R cannot be a dataclass, because its field 'from'",
        ),
        ({"fields": [{"name": "int", "type": "int"}]}, "dataclass", "because its field 'int'"),
        ({"fields": [{"name": "_id", "type": ["null", "int"]}]}, "dataclass", "because its field '_id'"),
    ],
)
def test_what_a_class_cannot_hold_is_an_error(schema, style, message):
    text = json.dumps({"type": "record", "name": "R"} | schema)
    with pytest.raises(SchemaError, match=message):
        generate(SchemaInfo("R", SerializationFormat.AVRO, text.encode()), to=style)


@pytest.mark.parametrize("style", ["msgspec", "pydantic"])
def test_names_that_python_reads_as_others_keep_their_values(style, load):
    members = {"\ufb01": 1, "fi": 2, "\u017fize": 3, "\u00b5": 4, "size_": 5, "_id": 6}
    text = json.dumps({"type": "object", "properties": {name: {"type": "integer"} for name in members}})
    code = generate(SchemaInfo("Order", SerializationFormat.JSON, text.encode()), to=style)
    orders = typed(JsonSerializer(), load(code).Order)
    event = json.dumps(members).encode()
    assert json.loads(orders.serialize(orders.deserialize(event))) == members


@pytest.mark.parametrize("reference", ["https://example.org/other.json", "other.json", "#/definitions/missing"])
def test_references_out_of_a_json_schema_are_refused(reference):
    text = json.dumps({"type": "object", "properties": {"a": {"$ref": reference}}})
    with pytest.raises(SchemaError, match="which it does not contain"):
        generate(SchemaInfo("Order", SerializationFormat.JSON, text.encode()), to="msgspec")


def test_references_inside_a_json_schema(load):
    text = json.dumps(
        {
            "type": "object",
            "properties": {
                "first": {"type": "object", "id": "urn:jsonschema:Line", "properties": {"sku": {"type": "string"}}},
                "second": {"$ref": "urn:jsonschema:Line"},
                "third": {"$ref": "#/definitions/Point"},
                "self": {"$ref": "#"},
            },
            "required": ["first"],
            "definitions": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
        }
    )
    module = load(generate(SchemaInfo("Order", SerializationFormat.JSON, text.encode()), to="msgspec"))
    event = b'{"first":{"sku":"a"},"second":{"sku":"b"},"third":{"x":1.5},"self":{"first":{}}}'
    objects = typed(JsonSerializer(), module.Order)
    assert objects.serialize(objects.deserialize(event)) == event


# ---- untrusted text ----

HOSTILE = ['"""\nimport os\n"""', "__import__('os').system('x')", "a\\u000a b", "'); exit(1) #", "}}{{ x }}", "class"]


@pytest.mark.parametrize("style", ["msgspec", "pydantic"])
@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_schema_does_not_become_code(text, style, load):
    properties = {text: {"type": "string", "default": text, "description": text}, "e": {"enum": [text, "ok"]}}
    properties["inner"] = {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {text: {"type": "number"}},
    }
    schema = {"type": "object", "title": text, "description": text, "properties": properties, "required": [text]}
    info = SchemaInfo(text, SerializationFormat.JSON, json.dumps(schema).encode())
    if style == "msgspec" and ("\\" in text or '"' in text):
        with pytest.raises(SchemaError, match="cannot be in a msgspec Struct; use --to pydantic"):
            generate(info, to=style)
        return
    module = load(generate(info, to=style, command=f"pravega-serde generate {text}"))
    kind = next(
        each for each in vars(module).values() if any(member.name == "inner" for member in members_of(each) or ())
    )
    objects = typed(JsonSerializer(), kind)
    event = json.dumps({text: "x", "e": "ok", "inner": {text: 1.5}}).encode()
    assert json.loads(objects.serialize(objects.deserialize(event))) == json.loads(event)


def test_a_generator_that_writes_other_code_is_refused(monkeypatch):
    import datamodel_code_generator

    monkeypatch.setattr(
        datamodel_code_generator, "generate", lambda *_, **__: "from __future__ import annotations\n\nimport os\n"
    )
    with pytest.raises(SchemaError, match="wrote unexpected code in line 3"):
        generate(ROOT / "schemas" / "flight.avsc", to="msgspec")


# ---- type checkers and stable output ----


def passes_mypy(folder: Path, sources: list[Path], styles: tuple[str, ...]) -> int:
    """Number of classes that mypy accepts."""
    files = [
        generate(source, to=style).write(folder / f"{style}_{source.stem}.py")[0]
        for style in styles
        for source in sources
    ]
    # A process, because mypy raises the recursion limit of the process.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [*command, *map(str, files)], check=False, cwd=folder, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sum(path.read_text().count("\nclass ") for path in files)


def test_generated_classes_pass_mypy(tmp_path):
    assert passes_mypy(tmp_path, [ROOT / "schemas" / "flight.avsc"], ("dataclass", "msgspec")) == 2


@pytest.mark.long
def test_classes_of_each_target_pass_mypy(tmp_path):
    """Also the classes of all messages in a large file."""
    (tmp_path / "every.avsc").write_text(json.dumps(EVERY_TYPE))
    sources = [ROOT / "schemas" / "flight.avsc", ROOT / "schemas" / "controller.proto", tmp_path / "every.avsc"]
    assert passes_mypy(tmp_path, sources, STYLES) > 200


def test_one_message_without_a_class_is_left_out_of_many():
    code = generate(ROOT / "schemas" / "controller.proto", to="dataclass")
    assert "class StreamCutRange:" not in code.files["events.py"]
    assert [each.partition(":")[0] for each in code.notes] == ["left out StreamCutRange"]
    with pytest.raises(SchemaError, match="StreamCutRange cannot be a dataclass"):
        generate(
            ROOT / "schemas" / "controller.proto",
            to="dataclass",
            type="io.pravega.controller.stream.api.grpc.v1.StreamCutRange",
        )


@pytest.mark.long
def test_equal_schemas_generate_equal_code():
    program = (
        "import sys; from pravega_serde import generate\n"
        "for each in ('dataclass', 'proto', 'msgspec'):\n"
        "    print(*generate(sys.argv[1], to=each).files.values())\n"
    )
    command = [sys.executable, "-c", program, str(ROOT / "schemas" / "controller.proto")]
    texts = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, timeout=100
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert b"class StreamConfig" in texts.pop()


def test_the_header_has_the_command_and_no_time(tmp_path):
    (code,) = generate(
        ROOT / "schemas" / "flight.avsc", to="msgspec", command="pravega-serde generate x"
    ).files.values()
    assert code.splitlines()[:2] == [
        "# To generate it again: pravega-serde generate x",
        "# Generated by pravega-serde from a schema. Changes are lost when it is generated again.",
    ]
    assert "SCHEMA = (" in code


def test_the_work_for_class_names_grows_with_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counted(name: str) -> str:
        nonlocal calls
        calls += 1
        return name.title()

    monkeypatch.setattr(class_schemas, "_camel", counted)
    names = [f"D{i}" for i in range(640)]
    text = {
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in names},
        "$defs": {name: {"type": "object", "properties": {"a": {"type": "integer"}}} for name in names},
    }
    found = json_classes(json.dumps(text), "Root", bytes_as_text=False)
    assert list(found.schemas) == ["Root", *names]
    assert calls <= 3 * len(names)


def test_class_names_are_as_short_as_they_can_be() -> None:
    long = ".".join(["p"] * 11_000)
    names = ["A", "x.A", "y.x.A", "m.B", "n.B", "m.C", f"a.{long}", f"b.{long}"]
    found = class_schemas.class_names(names)
    assert [found[each] for each in names[:6]] == ["A", "XA", "YXA", "MB", "NB", "C"]
    assert [found[each][:2] for each in names[6:]] == ["AP", "BP"]
    assert class_schemas.next_class_name("a.Order", {"Order"}) == "AOrder"
    assert class_schemas.next_class_name("Order", {"Order"}) == "Order_"


def test_java_classes_inside_9000_others_are_not_generated() -> None:
    name = "$".join(f"a{i}" for i in range(9_000))
    data = name.encode()
    described = b"\x72" + len(data).to_bytes(2, "big") + data + (1).to_bytes(8, "big") + b"\2\0\0\x78\x70"
    with pytest.raises(SchemaError, match=r"is inside \d+ classes; at most 63 are generated") as error:
        generate([b"\xac\xed\0\5\x73" + described] * 3, to="java", name="x")
    assert len(str(error.value)) < 1000
