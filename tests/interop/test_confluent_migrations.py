"""Migration rules between versions of a schema, with confluent-kafka on the other side."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, protobuf
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import FieldEncryptionExecutor
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from pravega_serde.encryption import ConfluentKeys
from pravega_serde.errors import DeserializationError
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.registry import deserializer, serializer
from pravega_serde.registry.confluent_memory import ConfluentMemoryRegistry
from tests.interop._confluent_executors import registered
from tests.unit.registry._rules import encrypting, register, rule, served_registry

SECRET: Final = "s3cret"
KEYS: Final = ConfluentKeys({"secret": SECRET})
#: Fields of each version, with their types in Avro.
FIELDS: Final = (
    {"id": "long", "fullName": "string", "card": "string"},
    {"id": "long", "first": "string", "last": "string", "card": "string"},
    {"id": "long", "first": "string", "last": "string", "card": "string", "currency": "string", "cups": "int"},
)
VALUES: Final[tuple[dict[str, Any], ...]] = (
    {"id": 2**53 - 1, "fullName": "Ada Lovelace", "card": "4111"},
    {"id": 8, "first": "Grace", "last": "Hopper", "card": "4222"},
    {"id": 9, "first": "Müsli", "last": "", "card": "4333", "currency": "USD", "cups": 3},
)
_NUMBERS: Final = itertools.count()


def without(*names: str) -> str:
    return f"$sift($, function($v, $k) {{ $not($k in {json.dumps(names)}) }})"


def jsonata(mode: str, expr: str, **more: Any) -> dict[str, Any]:
    return rule("JSONATA", mode=mode, expr=expr, **more)


SPLIT: Final = "{'first': $substringBefore(fullName, ' '), 'last': $substringAfter(fullName, ' ')}"
#: Migration rules of each version.
MIGRATIONS: Final[tuple[list[dict[str, Any]], ...]] = (
    [],
    [
        jsonata("UPGRADE", f"$merge([{without('fullName')}, {SPLIT}])"),
        jsonata("DOWNGRADE", f"$merge([{without('first', 'last')}, {{'fullName': first & ' ' & last}}])"),
    ],
    [
        rule("CEL", kind="CONDITION", mode="UPDOWN", expr="message.card != ''"),
        jsonata("UPGRADE", "$merge([$, {'currency': 'EUR', 'cups': $length(first)}])"),
        jsonata("DOWNGRADE", without("currency", "cups")),
    ],
)


def schema_of(format: str, version: int) -> Any:
    """Return the schema of a version, counted from 1, in the form of our serializer."""
    fields = FIELDS[version - 1]
    if format == "avro":
        members = [
            {"name": name, "type": type, **({"confluent:tags": ["PII"]} if name == "card" else {})}
            for name, type in fields.items()
        ]
        return {"type": "record", "name": "shop.Order", "fields": members}
    if format == "json":
        kinds = {"long": "integer", "int": "integer", "string": "string"}
        properties = {
            name: {"type": kinds[type], **({"confluent:tags": ["PII"]} if name == "card" else {})}
            for name, type in fields.items()
        }
        return {"type": "object", "title": "Order", "properties": properties, "required": list(properties)}
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3", dependency=["confluent/meta.proto"])
    message = file.message_type.add(name="Order")
    kinds = {"long": 3, "int": 5, "string": 9}
    for number, (name, type) in enumerate(fields.items(), 10 * version):
        field = message.field.add(name=_snake(name), number=number, type=kinds[type], label=1)
        if name == "card":
            field.options.MergeFromString(b"\x82\x44\x05\x1a\x03PII")
    return FileDescriptorSet(file=[file])


def _snake(name: str) -> str:
    return name.replace("N", "_n")


def value_of(format: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value with the names of a format."""
    return {_snake(name): each for name, each in value.items()} if format == "protobuf" else dict(value)


def text_of(format: str, version: int) -> str:
    schema = schema_of(format, version)
    if format == "protobuf":
        return base64.b64encode(schema.file[0].SerializeToString()).decode()
    return json.dumps(schema)


@pytest.fixture(scope="module", autouse=True)
def executors() -> Iterator[None]:
    with registered(FieldEncryptionExecutor(), CelExecutor(), CelFieldExecutor(), JsonataExecutor()):
        yield


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[ConfluentMemoryRegistry, str]]:
    with served_registry() as found:
        yield found


@pytest.fixture
def theirs(served: tuple[ConfluentMemoryRegistry, str]) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": served[1]}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"moved{next(_NUMBERS)}"


def add(registry: ConfluentMemoryRegistry, group: str, format: str, version: int, *rules: Any, **more: Any) -> int:
    body = json.dumps({"compatibility": "NONE"}).encode()
    registry.answer("PUT", f"/config/{group}", {}, body)
    major = {"properties": {"major": str(version)}, **more.pop("metadata", {})}
    kind, phase = format.upper(), "migrationRules"
    return register(registry, group, text_of(format, version), *rules, kind=kind, phase=phase, metadata=major, **more)


