"""Migration rules between the versions of a schema in a Confluent registry: run, or an error, never skipped."""

from __future__ import annotations

import json
import pickle
from typing import Any, Final

import pyarrow as pa
import pytest

from pravega_connector.rows.options.declaration import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.registry_decoding import latest_ids, registry_reader
from pravega_serde.encryption import ConfluentKeys
from pravega_serde.errors import DeserializationError, RegistryNotFoundError, SerdeError, UnsupportedRuleError
from pravega_serde.registry import deserializer, serializer
from pravega_serde.registry.confluent_memory import ConfluentMemoryRegistry, mock_confluent_registry
from tests.unit.registry._rules import encrypting, register, rule

KEYS: Final = ConfluentKeys({"secret": "s3cret"})


def record(*names: str, name: str = "Cup", **more: Any) -> dict[str, Any]:
    """Return a record of strings. ``more`` are fields of other types."""
    fields = [{"name": each, "type": "string"} for each in names]
    return {"type": "record", "name": name, "fields": [*fields, *({"name": each, **more[each]} for each in more)]}


OLD: Final = record("tea")
NEW: Final = record("drink")
UP: Final = rule("JSONATA", mode="UPGRADE", expr="{'drink': tea & '!'}")
DOWN: Final = rule("JSONATA", mode="DOWNGRADE", expr="{'tea': drink & '?'}")


@pytest.fixture
def uri(request: pytest.FixtureRequest) -> str:
    return f"confluent+mock://{abs(hash(request.node.name))}-migrations"


@pytest.fixture
def registry(uri: str) -> ConfluentMemoryRegistry:
    found = mock_confluent_registry(uri.partition("+")[2])
    found.answer("PUT", "/config", {}, b'{"compatibility": "NONE"}')
    return found


def add(registry: ConfluentMemoryRegistry, schema: Any, *rules: Any, **more: Any) -> int:
    return register(registry, "s", schema, *rules, phase="migrationRules", **more)


def written(uri: str, schema: Any, value: Any) -> bytes:
    return serializer(uri, group="s", schema=schema, format="avro", key_service=KEYS).serialize(value)


def read(uri: str, event: bytes, **settings: Any) -> list[Any]:
    """Return the value of an event as the latest version: of a row, and of a column."""
    place: dict[str, Any] = {"group": "s", "key_service": KEYS, **settings}
    row = deserializer(uri, version="latest", **place).deserialize(event)
    return [row, *deserializer(uri, **place).decode_column(pa.array([event])).to_pylist()]


