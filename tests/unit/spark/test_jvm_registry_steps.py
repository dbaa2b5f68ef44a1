"""Plans of the JVM's decoders for events of a schema registry: the known headers, or the reason why Python decodes."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pyarrow as pa
import pytest

from pravega_connector.spark.jvm import registry_steps
from pravega_connector.spark.jvm.decoding import steps
from pravega_connector.spark.jvm.messages import NotInJvmError
from pravega_serde.protobuf import protobuf_schema_of
from pravega_serde.registry import Compatibility, GroupProperties, SerializationFormat, deserializer, serializer
from pravega_serde.registry.memory import mock_confluent_registry
from tests.unit.registry._rules import encrypting, register

PRAVEGA, CONFLUENT, APICURIO = "mock://jvm", "confluent+mock://jvm", "apicurio+mock://jvm"
ANY = GroupProperties(SerializationFormat.ANY, Compatibility.ALLOW_ANY, allow_multiple_types=True)
ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}
_numbers = itertools.count()


@pytest.fixture
def group() -> str:
    return f"group-{next(_numbers)}"


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def written(uri: str, group: str, schema: Any, value: Any = None, **settings: Any) -> bytes:
    """Return an event of a schema that is registered."""
    made = serializer(
        uri,
        group=group,
        schema=schema,
        register_schema=True,
        create_group=True if "+" in uri else ANY,
        **{"format": "avro", **settings},
    )
    return bytes(made.serialize(value or {"id": 1}))


def headers(uri: str, group: str, **settings: Any) -> list[list[str]]:
    return [each["headers"] for each in steps(deserializer(uri, group=group, **settings))["decoders"]]


@pytest.mark.parametrize("uri", [PRAVEGA, CONFLUENT])
def test_each_version_has_its_header(uri: str, group: str) -> None:
    events = [written(uri, group, schema) for schema in (record(ID), record(ID, NOTE))]
    assert headers(uri, group) == [[event[:5].hex()] for event in events]


def test_the_events_of_apicurio_have_one_of_two_ids(group: str) -> None:
    event = written(APICURIO, group, record(ID))
    assert headers(APICURIO, group) == [[event[:5].hex(), "00000000" + event[:5].hex()]]


def test_versions_that_are_read_alike_share_a_decoder(group: str) -> None:
    columns = [pa.schema([("id", pa.int64())]), pa.schema([("id", pa.int64()), ("note", pa.string())])]
    made = [protobuf_schema_of(each, "shop.Order") for each in columns]
    events = [written(CONFLUENT, group, each, format="protobuf", type="shop.Order") for each in made]
    assert headers(CONFLUENT, group) == [[event[:6].hex() for event in events]]
    assert events[0][5] == 0


def test_a_message_that_is_not_the_first_of_its_file(group: str) -> None:
    files = protobuf_schema_of(pa.schema([("id", pa.int64())]), "shop.Order")
    second = files.file[0].message_type.add(name="Refund")
    second.field.add(name="id", number=1, type=3, label=1)
    event = written(CONFLUENT, group, files, format="protobuf", type="shop.Refund")
    assert event[5:7] == b"\x02\x02"
    assert headers(CONFLUENT, group, type="shop.Refund") == [[event[:7].hex()]]


def test_two_registries_of_a_stream(group: str) -> None:
    events = [written(uri, group, record(ID)) for uri in (PRAVEGA, CONFLUENT)]
    assert headers(PRAVEGA, group, also={CONFLUENT: group}) == [[event[:5].hex() for event in events]]


def test_events_that_python_refuses_have_no_decoder(group: str) -> None:
    written(PRAVEGA, group, record(ID))
    written(PRAVEGA, group, record({"name": "id", "type": "string"}), {"id": "no number"})
    written(PRAVEGA, group, record(ID, name="Refund"))
    last = written(PRAVEGA, group, record(ID, NOTE))
    reader = {"schema": record(ID), "format": "avro", "check_readable": False}
    assert headers(PRAVEGA, group, **reader) == [["0100000000"], [last[:5].hex()]]
    assert headers(PRAVEGA, group, evolution="corrupt", **reader) == [["0100000000"]]


def test_compressed_events_have_no_decoder(group: str) -> None:
    written(PRAVEGA, group, record(ID), codec="gzip", register_codec=True)
    event = written(PRAVEGA, group, record(ID))
    assert headers(PRAVEGA, group) == [[event[:5].hex()]]


def reason(uri: str, group: str, **settings: Any) -> str:
    with pytest.raises(NotInJvmError) as raised:
        steps(deserializer(uri, group=group, **settings))
    return str(raised.value)


def test_a_group_without_events(group: str) -> None:
    given = {"schema": record(ID), "format": "avro", "check_readable": False}
    serializer(PRAVEGA, group=group, format="avro", create_group=ANY, register_schema=True, schema=record(NOTE))
    assert reason(PRAVEGA, group, **given) == "a registry's group without encodings of these columns"


def test_several_types(group: str) -> None:
    written(PRAVEGA, group, record(ID))
    written(PRAVEGA, group, record(ID, name="Refund"))
    assert reason(PRAVEGA, group) == "a column for each type of the registry's group"
    assert reason(PRAVEGA, group, type="Order") == "other types in the registry's group, whose events have no rows"


def test_selected_events_that_may_be_null(group: str) -> None:
    schema = {"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}}}
    event = written(PRAVEGA, group, schema, format="json", type="Order")
    assert headers(PRAVEGA, group) == [[event[:5].hex()]]
    assert reason(PRAVEGA, group, type="Order") == "option 'registry_type' for events that may be null"


def test_wider_numbers(group: str) -> None:
    written(PRAVEGA, group, record(ID))
    narrow = {"schema": record({"name": "id", "type": "int"}), "format": "avro", "check_readable": False}
    assert reason(PRAVEGA, group, **narrow) == "wider numbers of another version of 'Order'"


def test_the_latest_events_are_compressed(group: str) -> None:
    written(PRAVEGA, group, record(ID))
    written(PRAVEGA, group, record(ID), codec="gzip", register_codec=True)
    assert reason(PRAVEGA, group).startswith("codec 'application/x-gzip' of the latest encoding")


def test_rules(group: str) -> None:
    registry = mock_confluent_registry(CONFLUENT)
    note = {"name": "note", "type": "string", "default": "", "confluent:tags": ["PII"]}
    register(registry, group, record(ID, note), encrypting())
    assert reason(CONFLUENT, group) == "rules of the registry's schemas"


def test_a_schema_without_a_decoder(group: str) -> None:
    tree = record(ID, {"name": "next", "type": ["null", "Order"], "default": None})
    written(PRAVEGA, group, tree)
    reader = {"schema": record(ID), "format": "avro", "check_readable": False}
    assert reason(PRAVEGA, group, **reader) == "an Avro record that contains itself"


def test_ids_that_cannot_be_listed(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written(CONFLUENT, group, record(ID))
    reader = deserializer(CONFLUENT, group=group)
    _ = reader.arrow_type
    mock_confluent_registry(CONFLUENT).fail(403)
    with pytest.raises(NotInJvmError, match=r"a registry whose ids are not listed: .*403"):
        steps(reader)
    assert steps(reader)["format"] == "avro"
    written(CONFLUENT, group, record(ID, NOTE))
    monkeypatch.setattr(registry_steps, "_MOST_IDS", 1)
    assert reason(CONFLUENT, group).endswith(f"the group {group!r} has more than 1 ids")


def test_the_plan_is_json(group: str) -> None:
    event = written(PRAVEGA, group, record(ID))
    plan = steps(deserializer(PRAVEGA, group=group))
    assert json.loads(json.dumps(plan)) == plan
    assert (plan["format"], plan["decoders"][0]["headers"]) == ("avro", [event[:5].hex()])
