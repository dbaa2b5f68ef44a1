"""Writing through a real registry: what is registered, what is refused, and what each refusal says to do."""

import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.api_pb2 import Method, Mixin
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_serde import DeserializationError, SchemaError, SerdeError, SerializationError, Serializer
from pravega_serde.adapters import FunctionSerializer, typed
from pravega_serde.errors import RegistryConflictError, RegistryNotFoundError, UnsupportedCodecError
from pravega_serde.protobuf import protobuf_schema_of
from pravega_serde.registry import (
    Codec,
    Compatibility,
    GroupProperties,
    MultiTypeSerializer,
    RegistrySerializer,
    SerializationFormat,
    WithSchema,
    deserializer,
    event_type,
    multi_type_serializer,
    serializer,
    with_schema_serializer,
)

AVRO = {"type": "record", "name": "n.R", "fields": [{"name": "a", "type": "int"}]}
OTHER = {"type": "record", "name": "n.Other", "fields": [{"name": "b", "type": "string"}]}
JSON = {"title": "J", "type": "object", "properties": {"a": {"type": "integer"}}}
MESSAGE = protobuf_schema_of(pa.schema([pa.field("a", pa.int32(), nullable=False)]), "n.M")
MAKE: dict[str, Any] = {"create_group": True, "register_schema": True, "register_codec": True}


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def test_nothing_is_registered_unless_asked(uri, client, group):
    with pytest.raises(RegistryNotFoundError, match="set register_schema in the writer, and create_group if"):
        serializer(uri, group=group, schema=AVRO, format="avro")
    with pytest.raises(
        RegistryNotFoundError, match=r"the group does not exist: create it with .*, or set create_group"
    ):
        serializer(uri, group=group, schema=AVRO, format="avro", register_schema=True)
    assert group not in dict(client.groups())
    serializer(uri, group=group, schema=AVRO, format="avro", create_group=True, register_schema=True)
    with pytest.raises(RegistryNotFoundError, match=r"schema of 'n.Other' first, or set register_schema"):
        serializer(uri, group=group, schema=OTHER, format="avro")
    with pytest.raises(RegistryConflictError, match="codec 'application/x-gzip' first, or set register_codec"):
        serializer(uri, group=group, schema=AVRO, format="avro", codec="gzip")
    assert [each.schema.type for each in client.latest_schemas(group)] == ["n.R"]
    assert client.codecs(group) == []


@pytest.mark.parametrize(
    ("schema", "wanted", "policy"),
    [(AVRO, "avro", "FullTransitive"), (JSON, "json", "AllowAny"), (MESSAGE, "protobuf", "AllowAny")],
)
def test_a_group_is_made_as_java_makes_it(uri, client, group, schema, wanted, policy):
    writer = serializer(uri, group=group, schema=schema, format=wanted, **MAKE)
    made = client.group_properties(group)
    assert (made.format.name.lower(), made.compatibility.policy, made.allow_multiple_types) == (wanted, policy, True)
    assert writer.deserialize(writer.serialize({"a": 5})) is not None
    # Once more: the group and the schema exist.
    assert serializer(uri, group=group, schema=schema, format=wanted, **MAKE).schema == writer.schema


