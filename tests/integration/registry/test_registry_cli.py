"""``pravega-serde registry`` on a real registry."""

import json
from decimal import Decimal

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from pravega_connector.local import LocalSchemaRegistry, RegistryUser
from pravega_connector.operations.cli import main
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
        assert (code, json.loads(output), errors) == (0, {"a": "AQI=", "d": 1.25}, "n.R (Avro)\n")
    code, _, errors = run("decode", "g", "01000000ff00")
    assert code == 4
    assert "encoding id 255" in errors
    assert run("decode", "g", "xyz")[0] == run("decode", "g")[0] == 2


def test_create_and_policy(run, client):
    assert run("create", "g", "--format", "avro") == (0, "", "")
    assert client.group_properties("g") == GroupProperties(
        SerializationFormat.AVRO, Compatibility.FULL_TRANSITIVE, allow_multiple_types=True
    )
    code, _, errors = run("create", "g", "--format", "json")
    assert code == 1
    assert "group 'g' exists already: to use it, pass --exist-ok" in errors
    assert run("create", "g", "--format", "json", "--exist-ok")[0] == 0
    assert run("create", "one", "--format", "any", "--policy", "DenyAll", "--one-type")[0] == 0
    assert client.group_properties("one") == GroupProperties(SerializationFormat.ANY, Compatibility.DENY_ALL)
    code, _, errors = run("create", "two", "--format", "json", "--policy", "Full")
    assert code == 1
    assert "only AllowAny and DenyAll for groups of format Json, not Full" in errors

    assert run("policy", "g") == (0, "FullTransitive\n", "")
    assert run("policy", "g", "Backward") == (0, "", "")
    assert run("policy", "g") == (0, "Backward\n", "")
    code, _, errors = run("policy", "g", "Full", "--if", "Forward")
    assert code == 1
    assert "the group's policy is not the expected one" in errors
    assert run("policy", "g", "Full", "--if", "Backward")[0] == 0
    assert run("policy", "one", "Full")[0] == 1
    assert run("policy", "g", "--if", "Full")[0] == 2
    assert run("policy", "nope")[0] == 4


def test_register(run, client, tmp_path):
    avro_group(client)
    file = tmp_path / "r.avsc"
    file.write_text(json.dumps(ONE))
    assert run("register", "g", file) == (0, "n.R: version 0, id 0\n", "")
    assert run("register", "g", file) == (0, "n.R: version 0, id 0, which the group has already\n", "")
    file.write_text(json.dumps(TWO))
    assert json.loads(run("register", "g", file, "--json")[1]) == {
        "type": "n.R", "serializationFormat": "Avro", "version": 1, "id": 1, "new": True,
    }  # fmt: skip
    file.write_text(json.dumps(BAD))
    code, _, errors = run("register", "g", file)
    assert code == 1
    assert "pravega-serde registry check shows the reason" in errors
    assert run("register", "nope", file)[0] == 4


def test_register_what_the_server_does_not_compare(run, client, tmp_path):
    run("create", "j", "--format", "json")
    file = tmp_path / "t.json"
    file.write_text('{"type": "object", "properties": {"a": {"type": "number"}}}')
    code, _, errors = run("register", "j", file)
    assert code == 1
    assert "pass type" in errors
    assert run("register", "j", file, "--type", "n.T") == (0, "n.T: version 0, id 0\n", "")
    file.write_text('{"type": "object", "properties": {"a": {"type": "string"}}}')
    code, _, errors = run("register", "j", file)  # the only type of the group
    assert code == 1
    assert "accepts no integer, no number; " in errors
    assert "pass --allow-incompatible if every reader supports it" in errors
    assert run("register", "j", file, "--allow-incompatible") == (0, "n.T: version 1, id 1\n", "")
    # The first schema is not the latest, but the group has it.
    file.write_text('{"type": "object", "properties": {"a": {"type": "number"}}}')
    assert run("register", "j", file)[1] == "n.T: version 0, id 0, which the group has already\n"
    run("create", "p", "--format", "protobuf")
    file = tmp_path / "m.desc"
    file.write_bytes(descriptor_set(FieldDescriptorProto.TYPE_INT32))
    assert run("register", "p", file)[1] == "p.M: version 0, id 0\n"


def test_delete(run, client):
    avro_group(client, ONE, TWO)
    code, _, errors = run("delete", "g")
    assert code == 2
    assert "pass --yes to confirm" in errors
    assert run("delete", "g", "--schema", 0, "--yes") == (0, "", "")
    assert [item.version.id for item in client.schema_versions("g")] == [1]
    assert run("delete", "g", "--schema", 7, "--yes")[0] == 4
    assert run("delete", "g", "--yes") == (0, "", "")
    assert dict(client.groups()) == {}
    assert run("delete", "g", "--yes")[0] == 4


def test_decode_a_message(run, client, config):
    message = descriptor_set(FieldDescriptorProto.TYPE_INT64)
    writer = serializer(config, group="m", schema=message, format="protobuf", create_group=True, register_schema=True)
    assert run("decode", "m", writer.serialize({"a": 7}).hex()) == (0, '{\n  "a": 7\n}\n', "p.M (Protobuf)\n")


def test_errors_are_one_line(run, monkeypatch, config):
    monkeypatch.setenv("PRAVEGA_REGISTRY_PASSWORD", "wrong")
    code, output, errors = run("groups")
    assert (code, output) == (1, "")
    assert errors.startswith("[PRAVEGA-REGISTRY-AUTHENTICATION] ")
    assert "wrong" not in errors
    code, _, errors = run("groups", uri="localhost")
    assert (code, errors.count("\n")) == (1, 1)
