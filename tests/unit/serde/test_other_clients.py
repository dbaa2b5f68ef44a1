"""Serializers as other clients accept them: confluent-kafka, aiokafka, FastStream and kombu."""

import asyncio
from collections.abc import Iterator
from typing import Any

import kombu
import pytest
from confluent_kafka.error import ValueDeserializationError, ValueSerializationError
from faststream.kafka import KafkaBroker, TestKafkaBroker
from faststream.kafka.annotations import KafkaMessage
from google.protobuf.field_mask_pb2 import FieldMask
from kombu.serialization import register, unregister

from pravega_serde import AvroSerializer, DeserializationError, JsonSerializer, ProtobufSerializer, SerializationError
from tests.support.kafka_clients import AIOKAFKA, CLIENTS, CONFLUENT, mock_broker, read, write

ORDERS = AvroSerializer({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
GIVEN = [
    pytest.param(ORDERS, [{"id": 7}, None, {"id": 8}], id="avro"),
    pytest.param(JsonSerializer(), [{"id": 7}, None, [1]], id="json"),
    pytest.param(ProtobufSerializer(FieldMask), [FieldMask(paths=["a"]), None], id="protobuf"),
]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with mock_broker() as started:
        yield started


@pytest.mark.parametrize("writer", CLIENTS)
@pytest.mark.parametrize("reader", CLIENTS)
@pytest.mark.parametrize(("serializer", "values"), GIVEN)
def test_clients_of_kafka_accept_a_serializer_as_it_is(
    servers: str, writer: str, reader: str, serializer: Any, values: list[Any]
):
    topic = f"{writer}-{reader}-{type(serializer).__name__}"
    write(writer, servers, topic, values, serializer)
    assert read(reader, servers, topic, len(values), serializer.deserializer) == values


def test_their_errors_have_ours(servers: str):
    for client, kind in ((CONFLUENT, ValueSerializationError), (AIOKAFKA, SerializationError)):
        with pytest.raises(kind, match=r"\[PRAVEGA-SERIALIZATION\] .*\$\.id"):
            write(client, servers, "refused", [{"id": "seven"}], ORDERS)
    write(CONFLUENT, servers, "malformed", [{"id": "seven"}], JsonSerializer())
    for client, kind in ((CONFLUENT, ValueDeserializationError), (AIOKAFKA, DeserializationError)):
        with pytest.raises(kind, match=r"\[PRAVEGA-DESERIALIZATION\]"):
            read(client, servers, "malformed", 1, ORDERS.deserializer)


def test_faststream_publishes_events_and_decodes_them():
    broker = KafkaBroker()
    seen = []

    @broker.subscriber("orders", decoder=lambda message: ORDERS.deserializer(message.body))
    async def receive(order: dict[str, int], message: KafkaMessage) -> None:
        seen.append((order, message.body))

    async def run() -> None:
        async with TestKafkaBroker(broker):
            await broker.publish(ORDERS({"id": 7}), "orders")

    asyncio.run(run())
    assert seen == [({"id": 7}, ORDERS.serialize({"id": 7}))]


def test_kombu_registers_both_directions():
    register("orders", ORDERS, ORDERS.deserializer, "application/x-order", "binary")
    try:
        with (
            kombu.Connection("memory://") as connection,
            connection.SimpleQueue("orders", serializer="orders", accept=["application/x-order"]) as queue,
        ):
            queue.put({"id": 7})
            message = queue.get(timeout=120)
            assert (bytes(message.body), message.payload) == (ORDERS.serialize({"id": 7}), {"id": 7})
            message.ack()
    finally:
        unregister("orders")