def test_a_policy_that_the_registry_refuses_is_refused_here(uri, client, group):
    wrong = GroupProperties(SerializationFormat.JSON, Compatibility.FULL_TRANSITIVE)
    with pytest.raises(SerdeError, match="only AllowAny and DenyAll for groups of format Json, not FullTransitive"):
        serializer(uri, group=group, schema=JSON, format="json", create_group=wrong)
    own = GroupProperties(SerializationFormat.AVRO, Compatibility.BACKWARD, allow_multiple_types=False)
    serializer(uri, group=group, schema=AVRO, format="avro", create_group=own, register_schema=True)
    assert client.group_properties(group) == own
    with pytest.raises(RegistryConflictError):
        serializer(uri, group=group, schema=OTHER, format="avro", register_schema=True)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"schema": AVRO, "format": "avro", "write_encoding_header": False}, "Avro events require their encoding header"),
    (
        {"schema": JSON, "format": "json", "write_encoding_header": False, "codec": "gzip"},
        "codec requires the encoding",
    ),
    ({"schema": JSON, "format": "json", "codec": "gzip"}, "Java's typed Json deserializer.*typed_java_readers=False"),
    ({"schema": MESSAGE, "codec": "snappy"}, "Java's typed Protobuf deserializer"),
    ({"schema": AVRO, "format": "avro", "codec": "lz4"}, "unknown codec 'lz4'"),
    ({"schema": AVRO, "format": "avro", "type": "Other"}, "registered under its own name"),
    ({"schema": ["null", "string"], "format": "avro"}, "union has no name"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_what_java_refuses_or_cannot_read_is_refused(uri, client, settings, message):
    with pytest.raises(SerdeError, match=message):
        serializer(uri, group="refused", **settings, **MAKE)
    assert "refused" not in dict(client.groups())


def test_messages_inside_others_are_refused(uri):
    nested = protobuf_schema_of(pa.schema([("in", pa.struct([("a", pa.int32())]))]), "n.Outer")
    with pytest.raises(SchemaError, match=r"only messages at the top.*n\.Outer\.In is inside n\.Outer"):
        serializer(uri, group="nested", schema=nested, type="n.Outer.In", **MAKE)


def test_header_and_codec_can_be_left_out_where_java_does(uri, group):
    for schema, wanted in ((JSON, "json"), (MESSAGE, "protobuf")):
        name = f"{group}-{wanted}"
        bare = serializer(uri, group=name, schema=schema, format=wanted, write_encoding_header=False, **MAKE)
        column = pa.array([{"a": 7}, None], pa.struct([("a", pa.int32())]))
        events = bare.encode_column(column)
        assert events[0].as_py() == bare.serialize({"a": 7}) != b""
        assert not events[0].as_py().startswith(b"\x01")
        assert bare.decode_column(events).to_pylist() == [{"a": 7}, None]
        # A reader uses the group's only type, also without a schema.
        latest = deserializer(uri, group=name, write_encoding_header=False)
        assert latest.decode_column(events).to_pylist() == [{"a": 7}, None]
        assert latest.deserialize_with_schema(events[0].as_py()).schema == bare.schema
        coded = serializer(
            uri, group=name, schema=schema, format=wanted, codec="gzip", typed_java_readers=False, **MAKE
        )
        assert coded.encode_column(column)[0].as_py() == coded.serialize({"a": 7})
        assert coded.decode_column(coded.encode_column(column)).to_pylist() == [{"a": 7}, None]


def reverse(data: bytes, properties: Any = None) -> bytes:
    return data[::-1]


REVERSE = Codec("n/reverse", reverse, reverse, {"how": "all"})


def test_a_codec_of_ones_own_is_registered_with_its_properties(uri, client, group):
    writer = serializer(uri, group=group, schema=AVRO, format="avro", codec=REVERSE, **MAKE)
    assert [codec.to_json() for codec in client.codecs(group)] == [REVERSE.type.to_json()]
    event = writer.serialize({"a": 300})
    assert event[5:] == bytes.fromhex("04d8")
    with pytest.raises(UnsupportedCodecError, match="n/reverse"):
        deserializer(uri, group=group)
    reader = pickle.loads(pickle.dumps(deserializer(uri, group=group, codecs=[REVERSE])))
    assert reader.deserialize(event) == {"a": 300}
    assert pickle.loads(pickle.dumps(writer)).serialize({"a": 300}) == event


def test_several_types_are_told_apart_by_function_class_or_name(uri, group):
    by_function = multi_type_serializer(
        uri, group=group, schemas={"r": AVRO, "o": OTHER}, format="avro", type_of=lambda v: "r" if "a" in v else "o",
        **MAKE,
    )  # fmt: skip
    events = [by_function.serialize(value) for value in ({"a": 1}, {"b": "x"})]
    assert [event[4] for event in events] == [0, 1]
    assert [by_function.deserialize(event) for event in events] == [{"a": 1}, {"b": "x"}]

    class Other:
        b = "x"

    by_class = multi_type_serializer(uri, group=group, schemas={dict: AVRO, Other: OTHER}, format="avro")
    assert [by_class.serialize(value) for value in ({"a": 1}, Other())] == events
    with pytest.raises(SerializationError, match="no schema for a value of the type 'list'"):
        by_class.serialize([])
    unhashable = multi_type_serializer(uri, group=group, schemas={"r": AVRO}, format="avro", type_of=list, **MAKE)
    with pytest.raises(
        SerializationError, match=r"type_of returns \['a'\], which cannot be a key of the schemas; known: r"
    ):
        unhashable.serialize({"a": 1})
    messages = multi_type_serializer(uri, group=f"{group}-m", schemas=[MESSAGE], **MAKE)
    message = event_type(MESSAGE).payloads.message_class(a=3)
    assert messages.deserialize(messages.serialize(message)).a == 3
    with pytest.raises(SerdeError, match="at least one schema"):
        multi_type_serializer(uri, group=group, schemas={})
    for make in (lambda **more: multi_type_serializer(uri, group=group, schemas=[MESSAGE], **more),
                 lambda **more: with_schema_serializer(uri, group=group, **more)):  # fmt: skip
        with pytest.raises(SerdeError, match="require the encoding header"):
            make(write_encoding_header=False)


def test_several_formats_make_a_group_of_any(uri, client, group):
    types = [event_type(AVRO, format="avro"), event_type(JSON, format="json"), event_type(MESSAGE)]
    writer = multi_type_serializer(uri, group=group, schemas=dict(zip("ajm", types, strict=True)),
                                   type_of=lambda value: value["as"], **MAKE)  # fmt: skip
    assert client.group_properties(group).format == SerializationFormat.ANY
    column = pa.array([{"J": {"a": 2}}, {"R": {"a": 1}}, {"M": {"a": 3}}], writer.arrow_type)
    events = writer.encode_column(column)
    assert [event.as_py()[4] for event in events] == [1, 0, 2]
    rows = deserializer(uri, group=group).decode_column(events).to_pylist()
    assert [[name for name, value in row.items() if value] for row in rows] == [["J"], ["R"], ["M"]]
    assert writer.deserialize(writer.serialize({"as": "j", "a": 9})) == {"as": "j", "a": 9}


def several(uri: str, group: str) -> MultiTypeSerializer:
    return multi_type_serializer(uri, group=group, schemas={"r": AVRO, "o": OTHER}, format="avro", **MAKE)


def test_columns_of_several_types_have_one_in_each_row(uri, group):
    writer = several(uri, group)
    kind = writer.arrow_type
    assert kind == pa.struct([("R", pa.struct([("a", pa.int32())])), ("Other", pa.struct([("b", pa.string())]))])
    rows = [{"R": {"a": 1}}, None, {"Other": {"b": "x"}}, {"R": {"a": 2}}]
    column = pa.array(rows, kind)
    events = writer.encode_column(column)
    assert writer.decode_column(events).equals(column)
    assert pickle.loads(pickle.dumps(writer)).encode_column(column).equals(events)
    # The members may come in another order, or not at all.
    only = pa.array([{"Other": {"b": "x"}}], pa.struct([kind.field("Other")]))
    assert writer.encode_column(only)[0] == events[2]
    for wrong in ({"R": {"a": 1}, "Other": {"b": "x"}}, {}):
        with pytest.raises(SerializationError, match=r"row 1: [02] types are set"):
            writer.encode_column(pa.array([rows[0], wrong], kind))
    for unknown in (pa.struct([("X", pa.int32())]), pa.int32(), pa.struct([])):
        with pytest.raises(SchemaError, match="a struct of R, Other"):
            writer.check_encodable(unknown)
    with pytest.raises(SchemaError, match="does not fit"):
        writer.check_encodable(pa.struct([("R", pa.struct([("a", pa.string())]))]))


def test_values_with_schemas_of_every_format_share_a_stream(uri, group):
    lines = {"lines": lambda info: FunctionSerializer(str.encode, bytes.decode)}
    writer = with_schema_serializer(uri, group=group, custom_formats=lines, **MAKE)
    custom = event_type(b"", format=SerializationFormat.custom("lines"), type="n.Line", custom_formats=lines)
    types = [event_type(AVRO, format="avro"), event_type(JSON, format="json"), custom]
    values = [{"a": 1}, {"a": 2}, "three"]
    for value, kind in zip(values, types, strict=True):
        read = writer.deserialize(writer.serialize(WithSchema(value, kind.info)))
        assert read == WithSchema(value, kind.info)
    with pytest.raises(SerializationError, match="WithSchema is expected"):
        writer.serialize({"a": 1})  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="does not define the schema"):
        writer.encode_column(pa.array([1]))


