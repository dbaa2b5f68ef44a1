"""A plain Python program: reads the sums back and keeps the last one of each airport and hour."""

from __future__ import annotations

import pyarrow as pa

from examples.flights_demo.flights import DELAY_SCHEMA
from pravega_connector import PravegaClient
from pravega_serde import serializer_for

Sums = dict[tuple[str, int], tuple[int, int | None, int | None]]


def last_sums(client: PravegaClient, stream: str) -> tuple[Sums, int]:
    """(origin, hour in epoch milliseconds) -> the last sums that the stream has for it; and how many events it has."""
    serializer = serializer_for("avro", schema=DELAY_SCHEMA)
    sums: Sums = {}
    events = 0
    for batch in client.read_columns(stream):
        rows = serializer.decode_column(batch.events)
        names, hours, *values = (rows.field(name) for name in ("origin", "hour", "flights", "dep_delay", "arr_delay"))
        millis = hours.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        keys = zip(names.to_pylist(), millis.to_pylist(), strict=True)
        sums.update(zip(keys, zip(*(v.to_pylist() for v in values), strict=True), strict=True))
        events += len(rows)
    return sums, events
