"""The column functions: every format from a BINARY column and to it, without a stream."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pravega_connector.errors import ConfigError
from pravega_connector.spark.functions import from_pravega, pravega_segment_key, to_pravega
from pravega_connector.spark.versions import HAS_ARROW_FUNCTIONS
from pravega_serde import SchemaError, UnsupportedFormatError
from pravega_serde.routing import segment_key
from tests.integration.spark._cases import AVRO, SAMPLE, Case

pytestmark = [pytest.mark.usefixtures("new_york"), pytest.mark.each_spark]

NAMES = ["avro", "json", "cbor", "protobuf", "java", "java of strings"]


@pytest.mark.parametrize("name", NAMES)
def test_columns_come_back_as_they_were(spark: SparkSession, all_cases: dict[str, Case], name: str):
    case = all_cases[name]
    of_format = case.name.partition(" ")[0]
    original = spark.sql(case.query)
    column = "value" if original.columns == ["value"] else "STRUCT(*)"
    frame = original.selectExpr(f"{column} AS before")
    frame = frame.select("before", to_pravega("before", of_format, **case.write).alias("event"))
    frame = frame.select(
        "before", from_pravega("event", of_format, case.schema, **case.write, **case.read).alias("after")
    )
    rows = frame.collect()
    assert len(rows) == 40
    assert [row.after for row in rows] == [row.before for row in rows]


def test_bad_records(spark: SparkSession):
    query = (
        """SELECT CAST(text AS BINARY) AS event FROM VALUES ('{"a": 1}'), ('{"a": "x"}'), (NULL), ('{') AS t(text)"""
    )
    frame = spark.sql(query).coalesce(1)
    decoded = from_pravega("event", "json", "a INT", mode="permissive")
    rows = [row.decoded for row in frame.select(decoded.alias("decoded")).collect()]
    assert [None if row is None else (row.a, row._corrupt_record) for row in rows] == [
        (1, None),
        (None, b'{"a": "x"}'),
        None,
        (None, b"{"),
    ]
    assert rows[0]._corrupt_record_error is None
    assert rows[1]._corrupt_record_error.endswith("a string where an integer is expected (at field $.a)")
    assert rows[3]._corrupt_record_error.startswith("[PRAVEGA-DESERIALIZATION] ")
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-DESERIALIZATION\] .* \(at field \$\.a\)"):
        frame.select(from_pravega("event", "json", "a INT")).collect()
    single = spark.sql("SELECT CAST('x' AS BINARY) AS event").select(
        from_pravega("event", "java", java_type="java.lang.Long", mode="PERMISSIVE").alias("decoded")
    )
    assert single.first().decoded[:2] == (None, b"x")


def test_options_that_are_not_text(spark: SparkSession):
    frame = spark.range(1).select(to_pravega("id", "avro", avro_schema="long").alias("event"))
    assert frame.first().event == b"\x00"
    assert from_pravega("event", "avro", avro_schema=AVRO) is not None
    assert from_pravega("event", "java", java_sample=SAMPLE) is not None


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (("xml",), {}, UnsupportedFormatError, "xml"),
        (("json",), {}, ConfigError, "schema"),
        (("java",), {}, ConfigError, "java_sample"),
        (("avro",), {}, ConfigError, "avro_schema"),
        (("avro",), {"json_schema": "{}"}, ConfigError, "belongs to format 'json'"),
        (("avro",), {"avro_shema": "{}"}, ConfigError, "did you mean 'avro_schema'"),
        (("json", "a INT"), {"mode": "DROPMALFORMED"}, ConfigError, "PERMISSIVE"),
        (("json", "_corrupt_record INT"), {"mode": "PERMISSIVE"}, ConfigError, "adds a field '_corrupt_record'"),
        (("json", "a INTERVAL YEAR"), {}, SchemaError, "interval year> has no Arrow type"),
    ],
)
def test_what_is_wrong_is_said_before_the_query_runs(spark, arguments, options, error, words):
    with pytest.raises(error, match=words):
        from_pravega("event", *arguments, **options)


@pytest.mark.skipif(not HAS_ARROW_FUNCTIONS, reason="Spark raises the error itself")
@pytest.mark.parametrize("column", ["INTERVAL '1' YEAR", "make_interval(1)", "array(make_interval(1))"])
def test_columns_without_a_type_of_arrow(spark: SparkSession, column: str):
    frame = spark.sql(f"SELECT struct({column} AS a) AS row")
    with pytest.raises(PySparkException, match=r"\[PRAVEGA-SCHEMA\] a column of type .* for example to STRING"):
        frame.select(to_pravega("row", "json")).collect()


def test_segment_keys_are_those_of_the_writers(spark: SparkSession):
    rows = spark.sql("SELECT key FROM VALUES ('a'), ('ключ'), (NULL) AS t(key)").select(
        "key", pravega_segment_key("key").alias("place")
    )
    assert {row.key: row.place for row in rows.collect()} == {
        "a": segment_key("a"),
        "ключ": segment_key("ключ"),
        None: None,
    }