def test_columns_and_rows_of_the_latest_version_are_migrated(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    add(registry, NEW, UP, DOWN)
    old, new = written(uri, OLD, {"tea": "green"}), written(uri, NEW, {"drink": "milk"})
    columns = deserializer(uri, group="s")
    assert columns.decode_column(pa.array([new, None, old])).to_pylist() == [
        {"drink": "milk"},
        None,
        {"drink": "green!"},
    ]
    copied = pickle.loads(pickle.dumps(columns))
    assert copied.decode_column(pa.array([old])).to_pylist() == [{"drink": "green!"}]
    latest = deserializer(uri, group="s", version="latest")
    assert [latest.deserialize(each) for each in (old, new)] == [{"drink": "green!"}, {"drink": "milk"}]
    found = latest.deserialize_with_schema(old)
    assert (found.value, json.loads(found.schema.data)["fields"][0]["name"]) == ({"drink": "green!"}, "drink")
    assert deserializer(uri, group="s", version="latest", values="json").deserialize(old) == '{"drink":"green!"}'
    # Neither rows nor a schema of the reader are migrated, as in Confluent's clients.
    assert columns.deserialize(old) == {"tea": "green"}
    own = record(drink={"type": "string", "default": "none"})
    assert deserializer(uri, group="s", schema=own, format="avro").deserialize(old) == {"drink": "none"}


def test_an_open_reader_downgrades_events_of_a_newer_version(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    columns, rows = deserializer(uri, group="s"), deserializer(uri, group="s", version="latest")
    assert columns.arrow_type == pa.struct([("tea", pa.string())])
    add(registry, NEW, UP, DOWN)
    new = written(uri, NEW, {"drink": "milk"})
    assert columns.decode_column(pa.array([new])).to_pylist() == [{"tea": "milk?"}]
    assert rows.deserialize(new) == {"tea": "milk?"}


def test_values_stay_valid_events_of_versions_without_rules(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    add(registry, NEW, UP)
    last = record("drink", cups={"type": "int", "default": 1})
    add(registry, last, migrationRules=[])
    assert read(uri, written(uri, OLD, {"tea": "green"})) == [{"drink": "green!", "cups": 1}] * 2
    assert read(uri, written(uri, NEW, {"drink": "milk"})) == [{"drink": "milk", "cups": 1}] * 2


def test_a_version_with_the_same_schema_may_migrate(uri: str, registry: ConfluentMemoryRegistry) -> None:
    plain = serializer(f"{uri}-plain", group="s", schema=OLD, format="avro", register_schema=True)
    add(registry, OLD)
    add(registry, OLD, rule("JSONATA", mode="UPDOWN", expr="{'tea': $uppercase(tea)}"))
    assert read(uri, plain.serialize({"tea": "green"})) == [{"tea": "GREEN"}] * 2


def test_a_type_may_have_another_name(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    add(registry, record("drink", name="Mug"), UP)
    assert read(uri, written(uri, OLD, {"tea": "green"})) == [{"drink": "green!"}] * 2


def test_an_encrypted_value_is_never_copied(uri: str, registry: ConfluentMemoryRegistry) -> None:
    """The rules of the newer version do not decrypt a field that has no tag there."""
    secret = record(tea={"type": "string", "confluent:tags": ["PII"]})
    add(registry, secret, domainRules=[encrypting()])
    sealed = written(uri, secret, {"tea": "green"})
    assert b"green" not in sealed
    add(registry, NEW, UP)
    assert read(uri, sealed) == [{"drink": "green!"}] * 2
    whole = {**encrypting(name="whole"), "type": "ENCRYPT_PAYLOAD", "tags": []}
    add(registry, record("cup"), rule("JSONATA", mode="UPGRADE", expr="{'cup': drink}"), encodingRules=[whole])
    assert read(f"{uri}/", sealed) == [{"cup": "green!"}] * 2


def test_rules_to_read_are_those_of_the_reader(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD, domainRules=[rule("CEL", kind="CONDITION", mode="READ", expr="false")])
    old = written(uri, OLD, {"tea": "green"})
    add(registry, NEW, UP, domainRules=[rule("CEL_FIELD", mode="READ", expr="value + '.'")])
    assert read(uri, old) == [{"drink": "green!."}] * 2


@pytest.mark.parametrize(
    "given",
    [
        rule("QUANTUM", mode="UPGRADE"),
        {**encrypting(mode="UPGRADE"), "name": "quantum"},
        rule("CEL_FIELD", name="quantum", mode="UPGRADE", expr="value"),
        rule("JSONATA", name="quantum", mode="UPDOWN", expr="$(("),
        rule("JSONATA", name="quantum", mode="UPGRADE", expr="$", onFailure="PAGE"),
    ],
    ids=["unknown", "encryption", "fields", "invalid", "action"],
)
def test_a_migration_that_cannot_be_run_is_named(
    given: dict[str, Any], uri: str, registry: ConfluentMemoryRegistry
) -> None:
    add(registry, OLD)
    add(registry, NEW, given)
    old = written(uri, OLD, {"tea": "green"})
    for use in (
        lambda: deserializer(uri, group="s", version="latest").deserialize(old),
        lambda: deserializer(uri, group="s").decode_column(pa.array([old])),
    ):
        with pytest.raises(UnsupportedRuleError, match="'quantum'"):
            use()
    new = written(uri, NEW, {"drink": "milk"})
    assert read(uri, new) == [{"drink": "milk"}] * 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (rule("JSONATA", mode="UPGRADE", expr="$error('x')"), "'jsonata' of type JSONATA failed"),
        (rule("JSONATA", mode="UPGRADE", expr="nothing"), "returns nothing"),
        (
            rule("JSONATA", mode="UPDOWN", expr="$", onFailure="NONE,ERROR"),
            "does not fit the schema: .*no value and no default",
        ),
        (rule("JSONATA", mode="UPGRADE", expr="$merge([$, {'drink': tea}])"), "has no field 'tea'"),
        (rule("CEL", kind="CONDITION", mode="UPGRADE", expr="false"), "does not meet"),
        (rule("JSONATA", mode="UPDOWN", expr="{'drink': tea}", onSuccess="ERROR,NONE"), "succeeded"),
    ],
    ids=["fails", "nothing", "unchanged", "left over", "condition", "success"],
)
def test_a_refused_event_is_malformed(
    given: dict[str, Any], words: str, uri: str, registry: ConfluentMemoryRegistry
) -> None:
    add(registry, OLD)
    add(registry, NEW, given)
    old, new = written(uri, OLD, {"tea": "green"}), written(uri, NEW, {"drink": "milk"})
    with pytest.raises(DeserializationError, match=words):
        deserializer(uri, group="s", version="latest").deserialize(old)
    errors: list[DeserializationError] = []
    column = deserializer(uri, group="s").decode_column(pa.array([old, new]), on_error=errors.append)
    assert (column.to_pylist(), [error.row for error in errors]) == ([None, {"drink": "milk"}], [0])
    assert "green" not in str(errors[0])


def test_a_failure_may_be_allowed(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    failing = rule("JSONATA", mode="UPDOWN", expr="$error('x')", onFailure="NONE,ERROR")
    add(registry, OLD, failing, rule("JSONATA", name="up", mode="UPGRADE", expr="{'tea': tea & '!'}"))
    old = serializer(f"{uri}-plain", group="s", schema=OLD, format="avro", register_schema=True)
    assert read(uri, old.serialize({"tea": "green"})) == [{"tea": "green!"}] * 2


def test_a_query_keeps_its_version(uri: str, registry: ConfluentMemoryRegistry) -> None:
    """Spark's tasks get the id of the version that was the latest one when the query began."""
    add(registry, OLD)
    old = written(uri, OLD, {"tea": "green"})
    add(registry, NEW, UP, DOWN)
    options = parse_options(SourceOptions, {"controller": "tcp://c:1", "stream": "a/b", "registry": uri, "group": "s"})
    ids = latest_ids(options)
    add(registry, record("cup"), rule("JSONATA", mode="DOWNGRADE", expr="{'drink': cup & '#'}"))
    new = written(uri, record("cup"), {"cup": "milk"})
    for wanted in (None, pa.struct([("drink", pa.string())])):
        reader = registry_reader(options, wanted, ids)
        assert reader.decode_column(pa.array([old, new])).to_pylist() == [{"drink": "green!"}, {"drink": "milk#"}]


def test_a_deleted_version_still_migrates(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    old = written(uri, OLD, {"tea": "green"})
    add(registry, NEW, UP)
    add(registry, record("cup"), rule("JSONATA", mode="UPGRADE", expr="{'cup': drink}"))
    registry.answer("DELETE", "/subjects/s/versions/2", {}, None)
    registry.answer("DELETE", "/subjects/s/versions/1", {}, None)
    assert read(uri, old) == [{"cup": "green!"}] * 2
    registry.answer("DELETE", "/subjects/s/versions/2", {"permanent": "true"}, None)
    # A process that has not read the rules has another address.
    with pytest.raises(RegistryNotFoundError, match="does not have version 2 of subject 's'"):
        read(f"{uri}/", old)


def test_a_version_by_its_metadata(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD, metadata={"properties": {"major": "1", "team": "tea"}})
    add(registry, NEW, UP, DOWN, metadata={"properties": {"major": "2"}})
    old, new = written(uri, OLD, {"tea": "green"}), written(uri, NEW, {"drink": "milk"})
    first = deserializer(uri, group="s", version={"major": "1", "team": "tea"})
    assert [first.deserialize(each) for each in (old, new)] == [{"tea": "green"}, {"tea": "milk?"}]
    assert first.decode_column(pa.array([old, new])).to_pylist() == [{"tea": "green"}, {"tea": "milk?"}]
    with pytest.raises(RegistryNotFoundError, match="no version of subject 's' has major=3"):
        deserializer(uri, group="s", version={"major": "3"})


def test_a_reader_of_only_one_schema_does_not_migrate(uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    add(registry, NEW, UP)
    old = written(uri, OLD, {"tea": "green"})
    with pytest.raises(DeserializationError, match="it is not the reader's"):
        deserializer(uri, group="s", version="latest", evolution="corrupt").deserialize(old)
    with pytest.raises(DeserializationError, match="drink"):
        serializer(uri, group="s", schema=NEW, format="avro").deserialize(old)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"version": "newest"}, "invalid version 'newest'; known: writer, latest"),
        ({"version": {}}, "invalid version"),
        ({"version": "latest", "schema": OLD, "format": "avro"}, "omit schema and schemas, or version"),
        ({"version": {"major": "1"}, "registry": "mock://migrations"}, "only schemas of a Confluent registry"),
    ],
)
def test_invalid_versions(settings: dict[str, Any], words: str, uri: str, registry: ConfluentMemoryRegistry) -> None:
    add(registry, OLD)
    with pytest.raises(SerdeError, match=words):
        deserializer(**{"registry": uri, "group": "s", **settings})
