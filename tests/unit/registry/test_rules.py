"""Rules of schemas in a Confluent registry: run as in Confluent's clients, and never skipped in silence."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import Enveloped, Framed, typed
from pravega_serde.encryption import ConfluentKeys
from pravega_serde.errors import (
    DecryptionError,
    DeserializationError,
    EncryptionKeyError,
    PravegaError,
    SerializationError,
    UnsupportedRuleError,
)
from pravega_serde.registry import (
    confluent_memory,
    deserializer,
    field_encryption,
    multi_type_serializer,
    serializer,
)
from pravega_serde.registry.confluent_memory import ConfluentMemoryRegistry, mock_confluent_registry
from pravega_serde.registry.expressions import jsonata_function
from pravega_serde.registry.rule_set import RuleSet
from tests.unit.registry._rules import AVRO, FORMATS, JSON, VALUE, encrypting, register, rule, text_of

KEYS = ConfluentKeys({"secret": "s3cret"})


@pytest.fixture
def uri(request: pytest.FixtureRequest) -> str:
    return f"confluent+mock://{abs(hash(request.node.name))}"


@pytest.fixture
def registry(uri: str) -> ConfluentMemoryRegistry:
    return mock_confluent_registry(uri.partition("+")[2])


def event_of(uri: str, value: Any = None, schema: Any = AVRO) -> bytes:
    """Return an event without rules, under the id of the first schema."""
    plain = serializer(f"{uri}-plain", group="s", schema=schema, format="avro", register_schema=True)
    return plain.serialize(VALUE if value is None else value)


def uses(uri: str, **settings: Any) -> dict[str, Callable[[], Any]]:
    """Return the ways to write and to read a value."""
    event = event_of(uri)

    def writer() -> Any:
        return serializer(uri, group="s", schema=AVRO, format="avro", **settings)

    def reader() -> Any:
        return deserializer(uri, group="s", **settings)

    return {
        "write a row": lambda: writer().serialize(VALUE),
        "write a column": lambda: writer().encode_column(pa.array([VALUE], writer().arrow_type)),
        "read a row": lambda: reader().deserialize(event),
        "read a column": lambda: reader().decode_column(pa.array([event])),
        "read a column as a schema": lambda: deserializer(uri, group="s", schema=AVRO, format="avro").decode_column(
            pa.array([event])
        ),
    }


@pytest.mark.parametrize(
    "given",
    [
        {"rules": [rule("QUANTUM")]},
        {"rules": [rule("QUANTUM", onFailure="NONE,NONE")]},
        {"rules": [rule("QUANTUM")], "phase": "encodingRules"},
        {"rules": [rule("QUANTUM")], "phase": "validationRules"},
        {"rules": [rule("QUANTUM", type=None)]},
        {"rules": [rule("QUANTUM", mode="SIDEWAYS")]},
        {"rules": [encrypting("AES1_ECB", name="quantum")]},
        {"rules": [rule("ENCRYPT", name="quantum", tags=["PII"])]},
        {"rules": [encrypting(name="quantum", onFailure="PAGE")]},
        {"rules": [rule("CEL", name="quantum", expr="message.id >")]},
    ],
    ids=lambda given: json.dumps(given)[:60],
)
def test_a_rule_that_cannot_be_run_is_an_error_that_names_it(
    given: dict[str, Any], uri: str, registry: ConfluentMemoryRegistry
) -> None:
    register(registry, "s", AVRO, *given["rules"], phase=given.get("phase", "domainRules"))
    for use in uses(uri).values():
        with pytest.raises(UnsupportedRuleError, match="'quantum'"):
            use()


@pytest.mark.parametrize(
    "given",
    [
        {"rules": [rule("QUANTUM", disabled=True)]},
        {"rules": [rule("QUANTUM")], "enableAt": "SERVER"},
        {"rules": [rule("QUANTUM", mode="UPGRADE")]},
    ],
    ids=["disabled", "elsewhere", "migration"],
)
def test_rules_that_do_not_run_here(given: dict[str, Any], uri: str, registry: ConfluentMemoryRegistry) -> None:
    more = {name: value for name, value in given.items() if name != "rules"}
    register(registry, "s", AVRO, *given["rules"], **more)
    for use in uses(uri).values():
        use()


@pytest.mark.parametrize(("mode", "refused"), [("WRITE", "write"), ("READ", "read")])
def test_a_rule_runs_in_its_mode(mode: str, refused: str, uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, rule("QUANTUM", mode=mode))
    for name, use in uses(uri).items():
        if name.startswith(refused):
            with pytest.raises(UnsupportedRuleError):
                use()
        else:
            use()


# ---- encryption ----


def _registered(registry: ConfluentMemoryRegistry, format: str, *rules: Any) -> None:
    register(registry, "s", text_of(format), *rules, kind=format.upper())


def _plain(reader: Any, event: bytes, format: str) -> Any:
    value = reader.deserialize(event)
    return {"id": value.id, "card": value.card, "tags": list(value.tags)} if format == "protobuf" else value


@pytest.mark.parametrize("algorithm", ["AES256_GCM", "AES128_GCM", "AES256_SIV"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("days", [0, 1])
def test_fields_are_encrypted_by_row_and_by_column(
    algorithm: str, format: str, days: int, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    _registered(registry, format, encrypting(algorithm, days))
    writer = serializer(uri, group="s", schema=FORMATS[format], format=format, key_service=KEYS)
    reader = deserializer(uri, group="s", key_service=KEYS)
    column = pa.array([VALUE, None, VALUE], writer.arrow_type)
    for events in ([writer.serialize(VALUE), None], writer.encode_column(column).to_pylist()):
        assert b"4111" not in events[0]
        assert "müsli".encode() not in events[0]
        assert _plain(reader, events[0], format) == VALUE
        assert reader.decode_column(pa.array(events)).to_pylist() == [
            None if event is None else VALUE for event in events
        ]
    assert pickle.loads(pickle.dumps(reader)).decode_column(pa.array(events[:1])).to_pylist() == [VALUE]
    assert _plain(reader, pickle.loads(pickle.dumps(writer)).serialize(VALUE), format) == VALUE
    equal = writer.serialize(VALUE) == writer.serialize(VALUE)
    assert equal == (algorithm == "AES256_SIV")


@pytest.mark.parametrize("given", [True, False], ids=["schema", "latest"])
@pytest.mark.parametrize("format", FORMATS)
def test_rules_that_are_added_to_a_schema_run(
    format: str, given: bool, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    settings: dict[str, Any] = {"schema": FORMATS[format], "format": format} if given else {}
    serializer(uri, group="s", schema=FORMATS[format], format=format, register_schema=True)
    _registered(registry, format, encrypting())
    writer = serializer(uri, group="s", key_service=KEYS, **settings)
    event = writer.serialize(VALUE)
    assert event[:5] == b"\0\0\0\0\2"
    assert b"4111" not in event
    assert _plain(deserializer(uri, group="s", key_service=KEYS), event, format) == VALUE


def test_rules_run_if_the_search_for_a_schema_does_not_return_them(
    uri: str, registry: ConfluentMemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    _registered(registry, "json", encrypting())
    whole = registry.answer

    def answer(method: str, *request: Any) -> tuple[int, bytes]:
        status, content = whole(method, *request)
        found = json.loads(content)
        if method == "POST" and "ruleSet" in found:
            del found["ruleSet"]
        return status, json.dumps(found).encode()

    monkeypatch.setattr(registry, "answer", answer)
    writer = serializer(uri, group="s", schema=JSON, format="json", key_service=KEYS)
    assert b"4111" not in writer.serialize(VALUE)


def test_fields_are_decrypted_before_they_are_resolved(uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, encrypting())
    event = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS).serialize(VALUE)
    newer = {**AVRO, "fields": [AVRO["fields"][1], {"name": "cups", "type": "int", "default": 3}]}  # type: ignore[index]
    reader = deserializer(uri, group="s", schema=newer, format="avro", key_service=KEYS)
    assert reader.deserialize(event) == {"card": "4111", "cups": 3}
    assert reader.decode_column(pa.array([event])).to_pylist() == [{"card": "4111", "cups": 3}]


def test_tags_of_the_metadata_are_patterns(uri: str, registry: ConfluentMemoryRegistry) -> None:
    schema = json.loads(json.dumps(JSON).replace("confluent:tags", "x"))
    register(registry, "s", schema, encrypting(), kind="JSON", metadata={"tags": {"$.c*": ["PII"]}})
    writer = serializer(uri, group="s", schema=schema, format="json", key_service=KEYS)
    event = writer.serialize(VALUE)
    assert b"4111" not in event
    assert "müsli".encode() in event
    assert writer.deserialize(event) == VALUE


_SECRET: Any = {"type": "string", "confluent:tags": ["PII"]}
_DEFINED: Any = {"definitions": {"secret": _SECRET, "plain": {"type": "string"}}}


def _json_uses(uri: str, registry: ConfluentMemoryRegistry, schema: Any) -> tuple[Any, Any]:
    """Return a writer and a reader of a JSON schema whose fields with the tag are encrypted."""
    schema = {"type": "object", **schema}
    register(registry, "s", schema, encrypting("AES256_SIV"), kind="JSON")
    writer = serializer(uri, group="s", schema=schema, format="json", key_service=KEYS)
    return writer, deserializer(uri, group="s", key_service=KEYS)


@pytest.mark.parametrize(
    "card",
    [
        {"$ref": "#/definitions/secret"},
        {"$ref": "#/definitions/plain", "confluent:tags": ["PII"]},
        {"oneOf": [{"type": "null"}, _SECRET]},
        {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/secret"}]},
        {"allOf": [{"type": "string"}, _SECRET]},
        {"anyOf": [{"type": "string", "maxLength": 9}, {"type": "string", "pattern": "^4"}], "confluent:tags": ["PII"]},
        {"type": "array", "items": _SECRET},
        {"type": "array", "items": {"$ref": "#/definitions/secret"}},
    ],
    ids=lambda card: json.dumps(card)[:50],
)
def test_tags_of_parts_of_a_json_schema(card: Any, uri: str, registry: ConfluentMemoryRegistry) -> None:
    writer, reader = _json_uses(uri, registry, {"properties": {"card": card}, **_DEFINED})
    value = {"card": ["4111"] if card.get("type") == "array" else "4111"}
    event = writer.serialize(value)
    assert b"4111" not in event
    assert reader.deserialize(event) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": {"card": _SECRET}}, {"properties": {"card": _SECRET}}]},
        {"allOf": [{"properties": {"card": _SECRET}}], "properties": {"card": _SECRET}},
        {"oneOf": [{"properties": {"card": _SECRET}}], "anyOf": [{"properties": {"card": _SECRET}}]},
        {"properties": {"card": {"allOf": [_SECRET, _SECRET]}}},
    ],
    ids=["all", "all and own", "one and any", "of the field"],
)
def test_a_field_is_encrypted_once(schema: Any, uri: str, registry: ConfluentMemoryRegistry) -> None:
    simple = _json_uses(
        f"{uri}-simple",
        mock_confluent_registry(f"mock://{uri.partition('://')[2]}-simple"),
        {"properties": {"card": _SECRET}},
    )[0]
    writer, reader = _json_uses(uri, registry, schema)
    event = writer.serialize({"card": "4111"})
    assert b"4111" not in event
    assert len(event) == len(simple.serialize({"card": "4111"}))
    assert reader.deserialize(event) == {"card": "4111"}


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"^c": _SECRET}},
        {"additionalProperties": _SECRET},
        {"additionalProperties": {"type": "object", "properties": {"card": _SECRET}}},
        {"additionalProperties": {"$ref": "#/definitions/secret"}, **_DEFINED},
        {"properties": {"cards": {"type": "array", "items": [_SECRET]}}},
        {"properties": {"cards": {"type": "array", "prefixItems": [_SECRET]}}},
        {"if": {"required": ["card"]}, "then": {"properties": {"card": _SECRET}}},
        {"if": {"required": ["card"]}, "else": {"properties": {"card": _SECRET}}},
        {"properties": {"a": {"$ref": "#/definitions/b"}}, "definitions": {"b": {"patternProperties": {"c": _SECRET}}}},
        {"dependentSchemas": {"a": {"properties": {"card": _SECRET}}}},
    ],
    ids=lambda schema: json.dumps(schema)[:60],
)
def test_a_tag_where_fields_are_not_changed_is_refused(
    schema: Any, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    with pytest.raises(UnsupportedRuleError, match="the tags PII under"):
        _json_uses(uri, registry, schema)


def test_tags_that_no_rule_selects_may_be_anywhere(uri: str, registry: ConfluentMemoryRegistry) -> None:
    other = {"additionalProperties": {**_SECRET, "confluent:tags": ["OTHER"]}, "properties": {"card": _SECRET}}
    writer, reader = _json_uses(uri, registry, {**other, "definitions": {"unused": _SECRET}})
    assert reader.deserialize(writer.serialize({"card": "4111", "x": "y"})) == {"card": "4111", "x": "y"}


_PAYMENTS = [
    {"type": "object", "properties": {"card": _SECRET, "kind": {"const": "card"}}, "required": ["kind"]},
    {"type": "object", "properties": {"card": {"type": "string"}, "kind": {"const": "gift"}}, "required": ["kind"]},
]


@pytest.mark.parametrize("choice", ["oneOf", "anyOf"])
@pytest.mark.parametrize("order", [1, -1], ids=["tags first", "tags last"])
@pytest.mark.parametrize(
    ("kinds", "value"),
    [
        ([{**_SECRET, "maxLength": 9}, {"type": "string", "minLength": 10}], "4111"),
        ([{**_SECRET, "pattern": "^4"}, {"type": "string", "minLength": 10}], "4111"),
        ([{"allOf": [_SECRET], "maxLength": 9}, {"type": ["string", "null"], "minLength": 10}], "4111"),
        ([{"$ref": "#/definitions/secret", "maxLength": 9}, {"type": "string", "minLength": 10}], "4111"),
        ([{"type": "array", "items": {**_SECRET, "maxLength": 9}}, {"type": "array", "minItems": 2}], ["4111"]),
        (
            [
                {"type": "object", "properties": {"card": {**_SECRET, "maxLength": 9}}},
                {"type": "object", "properties": {"card": {"type": "string", "minLength": 10}}},
            ],
            {"card": "4111"},
        ),
        (_PAYMENTS, {"card": "4111", "kind": "card"}),
        (
            [
                {"type": "object", "properties": {"a": _SECRET, "b": {**_SECRET, "maxLength": 9}}},
                {"type": "object", "properties": {"a": _SECRET, "b": {"type": "string", "minLength": 10}}},
            ],
            {"a": "4111", "b": "4111"},
        ),
    ],
    ids=["length", "pattern", "all", "reference", "items", "object", "constant", "one of two"],
)
def test_an_encrypted_value_has_the_alternative_that_encrypted_it(
    kinds: list[Any], value: Any, order: int, choice: str, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    """Its encrypted form may be valid only for another alternative, without tags."""
    schema = {"properties": {"payment": {choice: kinds[::order]}}, **_DEFINED}
    writer, reader = _json_uses(uri, registry, schema)
    event = writer.serialize({"payment": value})
    assert b"4111" not in event
    assert reader.deserialize(event) == {"payment": value}


def test_a_plain_value_of_an_alternative_without_tags_is_read(uri: str, registry: ConfluentMemoryRegistry) -> None:
    kinds = [{**_SECRET, "maxLength": 4}, {"type": "string"}]
    schema = {"properties": {"card": {"anyOf": kinds}, "payment": {"anyOf": _PAYMENTS}}}
    writer, reader = _json_uses(uri, registry, schema)
    value = {"card": "not a card", "payment": {"card": "a voucher", "kind": "gift"}}
    event = writer.serialize(value)
    assert b"not a card" in event
    assert b"a voucher" in event
    assert reader.deserialize(event) == value


def test_an_encrypted_value_that_was_changed_is_no_value_of_another_alternative(
    uri: str, registry: ConfluentMemoryRegistry
) -> None:
    schema = {"properties": {"card": {"anyOf": [{**_SECRET, "maxLength": 4}, {"type": "string"}]}}}
    writer, reader = _json_uses(uri, registry, schema)
    event = writer.serialize({"card": "4111"})
    broken = event.replace(b'":"', b'":"AAAA', 1)
    errors: list[DeserializationError] = []
    with pytest.raises(DecryptionError, match="cannot be decrypted"):
        reader.deserialize(broken)
    columns = deserializer(uri, group="s", schema=pa.schema([("card", pa.string())]), format="json", key_service=KEYS)
    column = columns.decode_column(pa.array([broken, event]), on_error=errors.append)
    assert column.to_pylist() == [None, {"card": "4111"}]
    assert [(type(error), error.row) for error in errors] == [(DecryptionError, 0)]


def test_a_value_without_an_alternative_is_an_error(uri: str, registry: ConfluentMemoryRegistry) -> None:
    short = {**_SECRET, "maxLength": 5}
    kinds = [{"type": "object", "properties": {"card": short, name: {"type": "integer"}}} for name in "ab"]
    payment = {"oneOf": [{**each, "required": [*each["properties"]]} for each in kinds]}
    schema = {"properties": {"id": {"type": "integer"}, "payment": payment}}
    writer, reader = _json_uses(uri, registry, schema)
    event = writer.serialize({"payment": {"card": "4111", "b": 1}})
    assert b"4111" not in event
    assert reader.deserialize(event) == {"payment": {"card": "4111", "b": 1}}
    unfit = event.replace(b'"b":', b'"c":')
    errors: list[DeserializationError] = []
    with pytest.raises(DecryptionError, match=r"fits no alternative of oneOf.*\$\.payment|\$\.payment.*fits no"):
        reader.deserialize(unfit)
    assert reader.decode_column(pa.array([unfit]), on_error=errors.append).to_pylist() == [None]
    assert [error.row for error in errors] == [0]
    with pytest.raises(SerializationError, match="fits no alternative"):
        writer.serialize({"payment": {"card": "4111", "c": 1}})


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("n.R.a", "n.R.a", True),
        ("n.R.*", "n.R.abc", True),
        ("n.*", "n.R.a", False),
        ("n.**", "n.R.a", True),
        ("**.a", "n.R.a", True),
        ("n.R.?", "n.R.ab", False),
        ("n.R.a+", "n.R.aa", False),
    ],
)
def test_patterns_of_tags(pattern: str, name: str, matches: bool) -> None:
    rules = RuleSet.from_json({"metadata": {"tags": {pattern: ["T"]}}})
    assert rules.tags_of(name) == (frozenset({"T"}) if matches else frozenset())


def test_a_whole_payload_is_encrypted(uri: str, registry: ConfluentMemoryRegistry) -> None:
    payload = {**encrypting(), "type": "ENCRYPT_PAYLOAD", "tags": []}
    register(registry, "s", AVRO, payload, phase="encodingRules")
    writer = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS)
    event = writer.serialize(VALUE)
    assert b"4111" not in event
    assert writer.deserialize(event) == VALUE
    errors: list[DeserializationError] = []
    broken = event[:-1] + bytes([event[-1] ^ 1])
    assert writer.decode_column(pa.array([event, broken]), on_error=errors.append).to_pylist() == [VALUE, None]
    assert [error.row for error in errors] == [1]


def test_another_secret_is_no_malformed_record(uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, encrypting())
    event = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS).serialize(VALUE)
    # Another address of the same registry, whose keys this process has not unwrapped.
    other = uri.replace("127.0.0.1", "localhost")
    reader = deserializer(other, group="s", key_service=ConfluentKeys({"secret": "another"}))
    errors: list[DeserializationError] = []
    with pytest.raises(EncryptionKeyError, match="local-kms did not wrap"):
        reader.decode_column(pa.array([event]), on_error=errors.append)
    assert errors == []


def test_plain_text_in_an_encrypted_field_is_a_malformed_record(uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, encrypting())
    writer = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS)
    good, errors = writer.serialize(VALUE), list[DeserializationError]()
    bad = good[:5] + event_of(uri)[5:]
    reader = deserializer(uri, group="s", key_service=KEYS)
    with pytest.raises(DecryptionError, match=r"shop\.Order\.card"):
        reader.deserialize(bad)
    assert reader.decode_column(pa.array([bad, good]), on_error=errors.append).to_pylist() == [None, VALUE]
    assert [(error.row, error.field_path) for error in errors] == [(0, "shop.Order.card")]


@pytest.mark.parametrize("mode", ["WRITE", "READ"])
def test_a_missing_key_is_never_an_allowed_failure(mode: str, uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, encrypting(onFailure="NONE"))
    event = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS).serialize(VALUE)
    other: dict[str, Any] = {"registry": uri.replace("127.0.0.1", "localhost"), "group": "s"}
    other["key_service"] = ConfluentKeys({"secret": "another"})
    use = serializer(schema=AVRO, format="avro", **other).serialize if mode == "WRITE" else None
    with pytest.raises(EncryptionKeyError):
        use(VALUE) if use else deserializer(**other).deserialize(event)


def test_a_key_service_uses_only_keys_that_it_unwraps(uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, encrypting())
    event = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS).serialize(VALUE)
    with pytest.raises(EncryptionKeyError, match="local-kms did not wrap"):
        deserializer(uri, group="s", key_service=ConfluentKeys({"secret": "another"})).deserialize(event)
    equal = deserializer(uri, group="s", key_service=ConfluentKeys({"secret": "s3cret"}))
    before = registry.requests
    assert equal.deserialize(event) == VALUE
    assert registry.requests == before  # equal services share the keys


@pytest.mark.parametrize("version", [2, (1 << 32) - 1])
def test_another_version_of_the_key_in_a_value_is_a_malformed_record(
    version: int, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    payload = {**encrypting(days=1), "type": "ENCRYPT_PAYLOAD", "tags": []}
    register(registry, "s", AVRO, payload, phase="encodingRules")
    writer = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS)
    good = writer.serialize(VALUE)
    bad = good[:6] + version.to_bytes(4) + good[10:]
    errors: list[DeserializationError] = []
    reader = deserializer(uri, group="s", key_service=KEYS)
    assert reader.decode_column(pa.array([bad, good]), on_error=errors.append).to_pylist() == [None, VALUE]
    assert [(type(error), error.row) for error in errors] == [(DecryptionError, 0)]


@pytest.mark.parametrize("format", FORMATS)
def test_a_failure_that_is_allowed_keeps_the_whole_value(
    format: str, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    fails = rule("CEL_FIELD", mode="WRITE", tags=["PII"], expr="name == 'card' ? 'x' : string(1 / 0)", onFailure="NONE")
    _registered(registry, format, fails)
    writer = serializer(uri, group="s", schema=FORMATS[format], format=format)
    assert _plain(writer, writer.serialize(VALUE), format) == VALUE


def test_a_failure_may_be_allowed(uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, encrypting(onFailure="ERROR,NONE"))
    serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS).serialize(VALUE)
    reader = deserializer(uri, group="s", key_service=KEYS)
    assert reader.deserialize(event_of(uri)) == VALUE


def test_a_number_cannot_be_encrypted(uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, encrypting(), metadata={"tags": {"shop.Order.id": ["PII"]}})
    with pytest.raises(UnsupportedRuleError, match=r"shop\.Order\.id.*LONG"):
        serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS)


def test_a_key_that_expires_is_replaced(
    uri: str, registry: ConfluentMemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(registry, "s", AVRO, encrypting(days=2))
    writer = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS)
    first = writer.serialize(VALUE)
    later = time.time() + 3 * 24 * 3600
    for module in (field_encryption, confluent_memory):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: later))
    second = writer.serialize(VALUE)
    deks = "/dek-registry/v1/keks/kek-AES256_GCM-2/deks/s/versions/-1"
    assert json.loads(registry.answer("GET", deks, {}, None)[1])["version"] == 2
    reader = deserializer(uri, group="s", key_service=KEYS)
    assert [reader.deserialize(each) for each in (first, second)] == [VALUE, VALUE]


# ---- expressions ----


@pytest.mark.parametrize("format", FORMATS)
def test_a_condition_refuses_events(format: str, uri: str, registry: ConfluentMemoryRegistry) -> None:
    check = rule("CEL", kind="CONDITION", expr="message.id > 0", doc="ids are positive", onFailure="DLQ")
    _registered(registry, format, check)
    writer = serializer(uri, group="s", schema=FORMATS[format], format=format)
    bad = {**VALUE, "id": -1}
    good = writer.serialize(VALUE)
    with pytest.raises(SerializationError, match="'cel' of type CEL failed: the event does not meet ids are positive"):
        writer.serialize(bad)
    with pytest.raises(SerializationError) as error:
        writer.encode_column(pa.array([VALUE, bad], writer.arrow_type))
    assert error.value.row == 1
    plain = serializer(f"{uri}-plain", group="s", schema=FORMATS[format], format=format, register_schema=True)
    foreign = plain.serialize(bad)
    errors: list[DeserializationError] = []
    reader = deserializer(uri, group="s")
    with pytest.raises(DeserializationError, match="ids are positive"):
        reader.deserialize(foreign)
    assert reader.decode_column(pa.array([foreign, good]), on_error=errors.append).to_pylist() == [None, VALUE]
    assert [error.row for error in errors] == [0]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (rule("CEL_FIELD", mode="WRITE", expr="typeName == 'STRING'; value + '!'"), ("4111!", ["a!", "müsli!"])),
        (rule("CEL_FIELD", mode="READ", tags=["PII"], expr="name == 'card' ; 'x'"), ("x", ["a", "müsli"])),
    ],
)
def test_fields_are_transformed(
    given: Any, expected: Any, format: str, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    _registered(registry, format, given)
    writer = serializer(uri, group="s", schema=FORMATS[format], format=format)
    assert _plain(writer, writer.serialize(VALUE), format) == {"id": 7, "card": expected[0], "tags": expected[1]}


@pytest.mark.parametrize(
    "given",
    [
        rule("CEL", mode="WRITE", expr="{'id': message.id + 1, 'card': message.card, 'tags': message.tags}"),
        rule("JSONATA", mode="WRITE", expr="$merge([$, {'id': id + 1}])"),
    ],
    ids=["CEL", "JSONata"],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_value_is_transformed(given: Any, format: str, uri: str, registry: ConfluentMemoryRegistry) -> None:
    _registered(registry, format, given)
    writer = serializer(uri, group="s", schema=FORMATS[format], format=format)
    assert _plain(writer, writer.serialize(VALUE), format) == {**VALUE, "id": 8}


def test_jsonata_in_several_threads() -> None:
    run = jsonata_function(RuleSet.from_json({"ruleSet": {"domainRules": [_IDS]}}).rules["domain"][0])

    class Meddled(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:  # type: ignore[override]
            if name == "id":
                with ThreadPoolExecutor(1) as other:
                    assert other.submit(run, {"id": 2, "name": "other"}).result(120) == [2, "other"]
            return super().get(name, default)

    assert run(Meddled(id=1, name="own")) == [1, "own"]


#: Program that runs an expression of each kind, and prints whether the recursion limit of the process has changed.
EXPRESSIONS = """
import sys
limit = sys.getrecursionlimit()
from pravega_serde.registry.expressions import cel_function, jsonata_function
from pravega_serde.registry.rule_set import Rule, RuleSet

