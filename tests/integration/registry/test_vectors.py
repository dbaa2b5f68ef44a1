"""Every event that Java's registry serializers wrote is read here, and written again byte for byte."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_connector.local import LocalPravega, LocalSchemaRegistry
from pravega_serde.registry import (
    CODEC_GZIP,
    CODEC_NONE,
    CODEC_SNAPPY,
    RegistryConfig,
    RegistrySerializer,
    SchemaInfo,
    SchemaRegistryClient,
    WithSchema,
    deserializer,
    event_type,
    multi_type_serializer,
    serializer,
    shared_client,
    with_schema_serializer,
)
from tests.integration.registry._vectors import STATE, VECTORS, as_java, as_json, replay

PROTO = Path(__file__).with_name("gold.proto")
CODECS = {codec.name: codec for codec in (CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY)}
WITH_HEADER = [vector for vector in VECTORS if "encoding_id" in vector]
WITHOUT_HEADER = [vector for vector in VECTORS if "encoding_id" not in vector]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["case"])


@pytest.fixture(scope="module", autouse=True)
def recorded_state(client: SchemaRegistryClient) -> None:
    replay(client, STATE["client_calls"])


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> FileDescriptorSet:
    """Descriptor that protoc builds from the messages' file, with comments and JSON names."""
    file = tmp_path_factory.mktemp("proto") / "gold.pb"
    options = [f"-I{PROTO.parent}", "--include_source_info", f"--descriptor_set_out={file}", str(PROTO)]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options], check=True, timeout=60)
    return FileDescriptorSet.FromString(file.read_bytes())


def schema_of(vector: dict[str, Any]) -> SchemaInfo:
    """The schema of a vector's event: of an encoding, or the only one of its group."""
    if "encoding_info" in vector:
        return SchemaInfo.from_json(vector["encoding_info"]["schemaInfo"])
    (schema,) = STATE["groups"][vector["group"]]["schemas"]
    return SchemaInfo.from_json(schema["schemaInfo"])


def codec_of(vector: dict[str, Any]) -> str:
    return str(vector["encoding_info"]["codecType"]["name"]) if "encoding_info" in vector else ""


def value_of(vector: dict[str, Any]) -> Any:
    schema = schema_of(vector)
    message = event_type(schema).payloads.message_class if schema.format.name == "Protobuf" else None
    return as_java(vector, message)


def test_there_are_all_vectors() -> None:
    assert (len(WITH_HEADER), len(WITHOUT_HEADER)) == (43, 2)


@pytest.mark.parametrize("vector", WITH_HEADER, ids=name_of)
def test_an_event_is_read_with_its_schema(uri: str, vector: dict[str, Any]) -> None:
    read = deserializer(uri, group=vector["group"]).deserialize_with_schema(bytes.fromhex(vector["hex"]))
    assert as_json(read.value) == vector["value"]
    assert read.schema == schema_of(vector)


@pytest.mark.parametrize("vector", WITHOUT_HEADER, ids=name_of)
def test_an_event_without_header_is_read_by_the_readers_schema(uri: str, vector: dict[str, Any]) -> None:
    reader = deserializer(uri, group=vector["group"], schema=schema_of(vector), write_encoding_header=False)
    assert as_json(reader.deserialize(bytes.fromhex(vector["hex"]))) == vector["value"]
    (row,) = reader.decode_column(pa.array([bytes.fromhex(vector["hex"])]))
    assert row.as_py()["name"] == vector["value"]["name"]


@pytest.mark.parametrize("group", sorted({vector["group"] for vector in WITH_HEADER}))
def test_columns_are_the_rows(uri: str, group: str) -> None:
    vectors = [vector for vector in WITH_HEADER if vector["group"] == group]
    if group in ("json-draft7", "avro-evo"):
        # Their events lack fields of the latest schema, or have others.
        vectors = vectors[:1] if group == "json-draft7" else vectors[1:2]
    reader = deserializer(uri, group=group)
    column = reader.decode_column(pa.array([bytes.fromhex(vector["hex"]) for vector in vectors]))
    assert column.type == reader.arrow_type
    several = len(STATE["groups"][group]["schemas"]) > 1 and group != "avro-evo"
    for found, vector in zip(column.to_pylist(maps_as_pydicts="strict"), vectors, strict=True):
        (row,) = [member for member in found.values() if member is not None] if several else [found]
        value = vector["value"]
        if schema_of(vector).format.name == "Protobuf":
            value = event_type(schema_of(vector)).payloads.as_dict(value_of(vector))
        expected = {key: inner for key, inner in value.items() if key in row}
        assert as_json(row) == {key: expected.get(key) for key in row} | as_json(expected)


@pytest.mark.parametrize("vector", [*WITH_HEADER, *WITHOUT_HEADER], ids=name_of)
def test_a_value_is_written_as_java_wrote_it(uri: str, vector: dict[str, Any]) -> None:
    # In the recorded state nothing has to be registered any more.
    writer = serializer(
        uri,
        group=vector["group"],
        schema=schema_of(vector),
        codec=CODECS[codec_of(vector)],
        write_encoding_header="encoding_id" in vector,
    )
    event, recorded = writer.serialize(value_of(vector)), bytes.fromhex(vector["hex"])
    if not codec_of(vector):
        assert event == recorded
        return
    # Java compresses its whole buffer, so its payloads end with zeros that ours do not have.
    codec = CODECS[codec_of(vector)]
    payload, padded = codec.unpack(event[5:], {}), bytes.fromhex(vector["decompressed_hex"])
    assert event[:5] == recorded[:5]
    assert padded == payload + bytes(len(padded) - len(payload))
    assert codec.pack(padded) == recorded[5:] == bytes.fromhex(vector["hex"])[5:]
    assert codec.unpack(recorded[5:], {}) == padded


