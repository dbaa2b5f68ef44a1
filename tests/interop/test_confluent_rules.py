"""Rules of schemas, with confluent-kafka on the other side of a registry that this process serves."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, protobuf
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor, msg_to_cel
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import FieldEncryptionExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

from pravega_serde.encryption import ConfluentKeys
from pravega_serde.errors import DeserializationError, EncryptionKeyError, PravegaError, UnsupportedRuleError
from pravega_serde.protobuf import ProtobufSerializer
from pravega_serde.registry import deserializer, serializer
from pravega_serde.registry.confluent_memory import ConfluentMemoryRegistry
from pravega_serde.registry.expressions import cel_function
from pravega_serde.registry.rule_set import Rule
from tests.interop._confluent_executors import registered
from tests.unit.registry._rules import FORMATS, VALUE, encrypting, register, rule, served_registry, text_of
from tests.unit.registry._scripted import answer, scripted

SECRET: Final = "s3cret"
KEYS: Final = ConfluentKeys({"secret": SECRET})
_NUMBERS: Final = itertools.count()
_LATEST: Final = {"auto.register.schemas": False, "use.latest.version": True}
MESSAGE: Final = ProtobufSerializer(FORMATS["protobuf"]).message_class


@pytest.fixture(scope="module", autouse=True)
def executors() -> Iterator[None]:
    with registered(FieldEncryptionExecutor(), CelExecutor(), CelFieldExecutor()):
        yield


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[ConfluentMemoryRegistry, str]]:
    with served_registry() as found:
        yield found


@pytest.fixture(scope="module")
def theirs(served: tuple[ConfluentMemoryRegistry, str]) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": served[1]}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"topic{next(_NUMBERS)}"


def writer_of(format: str, client: SchemaRegistryClient, topic: str) -> Callable[[Any], bytes]:
    """Return their serializer, with the latest schema and its rules."""
    rules = {"secret": SECRET}
    made: Any
    if format == "avro":
        made = AvroSerializer(client, json.dumps(FORMATS[format]), conf=_LATEST, rule_conf=rules)
    elif format == "json":
        made = JSONSerializer(json.dumps(FORMATS[format]), client, conf=_LATEST, rule_conf=rules)
    else:
        conf = {**_LATEST, "use.deprecated.format": False}
        made = protobuf.ProtobufSerializer(MESSAGE, client, conf=conf, rule_conf=rules)
    to = (lambda value: MESSAGE(**value)) if format == "protobuf" else dict
    return lambda value: made(to(value), SerializationContext(topic, MessageField.VALUE))


def reader_of(format: str, client: SchemaRegistryClient, topic: str) -> Callable[[bytes], Any]:
    """Return their deserializer."""
    rules = {"secret": SECRET}
    made: Any
    if format == "avro":
        made = AvroDeserializer(client, rule_conf=rules)
    elif format == "json":
        # With its own schema, it runs only that schema's rules.
        made = JSONDeserializer(None, schema_registry_client=client, rule_conf=rules)
    else:
        made = protobuf.ProtobufDeserializer(MESSAGE, {"use.deprecated.format": False}, client, rule_conf=rules)
    return lambda event: _plain(made(event, SerializationContext(topic, MessageField.VALUE)))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    return {"id": value.id, "card": value.card, "tags": list(value.tags)}


@pytest.mark.parametrize("algorithm", ["AES256_GCM", "AES256_SIV"])
@pytest.mark.parametrize("days", [0, 1])
@pytest.mark.parametrize("format", FORMATS)
def test_encrypted_fields_both_ways(
    format: str,
    algorithm: str,
    days: int,
    served: tuple[ConfluentMemoryRegistry, str],
    theirs: SchemaRegistryClient,
    topic: str,
) -> None:
    registry, uri = served
    group, schema = f"{topic}-value", FORMATS[format]
    register(registry, group, text_of(format), encrypting(algorithm, days), kind=format.upper())
    reader = deserializer(f"confluent+{uri}", group=group, key_service=KEYS)
    their_event = writer_of(format, theirs, topic)(VALUE)
    assert b"4111" not in their_event
    assert _plain(reader.deserialize(their_event)) == VALUE
    assert reader.decode_column(pa.array([their_event, None])).to_pylist() == [VALUE, None]

    writer = serializer(f"confluent+{uri}", group=group, schema=schema, format=format, key_service=KEYS)
    events = [writer.serialize(VALUE), *writer.encode_column(pa.array([VALUE], writer.arrow_type)).to_pylist()]
    read = reader_of(format, theirs, topic)
    for event in events:
        assert b"4111" not in event
        assert read(event) == VALUE
    if algorithm == "AES256_SIV":
        assert events[0] == events[1] == their_event or format == "json"  # they write spaces between members


@pytest.mark.parametrize("format", FORMATS)
def test_conditions_both_ways(
    format: str, served: tuple[ConfluentMemoryRegistry, str], theirs: SchemaRegistryClient, topic: str
) -> None:
    registry, uri = served
    group, bad = f"{topic}-value", {**VALUE, "id": -1}
    check = rule("CEL", kind="CONDITION", expr="message.id > 0 && size(message.tags) == 2")
    register(registry, group, text_of(format), check, kind=format.upper())
    write, read = writer_of(format, theirs, topic), reader_of(format, theirs, topic)
    writer = serializer(f"confluent+{uri}", group=group, schema=FORMATS[format], format=format)
    assert _plain(writer.deserialize(write(VALUE))) == VALUE
    assert read(writer.serialize(VALUE)) == VALUE
    with pytest.raises(SerializationError):
        write(bad)
    with pytest.raises(PravegaError, match="does not meet"):
        writer.serialize(bad)


@pytest.mark.parametrize("format", FORMATS)
def test_transformed_fields_are_theirs(
    format: str, served: tuple[ConfluentMemoryRegistry, str], theirs: SchemaRegistryClient, topic: str
) -> None:
    registry, uri = served
    group = f"{topic}-value"
    given = rule("CEL_FIELD", mode="WRITE", tags=["PII"], expr="typeName == 'STRING' ; value + '-' + name")
    register(registry, group, text_of(format), given, kind=format.upper())
    ours = serializer(f"confluent+{uri}", group=group, schema=FORMATS[format], format=format)
    events = [ours.serialize(VALUE), writer_of(format, theirs, topic)(VALUE)]
    first, second = (_plain(ours.deserialize(event)) for event in events)
    assert first == second == {"id": 7, "card": "4111-card", "tags": ["a-tags", "müsli-tags"]}


def test_an_unknown_rule_is_an_error_on_both_sides(
    served: tuple[ConfluentMemoryRegistry, str], theirs: SchemaRegistryClient, topic: str
) -> None:
    registry, uri = served
    group = f"{topic}-value"
    register(registry, group, text_of("avro"), rule("QUANTUM"))
    with pytest.raises(SerializationError):
        writer_of("avro", theirs, topic)(VALUE)
    with pytest.raises(UnsupportedRuleError, match="'quantum' of type QUANTUM"):
        serializer(f"confluent+{uri}", group=group, schema=FORMATS["avro"], format="avro")


_HOST = ".".join(["a" * 63] * 3)
_TEXTS: Final = [
    *("", "a", "a@b.c", "a@b", "a@@b.c", "a b@c.d", "Ada <a@b.c>", "a@-b.c", "a@b-.c", "a@b.1", "@b.c", "a@"),
    *(
        f"{'u' * 64}@b.c",
        f"{'u' * 65}@b.c",
        f"u@{_HOST}.{'a' * 61}",
        f"u@{_HOST}.{'a' * 60}",
        "a@b.c.",
        "ä@b.c",
        "a@ä.c",
    ),
    *("host", "host.", "host..", ".host", "1", "1.a", "a.1", "-", "a-", "a_b", "A.b-c.D", "a" * 63, "a" * 64),
    *("127.0.0.1", "127.0.0.256", "127.1", "01.2.3.4", "::1", "::ffff:1.2.3.4", "fe80::1%eth0", "1::2::3"),
    *(
        "http://a/b",
        "http://a",
        "http:/a",
        "mailto:a@b",
        "//a/b",
        "/a",
        "a#b",
        "#b",
        "http://[",
        "a:b#c",
        "http://a/b#c",
    ),
    *(f"{12345678:032}", f"{{{12345678:032}}}", "urn:uuid:12345678-1234-1234-1234-123456789abc", "12345678-1234"),
    "123456781234123412341234567890ag",
]


@pytest.mark.parametrize("function", ["isEmail", "isHostname", "isIpv4", "isIpv6", "isUri", "isUriRef", "isUuid"])
def test_functions_of_their_cel(function: str) -> None:
    """The same answers, and an error for the same texts and types."""
    theirs = CelExecutor()
    environment, functions = theirs._env, theirs._funcs

    def answers(run: Callable[[Any], Any]) -> list[Any]:
        found: list[Any] = []
        for value in (*_TEXTS, b"\1\2\3\4", b"\0" * 16, b"a@b.c", 1):
            try:
                found.append(bool(run(value)))
            except Exception:
                found.append("error")
        return found

    program = environment.program(environment.compile(f"value.{function}()"), functions=functions)
    known = answers(lambda value: program.evaluate({"value": msg_to_cel(value)}))
    ours = cel_function(Rule("r", "CONDITION", "WRITE", "CEL", expr=f"value.{function}()"))
    assert answers(lambda value: ours({"value": value}, True)) == known
    assert {True, False, "error"} <= set(known)


def test_their_event_without_our_key(
    served: tuple[ConfluentMemoryRegistry, str], theirs: SchemaRegistryClient, topic: str
) -> None:
    registry, uri = served
    group = f"{topic}-value"
    register(registry, group, text_of("avro"), encrypting())
    event = writer_of("avro", theirs, topic)(VALUE)
    broken = event[:-3] + bytes([event[-3] ^ 1]) + event[-2:]
    errors: list[DeserializationError] = []
    reader = deserializer(f"confluent+{uri}", group=group, key_service=KEYS)
    assert reader.decode_column(pa.array([broken, event]), on_error=errors.append).to_pylist() == [None, VALUE]
    assert [error.row for error in errors] == [0]


def test_keys_in_vault(served: tuple[ConfluentMemoryRegistry, str], topic: str) -> None:
    """Vault's transit engine is a fake here; its client and Confluent's driver are the real ones."""
    registry, uri = served
    group = f"{topic}-value"

    def transit(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("X-Vault-Token") != "t0ken":
            answer(handler, 403, {"errors": ["permission denied"]})
            return
        given = json.loads(vault.requests[-1].body)
        kind = handler.path.split("/")[-2]
        turned = {"ciphertext": f"vault:v1:{given['plaintext'][::-1]}"} if kind == "encrypt" else None
        answer(handler, 200, {"data": turned or {"plaintext": given["ciphertext"][9:][::-1]}})

    with scripted(transit) as vault:
        given = encrypting("AES256_SIV")
        key = {"encrypt.kms.type": "hcvault", "encrypt.kms.key.id": f"{vault.uri}/transit/keys/orders"}
        given = {**given, "params": {**given["params"], **key, "encrypt.kek.name": topic}}
        register(registry, group, text_of("avro"), given)
        place: dict[str, Any] = {"registry": f"confluent+{uri}", "group": group}
        writer = serializer(
            **place, schema=FORMATS["avro"], format="avro", key_service=ConfluentKeys({"token.id": "t0ken"})
        )
        event = writer.serialize(VALUE)
        assert b"4111" not in event
        # A process that has not unwrapped the key yet has another address.
        place["registry"] = f"confluent+{uri}/"
        denied = deserializer(**place, key_service=ConfluentKeys({"token.id": "another"}))
        with pytest.raises(EncryptionKeyError, match="the key service failed for the key-encryption key 'hcvault://"):
            denied.deserialize(event)
        assert deserializer(**place, key_service=ConfluentKeys({"token.id": "t0ken"})).deserialize(event) == VALUE
        assert {request.path for request in vault.requests} == {f"/v1/transit/{kind}/orders" for kind in _TRANSIT}


_TRANSIT: Final = ("encrypt", "decrypt")


def test_references_and_subjects_of_records_both_ways(
    served: tuple[ConfluentMemoryRegistry, str], theirs: SchemaRegistryClient, topic: str
) -> None:
    uri = f"confluent+{served[1]}"
    item = {"type": "record", "name": f"{topic}.Item", "fields": [{"name": "name", "type": "string"}]}
    cart = {"type": "record", "name": f"{topic}.Cart", "fields": [{"name": "first", "type": "Item"}]}
    value, ctx = {"first": {"name": "tea"}}, SerializationContext(topic, MessageField.VALUE)
    settings: dict[str, Any] = {"group": topic, "subject_strategy": "topic_record"}
    writer = serializer(uri, schema=cart, format="avro", references=[item], register_schema=True, **settings)
    assert AvroDeserializer(theirs)(writer.serialize(value), ctx) == value
    (reference,) = theirs.get_latest_version(f"{topic}-{topic}.Cart").schema.references
    conf = {"subject.name.strategy.type": "TOPIC_RECORD", "auto.register.schemas": False, "normalize.schemas": True}
    their_writer = AvroSerializer(theirs, Schema(json.dumps(cart), "AVRO", [reference]), conf=conf)
    assert their_writer(value, ctx) == writer.serialize(value)
    reader = deserializer(uri, type=f"{topic}.Cart", **settings)
    assert reader.decode_column(pa.array([their_writer(value, ctx)])).to_pylist() == [value]
