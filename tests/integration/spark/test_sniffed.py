"""The proposal of sniffing in Spark."""

import datetime as dt
import json
import uuid

import cbor2
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_serde import ClassDescriptor, Envelope, Enveloped, JavaSerializer, JsonSerializer, sniff

COUNT = 40
ORDER = ClassDescriptor.of("org.example.Order", 7, {"id": "long", "item": "java.lang.String"})


def document(i: int) -> dict[str, object]:
    return {
        "id": i,
        "key": str(uuid.UUID(int=i)),
        "when": (dt.datetime(2026, 5, 1) + dt.timedelta(seconds=i)).isoformat() + "Z",
        "day": "2026-05-01",
        "price": f"{i}.50",
        "odd name": {"lines": [{"n`o": 1.5}], "by key": {str(uuid.UUID(int=i)): True}},
        **({"extra": None if i % 3 else 2.5} if i % 2 else {}),
    }


STREAMS = {
    "json": [json.dumps(document(i)).encode() for i in range(COUNT)],
    "cbor": [cbor2.dumps(document(i)) for i in range(COUNT)],
    "java": [JavaSerializer().serialize(ORDER.new(id=i, item=f"item {i}")) for i in range(COUNT)],
    "longs": [JavaSerializer().serialize(1 << 40 | i) for i in range(COUNT)],
    "cloudevents": [
        Enveloped(JsonSerializer(), source="/", type="t").serialize(Envelope(document(i), key=f"k{i}"))
        for i in range(COUNT)
    ],
    "text": [f"line {i} of some text".encode() for i in range(COUNT)],
    "unknown": [bytes([i, 255, 0, 7]) for i in range(COUNT)],
}


@pytest.mark.parametrize("name", STREAMS)
def test_spark_reads_the_events_as_proposed(
    name: str, spark: SparkSession, client: PravegaClient, config: PravegaConfig, scope: str
):
    client.create_scope(scope)
    stream = f"{scope}/{name}"
    client.create_stream(stream, 2)
    with client.writer(stream) as writer:
        for at, event in enumerate(STREAMS[name]):
            writer.write(event, routing_key=str(at))
    events = pa.array(list(client.read(stream)), pa.binary())
    (part,) = sniff(events, stream=stream).parts
    reader = spark.read.format("pravega").options(controller=config.controller, **part.proposal.spark)
    if part.proposal.columns:
        reader = reader.schema(part.proposal.columns)
    frame = reader.load(stream)
    rows = frame.collect()
    assert len(rows) == COUNT
    assert all(row[0] is not None for row in rows)
    if name in ("json", "cbor", "cloudevents"):
        values = [row["value"] for row in rows] if name == "cloudevents" else rows
        row = next(value for value in values if value["id"] == 7)
        assert row["when"] is not None
        assert row["odd name"]["lines"][0]["n`o"] == 1.5
