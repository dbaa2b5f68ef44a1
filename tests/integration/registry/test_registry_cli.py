"""``pravega-serde registry`` on a real registry."""

import json
from decimal import Decimal

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from pravega_connector.cli import main
from pravega_connector.local import LocalSchemaRegistry, RegistryUser
from pravega_connector.testing import InProcessRegistry
from pravega_serde.registry import (
    CODEC_GZIP,
    Compatibility,
    GroupProperties,
    RegistryConfig,
    SchemaInfo,
    SchemaRegistryClient,
    SerializationFormat,
    serializer,
)

USER, PASSWORD = "admin", "s3cret"
ONE = {"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "a", "type": "int"}]}
TWO = {**ONE, "fields": [*ONE["fields"], {"name": "b", "type": "string", "default": ""}]}
BAD = {**ONE, "fields": [{"name": "a", "type": "string"}]}


@pytest.fixture(scope="module")
def config(on_kit):
    kit = InProcessRegistry(username=USER, password=PASSWORD)
    with kit if on_kit else LocalSchemaRegistry(users=[RegistryUser(USER, PASSWORD)]) as registry:
        yield RegistryConfig(uri=registry.uri, username=USER, password=PASSWORD)


@pytest.fixture
def client(config):
    with SchemaRegistryClient(config) as client:
        for group, _ in list(client.groups()):
            client.remove_group(group)
        yield client


@pytest.fixture
def run(capsys, monkeypatch, config):
    monkeypatch.setenv("PRAVEGA_REGISTRY_USERNAME", USER)
    monkeypatch.setenv("PRAVEGA_REGISTRY_PASSWORD", PASSWORD)

    def call(*args, uri=config.uri):
        with pytest.raises(SystemExit) as caught:
            main(["registry", "--timeout", "5", *map(str, args), "--registry", uri])
        captured = capsys.readouterr()
        return caught.value.code or 0, captured.out, captured.err

    return call


def avro_group(client, *schemas):
    client.add_group("g", GroupProperties(SerializationFormat.AVRO, Compatibility.FULL))
    for schema in schemas:
        client.add_schema("g", SchemaInfo("n.R", SerializationFormat.AVRO, json.dumps(schema).encode()))


def test_groups(run, client):
    assert run("groups") == (0, "group  format  policy  types\n", "")
    avro_group(client)
    client.add_group("many", GroupProperties(SerializationFormat.ANY, Compatibility.ALLOW_ANY, True))
    code, output, _ = run("groups")
    assert code == 0
    assert [line.split() for line in output.splitlines()[1:]] == [
        ["g", "Avro", "Full", "one"],
        ["many", "Any", "AllowAny", "many"],
    ]
    assert [group["policy"] for group in json.loads(run("groups", "--json")[1])] == ["Full", "AllowAny"]


def test_schemas(run, client):
    avro_group(client, ONE, TWO)
    code, output, _ = run("schemas", "g", "--text")
    assert code == 0
    lines = output.splitlines()
    assert lines[1].split()[:4] == ["0", "n.R", "Avro", "0"]
    assert lines[2].split()[:4] == ["1", "n.R", "Avro", "1"]
    assert lines[2].split()[-1] == "Full"
    assert '      "name": "b",' in lines
    assert "0  " not in run("schemas", "g", "--type", "other")[1]
    client.delete_schema("g", 0)
    assert [line.split()[0] for line in run("schemas", "g")[1].splitlines()] == ["id", "1"]
    (told,) = json.loads(run("schemas", "g", "--json", "--text")[1])
    assert (told["type"], json.loads(told["schema"])) == ("n.R", TWO)
    code, _, errors = run("schemas", "nope")
    assert code == 4
    assert errors.startswith("[PRAVEGA-REGISTRY-NOT-FOUND] cannot read the history of group 'nope'")


def test_check_avro(run, client, tmp_path):
    avro_group(client, ONE)
    file = tmp_path / "schema.avsc"
    file.write_text(json.dumps(TWO))
    assert run("check", "g", file) == (
        0,
        "Compatible under Full: n.R and the 1 schema(s) of that type in group 'g'\n",
        "",
    )
    file.write_text(json.dumps(BAD))
    code, output, _ = run("check", "g", file)
    assert code == 1
    assert output.startswith("Not compatible under Full")
    assert "  backward: the reader's schema does not fit the writer's at $.a: int -> string" in output
    assert run("check", "g", file, "--policy", "AllowAny")[0] == 0
    # Nothing was registered.
    assert len(client.schema_versions("g")) == 1


def descriptor_set(kind):
    field = FieldDescriptorProto(name="a", number=1, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    message = DescriptorProto(name="M", field=[field])
    file = FileDescriptorProto(name="p.proto", package="p", syntax="proto3", message_type=[message])
    return FileDescriptorSet(file=[file]).SerializeToString()


def test_check_what_the_server_does_not(run, client, tmp_path):
    client.add_group("any", GroupProperties(SerializationFormat.ANY, Compatibility.ALLOW_ANY, True))
    old = descriptor_set(FieldDescriptorProto.TYPE_INT32)
    client.add_schema("any", SchemaInfo("p.M", SerializationFormat.PROTOBUF, old))
    file = tmp_path / "schema.desc"
    file.write_bytes(descriptor_set(FieldDescriptorProto.TYPE_STRING))
    code, output, _ = run("check", "any", file, "--policy", "Backward")
    assert (code, output.splitlines()[1]) == (
        1,
        "  backward: $.a (field 1): int32 cannot be read as string without loss",
    )
    file.write_bytes(descriptor_set(FieldDescriptorProto.TYPE_INT64))
    assert run("check", "any", file, "--policy", "Backward")[0] == 0

    wide, narrow = ({"title": "T", "type": "object", "properties": {"a": {"type": t}}} for t in ("number", "integer"))
    client.add_schema("any", SchemaInfo("T", SerializationFormat.JSON, json.dumps(wide).encode()))
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(narrow))
    assert "backward: $.a: the reader accepts no number" in run("check", "any", file, "--policy", "Full")[1]
    code, _, errors = run("check", "any", file.rename(tmp_path / "schema.txt"))
    assert code == 1
    assert "pass --format" in errors


def test_decode(run, client, config, tmp_path):
    fields = [
        {"name": "a", "type": "bytes"},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
    ]
    properties = GroupProperties(SerializationFormat.AVRO, Compatibility.FULL)
    writer = serializer(
        config,
        group="g",
        schema={**ONE, "fields": fields},
        format="avro",
        create_group=properties,
        register_schema=True,
        register_codec=True,
        codec=CODEC_GZIP,
    )
    event = writer.serialize({"a": b"\x01\x02", "d": Decimal("1.25")})
    file = tmp_path / "event"
    file.write_bytes(event)
    for args in (["decode", "g", event.hex()], ["decode", "g", "--file", file]):
        code, output, errors = run(*args)
        assert (code, json.loads(output), errors) == (0, {"a": "AQI=", "d": "1.25"}, "n.R (Avro)\n")
    code, _, errors = run("decode", "g", "01000000ff00")
    assert code == 4
    assert "encoding id 255" in errors
    assert run("decode", "g", "xyz")[0] == run("decode", "g")[0] == 2


def test_errors_are_one_line(run, monkeypatch, config):
    monkeypatch.setenv("PRAVEGA_REGISTRY_PASSWORD", "wrong")
    code, output, errors = run("groups")
    assert (code, output) == (1, "")
    assert errors.startswith("[PRAVEGA-REGISTRY-AUTHENTICATION] ")
    assert "wrong" not in errors
    code, _, errors = run("groups", uri="localhost")
    assert (code, errors.count("\n")) == (1, 1)
