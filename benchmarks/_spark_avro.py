"""Avro events with the registry's header, read by Spark to typed columns: the events, and what each side does."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connector.client import PravegaClient
from connector.wire import StreamName
from pravega_serde.registry import serializer

__all__ = ["EVENT_SIZE", "SCHEMA", "fill_avro"]

#: The schema of the events as Java registers it.
SCHEMA: Final = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "namespace": "benchmark",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "sensor", "type": "string"},
            {"name": "value", "type": "double"},
            {"name": "count", "type": "int"},
            {"name": "ok", "type": "boolean"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
)
#: About; with the header.
EVENT_SIZE: Final = 46
_STEP: Final = 200_000


def fill_avro(controller: str, registry: str, stream: StreamName, events: int) -> int:
    """Write so many events; the sum of their column ``id``."""
    made = serializer(
        registry, group=stream.stream, schema=SCHEMA, format="avro", create_group=True, register_schema=True
    )
    with PravegaClient(controller) as client, client.writer(stream) as writer:
        for first in range(0, events, _STEP):
            ids = np.arange(first, min(first + _STEP, events))
            writer.write_column(made.encode_column(_rows(ids)), pa.array(ids % 4096).cast(pa.string()))
        writer.flush()
    return events * (events - 1) // 2


def _rows(ids: Any) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {
        "id": pa.array(ids),
        "sensor": pa.array([f"sensor-{i % 1000:04}" for i in ids.tolist()]),
        "value": pa.array(ids / 7),
        "count": pa.array((ids % 100_000).astype(np.int32)),
        "ok": pa.array(ids % 2 == 0),
        "at": pa.array(1_790_000_000_000_000 + ids).cast(pa.timestamp("us", "UTC")),
    }
    return pa.RecordBatch.from_pydict(columns)
