"""Events of Apicurio's own framing, against a real Apicurio registry. apicurio-serdes is the other side for Avro."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pyarrow as pa
import pytest
from apicurio_serdes import ApicurioRegistryClient
from apicurio_serdes.avro import AvroDeserializer, AvroSerializer
from apicurio_serdes.serialization import MessageField, SerializationContext
from click.testing import CliRunner
from google.protobuf import type_pb2

from pravega_connector.operations.cli.root import command_line
from pravega_serde import generate
from pravega_serde.errors import DeserializationError, RegistryNotFoundError
from pravega_serde.registry import RegistryConfig, deserializer, latest_schema, serializer
from pravega_serde.registry.header import APICURIO, CONFLUENT

_NUMBERS: Final = itertools.count()
_AT: Final = SerializationContext("orders", MessageField.VALUE)
ORDER: Final = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "long"}]}
JSON: Final = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture(scope="module")
def uri(apicurio: str) -> str:
    return f"apicurio+{apicurio}"


@pytest.fixture(scope="module")
def theirs(apicurio: str) -> Iterator[ApicurioRegistryClient]:
    with ApicurioRegistryClient(url=f"{apicurio}/apis/registry/v3", group_id="shop") as client:
        yield client


@pytest.fixture
def artifact() -> str:
    return f"artifact{next(_NUMBERS)}"


def global_id(apicurio: str, group: str, artifact: str) -> int:
    path = f"/apis/registry/v3/groups/{group}/artifacts/{artifact}/versions/branch=latest"
    found: int = httpx2.get(apicurio + path).raise_for_status().json()["globalId"]
    return found


def test_avro_of_theirs_and_ours(uri: str, theirs: ApicurioRegistryClient, artifact: str) -> None:
    write = AvroSerializer(theirs, artifact, schema=ORDER, auto_register=True, use_id="contentId")
    event = write({"id": 1}, _AT)
    reader = deserializer(uri, group=artifact, namespace="shop")
    assert reader.deserialize(event) == {"id": 1}
    assert reader.decode_column(pa.array([event, None])).to_pylist() == [{"id": 1}, None]
    ours = serializer(uri, group=artifact, namespace="shop", schema=ORDER, format="avro")
    assert ours.serialize({"id": 1}) == event
    assert AvroDeserializer(theirs, use_id="contentId")(ours.serialize({"id": 2}), _AT) == {"id": 2}
    # The same name in another group is another artifact.
    with pytest.raises(RegistryNotFoundError, match=f"subject '{artifact}'"):
        serializer(uri, group=artifact, namespace="other", schema=ORDER, format="avro")


@pytest.mark.parametrize("format_name", ["avro", "json"])
def test_events_with_global_ids(uri: str, apicurio: str, artifact: str, format_name: str) -> None:
    schema = {"avro": ORDER, "json": JSON}[format_name]
    settings: dict[str, Any] = {"schema": schema, "format": format_name, "register_schema": True}
    serializer(uri, group=f"{artifact}-other", **settings)  # so that global ids and content ids differ
    new = serializer(uri, group=artifact, **settings).serialize({"id": 1})
    number = global_id(apicurio, "default", artifact)
    old = APICURIO.header(number) + new[CONFLUENT.size :]
    assert number != int.from_bytes(new[1:5], "big")
    reader = deserializer(uri, group=artifact)
    assert [reader.deserialize(event) for event in (new, old)] == [{"id": 1}] * 2
    assert reader.decode_column(pa.array([old, new, old])).to_pylist() == [{"id": 1}] * 3
    with pytest.raises(RegistryNotFoundError, match="global id 1000000"):
        reader.deserialize(APICURIO.header(1_000_000) + new[5:])


def test_protobuf_with_type_references(uri: str, apicurio: str, artifact: str) -> None:
    message = type_pb2.Enum(name="Level")
    writer = serializer(uri, group=artifact, schema=type_pb2.Enum, register_schema=True)
    event = writer.serialize(message)
    # A Ref with the name of the descriptor, delimited, as writeRef of Java's ProtobufSerializer writes it.
    assert event[5:] == bytes.fromhex("060a04") + b"Enum" + message.SerializeToString()
    old = APICURIO.header(global_id(apicurio, "default", artifact)) + event[5:]
    reader = deserializer(uri, group=artifact, type="google.protobuf.Enum")
    assert [reader.deserialize(each).name for each in (event, old)] == ["Level"] * 2
    errors: list[DeserializationError] = []
    bad = [event[:5] + each for each in (b"\x06\x0a\x04Enu?", b"\x7f", b"", b"\x02\x12\x00", b"\x03\x0a\x01\xff")]
    found = reader.decode_column(pa.array([*bad, old, event]), on_error=errors.append).to_pylist()
    assert [row and row["name"] for row in found] == [*[None] * len(bad), "Level", "Level"]
    assert [error.row for error in errors] == list(range(len(bad)))


def test_a_running_reader_sees_new_versions(uri: str, artifact: str) -> None:
    config = RegistryConfig(uri=uri, latest_seconds=0)
    later = {**ORDER, "fields": [*ORDER["fields"], {"name": "item", "type": "string", "default": "?"}]}  # type: ignore[misc]
    first, second = (
        serializer(config, group=artifact, schema=schema, format="avro", register_schema=True).serialize(value)
        for schema, value in ((ORDER, {"id": 1}), (later, {"id": 2, "item": "tea"}))
    )
    running = deserializer(config, group=artifact, schema=ORDER, format="avro")
    assert running.decode_column(pa.array([first, second])).to_pylist() == [{"id": 1}, {"id": 2}]
    latest = deserializer(config, group=artifact).decode_column(pa.array([first, second])).to_pylist()
    assert latest == [{"id": 1, "item": "?"}, {"id": 2, "item": "tea"}]


@pytest.mark.parametrize("kind", ["apicurio", "confluent"])
def test_code_for_the_latest_schema(apicurio: str, confluent: str, kind: str, artifact: str) -> None:
    """Generate classes from the schemas of both interfaces."""
    address = f"{kind}+{apicurio if kind == 'apicurio' else confluent}"
    namespace = "shop" if kind == "apicurio" else None
    for name, schema, given in (
        ("avro", ORDER, {"format": "avro"}),
        ("json", JSON, {"format": "json", "type": "Order"}),
        ("proto", type_pb2.Type, {}),
    ):
        group = f"{artifact}-{name}"
        writer = serializer(address, group=group, namespace=namespace, schema=schema, register_schema=True, **given)
        writer.serialize({"id": 1} if name != "proto" else type_pb2.Type(name="x"))
        found = latest_schema(address, group=group, namespace=namespace)
        text = generate(found, to="msgspec").files["events.py"]
        assert ("class Type(Struct" if name == "proto" else "class Order(Struct") in text
    with pytest.raises(RegistryNotFoundError):
        latest_schema(address, group=f"{artifact}-absent", namespace=namespace)


def test_rules_that_apicurio_does_not_store_are_an_error(apicurio: str, artifact: str, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    (tmp_path / "rules.json").write_text(
        '{"ruleSet": {"domainRules": [{"name": "a", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}]}}'
    )
    uri = f"confluent+{apicurio}/apis/ccompat/v7"
    given = [str(tmp_path / "order.avsc"), "--rules", str(tmp_path / "rules.json"), "--registry", uri]
    result = CliRunner().invoke(command_line, ["registry", "register", artifact, *given])
    assert result.exit_code == 1
    assert "PRAVEGA-UNSUPPORTED-RULE" in result.output
    assert f"ignored ruleSet of the schema: version 1 of subject '{artifact}'" in result.output
