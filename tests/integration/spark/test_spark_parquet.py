"""Parquet files of Spark, which Java's Parquet library writes: every value is ingested as itself, or is an error."""

import random
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from pravega_serde.columnar.types import contains
from tests.fuzz._tables import COLUMNS
from tests.fuzz.files import FORMATS, Totals, check_file

_ROWS: Final = 50
#: Types of Arrow that a DataFrame has as they are. Its intervals are numbers in Parquet, without a unit.
_NAMES: Final = (
    *("int8", "int16", "int32", "int64", "float32", "double", "money", "wide", "fraction", "flag", "text", "controls"),
    *("bytes", "day", "local_us", "instant_us"),
    *("list<int64>", "list<text>", "list<bytes>", "list<money>", "struct", "list<struct>", "list<list>"),
    *("map<text, int64>", "map<text, struct>", "map<int64, text>"),
)


@pytest.mark.parametrize("times", ["TIMESTAMP_MICROS", "INT96"])
def test_every_value_is_ingested(spark: SparkSession, tmp_path: Path, times: str) -> None:
    names = (
        _NAMES
        if times == "TIMESTAMP_MICROS"
        else [name for name in _NAMES if contains(COLUMNS[name].kind, "timestamp")]
    )
    spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    rng, totals = random.Random(times), Totals()
    for number, name in enumerate(names):
        column = COLUMNS[name]
        values = column.values(rng, _ROWS)
        table = pa.table({"k": pa.array(range(_ROWS), pa.int64()), "x": pa.array(values, column.kind)})
        folder = tmp_path / str(number)
        columns = f"k BIGINT, x {from_arrow_type(column.kind, prefer_timestamp_ntz=True).simpleString()}"
        spark.createDataFrame(table, columns).coalesce(1).write.parquet(str(folder))
        (file,) = folder.glob("*.parquet")
        for form in FORMATS:
            check_file(totals, "parquet", f"{name} as {form}", file, name, values, form)
    assert not totals.findings
    assert totals.equal["parquet"] > 3 * len(names) * _ROWS, totals.line()  # Protobuf has no null in lists and maps
