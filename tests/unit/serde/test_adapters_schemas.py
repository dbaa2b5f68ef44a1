"""Avro and Protobuf schemas of classes: objects come through both ways, and other libraries read the same events."""

import dataclasses
import enum
import io
import json
import re
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import msgspec
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pool, message_factory, unknown_fields
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_serde import (
    AvroSerializer,
    DeserializationError,
    ProtobufSerializer,
    SchemaError,
    SerializationError,
    avro_schema_of,
    protobuf_schema_of,
    typed,
)
from pravega_serde.protobuf.bundled_files import bundled
from pravega_serde.registry import deserializer, serializer
from tests.unit.serde._classes import Line, Node, Order
from tests.unit.serde._schema_classes import (
    UUID_5,
    VALUES,
    Area,
    Box,
    Codes,
    Defaults,
    Events,
    Holder,
    Inner,
    Kinds,
    Nested,
    Sizes,
    Sparse,
    T,
)


def shown(value: Any) -> str:
    """Return the text of a value, which differs for -0.0, without the zeros at the end of decimals."""
    return re.sub(r"Decimal\('([^']*)'\)", lambda found: f"{Decimal(found[1]).normalize():f}", repr(value))


def check_avro(kind: Any, value: Any, name: str | None = "shop.Event") -> None:
    """Assert that a value comes through Avro, and that fastavro reads and writes the same event."""
    schema = avro_schema_of(kind, name)
    parsed = fastavro.parse_schema(json.loads(schema))
    objects = typed(AvroSerializer(schema), kind)
    event = objects.serialize(value)
    found = objects.deserialize(event)
    assert found == value
    assert shown(found) == shown(value)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, AvroSerializer(schema).deserialize(event))
    assert out.getvalue() == event
    again = io.BytesIO()
    read = fastavro.schemaless_reader(io.BytesIO(event), parsed, None, return_record_name=True)
    fastavro.schemaless_writer(again, parsed, read)
    assert again.getvalue() == event


def message_class(kind: Any, name: str) -> Any:
    """Return the class of messages that Google's library builds from the schema."""
    files = protobuf_schema_of(kind, name)
    pool = descriptor_pool.DescriptorPool()
    for each in ("google/protobuf/descriptor.proto", *files.file[0].dependency):
        file = bundled(each)
        assert file is not None
        pool.Add(file)
    pool.Add(files.file[0])
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def check_protobuf(kind: Any, value: Any, name: str = "shop.Event") -> None:
    """Assert that a value comes through Protobuf, and that Google's library reads and writes the same event."""
    objects = typed(ProtobufSerializer(protobuf_schema_of(kind, name)), kind)
    event = objects.serialize(value)
    found = objects.deserialize(event)
    assert found == value
    if "{" not in repr(value):  # maps have no order
        assert shown(found) == shown(value)
    message = message_class(kind, name).FromString(event)
    assert message.ByteSize() == len(event)
    assert objects.deserialize(message.SerializeToString()) == value
    assert not unknown_fields.UnknownFieldSet(message)


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda each: str(each)[:60])
def test_objects_come_through_avro(kind: Any, value: Any) -> None:
    check_avro(kind, value)


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda each: str(each)[:60])
def test_objects_come_through_protobuf(kind: Any, value: Any) -> None:
    check_protobuf(kind, value)


# ---- schemas ----


def fields_of(schema: str) -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(schema)["fields"]}


def test_only_optional_fields_can_be_null() -> None:
    fields = fields_of(avro_schema_of(Order))
    assert [name for name, each in fields.items() if "null" in each["type"]] == ["note"]
    assert {name: each["default"] for name, each in fields.items() if "default" in each} == {"note": None, "tags": {}}
    (message,) = protobuf_schema_of(Order, "shop.Order").file[0].message_type
    assert [each.name for each in message.field if each.proto3_optional] == ["note"]
    assert fields_of(avro_schema_of(Holder))["required"]["type"][0] == "null"


def test_enums_are_their_names() -> None:
    kind = dataclasses.make_dataclass("Kept", [("kind", Kinds), ("code", Codes)])
    fields = fields_of(avro_schema_of(kind, "shop.Kept"))
    assert fields["kind"]["type"] == {"type": "enum", "name": "Kinds", "symbols": ["SMALL", "LARGE"]}
    (message,) = protobuf_schema_of(kind).file[0].message_type
    kinds, codes = ({each.name: each.number for each in enum.value} for enum in message.enum_type)
    assert kinds == {"SMALL": 0, "LARGE": 1}
    assert codes == {"NONE": 0, "OK": 200}  # their own numbers, because one of them is 0