def rule(kind, expr):
    found = {"name": "r", "kind": "TRANSFORM", "mode": "WRITE", "type": kind, "expr": expr}
    return RuleSet.from_json({"ruleSet": {"domainRules": [found]}}).rules["domain"][0]

print(cel_function(rule("CEL", "message.id == 1"))({"message": {"id": 1}}, None))
print(jsonata_function(rule("JSONATA", "id"))({"id": 2}))
print(sys.getrecursionlimit() - limit)
"""


def test_expressions_do_not_raise_the_recursion_limit_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", EXPRESSIONS], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "2", "0"]


@dataclass
class _Order:
    id: int
    card: str | None
    tags: list[str]


_IDS: Any = rule("JSONATA", expr="[id, $$.name]")


@pytest.mark.parametrize(
    ("given", "deterministic"),
    [
        (rule("CEL", expr="message.id == 1 ? message : {'id': int(now), 'card': '', 'tags': []}"), False),
        (rule("CEL_FIELD", kind="CONDITION", expr="now > timestamp('2020-01-01T00:00:00Z')"), False),
        (rule("CEL_FIELD", tags=["PII"], expr="value + 'known'"), True),
        (rule("JSONATA", expr="$merge([$, {'id': $millis()}])"), False),
        (rule("JSONATA", expr="$merge([$, {'card': $now()}])"), False),
        (rule("JSONATA", expr="$merge([$, {'id': $floor($random() * 9)}])"), False),
        (rule("JSONATA", expr="$merge([$, {'id': id + 1}])"), True),
        (encrypting(), False),
        (encrypting("AES256_SIV"), True),
    ],
    ids=lambda given: str(given.get("expr", given["type"]))[:40] if isinstance(given, dict) else str(given),
)
def test_events_of_equal_values_are_equal_as_declared(
    given: Any, deterministic: bool, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    register(registry, "s", AVRO, given)
    writer = serializer(uri, group="s", schema=AVRO, format="avro", key_service=KEYS)
    several = multi_type_serializer(uri, group="s", schemas=[AVRO], format="avro", key_service=KEYS)
    wrapped = [Enveloped(writer, source="s", type="t"), Framed(several, "delimited"), typed(writer, _Order)]
    assert {each.is_deterministic for each in (writer, several, *wrapped)} == {deterministic}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (rule("JSONATA", mode="WRITE", expr="missing"), "returns nothing"),
        (rule("JSONATA", mode="WRITE", expr="card"), "returns a value of type str"),
        (rule("CEL", mode="WRITE", expr="message.id"), "returns a value of type int"),
        (
            rule("CEL_FIELD", mode="WRITE", tags=["PII"], expr="size(value)"),
            "a value of type int for the field",
        ),
    ],
    ids=["nothing", "text", "number", "field"],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_result_of_another_type_is_an_error_of_the_event(
    given: Any, words: str, format: str, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    _registered(registry, format, given)
    writer = serializer(uri, group="s", schema=FORMATS[format], format=format)
    with pytest.raises(SerializationError, match=words):
        writer.serialize(VALUE)


def test_errors_have_no_values_of_fields(uri: str, registry: ConfluentMemoryRegistry) -> None:
    register(registry, "s", AVRO, rule("JSONATA", mode="WRITE", expr="$number(card & 'x')"))
    writer = serializer(uri, group="s", schema=AVRO, format="avro")
    with pytest.raises(SerializationError, match="'jsonata' of type JSONATA failed: ") as error:
        writer.serialize(VALUE)
    assert "4111" not in "".join(traceback.format_exception(error.value))


def test_an_extra_that_is_missing_is_named(
    uri: str, registry: ConfluentMemoryRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "celpy", None)
    register(registry, "s", AVRO, rule("CEL", kind="CONDITION", expr="true"))
    for use in uses(uri).values():
        with pytest.raises(PravegaError, match=r"pravega-serde\[rules\]"):
            use()


def test_clouds_need_their_extra(uri: str, registry: ConfluentMemoryRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    given = encrypting()
    params = {**given["params"], "encrypt.kms.type": "aws-kms", "encrypt.kms.key.id": "arn:aws:kms:us-east-1:1:key/a"}
    register(registry, "s", AVRO, {**given, "params": params})
    with pytest.raises(PravegaError, match=r"aws-kms needs the package 'boto3'.*pravega-serde\[kms\]"):
        serializer(uri, group="s", schema=AVRO, format="avro").serialize(VALUE)


def test_a_service_without_a_driver_is_named(uri: str, registry: ConfluentMemoryRegistry) -> None:
    given = encrypting()
    params = {**given["params"], "encrypt.kms.type": "abacus"}
    register(registry, "s", AVRO, {**given, "params": params})
    with pytest.raises(EncryptionKeyError, match="no key service for the type 'abacus'"):
        serializer(uri, group="s", schema=AVRO, format="avro").serialize(VALUE)
