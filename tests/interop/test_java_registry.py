"""Java's own registry serializers and deserializers, unchanged, against ours: value by value, through one registry."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message

from connector.local import LocalSchemaRegistry
from pravega_serde.adapters import FunctionSerializer
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.registry import (
    Codec,
    RegistryDeserializer,
    SchemaInfo,
    SchemaRegistryClient,
    SerializationFormat,
    WithSchema,
    deserializer,
    multi_type_serializer,
    serializer,
    with_schema_serializer,
)
from pravega_serde.registry._avro_text import avro_name, avro_text
from tests.interop._java_registry import JavaRegistry
from tests.interop._registry_values import PULSE, RICH, SENSOR, VALUES, VERSIONS, evolved


def mask(data: bytes, properties: Any = None) -> bytes:
    key = 85 if properties is None else int(properties["mask"])
    return bytes(each ^ key for each in data)


MASK = Codec("com.example/mask", mask, mask, {"mask": "85"})
LINES = {"lines": lambda info: FunctionSerializer(str.encode, bytes.decode, arrow_type=pa.string())}


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    with LocalSchemaRegistry() as registry:
        yield registry.uri


@pytest.fixture(scope="module")
def java(uri: str, tmp_path_factory: pytest.TempPathFactory) -> JavaRegistry:
    """Java, after it has written all its events."""
    java = JavaRegistry(uri, tmp_path_factory.mktemp("java_registry"))
    java.write()
    return java


@pytest.fixture(scope="module")
def client(uri: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient(uri) as client:
        yield client


def reader_of(uri: str, client: SchemaRegistryClient, group: str, **settings: Any) -> RegistryDeserializer:
    if group.endswith("-noheader"):
        (found,) = client.latest_schemas(group)
        settings |= {"schema": found.schema, "write_encoding_header": False}
    return deserializer(uri, group=group, codecs=[MASK], custom_formats=LINES, **settings)


def natural(value: Any) -> Any:
    """Messages as dicts, so that they can be compared."""
    if isinstance(value, WithSchema):
        return natural(value.value)
    return ProtobufSerializer(type(value)).as_dict(value) if isinstance(value, Message) else value


@pytest.mark.parametrize("group", VALUES)
def test_what_java_wrote_is_read(java: JavaRegistry, uri: str, client: SchemaRegistryClient, group: str) -> None:
    count, value = VALUES[group]
    events, reader = java.events(group), reader_of(uri, client, group)
    assert len(events) == count
    for i, event in enumerate(events):
        assert natural(reader.deserialize(event)) == value(i), i


def member_names(value: dict[str, Any]) -> str:
    """The column of a value among several types."""
    keys = {"temp": "Sensor", "beats": "Pulse", "units": "Money", "domain": "ErrorInfo", "age": "User"}
    return next((name for key, name in keys.items() if key in value), "Order")


@pytest.mark.parametrize("group", VALUES)
def test_what_java_wrote_is_read_by_column(
    java: JavaRegistry, uri: str, client: SchemaRegistryClient, group: str
) -> None:
    events, (count, value) = java.events(group), VALUES[group]
    reader = reader_of(uri, client, group)
    # Bad and null rows among them must not move the others.
    errors: list[Any] = []
    given = [None, b"", *events, b"\x02" + events[0]]
    column = reader.decode_column(pa.array(given, pa.binary()), on_error=errors.append)
    assert column.type == reader.arrow_type
    rows = column.to_pylist(maps_as_pydicts="strict")
    if not group.endswith("-noheader"):
        assert [error.row for error in errors] == [1, count + 2]
        assert (rows[0], rows[1], rows[-1]) == (None, None, None)
    for i, row in enumerate(rows[2:-1]):
        expected = evolved(i) if group == "avro-versions" else value(i)
        if group.endswith("-multi") or group == "with-schema":
            (row,) = ({key: found} for key, found in row.items() if found is not None)  # noqa: PLW2901
            expected = {member_names(expected): expected}
        assert same(row, expected), f"{i}: {row}"


def same(row: Any, expected: Any) -> bool:
    """Whether a column's value is the row's, but for what columns show in another way: unions of several types."""
    if isinstance(expected, dict) and "inner" in expected and "price" in expected:
        b = expected["inner"]["b"]
        members = {"member0": b if isinstance(b, int) else None, "member1": b if isinstance(b, str) else None}
        expected = expected | {"inner": expected["inner"] | {"b": None if b is None else members}}
    return bool(row == expected)


def test_versions_are_resolved_to_the_readers(java: JavaRegistry, uri: str, client: SchemaRegistryClient) -> None:
    events = java.events("avro-versions")
    reader = deserializer(uri, group="avro-versions", schema=VERSIONS[2], format="avro")
    assert [reader.deserialize(event) for event in events] == [evolved(i) for i in range(len(events))]
    errors: list[Any] = []
    strict = deserializer(uri, group="avro-versions", schema=VERSIONS[2], format="avro", evolution="corrupt")
    rows = strict.decode_column(pa.array(events), on_error=errors.append).to_pylist()
    assert [error.row for error in errors] == [i for i in range(len(events)) if i % 3 != 2]
    assert {error.encoding_id for error in errors} == {0, 1}
    assert [row for row in rows if row] == [evolved(i) for i in range(len(events)) if i % 3 == 2]


# Python writes, Java reads


def schema_in(client: SchemaRegistryClient, group: str, name: str = "") -> SchemaInfo:
    return next(each.schema for each in client.latest_schemas(group) if each.schema.type.endswith(name))


def write_everything(uri: str, client: SchemaRegistryClient, java: JavaRegistry) -> dict[str, list[bytes]]:
    """The events of all groups. Nothing is registered: each schema has to be found as Java registered it."""
    sensor_text = json.dumps(SENSOR, indent=2)
    schemas: dict[str, dict[str, Any]] = {
        "avro": {"schema": sensor_text, "format": "avro"},
        "avro-gzip": {"schema": sensor_text, "format": "avro", "codec": "gzip"},
        "avro-mask": {"schema": SENSOR, "format": "avro", "codec": MASK},
        "avro-reflect": {"schema": schema_in(client, "avro-reflect")},
        "avro-rich": {"schema": RICH, "format": "avro"},
        "avro-snappy": {"schema": SENSOR, "format": "avro", "codec": "snappy"},
        "custom": {"schema": "UTF-8", "format": SerializationFormat.custom("lines"), "type": "com.example.Line"},
        "json-gzip": {"schema": schema_in(client, "json-gzip"), "codec": "gzip", "typed_java_readers": False},
        "json-noheader": {"schema": schema_in(client, "json"), "write_encoding_header": False},
        "json-snappy": {"schema": schema_in(client, "json-snappy"), "codec": "snappy", "typed_java_readers": False},
        "proto-dynamic": {"schema": java.alarm_schema()},
        "proto-gzip": {"schema": schema_in(client, "proto"), "codec": "gzip", "typed_java_readers": False},
        "proto-imports": {"schema": schema_in(client, "proto-imports")},
        "proto-noheader": {"schema": schema_in(client, "proto"), "write_encoding_header": False},
        "proto-snappy": {"schema": schema_in(client, "proto"), "codec": "snappy", "typed_java_readers": False},
    }
    for group in ("json", "proto"):
        schemas[group] = {"schema": schema_in(client, group)}
    written = {}
    for group, settings in schemas.items():
        writer = serializer(uri, group=group, custom_formats=LINES, **settings)
        count, value = VALUES[group]
        written[group] = [writer.serialize(value(i)) for i in range(count)]
    return written | write_several(uri, client)


def write_several(uri: str, client: SchemaRegistryClient) -> dict[str, list[bytes]]:
    """The events of groups with several types or versions."""
    versions = [serializer(uri, group="avro-versions", schema=each, format="avro") for each in VERSIONS]
    groups: dict[str, Any] = {
        "avro-multi": {"Sensor": SENSOR, "Pulse": PULSE},
        "json-multi": {name: schema_in(client, "json-multi", name) for name in ("User", "Order")},
        "proto-multi": {name: schema_in(client, "proto-multi", name) for name in ("Money", "ErrorInfo")},
    }
    written = {}
    for group, schemas in groups.items():
        settings: dict[str, Any] = {"format": "avro"} if group == "avro-multi" else {}
        writer = multi_type_serializer(uri, group=group, schemas=schemas, type_of=member_names, **settings)
        count, value = VALUES[group]
        written[group] = [writer.serialize(value(i)) for i in range(count)]
    count, value = VALUES["avro-versions"]
    written["avro-versions"] = [versions[i % 3].serialize(value(i)) for i in range(count)]
    count, value = VALUES["with-schema"]
    sensor = SchemaInfo(avro_name(SENSOR), SerializationFormat.AVRO, avro_text(SENSOR).encode())
    own = [sensor, schema_in(client, "with-schema", "Money"), schema_in(client, "with-schema", "User")]
    with_schema = with_schema_serializer(uri, group="with-schema")
    written["with-schema"] = [with_schema.serialize(WithSchema(value(i), own[i % 3])) for i in range(count)]
    return written


def test_java_reads_what_was_written_here(java: JavaRegistry, uri: str, client: SchemaRegistryClient) -> None:
    written = write_everything(uri, client, java)
    assert set(written) == set(VALUES)
    for group, events in written.items():
        java.give(group, events)
    answers = java.read()
    assert [answer for answer in answers if answer["wrong"]] == []
    assert {answer["group"] for answer in answers} == set(VALUES)
    assert all(answer["events"] == VALUES[answer["group"]][0] for answer in answers)
    # Every typed and every generic reader that Java has, of three formats.
    assert len(answers) == 36
    # Without codec the bytes are Java's own: the same encoding ids, the same payloads.
    for group, events in written.items():
        if not group.endswith(("-gzip", "-snappy", "-mask")):
            assert events == java.events(group), group


@pytest.mark.parametrize("group", ["avro", "proto", "json", "avro-rich", "avro-gzip", "avro-multi", "proto-multi"])
def test_columns_are_written_as_rows_are(
    java: JavaRegistry, uri: str, client: SchemaRegistryClient, group: str
) -> None:
    events = pa.array(java.events(group))
    column = reader_of(uri, client, group).decode_column(events)
    names = {"avro-multi": ("Sensor", "Pulse"), "proto-multi": ("Money", "ErrorInfo")}
    writer: Any
    if group in names:
        schemas = [schema_in(client, group, name) for name in names[group]]
        writer = multi_type_serializer(uri, group=group, schemas=schemas)
    else:
        codec = "gzip" if group == "avro-gzip" else None
        writer = serializer(uri, group=group, schema=schema_in(client, group), codec=codec)
    written = writer.encode_column(column)
    if group == "avro-gzip":
        assert writer.decode_column(written).equals(column)
    else:
        assert written.to_pylist() == events.to_pylist()