def test_a_class_is_defined_once_and_then_referred_to_by_name() -> None:
    assert json.loads(avro_schema_of(Node, "shop.Node"))["fields"] == [
        {"name": "next", "type": ["null", "Node"], "default": None}
    ]
    (message,) = protobuf_schema_of(Node, "shop.Item").file[0].message_type
    assert message.field[0].type_name == ".shop.Item"
    twice = dataclasses.make_dataclass("Twice", [("a", Inner), ("b", list[Inner])])
    assert fields_of(avro_schema_of(twice))["b"]["type"] == {"type": "array", "items": "Inner"}
    (message,) = protobuf_schema_of(twice).file[0].message_type
    assert [each.type_name for each in message.field] == [".Twice.Inner", ".Twice.Inner"]


def test_pydantic_fields_that_are_not_written_have_no_place() -> None:
    assert [*fields_of(avro_schema_of(Area))] == ["Width", "double"]


def test_names() -> None:
    assert json.loads(avro_schema_of(Order))["name"] == "Order"
    assert json.loads(avro_schema_of(Box[int]))["name"] == "Box_int"
    inner = dataclasses.make_dataclass("Inner", [("x", str)], namespace={"__module__": "other"})
    two = dataclasses.make_dataclass("Two", [("a", Inner), ("b", inner)])
    fields = fields_of(avro_schema_of(two))
    assert [each["type"]["name"] for each in fields.values()] == ["Inner", "other_Inner"]
    check_avro(two, two(Inner(), inner("x")), "shop.Inner")
    check_protobuf(two, two(Inner(), inner("x")), "shop.Inner")
    for derive in (avro_schema_of, protobuf_schema_of):
        with pytest.raises(SchemaError, match=r"columns have no name"):
            derive(pa.schema([]))
    with pytest.raises(SchemaError, match="pass the name of its message"):
        protobuf_schema_of(list[int])


def test_defaults_of_the_class_fill_what_older_events_lack() -> None:
    old = {"type": "record", "name": "Defaults", "fields": []}
    new = avro_schema_of(Defaults)
    added = typed(AvroSerializer(old, reader_schema=new), Defaults)
    assert added.deserialize(b"") == Defaults(ratio=1.0)
    read: Any = fastavro.schemaless_reader(io.BytesIO(), old, json.loads(new))
    assert read["either"] == "text"
    # The first branch of a union has the default, as Avro before 1.12 requires.
    fields = fields_of(new)
    assert (fields["either"]["type"], fields["word"]["type"]) == (["string", "long"], ["string", "null"])
    # A list is never absent in Protobuf, so it is empty.
    absent = typed(ProtobufSerializer(protobuf_schema_of(Defaults)), Defaults).deserialize(b"")
    assert absent == Defaults(ratio=1.0, sizes=(), names=frozenset(), word=None)
    with pytest.raises(DeserializationError, match="at"):
        typed(ProtobufSerializer(protobuf_schema_of(Order)), Order).deserialize(b"")


def test_a_default_that_a_function_makes_is_not_in_the_schema() -> None:
    kind = dataclasses.make_dataclass("Now", [("key", UUID, dataclasses.field(default_factory=lambda: UUID_5))])
    assert fields_of(avro_schema_of(kind)) == {
        "key": {"name": "key", "type": {"type": "string", "logicalType": "uuid"}}
    }


def test_fields_that_are_left_out_have_the_defaults_of_the_class() -> None:
    schema = json.loads(avro_schema_of(Sparse))
    for each in schema["fields"]:
        each.pop("default", None)
    (schema["fields"][-1],) = [{**schema["fields"][-1], "default": None}]
    objects = typed(AvroSerializer(schema), Sparse)
    assert objects.deserialize(objects.serialize(Sparse())) == Sparse()


@dataclasses.dataclass
class Lines:
    lines: list[dict[str, Any]]


def one(kind: Any, default: Any = dataclasses.MISSING) -> Any:
    return dataclasses.make_dataclass("One", [("field", kind, dataclasses.field(default=default))])


NotAscii = enum.Enum("NotAscii", ["GRÜN"])


class Flags(enum.Flag):
    A = 1


class Positions(msgspec.Struct, array_like=True):
    x: int


