"""The flights of the demo, from CSV and from Parquet, as Avro with a registry, read typed in Spark."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from examples.flights_demo.flights import load_flights
from pravega_connector.operations.ingest import Sizes, ingest, plan


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with flights.csv, which has NA for a missing value, and a Parquet copy of it."""
    folder = tmp_path_factory.mktemp("flights")
    rows = load_flights().to_pylist()
    with (folder / "flights.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        writer.writerows([_as_text(value) for value in row.values()] for row in rows)
    strings = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    pq.write_table(pyarrow.csv.read_csv(folder / "flights.csv", convert_options=strings), folder / "flights.parquet")
    return folder


def _as_text(value: object) -> str:
    if value is None:
        return "NA"
    return f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else str(value)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("flights.csv", Sizes(variant="count", records=25_000)), ("flights.parquet", Sizes(variant="length"))],
    ids=["csv", "parquet"],
)
def test_flights_are_the_same_row_by_row(spark, config, client, registry, flights, name, sizes):
    stream = client.name(name.replace(".", "-"))
    client.create_stream(stream, 1)
    options = {
        "format": "avro",
        "registry": registry,
        "group": stream.stream,
        "registry_type": "Flight",
        "create_group": "true",
        "register_schema": "true",
    }
    schema = plan(flights / name, stream, client=client, options={"format": "json"}).schema
    assert (schema.field("dep_delay").type, schema.field("tailnum").type) == (pa.int64(), pa.string())
    assert pa.types.is_timestamp(schema.field("time_hour").type)
    summary = ingest(flights / name, stream, client=client, options=options, sizes=sizes)
    original = pq.read_table(flights / "flights.parquet")
    assert summary.counts.events == original.num_rows == 86_995
    read = spark.read.format("pravega").option("controller", config.controller)
    found = read.option("registry", registry).option("group", stream.stream).load(str(stream)).toArrow()
    expected = original.set_column(
        original.schema.get_field_index("time_hour"), "time_hour", original["time_hour"].cast(pa.timestamp("us", "UTC"))
    )
    for column in expected.schema.names:
        assert found[column].combine_chunks().cast(expected[column].type).equals(expected[column].combine_chunks())