@pytest.mark.parametrize("group", ["avro-multi", "proto-multi", "json-multi"])
def test_several_types_are_written_as_java_wrote_them(uri: str, group: str) -> None:
    vectors = [vector for vector in WITH_HEADER if vector["group"] == group]
    schemas = [SchemaInfo.from_json(each["schemaInfo"]) for each in STATE["groups"][group]["schemas"]]
    types = {"level": "Alarm", "orderId": "JOrder", "temp": "Sensor", "age": "JUser"}
    keyed = {schema.type.rpartition(".")[2]: schema for schema in schemas}

    def type_of(value: Any) -> str:
        return next(name for key, name in types.items() if key in value)

    writer = multi_type_serializer(
        uri, group=group, schemas=schemas if group == "proto-multi" else keyed,
        type_of=None if group == "proto-multi" else type_of,
    )  # fmt: skip
    events = [bytes.fromhex(vector["hex"]) for vector in vectors]
    assert [writer.serialize(value_of(vector)) for vector in vectors] == events
    # And by column: a struct with a member per type.
    column = writer.decode_column(pa.array(events))
    assert writer.encode_column(column).to_pylist() == events


def test_values_with_their_schemas_are_written_as_java_wrote_them(uri: str) -> None:
    vectors = [vector for vector in WITH_HEADER if vector["serializer"] == "with_schema"]
    writer = with_schema_serializer(uri, group="any-withschema")
    for vector in vectors:
        event = writer.serialize(WithSchema(value_of(vector), schema_of(vector)))
        assert event == bytes.fromhex(vector["hex"])
        read = writer.deserialize(event)
        assert (as_json(read.value), read.schema) == (vector["value"], schema_of(vector))
    assert len(vectors) == 3


def test_groups_made_again_get_the_same_ids(uri: str) -> None:
    # Our serializers make the calls of Java's: group, codec, schema, encoding.
    config = RegistryConfig(uri=uri, namespace="anew")
    vectors = [vector for vector in WITH_HEADER if vector["serializer"] in ("avro", "json", "protobuf")]
    for vector in vectors:
        codec = CODECS[codec_of(vector)]
        writer = serializer(
            config, group=vector["group"], schema=schema_of(vector), codec=codec, create_group=True,
            register_schema=True, register_codec=True,
        )  # fmt: skip
        assert writer.serialize(value_of(vector))[:5] == bytes.fromhex(vector["hex"])[:5], vector["case"]
    made = shared_client(config)
    for group in {vector["group"] for vector in vectors}:
        recorded = STATE["groups"][group]
        policy = recorded["properties"]["compatibility"]["policy"]
        assert made.group_properties(group).compatibility.policy == policy
        assert [codec.to_json() for codec in made.codecs(group)] == recorded["codecTypes"]


@pytest.mark.long  # the vectors against a registry in memory are above
@pytest.mark.real_servers("a registry that keeps its schemas in Pravega")
def test_a_registry_on_pravega_gives_the_same(pravega: LocalPravega) -> None:
    with LocalSchemaRegistry(controller=pravega.config) as registry:
        config = RegistryConfig(uri=registry.uri, namespace="vectors")
        replay(shared_client(config), STATE["client_calls"])
        for vector in WITH_HEADER:
            event = bytes.fromhex(vector["hex"])
            read = deserializer(config, group=vector["group"]).deserialize_with_schema(event)
            assert (as_json(read.value), read.schema) == (vector["value"], schema_of(vector))
            if not codec_of(vector):
                writer = serializer(config, group=vector["group"], schema=schema_of(vector))
                assert writer.serialize(value_of(vector)) == event


# The schemas' bytes


@pytest.mark.parametrize("schema", [schema for group in STATE["groups"].values() for schema in group["schemas"]])
def test_a_schema_in_any_spelling_has_javas_bytes(schema: dict[str, Any], descriptors: FileDescriptorSet) -> None:
    info = SchemaInfo.from_json(schema["schemaInfo"])
    if info.format.name == "Protobuf":
        ours = event_type(descriptors, type=info.type)
    elif info.format.name == "Avro":
        ours = event_type(respelled(json.loads(info.data)), format="avro")
    else:
        ours = event_type(info.data.decode(), format="json", type=info.type)
    assert ours.info == info


def respelled(schema: Any) -> Any:
    """The same Avro schema with its attributes in another order, and a type in braces."""
    if isinstance(schema, dict):
        braced = {"type": {"type": schema["type"]}} if schema.get("type") in ("double", "int") else {}
        return {key: respelled(schema[key]) for key in sorted(schema)} | braced
    return [respelled(inner) for inner in schema] if isinstance(schema, list) else schema


def test_a_message_class_has_javas_bytes(descriptors: FileDescriptorSet) -> None:
    expected = SchemaInfo.from_json(STATE["groups"]["proto-sensor"]["schemas"][0]["schemaInfo"])
    made = event_type(descriptors, type=expected.type)
    assert event_type(made.payloads.message_class).info == expected


def test_what_was_made_travels(uri: str) -> None:
    writer = serializer(uri, group="avro-sensor", schema=schema_of(WITH_HEADER[0]))
    reader = deserializer(uri, group="avro-sensor")
    kind = reader.arrow_type
    copies = pickle.loads(pickle.dumps((writer, reader)))
    assert isinstance(copies[0], RegistrySerializer)
    assert copies[0].serialize(value_of(WITH_HEADER[0])).hex() == WITH_HEADER[0]["hex"]
    assert copies[1].arrow_type == kind
    column = copies[1].decode_column(pa.array([bytes.fromhex(WITH_HEADER[0]["hex"])]))
    assert column.type == kind
    assert column[0].as_py()["name"] == "sensor-0"
