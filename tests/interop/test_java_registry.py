"""Java's own registry serializers and deserializers, unchanged, against ours: value by value, through one registry."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from hypothesis import Phase, given
from hypothesis import settings as limits

from pravega_connector.local import LocalSchemaRegistry
from pravega_serde.adapters import FunctionSerializer, typed
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.registry import (
    Codec,
    RegistryDeserializer,
    SchemaInfo,
    SchemaRegistryClient,
    SerializationFormat,
    WithSchema,
    deserializer,
    event_type,
    multi_type_serializer,
    serializer,
    with_schema_serializer,
)
from tests.interop._java_registry import JavaRegistry
from tests.interop._registry_classes import CLASSES, as_object
from tests.interop._registry_values import PULSE, RICH, SENSOR, VALUES, VERSIONS, evolved
from tests.unit.serde.test_avro_random import schemas as avro_schemas


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


SHOWN = ("avro-multi", "json-multi", "with-schema")
# of a schema that is made of the column's
DERIVED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("text", pa.string()),
        ("ratio", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.int32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("names", pa.list_(pa.field("element", pa.string(), nullable=False))),
        ("inner", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "id": i,
        "text": None if i % 3 == 0 else f"é{i}",
        "ratio": i / 7,
        "flag": i % 2 == 0,
        "day": -i,
        "moment": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=i),
        "names": ["a", f"n{i}"],
        "inner": {"x": i, "y": None if i % 2 == 0 else "y"},
        "counts": {f"k{i}": i},
    }
    for i in range(200)
]
ROWS_COLUMN = pa.array([row | {"counts": list(row["counts"].items())} for row in ROWS], pa.struct(list(DERIVED)))


@pytest.fixture(scope="module")
def derived(uri: str) -> dict[str, pa.Array]:
    """Events by group, written with schemas of each format that were made of the columns'."""
    written = {}
    for wanted in ("avro", "json", "protobuf"):
        column = ROWS_COLUMN
        if wanted == "protobuf":
            # Java's generic reader does not read schemas with imports, such as Timestamp's.
            moments = pa.field("moment", pa.int64())
            column = column.cast(pa.struct([moments if each.name == "moment" else each for each in column.type]))
        writer = serializer(
            uri, group=f"derived-{wanted}", schema=column.type, format=wanted, type="com.example.Derived",
            create_group=True, register_schema=True,
        )  # fmt: skip
        writer.check_encodable(column.type)
        written[f"derived-{wanted}"] = writer.encode_column(column)
    return written


@pytest.fixture(scope="module")
def java_json(java: JavaRegistry, derived: Mapping[str, pa.Array]) -> dict[str, list[Any]]:
    """Values that Java's generic reader shows of events by Java and by us, by group."""
    ours = {group: events.to_pylist() for group, events in derived.items()}
    return java.show({group: java.events(group) for group in SHOWN} | ours)


def reader_of(uri: str, group: str, **settings: Any) -> RegistryDeserializer:
    settings |= {"write_encoding_header": not group.endswith("-noheader")}
    return deserializer(uri, group=group, codecs=[MASK], custom_formats=LINES, **settings)


def natural(value: Any) -> Any:
    """Messages as dicts, so that they can be compared."""
    if isinstance(value, WithSchema):
        return natural(value.value)
    return ProtobufSerializer(type(value)).as_dict(value) if isinstance(value, Message) else value


@pytest.mark.parametrize("group", VALUES)
def test_what_java_wrote_is_read(java, uri, group):
    count, value = VALUES[group]
    events, reader = java.events(group), reader_of(uri, group)
    assert len(events) == count
    for i, event in enumerate(events):
        assert natural(reader.deserialize(event)) == value(i), i


def member_names(value: dict[str, Any]) -> str:
    """The column of a value among several types."""
    keys = {"temp": "Sensor", "beats": "Pulse", "units": "Money", "domain": "ErrorInfo", "age": "User"}
    return next((name for key, name in keys.items() if key in value), "Order")


@pytest.mark.parametrize("group", VALUES)
def test_what_java_wrote_is_read_by_column(java, uri, group):
    events, (count, value) = java.events(group), VALUES[group]
    reader = reader_of(uri, group)
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
        if "-multi" in group or group.startswith("with-schema"):
            (row,) = ({key: found} for key, found in row.items() if found is not None)
            expected = {member_names(expected): expected}
        assert same(row, expected), f"{i}: {row}"


def same(row: Any, expected: Any) -> bool:
    """Return True if a column's value is the row's, except for unions of several types."""
    if isinstance(expected, dict) and "inner" in expected and "price" in expected:
        b = expected["inner"]["b"]
        members = {"member0": b if isinstance(b, int) else None, "member1": b if isinstance(b, str) else None}
        expected = expected | {"inner": expected["inner"] | {"b": None if b is None else members}}
    return bool(row == expected)