@pytest.mark.parametrize("derive", [avro_schema_of, protobuf_schema_of])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Lines, r"Any \(at \$\.lines\[\]\{\}\) has no type"),
        (one(object), r"object \(at \$\.field\)"),
        (one(list), r"list \(at \$\.field\)"),
        (one(complex), r"complex \(at \$\.field\)"),
        (one(T), r"\(at \$\.field\) is open"),
        (Box, r"\(at \$\.content\) is open"),
        (one(NotAscii), r"invalid .* name 'GRÜN' \(at \$"),
        (dataclasses.make_dataclass("One", [("ü", int)]), r"\$\.ü"),
        (one(Flags), "Flags is a Flag"),
        (one(Positions), r"Positions \(at \$\.field\) is array_like"),
        (one(dict[tuple[int, int], str]), r"\(at \$\.field\) has no text as its key"),
        (one(dict[float, str]), r"keys at \$\.field\{\} are of the type float"),
        (one(Inner | Line), r"\(at \$\.field\) have no field that tells them apart"),
        (one(Kinds | str), r"\(at \$\.field\) has types that events cannot tell apart"),
        (one(list[int] | list[str]), r"\(at \$\.field\) has types that events cannot tell apart"),
        (one(int | None | msgspec.UnsetType, msgspec.UNSET), r"\$\.field may be absent and None"),
        (one(int, None), r"the default None at \$\.field does not fit"),
        (one(int, True), r"the default True at \$\.field does not fit"),
    ],
    ids=str,
)
def test_what_cannot_be_written_and_read_is_refused_with_its_path(derive: Any, kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        derive(kind, "shop.One")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (one(int | datetime), r"\$\.field are both long in Avro"),
        (one(dict[int, str]), r"keys at \$\.field\{\} are of the type int, but Avro's are text"),
        (one(datetime, datetime(2026, 1, 2)), r"at \$\.field has no time zone"),
        (one(int, 1 << 63), r"at \$\.field does not fit Avro"),
        (one(str, "\ud800"), r"at \$\.field does not fit Avro"),
        (one(Decimal, Decimal("1e30")), r"at \$\.field does not fit decimal128"),
    ],
    ids=str,
)
def test_what_only_avro_refuses(kind: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        avro_schema_of(kind)


def test_what_only_protobuf_refuses() -> None:
    for kind, reason in ((one(None), r"\$\.field is always None"), (named("a_b", "aB"), "both 'aB' in JSON")):
        with pytest.raises(SchemaError, match=reason):
            protobuf_schema_of(kind)


def named(*names: str) -> Any:
    return dataclasses.make_dataclass("Named", [(name, int) for name in names])


@pytest.mark.parametrize("derive", [avro_schema_of, protobuf_schema_of])
def test_a_time_with_a_zone_is_refused(derive: Any) -> None:
    inner: Any = AvroSerializer if derive is avro_schema_of else ProtobufSerializer
    kind = one(time)
    with pytest.raises(SerializationError, match=r"time zone.*\$\.field"):
        typed(inner(derive(kind)), kind).serialize(kind(time(1, tzinfo=UTC)))


def test_names_inside_a_message_do_not_clash() -> None:
    fields: dict[str, Any] = {
        "sizes": list[list[int]],
        "Kinds": Kinds,
        "SMALL": int,
        "one_of": int | str,
        "tags": dict[str, int | None],
        "sizes_message": list[int] | None,
        "size": Sizes,
    }
    kind = dataclasses.make_dataclass("Sizes", fields.items())
    check_protobuf(kind, kind([[1]], Kinds.SMALL, 3, "x", {"a": None}, None, Sizes.SMALL), "shop.Sizes")
    check_avro(kind, kind([[1]], Kinds.SMALL, 3, "x", {"a": None}, [], Sizes.SMALL), "shop.Sizes")


def test_a_class_in_place_of_a_schema_is_refused_with_what_to_pass() -> None:
    for inner, function in ((AvroSerializer, "avro_schema_of"), (ProtobufSerializer, "protobuf_schema_of")):
        with pytest.raises(SchemaError, match=rf"pass {function}\(Order\)"):
            inner(Order)  # type: ignore[operator]


@pytest.mark.parametrize(("format_name", "derive"), [("avro", avro_schema_of), ("protobuf", protobuf_schema_of)])
def test_schemas_of_classes_are_registered(kit_registry: str, format_name: str, derive: Any) -> None:
    for number, (kind, value) in enumerate(each for each in VALUES if each[0] in (Defaults, Events, Nested)):
        options = {
            "group": f"classes-{format_name}-{number}",
            "schema": derive(kind, "shop.Event"),
            "format": format_name,
        }
        writer = typed(serializer(kit_registry, **options, register_schema=True, create_group=True), kind)
        event = writer.serialize(value)
        assert typed(deserializer(kit_registry, **options), kind).deserialize(event) == value
        assert typed(deserializer(kit_registry, group=options["group"]), kind).deserialize(event) == value


def test_protoc_compiles_the_messages(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc")
    derived = [protobuf_schema_of(kind, f"p{position}.Event").file[0] for position, (kind, _) in enumerate(VALUES)]
    imported = sorted({"google/protobuf/descriptor.proto", *(name for file in derived for name in file.dependency)})
    found: Any = map(bundled, imported)
    files = FileDescriptorSet(file=[*found, *derived])
    (tmp_path / "all.desc").write_bytes(files.SerializeToString())
    options = [f"--descriptor_set_in={tmp_path}/all.desc", f"--descriptor_set_out={tmp_path}/out.desc"]
    assert protoc.main(["protoc", *options, *(file.name for file in derived)]) == 0
