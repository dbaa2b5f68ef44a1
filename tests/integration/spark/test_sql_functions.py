"""The column functions in SQL: their arguments, views, tables of other formats, and errors."""

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pravega_connector.errors import ConfigError, UnsupportedModeError
from pravega_connector.spark.functions import from_pravega, to_pravega
from pravega_connector.spark.sql_functions import register_functions
from pravega_serde.routing import segment_key
from tests.integration.spark._cases import SAMPLE

pytestmark = pytest.mark.each_spark

ORDER = json.dumps(
    {"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}]}
)


@pytest.fixture
def sql(spark: SparkSession) -> Iterator[SparkSession]:
    """Session with the functions, and the view ``events`` of two records in Avro."""
    session = spark.newSession()
    register_functions(session)
    session.sql(
        f"""CREATE TEMPORARY VIEW events AS
        SELECT to_pravega(struct(id, item), 'avro', avro_schema => '{ORDER}') AS event
        FROM VALUES (1L, 'tea'), (2L, 'milk') AS orders(id, item)"""
    )
    yield session
    session.sql("DROP VIEW events")


@pytest.mark.parametrize(
    "arguments",
    [
        f"'avro', avro_schema => '{ORDER}'",
        f"'AVRO', map('avro_schema', '{ORDER}')",
        f"format => 'avro', avro_schema => '{ORDER}'",
        f"'avro', avro_schema => concat('{ORDER[:9]}', '{ORDER[9:]}'), mode => 'failfast', schema => NULL",
    ],
)
def test_forms_of_arguments(sql: SparkSession, arguments: str):
    found = sql.sql(f"SELECT o.item, o.id FROM (SELECT from_pravega(event, {arguments}) AS o FROM events)")
    assert found.dtypes == [("item", "string"), ("id", "bigint")]
    assert sorted(found.collect()) == [("milk", 2), ("tea", 1)]


def test_a_sample_as_a_constant_of_bytes(sql: SparkSession):
    (row,) = sql.sql(f"SELECT from_pravega(X'{SAMPLE.hex()}', 'java', java_sample => X'{SAMPLE.hex()}').id").collect()
    assert row == (1,)


def test_the_type_is_that_of_each_call(sql: SparkSession):
    row = sql.sql(
        """SELECT from_pravega(to_pravega(struct(7 AS a), 'json'), 'json', 'a INT').a AS number,
        from_pravega(to_pravega(struct('x' AS b), 'cbor'), 'cbor', 'b STRING').b AS text,
        from_pravega(CAST('{' AS BINARY), 'json', 'a INT', mode => 'PERMISSIVE') AS bad,
        pravega_segment_key('ann') AS place"""
    ).first()
    assert (row.number, row.text, row.place) == (7, "x", segment_key("ann"))
    assert (row.bad.a, row.bad._corrupt_record) == (None, b"{")


def test_views_and_tables_of_other_formats(sql: SparkSession, tmp_path):
    sql.table("events").write.parquet(str(tmp_path / "events"))
    sql.sql(
        f"""CREATE TEMPORARY VIEW orders AS SELECT o.* FROM (
            SELECT from_pravega(event, 'avro', avro_schema => '{ORDER}') AS o FROM parquet.`{tmp_path}/events`)"""
    )
    assert sql.sql("SELECT count(*) AS n, sum(id) AS total FROM orders WHERE item <> 'x'").first() == (2, 3)
    assert sql.sql("SELECT a.id FROM orders a JOIN orders b USING (id) ORDER BY id").collect() == [(1,), (2,)]
    sql.sql("DROP VIEW orders")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (f"from_pravega(event, '{ORDER}')", "the second argument of from_pravega is the format"),
        (f"from_pravega(event, 'avro', '{ORDER}')", "avro_schema => "),
        ("from_pravega(event, 'avro', avro_shema => 'x')", "did you mean 'avro_schema'"),
        ("from_pravega(event, string(event))", "argument 'format' of from_pravega must be a constant"),
        ("from_pravega(event, 'json', 'a INT', 'b')", "write options as name => value"),
        ("from_pravega(event, 'json', map('a', 1))", "must have texts as keys and values"),
        ("from_pravega()", "from_pravega has no column"),
        ("from_pravega(event, 'json', format => 'avro')", "from_pravega has the argument 'format' twice"),
        ("pravega_segment_key('ann', 'bob')", "pravega_segment_key has 2 arguments"),
    ],
)
def test_errors_name_the_argument(sql: SparkSession, call: str, words: str):
    with pytest.raises(Exception, match=r"\[PRAVEGA-") as raised:
        sql.sql(f"SELECT {call} FROM events")
    (line,) = [line for line in str(raised.value).splitlines() if "[PRAVEGA-" in line]
    assert words in line


@pytest.mark.parametrize(("function", "of_spark"), [(from_pravega, "from_avro"), (to_pravega, "to_avro")])
def test_a_schema_in_the_place_of_sparks_functions(spark: SparkSession, function, of_spark: str):
    for schema in (ORDER, '"long"', f" {ORDER}"):
        with pytest.raises(ConfigError, match=f"not their schema as in {of_spark}: write {function.__name__}"):
            function("event", schema)
    with pytest.raises(ConfigError, match=r"the third argument of .* is a schema of Spark"):
        function("event", "avro", ORDER)


def test_spark_connect_is_refused():
    with pytest.raises(UnsupportedModeError, match="requires a classic session"):
        register_functions(object())  # type: ignore[arg-type]
