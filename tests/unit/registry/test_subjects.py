"""Subjects of Confluent-compatible registries: their names, latest schemas, references and normalization."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.testing import ConfluentMemoryRegistry, mock_confluent_registry
from pravega_serde.errors import (
    RegistryConflictError,
    RegistryNotFoundError,
    RegistryUnavailableError,
    SchemaError,
    SerdeError,
)
from pravega_serde.registry import RegistryConfig, deserializer, multi_type_serializer, serializer

ITEM: dict[str, Any] = {"type": "record", "name": "shop.Item", "fields": [{"name": "name", "type": "string"}]}
UNIT: dict[str, Any] = {"type": "enum", "name": "shop.Unit", "symbols": ["cup", "pot"]}
MEASURED: dict[str, Any] = {**ITEM, "fields": [*ITEM["fields"], {"name": "unit", "type": "Unit"}]}
CART: dict[str, Any] = {
    "type": "record",
    "name": "shop.Cart",
    "fields": [{"name": "first", "type": "Item"}, {"name": "rest", "type": {"type": "array", "items": "shop.Item"}}],
}
VALUE: dict[str, Any] = {"first": {"name": "tea", "unit": "pot"}, "rest": [{"name": "milk", "unit": "cup"}]}
KINDS = ("confluent", "apicurio")


@pytest.fixture(params=KINDS)
def uri(request: pytest.FixtureRequest) -> str:
    return f"{request.param}+mock://{abs(hash(request.node.name))}"


@pytest.fixture
def get(uri: str) -> Callable[[str], Any]:
    registry: ConfluentMemoryRegistry = mock_confluent_registry(uri.partition("+")[2])
    return lambda path: json.loads(registry.answer("GET", path, {}, None)[1])


def test_named_types_of_other_files_become_references(uri: str, get: Callable[[str], Any], tmp_path: Path) -> None:
    paths = []
    for schema in (UNIT, MEASURED, CART):
        paths.append(tmp_path / f"{schema['name']}.avsc")
        paths[-1].write_text(json.dumps(schema))
    *others, cart = paths
    writer = serializer(uri, group="s", schema=cart, format="avro", references=others, register_schema=True)
    assert get("/subjects") == ["shop.Unit", "shop.Item", "s"]
    found = get("/subjects/s/versions/1")
    assert json.loads(found["schema"]) == CART
    assert found["references"] == [{"name": "shop.Item", "subject": "shop.Item", "version": 1}]
    assert [each["name"] for each in get("/subjects/shop.Item/versions/1")["references"]] == ["shop.Unit"]
    events = [writer.serialize(VALUE), *writer.encode_column(pa.array([VALUE], writer.arrow_type)).to_pylist()]
    reader = deserializer(uri, group="s")
    assert [reader.deserialize(event) for event in events] == [VALUE] * 2
    assert reader.decode_column(pa.array(events)).to_pylist() == [VALUE] * 2
    # Found again, with and without the references.
    again = serializer(uri, group="s", schema=cart, format="avro", references=others)
    assert again.serialize(VALUE) == serializer(uri, group="s").serialize(VALUE) == events[0]


def test_json_schemas_refer_by_name(uri: str, get: Callable[[str], Any]) -> None:
    item = {"type": "object", "properties": {"name": {"type": "string"}}}
    cart = {"type": "object", "properties": {"first": {"$ref": "item.json"}, "n": {"$ref": "#/definitions/n"}}}
    cart["definitions"] = {"n": {"type": "integer"}}
    writer = serializer(
        uri, group="s", schema=cart, format="json", references={"item.json": item}, register_schema=True
    )
    assert get("/subjects/s/versions/1")["references"][0]["name"] == "item.json"
    value = {"first": {"name": "tea"}, "n": 3}
    event = writer.serialize(value)
    assert deserializer(uri, group="s").decode_column(pa.array([event])).to_pylist() == [value]


@pytest.mark.parametrize(
    ("uri", "settings", "words"),
    [
        ("mock://none", {"format": "avro", "references": [ITEM]}, "no references between schemas"),
        ("confluent+mock://none", {"format": "avro", "references": ['"int"']}, "a schema of a named type"),
        ("confluent+mock://none", {"format": "json", "references": [ITEM]}, r"by the names in its \$ref"),
        ("confluent+mock://none", {"references": [ITEM]}, "requires its format"),
        ("confluent+mock://none", {"format": "avro", "subject_strategy": "stream"}, "topic, record, topic_record"),
        ("mock://none", {"format": "avro", "subject_strategy": "record"}, "groups instead of subjects"),
    ],
)
def test_settings_that_are_refused(uri: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SerdeError, match=words):
        serializer(uri, group="s", schema=CART, **settings)


@pytest.mark.parametrize(
    ("strategy", "names"),
    [("record", ["shop.Item", "shop.Unit"]), ("topic_record", ["orders-shop.Item", "orders-shop.Unit"])],
)
def test_a_subject_for_each_type(strategy: Any, names: list[str], uri: str, get: Callable[[str], Any]) -> None:
    writer = multi_type_serializer(
        uri,
        group="orders",
        schemas=[ITEM, UNIT],
        format="avro",
        type_of=lambda value: "shop.Unit" if isinstance(value, str) else "shop.Item",
        subject_strategy=strategy,
        register_schema=True,
    )
    assert get("/subjects") == names
    events = [writer.serialize({"name": "tea"}), writer.serialize("pot")]
    reader = deserializer(uri, group="orders", type="shop.Item", subject_strategy=strategy)
    assert [reader.deserialize(event) for event in events] == [{"name": "tea"}, "pot"]
    assert reader.decode_column(pa.array(events)).to_pylist() == [{"name": "tea"}, None]
    with pytest.raises(SchemaError, match="pass type"):
        _ = deserializer(uri, group="orders", subject_strategy=strategy).arrow_type


def test_a_json_schema_needs_a_title_for_its_subject(uri: str, get: Callable[[str], Any]) -> None:
    settings: dict[str, Any] = {"group": "g", "format": "json", "subject_strategy": "record", "register_schema": True}
    serializer(uri, schema={"title": "Item", "type": "object"}, **settings)
    assert get("/subjects") == ["Item"]
    with pytest.raises(SchemaError, match="has no title"):
        serializer(uri, schema={"type": "object"}, **settings)


def test_without_a_schema_the_latest_one_is_written(uri: str, get: Callable[[str], Any]) -> None:
    newer = {**ITEM, "fields": [*ITEM["fields"], {"name": "cups", "type": "int", "default": 1}]}
    for schema in (ITEM, newer):
        serializer(uri, group="s", schema=schema, format="avro", register_schema=True)
    writer = serializer(uri, group="s")
    assert writer.serialize({"name": "tea", "cups": 2})[:5] == b"\0\0\0\0\2"
    with pytest.raises(RegistryNotFoundError):
        serializer(uri, group="other")


def test_the_latest_schema_of_a_group_of_pravega() -> None:
    uri = "mock://latest-of-a-group"
    settings: dict[str, Any] = {"group": "g", "create_group": True, "register_schema": True}
    serializer(uri, schema=ITEM, format="avro", **settings)
    writer = serializer(uri, group="g")
    assert writer.deserialize(writer.serialize({"name": "tea"})) == {"name": "tea"}


def test_schemas_are_normalized(uri: str, get: Callable[[str], Any]) -> None:
    one = '{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}'
    other = '{"properties":{"b":{"type":"string"},"a":{"type":"integer"}},"type":"object"}'
    settings: dict[str, Any] = {"format": "json", "register_schema": True, "normalize": True}
    first = serializer(uri, group="s", schema=one, **settings)
    assert serializer(uri, group="s", schema=other, **settings).serialize({}) == first.serialize({})
    assert get("/subjects/s/versions") == [1]


def test_a_registry_in_memory_compares_and_fails(uri: str) -> None:
    registry = mock_confluent_registry(uri.partition("+")[2])
    serializer(uri, group="s", schema=ITEM, format="avro", register_schema=True)
    other = {**ITEM, "fields": [{"name": "name", "type": "int"}]}
    with pytest.raises(RegistryConflictError, match="incompatible"):
        serializer(uri, group="s", schema=other, format="avro", register_schema=True)
    registry.fail(503, times=1)
    serializer(uri, group="s", schema=ITEM, format="avro")
    registry.fail(503, times=10**6)
    with pytest.raises(RegistryUnavailableError, match="was told to fail"):
        serializer(RegistryConfig(uri=uri, timeout=0.05), group="s", schema=ITEM, format="avro")