def test_a_reader_of_ones_own_follows_a_stream_that_evolves(uri, group):
    first = serializer(uri, group=group, schema=AVRO, format="avro", **MAKE)
    reader = deserializer(uri, group=group)
    assert reader.arrow_type == pa.struct([("a", pa.int32())])
    wider = {**AVRO, "fields": [*AVRO["fields"], {"name": "b", "type": "string", "default": "-"}]}
    second = serializer(uri, group=group, schema=wider, format="avro", register_schema=True)
    events = [first.serialize({"a": 1}), second.serialize({"a": 2, "b": "x"})]
    # The columns stay the same. New fields are left out without an error.
    assert reader.decode_column(pa.array(events)).to_pylist() == [{"a": 1}, {"a": 2}]
    assert [reader.deserialize(event) for event in events] == [{"a": 1}, {"a": 2, "b": "x"}]
    # Who comes later sees the latest.
    late = deserializer(uri, group=group)
    assert late.decode_column(pa.array(events)).to_pylist() == [{"a": 1, "b": "-"}, {"a": 2, "b": "x"}]
    # A second type of events has no column in a reader that began with one.
    third = serializer(uri, group=group, schema=OTHER, format="avro", register_schema=True)
    with pytest.raises(DeserializationError, match=r"of type 'n\.Other'"):
        reader.decode_column(pa.array([third.serialize({"b": "x"})]))


