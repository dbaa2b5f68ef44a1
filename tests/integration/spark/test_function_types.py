"""The column functions carry each type of Spark unchanged, also where pandas has no such value."""

import hashlib

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

from pravega_connector.errors import UnsupportedModeError
from pravega_connector.spark.arrow_in_pandas import _ArrowFunction
from pravega_connector.spark.functions import from_pravega, to_pravega

pytestmark = pytest.mark.usefixtures("new_york")

#: Name -> type, and values in Spark's SQL. Each column gets a null, too.
VALUES = {
    "flag": ("BOOLEAN", ["true", "false"]),
    "tiny": ("TINYINT", ["-128Y", "127Y"]),
    "small": ("SMALLINT", ["-32768S", "32767S"]),
    "number": ("INT", ["-2147483648", "2147483647"]),
    "large": ("BIGINT", ["9007199254740993L", "-9223372036854775807L"]),
    "real": ("FLOAT", ["CAST(0.1 AS FLOAT)", "CAST('NaN' AS FLOAT)"]),
    "double": ("DOUBLE", ["CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)"]),
    "price": ("DECIMAL(38, 18)", ["-99999999999999999999.999999999999999999BD", "0.000000000000000001BD"]),
    "text": ("STRING", ["''", "'имя ✓'"]),
    "raw": ("BINARY", ["X''", "X'00FF80'"]),
    "day": ("DATE", ["DATE'0001-01-01'", "DATE'9999-12-31'"]),
    "at": ("TIMESTAMP", ["TIMESTAMP'1500-01-01T00:00:00.000001Z'", "TIMESTAMP'9999-12-31T23:59:59.999999Z'"]),
    "hour_twice": ("TIMESTAMP", ["TIMESTAMP'2026-11-01T05:30:00.000001Z'", "TIMESTAMP'2026-11-01T06:30:00.000001Z'"]),
    "local": ("TIMESTAMP_NTZ", ["TIMESTAMP_NTZ'2026-03-08 02:30:00.5'", "TIMESTAMP_NTZ'2500-01-01 00:00:00.000001'"]),
    "list": ("ARRAY<BIGINT>", ["ARRAY(9007199254740993L, NULL)", "ARRAY()"]),
    "lists": ("ARRAY<ARRAY<DOUBLE>>", ["ARRAY(ARRAY(CAST('NaN' AS DOUBLE), NULL), NULL)", "ARRAY(ARRAY())"]),
    "times": ("ARRAY<TIMESTAMP>", ["ARRAY(TIMESTAMP'1600-06-01T12:00:00.123456Z', NULL)", "ARRAY()"]),
    "counts": ("MAP<STRING, BIGINT>", ["MAP('a', 9007199254740993L, 'b', NULL)", "MAP()"]),
    "ends": ("MAP<STRING, TIMESTAMP>", ["MAP('a', TIMESTAMP'2400-01-01T00:00:00.000001Z')", "MAP()"]),
    "inner": (
        "STRUCT<ok: BOOLEAN, at: TIMESTAMP, prices: ARRAY<DECIMAL(20, 4)>>",
        [
            "NAMED_STRUCT('ok', CAST(NULL AS BOOLEAN), 'at', CAST(NULL AS TIMESTAMP), 'prices', NULL)",
            "NAMED_STRUCT('ok', true, 'at', TIMESTAMP'1500-01-01T00:00:00.000001Z', 'prices', ARRAY(1.2345BD, NULL))",
        ],
    ),
    "lines": (
        "ARRAY<STRUCT<sku: STRING, parts: MAP<STRING, ARRAY<INT>>>>",
        ["ARRAY(NAMED_STRUCT('sku', NULL, 'parts', MAP('x', ARRAY(1, NULL))), NULL)", "ARRAY()"],
    ),
}
#: SHA-256 of the events, which does not depend on the version of Spark.
DIGEST = "6b2be4ce2d25bda04e113fc741615ddb7b6e158dee20817185f6b1b735a78887"


def columns() -> str:
    return ", ".join(
        f"CAST(CASE id WHEN 0 THEN {first} WHEN 1 THEN {second} END AS {kind}) AS {name}"
        for name, (kind, (first, second)) in VALUES.items()
    )


def test_each_type_comes_back_unchanged_and_gives_the_same_events(spark: SparkSession) -> None:
    schema = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    rows = spark.sql(f"SELECT id, STRUCT(*) AS before FROM (SELECT {columns()}, id FROM RANGE(0, 3, 1, 1))")
    rows = rows.selectExpr("id", "before").select("id", "before", to_pravega("before", "cbor", schema).alias("event"))
    rows = rows.select("*", from_pravega("event", "cbor", schema).alias("after"))
    maps = {name for name, (kind, _) in VALUES.items() if "MAP" in kind}
    # Spark does not compare maps.
    form = {name: "TO_JSON(STRUCT({}))" if name in maps else "{}" for name in VALUES}
    equal = [f"{form[n].format(f'before.{n}')} <=> {form[n].format(f'after.{n}')} AS {n}" for n in VALUES]
    found = rows.selectExpr("id", "event", *equal).orderBy("id").collect()
    changed = [(row.id, name) for row in found for name in VALUES if not row[name]]
    assert changed == []
    assert hashlib.sha256(b"".join(bytes(row.event) for row in found)).hexdigest() == DIGEST


def test_each_type_is_its_own_column(spark: SparkSession) -> None:
    names = [name for name, (kind, _) in VALUES.items() if not kind.startswith("STRUCT")]
    rows = spark.sql(f"SELECT id, {columns()} FROM RANGE(0, 3, 1, 1)").select("id", *names)
    pairs = [from_pravega(to_pravega(name, "cbor"), "cbor", VALUES[name][0]).alias(f"{name}_after") for name in names]
    rows = rows.select("*", *pairs)
    equal = [f"TO_JSON(STRUCT({n} AS v)) <=> TO_JSON(STRUCT({n}_after AS v)) AS {n}" for n in names]
    found = rows.selectExpr("id", *equal).orderBy("id").collect()
    assert [(row.id, name) for row in found for name in names if not row[name]] == []


@pytest.mark.filterwarnings("ignore")
def test_other_functions_of_the_query_get_pandas(spark: SparkSession) -> None:
    @pandas_udf("STRING")  # type: ignore[call-overload]
    def kinds(numbers: pd.Series, pair: pd.DataFrame) -> pd.Series:
        return pd.Series([f"{numbers.dtype} {pair['a'].dtype}"] * len(numbers))

    rows = spark.range(2).selectExpr("id", "STRUCT(id AS a) AS pair")
    event = to_pravega("pair", "json")
    found = rows.select(kinds("id", "pair").alias("kinds"), event.alias("event")).collect()
    assert [(row.kinds, bytes(row.event)) for row in found] == [
        ("int64 int64", b'{"a":0}'),
        ("int64 int64", b'{"a":1}'),
    ]


def test_a_build_of_spark_that_converts_the_column_is_refused() -> None:
    function = _ArrowFunction(lambda column: column, pa.binary())
    with pytest.raises(UnsupportedModeError, match="in mapInArrow"):
        function(pd.Series([b"event"]))
