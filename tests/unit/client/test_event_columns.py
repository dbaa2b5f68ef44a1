"""Columns of a range of a stream, and the packages that read them."""

import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.client.administration import StreamDescription
from pravega_connector.core.values import StreamConfig
from pravega_connector.errors import ConfigError
from pravega_connector.testing.requests import frame
from pravega_connector.wire import SegmentRange
from pravega_serde import serializer_for
from pravega_serde.errors import DeserializationError

ROWS = [{"id": n, "name": f"n{n % 7}"} for n in range(60_000)]
EVENTS = [json.dumps(row).encode() for row in ROWS]
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def full(stream, store):
    store.append(stream.segment(0), b"".join(map(frame, EVENTS)))
    return stream


@pytest.fixture
def columns(client: PravegaClient, full):
    return client.read_columns(full.name, serializer_for("json", arrow_type=SCHEMA))


def test_without_a_serializer_there_are_the_events_and_their_places(client, full):
    columns = client.read_columns(full.name)
    assert columns.schema.names == ["event", "scope", "stream", "segment_id", "offset"]
    table = columns.to_arrow()
    assert table["event"].to_pylist() == EVENTS
    sizes = np.array([len(frame(event)) for event in EVENTS])
    assert np.array_equal(table["offset"].to_numpy(), np.cumsum(sizes) - sizes)
    assert table.slice(0, 1).drop_columns(["event"]).to_pylist() == [
        {"scope": full.name.scope, "stream": full.name.stream, "segment_id": 0, "offset": 0}
    ]


def test_records_give_columns_and_the_places_asked_for(client, full):
    serializer = serializer_for("json", arrow_type=SCHEMA)
    columns = client.read_columns(full.name, serializer, metadata=["offset"])
    assert columns.schema == pa.schema([*SCHEMA, ("offset", pa.int64())])
    assert columns.to_arrow().select(["id", "name"]).to_pylist() == ROWS
    assert columns.head(2).to_pylist() == [{**ROWS[0], "offset": 0}, {**ROWS[1], "offset": len(frame(EVENTS[0]))}]


def test_single_values_are_one_column(client, full):
    columns = client.read_columns(full.name, serializer_for("string"))
    assert columns.schema == pa.schema([("value", pa.string())])
    assert columns.head(1).to_pylist() == [{"value": EVENTS[0].decode()}]


def test_each_package_reads_the_same_rows(columns):
    table = pa.table(columns)
    assert table.to_pylist() == ROWS
    assert table == columns.to_arrow()
    assert columns.to_pandas().equals(pd.DataFrame(ROWS))
    assert pl.DataFrame(columns).equals(columns.to_polars())
    assert columns.to_polars().to_dicts() == ROWS


def test_a_lazy_frame_reads_what_a_query_asks_for(columns):
    lazy = columns.scan_polars()
    counts = lazy.group_by("name").agg(pl.len(), pl.col("id").sum()).sort("name").collect(engine="streaming")
    assert counts["id"].sum() == sum(range(60_000))
    assert counts.columns == ["name", "len", "id"]
    assert lazy.filter(pl.col("id") > 59_997).select("name").collect().to_dicts() == [
        {"name": row["name"]} for row in ROWS[-2:]
    ]
    assert lazy.head(3).collect().to_dicts() == ROWS[:3]
    assert lazy.filter(pl.col("id") >= 10).head(3).collect().to_dicts() == ROWS[10:13]


def test_duckdb_reads_the_range_again_for_each_query(columns):
    with duckdb.connect() as connection:
        relation = columns.to_duckdb(connection)
        for _ in range(2):
            assert relation.aggregate("count(*), sum(id)").fetchall() == [(60_000, sum(range(60_000)))]
        assert connection.sql("SELECT max(id) FROM columns WHERE name = 'n3'").fetchall() == [(59_993,)]
    assert columns.to_duckdb().aggregate("count(*)").fetchall() == [(60_000,)]


def test_a_bad_event_is_an_error_with_its_place_or_null(client, full, store):
    at = sum(len(frame(event)) for event in EVENTS)
    store.append(full.segment(0), frame(b"{"))
    serializer = serializer_for("json", arrow_type=SCHEMA)
    with pytest.raises(DeserializationError, match=f"stream {full.name}, segment 0, offset {at}"):
        client.read_columns(full.name, serializer).to_arrow()
    errors = []
    table = client.read_columns(full.name, serializer, on_error=errors.append).to_arrow()
    assert table.slice(60_000).to_pylist() == [{"id": None, "name": None}]
    assert [error.offset for error in errors] == [at]


def test_columns_may_not_come_twice_and_have_to_be_known(client, full):
    serializer = serializer_for("json", arrow_type=pa.schema([("offset", pa.int64())]))
    with pytest.raises(ConfigError, match="'offset' would exist twice"):
        client.read_columns(full.name, serializer, metadata=["offset"])
    with pytest.raises(ConfigError, match="unknown metadata column 'time': event, scope"):
        client.read_columns(full.name, metadata=["time"])


def test_a_notebook_shows_what_there_is_without_reading(columns, store):
    asked = len(store.requests)
    text, page = repr(columns), columns._repr_html_()
    assert "[id: int64, name: string]" in text
    assert f"{columns.size:,} bytes" in text
    assert "<td>name</td><td>string</td>" in page
    assert len(store.requests) == asked


def test_batches_and_cuts_are_tables_in_a_notebook(client, full):
    batch = next(iter(client.read_columns(full.name)))
    assert repr(batch).endswith(f"segment 0, {len(batch.events)} events, the first at 0)")
    page = batch._repr_html_()
    assert "{&quot;id&quot;: 0, &quot;name&quot;: &quot;n0&quot;}" in page
    assert f"… {len(batch.events) - 20:,} more" in page
    assert "<td>0.#epoch.0</td>" in client.tail(full.name)._repr_html_()
    assert repr(client).startswith("PravegaClient(tcp://")


def test_readers_writers_and_streams_show_what_they_are_of(client, full):
    with client.follow(full.name, start="earliest") as batches, client.follow(full.name, "json") as values:
        assert repr(batches) == f"TailReader({full.name}:0.#epoch.0=0)"
        assert repr(values) == f"ValueReader({client.tail(full.name)})"
    with client.writer(full.name) as writer:
        assert repr(writer) == f"EventWriter({full.name})"
    assert repr(writer) == f"EventWriter({full.name}, closed)"
    tail = client.tail(full.name)
    whole = (SegmentRange(0, 0.0, 1.0),)
    page = StreamDescription(full.name, StreamConfig(), whole, client.head(full.name), tail, 1234)._repr_html_()
    assert f"stream {full.name}: 1,234 bytes</caption>" in page
    assert f'<td>0.#epoch.0</td><td>0 to 1</td><td style="text-align:right">{tail.positions[0]:,}</td>' in page