def test_versions_are_resolved_to_the_readers(java, uri):
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
    count, value = VALUES["avro-versions"]
    written = {"avro-versions": [versions[i % 3].serialize(value(i)) for i in range(count)]}
    documents = {name: schema_in(client, "json-multi", name) for name in ("User", "Order")}
    messages = {name: schema_in(client, "proto-multi", name) for name in ("Money", "ErrorInfo")}
    written |= write_objects(uri, documents, messages)
    for group, own in (
        ("json-multi-snappy", {"schemas": documents, "codec": "snappy"}),
        ("proto-multi-gzip", {"schemas": messages, "codec": "gzip"}),
    ):
        writer = multi_type_serializer(uri, group=group, type_of=member_names, **own)
        count, value = VALUES[group]
        written[group] = [writer.serialize(value(i)) for i in range(count)]
    sensor = event_type(SENSOR, format="avro").info
    infos = [sensor, messages["Money"], documents["User"]]
    for group, codec in (("with-schema", None), ("with-schema-gzip", "gzip")):
        with_schema = with_schema_serializer(uri, group=group, codec=codec)
        count, value = VALUES[group]
        written[group] = [with_schema.serialize(WithSchema(value(i), infos[i % 3])) for i in range(count)]
    return written


def write_objects(
    uri: str, documents: Mapping[str, SchemaInfo], messages: Mapping[str, SchemaInfo]
) -> dict[str, list[bytes]]:
    """The events of groups with several types, each written from an object of its type's class."""
    groups: dict[str, tuple[dict[str, Any], dict[str, type]]] = {
        "avro-multi": ({"schemas": [SENSOR, PULSE], "format": "avro"}, CLASSES),
        "json-multi": ({"schemas": list(documents.values())}, CLASSES),
        "proto-multi": ({"schemas": list(messages.values())}, CLASSES),
    }
    written = {}
    for group, (settings, classes) in groups.items():
        writer = typed(multi_type_serializer(uri, group=group, **settings), classes)
        count, value = VALUES[group]
        written[group] = [writer.serialize(as_object(value(i))) for i in range(count)]
    return written


@pytest.mark.parametrize("group", ["avro-multi", "json-multi", "proto-multi", "with-schema", "with-schema-gzip"])
def test_what_java_wrote_of_several_types_is_read_as_objects(java, uri, group):
    events, (count, value) = java.events(group), VALUES[group]
    reader = typed(deserializer(uri, group=group), CLASSES)
    assert [reader.deserialize(event) for event in events] == [as_object(value(i)) for i in range(count)]
    # As Java's readers of typed or generic values: with the class of one type only.
    name, kind = next((name, kind) for name, kind in CLASSES.items() if isinstance(as_object(value(0)), kind))
    some = typed(deserializer(uri, group=group), {name: kind}, others="generic")
    for i, event in enumerate(events):
        found = some.deserialize(event)
        if isinstance(as_object(value(i)), kind):
            assert found == as_object(value(i))
        else:
            assert found.schema.type != name
            assert natural(found) == value(i)


@pytest.mark.parametrize("group", SHOWN)
def test_json_text_is_that_of_java(java, java_json, uri, group):
    reader = deserializer(uri, group=group, values="json")
    for event, shown in zip(java.events(group), java_json[group], strict=True):
        found = json.loads(reader.deserialize(event))
        if "units" in found:
            # Java's JSON of Protobuf has 64 bits as text, and omits defaults.
            shown = {"currency_code": "", "units": "0", "nanos": 0} | shown
            shown["units"] = int(shown["units"])
        assert found == shown


def test_java_reads_what_was_written_here(java, uri, client):
    written = write_everything(uri, client, java)
    assert set(written) == set(VALUES)
    for group, events in written.items():
        java.give(group, events)
    answers = java.read()
    assert [answer for answer in answers if answer["wrong"]] == []
    assert {answer["group"] for answer in answers} == set(VALUES)
    assert all(answer["events"] == VALUES[answer["group"]][0] for answer in answers)
    # Every typed and every generic reader that Java has, of three formats.
    assert len(answers) == 39
    # Without codec the bytes are Java's own: the same encoding ids, the same payloads.
    for group, events in written.items():
        if not group.endswith(("-gzip", "-snappy", "-mask")):
            assert events == java.events(group), group


@pytest.mark.parametrize("group", ["avro", "proto", "json", "avro-rich", "avro-gzip", "avro-multi", "proto-multi"])
def test_columns_are_written_as_rows_are(java, uri, client, group):
    events = pa.array(java.events(group))
    column = reader_of(uri, group).decode_column(events)
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


# Schemas

