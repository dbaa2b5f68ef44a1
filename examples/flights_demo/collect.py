"""Read the sums back, and keep the last ones of each airport and hour, in plain Python."""

from __future__ import annotations

import pyarrow as pa

from examples.flights_demo.flights import DELAY_SCHEMA
from pravega_connector import PravegaClient
from pravega_serde import serializer_for

Sums = dict[tuple[str, int], tuple[int, int | None, int | None]]


def last_sums(client: PravegaClient, stream: str) -> tuple[Sums, int]:
    """Return the last sums in the stream by origin and hour in epoch milliseconds, and the number of events."""
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
