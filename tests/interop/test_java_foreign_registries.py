"""Events of Java's serializers for Kafka: Apicurio's in both framings, and Flink's with Confluent's own client.

A real Apicurio registry is between them and ours. It also has the interface of Confluent's registry.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message

from benchmarks._drive import Peer
from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.jvm import find_java
from pravega_serde.registry import RegistryDeserializer, deserializer, serializer
from pravega_serde.registry.header import APICURIO, CONFLUENT
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

#: Tests of confluent-kafka and apicurio-serdes cover both framings.
pytestmark = [pytest.mark.integration, pytest.mark.long]

_HERE: Final = Path(__file__).parent
_LOCKS = Path(__file__).parents[1] / "support"
_NUMBERS: Final = itertools.count()
ORDER: Final[dict[str, Any]] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}
ORDER_2: Final = {**ORDER, "fields": [*ORDER["fields"], {"name": "cups", "type": "int", "default": 1}]}
JSON: Final = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
}
ORDERS: Final = [{"id": 1, "item": "tea"}, {"id": 2**40, "item": "müsli"}, {"id": -3, "item": ""}]
CUPS: Final = [{"id": 1, "item": "tea"}, {"id": -3, "item": "müsli"}]
VALUES: Final[dict[str, list[dict[str, Any]]]] = {"avro": ORDERS, "json": ORDERS, "protobuf": CUPS}


def _shop() -> FileDescriptorProto:
    """A file whose second message is an order."""
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Other")
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=FieldDescriptorProto.TYPE_SINT32, label=1)
    order.field.add(name="item", number=2, type=FieldDescriptorProto.TYPE_STRING, label=1)
    return file


SHOP: Final = _shop()
_POOL: Final = descriptor_pool.DescriptorPool()
_POOL.Add(SHOP)  # type: ignore[no-untyped-call]
Order: Final = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("shop.Order"))
SCHEMAS: Final[dict[str, Any]] = {"avro": ORDER, "json": JSON, "protobuf": Order}

#: Settings of Apicurio's serializers for each framing.
_HANDLERS: Final = "io.apicurio.registry.serde"
_IDS: Final = "apicurio.registry.id-handler"
_PROTOBUF: Final = "apicurio.registry.serde"
CONFLUENTS: Final = {
    _IDS: f"{_HANDLERS}.Default4ByteIdHandler",
    "apicurio.registry.use-id": "contentId",
    **{f"{_PROTOBUF}.{way}-indexes": "true" for way in ("send", "read")},
    **{f"{_PROTOBUF}.{way}-type-ref": "false" for way in ("send", "read")},
}
REFERENCES: Final = {
    **{f"{_PROTOBUF}.{way}-indexes": "false" for way in ("send", "read")},
    **{f"{_PROTOBUF}.{way}-type-ref": "true" for way in ("send", "read")},
}
APICURIOS: Final = {_IDS: f"{_HANDLERS}.Default4ByteIdHandler", "apicurio.registry.use-id": "contentId", **REFERENCES}
GLOBAL_IDS: Final = {_IDS: f"{_HANDLERS}.Legacy8ByteIdHandler", "apicurio.registry.use-id": "globalId", **REFERENCES}
#: Framing -> settings, and True if our address is Confluent's interface.
FRAMINGS: Final[dict[str, tuple[dict[str, str], bool]]] = {
    "confluent": (CONFLUENTS, True),
    "apicurio": (APICURIOS, False),
    "global ids": (GLOBAL_IDS, False),
}


def _peer(folder: Path, jars: JarSet, program: str) -> Peer:
    java, found = find_java(), ensure_jars(jars)
    sources = {"ApicurioPeer": "java_apicurio", "FlinkConfluentPeer": "java_flink_confluent"}[program]
    compile_java(java, (_HERE / sources).glob("*.java"), folder, found)
    return Peer(program, [str(java.path), "-Xmx256m", *SOON_READY, "-cp", f"{folder}:{found}/*", program])


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    jars = JarSet.load("apicurio-serdes", "3.1.4", _LOCKS)
    with _peer(tmp_path_factory.mktemp("apicurio"), jars, "ApicurioPeer") as peer:
        yield peer


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    jars = JarSet.load("flink-confluent", "2.1.0", _LOCKS)
    with _peer(tmp_path_factory.mktemp("flink"), jars, "FlinkConfluentPeer") as peer:
        yield peer


Java = Callable[..., list[Any]]


@pytest.fixture
def artifact() -> str:
    return f"java{next(_NUMBERS)}"


@pytest.fixture
def ask(theirs: Peer, apicurio: str, artifact: str) -> Java:
    """``ask("write", "avro", "confluent", values, schema)`` returns events, and ``ask("read", …)`` values."""

    def ask(do: str, form: str, framing: str, values: list[Any], schema: Any = ORDER) -> list[Any]:
        settings = {
            "apicurio.registry.url": f"{apicurio}/apis/registry/v3",
            "apicurio.registry.artifact.group-id": "default",
            "apicurio.registry.artifact.artifact-id": artifact,
            "apicurio.registry.auto-register": str(form != "json").lower(),
            "apicurio.registry.find-latest": str(form == "json").lower(),
            **FRAMINGS[framing][0],
        }
        sent = [each.hex() for each in values] if do == "read" else values
        kind = {"file": SHOP.SerializeToString().hex(), "name": "Order"} if form == "protobuf" else schema
        request = {"format": form, "settings": settings, "type": kind}
        value = theirs.ask(do, timeout=120, values=sent, **request)["value"]
        return [bytes.fromhex(each) for each in value] if do == "write" else value

    return ask


def registry_of(apicurio: str, confluent: str, framing: str) -> str:
    return f"confluent+{confluent}" if FRAMINGS[framing][1] else f"apicurio+{apicurio}"


def rows(reader: RegistryDeserializer, events: list[bytes]) -> list[Any]:
    found = [reader.deserialize(event) for event in events]
    return [json_format.MessageToDict(each) if isinstance(each, Message) else each for each in found]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("form", SCHEMAS)
def test_events_of_java(apicurio: str, confluent: str, ask: Java, artifact: str, form: str, framing: str) -> None:
    uri = registry_of(apicurio, confluent, framing)
    settings = {"schema": SCHEMAS[form], "format": form, "register_schema": True}
    ours = serializer(uri, group=artifact, **settings)  # its schema is Java's for JSON
    ours.serialize(_value(form, VALUES[form][0]))
    events = ask("write", form, framing, VALUES[form])
    header = APICURIO if framing == "global ids" else CONFLUENT
    assert all(header.find(event) is not None for event in events)
    reader = deserializer(uri, group=artifact, **({"type": "shop.Order"} if form == "protobuf" else {}))
    assert rows(reader, events) == VALUES[form]
    column = reader.decode_column(pa.array([*events, None]))
    assert column.to_pylist() == [*VALUES[form], None]


@pytest.mark.parametrize(
    ("form", "framing"),
    [
        ("avro", "confluent"),
        ("json", "confluent"),
        ("avro", "apicurio"),
        ("json", "apicurio"),
        ("protobuf", "apicurio"),
    ],
)
def test_events_of_ours(apicurio: str, confluent: str, ask: Java, artifact: str, form: str, framing: str) -> None:
    uri = registry_of(apicurio, confluent, framing)
    ours = serializer(uri, group=artifact, schema=SCHEMAS[form], format=form, register_schema=True)
    values = [_value(form, value) for value in VALUES[form]]
    assert ask("read", form, framing, [ours.serialize(value) for value in values]) == VALUES[form]
    if form != "protobuf":
        column = ours.encode_column(pa.array(values, ours.arrow_type))
        assert ask("read", form, framing, column.to_pylist()) == VALUES[form]


def test_protobuf_with_message_indexes(confluent: str, ask: Java, artifact: str) -> None:
    """Compare bytes: Apicurio's reader needs a generated class for message indexes, also for its own events."""
    theirs = ask("write", "protobuf", "confluent", CUPS)
    ours = serializer(f"confluent+{confluent}", group=artifact, schema=Order, format="protobuf")
    assert [ours.serialize(_value("protobuf", cup)) for cup in CUPS] == theirs


