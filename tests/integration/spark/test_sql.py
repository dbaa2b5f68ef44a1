"""Unsupported SQL raises an error: docs/spark/sql.md describes it."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

pytestmark = pytest.mark.each_spark

FIELDS = '[{"name": "id", "type": "long"}, {"name": "item", "type": "string"}]'
SCHEMA = f'{{"type": "record", "name": "Order", "fields": {FIELDS}}}'


@pytest.fixture
def fresh_schema(spark: SparkSession) -> Iterator[None]:
    """A schema of the test's own, so that tables of other tests are not in the way."""
    spark.sql("CREATE DATABASE page")
    spark.sql("USE page")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE page CASCADE")


@pytest.mark.usefixtures("fresh_schema")
def test_rows_never_go_to_the_table_that_they_come_from(spark, config, scope, checkpoint):
    def options(stream: str) -> str:
        return (
            f"OPTIONS (controller '{config.controller}', stream '{scope}/{stream}', allow_create_scope 'true', "
            f"allow_create_stream 'true', format 'avro', avro_schema '{SCHEMA}')"
        )

    def said(run: Callable[[], object]) -> str:
        with pytest.raises(PySparkException) as error:
            run()
        return str(error.value)

    for name in ("one", "two"):
        spark.sql(f"CREATE TABLE {name} USING pravega {options(name)}")
    spark.sql("INSERT INTO one VALUES (1, 'x'), (2, 'y')")
    # The same names and types: Spark hands on the columns of table one.
    spark.sql("INSERT INTO two SELECT * FROM one")
    spark.sql("INSERT INTO two SELECT id, 'z' AS item FROM one WHERE id = 1")
    lost = "the options of this table are lost"
    assert lost in said(lambda: spark.sql("INSERT INTO two SELECT * FROM two"))
    assert lost in said(lambda: spark.sql(f"CREATE TABLE three USING pravega {options('three')} AS SELECT * FROM one"))
    assert not spark.catalog.tableExists("three")
    stream = spark.readStream.option("start_stream_cut", "earliest").table("one").writeStream
    stream = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    assert lost in said(lambda: stream.toTable("two").awaitTermination())
    assert "a stream supports only appends" in said(lambda: spark.sql("INSERT OVERWRITE two VALUES (2, 'y')"))
    said(lambda: spark.sql("DELETE FROM two WHERE id = 1"))
    spark.sql(f"CREATE TABLE columns (id BIGINT, item STRING) USING pravega {options('two')}")
    assert lost in said(lambda: spark.table("columns").collect())
    spark.sql(f"CREATE TABLE number USING pravega {options('number').replace(SCHEMA, chr(34) + 'long' + chr(34))}")
    assert lost in said(lambda: spark.sql("INSERT INTO number VALUES (1)"))
    assert sorted(spark.table("one").collect()) == [(1, "x"), (2, "y")]
    assert sorted(spark.table("two").collect()) == [(1, "x"), (1, "z"), (2, "y")]
    # The changed table's columns are written too, with the others.
    spark.sql("INSERT INTO one SELECT id + 10, item FROM one WHERE id = 1")
    assert sorted(spark.table("one").collect()) == [(1, "x"), (2, "y"), (11, "x")]


@pytest.mark.usefixtures("fresh_schema")
def test_properties_are_not_options_and_altered_columns_can_be_restored(spark, config, scope):
    options = f"controller '{config.controller}', stream '{scope}/s', format 'avro', avro_schema '{SCHEMA}'"
    new = "allow_create_scope 'true', allow_create_stream 'true'"
    spark.sql(
        f"CREATE TABLE altered USING pravega OPTIONS ({options}, {new}) "
        "COMMENT 'orders' TBLPROPERTIES ('team' = 'sales', 'start' = 'july')"
    )
    spark.sql("INSERT INTO altered VALUES (1, 'x')")
    for change, undo, name in (
        ("ADD COLUMN more INT", "DROP COLUMN more", "more"),
        ("RENAME COLUMN item TO thing", "RENAME COLUMN thing TO item", "thing"),
    ):
        spark.sql(f"ALTER TABLE altered {change}")
        with pytest.raises(
            PySparkException, match=f"no field '{name}'; .* undo ALTER TABLE with DROP COLUMN or RENAME"
        ):
            spark.table("altered").collect()
        spark.sql(f"ALTER TABLE altered {undo}")
        assert spark.table("altered").collect() == [(1, "x")]
    with pytest.raises(PySparkException, match=r"PRAVEGA-UNKNOWN-OPTION.*'start'; did you mean 'start_stream_cut'"):
        spark.sql(f"CREATE TABLE wrong USING pravega OPTIONS ({options}, start 'earliest')")