def their_reader(
    format: str, client: SchemaRegistryClient, topic: str, conf: Mapping[str, Any], version: int
) -> Callable[[bytes], Any]:
    """Return their deserializer of a version of the schema."""
    rules = {"secret": SECRET}
    made: Any
    if format == "avro":
        made = AvroDeserializer(client, conf=dict(conf), rule_conf=rules)
    elif format == "json":
        made = JSONDeserializer(None, schema_registry_client=client, conf=dict(conf), rule_conf=rules)
    else:
        message = ProtobufSerializer(schema_of(format, version)).message_class
        conf = {**conf, "use.deprecated.format": False}
        made = protobuf.ProtobufDeserializer(message, conf, client, rule_conf=rules)
    return lambda event: plain(made(event, SerializationContext(topic, MessageField.VALUE)))


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    return {field.name: getattr(value, field.name) for field in value.DESCRIPTOR.fields}


@pytest.mark.parametrize("encrypted", [False, True], ids=["clear", "encrypted"])
@pytest.mark.parametrize("format", ["avro", "json", "protobuf"])
def test_events_of_each_version_are_migrated_as_theirs(
    format: str, encrypted: bool, served: tuple[ConfluentMemoryRegistry, str], theirs: SchemaRegistryClient, topic: str
) -> None:
    registry, uri = served
    group = f"{topic}-value"
    place: dict[str, Any] = {"registry": f"confluent+{uri}", "group": group, "key_service": KEYS}
    events = []
    for version in (1, 2, 3):
        domain = [encrypting()] if encrypted else []
        metadata: dict[str, Any] = {}
        if version == 3:
            domain.append(rule("CEL_FIELD", mode="READ", tags=["LOUD"], expr="value + '!'"))
            metadata = {"tags": {"**.currency": ["LOUD"]}}
        add(registry, group, format, version, *MIGRATIONS[version - 1], domainRules=domain, metadata=metadata)
        writer = serializer(**place, schema=schema_of(format, version), format=format)
        events.append(writer.serialize(value_of(format, VALUES[version - 1])))
    assert not encrypted or all(each["card"].encode() not in event for each, event in zip(VALUES, events, strict=True))
    migrated = set()
    for target in (1, 2, 3):
        chosen = {"use.latest.version": False, "use.latest.with.metadata": {"major": str(target)}}
        versions: list[tuple[Any, Any]] = [({"major": str(target)}, chosen)]
        if target == 3:
            versions.append(("latest", {"use.latest.version": True}))
        for ours, conf in versions:
            read = their_reader(format, theirs, topic, conf, target)
            reader = deserializer(**place, version=ours)
            expected = [read(event) for event in events]
            assert [plain(reader.deserialize(event)) for event in events] == expected
            assert reader.decode_column(pa.array([*events, None])).to_pylist() == [*expected, None]
            migrated |= {(target, json.dumps(each)) for each in expected}
            assert [set(each) for each in expected] == [set(value_of(format, FIELDS[target - 1]))] * 3
    assert len(migrated) == 9
    # Without a version, rows stay as they were written, and columns are the latest ones.
    reader = deserializer(**place)
    assert plain(reader.deserialize(events[0])) == value_of(format, VALUES[0])
    first = {"id": 2**53 - 1, "first": "Ada", "last": "Lovelace", "card": "4111", "currency": "EUR!", "cups": 3}
    assert reader.decode_column(pa.array(events[:1])).to_pylist() == [first]


@pytest.mark.parametrize(
    "expr",
    ["$number(fullName)", "$error('no')", "'text'.nothing", "$merge([$, {'unknown': 1, 'first': 'a', 'last': 'b'}])"],
    ids=["fails", "raises", "nothing", "does not fit"],
)
def test_a_migration_that_fails_is_a_malformed_record(
    expr: str, served: tuple[ConfluentMemoryRegistry, str], theirs: SchemaRegistryClient, topic: str
) -> None:
    registry, uri = served
    group, format = f"{topic}-value", "protobuf"
    add(registry, group, format, 1)
    old = serializer(f"confluent+{uri}", group=group, schema=schema_of(format, 1), format=format)
    event = old.serialize(value_of(format, VALUES[0]))
    add(registry, group, format, 2, jsonata("UPGRADE", expr))
    with pytest.raises(Exception):  # noqa: B017, PT011 - errors of several packages
        their_reader(format, theirs, topic, {"use.latest.version": True}, 2)(event)
    reader = deserializer(f"confluent+{uri}", group=group, version="latest")
    with pytest.raises(DeserializationError) as error:
        reader.deserialize(event)
    assert "4111" not in str(error.value)
    assert "Ada" not in str(error.value)
    new = serializer(f"confluent+{uri}", group=group, schema=schema_of(format, 2), format=format)
    errors: list[DeserializationError] = []
    column = pa.array([event, new.serialize(value_of(format, VALUES[1]))])
    assert reader.decode_column(column, on_error=errors.append).to_pylist() == [None, VALUES[1]]
    assert [each.row for each in errors] == [0]