def test_avro_types_without_fields(uri, group):
    for schema, value, kind in (("string", "é", pa.string()), ('{"type": "long"}', 7, pa.int64())):
        name = f"{group}-{kind}"
        writer = serializer(uri, group=name, schema=schema, format="avro", **MAKE)
        events = writer.encode_column(pa.array([value, None], kind))
        assert events[0].as_py() == writer.serialize(value)
        assert deserializer(uri, group=name).decode_column(events).equals(pa.array([value, None], kind))


def test_messages_with_imports_are_registered_as_java_does_or_whole(uri, group):
    assert Mixin.DESCRIPTOR.file.name == "google/protobuf/api.proto"
    own = serializer(uri, group=group, schema=Mixin, **MAKE)
    whole = serializer(uri, group=group, schema=Method, all_files=True, **MAKE)
    count = [len(FileDescriptorSet.FromString(each.schema.data).file) for each in (own, whole)]
    assert (count[0], count[1] > 3) == (1, True)
    event = own.serialize(Mixin(name="é"))
    # Google's files that a set lacks are taken from Python; messages are of the class that was passed.
    assert deserializer(uri, group=group).deserialize(event).name == "é"
    assert deserializer(uri, group=group, schema=Mixin).deserialize(event) == Mixin(name="é")
    reader = pickle.loads(pickle.dumps(deserializer(uri, group=group, type="google.protobuf.Mixin")))
    assert reader.decode_column(pa.array([event])).to_pylist() == [{"name": "é", "root": ""}]