SPELLINGS: list[Any] = [
    "string",
    {"type": "string", "avro.java.string": "String"},
    {"type": "array", "items": {"type": "string"}, "java-class": "java.util.List"},
    {"type": "map", "values": ["null", "int"], "name": "ignored", "doc": "ignored too"},
    {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration", "namespace": "n", "aliases": ["G", "m.H"]},
    {"props": 1, "default": "A", "type": "enum", "name": "E", "symbols": ["A"], "doc": "x"},
    {"type": "error", "name": "Err", "fields": []},
    {"type": "double", "default": 5},
    {"fields": [
        {"type": "int", "name": "x", "order": "descending", "aliases": ["y", "z", "y"], "default": 3, "doc": "d",
         "extra": {"q": 1.50, "z": [1e10, 1e-7, None, True, 'é😀\u0001\u001f/"']}},
        {"name": "b", "type": "int", "order": "ignore"}, {"name": "c", "type": "int", "order": "ascending"},
    ], "name": "R", "type": "record", "namespace": "a.b", "aliases": ["S", "c.T"], "doc": "über", "zed": 1},
    {"type": "record", "name": "a.b.R", "fields": [
        {"name": "s", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "t", "type": "E"}, {"name": "u", "type": "a.b.E"},
        {"name": "f", "type": {"type": "fixed", "name": "c.F", "size": 4}}, {"name": "g", "type": ["null", "c.F"]},
        {"name": "n", "type": {"type": "record", "name": "N", "namespace": "", "fields": [
            {"name": "m", "type": {"type": "record", "name": "M", "fields": [{"name": "i", "type": "a.b.E"}]}}]}},
        {"name": "n2", "type": "N"},
    ]},
    {"type": "record", "name": "R", "fields": [
        {"name": "self", "type": ["null", "R"]},
        {"name": "inner", "type": {"type": "record", "name": "I", "namespace": "x", "fields": [
            {"name": "back", "type": "R"}, {"name": "me", "type": ["null", "I"]}]}},
    ]},
    # Names that types have, too.
    {"type": "record", "name": "map", "namespace": "x", "fields": [{"name": "m", "type": ["null", "x.map"]}]},
    {"type": "record", "name": "D", "default": {"a": 1}, "fields": [
        {"name": "a", "type": "double", "default": 1}, {"name": "b", "type": "double", "default": "NaN"},
        {"name": "c", "type": "float", "default": 1.1}, {"name": "d", "type": "float", "default": "-Infinity"},
        {"name": "e", "type": "bytes", "default": "\u00ff\u0000"}, {"name": "h", "type": "double", "default": 1e5},
        {"name": "i", "type": "double", "default": 123456789012345678901234567890},
        {"name": "j", "type": "int", "logicalType": "date"},
    ]},
]  # fmt: skip


def random_schemas() -> list[Any]:
    """Schemas of records inside records, as the tests of Avro draw them, the same in every run."""
    drawn: list[Any] = []

    @limits(max_examples=150, derandomize=True, database=None, phases=[Phase.generate], deadline=None)
    @given(avro_schemas())
    def draw(schema: Any) -> None:
        drawn.append(schema[0])

    draw()
    return drawn


def _registered(schema: Any) -> tuple[str, str]:
    info = event_type(schema, format="avro").info
    return info.type, info.data.decode()


def test_avro_schemas_are_printed_as_java_prints_them(java):
    given_schemas = SPELLINGS + [schema for schema in random_schemas() if not isinstance(schema, list)]
    answers = java.texts(json.dumps(schema) for schema in given_schemas)
    compared = 0
    for schema, answer in zip(given_schemas, answers, strict=True):
        if answer is not None:
            compared += 1
            # Only the name of a primitive type would count as a file name.
            assert _registered(schema) == answer
    assert compared >= 100
    assert None not in answers[: len(SPELLINGS)]


@pytest.mark.parametrize("wanted", ["avro", "json", "protobuf"])
def test_java_reads_what_was_written_with_a_derived_schema(java_json, derived, uri, wanted):
    group = f"derived-{wanted}"
    for row, shown in zip(ROWS, java_json[group], strict=True):
        micros = (row["moment"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        expected = row | {"moment": micros}
        if wanted == "json":
            expected["moment"] = shown["moment"]
            assert datetime.fromisoformat(shown["moment"]) == row["moment"]
        if wanted == "protobuf":
            # The JSON of Protobuf has 64 bits as text, and nothing for what is not there.
            shown |= {key: int(shown[key]) for key in ("id", "moment") if key in shown}
            shown = {"text": None, "id": 0, "day": 0, "flag": False, "ratio": 0.0} | shown
            shown["inner"] = {"x": 0, "y": None} | shown["inner"]
            shown["counts"] = {key: int(value) for key, value in shown["counts"].items()}
        assert shown == expected
    # A reader without a schema gets the columns back from the registry.
    back = deserializer(uri, group=group).decode_column(derived[group])
    assert back.cast(ROWS_COLUMN.type).to_pylist() == ROWS_COLUMN.to_pylist()
