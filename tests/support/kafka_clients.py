"""Clients of Kafka that write and read values with serializers, as their users pass them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import aiokafka
from confluent_kafka import OFFSET_BEGINNING, DeserializingConsumer, Producer, SerializingProducer, TopicPartition

from pravega_serde import UTF8StringSerializer

__all__ = ["AIOKAFKA", "CLIENTS", "CONFLUENT", "mock_broker", "read", "write"]

CONFLUENT: Final = "confluent-kafka"
AIOKAFKA: Final = "aiokafka"
CLIENTS: Final = (CONFLUENT, AIOKAFKA)
_SECONDS: Final = 60.0
_KEYS: Final = UTF8StringSerializer()


@contextmanager
def mock_broker() -> Iterator[str]:
    """Yield the address of librdkafka's own broker in this process, which creates topics on first use."""
    owner = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = owner.list_topics(timeout=_SECONDS).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del owner


def write(client: str, servers: str, topic: str, values: Sequence[Any], serializer: Any) -> None:
    """Write values with the key ``k``; durable on return."""
    if client == CONFLUENT:
        config = {"bootstrap.servers": servers, "key.serializer": _KEYS, "value.serializer": serializer}
        producer = SerializingProducer(config)
        for value in values:
            producer.produce(topic, key="k", value=value)
        assert producer.flush(_SECONDS) == 0
    else:
        asyncio.run(_write(servers, topic, values, serializer))


async def _write(servers: str, topic: str, values: Sequence[Any], serializer: Any) -> None:
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=servers, key_serializer=_KEYS, value_serializer=serializer
    ) as producer:
        for value in values:
            await producer.send_and_wait(topic, key="k", value=value)


def read(client: str, servers: str, topic: str, count: int, deserializer: Any) -> list[Any]:
    """Return the first values of a topic. Raises the client's error for a malformed one."""
    if client == CONFLUENT:
        config = {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "key.deserializer": _KEYS.deserializer,
            "value.deserializer": deserializer,
        }
        with closing(DeserializingConsumer(config)) as consumer:
            # Assigned, not subscribed: a group takes seconds to form.
            partitions = consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
            consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
            messages = [consumer.poll(_SECONDS) for _ in range(count)]
        assert [each.key() for each in messages] == ["k"] * count
        return [each.value() for each in messages]
    return asyncio.run(_read(servers, topic, count, deserializer))


async def _read(servers: str, topic: str, count: int, deserializer: Any) -> list[Any]:
    async with aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        key_deserializer=_KEYS.deserializer,
        value_deserializer=deserializer,
    ) as consumer:
        async with asyncio.timeout(_SECONDS):
            messages = [await consumer.getone() for _ in range(count)]
    assert [each.key for each in messages] == ["k"] * count
    return [each.value for each in messages]