def test_namespaces_keep_groups_apart(uri, client, group):
    inside = serializer(uri, group=group, schema=AVRO, format="avro", namespace="mine", **MAKE)
    assert isinstance(inside, RegistrySerializer)
    assert group in dict(client.groups(namespace="mine"))
    assert group not in dict(client.groups())
    event = inside.serialize({"a": 1})
    assert deserializer(uri, group=group, namespace="mine").deserialize(event) == {"a": 1}
    with pytest.raises(RegistryNotFoundError):
        deserializer(uri, group=group)


CHILD = """
import pickle, sys
answers = []
for reader, writer, events in pickle.load(sys.stdin.buffer):
    column = reader.decode_column(events)
    assert column.type == reader.arrow_type
    answers.append((column.to_pylist(), writer.encode_column(column)))
sys.stdout.buffer.write(pickle.dumps(answers))
"""


def test_serializers_travel_to_another_process(uri, group):
    given = []
    for schema, wanted in ((AVRO, "avro"), (JSON, "json"), (MESSAGE, "protobuf")):
        writer = serializer(uri, group=f"{group}-{wanted}", schema=schema, format=wanted, **MAKE)
        reader = deserializer(uri, group=f"{group}-{wanted}")
        assert reader.arrow_type == writer.arrow_type
        column = pa.array([{"a": 1}, None, {"a": 3}], pa.struct([("a", pa.int32())]))
        given.append((reader, writer, writer.encode_column(column)))
    command = [sys.executable, "-c", CHILD]
    done = subprocess.run(command, input=pickle.dumps(given), stdout=subprocess.PIPE, check=True, timeout=60)
    for (rows, written), (_, _, events) in zip(pickle.loads(done.stdout), given, strict=True):
        assert rows == [{"a": 1}, None, {"a": 3}]
        assert written.equals(events)


@dataclass
class Reading:
    a: int


def test_values_can_be_objects_of_a_class(uri, group):
    inner: Serializer[Any] = serializer(uri, group=group, schema=AVRO, format="avro", **MAKE)
    readings = typed(inner, Reading)
    event = readings.serialize(Reading(7))
    assert readings.deserialize(event) == Reading(7)
    assert typed(deserializer(uri, group=group), Reading).deserialize(event) == Reading(7)


def _message(kind: str) -> Any:
    return protobuf_schema_of(pa.schema([("a", pa.type_for_alias(kind))]), "n.Evolving")


@pytest.mark.parametrize(
    ("first", "second", "settings"),
    [
        (_message("int64"), _message("string"), {"format": "protobuf", "type": "n.Evolving"}),
        (JSON, {**JSON, "properties": {"a": {"type": "string"}}}, {"format": "json", "type": "n.Evolving"}),
    ],
    ids=["protobuf", "json"],
)
def test_a_schema_that_readers_would_read_wrongly_is_not_registered(uri, client, group, first, second, settings):
    known = serializer(uri, group=group, schema=first, **MAKE, **settings)
    with pytest.raises(
        SchemaError, match=r"schema of 'n\.Evolving' is incompatible with the latest.*allow_incompatible"
    ):
        serializer(uri, group=group, schema=second, register_schema=True, **settings)
    assert len(client.schema_versions(group, known.schema.type)) == 1
    other = serializer(uri, group=group, schema=second, register_schema=True, allow_incompatible=True, **settings)
    assert other.schema != known.schema
    # An existing schema is used for writing, also if newer ones exist.
    assert serializer(uri, group=group, schema=first, register_schema=True, **settings).schema == known.schema