def _value(form: str, value: dict[str, Any]) -> Any:
    return json_format.ParseDict(value, Order()) if form == "protobuf" else value


@pytest.mark.parametrize("framing", FRAMINGS)
def test_versions_of_java(apicurio: str, confluent: str, ask: Java, artifact: str, framing: str) -> None:
    uri = registry_of(apicurio, confluent, framing)
    first = ask("write", "avro", framing, ORDERS)
    running = deserializer(uri, group=artifact)
    assert running.decode_column(pa.array(first)).to_pylist() == ORDERS
    second = ask("write", "avro", framing, [{**order, "cups": 7} for order in ORDERS], ORDER_2)
    assert running.decode_column(pa.array([*second, *first])).to_pylist() == [*ORDERS, *ORDERS]
    assert running.deserialize(second[0]) == {**ORDERS[0], "cups": 7}


def test_flink_and_ours(flink: Peer, confluent: str, artifact: str) -> None:
    request = {"uri": confluent, "subject": f"{artifact}-value", "schema": ORDER}
    events = [bytes.fromhex(each) for each in flink.ask("write", values=ORDERS, **request)["value"]]
    uri = f"confluent+{confluent}"
    reader = deserializer(uri, group=f"{artifact}-value")
    assert rows(reader, events) == reader.decode_column(pa.array(events)).to_pylist() == ORDERS
    ours = serializer(uri, group=f"{artifact}-value", schema=ORDER, format="avro")
    written = [ours.serialize(order) for order in ORDERS]
    assert written == events
    assert flink.ask("read", values=[event.hex() for event in written], **request)["value"] == ORDERS
    # Flink's reader has the older schema.
    newer = serializer(uri, group=f"{artifact}-value", schema=ORDER_2, format="avro", register_schema=True)
    event = newer.serialize({**ORDERS[0], "cups": 9})
    assert flink.ask("read", values=[event.hex()], **request)["value"] == [ORDERS[0]]


def test_all_in_one_column(flink: Peer, apicurio: str, confluent: str, ask: Java, artifact: str) -> None:
    """Events of Flink, of Apicurio's serializer, of ours and of Pravega's registry, in one column."""
    own = "mock://all-in-one-column"
    pravegas = serializer(own, group=artifact, schema=ORDER, format="avro", register_schema=True, create_group=True)
    uri = f"confluent+{confluent}"
    ours = serializer(uri, group=artifact, schema=ORDER, format="avro", register_schema=True)
    request = {"uri": confluent, "subject": artifact, "schema": ORDER}
    flinks = [bytes.fromhex(each) for each in flink.ask("write", values=ORDERS, **request)["value"]]
    kinds = [
        flinks,
        ask("write", "avro", "confluent", ORDERS),
        [ours.serialize(order) for order in ORDERS],
        [pravegas.serialize(order) for order in ORDERS],
    ]
    events = [event for together in zip(*kinds, strict=True) for event in together]
    reader = deserializer(own, group=artifact, also={uri: artifact})
    expected = [order for order in ORDERS for _ in kinds]
    assert rows(reader, events) == reader.decode_column(pa.array(events)).to_pylist() == expected
